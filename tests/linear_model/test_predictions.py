"""What predictions are made of: linear, or within what the fit has seen; bounds of columns."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

import skdp

SEEDED = skdp.Privacy(noise=skdp.SeededNoise(0))

BINARY, SEVERAL, TARGETS = (
    load(return_X_y=True) for load in (load_breast_cancer, load_iris, load_diabetes)
)
KINDS = {
    "two classes": (partial(skdp.DPLogisticRegression, classes=[0, 1]), *BINARY),
    "three classes": (partial(skdp.DPLogisticRegression, classes=[0, 1, 2]), *SEVERAL),
    "ridge": (skdp.DPRidge, *TARGETS),
    "lasso": (skdp.DPLasso, *TARGETS),
    "elastic net": (skdp.DPElasticNet, *TARGETS),
    "huber": (skdp.DPHuberRegressor, *TARGETS),
    "counts": (skdp.DPPoissonRegressor, TARGETS[0], TARGETS[1] // 25),
    "median": (skdp.DPQuantileRegressor, *TARGETS),
    "machine": (partial(skdp.DPLinearSVC, classes=[0, 1]), *BINARY),
    "machines": (partial(skdp.DPLinearSVC, classes=[0, 1, 2]), *SEVERAL),
    "two targets": (skdp.DPLinearRegression, TARGETS[0], np.c_[TARGETS[1], -TARGETS[1]]),
}


@pytest.fixture(params=KINDS, scope="module")
def fitted(request):
    model, X, y = KINDS[request.param]
    return model(epsilon=1.0, privacy=SEEDED).fit(X, y), X


def scores(model, X):
    return getattr(model, "decision_function", model.predict)(X)


def test_the_model_of_scikit_learn_is_linear(fitted):
    """X @ coef_ + intercept_, on rows far outside of the fitted range, too."""
    model, X = fitted
    plain = model.to_sklearn()
    assert type(plain).__module__.startswith("sklearn.")
    others = {"DPHuberRegressor": "LinearRegression"}
    name = type(model).__name__
    assert type(plain).__name__ == others.get(name, name.removeprefix("DP"))
    X = np.concatenate([X, 100 * X])
    linear = X @ np.atleast_2d(model.coef_).T + model.intercept_
    if isinstance(model, skdp.DPPoissonRegressor):
        linear = np.exp(np.minimum(linear, 700.0))
    assert scores(plain, X) == pytest.approx(linear.reshape(scores(model, X).shape), rel=1e-12)
    plain.coef_ += 1.0  # a copy: the private model keeps its own
    assert not np.array_equal(plain.coef_, model.coef_)


def test_an_export_is_nearer_if_columns_are_clipped_first():
    rng = np.random.default_rng(0)
    X = rng.lognormal(size=(5000, 3))
    y = (rng.random(5000) < 1 / (1 + np.exp(X @ [-0.5, 0.4, 0.0]))).astype(int)
    model = skdp.DPLogisticRegression(classes=[0, 1], epsilon=10.0).fit(X, y)
    plain = model.to_sklearn()
    ranges = model.scaling_.columns
    expected, far = model.predict_proba(4 * X), np.clip(4 * X, ranges.low, ranges.high)
    linear, clipped = plain.predict_proba(4 * X), plain.predict_proba(far)
    assert abs(linear - expected).max() > 0.3
    assert abs(clipped - expected).mean() < 0.7 * abs(linear - expected).mean()


@pytest.mark.parametrize("bound", [None, 200.0])
def test_predictions_keep_to_the_range_of_targets(bound):
    X, y = TARGETS
    scaling = "auto" if bound is None else skdp.PublicRange(target=bound)
    model = skdp.DPRidge(epsilon=3.0, scaling=scaling, privacy=SEEDED).fit(X, y)
    low, high = model.prediction_range_
    assert low.shape == high.shape == (1,)
    if bound is not None:
        assert (low[0], high[0]) == (-bound, bound)
    far = model.predict(np.sign(model.coef_)[None] * [[-1e6], [1e6]])
    assert (far >= low).all()
    assert (far <= high).all()
    if bound is None:
        assert y.min() - 300 < low[0] < high[0] < y.max() + 300
    assert abs(model.to_sklearn().predict(1e6 * X)).max() > 1e5


# ---------------------------------------------------------------- ranges of columns


@pytest.mark.parametrize(
    "declared",
    [
        skdp.PublicRange([0, -5, 10], [1, 5, 20]),
        skdp.PublicRange(*np.array([[0, -5, 10], [1, 5, 20]])),
        skdp.PublicRange(by_column=[(0, 1), (-5, 5), (10, 20)]),
        skdp.PublicRange(by_column=np.array([[0, 1], [-5, 5], [10, 20]])),
        skdp.PublicRange(by_column={"c": (10, 20), "a": (0, 1), "b": (-5, 5)}),
        skdp.PublicRange(by_column={2: (10, 20), 0: (0, 1), 1: (-5, 5)}),
    ],
    ids=["ends", "arrays of ends", "pairs", "array of pairs", "names", "numbers"],
)
@pytest.mark.parametrize("model", [skdp.DPRidge, skdp.DPStandardScaler])
def test_all_forms_of_ranges_mean_the_same(model, declared):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform([0, -5, 10], [1, 5, 20], (400, 3)), columns=list("abc"))
    found = model(scaling=declared, privacy=SEEDED).fit(X, X["a"])
    is_ridge = model is skdp.DPRidge
    columns = found.scaling_.columns if is_ridge else None
    low, high = (columns.low, columns.high) if is_ridge else (found.low_, found.high_)
    assert low.tolist() == [0, -5, 10]
    assert high.tolist() == [1, 5, 20]
    assert model(scaling=declared).plan(400, 3).epsilon == found.privacy_.epsilon


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (skdp.PublicRange(), r"PublicRange needs finite numbers with low < high.*got PublicRange"),
        (skdp.PublicRange(0), "low < high"),
        (skdp.PublicRange(1, 1), "low < high"),
        (skdp.PublicRange([0, 3], [1, 2]), "low < high"),
        (skdp.PublicRange(0, np.inf), "finite numbers"),
        (skdp.PublicRange("a", "b"), "finite numbers"),
        (skdp.PublicRange([[0, 0]], [[1, 1]]), "one for all columns or one for each"),
        (skdp.PublicRange([0, 0], [1, 1, 1]), "one for all columns or one for each"),
        (skdp.PublicRange(0, 1, by_column=[(0, 1)] * 2), "low and high, or by_column, got both"),
        (skdp.PublicRange(by_column=[(0, 1, 2)] * 2), "by_column with a pair for each"),
        (skdp.PublicRange(by_column={}), "Not so for an empty dict"),
        (skdp.PublicRange(by_column={0: (0, 1), 1: 3}), "pair .* Not so for 1"),
        (skdp.RowNorm(0.0), "RowNorm: norm must be a positive, finite number"),
        (skdp.RowNorm(None), "RowNorm: norm must be a positive, finite number"),
        (skdp.PublicRange, "scaling must be 'auto', 'private', 'none', PublicRange"),
        ((0, 1), "scaling must be 'auto', 'private', 'none', PublicRange"),
        ("public", "scaling must be 'auto', 'private', 'none', PublicRange"),
        (None, "scaling must be 'auto', 'private', 'none', PublicRange"),
    ],
    ids=repr,
)
def test_what_declares_no_ranges_is_refused_before_the_rows(declared, message, asked):
    with pytest.raises(ValueError, match=message):
        skdp.DPRidge(scaling=declared).fit(None, None)
    with pytest.raises(ValueError, match=message):
        skdp.DPRidge(scaling=declared).plan(400, 2)


def test_names_decide_in_another_order_of_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 1, (400, 2)), columns=["b", "a"])
    for order, low in ((["b", "a"], [2, 1]), (["a", "b"], [1, 2])):
        model = skdp.DPRidge(scaling=skdp.PublicRange(by_column={"a": (1, 5), "b": (2, 6)})).fit(
            X[order], X["a"]
        )
        assert model.scaling_.columns.low.tolist() == low


@pytest.mark.parametrize(
    ("parameters", "centred"),
    [
        ({}, True),
        ({"solver": "gd", "inference": "coefficients"}, True),
        ({"fit_intercept": False, "C": np.inf}, True),
        ({"constraint": skdp.objective.L2Ball(1.0), "scaling": "none"}, True),
        ({"constraint": skdp.objective.L1Ball(1.0), "scaling": "none"}, False),
        ({"l1_ratio": 0.5}, False),
    ],
)
def test_coefficients_of_classes_have_no_common_shift(parameters, centred):
    """As in scikit-learn, unless the shift counts. Predictions, made of them, do not see it."""
    model = skdp.DPLogisticRegression(classes=[0, 1, 2], privacy=SEEDED, **parameters)
    plain = model.fit(*SEVERAL).to_sklearn()
    sums = np.append(model.coef_.sum(axis=0), model.intercept_.sum())
    assert (np.abs(sums).max() < 1e-9) == centred
    X = SEVERAL[0]
    margins = X @ model.coef_.T + model.intercept_ + X[:, :1]
    exact = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
    assert plain.predict_proba(X) == pytest.approx(exact, abs=1e-9)
