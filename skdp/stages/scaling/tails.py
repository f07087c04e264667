"""Sizes of targets with long tails: what noise hides of a tail is read from what it shows.

The size of a target follows from the bins that stand out of their noise, one by one. A long tail
spreads over many that do not, so a size without it is that of the body: residuals are capped too
soon. Sums over bins tell more. Post-processing only.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import integrate

from skdp._numbers import Array
from skdp.oracle import Columns
from skdp.oracle.public import TARGET_RANGE
from skdp.stages.scaling.estimates import Ranges, magnitude_ends

# Noises by which a share is seen, and by which it may be larger than it looks.
Z_SEEN, Z_HIDDEN = 4.0, 2.0
# ScalingBudget of the records: less than this is a tail, and the rest of it is near enough to be told from
# what is seen; more than that is no tail yet.
MAX_TAIL_SHARE, MAX_BODY_SHARE = 0.2, 0.6
MIN_DISTANCE_RATIO = 2.0  # least ratio of the two distances that tell how a tail falls off
# Exponent of the tail: 1/2 is a normal law's, 1 an exponential's. Below the least nothing is left.
MIN_EXPONENT, MAX_EXPONENT = 0.05, 5.0
OMITTED_SHARE = (
    0.0001  # share of the records that a size leaves out: those farther off are too few to follow
)
INTEGRATION_POINTS = 200  # of the numerical integral


def extrapolate_tails(
    targets: Columns,
    counts: Array,
    std: Array,
    ranges: Ranges,
    magnitudes: Array,
    magnitude_std: Array,
    first: Ranges,
    n_rows: int,
) -> Columns:
    """Return targets with the sizes and ranges that their tails suggest, if those are larger.

    Beyond the farthest distance where a share s of the records is seen, distances are taken to
    grow as ``log(1 / s)**b``, as those of Weibull laws do (Gardes and Girard 2005). b follows from
    that distance and the farthest one of at most half of it where visibly more are seen. It is less
    if the tail would show farther out, where nothing is seen.

    Parameters
    ----------
    targets : Columns
    counts : array of shape (n_targets, n_bins)
        Counts in equal bins of ``ranges``, and noise on them.
    std : array of shape (n_targets,)
    ranges : Ranges
    magnitudes : array of shape (n_targets, n_magnitudes)
        Counts by sign and magnitude, noise on them, and the ranges that followed.
    magnitude_std : array of shape (n_targets,)
    first : Ranges
    n_rows : int
    """
    size, centre = targets.size.copy(), targets.centre
    far = ranges.far_from_0
    # Magnitudes up to one more than those of the first range, on the sides that it has.
    lows, highs = magnitude_ends()
    reach = 4 * np.maximum(np.abs(first.low), np.abs(first.high))[:, None]
    within = (lows > 0) & (lows < reach) & (first.high[:, None] > 0)
    within |= (highs < 0) & (highs > -reach) & (first.low[:, None] < 0)
    for one in range(len(size)):
        low, high = ranges.low[one], ranges.high[one]
        edges = np.linspace(low, high, counts.shape[1] + 1)
        points = _beyond(edges[:-1], edges[1:], counts[one], std[one], centre[one])
        if not far[one]:
            asked = magnitudes[one][within[one]], magnitude_std[one]
            bins = lows[within[one]], highs[within[one]]
            points = np.hstack([points, _beyond(*bins, *asked, centre[one])])
        points[1:] /= n_rows
        edge = max(high - centre[one], centre[one] - low)
        size[one] = math.sqrt(size[one] ** 2 + _beyond_the_seen(points, edge))
    wide = np.where(size > targets.size, TARGET_RANGE * size, 0.0)
    low, high = np.minimum(targets.low, centre - wide), np.maximum(targets.high, centre + wide)
    return Columns(low, high, centre, size)


def _beyond(low: Array, high: Array, counts: Array, std: float, centre: float) -> Array:
    """Return distances from the centre, how many records lie beyond each, and noise on that."""
    distance = np.maximum(np.maximum(low - centre, centre - high), 0.0)
    order = np.argsort(-distance, kind="stable")
    distance, beyond = distance[order], np.cumsum(counts[order])
    noise = std * np.sqrt(np.arange(1, len(order) + 1))
    whole = np.append(distance[1:] < distance[:-1], True) & (distance > 0)
    return np.vstack([distance, beyond, noise])[:, whole]


def _beyond_the_seen(points: Array, edge: float) -> float:
    """Return what a tail adds to the mean square of a target that is cut at an edge."""
    points = points[:, np.argsort(points[0], kind="stable")]
    distance, share, noise = points
    seen = np.flatnonzero((share > Z_SEEN * noise) & (share < MAX_BODY_SHARE))
    if not len(seen) or share[seen[-1]] > MAX_TAIL_SHARE:
        return 0.0
    last = seen[-1]
    nearer = distance[seen] <= distance[last] / MIN_DISTANCE_RATIO
    before = seen[nearer & (share[seen] - share[last] > Z_SEEN * noise[seen])]
    if not len(before):
        return 0.0
    unit, far = -math.log(share[last]), distance[last]
    # Beyond it, and at the one before: distances and shares next to those there.
    most = np.maximum(share, 0.0) + Z_HIDDEN * noise
    hidden = (distance > far) & (most < share[last])
    distances = np.append(distance[hidden], distance[before[-1]]) / far
    logs = -np.log(np.append(most[hidden], share[before[-1]])) / unit
    exponent = min(float(np.min(np.log(distances) / np.log(logs))), MAX_EXPONENT)
    start = min(far, edge)
    largest = math.exp(-unit * (start / far) ** (1 / exponent)) if exponent > MIN_EXPONENT else 0.0
    if largest <= OMITTED_SHARE:
        return 0.0
    shares = np.geomspace(OMITTED_SHARE, largest, INTEGRATION_POINTS)
    beyond = (far * (-np.log(shares) / unit) ** exponent) ** 2 - start**2
    return float(integrate.trapezoid(np.maximum(beyond, 0.0), shares))
