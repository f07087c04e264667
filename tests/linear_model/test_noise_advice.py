"""The warning for batches so small that noise drowns them."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import skdp
from skdp.objective import Logistic
from skdp.solvers import SVRG, AdaptiveShuffledSGD, GradientDescent, ShuffledSGD


def warned(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(one.message) for one in caught if one.category is skdp.NoiseWarning]


def plan_of(n_rows, **parameters):
    solver = SVRG(**parameters)
    model = skdp.DPLogisticRegression(solver=solver, epsilon=0.2, delta=1e-3, scaling="none")
    return warned(lambda: model.plan(n_rows, 54))


def test_the_run_of_the_paper_on_fewer_rows_is_warned_about():
    """Batches of 1 in 15 epochs; with the paper's 200,000 rows enough signal is left."""
    (told,) = plan_of(4000, max_iter=1500, inner_steps=100, batch_size=1)
    assert "such small batches" in told
    assert "No budget has been spent" in told
    assert not plan_of(4000, max_iter=1500, inner_steps=100, batch_size=0.1)


@pytest.mark.parametrize(
    "solver",
    [
        "gd",
        "svrg",
        "svrg++",
        GradientDescent(batch_size=0.1),
        GradientDescent(batch_size=500, sampling="shuffled"),
        "shuffled_sgd",
        "adaptive_shuffled_sgd",
        ShuffledSGD(batch_size=200),
        "residual_budget",
    ],
    ids=str,
)
def test_ordinary_plans_are_not(solver):
    model = skdp.DPLogisticRegression(solver=solver)
    assert not warned(lambda: model.plan(50_000, 20))


DROWNED = [
    (GradientDescent(max_iter=100, batch_size=10, sampling="shuffled"), 0.01),
    (ShuffledSGD(batch_size=10), 0.01),
    (ShuffledSGD(batch_size=1), 0.001),
    (SVRG(max_iter=600, batch_size=5, sampling="shuffled"), 0.005),
    (AdaptiveShuffledSGD(max_iter=100), 0.005),  # half of the rows are counted, not stepped on
]


@pytest.mark.parametrize(("solver", "share"), DROWNED, ids=str)
def test_disjoint_batches_that_noise_drowns_are_warned_about(solver, share):
    """K batches share a budget that one answer on all rows could have: they keep 1 / sqrt(K)."""
    model = skdp.DPRidge(solver=solver, scaling="none")
    (told,) = warned(lambda: model.plan(1000, 10))
    kept = float(re.search(r"is only ([\d.]+)% as effective", told)[1]) / 100
    assert kept == pytest.approx(share**0.5, rel=0.03)
    larger = {"batch_size": 300} if hasattr(solver, "batch_size") else {"max_iter": 3}
    model.set_params(**{f"solver__{name}": value for name, value in larger.items()})
    assert not warned(lambda: model.plan(1000, 10))


def test_it_comes_before_any_budget_is_spent(classification):
    X, y = classification
    budget = skdp.PrivacyBudget(epsilon=1.0, delta=1e-5)
    solver = GradientDescent(max_iter=300, batch_size=1)
    model = skdp.DPLogisticRegression(
        classes=[0, 1], solver=solver, privacy=skdp.Privacy(budget=budget), epsilon=0.5
    )
    many = np.tile(X, (20, 1)), np.tile(y, 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(skdp.NoiseWarning):
            model.fit(*many)
    assert budget.n_fits == 0


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
