"""Intervals hold the exact score of the same rows as often as they say."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn import metrics as plain
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

import skdp
from skdp.metrics import evaluate

REPETITIONS = 1000
OF_CLASSES = [
    "accuracy",
    "balanced_accuracy",
    "precision",
    "recall",
    "f1",
    "log_loss",
    "roc_auc",
]
OF_NUMBERS = ["r2", "root_mean_squared_error", "mean_absolute_error"]


def exactly(model, X, y, name, **options):
    """The exact score; an AUC without bins."""
    if name == "roc_auc":
        return plain.roc_auc_score(y, model.predict_proba(X)[:, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", skdp.PrivacyWarning)
        return evaluate(model, X, y, name, epsilon=math.inf, **options)[name].value


def seeded(seed):
    return skdp.Privacy(noise=skdp.SeededNoise(seed))


def covered(model, X, y, name, exact, **options):
    """Shares of intervals that hold the exact score, and of those that say nothing."""
    held = empty = 0
    for seed in range(REPETITIONS):
        score = evaluate(model, X, y, name, privacy=seeded(seed), **options)[name]
        low, high = score.interval(0.95)
        held += low <= exact <= high
        empty += (low, high) == score.limits
    return held / REPETITIONS, empty / REPETITIONS


def classes(n_rows, base):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n_rows, 5))
    chance = 1 / (1 + np.exp(-(X @ [1.0, -1.0, 0.5, 0.0, 0.0] + base)))
    y = (rng.random(n_rows) < chance).astype(int)
    return LogisticRegression().fit(X, y), X, y


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_CLASSES)
@pytest.mark.parametrize("base", [0.0, -3.0], ids=["even", "rare"])
@pytest.mark.parametrize("n_rows", [500, 3000, 30_000])
def test_two_classes(n_rows, base, name):
    model, X, y = classes(n_rows, base)
    share, empty = covered(model, X, y, name, exactly(model, X, y, name))
    # An interval that says that noise leaves nothing to say is never wrong.
    assert 0.925 <= share <= max(0.975, 0.95 + empty)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["roc_auc", "f1", "neg_log_loss"])
def test_small_subgroups(name):
    """Bins of an AUC by the counts of 300 rows alone, which noise exceeds, would cover 0.88."""
    model, X, y = classes(3000, 0.0)
    labels = np.repeat([0, 1], [2700, 300])
    if name == "roc_auc":
        exact = plain.roc_auc_score(y[labels == 1], model.predict_proba(X[labels == 1])[:, 1])
    else:
        exact = exactly(model, X[labels == 1], y[labels == 1], name)
    held = 0
    for seed in range(REPETITIONS):
        options = {"by": labels, "subgroups": [0, 1], "privacy": seeded(seed)}
        low, high = evaluate(model, X, y, name, **options)[1][name].interval(0.95)
        held += low <= exact <= high
    assert 0.925 <= held / REPETITIONS <= 0.975


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize("n_rows", [500, 30_000])
def test_numbers(n_rows, name):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n_rows, 3))
    y = X @ [1.0, -1.0, 0.5] + rng.standard_normal(n_rows)
    model, options = LinearRegression().fit(X, y), {"target_range": (-6.0, 6.0)}
    exact = exactly(model, X, y, name, **options)
    share, empty = covered(model, X, y, name, exact, **options)
    assert 0.925 <= share <= max(0.975, 0.95 + empty)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["mean_poisson_deviance", "mean_gamma_deviance", "mean_pinball_loss", "d2_tweedie"],
)
@pytest.mark.parametrize("n_rows", [500, 30_000])
def test_positive_numbers(n_rows, name):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n_rows, 3))
    y = rng.gamma(2.0, np.exp(X @ [0.5, -0.5, 0.0]))
    model, options = PoissonRegressor(alpha=0).fit(X, y), {"target_range": (0.0, 20.0)}
    exact = exactly(model, X, y, name, **options)
    share, empty = covered(model, X, y, name, exact, **options)
    assert 0.925 <= share <= max(0.975, 0.95 + empty)
