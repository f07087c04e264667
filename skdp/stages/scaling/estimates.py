"""Range, centre and scale of each column: functionals of its posterior and of residual counts.

Ranges are posterior medians of the magnitudes between two tails; means and scales are posterior
expectations. Counts that exceed what the posterior expects by more than noise move all three: where
there is little noise the counts decide, and where there is much the prior. Columns far from 0 are
described relative to their range. All of it is post-processing of noisy histograms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from skdp._numbers import AnyArray, Array, Indices, Mask
from skdp.oracle import Columns
from skdp.oracle.releases.histograms import SIDE, STEPS
from skdp.stages.scaling.distributions import (
    RANGE_IN_SCALES,
    TAIL_SHARE,
    BinnedRanges,
    NoisyCounts,
    between_tails,
    by_magnitude,
    families,
    locations,
    median_bin,
    posteriors,
)

# All figures are choices of ours; docs/research/defaults.rst has the evidence for each.
Z_ONE = 2.0  # threshold of one noisy sum, in noise standard deviations
MAX_FILLED_SHARE = 1 / 3  # largest share of a range to which it shrinks
MAX_RELATIVE_WIDTH = 0.5  # of a range far from 0, relative to its distance from 0
# A significant bin is isolated, as codes for missing data are, if it is more than so many widths of
# the column's bulk away from it. The bulk has at least this share of the records.
ISOLATED_WIDTHS, MIN_BULK_SHARE = 2.0, 0.85
UNIFORM_STD = 12**-0.5  # standard deviation of the uniform distribution, in its width


@dataclass(frozen=True)
class Ranges:
    """Lower and upper limit of the range of every column."""

    low: Array
    high: Array

    @property
    def width(self) -> Array:
        """Width of every range."""
        return self.high - self.low

    @property
    def far_from_0(self) -> Mask:
        """Which ranges are short next to their distance from 0: a long tail's are not."""
        return self.width <= MAX_RELATIVE_WIDTH * np.maximum(self.low, -self.high)

    def have_distinct_bins(self, n_bins: int) -> Mask:
        """Which ranges may be narrower: floating point distinguishes values in such bins."""
        farthest = np.maximum(np.abs(self.low), np.abs(self.high))
        return self.width / n_bins > 2.0**-40 * farthest

    def rounded(self) -> Ranges:
        """Return ranges with ends at 0 or powers of 4, of which few kinds differ in more than unit.

        An end nearer to 0 than a sixteenth of the other one lies at that, or at 0.
        """
        least = 4.0 ** np.ceil(np.log2(np.maximum(np.abs(self.low), np.abs(self.high))) / 2) / 16

        def outward(distance: Array) -> Array:
            log = np.log2(np.maximum(np.abs(distance), least)) / 2
            inward = np.where(distance > -least, 0.0, -(4.0 ** np.floor(log)))
            return np.where(distance > 0, 4.0 ** np.ceil(log), inward)

        return Ranges(-outward(-self.low), outward(self.high))

    def of(self, columns: Indices) -> Ranges:
        """Return the ranges of some columns."""
        return Ranges(self.low[columns], self.high[columns])

    def where(self, chosen: Mask, other: Ranges) -> Ranges:
        """Return the ranges, others for the chosen columns."""
        return Ranges(
            np.where(chosen, other.low, self.low), np.where(chosen, other.high, self.high)
        )


def z_of_largest(n_counts: int) -> float:
    """Return the threshold of many noisy counts: one standard deviation above the largest.

    That is the expected largest one of so many that are noise alone.
    """
    return math.sqrt(2 * math.log(max(n_counts, 1))) + 1


def far_half_width() -> float:
    """Return half the width, in scales, of the range of a column far from 0, which fills a part."""
    return float(-ndtri(TAIL_SHARE) / MAX_FILLED_SHARE)


def _residuals(noisy: NoisyCounts, shapes: Array | float, more: Array | float = 0.0) -> Array:
    """Residual share of the records in each bin; 0 where it is below the noise threshold.

    Of all counts together, noise alone makes hardly one exceed the threshold, which is higher by
    ``more``, in noise standard deviations.
    """
    rest = noisy.counts / noisy.n_rows - shapes
    limit = (z_of_largest(rest.size) + more) * noisy.noise[:, None]
    # A share above 1 can only be noise.
    rest[(np.abs(rest) <= limit) | (limit >= 1)] = 0.0
    return rest


def _moments(shapes: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of shapes, in bins."""
    places = np.arange(shapes.shape[1]) + 0.5
    mean = shapes @ places
    return mean, np.sqrt(np.sum(shapes * (places - mean[:, None]) ** 2, axis=1))


def _neighbourhoods(noisy: NoisyCounts, visible: Mask, low: Array, high: Array) -> Ranges:
    """Return the range around the bulk of each column, beyond which significant bins are isolated.

    The bulk grows from the fullest bin to significant bins at most ``ISOLATED_WIDTHS`` of its own
    widths away. The range is infinite if the bulk is a single bin, as where most values are 0, or
    less than ``MIN_BULK_SHARE`` of the records.
    """
    low, high = (np.broadcast_to(one, visible.shape) for one in (low, high))
    seen = np.where(visible, noisy.counts / noisy.n_rows, 0.0)
    bulk, grown = None, visible & (seen == seen.max(axis=1, keepdims=True))
    while bulk is None or (grown > bulk).any():
        bulk = grown
        start = np.min(low, axis=1, where=bulk, initial=np.inf)
        stop = np.max(high, axis=1, where=bulk, initial=-np.inf)
        reach = ISOLATED_WIDTHS * (stop - start)
        near = (low <= (stop + reach)[:, None]) & (high >= (start - reach)[:, None])
        grown = visible & near
    whole = (bulk.sum(axis=1) > 1) & (np.sum(seen, axis=1, where=bulk) >= MIN_BULK_SHARE)
    around = np.full((2, len(seen)), [[-np.inf], [np.inf]])
    around[:, whole] = (start - reach)[whole], (stop + reach)[whole]
    return Ranges(*around)


def magnitude_bounds() -> tuple[Array, Array]:
    """Return the lower and upper edge of every bin of magnitudes, negative ones first.

    Negative ones go from large to small; zero has no width.
    """
    edges = 4.0 ** (np.arange(SIDE + 1) - STEPS)
    low = np.concatenate([-edges[:0:-1], [0.0], edges[:-1]])
    high = np.concatenate([-edges[-2::-1], [0.0], edges[1:]])
    return low, high


def coarse_ranges(magnitudes: NoisyCounts, exact: bool, pooled: bool) -> Ranges:
    """Ranges from counts of magnitudes: posterior medians, as scales vary greatly."""
    counts, table = magnitudes.counts, by_magnitude()
    first, last, likeliest = np.empty((3, len(counts)), dtype=np.intp)

    def fit(columns: Indices) -> AnyArray:
        return magnitudes.of(columns).fit_by_magnitude.copy()

    for columns, posterior in posteriors(fit, len(counts), pooled):
        first[columns], last[columns] = (median_bin(posterior, one) for one in table.support)
        likeliest[columns] = np.argmax(posterior.reshape(len(columns), -1), axis=1)
    expected = table.probabilities.reshape(-1, counts.shape[1])[likeliest]
    # Noise alone enlarges a range by a bin or two, which is soon undone; a farther one is no noise.
    bins, (lows, highs) = np.arange(counts.shape[1]), magnitude_bounds()
    away = np.maximum(first[:, None] - bins, bins - last[:, None])
    beyond = _residuals(magnitudes, expected, np.maximum(away - 1, 0)) > TAIL_SHARE
    if pooled:
        visible = _residuals(magnitudes, 0.0) > 0
        around = _neighbourhoods(magnitudes, visible, lows, highs)
        beyond &= (highs >= around.low[:, None]) & (lows <= around.high[:, None])
    first = np.min(np.where(beyond, bins, first[:, None]), axis=1)
    last = np.max(np.where(beyond, bins, last[:, None]), axis=1)
    if exact:
        first, last = between_tails(counts, 0.0)
    # Noise may make the medians cross.
    first, last = np.minimum(first, last), np.maximum(first, last)
    low, high = lows[first], highs[last]
    ranges = Ranges(low - (high <= low), high + (high <= low))
    return ranges if exact else ranges.rounded()


def shrink_ranges(ranges: Ranges, estimated: Ranges, n_bins: int, again: bool) -> Ranges:
    """Return the estimated ranges where they are much narrower, and the former ones elsewhere.

    A range that has been shrunk before is shrunk ``again`` only where its width is small next to
    its distance from 0: rare values far from common ones stay in it.
    """
    smaller = estimated.width <= MAX_FILLED_SHARE * ranges.width
    smaller &= ranges.have_distinct_bins(n_bins)
    if again:
        smaller &= estimated.far_from_0
    return ranges.where(smaller, estimated)


def support_with_margin(counts: Array, ranges: Ranges) -> Ranges:
    """Return the range of the bins that are not empty, and one bin more on either side."""
    first, last = between_tails(counts, 0.0)
    n_bins = counts.shape[1]
    width = ranges.width / n_bins
    start, stop = np.maximum(first - 1, 0), np.minimum(last + 2, n_bins)
    return Ranges(ranges.low + start * width, ranges.low + stop * width)


def exact_columns(counts: Array, ranges: Ranges, centred: bool) -> Columns:
    """Centre and scale of every column, from exact counts in bins.

    Without noise there is nothing to be hidden: values are not clipped.
    """
    width = ranges.width / counts.shape[1]
    mean, size = _moments(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))
    mean, half = ranges.low + mean * width, ranges.width / 2
    # A constant column has the scale of its value, or 1 if that is 0.
    one = np.where(np.abs(mean) > half, np.abs(mean), 1.0)
    size = np.where(size > 0, size * width, one)
    if not centred:
        mean, size = np.zeros(len(mean)), np.hypot(size, mean)
    most = np.full(len(mean), np.finfo(float).max)
    return Columns(-most, most, mean, size)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Mean and scale of columns, and the extent of residual counts that no candidate explains.

    Attributes
    ----------
    mean, size : array of shape (n_columns,)
    half_width : array of shape (n_columns,)
        Of the range around the mean, in scales.
    beyond : Ranges
        From infinity to minus infinity where there are none.
    isolated : array of bool of shape (n_columns, 2)
        Whether isolated values lie below, and above, all others. There the range ends at the
        quantile beyond which a normal distribution has ``TAIL_SHARE``.
    skewness : array of shape (n_columns,)
        Of the values within the range that was counted in bins.
    """

    mean: Array
    size: Array
    half_width: Array
    beyond: Ranges
    isolated: Mask
    skewness: Array

    @property
    def ranges(self) -> Ranges:
        """Range of every column."""
        factors = np.where(self.isolated, -ndtri(TAIL_SHARE) / RANGE_IN_SCALES, 1.0).T
        low, high = self.mean + np.array([[-1.0], [1.0]]) * factors * self.half_width * self.size
        return Ranges(np.minimum(low, self.beyond.low), np.maximum(high, self.beyond.high))

    def columns(self, noise: Array, pooled: bool, centred: bool) -> Columns:
        """Return the columns, less means and differences of scales that noise explains.

        ``noise`` is that on counts, as a share of the rows.
        """
        mean, size = self.mean, self.size
        if pooled:
            # Noise on a count at the end of a range moves the mean by RANGE_IN_SCALES times as many
            # scales as it is shares of the rows.
            doubt, usual = np.minimum(1.0, Z_ONE * RANGE_IN_SCALES * noise), float(np.median(size))
            size = np.where(np.abs(np.log(size / usual)) < doubt, usual, size)
            mean = np.where(np.abs(mean) < doubt * size, 0.0, mean)
        if not centred:
            mean, size = np.zeros(len(mean)), np.hypot(size, mean)
        ranges, isolated = replace(self, mean=mean, size=size).ranges, self.isolated.T
        return Columns(ranges.low, ranges.high, mean, size, (*isolated,), self.skewness)


def estimate(magnitudes: NoisyCounts, bins: NoisyCounts, ranges: Ranges, pooled: bool) -> Estimate:
    """Return the posterior estimate of columns from their histograms.

    A column far from 0 is estimated from its bins alone, in units of its range and relative to the
    middle of it.

    Parameters
    ----------
    magnitudes : NoisyCounts
        Counts by sign and magnitude.
    bins : NoisyCounts
        Counts in equal bins of ``ranges``.
    ranges : Ranges
    pooled : bool
        Whether columns share a prior, as features do.
    """
    counts, far = bins.counts, ranges.far_from_0
    n_columns, n_bins = counts.shape
    half = far_half_width()
    unit = np.where(far, ranges.width / (2 * half), 1.0)
    offset = np.where(far, (ranges.high + ranges.low) / 2, 0.0)
    middle = Ranges(np.full(n_columns, -half), np.full(n_columns, half))
    ranges = ranges.where(far, middle)
    binned = BinnedRanges(ranges.low, ranges.high, n_bins)
    mean, size, half_width = np.empty((3, n_columns))
    shapes = np.empty(counts.shape)
    for part, used in ((np.flatnonzero(~far), magnitudes), (np.flatnonzero(far), None)):
        expected = _expected(part, used, bins, binned, pooled)
        mean[part], size[part], half_width[part], shapes[part] = expected
    # Residual counts move the moments as they move those of the bins.
    rest = _residuals(bins, shapes)
    isolated = np.zeros((n_columns, 2), dtype=bool)
    if pooled:
        visible = _residuals(bins, 0.0) > 0
        lone = _isolated(bins, visible, rest, ranges, magnitudes) & ~far[:, None]
        rest[lone] = 0.0
        isolated[:] = lone.reshape(n_columns, 2, n_bins // 2).any(axis=2)
    seen = np.maximum(shapes + rest, 0.0)
    held = seen.sum(axis=1, keepdims=True)
    seen = np.where(held > 0, seen / np.where(held > 0, held, 1.0), shapes)
    (expected_mean, expected_size), (seen_mean, seen_size) = _moments(shapes), _moments(seen)
    cubes = (np.arange(n_bins) + 0.5 - seen_mean[:, None]) ** 3
    skewness = np.sum(seen * cubes, axis=1) / np.hypot(seen_size, UNIFORM_STD) ** 3
    width = ranges.width / n_bins
    mean += (seen_mean - expected_mean) * width
    size *= np.hypot(seen_size, UNIFORM_STD) / np.hypot(expected_size, UNIFORM_STD)
    out = rest > TAIL_SHARE
    first, last = np.argmax(out, axis=1), n_bins - np.argmax(out[:, ::-1], axis=1)
    low = np.where(out.any(axis=1), offset + unit * (ranges.low + first * width), np.inf)
    high = np.where(out.any(axis=1), offset + unit * (ranges.low + last * width), -np.inf)
    beyond = Ranges(low, high)
    return Estimate(offset + unit * mean, unit * size, half_width, beyond, isolated, skewness)


def _expected(
    part: Indices,
    magnitudes: NoisyCounts | None,
    bins: NoisyCounts,
    binned: BinnedRanges,
    pooled: bool,
) -> tuple[Array, Array, Array, Array]:
    """Return posterior expectations of some columns, by their bins and magnitudes, if any.

    These are mean, size, half width of the range in sizes, and probabilities of bins.
    """

    def log_likelihood(some: Indices) -> AnyArray:
        logs = binned.log_likelihood(bins, part[some])
        if magnitudes is not None:
            logs += magnitudes.of(part[some]).fit_by_magnitude
        return logs

    is_shared = pooled and magnitudes is not None
    centres, of_columns, of_targets, half_widths = families().moments
    means, sizes = (
        np.multiply.outer(one, 2.0 ** locations()).astype(np.float32)
        for one in (centres, of_columns if is_shared or magnitudes is None else of_targets)
    )
    n_bins = bins.counts.shape[1]
    if magnitudes is None:
        # Bins alone do not resolve scales below that of a uniform distribution in one of them.
        sizes = np.maximum(sizes, np.float32(2 * far_half_width() / n_bins * UNIFORM_STD))
    mean, size, half_width = np.empty((3, len(part)))
    shapes = np.empty((len(part), n_bins))
    for some, posterior in posteriors(log_likelihood, len(part), is_shared):
        shapes[some] = binned.mixed(posterior, part[some])
        size[some] = np.exp(np.tensordot(posterior, np.log(sizes)))
        half_width[some] = np.exp(posterior.sum(axis=2) @ np.log(half_widths))
        # Means are weighted by the inverse scale, those of targets by its square, as their errors
        # count in variances; scales below the posterior one count as that.
        weights = np.maximum(sizes, size[some, None, None].astype(np.float32))
        np.divide(posterior, weights if is_shared else weights**2, out=weights)
        mean[some] = np.tensordot(weights, means) / weights.sum(axis=(1, 2))
    return mean, size, half_width, shapes


def _isolated(
    bins: NoisyCounts, visible: Mask, rest: Array, ranges: Ranges, magnitudes: NoisyCounts
) -> Mask:
    """Return which residuals of bins are of values far from the bulk of their column.

    Outer bins are open: their residuals count if most of their values have magnitudes far from the
    bulk. Rare values of a column of mostly zeros do not count.
    """
    edges = np.linspace(ranges.low, ranges.high, bins.counts.shape[1] + 1, axis=1)
    around = _neighbourhoods(bins, visible, edges[:, :-1], edges[:, 1:])
    isolated = (edges[:, 1:] < around.low[:, None]) | (edges[:, :-1] > around.high[:, None])
    lows, highs = magnitude_bounds()
    shares = _residuals(magnitudes, 0.0)
    away = (lows > around.high[:, None]), (highs < around.low[:, None])
    for place, far in ((-1, away[0]), (0, away[1])):
        held = np.maximum(shares, 0.0) * far
        isolated[:, place] |= 2 * bins.n_rows * held.sum(axis=1) >= bins.counts[:, place]
    mostly_zeros = 2 * magnitudes.counts[:, SIDE] > bins.n_rows
    return isolated & (rest > 0) & ~mostly_zeros[:, None]
