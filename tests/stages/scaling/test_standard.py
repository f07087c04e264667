"""Columns that are standardised already are told from all magnitudes together."""

from __future__ import annotations

import numpy as np
import pytest

import skdp
from counting import near_counts
from skdp._oracle import Columns
from skdp._oracle.releases.histograms import N_NEAR
from skdp._oracle.sources.records import Records
from skdp._stages.scaling.distributions import RANGE_IN_SCALES, Histogram
from skdp._stages.scaling.refinements import keep_standardised

N_ROWS = 5000


def found(X, noise, seed=0):
    """Which columns are taken for standardised ones, with so much noise on counts.

    The noise is given as a share of the rows.
    """
    counts = near_counts(Records.of(X, np.zeros((len(X), 1))))
    assert counts.shape == (X.shape[1], N_NEAR)
    std = np.full(X.shape[1], noise * len(X))
    noisy = counts + std[:, None] * np.random.default_rng(seed).standard_normal(counts.shape)
    unit = np.ones(X.shape[1])
    columns = Columns(-9 * unit, 9 * unit, 0 * unit, 2 * unit)
    return keep_standardised(columns, Histogram(noisy / len(X), std / len(X)), True).scale == 1


def tables(rng):
    normal = rng.standard_normal((N_ROWS, 20))
    labels = (rng.random((N_ROWS, 40)) < np.linspace(0.01, 0.5, 40)).astype(float)
    skewed = np.exp(rng.standard_normal((N_ROWS, 20)))
    for name, X in (("normal", normal), ("labels", labels), ("skewed", skewed)):
        yield name, (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("noise", [0.001, 0.03])
def test_standardised_columns_are_known(rng, noise):
    for name, X in tables(rng):
        assert all(found(X, noise, seed).all() for seed in range(20)), name


@pytest.mark.parametrize("noise", [0.001, 0.03])
def test_raw_columns_are_not(rng, noise):
    raw = {
        "labels": (rng.random((N_ROWS, 40)) < 0.2).astype(float),
        "in hundreds": 100 * rng.standard_normal((N_ROWS, 20)),
        "as small as in load_diabetes": 0.0476 * rng.standard_normal((N_ROWS, 10)),
        "in hundredths": 0.01 * rng.standard_normal((N_ROWS, 20)),
        "in units from .01 to 13.6": rng.standard_normal((N_ROWS, 18))
        * np.geomspace(0.01, 13.6, 18),
        "positive": rng.random((N_ROWS, 20)),
        "far from 0": 50 + rng.standard_normal((N_ROWS, 20)),
        "on one side": 0.3 * rng.standard_normal((N_ROWS, 200)) - 0.6,
        "ages": rng.integers(17, 90, (N_ROWS, 20)).astype(float),
    }
    for name, X in raw.items():
        assert not any(found(X, noise, seed).any() for seed in range(20)), name


def test_one_raw_column_among_standardised_ones(rng):
    X = rng.standard_normal((N_ROWS, 150))
    X[:, 3] *= 1000
    assert found(X, 0.002).tolist() == [column != 3 for column in range(150)]


def test_a_narrow_column_far_from_0_among_standardised_ones(rng):
    X = rng.standard_normal((N_ROWS, 10))
    X[:, 3] += 1e6
    for seed in range(20):
        assert found(X, 0.05, seed).tolist() == [column != 3 for column in range(10)]


def test_much_noise_says_nothing(rng):
    assert not found(rng.standard_normal((N_ROWS, 4)), 0.2).any()


def test_a_fit_leaves_them_alone(rng):
    X = rng.standard_normal((20_000, 5))
    model = skdp.DPLinearRegression(
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
    ).fit(X, X[:, 0])
    columns = model.scaling_.columns
    assert columns.scale.tolist() == [1.0] * 5
    assert columns.centre.tolist() == [0.0] * 5
    assert columns.high.tolist() == [RANGE_IN_SCALES] * 5


def test_rare_categories_stay_within_the_range_of_standardised_columns(rng):
    """One in fifty values lies beyond 4 there, and hardly any of normal ones."""
    normal = rng.standard_normal((20_000, 40))
    rare = np.hstack([normal[:, ::2], rng.random((20_000, 20)) < 0.04])
    for X, times in ((normal, 1), (rare, 2)):
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        privacy = skdp.Privacy(noise=skdp.SeededNoise(0))
        model = skdp.DPLogisticRegression(epsilon=3.0, classes=[0, 1], privacy=privacy)
        columns = model.fit(Z, rng.integers(0, 2, 20_000)).scaling_.columns
        assert columns.high == pytest.approx(times * RANGE_IN_SCALES)
