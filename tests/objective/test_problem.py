"""Problem: the composed prox against a generic optimiser, the intercept, the capabilities."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skdp.objective import (
    Box,
    Constraint,
    ElasticNet,
    L1Ball,
    L2Ball,
    Logistic,
    Loss,
    Multinomial,
    Problem,
    SquaredError,
)

pytestmark = pytest.mark.filterwarnings("error")
quick = settings(deadline=None, max_examples=20, database=None)


def test_prox_is_exact_for_every_allowed_pair(pair, minimise, rng):
    penalty, constraint = pair
    for size, step in itertools.product((0.5, 2.0), (0.2, 1.5)):
        w = size * rng.standard_normal((3, 2))
        expected = minimise(penalty, constraint, w[:-1], step)
        out = Problem(SquaredError(), penalty, constraint).prox(w, step)
        np.testing.assert_allclose(out[:-1], expected, atol=1e-5)
        assert (out[-1] == w[-1]).all()


def test_other_pairs_are_refused(refused_pair):
    penalty, constraint = refused_pair
    with pytest.raises(ValueError, match="not the prox of both") as refusal:
        Problem(Logistic(), penalty, constraint)
    message = str(refusal.value)
    assert repr(penalty) in message
    assert repr(constraint) in message


@quick
@given(
    w=arrays(float, (4, 2), elements=st.floats(-6, 6)),
    z=arrays(float, (4, 2), elements=st.floats(-6, 6)),
    step=st.floats(0.01, 10),
)
def test_no_feasible_point_beats_the_prox(pair, w, z, step):
    penalty, constraint = pair
    problem = Problem(SquaredError(), penalty, constraint, fit_intercept=False)
    best, z = problem.prox(w, step), constraint.project(z)
    assert constraint.contains(best)

    def objective(point):
        return penalty.value(point) + np.sum((point - w) ** 2) / (2 * step)

    growth = (1 / step + problem.strong_convexity) / 2 * np.sum((z - best) ** 2)
    assert objective(best) + growth <= objective(z) + 1e-8 * (1 + objective(z))


# ---- what a new class must declare


class _Halfspace(Constraint):
    """Sum at most 0."""

    bounded = False

    def project(self, w):
        return w - max(0.0, np.mean(w))

    def contains(self, w, tol=1e-9):
        return np.sum(w) <= tol


def test_a_set_that_declares_nothing_goes_with_what_scales(penalty):
    if penalty.smooth:
        assert Problem(Logistic(), penalty, _Halfspace()).penalty == penalty
    else:
        with pytest.raises(ValueError, match="_Halfspace"):
            Problem(Logistic(), penalty, _Halfspace())


# ---- the intercept


def test_the_intercept_is_neither_penalised_nor_constrained(pair):
    penalty, constraint = pair
    problem = Problem(Logistic(), penalty, constraint)
    w = np.array([[0.5], [-2.0], [1e6]])
    assert problem.prox(w, 0.7)[-1, 0] == 1e6
    coefficients = constraint.project(penalty.prox(w[:-1], 0.7))
    assert (problem.prox(w, 0.7)[:-1] == coefficients).all()
    if penalty.smooth:
        gradient = problem.penalty_gradient(w)
        assert gradient[-1, 0] == 0.0
        assert (gradient[:-1] == penalty.gradient(w[:-1])).all()


def test_without_an_intercept_every_row_counts(pair):
    penalty, constraint = pair
    problem = Problem(Logistic(), penalty, constraint, fit_intercept=False)
    w = np.array([[0.5], [-2.0], [4.0]])
    assert (problem.prox(w, 0.7) == constraint.project(penalty.prox(w, 0.7))).all()
    if penalty.smooth:
        assert (problem.penalty_gradient(w) == penalty.gradient(w)).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_are_left_alone_and_types_kept(dtype, fit_intercept, rng):
    w = rng.standard_normal((4, 3)).astype(dtype)
    kept = w.copy()
    for problem in (
        Problem(Multinomial(3), ElasticNet(0.5, 0.5), L1Ball(1.0), fit_intercept),
        Problem(Multinomial(3), fit_intercept=fit_intercept),
    ):
        outs = [problem.prox(w, 0.1)]
        if problem.penalty.smooth:
            outs.append(problem.penalty_gradient(w))
        for out in outs:
            assert (out.dtype, out.shape) == (dtype, w.shape)
            assert not np.shares_memory(out, w)
    assert (w == kept).all()


def test_a_flat_parameter_is_refused():
    problem = Problem(Logistic(), ElasticNet(1.0))
    with pytest.raises(ValueError, match=r"shape \(p, K\), got \(3,\)"):
        problem.penalty_gradient(np.zeros(3))
    with pytest.raises(ValueError, match=r"shape \(p, K\)"):
        problem.prox(np.zeros(3), 1.0)


# ---- capabilities


# ---- construction


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Loss,), "loss must be an instance of Loss"),
        (("logistic",), "loss must be an instance of Loss, got 'logistic'"),
        ((Logistic(), ElasticNet), "penalty must be an instance of ElasticNet"),
        ((Logistic(), L2Ball(1.0)), "penalty must be an instance of ElasticNet"),
        (
            (Logistic(), ElasticNet(1.0), None),
            "constraint must be an instance of Constraint, got None",
        ),
        (
            (Logistic(), ElasticNet(1.0), Box(0, 1), "no"),
            "fit_intercept must be True or False, got 'no'",
        ),
    ],
)
def test_wrong_parts_are_refused(arguments, message):
    with pytest.raises(TypeError, match=message):
        Problem(*arguments)
