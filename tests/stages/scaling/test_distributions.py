"""Candidate distributions of columns, and estimates from all histograms of a column at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

import skdp
from skdp.oracle.releases.histograms import N_MAGNITUDES, magnitude_counts
from skdp.oracle.sources.records import Records
from skdp.stages.scaling.distributions import (
    EM_ITERATIONS,
    LOG2_STDS,
    LOGNORMAL_SCALES,
    PRIOR_STRENGTH,
    RANGE_IN_SCALES,
    TAIL_SHARE,
    UNLIKELY,
    BinnedRanges,
    NoisyCounts,
    _common_prior,
    _likelier_prior,
    by_magnitude,
    families,
    locations,
    median_bin,
    posteriors,
)
from skdp.stages.scaling.estimates import Estimate, Ranges, estimate

N_ROWS = 2000


def samples(rng, n=200_000):
    """Values of each family at location 1, normal ones with centres of one sign, and its index."""
    found = families()
    z, u = rng.standard_normal(n), rng.random(n)
    for bell in range(len(found.centre)):
        yield bell, found.centre[bell] + found.spread[bell] * z
    first = len(found.centre)
    for one, log_std in enumerate(found.log_std):
        signs = np.where(rng.random(n) < found.positive[one], 1.0, -1.0)
        yield first + one, (signs * 2.0 ** (log_std * z) - found.origin[one]) / found.unit[one]
    first += len(found.log_std)
    for one in range(len(found.zeros)):
        values = found.sign[one] * 2.0 ** (found.octaves[one] * u)
        yield first + one, np.where(rng.random(n) < found.zeros[one], 0.0, values)


def test_probabilities_are_those_of_samples(rng):
    points = np.array([-40.0, -3.0, -0.3, 0.0, 0.2, 0.9, 1.7, 6.0, 90.0])
    below = families().below(points)
    assert below.shape == (len(families().prior), 9)
    assert np.all(np.diff(below, axis=1) >= 0)
    shapes = families().probabilities(points, np.array([-1.0, 0.0]))
    assert shapes.sum(axis=2) == pytest.approx(1.0)
    np.testing.assert_allclose(np.cumsum(shapes[:, 1], axis=1)[:, :-1], below, atol=1e-12)
    for place, values in samples(rng):
        seen = np.mean(values[:, None] < points, axis=0)
        assert below[place] == pytest.approx(seen, abs=0.006), place
        seen = np.mean(values[:, None] / 2 < points, axis=0)
        assert np.cumsum(shapes[place, 0])[:-1] == pytest.approx(seen, abs=0.006), place


def test_moments_are_those_of_samples(rng):
    means, sizes, of_targets, half_widths = families().moments
    n_bells, n_skewed = len(families().centre), len(families().log_std)
    for place, values in samples(rng):
        mean, size = values.mean(), values.std()
        expected = size
        if n_bells <= place < n_bells + n_skewed and families().origin[place - n_bells] > 0:
            body = np.sort(values)[: round((1 - TAIL_SHARE) * len(values))]
            assert (body.sum() / len(values), np.sqrt(np.square(body).mean())) == pytest.approx(
                (0.0, 1.0), abs=0.02
            )
            mean, size, expected = 0.0, 1.0, 1.0
        elif n_bells <= place < n_bells + n_skewed:  # of long tails they would be all tail
            positive, size = np.mean(values > 0), LOGNORMAL_SCALES[0] * np.median(np.abs(values))
            mean = (2 * positive - 1) * size / LOGNORMAL_SCALES[0]
            longest = families().log_std[place - n_bells] == max(LOG2_STDS)
            expected = LOGNORMAL_SCALES[int(longest)] / LOGNORMAL_SCALES[0] * size
        assert of_targets[place] == pytest.approx(expected, rel=0.05)
        assert means[place] == pytest.approx(mean, abs=0.03 * size)
        assert sizes[place] == pytest.approx(size, rel=0.05)
        reach = np.abs(values - mean).max() / size if place >= n_bells + n_skewed else 0.0
        assert half_widths[place] == pytest.approx(max(reach, RANGE_IN_SCALES), rel=0.05)


def test_probabilities_of_magnitudes_add_up_to_1():
    shapes = by_magnitude().probabilities
    assert shapes.shape == (*families().prior.shape, N_MAGNITUDES)
    assert shapes.sum(axis=2) == pytest.approx(1.0, abs=1e-5)
    assert shapes.min() >= 0
    assert families().prior.sum() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("low", "high"), [(-16.0, 64.0), (0.0, 4.0**-18), (-(4.0**19), -(4.0**17)), (30.0, 55.0)]
)
def test_tables_of_kinds_of_ranges_are_those_of_each_range(low, high, rng):
    """A range has the probabilities of its kind, with locations in units of it."""
    binned = BinnedRanges(np.array([1.0, low]), np.array([2.0, high]), 8)
    exact = families().probabilities(np.linspace(low, high, 9)[1:-1], locations())
    weights = rng.random((1, *exact.shape[:2])) / exact[:, :, 0].size
    mixed = binned.mixed(weights, np.array([1]))
    assert mixed[0] == pytest.approx(np.tensordot(weights[0], exact), abs=1e-3)
    counts = NoisyCounts(rng.random((2, 8)), np.array([0.5, 0.5]), 1)
    expected = exact @ counts.counts[1] - np.square(exact).sum(axis=2) / 2
    logs = binned.log_likelihood(counts, np.array([1]))[0]
    assert logs == pytest.approx(expected / 0.2501, abs=0.05)


def read(X, low, high, noise, rng, centred=True, pooled=True):
    """What is found of the columns of X from magnitudes and 8 bins with this share of noise."""
    n_rows, n_columns = X.shape
    std = np.full(n_columns, noise * n_rows)

    def noisy(counts):
        noises = noise * n_rows * rng.standard_normal(counts.shape)
        return NoisyCounts(counts + noises, std, n_rows)

    edges = np.linspace(low, high, 9)[1:-1]
    bins = np.apply_along_axis(
        lambda x: np.bincount(np.searchsorted(edges, x, side="right"), minlength=8), 0, X
    ).T
    ranges = Ranges(np.full(n_columns, low), np.full(n_columns, high))
    magnitudes = magnitude_counts(Records.of(X, np.zeros((n_rows, 1))), True, False)
    found = estimate(noisy(magnitudes), noisy(bins), ranges, pooled)
    return found.columns(std / n_rows, pooled, centred)


@pytest.mark.parametrize(
    ("mean", "size", "low", "high"), [(20.0, 5.0, -16.0, 64.0), (-9.0, 3.0, -64.0, 4.0)]
)
def test_columns_are_read_though_their_counts_nearly_drown(mean, size, low, high, rng):
    X = mean + size * rng.standard_normal((N_ROWS, 10))
    found = read(X, low, high, 0.12, rng)
    assert np.abs(found.centre - mean).max() < 1.2 * size
    assert size / 2 < found.scale.min() <= found.scale.max() < 2 * size
    around = read(X, low, high, 0.12, rng, centred=False)
    assert not around.centre.any()
    assert around.scale == pytest.approx(np.hypot(mean, size), rel=0.4)
    assert np.all((around.low < 0) & (around.high > 0))


def test_noise_in_empty_bins_makes_no_skewed_target_wide(rng):
    """Two bins hold it; noise in the other six must not make a tail of it."""
    y = np.exp(0.8 * rng.standard_normal((N_ROWS, 1)))
    found = [read(y, -16.0, 64.0, 0.06, rng, pooled=False) for _ in range(100)]
    sizes, ends = np.array([(one.scale[0], one.high[0]) for one in found]).T
    assert np.mean((sizes > y.std() / 5) & (sizes < 3 * y.std())) > 0.85
    assert y.std() / 2 < np.median(sizes) < 1.2 * y.std()
    assert np.mean(ends > 16.0) <= 0.06
    assert np.median(ends) > np.quantile(y, 0.95)


@pytest.mark.parametrize("noise", [0.02, 0.06])
def test_the_size_of_a_target_follows_a_long_tail_farther_than_that_of_a_column(rng, noise):
    """Its deviation is 54, nearly all from one record in a hundred."""
    y = np.exp(2 * rng.standard_normal((N_ROWS, 1)))
    sizes = [read(y, -16.0, 256.0, noise, rng, pooled=False).scale[0] for _ in range(50)]
    assert 2.5 < np.median(sizes) < 8.0  # 2 as a column


def test_columns_of_zeros_and_of_values_of_several_sizes_are_read(rng):
    """As those of images: read as zeros and values of one size their range was a half of it."""
    others = np.exp(rng.uniform(np.log(30), np.log(120), (N_ROWS, 30)))
    X = np.where(rng.random((N_ROWS, 30)) < 0.6, 0.0, others)
    for noise in (0.02, 0.05, 0.1):
        found = read(X, 0.0, 256.0, noise, rng)
        assert np.median(found.scale) == pytest.approx(X.std(), rel=0.15)
        assert np.mean(found.high > X.max()) > 0.9


def test_a_target_that_visibly_lies_beyond_its_range_is_read_there(rng):
    """As the target of load_diabetes may: the coarse range is wrong then, not the grid."""
    y = 152.0 + 77.0 * rng.standard_normal((350, 1))
    found = [read(y, -4.0, 4.0, 0.15, rng, pooled=False) for _ in range(20)]
    sizes = np.array([one.scale[0] for one in found])
    assert sizes.min() > 8.0  # the width of the range
    assert np.median(sizes) > 15.0


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


def narrow(low, high, held, noise=0.0, pooled=False):
    """Estimate of one column that is far from 0, from these shares in bins of its range."""
    held, std = np.array(held)[None], np.array([max(noise, 1e-6)])
    nothing = NoisyCounts(np.zeros((1, N_MAGNITUDES)), std, 1)
    ranges = Ranges(np.full(1, low), np.full(1, high))
    return estimate(nothing, NoisyCounts(held, std, 1), ranges, pooled)


@pytest.mark.parametrize("offset", [-1.6e9, 2000.0, 1e12])
@pytest.mark.parametrize("pooled", [False, True])
def test_columns_far_from_0_are_read_from_their_offset(offset, pooled):
    edges = np.linspace(-40.0, 40.0, 33)
    held = np.diff(ndtr((edges - 6.0) / 8.0))
    found = narrow(offset - 40.0, offset + 40.0, held / held.sum(), pooled=pooled)
    assert found.mean[0] - offset == pytest.approx(6.0, abs=1.0)
    assert found.size[0] == pytest.approx(8.0, rel=0.1)


def test_columns_far_from_0_are_read_in_any_unit_though_noise_nearly_drowns_them(rng):
    """Their sizes came out as about 1, whatever their unit."""
    held = np.diff(ndtr(np.linspace(-7.0, 7.0, 9)))
    for noise in (0.05, 0.1):
        for _ in range(20):
            counts = held + noise * rng.standard_normal(8)
            sizes = []
            for unit in (2.0**-17, 1.0, 2.0**20):
                found = narrow(993.0 * unit, 1007.0 * unit, counts, noise)
                sizes.append(found.size[0] / unit)
                assert abs(found.mean[0] / unit - 1000.0) < 2.5
            assert 0.4 < sizes[0] < 5.0
            assert sizes == pytest.approx([sizes[0]] * 3)


def test_what_stands_out_widens_a_range_and_nothing_else_does():
    held = np.diff(ndtr((np.arange(33.0) - 10.0) / 2.0))
    quiet = narrow(1000.0, 1032.0, held, 0.01)
    assert not np.isfinite([quiet.beyond.low, quiet.beyond.high]).any()
    held[30] += 0.08
    loud = narrow(1000.0, 1032.0, held, 0.01)
    assert (loud.beyond.low[0], loud.beyond.high[0]) == (1030.0, 1031.0)
    assert loud.ranges.high[0] >= 1031.0 > quiet.ranges.high[0]
    assert loud.size > quiet.size


def test_what_noise_may_have_done_is_left_out():
    mean, size = np.array([0.5, -9.0, 9.0]), np.array([1.0, 1.2, 40.0])
    nowhere, three = Ranges(np.full(3, np.inf), np.full(3, -np.inf)), np.full(3, RANGE_IN_SCALES)
    found = Estimate(mean, size, three, nowhere, np.zeros((3, 2), bool), np.zeros(3))
    alike = found.columns(np.full(3, 0.1), pooled=True, centred=True)
    assert alike.scale.tolist() == [1.2, 1.2, 40.0]
    assert alike.centre.tolist() == [0.0, -9.0, 0.0]
    alone = found.columns(np.full(3, 0.1), pooled=False, centred=True)
    assert alone.scale.tolist() == [1.0, 1.2, 40.0]
    assert alone.centre.tolist() == [0.5, -9.0, 9.0]  # a target's mean is kept
    around = found.columns(np.full(3, 1e-3), pooled=True, centred=False)
    assert not around.centre.any()
    assert around.scale == pytest.approx(np.hypot(mean, size))


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


def test_what_columns_have_in_common_is_the_family_and_the_location_of_other_columns(rng):
    likelihood, known = rng.random((4, *families().prior.shape)) ** 20, families().prior

    def product(of_others):
        of_families, of_locations = (
            PRIOR_STRENGTH * known.sum(axis=axis) + of_others.sum(axis=axis) for axis in (1, 0)
        )
        return np.outer(of_families, of_locations)

    priors = np.tile(known, (4, 1, 1))
    for _ in range(EM_ITERATIONS):
        posterior = likelihood * priors
        posterior /= posterior.sum(axis=(1, 2), keepdims=True)
        priors = np.array([
            product(np.delete(posterior, i, axis=0).sum(axis=0)) for i in range(4)
        ])  # fmt: skip
    evidence, (family, location), of_more = _common_prior(likelihood, families().prior)
    assert family[:, :, None] * location[:, None] == pytest.approx(priors, rel=1e-4)
    assert np.outer(*of_more) == pytest.approx(product(posterior.sum(axis=0)), rel=1e-4)
    each = np.sum(likelihood * priors, axis=(1, 2)) / np.sum(priors, axis=(1, 2))
    assert evidence == pytest.approx(np.log(each).sum(), rel=1e-4)


def test_a_posterior_is_proportional_to_the_likelihood_and_the_prior(rng):
    logs = rng.uniform(-120, 0, (5, *families().prior.shape))
    ((columns, posterior),) = posteriors(lambda some: logs[some], 5, pooled=False)
    assert columns.tolist() == list(range(5))
    expected = np.exp(logs) * families().prior
    # The scale of standardised columns is 1 or somewhat less.
    elsewhere = np.flatnonzero((locations() < -2) | (locations() > 0))
    expected[:, families().skewed[:, None], elsewhere] *= UNLIKELY
    assert posterior == pytest.approx(expected / expected.sum(axis=(1, 2), keepdims=True), rel=1e-4)


def test_the_median_of_ends_is_the_first_that_half_of_the_shapes_reach():
    ends = np.array([[5, 2], [7, 2]])
    posterior = np.array([[0.1, 0.3, 0.4, 0.2], [0.2, 0.3, 0.4, 0.1], [0.0, 0.0, 1.0, 0.0]])
    assert median_bin(posterior.reshape(3, 2, 2), ends).tolist() == [2, 5, 7]


def test_columns_below_0_are_not_taken_for_skewed_standardised_ones():
    errors = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(rng.uniform(-1.1, -0.4, 40), rng.uniform(0.15, 0.35, 40), (4000, 40))
        privacy = skdp.Privacy(noise=skdp.SeededNoise(seed))
        model = skdp.DPLogisticRegression(
            epsilon=0.1, classes=[0, 1], scaling="private", privacy=privacy
        )
        columns = model.fit(X, rng.integers(0, 2, 4000)).scaling_.columns
        errors.append(np.mean(np.abs(columns.centre - X.mean(0)) / X.std(0)))
    assert np.median(errors) < 1, errors


def test_a_column_with_two_modes_is_not_taken_for_a_skewed_standardised_one(rng):
    """Hues of pixels, .85 of them around -2 and the others around 2, had a scale of 10."""
    X = rng.lognormal(3.0, 1.0, (1700, 18))
    X[:, 17] = np.where(rng.random(1700) < 0.15, 2.0, -2.0) + 0.3 * rng.standard_normal(1700)
    for seed in range(4):
        privacy = skdp.Privacy(noise=skdp.SeededNoise(seed))
        model = skdp.DPLogisticRegression(epsilon=10.0, classes=[0, 1], privacy=privacy)
        columns = model.fit(X, rng.integers(0, 2, 1700)).scaling_.columns
        assert 0.5 < columns.scale[17] < 3, columns.scale[17]


def test_columns_that_only_skewed_standardised_families_fit_are_read():
    every = families()
    likelihoods = np.zeros((3, *every.prior.shape), np.float32)
    likelihoods[:, np.flatnonzero(every.origin > 0) + len(every.centre), 0] = 1.0
    own, for_more = _likelier_prior(likelihoods)
    posterior = likelihoods * own
    assert np.isfinite(own).all()
    assert np.isfinite(for_more).all()
    assert (posterior.sum(axis=(1, 2)) > 0).all()
