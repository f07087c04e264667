"""Generalised linear models with a log link: solutions, accuracy, units, refusals."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor
from sklearn.metrics import d2_tweedie_score

import skdp
from replays import seeded

EXACT = pytest.mark.filterwarnings("ignore:.*adds no noise:skdp.PrivacyWarning")
SLOPES = np.array([0.5, -0.4, 0.3, 0.2, 0, 0, 0, 0, 0, 0])
MODELS = {
    1.0: (skdp.DPPoissonRegressor, PoissonRegressor),
    1.5: (skdp.DPTweedieRegressor, TweedieRegressor),
    2.0: (skdp.DPGammaRegressor, GammaRegressor),
}


def draws(n_rows, mean, seed=0, power=1.0):
    """Rows, and counts or amounts with this mean."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 10))
    means = mean * np.exp(X @ SLOPES - SLOPES @ SLOPES / 2)
    if power == 2:
        return X, rng.gamma(2.0, means / 2)
    y = rng.poisson(means).astype(float)
    return X, y if power == 1 else rng.gamma(1.0, y)


def made(power, **parameters):
    given = {"power": power} if power == 1.5 else {}
    return MODELS[power][0](**given, **parameters)


held_out = functools.cache(lambda mean, power: draws(20_000, mean, 99, power))


def d2_of(model, power=1.0, mean=2.0):
    X, y = held_out(mean, power)
    return d2_tweedie_score(y, model.predict(X), power=power)


# ---------------------------------------------------------------- without noise


# ---------------------------------------------------------------- accuracy at a budget


def test_rare_counts():
    X, y = draws(20_000, 0.1)
    for epsilon, least in ((0.3, 0.08), (1.0, 0.09)):
        model = skdp.DPPoissonRegressor(epsilon=epsilon, privacy=seeded(0)).fit(X, y)
        assert d2_of(model, mean=0.1) >= least
    for n_rows, least in ((2000, -0.02), (4000, 0.055)):  # errors of the means: 0.01, 0.003
        X, y = draws(n_rows, 0.1)
        scores = [
            d2_of(skdp.DPPoissonRegressor(epsilon=0.3, privacy=seeded(run)).fit(X, y), mean=0.1)
            for run in range(12)
        ]
        assert np.mean(scores) > least


# ---------------------------------------------------------------- refusals and privacy


@pytest.mark.parametrize(
    ("power", "bad", "allowed"), [(1.0, -0.25, "at least 0"), (2.0, 0.0, "positive")]
)
def test_targets_of_the_wrong_kind_are_refused_before_a_charge(power, bad, allowed):
    X, y = draws(50, 2.0)
    y = y + 1.0
    y[7] = bad
    budget = skdp.PrivacyBudget(1.0, 1e-5)
    model = made(power, privacy=skdp.Privacy(budget=budget))
    with pytest.raises(ValueError, match=f"y must be {allowed} everywhere.*released") as refused:
        model.fit(X, y)
    assert str(bad) not in str(refused.value).replace("at least 0", "")
    assert budget.n_fits == 0
    with pytest.raises(ValueError, match=r"1d array|one column"):
        made(power).fit(X, np.c_[y, y])


def test_standard_errors_are_refused_without_the_advice_to_set_a_missing_parameter():
    X, y = draws(50, 2.0)
    model = skdp.DPQuantileRegressor(privacy=seeded(0)).fit(X, y)
    with pytest.raises(AttributeError, match=r"DPQuantileRegressor: return_std=True is not avail"):
        model.predict(X, return_std=True)


@pytest.mark.parametrize("scaling", ["none", skdp.RowNorm(2.0, target=20)])
def test_intervals_need_the_unit_of_the_targets(scaling):
    model = skdp.DPPoissonRegressor(scaling=scaling, inference="coefficients")
    with pytest.raises(ValueError, match="unit of the targets"):
        model.plan(5000, 3)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"power": 0.5}, r"0 or lie in \[1, 2\]"),
        ({"power": 3}, r"0 or lie in \[1, 2\]"),
        ({"power": 1.5, "link": "identity"}, "'auto' or 'log' with power=1.5"),
        ({"link": "log"}, "'auto' or 'identity' with power=0"),
    ],
)
def test_powers_and_links_without_a_convex_loss_are_refused(given, match):
    X, y = draws(50, 2.0)
    with pytest.raises(ValueError, match=match):
        skdp.DPTweedieRegressor(**given).fit(X, y)


@pytest.mark.parametrize(
    "model", [skdp.DPGammaRegressor(), skdp.DPTweedieRegressor(power=2)], ids=str
)
@pytest.mark.parametrize("rows", ["arrays", "groups", "chunks"])
@pytest.mark.parametrize("least", [1e-50, 5e-324])
def test_positive_targets_that_vanish_in_float32_are_positive(model, rows, least):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 2)).astype(np.float32), rng.gamma(2.0, size=300)
    y[5] = least
    fit = {
        "arrays": lambda one: one.fit(X, y),
        "groups": lambda one: one.fit(X, y, groups=np.arange(300)),
        "chunks": lambda one: one.fit(skdp.data.Chunks(X, y, 100)),
    }[rows]
    found = fit(clone(model))
    assert np.isfinite(found.coef_).all()
    y[5] = 0.0
    with pytest.raises(ValueError, match=r"must be positive everywhere.*Nothing was released"):
        fit(clone(model))
