"""Sources of noise, and of the words that they are made of."""

from __future__ import annotations

import pytest

from skdp._oracle import exact_sampling
from skdp._oracle.noise import NoiseSource, SeededSource, SystemSource

SOURCES = {"system": SystemSource, "seeded": lambda: SeededSource(20250101)}


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> NoiseSource:
    return SOURCES[request.param]()


@pytest.fixture
def words() -> exact_sampling.Words:
    return exact_sampling.SystemWords()
