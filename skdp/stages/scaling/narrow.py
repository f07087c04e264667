"""Columns and targets that are narrow next to their distance from 0: many bins find them.

A record lies in one bin of each column, however many there are, so bins cost nothing but draws of
noise; a column that fills few of them stands out, and one that fills more can be seen by coarse
bins. Post-processing only.
"""

from __future__ import annotations

import math

import numpy as np

from skdp._numbers import Array, Indices, Mask
from skdp.stages.scaling.estimates import MIN_RELATIVE_WIDTH, TAIL_SHARE, Ranges
from skdp.stages.scaling.distributions import COLUMNS_PER_CHUNK

LOG2_WEIGHT = 4  # base-2 logarithm of the weight of such columns next to the others'
MAX_NOISE = 0.09  # most noise on a count that conclusions are drawn from, as a share of the rows
# The widest window that is trusted should fill a tenth of the range, so that a wider column is seen
# by the coarse bins of the next round.
FILLED_SHARE, MAX_BINS = 0.1, 1024
MIN_SPREAD = 3  # bins over which a column has to be spread for its size to be known


def fine_bins(noise: float) -> int:
    """Return the number of bins for this noise on a count, as a share of the rows."""
    wanted = (MAX_NOISE / max(noise, 1e-9)) ** 2 / FILLED_SHARE
    return int(2.0 ** round(math.log2(min(max(wanted, 2.0), MAX_BINS))))


def refine_narrow_columns(
    counts: Array, std: Array, n_rows: int, ranges: Ranges
) -> tuple[Ranges, Mask]:
    """Return ranges around the smallest windows that hold the columns, and which may be narrower.

    A window holds a column if all but ``TAIL_SHARE`` of the rows lie in it, as far as noise lets us see.
    A range stays as it is where no window is seen to hold its column.

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
    """First bin and number of bins of the smallest window that holds each column; 0 for none."""
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
