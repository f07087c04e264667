"""Plans are kept by the values of all that they depend on."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import skdp
from skdp._fitting import estimator as fits
from skdp._fitting.estimator import _frozen
from skdp.linear_model.base import DPLinearModel
from skdp.objective import Box
from skdp.solvers import GradientDescent


class OwnSolver(GradientDescent):
    """A solver that is not of skdp."""


class OwnRidge(skdp.DPRidge):
    """A model that is not of skdp."""


@pytest.fixture
def planned(monkeypatch):
    """The plans that were made."""
    made, prepared = [], DPLinearModel._prepared
    monkeypatch.setattr(
        DPLinearModel, "_prepared", lambda self, *of: made.append(1) or prepared(self, *of)
    )
    return made


def test_different_values_have_different_keys():
    values = [
        0, 0.0, -0.0, 1.0, np.nextafter(1.0, 2), False, "0", None, [0], (0,), [], (), range(1),
        frozenset(["a"]), {"a": 0},
        {"a": 0.0}, {"b": 0}, {0: 0}, np.int64(0), np.float32(0), np.float64(0), np.zeros(2),
        np.zeros(4, np.float32), np.zeros((1, 2)), -np.zeros(2), np.array(["a"]),
        np.zeros(1, [("a", int)]), np.zeros(1, [("b", int)]), Box(0, 1), Box(0.0, 1),
        skdp.PublicRange(0, 1), skdp.PublicRange(0, high=[1]),
        skdp.PublicRange(0, high=np.array([1])), GradientDescent(), GradientDescent(max_iter=5),
        skdp.Privacy(), skdp.Privacy(adjacency="label"),
    ]  # fmt: skip
    for one, other in itertools.combinations(values, 2):
        assert _frozen(one) != _frozen(other), (one, other)
    for make in (
        lambda: Box(0, 1),
        lambda: np.arange(3.0),
        lambda: GradientDescent(max_iter=5),
    ):
        assert _frozen(make()) == _frozen(make())


@pytest.mark.parametrize(
    "value",
    [len, lambda x: x, Box, OwnSolver(), np.array([None]), {"f": np.mean}, [object()],
     np.zeros(10**6)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_functions_and_other_objects_have_no_key(value):
    with pytest.raises(TypeError, match="is no key"):
        _frozen(value)


def counts(model):
    return [record.count for record in model.plan(300, 4).releases]


def test_equal_fits_are_planned_once_and_changes_are_seen(planned):
    for _ in range(3):
        skdp.DPRidge().plan(300, 4)
    n_default = len(planned)
    skdp.DPRidge().plan(300, 4)
    assert len(planned) == n_default  # a plan's statement compares it with the default
    solver = GradientDescent(max_iter=5)
    model = skdp.DPRidge(solver=solver, scaling="none")
    for steps in (5, 7, 5):
        solver.max_iter = steps  # in place
        assert counts(model) == [steps]
    for own in (skdp.DPRidge(solver=OwnSolver(max_iter=5)), OwnRidge()):
        before = len(planned)
        for _ in range(2):
            own.plan(300, 4)
        assert len(planned) >= before + 2


def test_objects_of_users_may_change_after_a_plan(rng):
    """The plan of a box keeps its own copy of the box."""
    X, y = rng.normal(size=(300, 2)), rng.normal(size=300)
    box = Box(0.2, 0.3)
    model = skdp.DPRidge(constraint=box, scaling="none")
    model.plan(300, 2)
    box.low, box.high = -0.3, -0.2
    again = skdp.DPRidge(constraint=Box(0.2, 0.3), scaling="none").fit(X, y)
    assert (again.coef_ >= 0.2).all()
    assert (model.fit(X, y).coef_ <= -0.2).all()


def test_few_plans_are_kept():
    for epsilon in np.linspace(1, 2, 70):
        skdp.DPRidge(epsilon=epsilon).plan(300, 4)
    assert 0 < len(fits._plans) <= 64
