"""Rivals spend their budget and no more, and find least squares if it is large."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.linear_model import LinearRegression

from benchmarks.methods import mixing
from benchmarks.methods.simple_regression import TheilSen
from benchmarks.registry import Split, methods


def split_of(n_rows, n_columns, noise):
    """Columns in [0, 1], and targets that are linear but for noise."""
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, n_columns))
    y = np.clip(
        0.1 + X @ np.full(n_columns, 0.7 / n_columns) + noise * rng.normal(size=n_rows), 0, 1
    )
    return Split(X, X, y, y, False)


@pytest.mark.parametrize(
    ("name", "n_columns", "epsilon"),
    [("IHM", 4, 1e3), ("GaussMix", 4, 1e3), ("TukeyEM", 4, 10.0), ("NoisyStats", 1, 1e3),
     ("DPTheilSen", 1, 1e3)],
)  # fmt: skip
def test_the_mean_of_fits_with_a_large_budget_is_least_squares(name, n_columns, epsilon):
    split = split_of(2_000, n_columns, 0.2)
    make, (X, y) = methods()[name].make, (split.X_train, split.y_train)
    found = [make(split, epsilon, 1e-6, seed).fit(X, y).predict(X) for seed in range(40)]
    right = LinearRegression().fit(X, y).predict(X)
    assert np.mean(found, axis=0) == pytest.approx(right, abs=0.03)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_sketches_cost_no_more_than_their_epsilon(epsilon):
    # Of k normal sums with variance 1, or 1 - 1/gamma, the loss depends on their squares alone.
    k, delta = 50, 1e-6
    gamma = mixing.least_gamma(k, 1, epsilon, delta)
    assert mixing.least_gamma(k, 3, epsilon, delta) > gamma
    less = 1 - 1 / gamma
    rate = (1 / less - 1) / 2
    reach = (epsilon - k / 2 * math.log(less)) / rate  # squares where the loss is epsilon
    above = chi2.sf(reach, k) - math.exp(epsilon) * chi2.sf(reach / less, k)
    reach = (-epsilon - k / 2 * math.log(less)) / rate
    below = chi2.cdf(reach / less, k) - math.exp(epsilon) * chi2.cdf(reach, k)
    assert max(above, below) <= delta


@pytest.mark.parametrize("zeroed", [True, False])
def test_a_record_moves_the_sums_of_noisy_stats_by_at_most_their_bound(zeroed):
    rng, most, n = np.random.default_rng(0), 0.0, 12
    for _ in range(2_000):
        x, y = rng.integers(2, size=(2, n)).astype(float)
        changed = x.copy(), y.copy()
        changed[0][0], changed[1][0] = (0.5, 0.5) if zeroed else rng.integers(2, size=2)
        sums = [np.sum((u - u.mean()) * (v - v.mean())) for u, v in ((x, y), changed)]
        most = max(most, abs(sums[1] - sums[0]))
    assert most <= (0.75 if zeroed else 1.0) * (1 - 1 / n) + 1e-12


def test_the_median_of_theil_sen_has_its_density():
    split = split_of(10, 1, 0.1)
    model = TheilSen(split, 1.0, 0.0, 0)
    drawn = np.array([model.median(np.array([0.2, 0.6, 0.6]), 1.0) for _ in range(20_000)])
    widths, ranks = np.array([0.7, 0.4, 0.9]), np.array([1.5, 0.5, 1.5])
    right = widths * np.exp(-ranks)
    found = np.histogram(drawn, [-0.5, 0.2, 0.6, 1.5])[0] / len(drawn)
    assert found == pytest.approx(right / right.sum(), abs=0.015)
