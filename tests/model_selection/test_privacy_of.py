"""The price of a plain search, against the arithmetic by hand."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RandomizedSearchCV,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

import skdp
from skdp.accounting import gaussian_epsilon, gaussian_mu
from skdp.model_selection import search_price, searched
from skdp.model_selection.trainings import fates_of
from skdp.solvers import GradientDescent

RIDGE = partial(skdp.DPRidge, scaling="none")
LOGISTIC = skdp.DPLogisticRegression
DELTA = 1e-6


def by_hand(n_candidates, n_trainings, *, train=1.0, refit=1.0):
    """mu^2 = candidates * trainings * mu_train^2 + mu_refit^2."""
    squared = n_candidates * n_trainings * gaussian_mu(train, DELTA) ** 2
    if refit is not None:
        squared += gaussian_mu(refit, DELTA) ** 2
    return pytest.approx(gaussian_epsilon(math.sqrt(squared), DELTA), rel=1e-6)


def said(statement):
    return " ".join(statement.assumptions)


# ---------------------------------------------------------------- searches


def check_grid_search(data):
    search = GridSearchCV(RIDGE(epsilon=0.7, max_iter=5), {"alpha": [0.1, 1.0, 10.0]}, cv=4)
    price = skdp.privacy_of(search.fit(*data))
    assert price.epsilon == by_hand(3, 3, train=0.7, refit=0.7)
    assert (price.delta, price.adjacency, price.accountant) == (DELTA, "zero_out", "gdp")
    assert sum(record.count for record in price.releases) == 5 * (3 * 3 + 1)
    return price


def test_grid_search(regression):
    price = check_grid_search(regression)
    text = said(price)
    assert "scores are NOT private" in text
    assert "computed from rows without noise" in text
    assert "best_params_" in text
    assert "3 candidates were trained on 4 splits each; a record takes part in at most 3" in text
    assert "refit on all rows" in text
    assert "n = 400" in text
    assert "n = 300" in text


def test_no_refit(regression):
    search = GridSearchCV(RIDGE(max_iter=5), {"alpha": [0.1, 1.0]}, cv=4, refit=False)
    search.fit(*regression)
    for known, missing in [
        ({}, "n_features"),
        ({"n_features": 5}, "n_samples"),
        ({"n_features": 5, "n_samples": 400}, "n_outputs"),
    ]:
        with pytest.raises(ValueError, match=f"{missing} is not known.*Pass {missing}="):
            skdp.privacy_of(search, **known)
    price = skdp.privacy_of(search, n_samples=400, n_features=5, n_outputs=1)
    assert price.epsilon == by_hand(2, 3, refit=None)
    assert "There was no refit" in said(price)


@pytest.mark.parametrize(
    "wrong", [{"n_samples": 399}, {"n_features": 4}, {"n_outputs": 2}], ids=str
)
def test_what_is_passed_must_agree_with_the_refit(regression, wrong):
    search = GridSearchCV(RIDGE(max_iter=5), {"alpha": [0.1]}, cv=2).fit(*regression)
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}=.*the refitted model says"):
        skdp.privacy_of(search, **wrong)


def test_random_search_and_another_delta(regression):
    search = RandomizedSearchCV(
        RIDGE(max_iter=5, delta=1e-7),
        {"alpha": [0.1, 1.0, 10.0]},
        n_iter=2,
        cv=KFold(3, shuffle=True),
    ).fit(*regression)
    mu = gaussian_mu(1.0, 1e-7) * math.sqrt(2 * 2 + 1)
    for delta in (None, 1e-7, 1e-5):
        price = skdp.privacy_of(search, delta=delta)
        assert price.delta == (delta or 1e-7)
        assert price.epsilon == pytest.approx(gaussian_epsilon(mu, price.delta), rel=1e-6)


def test_different_deltas_ask_for_one(regression):
    search = GridSearchCV(RIDGE(max_iter=5), {"delta": [1e-6, 1e-7]}, cv=2).fit(*regression)
    with pytest.raises(ValueError, match=r"different deltas.*pass the delta of the total"):
        skdp.privacy_of(search)
    assert skdp.privacy_of(search, delta=1e-6).epsilon < math.inf


def test_plans_follow_each_training_set(regression):
    """Plans that depend on the number of rows, folds of two sizes: the dearest record counts."""
    batches = GradientDescent(batch_size=30, sampling="poisson", max_iter=4)
    search = GridSearchCV(RIDGE(solver=batches), {"alpha": [0.1, 1.0]}, cv=KFold(3))
    search.fit(*regression)

    def plans(n):
        return [RIDGE(solver=batches).plan(n, 5)] * 2

    fates = [plans(266) + plans(267), plans(267) * 2]
    by_hand_too = max(
        skdp.total_privacy(*fate, RIDGE(solver=batches).plan(400, 5), delta=DELTA).epsilon
        for fate in fates
    )
    assert skdp.privacy_of(search).epsilon == pytest.approx(by_hand_too, rel=1e-9)


def check_refit_is_the_dearest(data):
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
    squared = gaussian_mu(0.1, DELTA) ** 2 + 2 * gaussian_mu(1.0, DELTA) ** 2
    assert price == pytest.approx(gaussian_epsilon(math.sqrt(squared), DELTA), rel=1e-6)


def test_the_refit_is_priced_as_the_dearest(regression):
    check_refit_is_the_dearest(regression)


def test_it_agrees_with_a_budget(regression):
    """A budget is charged for all K trainings, since it does not know the folds."""
    with skdp.PrivacyBudget(99.0, DELTA) as budget:
        search = GridSearchCV(RIDGE(max_iter=5), {"alpha": [0.1, 1.0]}, cv=4).fit(*regression)
        price = skdp.privacy_of(search)  # costs nothing
    assert budget.n_fits == 9
    assert budget.spent == by_hand(2, 4)
    assert price.epsilon == by_hand(2, 3)


def test_no_noise_has_no_price(regression):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", skdp.PrivacyWarning)
        search = GridSearchCV(RIDGE(max_iter=5), {"epsilon": [1.0, math.inf]}, cv=2).fit(
            *regression
        )
    assert skdp.privacy_of(search).epsilon == math.inf


def test_blocks_are_priced_for_each_training(regression):
    solver = GradientDescent(batch_size=100, sampling="shuffled", max_iter=2)
    search = GridSearchCV(RIDGE(solver=solver), {"alpha": [0.1, 1.0]}, cv=2).fit(*regression)
    assert skdp.privacy_of(search).epsilon == by_hand(2, 1)


# ---------------------------------------------------------------- halving


@pytest.mark.parametrize("resource", ["n_samples", "max_iter"])
def test_halving(regression, resource):
    limits = {} if resource == "n_samples" else {"min_resources": 2, "max_resources": 6}
    search = HalvingGridSearchCV(
        RIDGE(max_iter=5), {"alpha": [0.1, 1.0, 10.0]}, resource=resource, cv=2, **limits
    ).fit(*regression)
    price = skdp.privacy_of(search)
    assert price.epsilon == by_hand(sum(search.n_candidates_), 1)
    assert "successive" not in said(price)
    assert "Later rounds are counted as of all candidates" in said(price)


def test_halving_does_not_tell_who_went_on(regression):
    """The plans differ, and scores chose who went on: any of them may have."""
    search = HalvingGridSearchCV(
        RIDGE(max_iter=5), {"epsilon": [0.1, 0.2, 1.0]}, cv=2, factor=3, min_resources=100
    ).fit(*regression)
    assert search.n_candidates_ == [3, 1]
    squared = sum(gaussian_mu(e, DELTA) ** 2 for e in (0.1, 0.2, 1.0, 0.1, 0.2, 1.0, 1.0))
    by_hand_too = gaussian_epsilon(math.sqrt(squared), DELTA)
    assert skdp.privacy_of(search).epsilon == pytest.approx(by_hand_too, rel=1e-6)


# ---------------------------------------------------------------- pipelines and classifiers


def test_pipeline(classification):
    pipeline = make_pipeline(StandardScaler(), FunctionTransformer(), LOGISTIC(max_iter=5))
    grid = {"dplogisticregression__C": [0.1, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=KFold(5, shuffle=True)).fit(*classification)
    price = skdp.privacy_of(search)
    assert price.epsilon == by_hand(2, 4)
    assert "fitted on the rows: standardscaler (StandardScaler). That is NOT" in said(price)
    assert "functiontransformer" not in said(price)


def test_columns_that_differ_between_candidates(regression):
    pipeline = make_pipeline(PolynomialFeatures(), RIDGE())
    grid = {"polynomialfeatures__degree": [1, 2], "dpridge": [RIDGE(), RIDGE(alpha=3.0)]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(*regression)
    with pytest.raises(
        ValueError, match="Pass n_features, one number for each of the 4 candidates"
    ):
        skdp.privacy_of(search)
    columns = [
        6 if p["polynomialfeatures__degree"] == 1 else 21 for p in search.cv_results_["params"]
    ]
    price = skdp.privacy_of(search, n_features=columns)
    assert price.epsilon == by_hand(4, 1)


def test_labels_that_made_the_folds(classification):
    search = GridSearchCV(LOGISTIC(max_iter=5), {"C": [0.1, 1.0]}, cv=5).fit(*classification)
    with pytest.warns(skdp.PrivacyWarning, match=r"looking at the labels \(StratifiedKFold\)"):
        price = skdp.privacy_of(search)
    assert price.epsilon == by_hand(2, 4)
    assert "StratifiedKFold" in said(price)


def test_declared_classes(classification):
    search = GridSearchCV(
        LOGISTIC(max_iter=5, classes=[0, 1, 2]), {"C": [0.1]}, cv=KFold(2), refit=False
    ).fit(*classification)
    assert skdp.privacy_of(search, n_samples=400, n_features=5).epsilon == by_hand(1, 1, refit=None)


def test_seeds_are_told(regression):
    search = GridSearchCV(RIDGE(max_iter=5, random_state=0), {"alpha": [0.1]}, cv=2).fit(
        *regression
    )
    with pytest.warns(skdp.PrivacyWarning, match="does NOT hold for them"):
        price = skdp.privacy_of(search)
    assert price.noise_source == "seeded"
    assert "same noise" in said(price)


# ---------------------------------------------------------------- cross_validate


def test_cross_validate(regression):
    results = cross_validate(RIDGE(max_iter=5), *regression, cv=4)
    with pytest.raises(ValueError, match="return_estimator=True"):
        skdp.privacy_of(results)
    results = cross_validate(RIDGE(max_iter=5), *regression, cv=4, return_estimator=True)
    price = skdp.privacy_of(results)
    assert price.epsilon == by_hand(1, 4, refit=None)  # splits unknown: all of them
    assert "return_indices=True" in said(price)
    results = cross_validate(
        make_pipeline(StandardScaler(), RIDGE(max_iter=5)),
        *regression,
        cv=4,
        return_estimator=True,
        return_indices=True,
    )
    price = skdp.privacy_of(results)
    assert price.epsilon == by_hand(1, 3, refit=None)
    assert "scores are NOT private" in said(price)
    assert "StandardScaler" in said(price)
    assert "at most 3 of 4 trainings" in said(price)


def test_failed_fits_have_no_known_price(regression):
    results = cross_validate(RIDGE(max_iter=5), *regression, cv=4, return_estimator=True)
    del results["estimator"][2].privacy_
    with pytest.raises(ValueError, match="some of these fits failed"):
        skdp.privacy_of(results)


# ---------------------------------------------------------------- refusals


def test_what_is_no_search(regression):
    for other in (RIDGE().fit(*regression), 3, "search"):
        with pytest.raises(ValueError, match="privacy_of needs a fitted GridSearchCV"):
            skdp.privacy_of(other)
    with pytest.raises(ValueError, match="not fitted yet"):
        skdp.privacy_of(GridSearchCV(RIDGE(), {"alpha": [1.0]}))


def test_what_is_no_private_estimator(regression, classification):
    search = GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=2).fit(*regression)
    with pytest.raises(ValueError, match="Ridge is no estimator of skdp"):
        skdp.privacy_of(search)
    wrapped = CalibratedClassifierCV(LOGISTIC(max_iter=5), cv=2)
    search = GridSearchCV(wrapped, {"ensemble": [True]}, cv=2).fit(*classification)
    with pytest.raises(ValueError, match="CalibratedClassifierCV is no estimator of skdp"):
        skdp.privacy_of(search)


# ---------------------------------------------------------------- which trainings a record is in


@pytest.mark.parametrize(
    ("splitter", "expected"),
    [
        (KFold(5), [{320: 4}]),
        (KFold(5, shuffle=True), [{320: 4}]),
        (StratifiedKFold(5), [{320: 4}]),
        (KFold(3), [{266: 1, 267: 1}, {267: 2}]),
        (StratifiedKFold(3, shuffle=True), [{266: 1, 267: 1}, {267: 2}]),
        (RepeatedKFold(n_splits=4, n_repeats=3), [{300: 9}]),
        (RepeatedStratifiedKFold(n_splits=4, n_repeats=2), [{300: 6}]),
        (
            RepeatedKFold(n_splits=3, n_repeats=2),
            [{266: 2, 267: 2}, {266: 1, 267: 3}, {267: 4}],
        ),
        (LeaveOneOut(), [{399: 399}]),
        (TimeSeriesSplit(3), [{100: 1, 200: 1, 300: 1}]),
        (PredefinedSplit([-1] * 200 + [0] * 100 + [1] * 100), [{300: 2}]),
        (ShuffleSplit(6, test_size=0.5), [{200: 6}]),
        (StratifiedShuffleSplit(6, test_size=0.25, random_state=0), [{300: 6}]),
        ([(np.arange(300), np.arange(300, 400)), (np.arange(400) >= 200, [0])], [{300: 1, 200: 1}]),
    ],
    ids=str,
)
def test_fates(splitter, expected):
    found = fates_of(splitter, 400)
    assert sorted(map(repr, found)) == sorted(repr(Counter(fate)) for fate in expected)


def test_fates_agree_with_the_splits(rng):
    """Against counting, on labels that the bound does not know."""
    y = rng.integers(0, 3, 50)
    for splitter in (
        KFold(7, shuffle=True),
        StratifiedKFold(4),
        StratifiedKFold(4, shuffle=True),
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2),
        ShuffleSplit(5),
        ShuffleSplit(5, random_state=0),
        StratifiedShuffleSplit(5),
        TimeSeriesSplit(4),
    ):
        times = [Counter() for _ in range(50)]
        for train, _ in splitter.split(np.zeros((50, 1)), y):
            for row in train:
                times[row][len(train)] += 1
        bound = fates_of(splitter, 50)
        assert all(any(fate <= other for other in bound) for fate in times), splitter
    assert max(fate.total() for fate in fates_of(ShuffleSplit(5, random_state=0), 50)) == 5


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
@pytest.mark.parametrize("cv", [GroupKFold(4), "custom"])
def test_splits_that_must_be_passed(regression, cv):
    X, y = regression
    groups = np.arange(400) % 8
    if cv == "custom":

        class Custom(KFold):
            pass

        cv = Custom(4)
    search = GridSearchCV(RIDGE(max_iter=5), {"alpha": [1.0]}, cv=cv).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="Pass splits="):
        skdp.privacy_of(search)
    splits = list(cv.split(X, y, groups))
    assert skdp.privacy_of(search, splits=splits).epsilon == by_hand(1, 3)
    with pytest.raises(ValueError, match="3 splits were passed; the search made 4"):
        skdp.privacy_of(search, splits=splits[:3])
    with pytest.raises(ValueError, match="rows beyond n_samples"):
        skdp.privacy_of(search, splits=[(train + 9, test) for train, test in splits])
    with pytest.raises(ValueError, match="names a row twice"):
        skdp.privacy_of(
            search, splits=[(np.append(train, train[0]), test) for train, test in splits]
        )


def test_splits_given_to_the_search(regression):
    X, y = regression
    splits = list(KFold(4).split(X))
    search = GridSearchCV(RIDGE(max_iter=5), {"alpha": [1.0]}, cv=splits).fit(X, y)
    assert skdp.privacy_of(search).epsilon == by_hand(1, 3)
    search = GridSearchCV(RIDGE(max_iter=5), {"alpha": [1.0]}, cv=iter(splits)).fit(X, y)
    with pytest.raises(ValueError, match=r"iterator.*splits="):
        skdp.privacy_of(search)
    assert skdp.privacy_of(search, splits=splits).epsilon == by_hand(1, 3)


# ---------------------------------------------------------------- mutants: each must be caught


def all_splits(patch):
    patch.setattr(search_price, "fates_of", lambda cv, n: [Counter({300: 4})])


def one_split(patch):
    patch.setattr(search_price, "fates_of", lambda cv, n: [Counter({300: 1})])


def refit_forgotten(patch):
    rounds_of = searched.rounds_of

    def forgetful(search, shape):
        rounds, reading = rounds_of(search, shape)
        rounds[-1] = searched.Round((), (), 1, 1.0, None, ())
        return rounds, reading

    patch.setattr(search_price, "rounds_of", forgetful)


def one_candidate(patch):
    plans = searched.Round.plans
    patch.setattr(searched.Round, "plans", lambda self, n: plans(self, n)[:1])


def refit_of_the_first(patch):
    patch.setattr(
        searched.Round,
        "plans",
        lambda self, n: [
            (model.plan(n, columns),)
            for model, columns in zip(self.models, self.n_features, strict=True)
        ][: self.chosen],
    )


@pytest.mark.parametrize(
    ("mutant", "check"),
    [
        (all_splits, check_grid_search),
        (one_split, check_grid_search),
        (refit_forgotten, check_grid_search),
        (one_candidate, check_grid_search),
        (refit_of_the_first, check_refit_is_the_dearest),
    ],
)
def test_mutants_are_caught(mutant, check, regression, monkeypatch):
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        check(regression)


@pytest.mark.parametrize(("batch_size", "max_iter"), [(5, 20), (1, 5)])
def test_the_refit_that_makes_the_total_dearest_is_counted(batch_size, max_iter):
    """The candidate that is dearest alone need not be so beside the others."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(300)
    ridge = skdp.DPRidge(delta=1e-5, data_norm=3, target_bound=3, max_iter=max_iter)
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


def test_a_private_step_before_the_estimator_counts(regression):
    pipeline = make_pipeline(skdp.DPStandardScaler(epsilon=0.7), RIDGE(epsilon=0.7, max_iter=5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = GridSearchCV(pipeline, {"dpridge__alpha": [0.1, 1.0]}, cv=4).fit(*regression)
    price = skdp.privacy_of(search)
    # Each training is two fits of the same price.
    squared = 2 * (2 * 3 + 1) * gaussian_mu(0.7, DELTA) ** 2
    assert price.epsilon == pytest.approx(gaussian_epsilon(math.sqrt(squared), DELTA), rel=1e-6)
    assert "DPStandardScaler" not in said(price)
