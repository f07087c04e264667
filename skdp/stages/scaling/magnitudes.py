"""Read noisy counts of magnitudes in a unit of each column: 1, or a power of 4 near its values.

A column keeps the unit 1 unless more of its values are far from 1 than noise explains, and the
others are no bulk next to which these are isolated. All of it is post-processing of noisy counts.
"""

from typing import NamedTuple

import numpy as np

from skdp._numbers import Array
from skdp.oracle.releases.histograms import (
    BEYOND,
    BLOCK,
    BLOCKS,
    DIGIT,
    FAR,
    N_NEAR,
    SIDE,
    STEPS,
)
from skdp.stages.scaling.estimates import z_of_largest

# All figures are choices of ours.
# Step of the largest values of a column in its unit: above them there is room for rare values.
LARGEST = 9
MIN_BULK_SHARE = 0.85  # of the records: of near values next to which far ones are isolated
MOST = BEYOND - STEPS  # step of a unit, on either side of 1
# In standard deviations: by how much blocks and digits of far values stand out more than other
# counts, and noise on the number of other values. A unit that is read from noise loses all values.
MARGIN, Z_OTHERS = 1.0, 3.5
ADJACENT = 4  # near steps below the far ones: if they have values, the far ones are not isolated


class OwnUnits(NamedTuple):
    """Counts by sign and magnitude of columns in units of their own.

    Attributes
    ----------
    counts : array of shape (n_columns, N_NEAR)
        Values beyond the outermost bins are in these; values below the innermost ones count as 0.
    std : array of shape (n_columns,)
        Standard deviation of the noise on each count of a column.
    units : array of shape (n_columns,)
        Powers of 4.
    """

    counts: Array
    std: Array
    units: Array


def in_own_units(counts: Array, n_rows: Array | float, std: float) -> OwnUnits:
    """Return the counts of `MagnitudeCounts` in units of the columns.

    Parameters
    ----------
    counts : array of shape (n_columns, N_MAGNITUDES)
    n_rows : float or array of shape (n_columns,)
        Number of values that were counted in each column.
    std : float
        Standard deviation of the noise on each count.
    """
    n_columns, near, blocks = len(counts), counts[:, :N_NEAR].copy(), counts[:, BLOCK]
    seen = np.where(blocks > (z_of_largest(blocks.size) + MARGIN) * std, blocks, 0.0) / DIGIT
    n_rows, noise = np.broadcast_to(n_rows, n_columns), np.full(n_columns, std)
    steps, limit = np.zeros(n_columns), z_of_largest(near.size) * std
    for one in np.flatnonzero(seen.any(axis=1)):
        digits = counts[one, FAR].reshape(2, SIDE) / DIGIT
        n_others = n_rows[one] - near[one, SIDE]
        steps[one] = step = _step_of_unit(near[one], seen[one], digits, n_others, std, limit)
        near[one] = _moved(near[one], seen[one], digits, step, limit)
        noise[one] = std / DIGIT if step else std
    return OwnUnits(near, noise, 4.0**steps)


def _step_of_unit(
    near: Array, seen: Array, digits: Array, n_others: float, std: float, limit: float
) -> int:
    """Return the logarithm to base 4 of a column's unit; ``n_others`` values are not 0.

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
