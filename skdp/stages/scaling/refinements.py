"""Special cases of ranges and scales: standardised columns, narrow columns, long-tailed targets.

All of it is post-processing of noisy histograms.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy import integrate

from skdp._numbers import Array, Indices, Mask
from skdp.oracle import Columns
from skdp.oracle.public import TARGET_RANGE
from skdp.oracle.releases.histograms import SIDE, STEPS
from skdp.stages.scaling.estimates import MIN_RELATIVE_WIDTH, TAIL_SHARE, Ranges, magnitude_bounds

# ------------------------------------------------------------------ standardised columns

# All figures are choices of ours; docs/research/defaults.rst has the evidence for each.
# Noise standard deviations: tolerated in a bound on a share, and needed to detect a mean square.
Z_TOLERANCE, Z_DETECT = 3.0, 2.0
MIN_NEGATIVE_SHARE = 0.35  # least share of negative values
MIN_UNIT_SHARE = 0.5  # least share of values with a magnitude between 1/16 and 16
MAX_MEAN_SQUARE = 1.8  # of values clipped at 2, those beyond 16 left out
MAX_OUTLYING_SHARE = 0.5  # of the values of a single column
# Of a single column: share beyond 4 by Chebyshev's inequality, and least one on either side of 0
# within 1/16, where columns of a smaller unit lie; and share of such columns in a raw table.
MAX_FAR_SHARE, MAX_NEAR_SHARE, MAX_OTHER_UNITS = 1 / 16, 0.2, 0.25
# Half width of the range of a standardised column: beyond it lie outliers. Where more than a share
# of the values is significantly there, these are the ones of rare categories, and it is larger.
HALF_WIDTH, RARE_SHARE, HALF_WIDTH_RARE = 4.0, 0.011, 9.0
MAX_POOLED_NOISE = 0.06  # on shares of all columns together


def detect_standardised(counts: Array, std: Array, n_rows: int) -> Array:
    """Return the half width of the range of columns that look standardised, and 0 for others.

    One column's rare values are lost in the noise of its counts; the counts of all columns together
    show them. Standardised columns lie on both sides of 0 and are of about unit scale.

    Parameters
    ----------
    counts : array of shape (n_columns, n_magnitudes)
        Noisy counts by sign and magnitude.
    std : array of shape (n_columns,)
        Noise on the counts of each column.
    n_rows : int
    """
    n_columns = len(counts)
    shares = counts / n_rows
    noise = float(np.sqrt(np.mean(std**2) / n_columns)) / n_rows
    if noise > MAX_POOLED_NOISE:
        return np.zeros(n_columns)
    together = shares.mean(axis=0)
    low = _least_magnitudes()
    usual = (low >= 1 / 256) & (low < 16)

    def share(chosen: Mask) -> tuple[float, float]:
        return float(together[chosen].sum()), Z_TOLERANCE * noise * math.sqrt(chosen.sum())

    squares = np.where(low < 16, np.minimum(3.0 * low**2, 4.0), 0.0)  # about those in a bin
    square, slack_square = (
        float(together @ squares),
        Z_TOLERANCE * noise * float(np.linalg.norm(squares)),
    )
    # Few bins, so that little noise adds up.
    negative = float(together[:SIDE][usual[:SIDE]].sum())
    within = float(together[(low >= 1 / 16) & (low < 16)].sum())
    # Around 0, E[x+] = E[-x-], and E[x+]**2 <= P(x > 0) E[x**2] by Cauchy and Schwarz: columns
    # whose values are nearly all on one side are not centred.
    sizes = np.where((np.arange(len(low)) < SIDE) & (low < 4), low, 0.0)
    below = max(float(together @ sizes), 0.0)
    above, slack_above = share((np.arange(len(low)) > SIDE) & (low >= 1 / 16) & (low < 16))
    slack_below = 2 * below * Z_TOLERANCE * noise * float(np.linalg.norm(sizes))  # of its square
    centred = below**2 - above <= Z_DETECT / Z_TOLERANCE * math.hypot(slack_below, slack_above)
    are_standardised = (
        centred
        and slack_square * Z_DETECT / Z_TOLERANCE <= square <= MAX_MEAN_SQUARE + slack_square
        and negative >= MIN_NEGATIVE_SHARE
        and within >= MIN_UNIT_SHARE
    )
    if not are_standardised:
        return np.zeros(n_columns)
    slack = Z_TOLERANCE * std / n_rows
    far = shares[:, (low >= 4) & (low < 64)].sum(axis=1) > MAX_FAR_SHARE + 2 * slack
    # On both sides, as the common value of a rare category lies near 0, on one side of it.
    near = (low >= 1 / 1024) & (low < 1 / 16)
    sides = shares[:, :SIDE][:, near[:SIDE]], shares[:, SIDE:][:, near[SIDE:]]
    nearer = np.minimum(*(side.sum(axis=1) for side in sides))
    other_unit = far | (nearer > MAX_NEAR_SHARE + math.sqrt(3) * slack)
    if other_unit.mean() > MAX_OTHER_UNITS:  # scales that are large and small on average are 1
        return np.zeros(n_columns)
    rare, slack_rare = share((low >= 4) & (low < 16))  # two bins, so that little noise adds up
    half_width = HALF_WIDTH_RARE if rare > max(RARE_SHARE, slack_rare) else HALF_WIDTH
    out_of_reach = shares[:, (low >= 16) | ((low > 0) & (low < 1 / 1024))]
    within_reach = out_of_reach.sum(axis=1) <= MAX_OUTLYING_SHARE + slack * math.sqrt(2 * SIDE)
    # One bin alone has less noise than all of them, and a column far from 0 fills one.
    within_reach &= out_of_reach.max(axis=1) <= MAX_OUTLYING_SHARE + slack
    return np.where(within_reach & ~other_unit, half_width, 0.0)


def keep_standardised(columns: Columns, half_width: Array) -> Columns:
    """Return the columns, those that are standardised with centre 0 and scale 1."""
    standard, isolated = half_width > 0, columns.isolated
    return replace(
        columns,
        low=np.where(standard, -half_width, columns.low),
        high=np.where(standard, half_width, columns.high),
        centre=np.where(standard, 0.0, columns.centre),
        scale=np.where(standard, 1.0, columns.scale),
        isolated=isolated and (isolated[0] & ~standard, isolated[1] & ~standard),
    )


def _least_magnitudes() -> Array:
    """Least magnitude of every bin: negative values from large to small, zero, positive ones."""
    side = 4.0 ** (np.arange(SIDE) - STEPS)
    return np.concatenate([side[::-1], [0.0], side])


# ------------------------------------------------------------------ narrow columns

# A record lies in one bin of each column, however many there are, so bins cost nothing but draws of
# noise: a narrow column stands out in many bins, and one that fills more of them in a few.
LOG2_WEIGHT = 4  # base-2 logarithm of the weight of narrow columns relative to the others
MAX_NOISE = 0.09  # on the count of a window, as a share of the rows
# The widest window within that noise fills this share of the range: a wider column stands out in
# the coarse bins of the next round.
FILLED_SHARE, MAX_BINS = 0.1, 1024
COLUMNS_PER_CHUNK = 256
MIN_SPREAD = 3  # bins that a column has to fill for its scale to be known


def fine_bins(noise: float) -> int:
    """Return the number of bins for this noise on a count, as a share of the rows."""
    wanted = (MAX_NOISE / max(noise, 1e-9)) ** 2 / FILLED_SHARE
    return int(2.0 ** round(math.log2(min(max(wanted, 2.0), MAX_BINS))))


def refine_narrow_columns(
    counts: Array, std: Array, n_rows: int, ranges: Ranges
) -> tuple[Ranges, Mask]:
    """Return ranges around the smallest windows with the columns, and which may be narrower still.

    A window has a column if, up to noise, all but ``TAIL_SHARE`` of the rows lie in it. A range
    stays as it is where there is no such window.

    Parameters
    ----------
    counts : array of shape (n_columns, n_bins)
    std : array of shape (n_columns,)
        Noise on the counts of each column.
    n_rows : int
    ranges : Ranges
    """
    n_bins = counts.shape[1]
    width = (ranges.high - ranges.low) / n_bins
    farthest = np.maximum(np.abs(ranges.low), np.abs(ranges.high))
    first, size = np.zeros((2, len(counts)), dtype=np.intp)
    wide = np.flatnonzero(width > MIN_RELATIVE_WIDTH * farthest)
    for start in range(0, len(wide), COLUMNS_PER_CHUNK):
        some = wide[start : start + COLUMNS_PER_CHUNK]
        first[some], size[some] = _windows(counts[some], std[some], n_rows)
    smaller = Ranges(ranges.low + (first - size) * width, ranges.low + (first + 2 * size) * width)
    return ranges.where(size > 0, smaller), (size > 0) & (size < MIN_SPREAD)


def _windows(counts: Array, std: Array, n_rows: int) -> tuple[Indices, Indices]:
    """First bin and number of bins of the smallest window with each column; 0 for none."""
    first, sizes = np.zeros((2, len(counts)), dtype=np.intp)
    sums = np.concatenate([np.zeros((len(counts), 1)), np.cumsum(counts, axis=1)], axis=1)
    places = np.arange(len(counts))  # of the columns whose window is still looked for
    for size in range(1, counts.shape[1]):
        noise = std[places] * math.sqrt(size) / n_rows
        held = sums[:, size:] - sums[:, :-size]
        held /= n_rows
        fullest = np.argmax(held, axis=1)
        is_it = held[np.arange(len(places)), fullest] >= 1 - TAIL_SHARE - 2 * noise
        is_it &= noise <= MAX_NOISE
        first[places[is_it]], sizes[places[is_it]] = fullest[is_it], size
        go_on = ~is_it & (noise <= MAX_NOISE)
        if not go_on.all():
            places, sums = places[go_on], sums[go_on]
            if not len(places):
                break
    return first, sizes


# ------------------------------------------------------------------ long-tailed targets

# The scale of a target follows from single significant bins. A long tail spreads over many that are
# not, and without it residuals are capped too low. Sums over bins are more powerful.
# Noise standard deviations: to detect a share, and of the upper bound on one that is not detected.
Z_SEEN, Z_HIDDEN = 4.0, 2.0
# Largest share of the records beyond the farthest point that is used, and beyond the nearer one.
MAX_TAIL_SHARE, MAX_BODY_SHARE = 0.2, 0.6
MIN_DISTANCE_RATIO = 2.0  # of these two points
# Exponent b of the tail: 1/2 for a normal distribution, 1 for an exponential one.
MIN_EXPONENT, MAX_EXPONENT = 0.05, 5.0
OMITTED_SHARE = 0.0001  # share of the records, the farthest ones, that a scale leaves out
INTEGRATION_POINTS = 200


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
    """Return targets with the larger scales and ranges that a Weibull tail implies.

    Beyond the farthest distance with a significant share s of the records, distances are taken to
    grow as ``log(1 / s)**b``, as those of Weibull distributions do (Gardes and Girard 2005). b
    follows from that distance and the farthest one of at most half of it with significantly more
    records. It is less if such a tail would be significant farther out, where nothing is.

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
    size, centre = targets.scale.copy(), targets.centre
    far = ranges.far_from_0
    # Magnitudes up to one more than those of the first range, on the sides that it has.
    lows, highs = magnitude_bounds()
    reach = 4 * np.maximum(np.abs(first.low), np.abs(first.high))[:, None]
    within = (lows > 0) & (lows < reach) & (first.high[:, None] > 0)
    within |= (highs < 0) & (highs > -reach) & (first.low[:, None] < 0)
    for one in range(len(size)):
        low, high = ranges.low[one], ranges.high[one]
        edges = np.linspace(low, high, counts.shape[1] + 1)
        points = _beyond(edges[:-1], edges[1:], counts[one], std[one], centre[one])
        if not far[one]:
            of_one = magnitudes[one][within[one]], magnitude_std[one]
            bins = lows[within[one]], highs[within[one]]
            points = np.hstack([points, _beyond(*bins, *of_one, centre[one])])
        points[1:] /= n_rows
        edge = max(high - centre[one], centre[one] - low)
        size[one] = math.sqrt(size[one] ** 2 + _beyond_the_seen(points, edge))
    wide = np.where(size > targets.scale, TARGET_RANGE * size, 0.0)
    low, high = np.minimum(targets.low, centre - wide), np.maximum(targets.high, centre + wide)
    return replace(targets, low=low, high=high, scale=size)


def _beyond(low: Array, high: Array, counts: Array, std: float, centre: float) -> Array:
    """Return distances from the centre, the count of records beyond each, and its noise."""
    distance = np.maximum(np.maximum(low - centre, centre - high), 0.0)
    order = np.argsort(-distance, kind="stable")
    distance, beyond = distance[order], np.cumsum(counts[order])
    noise = std * np.sqrt(np.arange(1, len(order) + 1))
    whole = np.append(distance[1:] < distance[:-1], True) & (distance > 0)
    return np.vstack([distance, beyond, noise])[:, whole]


def _beyond_the_seen(points: Array, edge: float) -> float:
    """Return the part of a target's mean square in the tail beyond an edge."""
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
