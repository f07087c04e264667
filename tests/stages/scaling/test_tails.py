"""Sizes of targets with long tails, and of others, which stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

import skdp
from skdp._oracle import Columns
from skdp._oracle.public import TARGET_RANGE
from skdp._oracle.releases.histograms import N_NEAR, MagnitudeCounts
from skdp._stages.scaling.distributions import Bins, Histogram, Ranges, z_of_largest
from skdp._stages.scaling.refinements import _beyond_the_seen, _least_sum, extrapolate_tails

N_ROWS, N_BINS = 20_000, 32
LAWS = {
    "normal": lambda rng: rng.standard_normal(N_ROWS),
    "far from 0": lambda rng: 1e6 + rng.standard_normal(N_ROWS),
    "uniform": lambda rng: rng.random(N_ROWS),
    "exponential": lambda rng: rng.exponential(3.0, N_ROWS),
    "two values": lambda rng: (rng.random(N_ROWS) < 0.1).astype(float),
    "heaped at its end": lambda rng: np.minimum(rng.exponential(2.0, N_ROWS), 5.0),
    "lognormal": lambda rng: np.exp(10 + rng.standard_normal(N_ROWS)),
    "long": lambda rng: np.exp(10 + 2 * rng.standard_normal(N_ROWS)),
    "long, negative": lambda rng: -np.exp(2 * rng.standard_normal(N_ROWS)),
    "long on both sides": lambda rng: rng.standard_t(2.5, N_ROWS),
}


def read(y, noise, rng, cut):
    """Sizes before and after, where histograms ended at a quantile; noise as a share of rows."""
    low, high = np.quantile(y, [cut, 1 - cut])
    ranges = Ranges(np.array([low]), np.array([high]))
    inside = np.clip(y, low, high)
    counts = np.histogram(inside, N_BINS, (low, high))[0][None].astype(float)
    whole = np.bincount(MagnitudeCounts(False, True).bins(y, 0), minlength=N_NEAR)[None].astype(
        float
    )
    before = Columns(low, high, inside.mean(), inside.std())
    noise = np.array([noise])
    bins, by_magnitude = (
        one / len(y) + noise * rng.standard_normal(one.shape) for one in (counts, whole)
    )
    bins, by_magnitude = Bins(bins, noise, ranges), Histogram(by_magnitude, noise)
    after = extrapolate_tails(before, bins, by_magnitude, ranges)
    assert after.centre == before.centre
    half = TARGET_RANGE * after.scale
    assert after.low <= np.maximum(before.low, before.centre - half)
    assert after.high >= np.minimum(before.high, before.centre + half)
    return float(before.scale[0]), float(after.scale[0]), after


def cut_size(y, cut=0.001):
    """Deviation of values within the range that sizes are meant for."""
    return float(np.clip(y, *np.quantile(y, [cut, 1 - cut])).std())


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_what_a_weibull_tail_adds_is_its_integral(exponent):
    """Distances log(1/s)**b, seen down to s = 0.05: the mean square beyond that."""
    shares = np.array([0.55, 0.2, 0.1, 0.05])
    distances = np.log(1 / shares) ** exponent
    points = np.vstack([distances, shares, np.full(4, 1e-4)])
    all_shares = (np.arange(2_000_000) + 0.5) * (0.05 / 2_000_000)
    beyond = np.mean(np.log(1 / all_shares) ** (2 * exponent) - distances[-1] ** 2) * 0.05
    found = _beyond_the_seen(points, distances[-1], z_of_largest(points.shape[1]))
    assert found == pytest.approx(beyond, rel=0.1)  # 0.27 less where 0.1 % are left out at b = 2
    assert found < beyond


@pytest.mark.parametrize(("noise", "most"), [(0.0003, 1.02), (0.003, 1.06), (0.01, 1.3)])
@pytest.mark.parametrize("law", ["normal", "far from 0", "uniform", "two values"])
def test_sizes_without_a_tail_stay(rng, law, noise, most):
    for _ in range(10):
        before, after, _ = read(LAWS[law](rng), noise, rng, 0.002)
        assert before <= after < most * before


@pytest.mark.parametrize("noise", [0.0003, 0.003, 0.01])
@pytest.mark.parametrize("law", ["exponential", "heaped at its end"])
def test_short_tails_add_little(rng, law, noise):
    before, after, _ = read(LAWS[law](rng), noise, rng, 0.01)
    assert before <= after < 1.4 * before


@pytest.mark.parametrize("noise", [0.0003, 0.003])
@pytest.mark.parametrize("law", ["lognormal", "long", "long, negative", "long on both sides"])
def test_long_tails_get_a_size_nearer_to_theirs(rng, law, noise):
    y = LAWS[law](rng)
    before, after, found = read(y, noise, rng, 0.04)
    wanted = cut_size(y)
    assert before < 0.8 * wanted
    assert abs(np.log(after / wanted)) < 0.9 * abs(np.log(before / wanted))
    assert after < 2 * wanted
    # The range follows: 4 sizes on both sides of the centre.
    assert found.high == pytest.approx(found.centre + 4 * after)
    assert found.low == pytest.approx(found.centre - 4 * after)


def test_the_mean_square_of_a_weibull_tail_is_what_it_should_be(rng):
    # No noise, and the law that the rule is for: quantiles grow as log(1 / share) ** 1.5.
    y = rng.exponential(1.0, 1_000_000) ** 1.5
    before, after, _ = read(y, 1e-9, rng, 0.02)
    assert before < 0.85 * cut_size(y)
    assert after == pytest.approx(cut_size(y), rel=0.05)


@pytest.mark.parametrize("law", LAWS)
def test_what_drowns_in_noise_is_no_tail(rng, law):
    y = LAWS[law](rng)
    sizes = [read(y, 0.3, rng, 0.04)[:2] for _ in range(30)]
    assert np.mean([after > 1.2 * before for before, after in sizes]) < 0.1


@pytest.mark.parametrize(("epsilon", "least"), [(1.0, 0.28), (0.3, 0.25)])
def test_a_long_tailed_target_is_learnt(rng, epsilon, least):
    X = rng.standard_normal((15_000, 10))
    y = np.exp(10 + X @ np.full(10, 0.25) + 0.6 * rng.standard_normal(15_000))
    settings = {
        "epsilon": epsilon,
        "privacy": skdp.Privacy(noise=skdp.SeededNoise(0)),
    }
    model = skdp.DPLinearRegression(**settings).fit(X, y)
    assert model.score(X, y) > least
    assert model.scaling_.targets.scale[0] > 0.6 * cut_size(y)


@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_sums_of_values_are_bounded_from_below_by_counts(noise):
    rng, distance = np.random.default_rng(0), np.linspace(0.05, 12.0, 240)
    beyond = 1000 * np.exp(-distance) + noise * rng.standard_normal(240)
    points = np.vstack([distance, beyond, np.full(240, noise)])
    assert 850 < _least_sum(points, z_of_largest(points.shape[1])) < 1000


def test_centres_for_log_links_are_means_of_long_tails():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, 3))
    y = np.exp(3 + X[:, 0] + 1.5 * rng.standard_normal(N_ROWS))
    model = skdp.DPPoissonRegressor(epsilon=3.0, privacy=skdp.Privacy(noise=skdp.SeededNoise(0)))
    centre = model.fit(X, y).scaling_.targets.centre[0]
    assert 0.4 * y.mean() < centre < 1.2 * y.mean()
