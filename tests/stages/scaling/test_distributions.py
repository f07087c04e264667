"""Candidate distributions of columns, and estimates from all histograms of a column at once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import ndtr

import skdp
from counting import near_counts
from skdp._oracle.releases.histograms import N_NEAR
from skdp._oracle.sources.records import Records
from skdp._stages.scaling.distributions import (
    LOG2_STDS,
    LOG2_WIDTHS,
    LOG_UNLIKELY,
    RANGE_IN_SCALES,
    TAIL_SHARE,
    ZERO_SHARES,
    Bins,
    Histogram,
    Ranges,
    Table,
    by_magnitude,
    families,
    locations,
    lognormal,
    normal,
    posteriors,
    prior,
    with_zeros,
)
from skdp._stages.scaling.estimates import coarse_ranges, estimate

N_ROWS = 2000


def members():
    """Families by their own numbers, next to functions that draw values of them at location 1."""
    for centre, scale in [(0.0, 1.0), (-1.0, 1.0), (6.0, 1 / 6), (-23.0, 0.06)]:
        yield normal(centre, scale), lambda z, u, c=centre, s=scale: s * (c + z)
    for log_std, positive in itertools.product(LOG2_STDS, (0.0, 0.5, 1.0)):
        yield (
            lognormal(log_std, positive),
            lambda z, u, s=log_std, p=positive: np.where(u < p, 1, -1) * 2.0 ** (s * z),
        )
    for zeros, sign, octaves in itertools.product(ZERO_SHARES, (-1.0, 1.0), LOG2_WIDTHS):
        yield (
            with_zeros(zeros, sign, octaves),
            lambda z, u, p=zeros, s=sign, w=octaves: np.where(
                u < p, 0.0, s * 2.0 ** (w * np.clip((u - p) / (1 - p), 0, 1))
            ),
        )


def test_probabilities_are_those_of_samples(rng):
    points = np.array([-40.0, -3.0, -0.3, 0.0, 0.2, 0.9, 1.7, 6.0, 90.0])
    shapes = Table.of(points, np.array([-1.0, 0.0])).by_bin.reshape(10, len(families()), 2)
    assert shapes.sum(axis=0) == pytest.approx(1.0, abs=1e-5)
    z, u = rng.standard_normal(200_000), rng.random(200_000)
    with np.errstate(divide="ignore"):
        for family, draw in members():
            seen = np.mean(draw(z, u)[:, None] < points, axis=0)
            assert family.below(points) == pytest.approx(seen, abs=0.006), family
        for place, family in enumerate(families()):
            for location, unit in enumerate((0.5, 1.0)):
                below = np.cumsum(shapes[:, place, location])[:-1]
                assert below == pytest.approx(family.below(points / unit), abs=1e-5)


def test_moments_are_those_of_samples(rng):
    z, u = rng.standard_normal(200_000), rng.random(200_000)
    for family, draw in members():
        values = draw(z, u)
        mean, scale, half_width = values.mean(), values.std(), RANGE_IN_SCALES
        if np.abs(values).max() > 50:  # lognormal
            continue
        half_width = max(half_width, np.abs(values - mean).max() / scale * ((values == 0).any()))
        assert family.mean == pytest.approx(mean, abs=0.03 * scale)
        assert family.scale == pytest.approx(scale, rel=0.05)
        assert family.half_width == pytest.approx(half_width, rel=0.05)


@pytest.mark.parametrize("log_std", LOG2_STDS)
def test_standardised_lognormal_columns_are_standardised_without_their_tail(log_std):
    family = lognormal(log_std, 1.0, is_standardised=True)
    points = np.linspace(-3.0, 300.0, 2_000_000)
    with np.errstate(divide="ignore"):
        shares = np.diff(family.below(points))
    middles, inside = (points[1:] + points[:-1]) / 2, np.cumsum(shares) < 1 - TAIL_SHARE
    assert shares[inside] @ middles[inside] == pytest.approx(0.0, abs=0.02)
    assert shares[inside] @ middles[inside] ** 2 == pytest.approx(1.0, abs=0.02)
    assert (family.mean, family.scale) == (0.0, 1.0)


def test_probabilities_of_magnitudes_add_up_to_1():
    shapes = by_magnitude().by_bin
    assert shapes.shape == (N_NEAR, prior().size)
    assert shapes.sum(axis=0) == pytest.approx(1.0, abs=1e-5)
    assert shapes.min() >= 0
    assert prior().sum() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("low", "high"), [(-16.0, 64.0), (0.0, 4.0**-18), (-(4.0**19), -(4.0**17)), (30.0, 55.0)]
)
def test_tables_of_kinds_of_ranges_are_those_of_each_range(low, high, rng):
    """A range has the probabilities of its kind, with locations in units of it."""
    ranges = Ranges(np.array([1.0, low]), np.array([2.0, high]))
    exact = Table.of(np.linspace(low, high, 9)[1:-1], locations()).by_bin
    weights = rng.random((2, exact.shape[1])) / exact.shape[1]
    shares = rng.random((2, 8))
    bins = Bins(shares, np.array([0.5, 0.5]), ranges)
    every = np.arange(prior().size)
    assert bins.mixed(weights, every)[1] == pytest.approx(exact @ weights[1], abs=1e-3)
    expected = shares[1] @ exact - np.square(exact).sum(axis=0) / 2
    logs = np.zeros((2, *prior().shape))
    bins.add_log_likelihood(logs)
    assert logs[1].ravel() == pytest.approx(expected / 0.2501, abs=0.05)


def read(X, low, high, noise, rng, centred=True, is_features=True):
    """What is found of the columns of X from magnitudes and 8 bins with this share of noise."""
    n_rows, n_columns = X.shape

    def noisy(counts):
        noises = noise * rng.standard_normal(counts.shape)
        return counts / n_rows + noises, np.full(n_columns, noise)

    edges = np.linspace(low, high, 9)[1:-1]
    bins = np.apply_along_axis(
        lambda x: np.bincount(np.searchsorted(edges, x, side="right"), minlength=8), 0, X
    ).T
    ranges = Ranges(np.full(n_columns, low), np.full(n_columns, high))
    magnitudes = near_counts(Records.of(X, np.zeros((n_rows, 1))))
    counted = Histogram(*noisy(magnitudes)), Bins(*noisy(bins), ranges)
    return estimate(*counted, is_features, centred)


@pytest.mark.parametrize(
    ("mean", "size", "low", "high"), [(20.0, 5.0, -16.0, 64.0), (-9.0, 3.0, -64.0, 4.0)]
)
def test_columns_are_read_though_their_counts_nearly_drown(mean, size, low, high, rng):
    X = mean + size * rng.standard_normal((N_ROWS, 10))
    found = read(X, low, high, 0.04, rng)
    assert np.abs(found.centre - mean).max() < 1.2 * size
    assert size / 2 < found.scale.min() <= found.scale.max() < 2 * size
    around = read(X, low, high, 0.04, rng, centred=False)
    assert not around.centre.any()
    assert around.scale == pytest.approx(np.hypot(mean, size), rel=0.4)
    assert np.all((around.low < 0) & (around.high > 0))


def test_noise_in_empty_bins_makes_no_skewed_target_wide(rng):
    """Two bins hold it; noise in the other six must not make a tail of it."""
    y = np.exp(0.8 * rng.standard_normal((N_ROWS, 1)))
    found = [read(y, -16.0, 64.0, 0.06, rng, is_features=False) for _ in range(100)]
    sizes, ends = np.array([(one.scale[0], one.high[0]) for one in found]).T
    assert np.mean((sizes > y.std() / 5) & (sizes < 3 * y.std())) > 0.85
    assert y.std() / 2 < np.median(sizes) < 1.2 * y.std()
    assert np.mean(ends > 16.0) <= 0.06
    assert np.median(ends) > np.quantile(y, 0.95)


def test_columns_of_zeros_and_of_values_of_several_sizes_are_read(rng):
    """As those of images: read as zeros and values of one size their range was a half of it."""
    others = np.exp(rng.uniform(np.log(30), np.log(120), (N_ROWS, 30)))
    X = np.where(rng.random((N_ROWS, 30)) < 0.6, 0.0, others)
    for noise in (0.02, 0.05):
        found = read(X, 0.0, 256.0, noise, rng)
        assert np.median(found.scale) == pytest.approx(X.std(), rel=0.15)
        assert np.mean(found.high > X.max()) > 0.9


def test_a_target_that_visibly_lies_beyond_its_range_is_read_there(rng):
    """As the target of load_diabetes may: the coarse range is wrong then, not the grid."""
    y = 152.0 + 77.0 * rng.standard_normal((350, 1))
    found = [read(y, -4.0, 4.0, 0.15, rng, is_features=False) for _ in range(20)]
    sizes = np.array([one.scale[0] for one in found])
    assert sizes.min() > 8.0  # the width of the range
    assert np.median(sizes) > 15.0


@pytest.mark.parametrize("is_features", [False, True])
@pytest.mark.parametrize("values", [(-80.0, 0.0, 80.0), (0.0, 80.0, 80.0)])
def test_values_beside_narrow_common_ones_count_in_the_size(values, is_features, rng):
    """The spread of common values in one bin was scaled instead: a sixteenth of the size."""
    X = rng.choice(values, (N_ROWS, 30), p=(0.1, 0.8, 0.1) if min(values) else (0.8, 0.1, 0.1))
    X += rng.standard_normal(X.shape)
    found = read(X, -128.0, 128.0, 0.01, rng, is_features=is_features)
    assert found.scale == pytest.approx(X.std(axis=0), rel=0.2)


def test_indicators_have_the_size_of_indicators(rng):
    X = (rng.random((N_ROWS, 30)) < 0.05).astype(float)
    found = read(X, 0.0, 4.0, 0.1, rng)
    assert found.scale.min() > 0.1
    assert np.quantile(found.scale, 0.85) < 0.5  # noise alone widens few of them


@pytest.mark.parametrize("n_columns", [1, 3, 300])
def test_any_number_of_columns_is_read(n_columns, rng):
    found = read(rng.standard_normal((500, n_columns)), -4.0, 4.0, 0.3, rng)
    for values in (found.low, found.high, found.centre, found.scale):
        assert values.shape == (n_columns,)
        assert np.all(np.isfinite(values))
    assert found.scale.min() > 0


def test_noise_alone_gives_columns_that_can_be_used(rng):
    found = read(rng.standard_normal((500, 20)), -1e-12, 1e12, 50.0, rng)
    assert np.all(np.isfinite(found.scale))
    assert found.scale.min() > 0
    assert np.all(found.low < found.high)


def narrow(low, high, held, noise=0.0, is_features=False):
    """Estimate of one column that is far from 0, from these shares in bins of its range."""
    held, noise = np.array(held)[None], np.array([max(noise, 1e-6)])
    nothing = Histogram(np.zeros((1, N_NEAR)), noise)
    ranges = Ranges(np.full(1, low), np.full(1, high))
    return estimate(nothing, Bins(held, noise, ranges), is_features)


@pytest.mark.parametrize("offset", [-1.6e9, 2000.0, 1e12])
@pytest.mark.parametrize("is_features", [False, True])
def test_columns_far_from_0_are_read_from_their_offset(offset, is_features):
    edges = np.linspace(-40.0, 40.0, 33)
    held = np.diff(ndtr((edges - 6.0) / 8.0))
    found = narrow(offset - 40.0, offset + 40.0, held / held.sum(), is_features=is_features)
    assert found.centre[0] - offset == pytest.approx(6.0, abs=1.0)
    assert found.scale[0] == pytest.approx(8.0, rel=0.1)


def test_columns_far_from_0_are_read_in_any_unit_though_noise_nearly_drowns_them(rng):
    """Their sizes came out as about 1, whatever their unit."""
    held = np.diff(ndtr(np.linspace(-7.0, 7.0, 9)))
    for noise in (0.05, 0.1):
        for _ in range(20):
            counts = held + noise * rng.standard_normal(8)
            sizes = []
            for unit in (2.0**-17, 1.0, 2.0**20):
                found = narrow(993.0 * unit, 1007.0 * unit, counts, noise)
                sizes.append(found.scale[0] / unit)
                assert abs(found.centre[0] / unit - 1000.0) < 2.5
            assert 0.4 < sizes[0] < 5.0
            assert sizes == pytest.approx([sizes[0]] * 3)


def test_what_stands_out_widens_a_range_and_nothing_else_does():
    held = np.diff(ndtr((np.arange(33.0) - 10.0) / 2.0))
    quiet = narrow(1000.0, 1032.0, held, 0.01)
    held[30] += 0.08
    loud = narrow(1000.0, 1032.0, held, 0.01)
    assert loud.high[0] >= 1031.0 > quiet.high[0]
    assert loud.scale > quiet.scale


def test_two_hundred_rows_are_enough_for_four_columns_in_odd_units():
    """A fit of four columns, 5 wide around 20, learned .30 of .64 from their last bins alone."""
    scores = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        Z = rng.standard_normal((4200, 4))
        y = Z @ rng.standard_normal(4) + 0.6 * rng.standard_normal(4200)
        X = 5 * Z + 20
        model = skdp.DPLinearRegression(
            epsilon=1.0,
            privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
        )
        scores.append(model.fit(X[:200], y[:200]).score(X[200:], y[200:]))
    assert np.mean(scores) > 0.5


def test_a_posterior_is_proportional_to_the_likelihood_and_the_prior(rng):
    shares, noise = rng.dirichlet(np.full(N_NEAR, 0.1), 5), np.full(5, 0.02)
    magnitudes = Histogram(shares, noise)
    bins = Bins(shares[:, :8], noise, Ranges(np.zeros(5), np.ones(5)))
    ((columns, near, some),) = posteriors([magnitudes, bins], pooled=False)
    used = np.divmod(near, len(locations()))
    # The posterior at other locations, and of other families, is negligible.
    assert [len(np.unique(one)) < n for one, n in zip(used, prior().shape, strict=True)] == [1, 1]
    posterior = np.zeros((5, prior().size))
    posterior[:, near] = some
    assert columns.tolist() == list(range(5))
    logs = np.zeros((5, *prior().shape))
    for one in (magnitudes, bins):
        one.add_log_likelihood(logs)
    expected = np.exp(logs - logs.max(axis=(1, 2), keepdims=True)) * prior()
    # The scale of standardised columns is 1 or somewhat less.
    skewed = np.flatnonzero([one.is_standardised for one in families()])[:, None]
    expected[:, skewed, np.flatnonzero((locations() < -2) | (locations() > 0))] *= np.exp(
        LOG_UNLIKELY
    )
    expected = expected.reshape(5, -1)
    expected /= expected.sum(axis=1, keepdims=True)
    assert posterior == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert expected[:, np.setdiff1d(np.arange(prior().size), near)].max() < 1e-6


def test_counts_that_the_likeliest_distribution_explains_do_not_widen_a_range():
    table, tails = by_magnitude(), [1 - one.below(np.array([64.0]))[0] for one in families()]
    of_wide = np.argmax(tails), np.flatnonzero(locations() == 20)[0]
    number = np.ravel_multi_index(of_wide, prior().shape)
    beyond = table.support[1][number] + 1
    assert table.by_bin[beyond, number] > 0.003
    shares, highs = table.by_bin[:, [number]].T.copy(), []
    for more in (0.0, 0.0035, 0.0035):
        shares[0, beyond] += more
        magnitudes = Histogram(shares, np.array([2e-4]))
        highs.append(coarse_ranges(magnitudes, exact=False, pooled=False).high[0])
    assert highs[0] == highs[1] < highs[2]
