"""Private searches: what they find, one price for all runs, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skdp
from searches import GRID, RIDGE, seeded
from skdp._oracle import noise_source
from skdp.accounting import Adjacency, Gaussian, Selected, price
from skdp.metrics.scores import Score
from skdp.model_selection import DPSearchCV, candidates


def test_it_finds_what_is_plainly_better(regression, classification):
    X, y = regression[0], regression[1] + 2.0  # which needs an intercept
    grid = {"alpha": [0.1, 1e7], "fit_intercept": [True, False]}
    found = seeded(grid=grid, epsilon=50.0, n_candidates=20).fit(X, y)
    assert found.best_params_ == {"alpha": 0.1, "fit_intercept": True}
    assert found.score(X, y) > 0.9
    assert found.predict(X).shape == y.shape
    assert is_regressor(found)
    assert found.n_features_in_ == 5
    X, y = classification
    model = skdp.DPLogisticRegression(classes=[0, 1], max_iter=3)
    found = seeded(model, {"C": [1e-9, 1.0]}, epsilon=50.0, scoring="neg_log_loss").fit(X, y)
    assert found.best_params_ == {"C": 1.0}
    assert is_classifier(found)
    assert list(found.classes_) == [0, 1]
    assert found.predict_proba(X).shape == found.predict_log_proba(X).shape == (400, 2)
    assert found.decision_function(X).shape == (400,)
    assert found.best_estimator_.classes == [0, 1]


def test_columns_estimators_and_pipelines_as_candidates(regression):
    X, y = regression
    columns = [
        ColumnTransformer([("kept", "passthrough", kept)]) for kept in ([0, 1, 2], [3, 4], [3])
    ]
    model = make_pipeline(columns[0], FunctionTransformer(np.tanh), RIDGE())
    grid = {
        "columntransformer": columns,
        "dpridge": [RIDGE(), skdp.DPLinearRegression(scaling=skdp.PublicRange(target=5.0))],
    }
    found = seeded(model, grid, epsilon=50.0, n_candidates=15, target_range=(-3, 3)).fit(X, y)
    assert found.best_params_["columntransformer"].transformers[0][2] == [0, 1, 2]
    scaled = make_pipeline(skdp.DPStandardScaler(), RIDGE(fit_intercept=False))
    found = seeded(scaled, {"dpridge__alpha": [0.1, 1.0]}, epsilon=20.0).fit(X, y)
    total = skdp.total_privacy(found, delta=1e-6).epsilon
    assert total == pytest.approx(20.0, rel=1e-4)
    assert skdp.total_privacy(found.best_estimator_, delta=1e-6).epsilon == pytest.approx(total)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_a_search_is_charged_once(regression, adjacency):
    with skdp.PrivacyBudget(2.0, 1e-6, str(adjacency)) as budget:
        found = DPSearchCV(
            RIDGE(), GRID, epsilon=1.0, privacy=skdp.Privacy(adjacency=str(adjacency))
        ).fit(*regression)
        assert budget.n_fits == 1
        assert budget.spent == pytest.approx(1.0, rel=1e-4)
        assert budget.spent <= 1.0
        assert found.privacy_ == found.plan(400)
        assert "1 x best of several fits, noise" in str(found.privacy_)
        with pytest.raises(skdp.PrivacyBudgetError, match="nothing was released"):
            DPSearchCV(
                RIDGE(), GRID, epsilon=1.5, privacy=skdp.Privacy(adjacency=str(adjacency))
            ).fit(*regression)
    run_budget, cost = candidates.priced_search(
        7, 1.0, 1e-6, skdp.Privacy(adjacency=str(adjacency)), 400
    )
    statement = cost.statement()
    search = Selected(Gaussian(1 / run_budget.mu), 7)
    assert price(search, 1e-6, Adjacency.ZERO_OUT)[0] == pytest.approx(1.0, rel=1e-4)
    assert statement.epsilon_at(1e-6) == pytest.approx(statement.epsilon)


def test_a_search_on_a_part_and_scores_on_the_other(regression):
    split = skdp.model_selection.dp_train_test_split(*regression)
    X_train, X_test, y_train, y_test = split
    with skdp.PrivacyBudget(1.0, 1e-6) as budget:
        found = DPSearchCV(RIDGE(), GRID, epsilon=1.0).fit(X_train, y_train)
        skdp.metrics.evaluate(found, X_test, y_test, epsilon=0.99, target_range=(-5, 5))
        assert budget.spent <= 1.0
    again = skdp.total_privacy(found, RIDGE().fit(X_train, y_train), delta=1e-6)
    assert 1.5 < again.epsilon < 2.1


NOTED = []


def noted(X):
    NOTED.append(len(X))
    return X


def test_every_candidate_is_tried_on_the_rows_before_the_charge(regression):
    """Not the one alone that comes first, nor again those that differ in what follows."""
    X, y = regression

    def fails(X):
        return np.where(X[0, 0] == X, np.nan, X)

    steps = [FunctionTransformer(step) for step in (None, fails)]
    model = make_pipeline(FunctionTransformer(), RIDGE())
    with skdp.PrivacyBudget(1.0, 1e-6, allow_seeded_noise=True) as budget:
        with pytest.raises(ValueError, match=r"DPRidge: X .* Nothing was released"):
            seeded(model, {"functiontransformer": steps}).fit(X, y)
        assert budget.spent == 0
    model = make_pipeline(FunctionTransformer(noted), RIDGE())
    seeded(model, {"dpridge__alpha": [0.1, 1.0, 10.0]}, n_candidates=2).fit(X, y)
    assert NOTED.count(len(X)) == 1


# ---------------------------------------------------------------- refusals


REFUSED = {
    "Pipeline that ends in one, got Ridge": {"estimator": Ridge()},
    "got GridSearchCV": {"estimator": GridSearchCV(skdp.DPRidge(), GRID)},
    "through them one row may change all others: StandardScaler": {
        "estimator": make_pipeline(StandardScaler(), RIDGE()),
        "grid": {"dpridge__alpha": [1.0]},
    },
    "a function of the rows chooses columns": {
        "estimator": make_pipeline(
            ColumnTransformer([("own", "passthrough", lambda X: [0])]), RIDGE()
        ),
        "grid": {"dpridge__alpha": [1.0]},
    },
    "the candidates set epsilon": {"grid": {"epsilon": [0.1, 1.0]}},
    "a budget belongs to the tool": {
        "estimator": RIDGE(privacy=skdp.Privacy(budget=skdp.PrivacyBudget(1.0, 1e-6)))
    },
    "so its choice has no price": {"grid": {"solver": [("gd", {"batch_size": 50})]}},
    "n_candidates must be": {"n_candidates": 1},
    "scoring must be None or one of": {"scoring": "mean_squared_error"},
    "is for targets of at least 0": {"scoring": "neg_mean_poisson_deviance"},
    "one score for all of them": {
        "estimator": skdp.DPQuantileRegressor(quantiles=[0.1, 0.9]),
        "scoring": "r2",
        "target_range": (-3, 3),
    },
    "delta must be positive": {"delta": 0.0},
    "holdout must be": {"holdout": 1.5},
    "epsilon must be": {"epsilon": -1.0},
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused_before_the_charge(regression, message):
    import re

    with skdp.PrivacyBudget(5.0, 1e-6, allow_seeded_noise=True) as budget:
        with pytest.raises(ValueError, match=re.escape(message)):
            seeded(**REFUSED[message]).fit(*regression)
        assert budget.spent == 0


def test_a_run_that_fails_is_the_worst(regression, monkeypatch):
    fit = RIDGE.func.fit

    def failing(self, X, y, sample_weight=None, groups=None):
        if self.alpha != 1.0:
            raise FloatingPointError("the solver diverged")
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(skdp.DPRidge, "fit", failing)
    assert seeded(n_candidates=30).fit(*regression).best_params_ == {"alpha": 1.0}
    with pytest.raises(RuntimeError, match="budget of this search is spent"):
        seeded(grid={"alpha": [2.0]}).fit(*regression)


def test_a_run_whose_score_noise_hides_comes_before_one_that_fails(regression, monkeypatch):
    def run(model, *arguments, **scoring):
        if model.alpha != 1.0:
            raise FloatingPointError("the solver diverged")
        return model.fit(*regression), {"r2": Score("r2", 1.0, -1.0, (1.0, 0.0, 1.0), 0.0, (0, 1))}

    monkeypatch.setattr(candidates, "fitted_and_scored", run)
    monkeypatch.setattr(candidates, "state_whole", lambda *arguments: None)
    for seed in range(5):
        search = seeded(seed=seed, n_candidates=30).fit(*regression)
        assert search.best_params_ == {"alpha": 1.0}


# ---------------------------------------------------------------- the number of runs


def test_the_number_of_runs_is_geometric(regression, monkeypatch):
    numbers = []

    def run(*arguments, **scoring):
        numbers[-1] += 1
        return RIDGE(), {}

    monkeypatch.setattr(candidates, "fitted_and_scored", run)
    monkeypatch.setattr(candidates, "check_price", lambda *arguments: None)
    tool = DPSearchCV(RIDGE(), GRID, n_candidates=4)
    run_budget, _ = tool._priced(400)
    for _ in range(4000):
        numbers.append(0)
        list(tool._runs(lambda: [{}, {}], [RIDGE()], run_budget, {}, SYSTEM))
    counts = np.bincount(np.minimum(numbers, 15), minlength=16)[1:]
    law = stats.geom(0.25).pmf(np.arange(1, 16))
    law[-1] = 1 - law[:-1].sum()
    assert stats.chisquare(counts, 4000 * law).pvalue > 1e-8


SYSTEM = noise_source(None)


def test_terms_of_a_search_are_those_of_its_fits(regression):
    terms = {"rows_per_group": 4.0, "max_weight": 2.0}
    found = DPSearchCV(RIDGE(), {}, privacy=skdp.Privacy(**terms)).fit(*regression)
    assert terms.items() <= vars(found.best_estimator_.privacy).items()


def test_names_of_columns_are_those_of_the_best_estimator(regression):
    pandas = pytest.importorskip("pandas")
    X, y = regression
    names = [f"column {number}" for number in range(X.shape[1])]
    found = seeded().fit(pandas.DataFrame(X, columns=names), y)
    assert found.feature_names_in_.tolist() == names
    assert not hasattr(seeded().fit(X, y), "feature_names_in_")


def test_sparse_rows_do_not_decide_what_type_a_step_returns(regression):
    from scipy import sparse

    X, y = sparse.csr_array(regression[0]), regression[1]
    budget = skdp.PrivacyBudget(9.0, 1e-6)
    grid = {"dpridge__alpha": [0.1, 1.0]}
    kept = ColumnTransformer([("kept", "passthrough", [0, 1])])
    search = DPSearchCV(make_pipeline(kept, RIDGE()), grid, privacy=skdp.Privacy(budget=budget))
    with pytest.raises(ValueError, match=r"by the number of zeros. Set sparse_threshold=0"):
        search.fit(X, y)
    assert budget.n_fits == 0
    dense = clone(kept).set_params(sparse_threshold=0)
    seeded(make_pipeline(dense, RIDGE()), grid, epsilon=20.0).fit(X, y)
