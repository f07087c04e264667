"""Hand rows to compiled loops as one named tuple of plain arrays."""

from typing import NamedTuple

import numpy as np

from skdp._numbers import AnyArray, Array
from skdp.oracle.compiled import Rows, Vector
from skdp.oracle.sources.column_map import UnitArrays, is_plain, read_only
from skdp.oracle.sources.records import Records

EMPTY = read_only(np.zeros(0))
AS_STORED = UnitArrays(EMPTY, EMPTY, EMPTY, EMPTY)


class RowArrays(NamedTuple):
    """Dense rows, for one output; a vector that is missing has no entries.

    Attributes
    ----------
    X : array of shape (n_rows, n_columns)
    units : UnitArrays
        How rows are standardised; `AS_STORED` if they are not.
    targets, weights, shrink : array of shape (n_rows,)
        As in `Records`.
    constant : float
        Value of the constant feature; 0 for none.
    block_rows : int
        Rows that are added up as one block, as in numpy, so that a record goes through no more
        additions, whose rounding errors are charged for.
    """

    X: Rows
    units: UnitArrays
    targets: Vector
    weights: Vector
    shrink: Vector
    constant: float
    block_rows: int


def row_arrays(records: Records, block_rows: int) -> RowArrays | None:
    """Return the arrays of records; None for what loops do not read: public facts decide.

    They do not read sparse rows, rows of groups, and columns that cannot be standardised by a
    multiplication.
    """
    units = unit_arrays(records)
    if records.multipliers is not None or units is None:
        return None
    return RowArrays(
        read_only(records.stored),
        units,
        vector(records.targets),
        vector(records.weights),
        vector(records.shrink),
        float(records.constant),
        block_rows,
    )


def unit_arrays(records: Records) -> UnitArrays | None:
    """Return how loops standardise the rows; None if the rows are not for loops."""
    if records.is_sparse or not is_plain(records.stored):
        return None
    if records.columns is None:
        return AS_STORED
    return records.columns.units


def vector(values: AnyArray | None) -> Array:
    """Return numbers as one vector that loops can read; without entries for what is missing."""
    if values is None:
        return EMPTY
    return read_only(np.ascontiguousarray(values, np.float64).reshape(-1))
