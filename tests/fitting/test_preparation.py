"""Plans are kept by the values of all that they depend on."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import skdp
from skdp._fitting import estimator as fits
from skdp._fitting.estimator import _frozen
from skdp.linear_model.base import DPLinearModel
from skdp.solvers import GradientDescent


class OwnSolver(GradientDescent):
    """A solver that is not of skdp."""


@pytest.fixture
def planned(monkeypatch):
    """The plans that were made."""
    made, prepared = [], DPLinearModel._prepared
    monkeypatch.setattr(fits, "_plans", {})
    monkeypatch.setattr(
        DPLinearModel, "_prepared", lambda self, *of: made.append(1) or prepared(self, *of)
    )
    return made


def test_different_values_have_different_keys():
    values = [
        0, 0.0, False, "0", None, [0], (0,), range(1), [], (), {"a": 0},
        {"a": 0.0}, frozenset(["a"]),
        np.int64(0), np.float32(0), np.zeros(2), np.zeros(4, np.float32), np.zeros((1, 2)),
        skdp.objective.Box(0, 1), skdp.objective.Box(0.0, 1), skdp.PublicRange(0, 1),
        skdp.PublicRange(0, high=[1]),
        skdp.PublicRange(0, high=np.array([1])), GradientDescent(), GradientDescent(max_iter=5),
    ]  # fmt: skip
    for one, other in itertools.combinations(values, 2):
        assert _frozen(one) != _frozen(other), (one, other)
    for make in (
        lambda: skdp.objective.Box(0, 1),
        lambda: np.arange(3.0),
        lambda: GradientDescent(max_iter=5),
    ):
        assert _frozen(make()) == _frozen(make())


def test_equal_fits_are_planned_once_and_changes_are_seen(planned):
    for _ in range(3):
        skdp.DPRidge().plan(300, 4)
    n_default = len(planned)
    skdp.DPRidge().plan(300, 4)
    assert len(planned) == n_default  # a plan's statement compares it with the default
    solver = GradientDescent(max_iter=5)
    model = skdp.DPRidge(solver=solver, scaling="none")
    counts = []
    for steps in (5, 7):
        solver.max_iter = steps  # in place
        counts.append(sum(record.count for record in model.plan(300, 4).releases))
    assert counts == [5, 7]
    before = len(planned)
    for _ in range(2):
        skdp.DPRidge(solver=OwnSolver(max_iter=5)).plan(300, 4)
    assert len(planned) >= before + 2
