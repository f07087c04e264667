"""Ranges that noise must not ruin, and small spreads around large offsets."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import skdp
from counting import near_counts
from skdp._oracle import Public
from skdp._oracle.sources.records import Records
from skdp._stages.scaling.distributions import Histogram
from skdp._stages.scaling.estimates import coarse_ranges
from skdp._stages.scaling.shares import MAX_SHARE_ALL, scaling_budget
from skdp.accounting import Adjacency

N_ROWS = 2000


def records_of(X):
    return Records.of(X, np.zeros((len(X), 1)))


def columns(rng):
    return {
        "normal": rng.normal(0.0, 3.7, N_ROWS),
        "binary": rng.binomial(1, 0.4, N_ROWS).astype(float),
        "integer": rng.integers(0, 60, N_ROWS).astype(float),
        "offset": rng.normal(152.0, 77.0, N_ROWS),
    }


@pytest.mark.parametrize("kind", ["normal", "binary", "integer", "offset"])
def test_noise_hardly_ever_ruins_a_range(rng, kind):
    values = columns(rng)[kind][:, None]
    exact = near_counts(records_of(values))
    std = np.array([0.05 * N_ROWS])
    reach = np.abs(np.quantile(values, [0.005, 0.995])).max()
    ruined = 0
    for _ in range(150):
        counts = exact + rng.normal(0.0, std[0], exact.shape)
        found = coarse_ranges(Histogram(counts / N_ROWS, std / N_ROWS), exact=False, pooled=False)
        far = max(abs(found.low[0]), abs(found.high[0])) / reach
        assert far < 300
        ruined += not 1 / 4 <= far <= 16
    assert ruined <= 6


def test_one_far_magnitude_of_pure_noise_widens_nothing():
    """At 5 noises: this happens in one of a hundred thousand releases."""
    rng = np.random.default_rng(0)
    values = rng.normal(0.0, 3.7, (N_ROWS, 1))
    counts = near_counts(records_of(values))
    std = np.array([0.02 * N_ROWS])
    counts += rng.normal(0.0, std[0], counts.shape)
    plain = coarse_ranges(Histogram(counts / N_ROWS, std / N_ROWS), exact=False, pooled=False)
    for place in (0, 20, 60, 80):
        spoilt = counts.copy()
        spoilt[0, place] = 5 * std[0]
        found = coarse_ranges(Histogram(spoilt / N_ROWS, std / N_ROWS), exact=False, pooled=False)
        assert (found.low, found.high) == (plain.low, plain.high)


@pytest.mark.parametrize("offset", [1e3, 1e5, -1e6])
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_targets_far_from_zero(offset, epsilon):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((4000, 6))
        y = X[:, :3] @ [1.0, 2.0, 3.0] + offset
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = skdp.DPLinearRegression(
                epsilon=epsilon,
                privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
            ).fit(X, y)
        assert model.score(X, y) > 0.9


@pytest.mark.parametrize("offset", [1e4, 1e9])
def test_columns_far_from_zero_without_noise(rng, offset):
    X = rng.standard_normal((2000, 3))
    y = X @ [1.0, 2.0, 3.0]
    with pytest.warns(skdp.PrivacyWarning):
        model = skdp.DPLinearRegression(epsilon=math.inf).fit(X + offset, y)
    assert model.score(X + offset, y) > 0.999
    np.testing.assert_allclose(model.scaling_.columns.scale, X.std(axis=0), rtol=0.1)


def test_a_column_of_one_value_without_noise(rng):
    X = np.column_stack([rng.standard_normal(500), np.full(500, 7.0), np.zeros(500)])
    with pytest.warns(skdp.PrivacyWarning):
        model = skdp.DPRidge(epsilon=math.inf, scaling="private").fit(X, X[:, 0])
    assert np.isfinite(model.coef_).all()
    assert (model.scaling_.columns.scale >= 1).all()


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("n_rows", [20, 331, 2000, 100_000, 10**7])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0])
def test_shares_add_up(adjacency, n_rows, epsilon):
    for insist in (True, False):
        for features, targets in ((True, True), (True, False), (False, True)):
            public = Public(n_rows, 10, 2, adjacency, epsilon, 1e-6)
            asked = scaling_budget(public, features, targets, insist)
            assert sum(one.share for one in asked) <= MAX_SHARE_ALL + 1e-9


def test_targets_of_tiny_data_do_no_harm():
    """Standardised records that are too few to learn from: a constant near the mean is found."""
    scores = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((331, 10))
        y = X[:, 0] + rng.standard_normal(331)
        y = (y - y.mean()) / y.std()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = skdp.DPLinearRegression(
                epsilon=0.1,
                privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
            ).fit(X, y)
        scores.append(model.score(X, y))
    assert np.mean(scores) > -0.1
