"""Where noisy counts hold records, and where they hold noise alone. Post-processing only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.int64]


def richest_block(counts: Array, toll: Array) -> tuple[Places, Places]:
    """Return start and stop of the run of bins with the largest sum of counts minus toll.

    Parameters
    ----------
    counts : array of shape (n_columns, n_bins)
    toll : array of shape (n_columns,)
        What every bin has to be worth; with noise of this size few bins of noise join a run.

    Returns
    -------
    start, stop : array of shape (n_columns,)
        At least one bin; the first of equals.
    """
    gains = counts - toll[:, None]
    n_columns = len(gains)
    sums, since = np.full(n_columns, -np.inf), np.zeros(n_columns, dtype=np.int64)
    best, start = np.full(n_columns, -np.inf), np.zeros(n_columns, dtype=np.int64)
    stop = np.ones(n_columns, dtype=np.int64)
    for place, gain in enumerate(gains.T):
        fresh = ~(sums > 0)
        sums = np.where(fresh, 0.0, sums) + gain
        since[fresh] = place
        better = sums > best
        best[better], start[better], stop[better] = sums[better], since[better], place + 1
    return start, stop


def block_sums(counts: Array, start: Places, stop: Places) -> Array:
    """Sum of the counts in a block, for each column."""
    sums = np.cumsum(np.pad(counts, ((0, 0), (1, 0))), axis=1)
    rows = np.arange(len(counts))
    return np.asarray(sums[rows, stop] - sums[rows, start])


def last_above(tails: Array, needed: Array) -> Places:
    """Last bin at which the sum from there to the end exceeds what is needed; -1 if none does."""
    above = tails > needed
    n_bins = tails.shape[1]
    return np.where(above.any(axis=1), n_bins - 1 - np.argmax(above[:, ::-1], axis=1), -1)
