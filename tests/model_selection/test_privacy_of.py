"""The price of a plain search, against the arithmetic by hand."""

from __future__ import annotations

import math
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

import skdp
from composition import DELTA, together
from skdp.accounting import gaussian_epsilon, gaussian_mu
from skdp.solvers import GradientDescent

RIDGE = partial(skdp.DPRidge, scaling="none")
LOGISTIC = partial(skdp.DPLogisticRegression, classes=[0, 1])


def by_hand(n_candidates, n_trainings, *, train=1.0, refit=1.0):
    refits = [] if refit is None else [refit]
    return pytest.approx(together(*n_candidates * n_trainings * [train], *refits), rel=1e-6)


def said(statement):
    return " ".join(statement.assumptions)


# ---------------------------------------------------------------- searches


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
    """Plans that depend on the number of rows, folds of two sizes: the largest price counts."""
    batches = GradientDescent(batch_size=30, sampling="poisson", max_iter=4)
    search = GridSearchCV(RIDGE(solver=batches), {"alpha": [0.1, 1.0]}, cv=KFold(3))
    search.fit(*regression)

    def plans(n):
        return [RIDGE(solver=batches).plan(n, 5)] * 2

    memberships = [plans(266) + plans(267), plans(267) * 2]
    by_hand_too = max(
        skdp.total_privacy(*membership, RIDGE(solver=batches).plan(400, 5), delta=DELTA).epsilon
        for membership in memberships
    )
    assert skdp.privacy_of(search).epsilon == pytest.approx(by_hand_too, rel=1e-9)


@pytest.mark.filterwarnings("ignore:PrivacyBudget:skdp.PrivacyWarning")  # of other scores
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
    seeded = skdp.Privacy(noise=skdp.SeededNoise(0))
    model = RIDGE(max_iter=5, privacy=seeded)
    search = GridSearchCV(model, {"alpha": [0.1]}, cv=2).fit(*regression)
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
        with pytest.raises(ValueError, match="privacy_of needs a GridSearchCV"):
            skdp.privacy_of(other)


def test_what_is_no_private_estimator(regression, classification):
    search = GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=2).fit(*regression)
    with pytest.raises(ValueError, match="Ridge is not an estimator of skdp"):
        skdp.privacy_of(search)
    wrapped = CalibratedClassifierCV(LOGISTIC(max_iter=5), cv=2)
    search = GridSearchCV(wrapped, {"ensemble": [True]}, cv=2).fit(*classification)
    with pytest.raises(ValueError, match="CalibratedClassifierCV is not an estimator of skdp"):
        skdp.privacy_of(search)


# ---------------------------------------------------------------- splits


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
    with pytest.raises(ValueError, match="these are 3 splits, the search made 4"):
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


def test_a_private_step_before_the_estimator_counts(regression):
    pipeline = make_pipeline(skdp.DPStandardScaler(epsilon=0.7), RIDGE(epsilon=0.7, max_iter=5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = GridSearchCV(pipeline, {"dpridge__alpha": [0.1, 1.0]}, cv=4).fit(*regression)
    price = skdp.privacy_of(search)
    # Each training is two fits of the same price.
    assert price.epsilon == pytest.approx(together(*2 * (2 * 3 + 1) * [0.7]), rel=1e-6)
    assert "DPStandardScaler" not in said(price)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda search: search.estimator.set_params(epsilon=0.2), "other values of epsilon"),
        (
            lambda search: search.estimator.set_params(solver="gd", max_iter=5),
            "other values of max_iter, solver",
        ),
        (lambda search: search.set_params(cv=KFold(2)), "cv of this GridSearchCV was changed"),
    ],
)
def test_a_search_is_priced_as_it_was_fitted(regression, changed, message):
    """Attack: what is changed after the fit would make it look cheaper."""
    search = GridSearchCV(RIDGE(epsilon=2.0), {"alpha": [0.1, 1.0]}, cv=KFold(5)).fit(*regression)
    fair = skdp.privacy_of(search)
    changed(search)
    with pytest.raises(ValueError, match=message):
        skdp.privacy_of(search)
    search.set_params(cv=KFold(5), estimator=RIDGE(epsilon=2.0))
    assert skdp.privacy_of(search) == fair


def test_a_refit_counts_whatever_the_parameter_says_later(regression):
    search = GridSearchCV(RIDGE(epsilon=2.0), {"alpha": [0.1, 1.0]}, cv=3).fit(*regression)
    fair = skdp.privacy_of(search)
    search.refit = False
    assert skdp.privacy_of(search) == fair


def test_what_cannot_be_checked_is_assumed(regression):
    grid = [{"max_iter": [5], "solver": ["gd"]}, {"alpha": [1.0], "solver": ["gd"]}]
    search = GridSearchCV(RIDGE(), grid, cv=2).fit(*regression)
    best = (set(search.best_params_) - {"solver"}).pop()
    said = [text for text in skdp.privacy_of(search).assumptions if "not been changed" in text]
    assert said[0].endswith(f"nor their value(s) of {best}.")
    search = GridSearchCV(RIDGE(), {"alpha": [0.1]}, cv=2, refit=False).fit(*regression)
    said = skdp.privacy_of(search, n_samples=400, n_features=5, n_outputs=1).assumptions
    assert any("nothing shows it" in text for text in said)
