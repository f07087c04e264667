"""The price of a search before its fit, of one with failed candidates, and of mixed promises."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RandomizedSearchCV,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline

import skdp
from composition import DELTA, together
from skdp.model_selection import fitted_search

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning"),
]
RIDGE = partial(skdp.DPRidge, scaling="none", solver="gd", max_iter=5)
LOGISTIC = partial(skdp.DPLogisticRegression, classes=[0, 1], max_iter=5)
GRID = {"alpha": [0.1, 1.0], "epsilon": [0.1, 0.4]}
SHAPE = {"n_samples": 400, "n_features": 5}
PIPELINE = make_pipeline(skdp.DPStandardScaler(epsilon=0.7), RIDGE())
LOGISTICS = (LOGISTIC(), {"C": [0.1, 1.0, 10.0]})
OF_STEPS = {"resource": "max_iter", "max_resources": 20, "random_state": 0}
MOMENTUM = {"momentum": [0.5, 7.0, 8.0]}  # of which two are out of range


# ---------------------------------------------------------------- before and after


@pytest.mark.parametrize(
    "search",
    [
        GridSearchCV(RIDGE(), GRID),
        GridSearchCV(RIDGE(), GRID, cv=KFold(3, shuffle=True)),
        GridSearchCV(RIDGE(), GRID, cv=RepeatedKFold(n_splits=3, n_repeats=2)),
        GridSearchCV(RIDGE(), GRID, cv=ShuffleSplit(3)),
        GridSearchCV(RIDGE(), GRID, cv=TimeSeriesSplit(3)),
        GridSearchCV(RIDGE(), {"alpha": [1.0]}, cv=PredefinedSplit(np.arange(400) % 7)),
        GridSearchCV(RIDGE(), GRID, cv=list(KFold(4).split(np.zeros(400)))),
        GridSearchCV(RIDGE(), [{"alpha": [0.1]}, {"max_iter": [1, 9]}], cv=2, refit=False),
        GridSearchCV(RIDGE(), GRID, cv=2, scoring=["r2", "neg_mean_squared_error"], refit="r2"),
        GridSearchCV(PIPELINE, {"dpridge__alpha": [0.1, 1.0]}, cv=4),
        GridSearchCV(*LOGISTICS, cv=4),
        RandomizedSearchCV(RIDGE(), GRID, n_iter=3, cv=4, random_state=3),
        HalvingGridSearchCV(RIDGE(), GRID, random_state=0),
        HalvingGridSearchCV(RIDGE(), GRID, cv=3, min_resources=30, aggressive_elimination=True),
        HalvingGridSearchCV(RIDGE(), GRID, cv=3, min_resources="smallest", factor=2),
        HalvingGridSearchCV(RIDGE(), GRID, cv=2, refit=False, **OF_STEPS),
        HalvingGridSearchCV(*LOGISTICS, cv=3, min_resources="smallest", factor=2),
        HalvingRandomSearchCV(RIDGE(), GRID, cv=3, random_state=1),
        HalvingRandomSearchCV(RIDGE(), GRID, cv=3, min_resources=30, random_state=1),
    ],
)
def test_before_the_fit_the_price_is_that_of_the_fitted_search(search, regression, classification):
    of_ridge = search.estimator.__sklearn_tags__().estimator_type == "regressor"
    data = regression if of_ridge else classification
    parameters = {name: str(value) for name, value in search.get_params().items()}
    before = skdp.privacy_of(search, **SHAPE)
    assert {name: str(value) for name, value in search.get_params().items()} == parameters
    assert not hasattr(search, "cv_results_")
    shape = {} if search.refit else {**SHAPE, "n_outputs": 1}
    after = skdp.privacy_of(search.fit(*data), **shape)
    assert before.releases == after.releases
    assert before.epsilon == after.epsilon
    added = set(before.assumptions) - set(after.assumptions)
    assert [text for text in added if "not been fitted" in text] == list(added)


@pytest.mark.parametrize("cv", [GroupKFold(4, shuffle=True), GroupShuffleSplit(3)], ids=str)
def test_groups_are_priced_before_the_fit(cv):
    search = GridSearchCV(RIDGE(), {"alpha": [0.1, 1.0]}, cv=cv)
    price = skdp.privacy_of(search, n_groups=60, n_features=5)
    assert price.unit == "group"
    assert price.epsilon == pytest.approx(together(*2 * 3 * [1.0], 1.0), rel=1e-6)


def test_leaving_each_row_out_takes_no_longer(monkeypatch):
    """The rehearsal of a grid has no split for each row: one for each candidate is enough."""
    fits = []
    monkeypatch.setattr(fitted_search._Untrained, "fit", lambda self, X, y: fits.append(1) or self)
    price = skdp.privacy_of(GridSearchCV(RIDGE(), GRID, cv=LeaveOneOut()), **SHAPE)
    assert sum(record.count for record in price.releases) == 5 * (4 * 399 + 1)
    assert len(fits) <= 5


def test_a_budget_holds_what_was_priced(regression):
    """All trainings are counted by a budget, and by splits that are the same rows each time."""
    rows = np.arange(400)
    search = GridSearchCV(RIDGE(), GRID, cv=[(rows, rows)] * 2)
    price = skdp.privacy_of(search, **SHAPE)
    with skdp.PrivacyBudget(99.0, DELTA) as budget:
        search.fit(*regression)
    assert budget.n_fits == 4 * 2 + 1
    # Scores may choose the cheaper candidate for the refit; the price is of the other.
    assert price.epsilon == pytest.approx(together(*4 * [0.1], *4 * [0.4], 0.4), rel=1e-6)
    assert budget.spent <= price.epsilon * (1 + 1e-9)


# ---------------------------------------------------------------- what is not known


class Own(GridSearchCV):
    """Whatever it does in its fit is not known."""


@pytest.mark.parametrize(
    ("search", "known", "message"),
    [
        (GridSearchCV(RIDGE(), GRID), {}, "n_samples is not known.*Pass n_samples="),
        (GridSearchCV(RIDGE(), GRID), {"n_samples": 9}, "n_features is not known"),
        (GridSearchCV(RIDGE(), GRID), {"n_samples": 0}, "n_samples must be at least 1.*got 0"),
        (GridSearchCV(RIDGE(), GRID), {"n_samples": "9"}, "n_samples must be at least 1.*got '9'"),
        (
            GridSearchCV(skdp.DPLogisticRegression(), {"C": [1.0]}, cv=KFold(2)),
            SHAPE,
            "n_outputs is not known",
        ),
        (
            HalvingGridSearchCV(skdp.DPLogisticRegression(), {"C": [1.0]}),
            SHAPE,
            "n_outputs is not known",
        ),
        (RandomizedSearchCV(RIDGE(), GRID), SHAPE, "Set its random_state to an integer"),
        (
            HalvingRandomSearchCV(RIDGE(), GRID, random_state=np.random.RandomState(0)),
            SHAPE,
            "Set its random_state to an integer",
        ),
        (Own(RIDGE(), GRID), SHAPE, "which fits a Own makes is not known.*PrivacyBudget"),
        (GridSearchCV(RIDGE(), GRID, cv=GroupKFold(3)), SHAPE, "GroupKFold.*Pass splits="),
        (
            GridSearchCV(RIDGE(), GRID, cv=iter([([0], [1])])),
            SHAPE,
            "iterator.*pass splits=",
        ),
        (
            GridSearchCV(LogisticRegression(), {"C": [1.0]}),
            SHAPE,
            "LogisticRegression is not an estimator of skdp",
        ),
    ],
)
def test_what_has_no_price_before_the_fit(search, known, message):
    with pytest.raises(ValueError, match=message):
        skdp.privacy_of(search, **known)


# ---------------------------------------------------------------- failed candidates


def fails_after_its_charge(monkeypatch, alpha):
    """Let fits with this penalty fail when the budget has been charged."""
    keep = skdp.DPRidge._keep

    def broken(self, solution, fit):
        if self.alpha == alpha:
            raise ValueError("after the charge")
        keep(self, solution, fit)

    monkeypatch.setattr(skdp.DPRidge, "_keep", broken)


@pytest.mark.parametrize("error_score", [np.nan, 0.0])
def test_candidates_that_were_refused_cost_nothing(regression, error_score):
    search = GridSearchCV(RIDGE(), MOMENTUM, cv=4, error_score=error_score)
    before = skdp.privacy_of(search, **SHAPE)
    with skdp.PrivacyBudget(99.0, DELTA) as budget:
        search.fit(*regression)
    assert budget.n_fits == 5
    price = skdp.privacy_of(search)
    assert price.epsilon == before.epsilon == pytest.approx(together(*4 * [1.0]), rel=1e-6)
    (said,) = [text for text in price.assumptions if "candidates fail" in text]
    assert said.startswith("2 of 3 candidates fail in every training")
    assert "momentum" in said
    assert said in before.assumptions


def test_a_fit_that_fails_after_its_charge_is_counted(regression, monkeypatch):
    search = GridSearchCV(RIDGE(), {"alpha": [0.1, 1.0, 7.0]}, cv=4)
    expected = skdp.privacy_of(search, **SHAPE)
    fails_after_its_charge(monkeypatch, 7.0)
    search.fit(*regression)
    assert np.isnan(search.cv_results_["mean_test_score"]).sum() == 1
    price = skdp.privacy_of(search)
    assert price.releases == expected.releases
    # Rows may be what made it fail, so that it must not be known how many did.
    assert not any("candidates fail" in text for text in price.assumptions)


def test_what_was_charged_before_the_refused_estimator_is_counted(regression):
    grid = {f"dpridge__{name}": values for name, values in MOMENTUM.items()}
    search = GridSearchCV(PIPELINE, grid, cv=4)
    with skdp.PrivacyBudget(99.0, DELTA) as budget:
        search.fit(*regression)
    assert budget.n_fits == 3 * 4 + 4 + 2  # scalers, estimators, both of the refit
    expected = together(*(3 * 3 + 1) * [0.7], *(3 + 1) * [1.0])
    assert skdp.privacy_of(search).epsilon == pytest.approx(expected, rel=1e-6)


@pytest.mark.filterwarnings("ignore:Scoring failed")
def test_a_plan_that_is_refused_is_no_proof_where_a_fit_ended(regression):
    """Attack: wrong numbers make plans of fits that were charged look refused."""

    def no_score(model, X, y):
        raise ValueError("no score")

    scalings = ["auto", skdp.PublicRange(by_column=[(-9.0, 9.0)] * 5)]
    search = GridSearchCV(
        skdp.DPRidge(), {"scaling": scalings}, cv=2, refit=False, scoring=no_score
    ).fit(*regression)
    with pytest.raises(ValueError, match="5 ends were given for 4 columns"):
        skdp.privacy_of(search, n_samples=400, n_features=4, n_outputs=1)


def test_a_plan_for_other_rows_may_be_the_one_that_was_charged(regression, monkeypatch):
    """For rows with weights, or sparse ones, "auto" may be a solver that is not refused."""
    plan = skdp.DPRidge.plan

    def refuses_rows_without_weights(self, *shape, weighted=False, **kind):
        if not weighted and self.alpha == 7.0:
            raise ValueError("needs weights")
        return plan(self, *shape, weighted=weighted, **kind)

    fails_after_its_charge(monkeypatch, 7.0)
    search = GridSearchCV(RIDGE(), {"alpha": [1.0, 7.0]}, cv=4).fit(*regression)
    monkeypatch.setattr(skdp.DPRidge, "plan", refuses_rows_without_weights)
    with pytest.raises(ValueError, match="needs weights"):
        skdp.privacy_of(search)


def test_a_halving_search_goes_on_without_refused_candidates(regression):
    grid = {"alpha": [0.1, 1.0], **MOMENTUM}
    search = HalvingGridSearchCV(RIDGE(), grid, cv=2, min_resources=40, random_state=0)
    before = skdp.privacy_of(search, **SHAPE)
    after = skdp.privacy_of(search.fit(*regression))
    assert before.releases == after.releases
    with skdp.PrivacyBudget(99.0, DELTA) as budget:
        HalvingGridSearchCV(RIDGE(), grid, cv=2, min_resources=40).fit(*regression)
    assert before.epsilon < budget.spent  # which counts both of two folds


def test_no_candidate_is_left():
    search = GridSearchCV(RIDGE(), {"momentum": [7.0, 8.0]})
    with pytest.raises(ValueError, match=r"every candidate is refused.*momentum"):
        skdp.privacy_of(search, **SHAPE)


# ---------------------------------------------------------------- different promises


TERMS = [None, skdp.Privacy(adjacency="replace_one")]


def test_a_search_that_mixes_adjacencies_is_refused_before_its_fit(regression):
    search = GridSearchCV(RIDGE(), {"privacy": TERMS}, cv=2)
    both = r"privacy_of.*different adjacencies \(\['replace_one', 'zero_out'\]\)"
    with pytest.raises(ValueError, match=both):
        skdp.privacy_of(search, delta=1e-6, **SHAPE)
    with pytest.raises(ValueError, match=both):
        skdp.privacy_of(search.fit(*regression))


def test_a_step_with_another_adjacency_is_named():
    pipeline = make_pipeline(skdp.DPStandardScaler(privacy=TERMS[1]), RIDGE())
    search = GridSearchCV(pipeline, {"dpridge__alpha": [1.0]})
    with pytest.raises(ValueError, match=r"adjacencies \(\['replace_one', 'zero_out'\]\)"):
        skdp.privacy_of(search, **SHAPE)
