"""The `constraint` parameter of the estimators."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest

import skdp

SEEDED = skdp.Privacy(noise=skdp.SeededNoise(0))

# By a size, which is a radius or a total: the set, and whether it holds coefficients.
SETS = {
    "l2_ball": (skdp.objective.L2Ball, lambda w, r: np.linalg.norm(w) <= r),
    "l1_ball": (skdp.objective.L1Ball, lambda w, r: np.abs(w).sum() <= r),
    "box": (lambda r: skdp.objective.Box(-r, r), lambda w, r: np.abs(w).max() <= r),
    "simplex": (skdp.objective.Simplex, lambda w, r: abs(w.sum() - r) < 1e-9 and (w >= 0).all()),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("size", [0.05, 0.5])
def test_coefficients_lie_in_the_set(name, size, regression, classification):
    make, holds = SETS[name]
    for model, data in (
        (skdp.DPLinearRegression, regression),
        (skdp.DPRidge, regression),
        (functools.partial(skdp.DPLogisticRegression, classes=[0, 1]), classification),
    ):
        fitted = model(constraint=make(size), scaling="none", privacy=SEEDED).fit(*data)
        assert holds(fitted.coef_.ravel(), size * (1 + 1e-9))


def test_a_change_of_a_set_reaches_no_plan_of_an_earlier_fit(regression):
    given = {"epsilon": 100.0, "scaling": "none"}
    model = skdp.DPRidge(constraint=skdp.objective.L2Ball(0.05), **given).fit(*regression)
    model.set_params(constraint__radius=5.0)
    other = skdp.DPRidge(constraint=skdp.objective.L2Ball(0.05), **given).fit(*regression)
    assert np.linalg.norm(other.coef_) <= 0.05 * (1 + 1e-9)


def test_without_noise_it_is_the_constrained_minimum(regression):
    from scipy.optimize import minimize

    X, y = regression
    with pytest.warns(skdp.PrivacyWarning):
        model = skdp.DPLinearRegression(
            epsilon=math.inf, constraint=skdp.objective.L2Ball(0.5), scaling="none", max_iter=3000
        ).fit(X, y)
    found = minimize(
        lambda w: np.mean((X @ w[:-1] + w[-1] - y) ** 2),
        np.zeros(6),
        constraints={"type": "ineq", "fun": lambda w: 0.25 - w[:-1] @ w[:-1]},
        method="SLSQP",
        tol=1e-12,
    )
    np.testing.assert_allclose(model.coef_, found.x[:-1], atol=1e-5)


VERTICES = [(name, "accelerated_mirror_descent") for name in ("l1_ball", "simplex")]


@pytest.mark.parametrize(
    ("name", "solver"),
    [*itertools.product(SETS, ("gd", "shuffled_sgd", "svrg")), *VERTICES],
)
def test_a_set_of_any_size_gives_a_model(name, solver, regression):
    make, holds = SETS[name]
    for size in [1e-50, 1e-20, 1e20, 1e50]:
        fitted = skdp.DPRidge(
            alpha=50.0, solver=solver, constraint=make(size), scaling="none", privacy=SEEDED
        ).fit(*regression)
        assert np.isfinite(fitted.coef_).all()
        # in units of the size, where no sum of squares leaves float64
        assert holds(fitted.coef_.ravel() / size, 1 + 1e-10)
