"""From noisy histograms to range, centre and size of each column. Post-processing only.

Counts are compared with those of laws that columns may follow. What stands out of the counts that
are expected then is kept. So where there is little noise the counts speak for themselves, and where
there is much a column is what columns usually are, in this data first of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skdp._numbers import Array, Indices, Mask
from skdp.oracle import Columns
from skdp.oracle.kernels.histograms import SIDE, STEPS
from skdp.stages.scaling.distributions import (
    RANGE_IN_SCALES,
    between_tails,
    ends_by_magnitude,
    fine_distributions,
    log_likelihood,
    binned_by_magnitude,
    median_end,
    posteriors_of,
)

Z_RESIDUAL = 1.2  # above the largest of so many noises, in units of the noise on a count
# A magnitude that widens a range stands out by so much more for each bin that it lies beyond the
# next, and by so much at most: noise alone widens a range by a bin or two, which is soon undone.
Z_PER_BIN, MAX_EXTRA_Z = 1.0, 5.0
TAIL_SHARE = (
    0.004  # share of the records left out of a range at each end, and that widens it if seen
)
SHRINKAGE = 8.0  # error of logarithmic sizes, and of means in sizes, in units of the noise
MEAN_TOLERANCE = 4.0  # error of the mean of a column by itself, in sizes, in units of the noise
MAX_FILLED_SHARE = (
    0.3  # most share of a range that what it holds fills if the range is made smaller
)
MIN_RELATIVE_WIDTH = 2.0**-40  # of widths of bins, next to the offset
MAX_RELATIVE_WIDTH = 0.5  # most width of a range that is far from 0, next to its distance from 0
# Sizes in the range of a column that is far from 0: it fills about a third of that.
SCALES_IN_RANGE = 14.0
UNIFORM_STD = 12**-0.5  # size of what lies evenly in one bin, in its width
# Distributions that magnitudes alone make less likely than another by so much, in natural logarithms, are
# left out; and so are laws of negligible probability. Both only save time.
MAX_LOG_RATIO, MIN_PROBABILITY = 50.0, 1e-9


@dataclass(frozen=True)
class Ranges:
    """Ends of the range of every column."""

    low: Array
    high: Array

    @property
    def far_from_0(self) -> Mask:
        """Which ranges are short next to their distance from 0: a long tail's are not."""
        return self.high - self.low < MAX_RELATIVE_WIDTH * np.maximum(self.low, -self.high)

    def of(self, columns: Indices) -> Ranges:
        """Return the ranges of some columns."""
        return Ranges(self.low[columns], self.high[columns])

    def where(self, chosen: Mask, other: Ranges) -> Ranges:
        """Return the ranges, others for the chosen columns."""
        return Ranges(
            np.where(chosen, other.low, self.low), np.where(chosen, other.high, self.high)
        )


def _significant_residuals(
    counts: Array, std: Array, n_rows: int, shapes: Array, n_counts: int, more: Array | float = 0.0
) -> Array:
    """Share of the records in each bin beyond the expected shape; 0 where noise can be the reason.

    Of ``n_counts`` counts in all, noise alone makes hardly one exceed the limit. The limit is
    higher by ``more``, in units of the noise.
    """
    rest = counts / n_rows - shapes
    largest = np.sqrt(2 * np.log(n_counts)) + Z_RESIDUAL + more
    limit = largest * (std[:, None] / n_rows)
    # What looks like more than all of the records is noise.
    rest[(np.abs(rest) <= limit) | (limit >= 1)] = 0.0
    return rest


def _moments(shapes: Array) -> tuple[Array, Array]:
    """Mean and size of shapes, in bins."""
    places = np.arange(shapes.shape[1]) + 0.5
    mean = shapes @ places
    return mean, np.sqrt(np.sum(shapes * (places - mean[:, None]) ** 2, axis=1))


def magnitude_ends() -> tuple[Array, Array]:
    """Return the lower and upper end of every bin of magnitudes: negative ones from large to small.

    Zero has no width.
    """
    ends = 4.0 ** (np.arange(SIDE + 1) - STEPS)
    low = np.concatenate([-ends[:0:-1], [0.0], ends[:-1]])
    high = np.concatenate([-ends[-2::-1], [0.0], ends[1:]])
    return low, high


def coarse_ranges(counts: Array, std: Array, n_rows: int, exact: bool, pooled: bool) -> Ranges:
    """Ranges from counts of magnitudes: medians, since shapes of all sizes come into question."""
    binned = binned_by_magnitude()
    first, last = np.empty((2, len(counts)), dtype=np.intp)
    beyond, ends = np.empty(counts.shape, dtype=bool), ends_by_magnitude(TAIL_SHARE)
    bins = np.arange(counts.shape[1])

    def fit(columns: slice | Indices) -> Array:
        return log_likelihood(counts[columns], std[columns], n_rows, binned.shapes)

    for columns, posterior in posteriors_of(fit, len(counts), binned, pooled):
        first[columns], last[columns] = (median_end(posterior, one) for one in ends)
        away = np.maximum(first[columns][:, None] - bins, bins - last[columns][:, None])
        more = np.clip(Z_PER_BIN * (away - 1), 0.0, MAX_EXTRA_Z)
        likeliest = binned.shapes[np.argmax(posterior, axis=1)]
        seen = counts[columns], std[columns], n_rows
        beyond[columns] = _significant_residuals(*seen, likeliest, counts.size, more) > TAIL_SHARE
    n_bins, somewhere = counts.shape[1], beyond.any(axis=1)
    lowest, highest = np.argmax(beyond, axis=1), n_bins - 1 - np.argmax(beyond[:, ::-1], axis=1)
    if exact:
        first, last = between_tails(counts, 0.0)
    else:
        first = np.where(somewhere, np.minimum(first, lowest), first)
        last = np.where(somewhere, np.maximum(last, highest), last)
    # Noise may make the medians cross.
    first, last = np.minimum(first, last), np.maximum(first, last)
    lows, highs = magnitude_ends()
    low, high = lows[first], highs[last]
    flat = high <= low
    return Ranges(np.where(flat, low - 1, low), np.where(flat, high + 1, high))


def shrink_ranges(ranges: Ranges, found: Ranges, n_bins: int, again: bool) -> Ranges:
    """Return what was found inside of ranges, where it is much less than they are.

    A range that is smaller already is made smaller ``again`` only where its width is small next to
    its distance from 0: rare values far from common ones stay in it.
    """
    width = ranges.high - ranges.low
    smaller = found.high - found.low <= MAX_FILLED_SHARE * width
    # Not beyond what numbers of this size can tell apart.
    farthest = np.maximum(np.abs(ranges.low), np.abs(ranges.high))
    smaller &= width / n_bins > MIN_RELATIVE_WIDTH * farthest
    if again:
        smaller &= found.far_from_0
    return ranges.where(smaller, found)


def support_with_margin(counts: Array, ranges: Ranges) -> Ranges:
    """Return where the records lie whose counts are exact, and a bin more on either side."""
    first, last = between_tails(counts, 0.0)
    n_bins = counts.shape[1]
    width = (ranges.high - ranges.low) / n_bins
    start, stop = np.maximum(first - 1, 0), np.minimum(last + 2, n_bins)
    return Ranges(ranges.low + start * width, ranges.low + stop * width)


def exact_columns(counts: Array, ranges: Ranges, centred: bool) -> Columns:
    """Centre and size of every column, and a range that holds it, from exact counts in bins."""
    width = (ranges.high - ranges.low) / counts.shape[1]
    mean, size = _moments(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))
    mean, half = ranges.low + mean * width, (ranges.high - ranges.low) / 2
    # Of a column that holds one value, that one, or 1 if it is 0.
    one = np.where(np.abs(mean) > half, np.abs(mean), 1.0)
    size = np.where(size > 0, size * width, one)
    if not centred:
        mean, size = np.zeros(len(mean)), np.hypot(size, mean)
    return Columns(mean - RANGE_IN_SCALES * size, mean + RANGE_IN_SCALES * size, mean, size)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Mean and size of columns, and the ends of what is seen that no law accounts for.

    Attributes
    ----------
    mean, size : array of shape (n_columns,)
    half_width : array of shape (n_columns,)
        How far from the mean a column goes, in sizes.
    beyond : Ranges
        From infinity to minus infinity where nothing of the kind is seen.
    """

    mean: Array
    size: Array
    half_width: Array
    beyond: Ranges

    @property
    def ranges(self) -> Ranges:
        """Range of every column."""
        low, high = self.mean - self.half_width * self.size, self.mean + self.half_width * self.size
        return Ranges(np.minimum(low, self.beyond.low), np.maximum(high, self.beyond.high))

    def columns(self, noise: Array, pooled: bool, centred: bool) -> Columns:
        """Return the columns, without means and differences of sizes that noise alone can make.

        These are not worth their harm. ``noise`` is that on counts, as a share of the rows.
        """
        mean, size = self.mean, self.size
        doubt = np.minimum(1.0, SHRINKAGE * noise) if pooled else MEAN_TOLERANCE * noise
        if pooled:
            usual = float(np.median(size))
            size = np.where(np.abs(np.log(size / usual)) < doubt, usual, size)
        mean = np.where(np.abs(mean) < doubt * size, 0.0, mean)
        if not centred:
            mean, size = np.zeros(len(mean)), np.hypot(size, mean)
        ranges = Estimate(mean, size, self.half_width, self.beyond).ranges
        return Columns(ranges.low, ranges.high, mean, size)


def estimate(
    magnitudes: tuple[Array, Array],
    bins: tuple[Array, Array],
    n_rows: int,
    ranges: Ranges,
    pooled: bool,
) -> Estimate:
    """Return what histograms tell of columns by the laws that these may follow.

    Each law is as probable as the counts, and what columns have in common, make it. A column far
    from 0 is read from its bins alone, in units of its range and relative to the middle of it.

    Parameters
    ----------
    magnitudes : tuple of arrays, of shapes (n_columns, n_magnitudes) and (n_columns,)
        Counts by sign and magnitude, and the noise on those of each column.
    bins : tuple of arrays, of shapes (n_columns, n_bins) and (n_columns,)
        Likewise in equal bins of ``ranges``.
    n_rows : int
    ranges : Ranges
    pooled : bool
        Whether columns are likely to be like each other.
    """
    far, n_columns = ranges.far_from_0, len(ranges.low)
    mean, size, half_width, low, high = np.empty((5, n_columns))
    for is_far in (False, True):
        part = np.flatnonzero(far == is_far)
        if not len(part):
            continue
        of_bins = bins[0][part], bins[1][part]
        if is_far:
            half = np.full(len(part), SCALES_IN_RANGE / 2)
            found = _by_distributions(None, of_bins, n_rows, Ranges(-half, half), pooled=False)
            unit = (ranges.high - ranges.low)[part] / SCALES_IN_RANGE
            offset = (ranges.high + ranges.low)[part] / 2
        else:
            of_magnitudes = magnitudes[0][part], magnitudes[1][part]
            found = _by_distributions(of_magnitudes, of_bins, n_rows, ranges.of(part), pooled)
            unit, offset = np.ones(len(part)), np.zeros(len(part))
        mean[part], size[part] = offset + unit * found.mean, unit * found.size
        low[part], high[part] = offset + unit * found.beyond.low, offset + unit * found.beyond.high
        half_width[part] = found.half_width
    return Estimate(mean, size, half_width, Ranges(low, high))


def _by_distributions(
    magnitudes: tuple[Array, Array] | None,
    bins: tuple[Array, Array],
    n_rows: int,
    ranges: Ranges,
    pooled: bool,
) -> Estimate:
    """Return the estimate of columns, from their bins and, if there are any, their magnitudes."""
    candidates, binned = fine_distributions()
    counts, std = bins
    n_columns, n_bins = counts.shape
    edges = np.linspace(ranges.low, ranges.high, n_bins + 1, axis=1)[:, 1:-1]

    def alike(columns: slice | Indices) -> Iterator[tuple[Array, Indices]]:
        """Yield inner edges of bins, and the places of the columns that have them.

        Ranges end at powers of 4 mostly, so that many columns have the same bins.
        """
        each, which = np.unique(edges[columns], axis=0, return_inverse=True)
        for number, inner in enumerate(each):
            yield inner, np.flatnonzero(which.ravel() == number)

    def fit(columns: slice | Indices) -> Array:
        of_these, noise = counts[columns], std[columns]
        found = np.zeros((len(noise), len(binned.prior)))
        if magnitudes is not None:
            seen = magnitudes[0][columns], magnitudes[1][columns], n_rows
            found = log_likelihood(*seen, binned.shapes)
        # A column's own magnitudes decide, whichever other columns are looked at.
        found[found < found.max(axis=1, keepdims=True) - MAX_LOG_RATIO] = -np.inf
        for inner, same in alike(columns):
            some = np.flatnonzero((found[same] > -np.inf).any(axis=0))
            shapes = candidates.shapes(inner, some)
            seen = of_these[same], noise[same], n_rows
            found[np.ix_(same, some)] += log_likelihood(*seen, shapes)
        return found

    mean, size, half_width = np.empty((3, n_columns))
    shapes = np.empty(counts.shape)
    means, sizes, sizes_of_targets = candidates.moments
    if magnitudes is not None and not pooled:
        sizes = sizes_of_targets
    # Bins alone do not tell sizes that are less than that of what lies evenly in one of them.
    least = 0.0 if magnitudes is not None else float(np.diff(edges).max()) * UNIFORM_STD
    sizes = np.maximum(sizes, least)
    for columns, posterior in posteriors_of(fit, n_columns, binned, pooled):
        these = np.arange(n_columns)[columns]
        for inner, same in alike(columns):
            some = np.flatnonzero((posterior[same] > MIN_PROBABILITY).any(axis=0))
            shapes[these[same]] = posterior[np.ix_(same, some)] @ candidates.shapes(inner, some)
        size[columns] = np.exp(posterior @ np.log(sizes))
        half_width[columns] = np.exp(posterior @ np.log(candidates.half_width))
        # A mean matters next to the size; but a tiny size is no more telling than the usual one.
        posterior /= np.maximum(sizes, size[columns][:, None])
        mean[columns] = (posterior @ means) / posterior.sum(axis=1)
    # What stands out of the expected counts moves the moments as it moves those of the bins.
    rest = _significant_residuals(counts, std, n_rows, shapes, counts.size)
    seen = np.maximum(shapes + rest, 0.0)
    held = seen.sum(axis=1, keepdims=True)
    seen = np.where(held > 0, seen / np.where(held > 0, held, 1.0), shapes)
    (expected_mean, expected_size), (seen_mean, seen_size) = _moments(shapes), _moments(seen)
    width = (ranges.high - ranges.low) / n_bins
    mean += (seen_mean - expected_mean) * width
    size *= np.hypot(seen_size, UNIFORM_STD) / np.hypot(expected_size, UNIFORM_STD)
    if not pooled:
        # No other columns correct these, and a law can explain noise in an open bin by values of
        # any size. The ends of ranges are medians, which noise misleads less: so mean and size stay
        # within the range, unless its first or last bin visibly holds records.
        visible = _significant_residuals(counts, std, n_rows, np.zeros_like(shapes), counts.size)
        within = np.maximum(visible[:, 0], visible[:, -1]) <= 0
        mean = np.where(within, np.clip(mean, ranges.low, ranges.high), mean)
        size = np.where(within, np.minimum(size, ranges.high - ranges.low), size)
    out = rest > TAIL_SHARE
    first, last = np.argmax(out, axis=1), n_bins - np.argmax(out[:, ::-1], axis=1)
    some_out = out.any(axis=1)
    low = np.where(some_out, ranges.low + first * width, np.inf)
    high = np.where(some_out, ranges.low + last * width, -np.inf)
    return Estimate(mean, size, half_width, Ranges(low, high))
