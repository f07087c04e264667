"""Figures that the accounting tests compare with."""

import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def vectors():
    """Figures computed independently with public packages; see each test for their tolerance."""
    return json.loads((HERE / "vectors.json").read_text())
