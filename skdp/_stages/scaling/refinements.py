"""Cases that the posterior of one column does not decide: all columns, narrow ones, long tails.

Standardised columns are recognised by the counts of all columns together. A narrow column far from
0 lies in few bins, whatever its distribution: its range follows from the smallest window with all
of it. The tail of a target is extrapolated by a Weibull distribution from sums of counts, which see
farther than single ones. All of it is post-processing of noisy histograms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import gamma, gammaincc

from skdp._numbers import AnyArray, Array, Mask
from skdp._oracle import Columns
from skdp._oracle.public import TARGET_RANGE
from skdp._oracle.releases.histograms import STEPS
from skdp._stages.scaling.distributions import (
    RANGE_IN_SCALES,
    TAIL_SHARE,
    Bins,
    Histogram,
    Ranges,
    magnitude_bounds,
)
from skdp._stages.scaling.estimates import MAX_FILLED_SHARE, Z_ONE

# ------------------------------------------------------------------ standardised columns

# All figures are choices of ours. Docs/research/defaults.rst has the evidence for each. Least share
# of negative values of all columns together, of which most have magnitudes from 1/16 to 4. Rare
# categories lie below 1/16. Largest share of one magnitude far from these in one column.
STANDARD_SHARE = 1 / 3


def keep_standardised(columns: Columns, magnitudes: Histogram, is_final: bool) -> Columns:
    """Return the columns, those that look standardised with centre 0 and scale 1.

    One column's rare values are lost in the noise of its counts. The counts of all columns together
    show them. Standardised columns lie on both sides of 0 and are of about unit scale. Ranges that
    are final, as no test halfway widens them, are twice as wide if there are rare categories.
    """
    lows, highs = magnitude_bounds()
    least, negative = np.minimum(np.abs(lows), np.abs(highs)), lows < 0
    shares = magnitudes.shares
    together, usual = shares.mean(axis=0), (least >= 1 / 16) & (least < 4)
    # Around 0, E[x+] = E[-x-], and E[x+]**2 <= P(x > 0) E[x**2] by Cauchy and Schwarz: columns
    # whose values are nearly all on one side are not centred.
    below = max(float(together @ np.where(negative & (least < 4), least, 0.0)), 0.0)
    squares = np.where(least < 16, np.minimum(3.0 * least**2, 4.0), 0.0)  # about those in a bin
    noise, z = np.linalg.norm(magnitudes.noise) / len(shares), magnitudes.z_of_largest(len(least))
    if (
        below**2 > together[~negative & usual].sum()
        or together @ squares < Z_ONE * noise * np.linalg.norm(squares)
        or 2 * together[usual].sum() < 1
        # By Chebyshev's inequality no more than 1/16 lies beyond 4.
        or together[(least >= 4) & (least < 64)].sum() > 1 / 16 + z * noise
        or together[negative & (least >= 1 / 256) & (least < 4)].sum() < STANDARD_SHARE
    ):
        return columns
    # A column in another unit, or far from 0, fills one magnitude or two.
    either = shares[:, lows > 0] + shares[:, negative][:, ::-1]
    outlying = np.delete(either, slice(STEPS - 5, STEPS + 2), axis=1).max(axis=1)
    # On both sides, as the common value of a rare category lies near 0, on one side of it.
    near = (least >= 1 / 1024) & (least < 1 / 16)
    sides = (shares[:, near & side].sum(axis=1) for side in (negative, ~negative))
    outlying = np.maximum(outlying, 2 * np.minimum(*sides))
    standard = outlying <= STANDARD_SHARE + z * math.sqrt(2) * magnitudes.noise
    # More records beyond 4 than a range leaves out are rare categories, which lie within 16.
    rare = together[(least >= 4) & (least < 16)].sum() > 2 * TAIL_SHARE + z * noise
    reach = RANGE_IN_SCALES * (1 + (rare and is_final))
    return replace(
        columns,
        low=np.where(standard, -reach, columns.low),
        high=np.where(standard, reach, columns.high),
        centre=np.where(standard, 0.0, columns.centre),
        scale=np.where(standard, 1.0, columns.scale),
    )


# ------------------------------------------------------------------ narrow columns

# A record lies in one bin of each column, however many there are, so bins cost nothing but draws of
# noise: a narrow column stands out in many bins, and one that fills more of them in a few.
MIN_SPREAD = 3  # bins that a column has to fill for its scale to be known
MAX_NOISE = 0.09  # on the count of a window, as a share of the rows
# Largest range of a point, relative to its distance from 0.
POINT_WIDTH = 2.0**-20
# Half the range of a point beside which noise may hide other values, relative to its distance from
# 0, and in scales.
POINT_REACH, REACH_IN_SCALES = 1 / 16, 4.0
# Largest noise on the count of a point: rare values beside it, clipped to an end, are signal.
POINT_NOISE = 0.0036


def refine_narrow_columns(bins: Bins) -> tuple[Ranges, Mask]:
    """Return ranges around the smallest windows with the columns, and which may be narrower still.

    A window has a column if, up to noise, all but ``TAIL_SHARE`` of the rows lie in it. A range
    stays as it is where there is no such window of at most a third of it, far from 0.
    """
    n_columns, n_bins = bins.shares.shape
    if bins.noise.min(initial=np.inf) > MAX_NOISE:  # on any window
        return bins.ranges, np.zeros(n_columns, dtype=bool)
    width = bins.ranges.width / n_bins
    first, sizes = np.zeros((2, n_columns), dtype=np.intp)
    sums = np.hstack([np.zeros((n_columns, 1)), np.cumsum(bins.shares, axis=1)])
    left = np.flatnonzero(bins.ranges.have_distinct_bins(n_bins))
    largest = max(int(MAX_FILLED_SHARE * n_bins), 1)
    for size in sorted({int(largest ** (power / 23)) for power in range(24)}):
        noise = bins.noise[left] * math.sqrt(size)
        left, noise = left[noise <= MAX_NOISE], noise[noise <= MAX_NOISE]
        if not len(left):
            break
        held = sums[left, size:] - sums[left, :-size]
        done = held.max(axis=1) >= 1 - TAIL_SHARE - Z_ONE * noise
        first[left[done]], sizes[left[done]] = held.argmax(axis=1)[done], size
        left = left[~done]
    start, margin = bins.ranges.low + first * width, sizes * width
    narrow = (sizes > 0) & Ranges(start, start + margin).far_from_0
    around = Ranges(start - margin, start + 2 * margin)
    return bins.ranges.where(narrow, around), narrow & (sizes < MIN_SPREAD)


def pin_points(
    columns: Columns, rounds: Sequence[Bins], magnitudes: Histogram, centred: bool
) -> Columns:
    """Return the columns, those whose counts lie in a single point clipped to that point.

    Such a column does not vary as far as its counts show, so it determines no coefficient, unless
    it replaces an intercept. Rare values beside a common one are outside of the bins of all rounds
    that contain the point, and few of them show in the mean.
    """
    ranges = rounds[-1].ranges
    total, n_bins, n_rounds = np.zeros((3, columns.n_columns))
    for one in (magnitudes, *rounds):
        low, high = one.edges.low, one.edges.high
        inside = (low <= ranges.high[:, None]) & (high >= ranges.low[:, None])
        used = inside.sum(axis=1) <= MIN_SPREAD
        total += used * np.sum(one.shares, axis=1, where=inside)
        n_bins, n_rounds = n_bins + used * inside.sum(axis=1), n_rounds + used
    noise = magnitudes.noise * np.sqrt(n_bins) / np.maximum(n_rounds, 1)
    hidden = Z_ONE * noise
    is_narrow = (ranges.width <= POINT_WIDTH * ranges.farthest) & ranges.far_from_0 & centred
    # The common value c of a standardised column with a share q of others: c**2 <= q / (1 - q).
    # Noise may hide somewhat more than expected.
    is_standard = (columns.centre == 0) & (columns.scale == 1)
    is_point = is_narrow & (total >= n_rounds * (1 - hidden)) & (noise <= POINT_NOISE)
    is_point &= ~is_standard | (ranges.farthest**2 > 4 * hidden)
    # Noise may hide other values. They are clipped to the ends of a range that is not so narrow
    # that noise becomes a huge coefficient.
    point = (ranges.low + ranges.high) / 2
    reach = np.where(is_point, 0.0, POINT_REACH * np.abs(point))
    size = np.where(is_point, np.abs(point), reach / REACH_IN_SCALES)
    low, high, centre, scale = np.where(
        is_point | (is_narrow & ~is_standard),
        [point - reach, point + reach, point, size],
        [columns.low, columns.high, columns.centre, columns.scale],
    )
    # All values may lie in one bin: then a solver that releases variances decides.
    is_flat = is_narrow | (rounds[-1].shares.max(axis=1) >= 1 - Z_ONE * rounds[-1].noise)
    return replace(columns, low=low, high=high, centre=centre, scale=scale, may_be_constant=is_flat)


# ------------------------------------------------------------------ long-tailed targets

# The scale of a target follows from single significant bins. A long tail spreads over many that are
# not, and without it residuals are capped too low. Sums over bins are more powerful.
# Largest share of the records beyond a point that is used, and least ratio of two such distances.
MAX_BODY_SHARE, MIN_DISTANCE_RATIO = 0.6, 2.0
# Exponent b of the tail: 1/2 for a normal distribution, 1 for an exponential one.
MAX_EXPONENT = 5.0
OMITTED_SHARE = 0.0001  # share of the records, the farthest ones, that a scale leaves out


def extrapolate_tails(
    targets: Columns, bins: Bins, magnitudes: Histogram, first: Ranges, of_logarithms: bool = False
) -> Columns:
    """Return targets with the larger scales and ranges that a Weibull tail implies.

    Beyond the farthest distance with a significant share s of the records, distances are assumed to
    grow as ``log(1 / s)**b``, as those of Weibull distributions do (Gardes and Girard 2005). b
    follows from that distance and the farthest one of at most half of it with significantly more
    records. It is less if such a tail would be significant farther out, where nothing is.

    Parameters
    ----------
    targets : Columns
    bins : Bins
        In equal bins of the last ranges.
    magnitudes : Histogram
        By sign and magnitude, and the ranges that followed.
    first : Ranges
    of_logarithms : bool, default=False
        Whether the link is a logarithm. Then centres are at least the means that counts imply: of
        long tails, where most counts lie in a bin or two, the prior of a column's shape shows a
        median. Scales are geometric means of those with the tail and without it, as steps become
        shorter by the square of a scale that is too large.
    """
    size, least, centre = targets.scale.copy(), np.zeros_like(targets.scale), targets.centre
    ranges, far = bins.ranges, bins.ranges.far_from_0
    # Magnitudes up to one more than those of the first range, on the sides that it has.
    edges, reach = magnitudes.edges, 4 * first.farthest[:, None]
    within = (edges.low > 0) & (edges.low < reach) & (first.high[:, None] > 0)
    within |= (edges.high < 0) & (edges.high > -reach) & (first.low[:, None] < 0)
    within &= ~far[:, None]
    used = (bins, np.ones(bins.shares.shape, dtype=bool)), (magnitudes, within)
    for one in range(len(size)):
        positive, points = (_beyond(used, one, origin) for origin in (0.0, centre[one]))
        least[one] = _least_sum(positive, magnitudes.z_of_largest(positive.shape[1]))
        edge = max(ranges.high[one] - centre[one], centre[one] - ranges.low[one])
        z = magnitudes.z_of_largest(points.shape[1])
        size[one] = math.sqrt(size[one] ** 2 + _beyond_the_seen(points, edge, z))
    wide = np.where(size > targets.scale, TARGET_RANGE * size, 0.0)
    limits = np.minimum(targets.low, centre - wide), np.maximum(targets.high, centre + wide)
    if of_logarithms:
        size, centre = np.sqrt(targets.scale * size), np.maximum(centre, least)
    low, high = np.clip(limits, centre - TARGET_RANGE * size, centre + TARGET_RANGE * size)
    return replace(targets, low=low, high=high, centre=centre, scale=size)


def _beyond(used: Iterable[tuple[Histogram, Mask]], column: int, centre: float) -> Array:
    """Return distances from the centre, the share of the records beyond each, and its noise.

    They are of the bins that are used of each histogram, from the nearest to the farthest.
    """
    points = []
    for histogram, chosen in used:
        low, high = histogram.edges.low[column], histogram.edges.high[column]
        distance = np.maximum(np.maximum(low - centre, centre - high), 0.0)[chosen[column]]
        order = np.argsort(-distance, kind="stable")
        beyond = np.cumsum(histogram.shares[column, chosen[column]][order])
        noise = histogram.noise[column] * np.sqrt(np.arange(1, len(order) + 1))
        last = np.diff(distance[order], append=-1.0) < 0  # of bins at one distance
        points.append(np.vstack([distance[order], beyond, noise])[:, last & (distance[order] > 0)])
    every = np.hstack(points)
    return every[:, np.argsort(every[0], kind="stable")]


def _least_sum(points: Array, z: AnyArray) -> float:
    """Return a lower bound of the sum of values of at least 0, by the counts beyond points.

    That is their integral. Each counts less its noise, from the nearest farther point of which more
    remains: beyond a point there are no fewer records than beyond a farther one.
    """
    distance, beyond, noise = points
    least = np.maximum(beyond - z * noise, 0.0)
    return float(np.maximum.accumulate(least[::-1])[::-1] @ np.diff(distance, prepend=0.0))


def _beyond_the_seen(points: Array, edge: float, z: AnyArray) -> float:
    """Return the part of a target's mean square that lies beyond an edge.

    A sum of counts is significant above ``z`` standard deviations of its noise.
    """
    distance, share, noise = points
    seen = np.flatnonzero((share > z * noise) & (share < MAX_BODY_SHARE))
    if not len(seen):
        return 0.0
    last = seen[-1]
    nearer = distance[seen] <= distance[last] / MIN_DISTANCE_RATIO
    before = seen[nearer & (share[seen] - share[last] > z * noise[seen])]
    if not len(before):
        return 0.0
    unit, far = -math.log(share[last]), distance[last]
    # Beyond it, and at the one before: distances and shares next to those there.
    most = np.maximum(share, 0.0) + Z_ONE * noise
    hidden = (distance > far) & (most < share[last])
    distances = np.append(distance[hidden], distance[before[-1]]) / far
    logs = -np.log(np.append(most[hidden], share[before[-1]])) / unit
    exponent = min(float(np.min(np.log(distances) / np.log(logs))), MAX_EXPONENT)
    start = min(far, edge)
    largest = math.exp(-unit * (start / far) ** (1 / exponent)) if exponent > 0 else 0.0
    if largest <= OMITTED_SHARE:
        return 0.0
    # The integral of the squared distances, whose shares are exponentially distributed.
    order = 2 * exponent + 1
    tails = gammaincc(order, -np.log([largest, OMITTED_SHARE]))
    squares = far**2 * unit ** (1 - order) * gamma(order) * (tails[0] - tails[1])
    squares -= start**2 * (largest - OMITTED_SHARE)
    return max(float(squares), 0.0)
