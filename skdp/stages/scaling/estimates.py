"""From noisy histograms to range, centre and size of each column. Post-processing only.

The counts of a column are compared with shapes that columns may have. What the best of them leaves
is kept where it stands out from the noise. So where there is little noise the counts speak for
themselves, and where there is much a column is what columns usually are, in this data first of all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skdp._numbers import Array, Indices, Mask
from skdp.oracle import Columns
from skdp.oracle.kernels.histograms import SIDE, STEPS
from skdp.stages.scaling.templates import (
    Templates,
    between_tails,
    bin_templates,
    ends_of_magnitude_templates,
    fine_laws,
    log_likelihood,
    magnitude_templates,
    median_end,
    posteriors_of,
)

STANDS_OUT = 1.2  # above the largest of so many noises, in units of the noise on a count
# A magnitude that widens a range stands out by so much more for each bin that it lies beyond the
# next, and by so much at most: noise alone widens a range by a bin or two, which is soon undone.
FARTHER, MOST_FARTHER = 1.0, 5.0
TRIM = 0.004  # share of the records left out of a range at each end
MOST_TRIM = 0.49  # below a half, so that the two ends of a range cannot cross
# The same of what a range is made smaller by, in units of the noise. A target of which only one
# open bin is looked at is lost, so its range is made smaller sooner.
HIDDEN, HIDDEN_OF_TARGETS = 0.4, 0.8
THIN = 0.05  # least size in units of half the range
DOUBT = 8.0  # error of logarithmic sizes, and of means in sizes, in units of the noise
OFF = 4.0  # error of the mean of a column by itself, in sizes, in units of the noise
# Columns may be alike if so many of them have sizes so far apart at most, that being a multiple of
# the noise.
NEARLY_ALL, MOST_APART, APART = 0.9, 8.0, 25.0
NOT_FAR = 1.5  # most mean of such a column, in sizes
LONE = 0.6  # most size in bins of a column that shows one value only
OWN_VALUE = 0.25  # size of such a column next to its value: 0 and 1 have 0.5
AGAIN = 0.25  # most share of the bins of a range that is made smaller once more
FINEST = 2.0**-40  # of widths of bins, next to the offset
NEAR = 0.5  # most width of a range that is far from 0, next to its distance from 0
LEAST_SIZE = 0.2  # of a shape, in bins
WIDE = 5.0  # least range in units of the size
# Noise on the counts of features, as a share of the rows, from which on columns are read from all
# their histograms at once; and from which on those with long tails are, too. With less noise their
# last histogram shows better where most of the rows end.
ALL_AT_ONCE, SKEWED_TOO = 0.02, 0.08
SKEWED = 0.5  # probability of a lognormal law from which on a column has a long tail


@dataclass(frozen=True)
class Ranges:
    """Ends of the range of every column."""

    low: Array
    high: Array

    @property
    def far_from_0(self) -> Mask:
        """Which ranges are short next to their distance from 0: a long tail's are not."""
        return self.high - self.low < NEAR * np.maximum(self.low, -self.high)

    def of(self, columns: Indices) -> Ranges:
        """Return the ranges of some columns."""
        return Ranges(self.low[columns], self.high[columns])

    def where(self, chosen: Mask, other: Ranges) -> Ranges:
        """Return the ranges, others for the chosen columns."""
        return Ranges(
            np.where(chosen, other.low, self.low), np.where(chosen, other.high, self.high)
        )


def _standing_out(
    counts: Array, std: Array, n_rows: int, shapes: Array, n_counts: int, more: Array | float = 0.0
) -> Array:
    """Share of the records in each bin beyond the expected shape; 0 where noise can be the reason.

    Of ``n_counts`` counts in all, noise alone makes hardly one exceed the limit. The limit is
    higher by ``more``, in units of the noise.
    """
    rest = counts / n_rows - shapes
    largest = np.sqrt(2 * np.log(n_counts)) + STANDS_OUT + more
    rest[np.abs(rest) <= largest * (std[:, None] / n_rows)] = 0.0
    return rest


@dataclass(frozen=True)
class DenoisedBins:
    """What the bins of each column hold: probabilities, and their mean and size in bins."""

    probabilities: Array
    mean: Array
    size: Array


def denoised(
    counts: Array, std: Array, n_rows: int, templates: Templates, in_common: bool
) -> DenoisedBins:
    """Return the expected shape of each column, and what stands out from it.

    Where several shapes come into question, sizes are averaged on a logarithmic scale, and means
    by how much they matter next to the sizes.

    Parameters
    ----------
    counts : array of shape (n_columns, n_bins)
    std : array of shape (n_columns,)
        Noise on the counts of each column.
    n_rows : int
    templates : Templates
    in_common : bool
        Whether columns are likely to be like each other.
    """
    means, sizes = _moments(templates.shapes)
    sizes = np.maximum(sizes, LEAST_SIZE)
    shapes = np.empty(counts.shape)
    likely_mean, likely_size = np.empty(len(counts)), np.empty(len(counts))
    for columns, posterior in _posteriors(counts, std, n_rows, templates, in_common):
        shapes[columns] = posterior @ templates.shapes
        likely_mean[columns] = (posterior @ (means / sizes)) / (posterior @ (1 / sizes))
        likely_size[columns] = np.exp(posterior @ np.log(sizes))
    found = np.maximum(shapes + _standing_out(counts, std, n_rows, shapes, counts.size), 0.0)
    found /= np.maximum(found.sum(axis=1, keepdims=True), 1e-300)
    mixed_mean, mixed_size = _moments(shapes)
    mean, size = _moments(found)
    mean += likely_mean - mixed_mean
    size *= likely_size / np.maximum(mixed_size, LEAST_SIZE)
    return DenoisedBins(found, mean, size)


def _posteriors(
    counts: Array, std: Array, n_rows: int, templates: Templates, in_common: bool
) -> Iterator[tuple[slice, Array]]:
    """Yield columns, a few at once, and the probability of every shape, of one histogram."""

    def fit(columns: slice | Indices) -> Array:
        return log_likelihood(counts[columns], std[columns], n_rows, templates)

    return posteriors_of(fit, len(counts), templates, in_common)


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


def coarse_ranges(counts: Array, std: Array, n_rows: int, exact: bool, in_common: bool) -> Ranges:
    """Ranges from counts of magnitudes: medians, since shapes of all sizes come into question."""
    templates = magnitude_templates()
    first, last = np.empty((2, len(counts)), dtype=np.intp)
    beyond, ends = np.empty(counts.shape, dtype=bool), ends_of_magnitude_templates(TRIM)
    bins = np.arange(counts.shape[1])
    for columns, posterior in _posteriors(counts, std, n_rows, templates, in_common):
        first[columns], last[columns] = (median_end(posterior, one) for one in ends)
        away = np.maximum(first[columns][:, None] - bins, bins - last[columns][:, None])
        more = np.clip(FARTHER * (away - 1), 0.0, MOST_FARTHER)
        likeliest = templates.shapes[np.argmax(posterior, axis=1)]
        seen = counts[columns], std[columns], n_rows
        beyond[columns] = _standing_out(*seen, likeliest, counts.size, more) > TRIM
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


def zoomed(
    counts: Array,
    std: Array,
    n_rows: int,
    exact: bool,
    ranges: Ranges,
    in_common: bool,
    again: bool = False,
) -> Ranges:
    """Smaller ranges, where the bins that hold records are much fewer than there are.

    A range that is smaller already is made smaller ``again`` only where its width is small next to
    its distance from 0: rare values far from common ones stay in it.
    """
    n_bins = counts.shape[1]
    found = _found(counts, std, n_rows, exact, in_common)
    trim: Array | float = 0.0 if exact else TRIM
    if not exact:
        # Shares that noise hides are no reason for a wide range.
        hidden = HIDDEN if in_common else HIDDEN_OF_TARGETS
        trim = np.clip(hidden * std / n_rows, TRIM, MOST_TRIM)[:, None]
    first, last = between_tails(found.probabilities, trim)
    width = (ranges.high - ranges.low) / n_bins
    start, stop = np.maximum(first - 1, 0), np.minimum(last + 2, n_bins)
    smaller = stop - start <= (AGAIN if again else 0.6) * n_bins
    # Not beyond what numbers of this size can tell apart.
    farthest = np.maximum(np.abs(ranges.low), np.abs(ranges.high))
    smaller &= width > FINEST * farthest
    closer = Ranges(ranges.low + start * width, ranges.low + stop * width)
    if again:
        smaller &= closer.far_from_0
    return ranges.where(smaller, closer)


def _found(counts: Array, std: Array, n_rows: int, exact: bool, in_common: bool) -> DenoisedBins:
    """Return what bins hold: the very counts where they are exact."""
    if not exact:
        return denoised(counts, std, n_rows, bin_templates(counts.shape[1]), in_common)
    probabilities = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return DenoisedBins(probabilities, *_moments(probabilities))


def columns_from(
    counts: Array,
    std: Array,
    n_rows: int,
    exact: bool,
    ranges: Ranges,
    in_common: bool,
    centred: bool,
) -> Columns:
    """Range, centre and size of every column, from the counts of its last histogram."""
    found = _found(counts, std, n_rows, exact, in_common)
    width = (ranges.high - ranges.low) / counts.shape[1]
    mean = ranges.low + found.mean * width
    half = (ranges.high - ranges.low) / 2
    size = np.maximum(found.size * width, THIN * half)
    if exact:
        # Of a column that holds one value, that one, or 1 if it is 0.
        one = np.where(np.abs(mean) > half, np.abs(mean), 1.0)
        size = np.where(found.size > 0, found.size * width, one)
    elif in_common:
        # What a column holds beside one value other than 0 drowns in noise, and that value's bin
        # says nothing of a size. A range far from 0 was found by looking closer: its ends do.
        lone = (found.size <= LONE) & (np.abs(mean) > 2 * size) & ~ranges.far_from_0
        size = np.where(lone, np.maximum(size, OWN_VALUE * np.abs(mean)), size)
        mean, size = _without_doubtful(mean, size, std / n_rows)
        alike = _alike(mean, size, float(np.mean(std)) / n_rows)
        if alike.any():
            one_size = float(np.median(np.hypot(mean, size)[alike]))
            mean, size = np.where(alike, 0.0, mean), np.where(alike, one_size, size)
    else:
        mean = np.where(np.abs(mean) < OFF * (std / n_rows) * size, 0.0, mean)
    if not centred:
        size = np.hypot(size, mean)
    first, last = between_tails(found.probabilities, 0.0 if exact else TRIM)
    low = ranges.low + first * width
    high = ranges.low + (last + 1) * width
    if not exact:
        # A share of TRIM at either end makes for a size like this at least.
        size = np.maximum(size, math.sqrt(TRIM) * (high - low - 2 * width))
    low, high = np.minimum(low, mean - WIDE * size), np.maximum(high, mean + WIDE * size)
    if centred:
        return Columns(low, high, mean, size)
    # 0 stays in the range, and where it is.
    return Columns(np.minimum(low, 0.0), np.maximum(high, 0.0), np.zeros(len(mean)), size)


def columns_from_all(
    magnitudes: tuple[Array, Array],
    bins: tuple[Array, Array],
    n_rows: int,
    ranges: Ranges,
    centred: bool,
) -> tuple[Columns, Mask]:
    """Range, centre and size of columns, from all that was asked; and whether they have long tails.

    Means and sizes are those of the laws that a column may follow, each as probable as both its
    histograms and what columns have in common make it.

    Parameters
    ----------
    magnitudes : tuple of arrays, of shapes (n_columns, n_magnitudes) and (n_columns,)
        Counts by sign and magnitude, and the noise on those of each column.
    bins : tuple of arrays, of shapes (n_columns, n_bins) and (n_columns,)
        Likewise in equal bins of ``ranges``.
    n_rows : int
    ranges : Ranges
    centred : bool
    """
    laws, templates = fine_laws()
    counts, std = bins
    edges = np.linspace(ranges.low, ranges.high, counts.shape[1] + 1, axis=1)[:, 1:-1]

    def fit(columns: slice | Indices) -> Array:
        found = log_likelihood(magnitudes[0][columns], magnitudes[1][columns], n_rows, templates)
        # Ranges end at powers of 4, so that many columns have the same bins.
        each, which = np.unique(edges[columns], axis=0, return_inverse=True)
        of_these, noise = counts[columns], std[columns]
        for number, inner in enumerate(each):
            same = np.flatnonzero(which.ravel() == number)
            seen = of_these[same], noise[same], n_rows
            found[same] += log_likelihood(*seen, laws.templates(inner))
        return found

    mean, size, lognormal = np.empty((3, len(counts)))
    means, sizes = laws.moments
    for columns, posterior in posteriors_of(fit, len(counts), templates, in_common=True):
        lognormal[columns] = posterior[:, laws.lognormal].sum(axis=1)
        size[columns] = np.exp(posterior @ np.log(sizes))
        # A mean matters next to the size; but a tiny size is no more telling than the usual one.
        posterior /= np.maximum(sizes, size[columns][:, None])
        mean[columns] = (posterior @ means) / posterior.sum(axis=1)
    mean, size = _without_doubtful(mean, size, std / n_rows)
    if not centred:
        mean, size = np.zeros(len(mean)), np.hypot(size, mean)
    return Columns(mean - WIDE * size, mean + WIDE * size, mean, size), lognormal > SKEWED


def _without_doubtful(mean: Array, size: Array, noise: Array) -> tuple[Array, Array]:
    """Means and sizes without differences that noise alone can make: not worth their harm."""
    doubt = np.minimum(1.0, DOUBT * noise)
    usual = float(np.median(size))
    size = np.where(np.abs(np.log(size / usual)) < doubt, usual, size)
    return np.where(np.abs(mean) < doubt * size, 0.0, mean), size


def _alike(mean: Array, size: Array, noise: float) -> Mask:
    """Return which columns get one size and centre: nearly all, if for all we see they may.

    Where there is much noise that is better than a size of its own for each.
    """
    apart = np.abs(np.log(size / np.median(size)))
    most = min(math.log(MOST_APART), APART * noise)
    alike = (apart < most) & (np.abs(mean) < NOT_FAR * size)
    return np.asarray(alike & (alike.mean() >= NEARLY_ALL))
