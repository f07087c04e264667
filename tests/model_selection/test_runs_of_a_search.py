"""Runs of a search: losers leave nothing, rows are disjoint, the price is kept."""

from __future__ import annotations

import math
import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp
from searches import GRID, RIDGE, seeded
from skdp._oracle import Plan, noise_source
from skdp.accounting import Adjacency, event_mu
from skdp.linear_model.base import DPLinearModel
from skdp.metrics.evaluation import PrivateScorer
from skdp.model_selection import DPSearchCV, candidates


def after_runs(monkeypatch, data, script):
    """State of a search whose runs end as a script says."""
    ends, left, alphas = list(script), [len(script)], [0.1, 1.0, 10.0]

    def run(*arguments, **scoring):
        score, alpha = ends.pop(0)
        if score == -math.inf:
            raise FloatingPointError("a candidate that fails")
        model = RIDGE(alpha)
        model.coef_, model.intercept_ = np.full(5, alpha), 0.0
        return model, {"r2": score}

    def integers(high, size):
        if high == 3:  # the number of a candidate
            return np.full(size, alphas.index(ends[0][1]))
        if high != 10:
            return np.zeros(size, dtype=np.int64)
        left[0] -= 1
        return np.full(size, left[0])

    with monkeypatch.context() as patch:
        patch.setattr(candidates, "fitted_and_scored", run)
        source = noise_source(0)
        patch.setattr(source, "integers", integers)
        patch.setattr(skdp.Privacy, "draws", lambda self: (source, None))
        found = DPSearchCV(RIDGE(), GRID).fit(*data)
    assert not ends
    return pickle.dumps(vars(found))


def test_losers_leave_nothing(monkeypatch, regression):
    won = after_runs(monkeypatch, regression, [(0.9, 1.0)])
    for losers in ([(0.1, 0.1)], [(0.8, 10.0), (-math.inf, 0.1)], [(0.89, 1.0)] * 40):
        assert after_runs(monkeypatch, regression, [(0.9, 1.0), *losers]) == won
        assert after_runs(monkeypatch, regression, [*losers, (0.9, 1.0)]) == won


def check_runs_keep_to_their_price(monkeypatch, data, **beside):
    """All that is asked in runs costs what the search was priced for, on disjoint rows."""
    X, y = data
    X = X.copy()
    X[:, 4] = np.arange(len(y)) / len(y)  # tells rows apart
    costs, seeds, rows = [], [], {"fit": [], "score": []}
    cost, fit, score = Plan.cost, DPLinearModel._fit, PrivateScorer.fit

    def stated(self, *arguments):
        found = cost(self, *arguments)
        costs.append(event_mu(found.event, Adjacency.ZERO_OUT))
        return found

    def fitted(self, given, *start):
        rows["fit"].append(given.X[:, 4])
        seeds.append(self.privacy.noise.seed)
        return fit(self, given, *start)

    def scored(self, X, y, **beside):
        rows["score"].append(X[:, 4])
        return score(self, X, y, **beside)

    with monkeypatch.context() as patch:
        tool = seeded(n_candidates=5, seed=4)
        run_budget, _ = tool._priced(len(y))
        patch.setattr(candidates, "check_price", lambda *arguments: None)  # asks for plans, too
        patch.setattr(Plan, "cost", stated)
        patch.setattr(DPLinearModel, "_fit", fitted)
        patch.setattr(PrivateScorer, "fit", scored)
        tool.fit(X, y, **beside)
    assert len(costs) == len(rows["fit"]) + len(rows["score"]) >= 2
    assert len(set(seeds)) == len(seeds), "runs share their noise"
    assert max(costs) <= run_budget.mu * (1 + 1e-12), "a run costs more than was charged"
    for one in rows["fit"]:
        for other in rows["score"]:
            assert not np.isin(one, other).any(), "parts overlap"
            assert len(one) + len(other) == len(y)


@pytest.mark.parametrize("nested", [False, True])
def test_nothing_printed_or_cached_counts_the_runs(regression, tmp_path, capsys, nested):
    """A cache would keep losers, too, and give a scaler's noise to the next run once more."""
    model = Pipeline(
        [("same", FunctionTransformer()), ("scale", skdp.DPStandardScaler()), ("fit", RIDGE())],
        verbose=True,
        memory=str(tmp_path),
    )
    grid = {"fit__alpha": [0.1, 1.0], "fit__verbose": [1]}
    if nested:
        model = Pipeline([("inner", model)], verbose=True)
        grid = {f"inner__{name}": values for name, values in grid.items()}
    found = seeded(model, grid, n_candidates=5).fit(*regression)
    assert capsys.readouterr() == ("", "")  # a bar of tqdm is in the second
    assert list(tmp_path.rglob("*")) == []
    assert model.verbose is True, "the estimator that was given stays as it is"
    assert found.best_estimator_.verbose is False


def warned(X):
    warnings.warn("a candidate was drawn", UserWarning, stacklevel=1)
    return X


def test_no_warning_shows_a_candidate(regression):
    model = Pipeline([("warns", FunctionTransformer(warned)), ("fit", RIDGE())])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        seeded(model, {"fit__alpha": [0.1, 1.0]}, n_candidates=5).fit(*regression)
    assert not [one for one in found if "was drawn" in str(one.message)]


def test_a_search_of_groups_states_groups(regression):
    found = seeded().fit(*regression, groups=np.arange(400) // 2)
    assert found.privacy_ == found.plan(None, n_groups=200)
    assert found.privacy_ != found.plan(200)


def test_a_candidate_that_costs_more_than_a_run_may_is_refused():
    """What the search sets should never cost more; that is looked at all the same."""
    run_budget, _ = candidates.priced_search(7, 1.0, 1e-6, skdp.Privacy(), 400)
    data = SimpleNamespace(grouped=False, weighted=False, has_offset=False)
    for factor, refused in ((1.0, False), (1.001, True)):
        model = RIDGE(
            epsilon=factor * run_budget.epsilon(),
            delta=1e-6,
        )
        if refused:
            with pytest.raises(ValueError, match="costs more than a run may"):
                candidates.check_price(model, run_budget, (320, 5, 1), False, data)
        else:
            candidates.check_price(model, run_budget, (320, 5, 1), False, data)


def test_ties_are_settled_by_coins(regression, monkeypatch):
    """Among equal scores every run has the same chance: the theorem takes a total order."""
    coins, runs = [], DPSearchCV._runs

    def noted(self, *arguments):
        found = [(0.5, coin, number, model) for _, coin, number, model in runs(self, *arguments)]
        coins.extend(coin for _, coin, _, _ in found)
        noted.best = max(found, key=lambda run: run[1])[3]
        return found

    monkeypatch.setattr(DPSearchCV, "_runs", noted)
    for seed in range(4):
        search = seeded(n_candidates=4, seed=seed).fit(*regression)
        assert search.best_estimator_ is noted.best
    assert len(set(coins)) == len(coins) > 4


def test_runs_keep_to_their_price(regression, monkeypatch):
    check_runs_keep_to_their_price(monkeypatch, regression)
    check_runs_keep_to_their_price(monkeypatch, regression, sample_weight=np.arange(400.0))
