"""Calibration inside the estimators: where it is had, what it leaves alone, what it is good for."""

from __future__ import annotations

import functools
import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss

import skdp
from replays import seeded
from skdp._fitting.user_warnings import NoiseWarning
from skdp._stages.calibration import (
    LEAST_SLOPE,
    MOST_SLOPE,
    GaussianPosterior,
    Recalibration,
)
from skdp.solvers import GradientDescent

LOGISTIC = functools.partial(skdp.DPLogisticRegression, classes=[0, 1])


class Uncalibrated(skdp.DPLogisticRegression):
    """Logistic regression without a calibration."""

    _calibrates = False


UNCALIBRATED = functools.partial(Uncalibrated, classes=[0, 1])


def is_calibrated(**parameters):
    statement = LOGISTIC(**parameters).plan(2000, 6)
    return statement.releases[-1].kind == "calibration"


# ---------------------------------------------------------------------- where it is had

REPLACED = skdp.Privacy(adjacency="replace_one")
POSSIBLE = [
    {},
    {"epsilon": 0.01},
    {"epsilon": 100.0},
    {"C": 0.1},
    {"C": math.inf},
    {"privacy": REPLACED},
    {"fit_intercept": False},
    {"scaling": skdp.PublicRange(-1.0, 1.0)},
    {"class_weight": {0: 2.0}},
    {"solver": "gd"},
    {"solver": "whitened"},
    {"solver": GradientDescent()},
    {"max_iter": 50},
    {"learning_rate": 0.1},
    {"momentum": 0.5},
    {"solver": ("auto", {"batch_size": 64})},
    {"noise_schedule": "exponential"},
    {"clip_norm": 1.0},
]
IMPOSSIBLE = [
    ({"l1_ratio": 1.0}, "no L1 penalty, no constraint"),
    ({"l1_ratio": 0.5}, "no L1 penalty, no constraint"),
    ({"constraint": skdp.objective.L2Ball()}, "no L1 penalty, no constraint"),
    ({"delta": 0.0}, "delta > 0"),
    ({"privacy": REPLACED, "delta": 0.0}, "delta > 0"),
    ({"solver": "residual_budget"}, "a solver that plans its noise beforehand"),
]


@pytest.mark.parametrize("parameters", POSSIBLE, ids=str)
def test_fits_with_every_solver_are_calibrated(parameters):
    assert is_calibrated(**parameters)


@pytest.mark.parametrize("scaling", ["none", skdp.RowNorm(3.0)], ids=str)
def test_fits_to_records_as_they_are_are_not_calibrated(scaling):
    """The solver's own releases, and no others."""
    for solver in ("auto", "gd"):
        chosen = {"solver": solver, "scaling": scaling}
        plain = UNCALIBRATED(**chosen).plan(2000, 6)
        assert LOGISTIC(**chosen).plan(2000, 6).releases == plain.releases


@pytest.mark.parametrize(("parameters", "needs"), IMPOSSIBLE, ids=str)
def test_a_fit_that_cannot_be_calibrated_says_so(parameters, needs):
    assert not is_calibrated(**parameters)
    (note,) = [n for n in LOGISTIC(**parameters).plan(2000, 6).notes if "calibration" in n]
    assert needs in note


def test_without_privacy_nothing_changes(classification):
    X, y = classification
    fits = []
    for model in (LOGISTIC, UNCALIBRATED):
        with pytest.warns(skdp.PrivacyWarning):
            fits.append(model(epsilon=math.inf).fit(X, y))
    for fit in fits:
        assert {record.kind for record in fit.privacy_.releases}.isdisjoint({"calibration"})
        assert (fit.coef_ == fits[0].coef_).all()
        assert (fit.intercept_ == fits[0].intercept_).all()


def test_streams_are_not_calibrated(rng):
    def blocks():
        for _ in range(4):
            X = rng.standard_normal((500, 3))
            yield X, (X[:, 0] > 0).astype(int)

    model = LOGISTIC(scaling="none", privacy=seeded())
    model.fit_blocks(blocks(), n_samples=2000, n_features=3)
    assert "calibration" not in {record.kind for record in model.privacy_.releases}


# ---------------------------------------------------------------------- what it leaves alone


def fitted(X, y, patch, **parameters):
    """A fit, and the parameter before and after its calibration."""
    seen, original = [], Recalibration.run

    def watched(self, oracle, solution):
        found = original(self, oracle, solution)
        if not oracle.is_rehearsal:
            seen.append((solution.coef.copy(), found.coef))
        return found

    with patch.context() as here:
        here.setattr(Recalibration, "run", watched)
        model = LOGISTIC(privacy=seeded(), **parameters).fit(X, y)
    [(before, after)] = seen
    return model, before, after


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("layout", [np.asarray, np.float32, sparse.csr_array])
def test_the_order_of_binary_predictions_stays(classification, monkeypatch, layout, epsilon):
    X, y = classification
    given = {"scaling": skdp.PublicRange(-3.0, 3.0)}
    model, before, after = fitted(layout(X), y, monkeypatch, epsilon=epsilon, **given)
    slope = after[0, 0] / before[0, 0]
    assert LEAST_SLOPE * (1 - 1e-9) <= slope <= MOST_SLOPE * (1 + 1e-9)
    np.testing.assert_allclose(after[:-1], slope * before[:-1], rtol=1e-12)
    scores = np.clip(X, -3.0, 3.0) @ before[:-1, 0]
    order = np.argsort(model.decision_function(layout(X)))
    assert np.diff(scores[order]).min() > -1e-6 * np.abs(scores).max()


@pytest.mark.parametrize("n_classes", [3, 4])
def test_the_most_probable_class_stays(rng, monkeypatch, n_classes):
    X = rng.standard_normal((600, 4))
    y = np.argmax(X + rng.gumbel(size=X.shape), axis=1) % n_classes
    _, before, after = fitted(X, y, monkeypatch, epsilon=2.0, classes=range(n_classes))
    np.testing.assert_allclose(after, after[0, 0] / before[0, 0] * before, rtol=1e-12)
    assert after[0, 0] / before[0, 0] > 0


def test_without_an_intercept_there_is_no_shift(classification, monkeypatch):
    X, y = classification
    model, before, after = fitted(X, y, monkeypatch, fit_intercept=False)
    np.testing.assert_allclose(after, after[0, 0] / before[0, 0] * before, rtol=1e-12)
    assert model.intercept_ == 0


# ---------------------------------------------------------------------- what it is good for


def mean_log_loss(make, adjacency, seeds=6):
    """Expected log loss of fits to rows with little signal, on rows never seen."""
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        coef = 0.1 * rng.standard_normal(20)
        X, X_test = rng.standard_normal((5000, 20)), rng.standard_normal((20000, 20))
        y = (rng.random(5000) < 1 / (1 + np.exp(-X @ coef))).astype(int)
        p = 1 / (1 + np.exp(-X_test @ coef))
        model = make(
            classes=[0, 1],
            epsilon=0.1,
            privacy=seeded(seed, adjacency=adjacency),
        ).fit(X, y)
        margins = model.decision_function(X_test)
        found.append(np.mean(np.logaddexp(0, margins) - p * margins))
    return np.mean(found)


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_weak_signals_are_better_calibrated(adjacency, monkeypatch):
    """By more than any fixed slope could that is not far below what is expected."""
    plain = mean_log_loss(UNCALIBRATED, adjacency)
    assert mean_log_loss(LOGISTIC, adjacency) < plain - 0.03
    # Mutant: a budget for the calibration, and a model that is left as it was.
    monkeypatch.setattr(GaussianPosterior, "best", property(lambda self: np.array([1.0, 0.0])))
    assert mean_log_loss(LOGISTIC, adjacency) > plain - 0.01


def test_hopeless_fits_are_hardly_worse_than_a_constant():
    """Raw columns whose centres no histogram shows: noise on coefficients moves all margins."""
    X, y = load_breast_cancer(return_X_y=True)
    losses = []
    for seed in range(12):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:426], order[426:]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoiseWarning)
            model = LOGISTIC(epsilon=0.1, privacy=seeded(seed)).fit(X[train], y[train])
        losses.append(log_loss(y[test], model.predict_proba(X[test])))
    assert np.mean(losses) < 0.82  # a constant has 0.66; without shrinkage it was 0.94
