"""Without noise the estimators are those of scikit-learn."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    QuantileRegressor,
    Ridge,
)
from sklearn.metrics import recall_score
from sklearn.svm import LinearSVC

import skdp

SEEDED = skdp.Privacy(noise=skdp.SeededNoise(0))


def without_noise(estimator, **parameters):
    return estimator(epsilon=math.inf, max_iter=600, **parameters)


@pytest.fixture
def debugging():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", skdp.PrivacyWarning)
        yield


@pytest.mark.usefixtures("debugging")
@pytest.mark.parametrize(
    ("form", "fit_intercept"),
    [
        (np.asarray, False),
        (sparse.csr_array, False),
        (sparse.csr_array, True),
        (sparse.csr_matrix, False),
        (pd.DataFrame, True),
    ],
)
class TestAgreesWithScikitLearn:
    def test_linear(self, regression, form, fit_intercept):
        X, y = regression
        ours = without_noise(skdp.DPLinearRegression, fit_intercept=fit_intercept)
        self._compare(ours, LinearRegression(fit_intercept=fit_intercept), form(X), X, y)

    def test_ridge(self, regression, form, fit_intercept):
        X, y = regression
        targets = np.column_stack([y, -2 * y + 1, X[:, 0]])
        ours = without_noise(skdp.DPRidge, alpha=30.0, fit_intercept=fit_intercept)
        theirs = Ridge(alpha=30.0, fit_intercept=fit_intercept)
        self._compare(ours, theirs, form(X), X, targets)

    def test_ridge_with_weights(self, regression, form, fit_intercept, rng):
        X, y = regression
        weights = rng.random(len(y))
        weights /= weights.mean()  # the loss is divided by the sum of weights
        ours = without_noise(skdp.DPRidge, alpha=3.0, fit_intercept=fit_intercept)
        theirs = Ridge(alpha=3.0, fit_intercept=fit_intercept)
        self._compare(ours, theirs, form(X), X, y, sample_weight=weights)

    def test_binary(self, classification, form, fit_intercept):
        X, y = classification
        ours = without_noise(skdp.DPLogisticRegression, C=0.1, fit_intercept=fit_intercept)
        theirs = LogisticRegression(C=0.1, fit_intercept=fit_intercept, tol=1e-9)
        self._compare(ours, theirs, form(X), X, y)

    def test_multinomial(self, classification, form, fit_intercept, rng):
        X, y = classification
        y = np.array(["a", "b", "c"])[y + (X[:, 1] + 0.5 * rng.standard_normal(len(y)) > 1)]
        ours = without_noise(skdp.DPLogisticRegression, C=0.1, fit_intercept=fit_intercept)
        theirs = LogisticRegression(C=0.1, fit_intercept=fit_intercept, tol=1e-9, max_iter=1000)
        ours.fit(form(X), y)
        theirs.fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
        np.testing.assert_allclose(ours.predict_proba(form(X)), theirs.predict_proba(X), atol=1e-6)
        assert list(ours.classes_) == ["a", "b", "c"]

    @staticmethod
    def _compare(ours, theirs, X_form, X, y, **weights):
        ours.fit(X_form, y, **weights)
        theirs.fit(X, y, **weights)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
        np.testing.assert_allclose(ours.predict(X_form), theirs.predict(X), atol=1e-5)
        assert np.shape(ours.coef_) == np.shape(theirs.coef_)
        assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)


@pytest.mark.usefixtures("debugging")
def test_class_weight_is_a_weight(classification):
    X, y = classification
    weights = np.where(y == 1, 3.0, 1.0)
    by_class = without_noise(skdp.DPLogisticRegression, class_weight={1: 3.0}).fit(X, y)
    by_record = without_noise(skdp.DPLogisticRegression, C=weights.mean()).fit(X, y, weights)
    np.testing.assert_allclose(by_class.coef_, by_record.coef_, rtol=1e-4)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(skdp.DPLogisticRegression, LogisticRegression), (skdp.DPLinearSVC, LinearSVC)],
)
def test_class_weights_find_rare_classes(rng, ours, theirs):
    X = rng.standard_normal((20_000, 6))
    margins = X @ [1.2, -1.0, 0.6, 0.0, 0.0, 0.3] - 6.0
    y = (rng.random(len(X)) < 1 / (1 + np.exp(-margins))).astype(int)
    weights = {0: 1, 1: 99}
    fits = (
        ours(classes=[0, 1], epsilon=10.0, class_weight=weights, privacy=SEEDED).fit(X, y),
        theirs(class_weight=weights).fit(X, y),
    )
    first, second = (recall_score(y, fit.predict(X)) for fit in fits)
    assert abs(first - second) < 0.05


@pytest.mark.usefixtures("debugging")
def test_rows_of_weight_0_change_no_unit(rng):
    X = rng.standard_normal((500, 3))
    y, weights = X @ [1.0, -1.0, 2.0] + rng.standard_normal(500), rng.integers(0, 2, 500)
    model = skdp.DPLasso(0.1, epsilon=math.inf).fit(X, y, weights)
    np.testing.assert_allclose(model.coef_, Lasso(0.1).fit(X, y, weights).coef_, atol=1e-4)
    assert abs(model.scaling_.columns.centre).max() < 0.1


@pytest.mark.usefixtures("debugging")
def test_rows_may_be_heavy(rng):
    """By steps that follow a Gram matrix; those of "gd" ran away, and were far from quantiles."""
    X = rng.standard_normal((500, 3))
    y = X @ [1.0, -1.0, 2.0] + rng.standard_normal(500)
    weights = 100 * np.exp(1.5 * rng.standard_normal(500))
    for ours, theirs in (
        (skdp.DPLinearRegression, LinearRegression()),
        (skdp.DPQuantileRegressor, QuantileRegressor(alpha=0)),
    ):
        coef = ours(epsilon=math.inf).fit(X, y, weights).coef_
        np.testing.assert_allclose(coef, theirs.fit(X, y, weights).coef_, atol=0.02)
    # By steps of "gd" that follow the curvature. Lasso of scikit-learn divides weights by the mean.
    coef = skdp.DPLasso(0.1, epsilon=math.inf).fit(X, y, weights).coef_
    np.testing.assert_allclose(coef, Lasso(0.1).fit(X, y, weights).coef_, atol=1e-4)
    model = skdp.DPHuberRegressor(alpha=0.0, epsilon=math.inf)
    coef, expected = (model.fit(X, y, one).coef_ for one in (np.full(500, 300.0), None))
    np.testing.assert_allclose(coef, expected, atol=1e-4)
