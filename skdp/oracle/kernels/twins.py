"""Compiled twins of block functions: they hand the arrays of records to `skdp.oracle.loops`.

Each has the arguments and the meaning of the function whose twin it is (`skdp.oracle.compiled`).
For sparse rows, groups and several outputs, which are public facts, it returns NotImplemented: the
function itself does the work.
"""

import math
from typing import Any

import numpy as np

from skdp._numbers import AnyArray, Array
from skdp.objective import Huber, Logistic, Loss, SquaredError
from skdp.oracle import loops
from skdp.oracle.kernels.histograms import BLOCK_VALUES, N_MAGNITUDES, Counts, magnitude_table
from skdp.oracle.scaling import ColumnMap
from skdp.oracle.sources.records import Records, block_rows

LOSSES: dict[type[Loss], int] = {
    SquaredError: loops.SQUARED,
    Logistic: loops.LOGISTIC,
    Huber: loops.HUBER,
}
EMPTY = np.zeros(0)


def compiled_clipped_gradients(
    records: Records, loss: Loss, point: Array, clip_norm: float, anchor: Array | None = None
) -> Any:
    """Sum of gradients clipped in L2 norm, for one output."""
    if anchor is not None:
        return NotImplemented
    return _sum_of_gradients(records, records.inverse_norms, loss, point, clip_norm)


def compiled_l1_clipped_gradients(
    records: Records, inverse_l1_norms: Array, loss: Loss, point: Array, clip_norm: float
) -> Any:
    """Sum of gradients clipped in L1 norm, for one output."""
    return _sum_of_gradients(records, inverse_l1_norms, loss, point, clip_norm)


def _sum_of_gradients(
    records: Records, inverse_norms: Array, loss: Loss, point: Array, clip_norm: float
) -> Any:
    numbers = column_numbers(records.columns)
    if not are_plain(records) or numbers is None or point.shape[1] != 1 or type(loss) not in LOSSES:
        return NotImplemented
    low, high, centre, factor = numbers
    n_rows, n_features = records.shape
    total = np.zeros(n_features + 1)
    loops.add_clipped_gradients(
        records.stored,
        low,
        high,
        centre,
        factor,
        max(1, block_rows(n_rows, n_features, False, is_copied=False)),
        LOSSES[type(loss)],
        loss.threshold if isinstance(loss, Huber) else math.inf,
        vector(records.targets),
        vector(records.weights),
        vector(records.shrink),
        limits_of(clip_norm, inverse_norms),
        float(records.constant),
        vector(point[:n_features]),
        float(records.constant * point[-1, 0]) if records.constant else 0.0,
        total,
    )
    return total[: records.n_parameters, None]


def column_numbers(columns: Any) -> tuple[AnyArray, ...] | None:
    """Return how columns are standardised: empty if they are not, None if loops cannot do it."""
    if columns is None:
        return (EMPTY,) * 4
    return columns.numbers if isinstance(columns, ColumnMap) else None


def limits_of(clip_norm: float, inverse_norms: Array) -> Array:
    """Return the most that the weighted residual of each row may be."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(clip_norm * inverse_norms)


def are_plain(records: Records) -> bool:
    """Whether records lie in memory as the loops read them, and are no rows of groups."""
    grouped = records.multipliers is not None
    return not (records.is_sparse or grouped) and loops.is_plain(records.stored)


def vector(values: Any) -> Array:
    """Return one number for each row as loops read them; none for what is missing."""
    return EMPTY if values is None else np.ascontiguousarray(values, np.float64).reshape(-1)


def compiled_write_scaled(records: Records, weights: Array, out: Array) -> Any:
    """Write the rows of X times their weights into the first columns of ``out``."""
    numbers = column_numbers(records.columns)
    if records.is_sparse or not loops.is_plain(records.stored) or numbers is None:
        return NotImplemented
    low, high, centre, factor = numbers
    loops.write_scaled_rows(records.stored, low, high, centre, factor, vector(weights), out)
    return None


def compiled_magnitude_counts(records: Records, features: bool, targets: bool) -> Any:
    """Count values by column and magnitude."""
    table = magnitude_table()

    def add(values: Array, weights: Array, columns: slice, total: Counts) -> None:
        loops.add_magnitude_counts(values.view(np.uint64), weights, table, total)

    return _counts(records, features, targets, N_MAGNITUDES, add)


def compiled_bin_counts(
    records: Records, features: bool, targets: bool, low: Array, width: Array, n_bins: int
) -> Any:
    """Count values by column in equal bins."""

    def add(values: Array, weights: Array, columns: slice, total: Counts) -> None:
        ends = np.ascontiguousarray(low[columns]), np.ascontiguousarray(width[columns])
        loops.add_bin_counts(values, weights, *ends, n_bins, total)

    return _counts(records, features, targets, n_bins, add)


def _counts(records: Records, features: bool, targets: bool, n_bins: int, add: Any) -> Any:
    """Count the values of X, the targets, or both, by a function that adds those of a block."""
    if not are_plain(records):
        return NotImplemented
    n_features = records.n_features * features
    n_targets = records.targets.shape[1] if targets else 0
    total = np.zeros((n_features + n_targets, n_bins), np.int64)
    for block in records.blocks(max(n_bins, BLOCK_VALUES // max(1, records.n_features))):
        weights = vector(block.weights)
        if features:
            add(block.X, weights, slice(0, n_features), total[:n_features])
        if targets:
            values = np.ascontiguousarray(block.targets, np.float64)
            add(values, weights, slice(n_features, None), total[n_features:])
    return total
