"""From noisy histograms to range, centre and size of each column. Post-processing only.

Noise of standard deviation s is on every count. A run of bins counts as found where its sum exceeds
``SURE`` times the noise on that sum; a column in which nothing is found gets what the columns
have in common, and where they have nothing, unit size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdp.oracle import Columns
from skdp.oracle.histograms import SIDE, STEPS
from skdp.scaling.blocks import block_sums, last_above, richest_block

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

CAREFUL = 1.0  # what a bin has to be worth to join a run, in units of the noise
SURE = 4.0
TAIL_SURE = 2.0
UNIT = 3.0  # range of columns of which nothing is known, as if they were of unit size
THIN = 0.1  # least size of a column in which only zeros are found, in units of its range


@dataclass(frozen=True)
class Ranges:
    """Ends of the range of every column, and whether anything was found in it."""

    low: Array
    high: Array
    found: Mask


def _edges(places: NDArray[np.int64]) -> Array:
    """Lower end of the magnitudes of a bin, counted from the smallest."""
    return np.asarray(4.0 ** (places - STEPS))


def _found_block(counts: Array, std: Array, least: float) -> tuple[Array, Array, Mask]:
    """Ends of the magnitudes on one side, and whether records are there."""
    start, stop = richest_block(counts, np.maximum(CAREFUL * std, least))
    sums = block_sums(counts, start, stop)
    found = sums > np.maximum(SURE * std * np.sqrt(stop - start), least)
    return _edges(start), _edges(stop), found


def _common(counts: Array, std: Array) -> float | None:
    """Magnitude that most values other than 0 have, over all columns; None if it drowns."""
    folded = counts[:, SIDE + 1 :] + counts[:, :SIDE][:, ::-1]
    total = folded.sum(axis=0, keepdims=True)
    noise = np.sqrt(2 * np.sum(std**2, keepdims=True))
    start, stop = richest_block(total, CAREFUL * noise)
    if not block_sums(total, start, stop)[0] > SURE * noise[0] * np.sqrt(stop - start)[0]:
        return None
    inside = np.cumsum(total[0, start[0] : stop[0]])
    middle = int(np.searchsorted(np.maximum.accumulate(inside), inside[-1] / 2))
    return float(_edges(start + middle + 1)[0])


def coarse_ranges(counts: Array, std: Array, n_rows: int, trim: float, shared: bool) -> Ranges:
    """Ranges from counts of magnitudes.

    Parameters
    ----------
    counts : array of shape (n_columns, N_MAGNITUDES)
    std : array of shape (n_columns,)
        Noise on the counts of each column.
    n_rows : int
    trim : float
        Share of the records that a bin may hold and yet count as empty.
    shared : bool
        Whether columns without a find are taken for columns like the others.
    """
    least = trim * n_rows
    below_low, below_high, below = _found_block(counts[:, :SIDE][:, ::-1], std, least)
    above_low, above_high, above = _found_block(counts[:, SIDE + 1 :], std, least)
    zero = counts[:, SIDE] > np.maximum(SURE * std, least)
    # Both signs together, for columns that are found on neither side.
    folded = counts[:, SIDE + 1 :] + counts[:, :SIDE][:, ::-1]
    _, both_high, both = _found_block(folded, np.sqrt(2) * std, least)
    both &= ~(below | above)
    high = np.where(above, above_high, np.where(zero, 0.0, -below_low))
    low = np.where(below, -below_high, np.where(zero, 0.0, above_low))
    high, low = np.where(both, both_high, high), np.where(both, -both_high, low)
    found = below | above | both
    common = _common(counts, std) if shared else None
    size = UNIT if common is None else common
    return Ranges(np.where(found, low, -size), np.where(found, high, size), found)


def _trimmed(counts: Array, std: Array, n_rows: int, trim: float):
    """Start and stop of the bins that hold all but the tails, and whether records were found."""
    n_bins = counts.shape[1]
    least = trim * n_rows
    start, stop = richest_block(counts, np.maximum(CAREFUL * std, least))
    found = block_sums(counts, start, stop) > SURE * std * np.sqrt(stop - start)
    lengths = np.arange(n_bins, 0, -1)
    needed = least + TAIL_SURE * std[:, None] * np.sqrt(lengths)
    upper = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
    lower = np.cumsum(counts, axis=1)[:, ::-1]
    last, first = last_above(upper, needed), last_above(lower, needed)
    stop = np.where(last >= 0, np.maximum(stop, last + 1), stop)
    start = np.where(first >= 0, np.minimum(start, n_bins - 1 - first), start)
    return np.where(found, start, 0), np.where(found, stop, n_bins), found


def zoomed(counts: Array, std: Array, n_rows: int, trim: float, ranges: Ranges) -> Ranges:
    """Smaller ranges, where the bins that hold records are much fewer than there are."""
    n_bins = counts.shape[1]
    start, stop, found = _trimmed(counts, std, n_rows, trim)
    width = (ranges.high - ranges.low) / n_bins
    start, stop = np.maximum(start - 1, 0), np.minimum(stop + 1, n_bins)
    smaller = found & (stop - start < 0.6 * n_bins)
    low = np.where(smaller, ranges.low + start * width, ranges.low)
    high = np.where(smaller, ranges.low + stop * width, ranges.high)
    return Ranges(low, high, ranges.found | found)


def columns_from(
    counts: Array, std: Array, n_rows: int, trim: float, ranges: Ranges, centred: Mask
) -> Columns:
    """Range, centre and size of every column, from the counts of its last histogram."""
    n_bins = counts.shape[1]
    start, stop, found = _trimmed(counts, std, n_rows, trim)
    width = (ranges.high - ranges.low) / n_bins
    low, high = ranges.low + start * width, ranges.low + stop * width
    places = np.arange(n_bins)
    inside = (places >= start[:, None]) & (places < stop[:, None])
    values = ranges.low[:, None] + (places + 0.5) * width[:, None]
    kept = np.where(inside, counts, 0.0)
    total = np.maximum(kept.sum(axis=1), SURE * std)
    total = np.maximum(total, 1.0)
    mean = np.clip((kept * values).sum(axis=1) / total, low, high)
    square = (kept * (values - mean[:, None]) ** 2).sum(axis=1) / total
    half = (high - low) / 2
    size = np.sqrt(np.clip(square, (THIN * half) ** 2, half**2))
    # Nothing found: mostly zeros, of which as many may be something else as the noise can hide.
    known = ranges.found & found
    hidden = np.sqrt(np.clip(3 * std / n_rows, THIN**2, 1.0))
    size = np.where(known, size, hidden * half)
    # Columns that are not centred keep 0 in their range, and are measured from there.
    low = np.where(centred, low, np.minimum(low, 0.0))
    high = np.where(centred, high, np.maximum(high, 0.0))
    from_zero = np.sqrt(np.maximum(square + mean**2, (THIN * half) ** 2))
    size = np.where(centred | ~known, size, from_zero)
    return Columns(low, high, np.where(centred & known, mean, 0.0), size)
