"""The estimators as users of scikit-learn use them."""

from __future__ import annotations

import inspect
import pickle

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import skdp
from replays import seeded
from skdp._docstrings import section_of

MODELS = [
    getattr(skdp, name) for name in skdp.__all__ if hasattr(getattr(skdp, name), "fit_blocks")
]

# ---------------------------------------------------------------- noise


def test_fits_differ_without_a_seed_and_agree_with_one(case):
    estimator, X, y = case
    assert (estimator().fit(X, y).coef_ != estimator().fit(X, y).coef_).any()
    one, other = (estimator(privacy=seeded(5)).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert (estimator(privacy=seeded(6)).fit(X, y).coef_ != one.coef_).any()


def test_noise_that_reaches_the_coefficients(rng):
    """One plain step from zero is minus the noisy mean gradient: its spread is known."""
    X = np.zeros((100, 400))
    y = np.zeros(100)
    model = skdp.DPLinearRegression(
        max_iter=1,
        learning_rate=1.0,
        momentum=0.0,
        clip_norm=3.0,
        fit_intercept=False,
        scaling="none",
    ).fit(X, y)
    multiplier = model.privacy_.releases[0].noise_multiplier
    assert multiplier == pytest.approx(1 / 0.2367044, rel=1e-5)
    # relative std of the estimate 1/sqrt(800) = 0.035: seven of these
    assert model.coef_.std() == pytest.approx(3.0 * multiplier / 100, rel=0.25)


def test_workers_draw_distinct_noise(regression):
    fits = [joblib.delayed(skdp.DPRidge().fit)(*regression) for _ in range(4)]
    models = joblib.Parallel(n_jobs=2)(fits)
    assert len({model.coef_.tobytes() for model in models}) == 4


# ---------------------------------------------------------------- what a model holds


def values_in(thing, seen=None):
    """Everything reachable from an object through its attributes and containers."""
    seen = {} if seen is None else seen
    if id(thing) in seen:
        return seen
    seen[id(thing)] = thing
    inner = list(vars(thing).values()) if hasattr(thing, "__dict__") else []
    if isinstance(thing, dict):
        inner += list(thing.values())
    elif isinstance(thing, (list, tuple, set)):
        inner += list(thing)
    for value in inner:
        if not isinstance(value, type) and not callable(value):
            values_in(value, seen)
    return seen


@pytest.mark.parametrize("terms", [None, seeded(3)], ids=str)
def test_a_pickled_model_holds_no_rows_and_no_generator(case, terms):
    estimator, X, y = case
    model = estimator(privacy=terms).fit(X, y)
    data = pickle.dumps(model)
    for row in X[:20]:
        assert row.tobytes() not in data
        assert np.float64(row[0]).tobytes() not in data
    assert b"PCG64" not in data
    assert b"MT19937" not in data
    held = values_in(pickle.loads(data))
    for value in held.values():
        assert not isinstance(value, (np.random.Generator, np.random.RandomState))
        if isinstance(value, np.ndarray):
            assert value.size <= model.coef_.size + 2
    np.testing.assert_array_equal(pickle.loads(data).predict(X), model.predict(X))


def test_fitted_attributes_are_the_documented_ones(case):
    estimator, X, y = case
    model = estimator().fit(X, y)
    fitted = {name for name in vars(model) if name.endswith("_")}
    expected = {"coef_", "intercept_", "n_iter_", "solver_", "privacy_", "row_bound_", "scaling_"}
    expected |= {"offset_fitted_"}
    expected |= {"n_features_in_", "n_gradients_"}
    expected |= {"classes_"} if hasattr(model, "classes_") else {"prediction_range_"}
    assert fitted == expected
    assert set(vars(model)) - fitted == set(model.get_params(deep=False))
    for name in fitted:
        assert f"\n{name} : " in estimator.__doc__


@pytest.mark.parametrize("estimator", MODELS, ids=lambda cls: cls.__name__)
def test_the_documented_parameters_are_those_it_has(estimator):
    assert list(section_of(estimator, "Parameters")) == list(
        inspect.signature(estimator).parameters
    )


# ---------------------------------------------------------------- scikit-learn's machinery


def test_declared_classes_may_be_absent(classification):
    X, y = classification
    model = skdp.DPLogisticRegression(classes=[0, 1, 2], max_iter=5).fit(X, y)
    assert model.predict_proba(X).shape == (400, 3)
    model = skdp.DPLogisticRegression(classes=[0, 1], max_iter=5).fit(X, np.zeros(400))
    assert list(model.classes_) == [0, 1]


def test_float32_is_not_cast(classification):
    X, y = classification
    wide = skdp.DPLogisticRegression(classes=[0, 1], privacy=seeded(0)).fit(X, y)
    narrow = skdp.DPLogisticRegression(classes=[0, 1], privacy=seeded(0)).fit(
        X.astype(np.float32), y
    )
    np.testing.assert_allclose(narrow.coef_, wide.coef_, atol=1e-4)


def test_long_rows_are_scaled_down_in_fit_and_predict(regression):
    X, y = regression
    model = skdp.DPRidge(scaling=skdp.RowNorm(2.0), privacy=seeded(0)).fit(X, y)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    shorter = X * np.minimum(1, 2.0 / norms)
    again = skdp.DPRidge(scaling=skdp.RowNorm(2.0), privacy=seeded(0)).fit(shorter, y)
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict(X), shorter @ model.coef_ + model.intercept_)
    assert model.row_bound_ == 2.0


def test_targets_are_clipped_to_their_bound(regression):
    X, y = regression
    wild = y.copy()
    wild[0] = 1e9
    tame = wild.copy()
    tame[0] = 3.0
    models = [
        skdp.DPRidge(scaling=skdp.PublicRange(target=3.0), privacy=seeded(0)).fit(X, targets)
        for targets in (wild, tame)
    ]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


# ---------------------------------------------------------------- accuracy, by default settings


def mean_score(make, X, y, runs=10):
    scores = []
    for run in range(runs):
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=run)
        scores.append(make(run).fit(X_train, y_train).score(X_test, y_test))
    return np.mean(scores)


@pytest.mark.parametrize(
    ("load", "least"), [(load_breast_cancer, 0.92), (load_digits, 0.88), (load_iris, 0.7)]
)
def test_accuracy_at_epsilon_one(load, least):
    X, y = load(return_X_y=True)
    score = mean_score(
        lambda run: make_pipeline(
            StandardScaler(),
            skdp.DPLogisticRegression(classes=np.unique(y), privacy=seeded(run)),
        ),
        X,
        y,
    )
    assert score >= least


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_labels_of_support_vectors_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 10))
    y = (X @ np.r_[1, -1, 0.5, np.zeros(7)] + rng.standard_normal(2000) > 0.5).astype(int)
    plain = LinearSVC(C=0.1, loss="hinge", max_iter=20_000, intercept_scaling=100).fit(X, y)
    model = skdp.DPLinearSVC(C=0.1, classes=[0, 1], epsilon=np.inf).fit(X, y)
    assert np.mean(plain.predict(X) == model.predict(X)) > 0.99
    direction = plain.coef_[0] / np.linalg.norm(plain.coef_)
    assert direction @ model.coef_[0] / np.linalg.norm(model.coef_) > 0.998
