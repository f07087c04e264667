"""The warning for fits of which little but noise would be left."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import skdp
from skdp.objective import Logistic


def warned(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(one.message) for one in caught if one.category is skdp.NoiseWarning]


@pytest.mark.parametrize(
    "solver",
    [
        "gd",
        "svrg",
        "shuffled_sgd",
        "residual_budget",
    ],
    ids=str,
)
def test_ordinary_plans_are_not(solver):
    model = skdp.DPLogisticRegression(solver=solver)
    assert not warned(lambda: model.plan(50_000, 20))


def test_it_comes_before_any_budget_is_spent(classification):
    X, y = classification
    budget = skdp.PrivacyBudget(epsilon=1.0, delta=1e-5)
    model = skdp.DPLogisticRegression(
        classes=[0, 1], privacy=skdp.Privacy(budget=budget), epsilon=0.01
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(skdp.NoiseWarning):
            model.fit(X, y)
    assert budget.n_fits == 0


def test_plans_say_of_which_fits_their_figures_are():
    for model, unlike in (
        (skdp.DPQuantileRegressor(), "this loss"),
        (skdp.DPElasticNet(), "this penalty or constraint"),
    ):
        (said, *_) = model.plan(1000, 2).expectations
        assert f"Fits with {unlike} were not measured" in said
    assert "not measured" not in skdp.DPRidge().plan(1000, 2).expectations[0]


def test_plans_state_no_need_of_a_handful_of_rows():
    for epsilon in (0.01, 0.1, 1.0, 10.0):
        for n_features in (1, 3, 10, 100):
            said = " ".join(skdp.DPRidge(epsilon=epsilon).plan(10**5, n_features).expectations)
            needed = [int(rows) for rows in re.findall(r"from about (\d+) rows", said)]
            assert all(rows >= 50 for rows in needed)
            assert ("The median loss" in said) == bool(needed)
    (one,) = warned(lambda: skdp.DPRidge(delta=1e-9).plan(1, 1))
    assert "2 parameters from 1 row:" in one


@pytest.mark.parametrize("low", [-10, 0])
def test_statements_reconcile_a_declared_range_of_targets_with_an_estimated_one(low):
    ranges = skdp.PublicRange(low=0, high=1, target=(low, 5000))
    texts = skdp.DPTweedieRegressor(power=1.5, scaling=ranges).plan(1000, 2).assumptions
    (place,) = (place for place, text in enumerate(texts) if f"{low} to 5000, was chosen" in text)
    assert "Within the declared range of targets, a narrower one" in texts[place + 1]
    assert "narrower" not in " ".join(skdp.DPRidge(scaling=ranges).plan(1000, 2).assumptions)


# ---------------------------------------------------------------- too few rows for anything


class UnknownLoss(skdp.DPRidge):
    """A regression with a loss of its own, of which no fit was measured."""

    def _loss(self, n_outputs):
        @dataclass(frozen=True)
        class UnmeasuredLoss(Logistic):
            name: ClassVar[str] = "unknown"
            targets: ClassVar[str] = "count"

        return UnmeasuredLoss()


def test_pure_privacy_promises_no_more_than_a_positive_delta():
    """Its Laplace noise grows with the columns and the steps. R2 is about 0.05 at 300 x 30."""
    pure, usual = skdp.DPRidge(delta=0), skdp.DPRidge(delta=1e-6)
    (said,) = pure.plan(8000, 3).expectations
    assert "No loss is predicted with delta=0" in said
    told = " ".join(warned(lambda: pure.plan(300, 30)))
    assert "do not expect better predictions" in told
    assert "Use fewer columns, a positive delta or a larger epsilon" in told
    assert "benchmarks" not in told
    for n_rows, n_columns in ((20, 1), (100, 10), (300, 3), (300, 30), (8000, 3)):
        few = len(warned(lambda n=n_rows, p=n_columns: usual.plan(n, p)))
        assert len(warned(lambda n=n_rows, p=n_columns: pure.plan(n, p))) >= few
    assert not warned(lambda: pure.plan(8000, 3))
    X = np.random.default_rng(0).standard_normal((40, 5))
    pure.set_params(epsilon=0.1, scaling="none")
    with pytest.warns(skdp.NoiseWarning, match="do not expect better predictions"):
        pure.fit(X, X[:, 0])


def test_nothing_is_expected_of_a_loss_that_was_not_measured():
    assert skdp.DPRidge().plan(2000, 10).expectations
    assert UnknownLoss().plan(2000, 10).expectations == ()
    assert warned(lambda: skdp.DPRidge().plan(20, 30))
    assert not warned(lambda: UnknownLoss().plan(20, 30))


@pytest.mark.parametrize(
    ("shape", "parameters"),
    [
        ((2, 3), {}),
        ((20, 30), {}),
        ((400, 5), {"epsilon": 1e-6}),
        ((60, 5), {"privacy": skdp.Privacy(adjacency="replace_one"), "epsilon": 0.3}),
    ],
)
def test_a_fit_that_cannot_learn_says_so_and_how_many_rows_would_do(shape, parameters, rng):
    X = rng.standard_normal(shape)
    model = skdp.DPRidge(**parameters)
    advice = r"do not expect better predictions.*needed about (\d+) rows to reach half"
    with pytest.warns(skdp.NoiseWarning, match=advice) as fitted:
        model.fit(X, X[:, 0])
    with pytest.warns(skdp.NoiseWarning, match=advice) as planned:
        model.plan(*shape)
    told = {str(warning.message) for warning in (*fitted, *planned)}
    assert len(told) == 1  # from public facts: fit and plan say the same
    enough = int(re.search(advice, told.pop()).group(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", skdp.NoiseWarning)
        model.plan(enough, shape[1])
