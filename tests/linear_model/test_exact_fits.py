"""Without noise, default fits are those of scikit-learn to six digits and more."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning

import skdp
from skdp.solvers.core.newton import Newton

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning"),
    pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning"),
]
N_ROWS, MARGIN = 500, np.array([0.4, -0.3, 0.2, 0.1])
SIZES, CENTRES = 10.0 ** np.arange(-3, 5, 2), [10.0, 0.0, 1e2, 1e4]
COLUMNS = {
    "ordinary": lambda Z: Z,
    "lognormal": np.exp,
    "correlated": lambda Z: Z.sum(axis=1, keepdims=True) + 0.01 * Z,
    "raw units": lambda Z: SIZES * Z + CENTRES,
}
EXACT, TIGHT = {"epsilon": math.inf}, {"tol": 1e-13, "max_iter": 1000, "solver": "newton-cholesky"}
COUNTS = {"scaling": skdp.PublicRange(target=1e3), **EXACT}
# Estimators, those of scikit-learn without a penalty, and the kind of the targets.
TWINS = {
    "linear": (skdp.DPLinearRegression(**EXACT), linear_model.LinearRegression(), "y"),
    "ridge": (skdp.DPRidge(1e-12, **EXACT), linear_model.LinearRegression(), "y"),
    "logistic": (
        skdp.DPLogisticRegression(C=np.inf, classes=[0, 1], **EXACT),
        linear_model.LogisticRegression(C=np.inf, **TIGHT),
        "label",
    ),
    "multinomial": (
        skdp.DPLogisticRegression(C=np.inf, classes=[0, 1, 2], **EXACT),
        linear_model.LogisticRegression(C=np.inf, **TIGHT),
        "class",
    ),
    "poisson": (
        skdp.DPPoissonRegressor(alpha=0.0, **COUNTS),
        linear_model.PoissonRegressor(alpha=0.0, **TIGHT),
        "count",
    ),
    "gamma": (
        skdp.DPGammaRegressor(alpha=0.0, **COUNTS),
        linear_model.GammaRegressor(alpha=0.0, **TIGHT),
        "amount",
    ),
    "tweedie": (
        skdp.DPTweedieRegressor(power=1.5, alpha=0.0, **COUNTS),
        linear_model.TweedieRegressor(power=1.5, alpha=0.0, **TIGHT),
        "count",
    ),
}


def data(columns):
    """Columns, the same ones standardised, and targets by kind."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((N_ROWS, 4))
    X, m = COLUMNS[columns](Z), Z @ MARGIN
    y = m + rng.standard_normal(N_ROWS)
    targets = {
        "y": y,
        "label": (y > 0).astype(int),
        "class": np.digitize(y, [-0.7, 0.7]),
        "count": rng.poisson(np.exp(m)),
        "amount": rng.gamma(2.0, np.exp(m) / 2),
    }
    return X, (X - X.mean(axis=0)) / X.std(axis=0), targets


def predictions(model, X):
    """Predicted probabilities, the logarithms of predicted means, or predicted targets."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    values = model.predict(X)
    return np.log(values) if values.min() > 0 else values


@pytest.mark.parametrize("scaling", ["auto", "none"])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("name", TWINS)
def test_fits_without_a_penalty_are_those_of_scikit_learn(name, columns, scaling):
    model, twin, kind = TWINS[name]
    X, Z, targets = data(columns)
    model.set_params(scaling=scaling).fit(X, targets[kind])
    expected = predictions(twin.fit(Z, targets[kind]), Z)
    np.testing.assert_allclose(predictions(model, X), expected, atol=1e-6 * expected.std())
    assert type(model.solver_) is Newton


@pytest.mark.parametrize("columns", COLUMNS)
def test_penalties_in_the_units_of_columns_are_those_of_scikit_learn(columns):
    X, _, targets = data(columns)
    model = skdp.DPRidge(3.0, scaling="none", **EXACT).fit(X, targets["y"])
    expected = linear_model.Ridge(3.0, solver="svd").fit(X, targets["y"])
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)


@pytest.mark.parametrize("columns", COLUMNS)
def test_huber_residuals_are_orthogonal_to_columns(columns):
    X, Z, targets = data(columns)
    y = np.where(np.arange(N_ROWS) % 10, targets["y"], 50.0)
    model = skdp.DPHuberRegressor(1.35, alpha=0.0, scaling="none", **EXACT).fit(X, y)
    residuals = np.clip(model.predict(X) - y, -1.35, 1.35)
    np.testing.assert_allclose(Z.T @ residuals, 0.0, atol=1e-6)
    assert residuals.sum() == pytest.approx(0.0, abs=1e-6)


KINKS = {
    "quantile": (skdp.DPQuantileRegressor(0.9, **EXACT), "y"),
    "svc": (skdp.DPLinearSVC(C=np.inf, classes=[0, 1], **EXACT), "label"),
}


@pytest.mark.parametrize("columns", ["correlated", "raw units"])
@pytest.mark.parametrize("name", KINKS)
def test_smoothed_kinks_are_minimised_in_any_coordinates(name, columns):
    model, kind = KINKS[name]
    values = []
    for form in ("ordinary", columns):
        X, _, targets = data(form)
        model.set_params(scaling="none").fit(X, targets[kind])
        values.append(X @ model.coef_.ravel() + model.intercept_)
        assert type(model.solver_) is Newton
    np.testing.assert_allclose(values[1], values[0], atol=1e-6)


def weights():
    return np.random.default_rng(1).exponential(size=N_ROWS)


ROWS = {
    "sparse": (sparse.csr_array, {}, None),
    "single precision": (lambda X: X.astype(np.float32), {}, None),
    "weights": (np.asarray, {"sample_weight": weights()}, weights()),
    "groups": (np.asarray, {"groups": np.repeat(range(100), 5)}, None),
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", ["linear", "multinomial", "poisson"])
def test_every_kind_of_rows(name, rows):
    model, twin, kind = TWINS[name]
    form, given, sample_weight = ROWS[rows]
    X, _, targets = data("ordinary")
    X = form(X)
    model.set_params(scaling="auto").fit(X, targets[kind], **given)
    dense = X.toarray() if sparse.issparse(X) else X.astype(float)
    expected = predictions(twin.fit(dense, targets[kind], sample_weight), dense)
    np.testing.assert_allclose(predictions(model, X), expected, atol=1e-5)
    assert type(model.solver_) is Newton


def test_directions_that_nothing_determines_stay_at_the_start():
    """A column twice, one of zeros and a sum: the coefficients of equal columns are equal."""
    X, _, targets = data("ordinary")
    X = np.column_stack([X, X[:, 0], np.zeros(N_ROWS), X[:, 1] + X[:, 2]])
    model = skdp.DPLinearRegression(**EXACT).fit(X, targets["y"])
    expected = linear_model.LinearRegression().fit(X, targets["y"])
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-9)
    assert model.coef_[0] == pytest.approx(model.coef_[4], rel=1e-6)
    assert model.coef_[5] == 0


def test_too_few_steps_warn():
    X, _, targets = data("ordinary")
    model = skdp.DPLogisticRegression(classes=[0, 1], solver=Newton(max_iter=2), **EXACT)
    with pytest.warns(ConvergenceWarning, match="stopped before"):
        model.fit(X, targets["label"])


def test_hyperparameters_and_noise_leave_the_choice_as_it_is():
    X, _, targets = data("ordinary")
    for given in ({"max_iter": 50}, {"solver": "whitened"}, {"epsilon": 1e6}):
        model = skdp.DPRidge(**{**EXACT, **given})
        assert model.fit(X, targets["y"]).solver_.name == "whitened"
    with pytest.raises(ValueError, match="solver 'newton' is for epsilon=inf"):
        skdp.DPRidge(solver=Newton()).fit(X, targets["y"])
