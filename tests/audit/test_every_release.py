"""Every audited class has a test that fails when its sensitivity is halved."""

from __future__ import annotations

import pytest

from benchmarks.releases import OTHERS, PROOFS
from skdp import audit
from skdp.linear_model import preparation
from skdp.oracle.releases import base

BOTH = ["zero_out", "replace_one"]


def test_every_audited_class_is_listed():
    assert set(PROOFS) | set(OTHERS) == base._AUDITED
    assert not set(PROOFS) & set(OTHERS)


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("kind", PROOFS, ids=lambda kind: kind.__name__)
def test_half_of_the_sensitivity_is_found(kind, adjacency, monkeypatch):
    """And the whole of it passes."""
    estimator = PROOFS[kind].estimator(adjacency)
    report = audit.replay(estimator)
    assert report.ok, report
    PROOFS[kind].halve(monkeypatch)
    preparation._plans.clear()
    assert not audit.replay(estimator).ok
