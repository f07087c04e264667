"""What predictions are made of: linear, or within what the fit has seen; bounds of columns."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier

import skdp
from skdp.solvers import GradientDescent

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
    "ridge by folds": (skdp.DPRidgeCV, *TARGETS),
    "two targets": (skdp.DPLinearRegression, TARGETS[0], np.c_[TARGETS[1], -TARGETS[1]]),
}


@pytest.fixture(params=KINDS, scope="module")
def fitted(request):
    model, X, y = KINDS[request.param]
    return model(epsilon=1.0, privacy=SEEDED).fit(X, y), X


def scores(model, X):
    return getattr(model, "decision_function", model.predict)(X)


def test_linear_predictions_are_the_coefficients(fitted):
    """X @ coef_ + intercept_, on rows far outside of what the model has seen, too."""
    model, X = fitted
    model.set_params(linear_predictions=True)
    X = np.concatenate([X, 100 * X])
    linear = X @ np.atleast_2d(model.coef_).T + model.intercept_
    assert scores(model, X) == pytest.approx(linear.reshape(scores(model, X).shape), rel=1e-12)


def test_the_model_of_scikit_learn_predicts_the_same(fitted):
    model, X = fitted
    model.set_params(linear_predictions=True)
    plain = model.to_sklearn()
    assert type(plain).__module__.startswith("sklearn.")
    others = {"DPHuberRegressor": "LinearRegression", "DPRidgeCV": "LinearRegression"}
    name = type(model).__name__
    assert type(plain).__name__ == others.get(name, name.removeprefix("DP"))
    np.testing.assert_array_equal(scores(plain, X), scores(model, X))
    if hasattr(model, "classes_"):
        np.testing.assert_allclose(plain.predict_proba(X), model.predict_proba(X), atol=1e-12)
    plain.coef_ += 1.0  # a copy: the private model keeps its own
    assert not np.array_equal(plain.coef_, model.coef_)


def test_usual_rows_get_the_same_prediction_either_way():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (5000, 3))
    model = skdp.DPRidge().fit(X, X @ [1.0, 2.0, 3.0])
    near = model.predict(0.5 * X)
    model.set_params(linear_predictions=True)
    np.testing.assert_allclose(model.predict(0.5 * X), near, atol=1e-9)


@pytest.mark.parametrize("bound", [None, 200.0])
def test_predictions_keep_to_the_range_of_targets(bound):
    X, y = TARGETS
    options = {
        "target_bound": bound,
        "privacy": SEEDED,
    }
    model = skdp.DPRidge(epsilon=3.0, **options).fit(X, y)
    low, high = model.prediction_range_
    assert low.shape == high.shape == (1,)
    if bound is not None:
        assert (low[0], high[0]) == (-bound, bound)
    far = model.predict(np.sign(model.coef_)[None] * [[-1e6], [1e6]])
    assert (far >= low).all()
    assert (far <= high).all()
    if bound is None:
        assert y.min() - 300 < low[0] < high[0] < y.max() + 300
    model.set_params(linear_predictions=True)
    assert abs(model.predict(1e6 * X)).max() > 1e5


def test_no_range_without_noise_or_scaling():
    X, y = TARGETS
    with pytest.warns(skdp.PrivacyWarning):
        exact = skdp.DPRidge(epsilon=np.inf).fit(X, y)
    assert exact.prediction_range_ is None
    assert skdp.DPRidge(scaling="none").fit(X, y / 300).prediction_range_ is None


# ---------------------------------------------------------------- bounds

OPTIONS = {
    "privacy": SEEDED,
}


@pytest.mark.parametrize(
    "bounds",
    [
        ([0, -5, 10], [1, 5, 20]),
        np.array([[0, -5, 10], [1, 5, 20]]),
        [(0, 1), (-5, 5), (10, 20)],
        np.array([[0, 1], [-5, 5], [10, 20]]),
        {"a": (0, 1), "b": (-5, 5), "c": (10, 20)},
        {"c": (10, 20), "a": (0, 1), "b": (-5, 5)},
        {2: (10, 20), 0: (0, 1), 1: (-5, 5)},
    ],
    ids=["ends", "array of ends", "pairs", "array of pairs", "names", "any order", "numbers"],
)
@pytest.mark.parametrize("model", [skdp.DPRidge, skdp.DPStandardScaler])
def test_all_forms_of_bounds_mean_the_same(model, bounds):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform([0, -5, 10], [1, 5, 20], (400, 3)), columns=list("abc"))
    found = model(scaling=bounds, **OPTIONS).fit(X, X["a"])
    columns = found.scaling_.columns if model is skdp.DPRidge else found._columns()
    assert columns.low.tolist() == [0, -5, 10]
    assert columns.high.tolist() == [1, 5, 20]
    shape = (400, 3)
    assert model(scaling=bounds).plan(*shape).epsilon == found.privacy_.epsilon


def test_names_decide_in_another_order_of_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 1, (400, 2)), columns=["b", "a"])
    for order, low in ((["b", "a"], [2, 1]), (["a", "b"], [1, 2])):
        model = skdp.DPRidge(scaling=skdp.PublicRange(by_column={"a": (1, 5), "b": (2, 6)})).fit(
            X[order], X["a"]
        )
        assert model.scaling_.columns.low.tolist() == low


# ---------------------------------------------------------------- solvers and classes


def test_a_search_reaches_the_parameters_of_a_named_solver():
    X, y = BINARY
    model = skdp.DPLogisticRegression(solver="gd", classes=[0, 1])
    search = GridSearchCV(model, {"solver__max_iter": [2, 7]}, cv=2, refit=False).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert model.solver == "gd"
    model.set_params(solver__max_iter=7)
    assert model.solver.get_params() == GradientDescent(max_iter=7).get_params()
    both = skdp.DPLogisticRegression().set_params(solver__max_iter=3, solver="newton")
    assert (both.solver.name, both.solver.max_iter) == ("newton", 3)


@pytest.mark.filterwarnings("ignore:.*classes=None:skdp.PrivacyWarning")
@pytest.mark.parametrize("classes", [None, [0, 1]])
def test_one_model_for_each_class_fits_on_labels_0_and_1(classes):
    X, y = SEVERAL
    model = OneVsRestClassifier(skdp.DPLogisticRegression(epsilon=20.0, classes=classes))
    assert model.fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize("names", [["x", "y", "z"], [1, 2, 3]], ids=str)
def test_labels_of_all_classes_are_refused_there_before_the_charge(names):
    X, y = SEVERAL
    budget = skdp.PrivacyBudget(10.0, 1e-5)
    model = OneVsRestClassifier(
        skdp.DPLogisticRegression(classes=names, privacy=skdp.Privacy(budget=budget))
    )
    with pytest.raises(ValueError, match=r"OneVsRestClassifier, declare those: classes=\[0, 1\]"):
        model.fit(X, np.array(names)[y])
    assert budget.n_fits == 0
