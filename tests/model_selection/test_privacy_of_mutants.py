"""What the price of a search must count, and mutants that do not: each must be caught."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
)

import skdp
from composition import DELTA, together
from skdp.model_selection import fitted_search

RIDGE = partial(skdp.DPRidge, scaling="none", solver="gd")


def check_grid_search(data):
    search = GridSearchCV(RIDGE(epsilon=0.7, max_iter=5), {"alpha": [0.1, 1.0, 10.0]}, cv=4)
    price = skdp.privacy_of(search.fit(*data))
    assert price.epsilon == pytest.approx(together(*(3 * 3 + 1) * [0.7]), rel=1e-6)
    assert (price.delta, price.adjacency, price.accountant) == (DELTA, "zero_out", "gdp")
    assert sum(record.count for record in price.releases) == 5 * (3 * 3 + 1)
    return price


def test_grid_search(regression):
    price = check_grid_search(regression)
    text = " ".join(price.assumptions)
    assert "scores are NOT private" in text
    assert "computed from rows without noise" in text
    assert "best_params_" in text
    assert "3 candidates are trained on 4 splits each; a record takes part in at most 3" in text
    assert "refit on all rows" in text
    assert "n = 400" in text
    assert "n = 300" in text


def check_refit_is_the_most_expensive(data):
    """Whoever wins, the price is the same: it must not tell who did."""
    prices = set()
    for wanted in (0, 1):
        search = GridSearchCV(
            RIDGE(max_iter=5),
            {"epsilon": [0.1, 1.0]},
            cv=2,
            refit=lambda results, wanted=wanted: wanted,
        ).fit(*data)
        assert search.best_params_ == {"epsilon": [0.1, 1.0][wanted]}
        prices.add(skdp.privacy_of(search).epsilon)
    (price,) = prices
    assert price == pytest.approx(together(0.1, 1.0, 1.0), rel=1e-6)


def test_the_refit_is_priced_as_the_most_expensive(regression):
    check_refit_is_the_most_expensive(regression)


def all_splits(patch):
    patch.setattr(fitted_search, "memberships_of", lambda cv, n: [Counter({300: 4})])


def one_split(patch):
    patch.setattr(fitted_search, "memberships_of", lambda cv, n: [Counter({300: 1})])


class EmptyRound(fitted_search.Round):
    def plans(self, n_train, shape):
        return []


def refit_forgotten(patch):
    rounds_of = fitted_search.rounds_of

    def forgetful(search, shape):
        rounds = rounds_of(search, shape)
        return [*rounds[:-1], EmptyRound(())]

    patch.setattr(fitted_search, "rounds_of", forgetful)


def one_candidate(patch):
    plans = fitted_search.Round.plans
    patch.setattr(fitted_search.Round, "plans", lambda *of_round: plans(*of_round)[:1])


def refit_of_the_first(patch):
    patch.setattr(
        fitted_search.Round,
        "plans",
        lambda self, n, shape: [
            (candidate.model.plan(n, candidate.n_features),) for candidate in self.candidates
        ][: self.n_chosen],
    )


@pytest.mark.parametrize(
    ("mutant", "check"),
    [
        (all_splits, check_grid_search),
        (one_split, check_grid_search),
        (refit_forgotten, check_grid_search),
        (one_candidate, check_grid_search),
        (refit_of_the_first, check_refit_is_the_most_expensive),
    ],
)
def test_mutants_are_caught(mutant, check, regression, monkeypatch):
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        check(regression)


@pytest.mark.parametrize(("batch_size", "max_iter"), [(5, 20), (1, 5)])
def test_the_refit_that_makes_the_total_most_expensive_is_counted(batch_size, max_iter):
    """The candidate that is most expensive alone need not be so beside the others."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(300)
    ridge = skdp.DPRidge(delta=1e-5, scaling=skdp.RowNorm(3), target_bound=3, max_iter=max_iter)
    grid = [
        {"batch_size": [None], "epsilon": [0.99]},
        {"batch_size": [batch_size], "epsilon": [1.0]},
    ]
    search = GridSearchCV(ridge, grid, cv=KFold(2)).fit(X, y)
    told = skdp.privacy_of(search).epsilon
    trained = [
        clone(ridge).set_params(**params).plan(150, 2) for params in search.cv_results_["params"]
    ]
    for params in search.cv_results_["params"]:
        refit = clone(ridge).set_params(**params).plan(300, 2)
        assert skdp.total_privacy(*trained, refit, delta=1e-5).epsilon <= told * (1 + 1e-9)
