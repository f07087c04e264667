"""The `constraint` parameter of the estimators."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import skdp

SEEDED = skdp.Privacy(noise=skdp.SeededNoise(0))

SETS = {
    "l2_ball": lambda w, r: np.linalg.norm(w) <= r,
    "l1_ball": lambda w, r: np.abs(w).sum() <= r,
    "box": lambda w, r: np.abs(w).max() <= r,
    "simplex": lambda w, r: abs(w.sum() - r) < 1e-9 and (w >= 0).all(),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("radius", [0.05, 0.5])
def test_coefficients_lie_in_the_set(name, radius, regression, classification):
    for model, data in (
        (skdp.DPLinearRegression, regression),
        (skdp.DPRidge, regression),
        (functools.partial(skdp.DPLogisticRegression, classes=[0, 1]), classification),
    ):
        fitted = model(constraint=name, radius=radius, scaling="none", privacy=SEEDED).fit(*data)
        assert SETS[name](fitted.coef_.ravel(), radius * (1 + 1e-9))


def test_a_change_of_a_set_reaches_no_plan_of_an_earlier_fit(regression):
    given = {"epsilon": 100.0, "scaling": "none"}
    model = skdp.DPRidge(constraint=skdp.L2Ball(0.05), **given).fit(*regression)
    model.set_params(constraint__radius=5.0)
    other = skdp.DPRidge(constraint=skdp.L2Ball(0.05), **given).fit(*regression)
    assert np.linalg.norm(other.coef_) <= 0.05 * (1 + 1e-9)


def test_a_wide_set_changes_nothing(regression):
    seeded = {"privacy": SEEDED, "scaling": "none", "solver": "gd"}
    free = skdp.DPRidge(**seeded).fit(*regression)
    wide = skdp.DPRidge(constraint=skdp.L2Ball(1e6), **seeded)
    np.testing.assert_allclose(wide.fit(*regression).coef_, free.coef_)


def test_without_noise_it_is_the_constrained_minimum(regression):
    from scipy.optimize import minimize

    X, y = regression
    with pytest.warns(skdp.PrivacyWarning):
        model = skdp.DPLinearRegression(
            epsilon=math.inf, constraint=skdp.L2Ball(0.5), scaling="none", max_iter=3000
        ).fit(X, y)
    found = minimize(
        lambda w: np.mean((X @ w[:-1] + w[-1] - y) ** 2),
        np.zeros(6),
        constraints={"type": "ineq", "fun": lambda w: 0.25 - w[:-1] @ w[:-1]},
        method="SLSQP",
        tol=1e-12,
    )
    np.testing.assert_allclose(model.coef_, found.x[:-1], atol=1e-5)


@pytest.mark.parametrize("solver", ["gd", "accelerated_mirror_descent", "shuffled_sgd", "svrg"])
@pytest.mark.parametrize("name", SETS)
def test_a_radius_of_any_size_gives_a_model(name, solver, regression):
    for radius in [1e-50, 1e-20, 1e20, 1e50]:
        fitted = skdp.DPRidge(
            alpha=50.0,
            solver=solver,
            constraint=name,
            radius=radius,
            scaling="none",
            privacy=SEEDED,
        ).fit(*regression)
        assert np.isfinite(fitted.coef_).all()
        # in units of the radius, where no sum of squares leaves float64
        assert SETS[name](fitted.coef_.ravel() / radius, 1 + 1e-10)


@pytest.mark.parametrize(
    "wrong",
    [
        {"constraint": "ball"},
        {"constraint": 1},
        {"radius": 0},
        {"radius": None},
        {"constraint": skdp.L1Ball(1e-200), "solver": "accelerated_mirror_descent"},
        {"constraint": skdp.L1Ball(1e200), "solver": "accelerated_mirror_descent"},
    ],
)
def test_errors_come_before_the_rows(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        skdp.DPRidge(**wrong).fit(None, None)
