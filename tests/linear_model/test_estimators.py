"""The estimators as users of scikit-learn use them."""

from __future__ import annotations

import inspect
import io
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdp
from replays import seeded
from skdp._docstrings import section_of
from skdp.solvers import GradientDescent
from skdp.steps import CustomNoise, ExponentialNoise, PolynomialStep

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


@pytest.mark.parametrize("n_rows", [400, 40])
def test_warnings_do_not_tell_how_many_labels_occur(classification, n_rows):
    """Few of the declared labels or as many as there can be: what is said follows from 300."""
    X, _ = classification
    said = []
    for n_labels in (1, 30, 300):
        y = np.arange(n_rows) % n_labels
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            skdp.DPLogisticRegression(classes=range(300), max_iter=2).fit(X[:n_rows], y)
        said.append([(one.category, str(one.message)) for one in caught])
    assert said[0] == said[1] == said[2]
    assert {category for category, _ in said[0]} == {skdp.NoiseWarning}


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


def test_pipeline_grid_search_and_cross_validation(case):
    estimator, X, y = case
    frame = pd.DataFrame(X, columns=list("abcde"))
    scaler = StandardScaler().set_output(transform="pandas")
    pipeline = make_pipeline(scaler, estimator(max_iter=5))
    name = estimator.__name__.lower()
    grid = [{f"{name}__epsilon": [0.5, 2.0]}, {f"{name}__max_iter": [10]}]
    search = GridSearchCV(pipeline, grid, cv=2).fit(frame, y)
    assert list(search.best_estimator_[-1].feature_names_in_) == list("abcde")
    assert np.isfinite(cross_val_score(pipeline, frame, y, cv=3)).all()


def test_a_configured_solver_can_be_searched(case):
    estimator, X, y = case
    model = estimator(solver=GradientDescent(max_iter=5))
    grid = {"solver__max_iter": [3, 4], "solver__momentum": [0.0, 0.5]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    assert search.best_estimator_.n_iter_ in (3, 4)
    assert clone(model).solver.max_iter == 5


@pytest.mark.parametrize(
    "parameters",
    [
        {"learning_rate": PolynomialStep(0.3, 5.0)},
        {"noise_schedule": "exponential"},
        {"noise_schedule": ExponentialNoise(0.8)},
        {"noise_schedule": CustomNoise(lambda t, n_steps: t)},
        {"noise_schedule": np.linspace(1, 2, 12)},
        {"clip_norm": 3.0},
        {"solver": GradientDescent(max_iter=12, averaging="random", momentum="averaged")},
        {"solver": GradientDescent(max_iter=12, averaging="last", momentum=0.0)},
        {"verbose": 1},
    ],
    ids=lambda value: str(value)[:50],
)
def test_hyperparameters_in_every_form_cost_the_same(case, parameters, capsys):
    estimator, X, y = case
    given = {} if "solver" in parameters else {"max_iter": 12}
    model = estimator(**{"solver": "gd", **given, **parameters}, scaling="none")
    assert clone(model).fit(X, y).privacy_.epsilon == pytest.approx(1.0, rel=1e-6)
    assert model.fit(X, y).n_iter_ == 12
    assert sum(record.count for record in model.privacy_.releases) == 12
    assert ("noise multiplier" in capsys.readouterr().out) == bool(parameters.get("verbose"))


def test_calibration(classification):
    X, y = classification
    model = CalibratedClassifierCV(
        skdp.DPLogisticRegression(classes=[0, 1], epsilon=3.0), cv=2
    ).fit(X, y)
    assert model.predict_proba(X).shape == (400, 2)


def test_joblib_dump(case, tmp_path):
    estimator, X, y = case
    model = estimator().fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.privacy_ == model.privacy_


def test_probabilities(classification):
    X, y = classification
    for labels in (y, y + (X[:, 1] > 1)):
        model = skdp.DPLogisticRegression(classes=np.unique(labels), privacy=seeded(0)).fit(
            X, labels
        )
        probabilities = model.predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), probabilities)
        chosen = model.classes_[probabilities.argmax(axis=1)]
        np.testing.assert_array_equal(chosen, model.predict(X))


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


def test_a_tiny_budget_gives_a_timid_model(regression):
    """Too little budget must end near the constant predictor, not in wild coefficients."""
    X, y = regression
    for epsilon in (1e-3, 1e-2, 1e-1):
        model = skdp.DPRidge(epsilon=epsilon, privacy=seeded(0)).fit(X, y)
        assert np.abs(model.coef_).max() < 2


def test_html_and_repr(case):
    estimator, X, y = case
    model = estimator(epsilon=2.0).fit(X, y)
    assert repr(model).startswith(f"{estimator.__name__}(")
    assert repr(model).endswith("epsilon=2.0)")
    stream = io.StringIO()
    print(model.privacy_, file=stream)
    assert "differentially private" in stream.getvalue()
