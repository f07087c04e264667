"""Range, centre and scale of each column: functionals of its posterior and of residual counts.

Ranges are posterior medians of the magnitudes between two tails. Means and scales are posterior
expectations. Counts that exceed the posterior expectation by more than the noise change all three.
Columns far from 0 are described relative to their range.

A column keeps the unit 1 unless more of its values are far from 1 than noise explains, and the
others are no bulk next to which these are isolated. All of it is post-processing of noisy
histograms.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from skdp._numbers import Array
from skdp._oracle import Columns
from skdp._oracle.releases.histograms import BEYOND, BLOCK, BLOCKS, DIGIT, FAR, N_NEAR, SIDE, STEPS
from skdp._stages.scaling.distributions import (
    TAIL_SHARE,
    Bins,
    Histogram,
    Ranges,
    between_tails,
    by_magnitude,
    median_bin,
    moments,
    posteriors,
    z_of_largest,
)

# All figures are choices of ours. Docs/research/defaults.rst has the evidence for each.
Z_ONE = 2.0  # threshold of one noisy sum, in noise standard deviations
MAX_FILLED_SHARE = 1 / 3  # largest share of a range to which it shrinks
# Half the width, in scales, of the range of a column far from 0, which fills a part of it.
FAR_HALF_WIDTH = float(-ndtri(TAIL_SHARE) / MAX_FILLED_SHARE)


def _residuals(
    histogram: Histogram, expected: Array | float = 0.0, more: Array | float = 0.0
) -> Array:
    """Residual share of the records in each bin. 0 where it is below the noise threshold.

    Of all counts together, noise alone makes hardly one exceed the threshold, which is higher by
    ``more``, in noise standard deviations.
    """
    rest = histogram.shares - expected
    limit = histogram.z_of_largest(rest.size, more) * histogram.noise[:, None]
    # A share above 1 can only be noise.
    rest[(np.abs(rest) <= limit) | (limit >= 1)] = 0.0
    return rest


def _moment(shapes: Array, mean: Array, order: int) -> Array:
    """Return a central moment of shapes, in bins."""
    places = np.arange(shapes.shape[1]) + 0.5
    return np.asarray(np.sum(shapes * (places - mean[:, None]) ** order, axis=1))


def _moments(shapes: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of shapes, uniform within each bin, in bins."""
    mean = _moment(shapes, np.zeros(len(shapes)), 1)
    return mean, np.sqrt(_moment(shapes, mean, 2) + 1 / 12)


def coarse_ranges(magnitudes: Histogram, exact: bool, pooled: bool) -> Ranges:
    """Ranges from counts of magnitudes: posterior medians, as scales vary greatly."""
    edges, table = magnitudes.edges, by_magnitude()
    number = np.arange(edges.low.shape[1])
    first, last, likeliest = np.empty((3, len(edges.low)), dtype=np.intp)
    for columns, near, posterior in posteriors([magnitudes], pooled):
        bins = (one[near] for one in table.support)
        first[columns], last[columns] = (median_bin(posterior, one) for one in bins)
        likeliest[columns] = near[np.argmax(posterior, axis=1)]
    # Noise alone enlarges a range by a bin or two, which is soon undone. A farther one is no noise.
    away = np.maximum(first[:, None] - number, number - last[:, None])
    expected = table.by_bin.T[likeliest]
    beyond = _residuals(magnitudes, expected, np.maximum(away - 1, 0)) > TAIL_SHARE
    first = np.min(np.where(beyond, number, first[:, None]), axis=1)
    last = np.max(np.where(beyond, number, last[:, None]), axis=1)
    if exact:
        first, last = between_tails(magnitudes.shares, 0.0)
    # Noise may make the medians cross.
    low, high = edges.low[0, np.minimum(first, last)], edges.high[0, np.maximum(first, last)]
    ranges = Ranges(low - (high <= low), high + (high <= low))
    return ranges if exact else ranges.rounded()


def shrink_ranges(bins: Bins, estimated: Ranges, again: bool) -> Ranges:
    """Return the estimated ranges where they are much narrower, and the former ones elsewhere.

    A range that has been shrunk before is shrunk ``again`` only where its width is small next to
    its distance from 0: rare values far from common ones stay in it.
    """
    smaller = estimated.width <= MAX_FILLED_SHARE * bins.ranges.width
    smaller &= bins.ranges.have_distinct_bins(bins.shares.shape[1])
    if again:
        smaller &= estimated.far_from_0
    return bins.ranges.where(smaller, estimated)


def support_with_margin(bins: Bins) -> Ranges:
    """Return the range of the bins that are not empty, and one bin more on either side."""
    first, last = between_tails(bins.shares, 0.0)
    n_bins = bins.shares.shape[1]
    width = bins.ranges.width / n_bins
    start, stop = np.maximum(first - 1, 0), np.minimum(last + 2, n_bins)
    return Ranges(bins.ranges.low + start * width, bins.ranges.low + stop * width)


def exact_columns(bins: Bins, is_features: bool, centred: bool) -> Columns:
    """Centre and scale of every column, from exact counts in bins.

    Without noise there is nothing to be hidden: values are not clipped. Features of about unit
    scale around zero are not changed, so that a penalty acts on their own coefficients, and a fit
    agrees with scikit-learn's. Centred features of a single value are clipped to it, as by
    `pin_points`.
    """
    shares, ranges = bins.shares, bins.ranges
    width = ranges.width / shares.shape[1]
    # Rows of weight 0 are in no bin.
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    place = _moment(shares, np.zeros(len(shares)), 1)
    mean, size = ranges.low + place * width, np.sqrt(_moment(shares, place, 2)) * width
    # A constant column has the scale of its value, or 1 if that is 0.
    one = np.where(np.abs(mean) > ranges.width / 2, np.abs(mean), 1.0)
    is_point, size = (size == 0) & is_features & centred, np.where(size > 0, size, one)
    mean = np.where(is_point & (np.abs(mean) <= ranges.width / 2), 0.0, mean)
    if not centred:
        mean, size = np.zeros(len(mean)), np.hypot(size, mean)
    if is_features:
        usual = (size > 0.25) & (size < 4) & (np.abs(mean) < 2) & ~is_point
        mean, size = np.where(usual, 0.0, mean), np.where(usual, 1.0, size)
    most = np.full(len(mean), np.finfo(float).max)
    low, high = np.where(is_point, mean, [-most, most])
    return Columns(low, high, mean, size)


def estimate(magnitudes: Histogram, bins: Bins, is_features: bool, centred: bool = True) -> Columns:
    """Return the posterior estimate of columns from their histograms.

    A column far from 0 is estimated only from its bins, in units of its range and relative to the
    middle of it.

    Parameters
    ----------
    magnitudes : Histogram
        By sign and magnitude.
    bins : Bins
    is_features : bool
        Whether these are features, which share a prior, and not targets.
    centred : bool, default=True
        Whether columns have centres other than 0.
    """
    ranges, far = bins.ranges, bins.ranges.far_from_0
    n_columns = len(bins.shares)
    half = np.full(n_columns, FAR_HALF_WIDTH)
    unit = np.where(far, ranges.width / (2 * half), 1.0)
    offset = np.where(far, (ranges.high + ranges.low) / 2, 0.0)
    bins = replace(bins, ranges=ranges.where(far, Ranges(-half, half)))
    mean, size, half_width = np.empty((3, n_columns))
    shapes = np.empty(bins.shares.shape)
    for is_far in np.unique(far):
        part = np.flatnonzero(far == is_far)
        expected = _expected(bins.of(part), None if is_far else magnitudes.of(part), is_features)
        mean[part], size[part], half_width[part], shapes[part] = expected
    # Residual counts move the moments as they move those of the bins.
    rest = _residuals(bins, shapes)
    seen = np.maximum(shapes + rest, 0.0)
    held = seen.sum(axis=1, keepdims=True)
    seen = np.divide(seen, held, out=shapes.copy(), where=held > 0)
    (expected_mean, expected_size), (seen_mean, seen_size) = _moments(shapes), _moments(seen)
    skewness = _moment(seen, seen_mean, 3) / seen_size**3
    bin_width = bins.ranges.width / bins.shares.shape[1]
    mean = offset + unit * (mean + (seen_mean - expected_mean) * bin_width)
    # Next to a common value, the size of the posterior may be far below the width of a bin. The
    # spread of the values in other bins adds to its square.
    added = (seen_size**2 - expected_size**2) * bin_width**2
    size = unit * np.sqrt(np.maximum(size**2 + added, (size * seen_size / expected_size) ** 2))
    if not centred:
        mean, size = np.zeros(n_columns), np.hypot(size, mean)
    low, high = mean + np.array([[-1.0], [1.0]]) * half_width * size
    # Ranges have residual counts that no candidate explains.
    out, edges = rest > TAIL_SHARE, bins.edges
    start, stop = (offset[:, None] + unit[:, None] * one for one in (edges.low, edges.high))
    low = np.minimum(low, np.min(start, axis=1, where=out, initial=np.inf))
    high = np.maximum(high, np.max(stop, axis=1, where=out, initial=-np.inf))
    return Columns(low, high, mean, size, skewness)


def _expected(
    bins: Bins, magnitudes: Histogram | None, is_features: bool
) -> tuple[Array, Array, Array, Array]:
    """Return posterior expectations of columns by their histograms.

    These are mean, size, half width of the range in sizes, and probabilities of bins.
    """
    is_far = magnitudes is None
    n_columns, n_bins = bins.shares.shape
    # Bins alone do not resolve scales below that of a uniform distribution in one of them.
    least = np.float32(is_far * 2 * FAR_HALF_WIDTH / n_bins / math.sqrt(12))
    mean, size, half_width = np.empty((3, n_columns))
    shapes = np.empty((n_columns, n_bins))
    histograms = [bins] if magnitudes is None else [bins, magnitudes]
    pooled = is_features and not is_far
    for some, near, posterior in posteriors(histograms, pooled):
        shapes[some] = bins.of(some).mixed(posterior, near)
        means, sizes, half_widths = moments()[:, near]
        np.maximum(sizes, least, out=sizes)
        size[some] = np.exp(posterior @ np.log(sizes))
        half_width[some] = np.exp(posterior @ np.log(half_widths))
        # Means are weighted by the inverse scale, those of targets by its square, as their errors
        # count in variances. Scales below the posterior one count as that.
        weights = np.maximum(sizes, size[some, None].astype(np.float32))
        np.divide(posterior, weights if pooled else weights**2, out=weights)
        mean[some] = weights @ means / weights.sum(axis=1)
    return mean, size, half_width, shapes


# All figures are choices of ours.
# Step of the largest values of a column in its unit: above them there is room for rare values.
LARGEST = 9
MIN_BULK_SHARE = 0.85  # of the records: of near values next to which far ones are isolated
MOST = BEYOND - STEPS  # step of a unit, on either side of 1
# In standard deviations: by how much blocks and digits of far values stand out more than other
# counts, and noise on the number of other values. A unit that is read from noise loses all values.
MARGIN, Z_OTHERS = 1.0, 3.5
ADJACENT = 4  # near steps below the far ones: if they have values, the far ones are not isolated


def in_own_units(
    counts: Array, n_rows: Array | float, std: float, is_laplace: bool = False
) -> tuple[Array, Array, Array]:
    """Return counts by sign and magnitude in units of the columns, their noise, and the units.

    Values beyond the outermost bins are in these. Values below the innermost ones count as 0. The
    noise is the standard deviation on each count of a column. Units are powers of 4.

    Parameters
    ----------
    counts : array of shape (n_columns, N_MAGNITUDES)
        Of `MagnitudeCounts`.
    n_rows : float or array of shape (n_columns,)
        Number of values that were counted in each column.
    std : float
        Standard deviation of the noise on each count.
    is_laplace : bool, default=False
        Whether the noise is Laplace's, whose tails reach farther.
    """
    n_columns, near, blocks = len(counts), counts[:, :N_NEAR].copy(), counts[:, BLOCK]
    of_blocks = z_of_largest(blocks.size, MARGIN, is_laplace) * std
    seen = np.where(blocks > of_blocks, blocks, 0.0) / DIGIT
    n_rows, noise = np.broadcast_to(n_rows, n_columns), np.full(n_columns, std)
    steps, limit = np.zeros(n_columns), float(z_of_largest(near.size, 0.0, is_laplace)) * std
    for one in np.flatnonzero(seen.any(axis=1)):
        digits = counts[one, FAR].reshape(2, SIDE) / DIGIT
        n_others = n_rows[one] - near[one, SIDE]
        steps[one] = step = _step_of_unit(near[one], seen[one], digits, n_others, std, limit)
        near[one] = _moved(near[one], seen[one], digits, step, limit)
        noise[one] = std / DIGIT if step else std
    return near, noise, 4.0**steps


def _step_of_unit(
    near: Array, seen: Array, digits: Array, n_others: float, std: float, limit: float
) -> int:
    """Return the logarithm to base 4 of a column's unit. ``n_others`` values are not 0.

    Large values decide unless they are isolated beyond a bulk of near ones. Small values decide if
    there are no others, as a difference of numbers that is rounding error is no number of its own.
    """
    large, small = seen[BLOCKS > 0].sum(), seen[BLOCKS < 0].sum()
    noise = std * np.sqrt(1 + np.count_nonzero(seen[BLOCKS < 0]) / DIGIT**2)
    is_tail = max(near[:ADJACENT].max(), near[-ADJACENT:].max()) > limit
    if large > 0 and (is_tail or large >= (1 - MIN_BULK_SHARE) * n_others):
        side = BLOCKS > 0
    elif small > 0 and n_others - small <= Z_OTHERS * noise + 1e-9 * n_others:
        side = BLOCKS < 0
    else:
        return 0
    steps = STEPS * BLOCKS[side & (seen > 0)][-1] + np.arange(STEPS)
    values = digits[:, steps % SIDE].max(axis=0)
    visible = np.flatnonzero(values > (limit + MARGIN * std) / DIGIT)
    largest = steps[visible[-1] if len(visible) else values.argmax()]
    return int(np.clip(largest - LARGEST, -MOST, MOST))


def _moved(near: Array, seen: Array, digits: Array, step: int, limit: float) -> Array:
    """Return the counts of a column by sign and magnitude in the unit ``4**step``."""
    window = step + np.arange(-STEPS, STEPS)
    first, last = window[0] // STEPS, window[-1] // STEPS
    by_sign = np.stack([near[SIDE - 1 :: -1], near[SIDE + 1 :]])
    of_far = np.isin(window // STEPS, BLOCKS[seen > 0])
    result = np.where(of_far, digits[:, window % SIDE], 0.0)
    known = np.arange(-STEPS, STEPS)
    inside = (known >= window[0]) & (known <= window[-1])
    result[:, known[inside] - window[0]] = by_sign[:, inside]
    outside = np.where(by_sign > limit, by_sign, 0.0)
    zeros = near[SIDE] + outside[:, known < window[0]].sum()
    zeros += seen[first > BLOCKS].sum()
    # The sign of values beyond follows from their digits.
    share = np.maximum(digits.max(axis=1), 1e-300)
    beyond = seen[last < BLOCKS].sum() * share / share.sum()
    result[:, -1] += beyond + outside[:, known > window[-1]].sum(axis=1)
    return np.concatenate([result[0, ::-1], [zeros], result[1]])
