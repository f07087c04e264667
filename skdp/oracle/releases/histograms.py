"""Histograms of all columns in one release: each record adds one to one bin of every column."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp._numbers import AnyArray, Array, Mask
from skdp.oracle import compiled
from skdp.oracle.compiled import BitPatterns, Integers, Matrix, MatrixOut, Vector
from skdp.oracle.releases import base
from skdp.oracle.sources.base import RepeatableSource
from skdp.oracle.sources.block_sizes import UNIT_ROUNDOFF, block_rows
from skdp.oracle.sources.records import Records, unit_arrays, vector

Counts = NDArray[Any]  # whole numbers, or sums of multipliers
Lookup = Callable[[AnyArray, slice | AnyArray], NDArray[np.intp]]  # bins of values, by column
Add = Callable[[Array, Array, slice, Array], None]  # a block's values, shares, columns; total

# Near magnitudes, from 4**-20 to 4**20, have a bin for each step of 4: negative ones from large to
# small, zero, positive ones from small to large. Far magnitudes are counted by two digits: the sign
# and the step modulo SIDE in one bin, and the block of STEPS steps in another. The last bin is for
# values from 4**BEYOND on, next to the largest number of float64.
STEPS = 20
SIDE = 2 * STEPS
N_NEAR = 2 * SIDE + 1
BEYOND = 500
BLOCKS = np.arange(-26, BEYOND // STEPS)  # those at -1 and 0 are near, and remain empty
FAR = slice(N_NEAR, N_NEAR + 2 * SIDE)
BLOCK = slice(FAR.stop, FAR.stop + len(BLOCKS))
N_MAGNITUDES = BLOCK.stop + 1
# A far value counts so much in each of its two bins: twice the square is below 1.
DIGIT = 0.707

BLOCK_VALUES = 1 << 18  # values to look up at once


@functools.cache
def magnitude_table(is_single: bool = False, block: bool = False) -> NDArray[np.intp]:
    """Bin of a number by its sign and exponent bits: of far ones that of the step, or the block."""
    bits, bias = (8, 127) if is_single else (11, 1023)
    exponents = np.arange(1 << bits)
    steps = (exponents - bias) // 2
    near = (steps >= -STEPS) & (steps < STEPS)
    far, negative = FAR.start + SIDE + steps % SIDE, FAR.start + steps % SIDE
    positive, negative = (
        np.where(near, SIDE + sign * (SIDE // 2 + 1 + steps), one)
        for sign, one in ((1, far), (-1, negative))
    )
    table = np.stack([positive, negative])
    if block:
        table[:, ~near] = BLOCK.start + steps[~near] // STEPS - BLOCKS[0]
    table[:, 0], table[:, steps >= BEYOND] = SIDE, N_MAGNITUDES - 1  # subnormal ones count as 0
    return np.asarray(table.ravel(), dtype=np.intp)


def magnitudes(
    values: AnyArray, columns: slice | AnyArray | None = None, block: bool = False
) -> NDArray[np.intp]:
    """Bin of every value by sign and magnitude."""
    is_single = values.dtype == np.float32
    bits, shift = (np.uint32, 23) if is_single else (np.uint64, 52)
    patterns = np.ascontiguousarray(values).view(bits)
    table = magnitude_table(is_single, block)
    return np.asarray(table[np.right_shift(patterns, bits(shift))])


def equal_bins(
    values: AnyArray, columns: slice | AnyArray, low: Array, width: Array, n_bins: int
) -> NDArray[np.intp]:
    """Bin of every value between ``low`` and ``low + n_bins * width``, the outer ones open.

    ``columns`` are the columns of the values, by their numbers in ``low`` and ``width``.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        places = values - low[columns]
        places /= width[columns]
    # fmax and fmin take nan for the number beside it: every value has a bin.
    np.fmin(np.fmax(places, 0.0, out=places), n_bins - 1.0, out=places)
    return np.asarray(places.astype(np.intp))


def magnitude_counts(records: Records, features: bool, targets: bool) -> Counts:
    """Count values by column and magnitude, shape (n_columns, N_MAGNITUDES); far ones twice.

    Rows of weight 0 are not counted, here and below. Where there are groups, a row counts as its
    multiplier: the counts of a group add up to 1 at most, and sums of multipliers are exact.
    """

    def counts(block: bool) -> Counts:
        lookup = functools.partial(magnitudes, block=block)
        table = magnitude_table(block=block)

        def add(values: Array, shares: Array, columns: slice, total: Array) -> None:
            _add_magnitude_counts(values.view(np.uint64), shares, table, total)

        return _counts(records, features, targets, N_MAGNITUDES, lookup, add)

    total = counts(block=False)
    if total[:, FAR].any():
        total[:, BLOCK] = counts(block=True)[:, BLOCK]
    return total


def bin_counts(
    records: Records, features: bool, targets: bool, low: Array, width: Array, n_bins: int
) -> Counts:
    """Count values by column in ``n_bins`` equal bins, shape (n_columns, n_bins)."""
    lookup = functools.partial(equal_bins, low=low, width=width, n_bins=n_bins)

    def add(values: Array, shares: Array, columns: slice, total: Array) -> None:
        edges = np.ascontiguousarray(low[columns]), np.ascontiguousarray(width[columns])
        _add_bin_counts(values, shares, *edges, n_bins, total)

    return _counts(records, features, targets, n_bins, lookup, add)


def _counts(
    records: Records, features: bool, targets: bool, n_bins: int, lookup: Lookup, add: Add
) -> Counts:
    """Count the values of X, the targets, or both, whose columns are numbered in this order."""
    if compiled.use_compiled(records.public_shape) and unit_arrays(records) is not None:
        return _compiled_counts(records, features, targets, n_bins, add)
    n_features = records.n_features * features
    n_targets = records.targets.shape[1] if targets else 0
    kind = np.int64 if records.multipliers is None else np.float64
    total: Counts = np.zeros((n_features + n_targets, n_bins), dtype=kind)
    if records.is_sparse and records.base is None and not records.loses_zeros:
        step = block_rows(records.n_rows, records.n_features, is_sparse=True, is_copied=True)
    else:
        step = max(n_bins, BLOCK_VALUES // max(1, records.n_features))
    for block in records.blocks(step, dense=True):
        takes_part = None if block.weights is None else block.weights > 0
        each = block.multipliers
        if features:
            count = _count_sparse if block.is_sparse else _count
            total[:n_features] += count(block.X, takes_part, each, n_bins, lookup)
        if targets:
            last = slice(n_features, None)
            total[last] += _count(block.targets, takes_part, each, n_bins, lookup, last)
    return total


def _count(
    X: AnyArray,
    takes_part: Mask | None,
    each: Array | None,
    n_bins: int,
    lookup: Lookup,
    columns: slice | None = None,
) -> Counts:
    """Count the rows that take part; each adds one, or its multiplier, to a bin of every column."""
    values, n_columns = X if takes_part is None else X[takes_part], X.shape[1]
    codes = lookup(values, slice(0, n_columns) if columns is None else columns)
    codes += n_bins * np.arange(n_columns)
    shares = None
    if each is not None:
        shares = np.repeat(each if takes_part is None else each[takes_part], n_columns)
    result = np.bincount(codes.ravel(), shares, minlength=n_columns * n_bins)
    return np.asarray(result.reshape(n_columns, n_bins))


def _count_sparse(
    X: sparse.csr_array, takes_part: Mask | None, each: Array | None, n_bins: int, lookup: Lookup
) -> Counts:
    n_rows, n_columns = X.shape
    values, columns = X.data, X.indices
    whole: float = n_rows if each is None else float(each.sum())
    shares = None if each is None else np.repeat(each, np.diff(X.indptr))
    if takes_part is not None:
        stored = np.repeat(takes_part, np.diff(X.indptr))
        values, columns = values[stored], columns[stored]
        shares = None if shares is None else shares[stored]
        whole = int(takes_part.sum()) if each is None else float(each[takes_part].sum())
    codes = lookup(values, columns)
    codes += n_bins * columns.astype(np.intp)
    total: Counts = np.bincount(codes, shares, minlength=n_columns * n_bins)
    # Shares of no entries at all would be added up as integers.
    total = total.reshape(n_columns, n_bins).astype(np.int64 if each is None else np.float64)
    # What is not stored is 0.
    zeros = lookup(np.zeros(n_columns, dtype=X.dtype), slice(0, n_columns))
    stored_in = np.bincount(columns, shares, minlength=n_columns)
    total[np.arange(n_columns), zeros] += whole - stored_in
    return total


# ---------------------------------------------------------------- compiled


def _compiled_counts(
    records: Records, features: bool, targets: bool, n_bins: int, add: Add
) -> Counts:
    """Count the values of X, the targets, or both, by a function that adds those of a block."""
    n_features = records.n_features * features
    n_targets = records.targets.shape[1] if targets else 0
    total = np.zeros((n_features + n_targets, n_bins))
    for block in records.blocks(max(n_bins, BLOCK_VALUES // max(1, records.n_features))):
        shares = None if block.weights is None else (block.weights > 0).astype(np.float64)
        if block.multipliers is not None:
            shares = block.multipliers if shares is None else shares * block.multipliers
        if features:
            add(block.X, vector(shares), slice(0, n_features), total[:n_features])
        if targets:
            values = np.ascontiguousarray(block.targets, np.float64)
            add(values, vector(shares), slice(n_features, None), total[n_features:])
    return total if records.multipliers is not None else total.astype(np.int64)


@compiled.compile_loop()
def _add_bin_counts(
    X: Matrix, shares: Vector, low: Vector, width: Vector, n_bins: int, total: MatrixOut
) -> None:
    """Count the values of each column in equal bins, the outer ones open; nan is in the first.

    A row counts as its share, or as 1 where ``shares`` has no entries.
    """
    n_rows, n_columns = X.shape
    places = np.zeros(n_columns, np.int32)  # half as long, twice as many at once
    last = n_bins - 1.0
    for i in range(n_rows):
        share = shares[i] if shares.shape[0] > 0 else 1.0
        for j in range(n_columns):
            place = (X[i, j] - low[j]) / width[j]
            place = place if place > 0.0 else 0.0
            places[j] = np.int32(place if place < last else last)
        for j in range(n_columns):
            total[j, np.uint32(places[j])] += share


@compiled.compile_loop()
def _add_magnitude_counts(
    patterns: BitPatterns, shares: Vector, table: Integers, total: MatrixOut
) -> None:
    """Count the bit patterns of each column's values by their sign and exponent."""
    n_rows, n_columns = patterns.shape
    for i in range(n_rows):
        share = shares[i] if shares.shape[0] > 0 else 1.0
        for j in range(n_columns):
            total[j, np.uint64(table[patterns[i, j] >> np.uint64(52)])] += share


# ---------------------------------------------------------------- the statistics


@dataclass(frozen=True, eq=False)
class _Counts(base.Statistic):
    """Counts of values in the bins of each column.

    A record adds 1 to one bin of each column, a null record nothing. So its L2 norm is the root of
    the number of columns, and that of the difference of two records at most sqrt(2) times as long:
    in each column 1 moves from one bin to another. (A group adds shares to several bins of a
    column, which add up to 1 at most. Such a vector lies in the convex hull of those of rows, so
    that all of this holds for it.) Counts are exact; what is rounded is the bound itself, which is
    charged.
    """

    features: bool
    targets: bool
    takes_groups: ClassVar[bool] = True

    @property
    def reads_targets(self) -> bool:
        return self.targets

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        shape = self.shape(context)
        bound = math.sqrt(shape[0]) * (1 + 8 * UNIT_ROUNDOFF)
        return base.Contribution(bound, math.sqrt(2), math.prod(shape), total=float(n_rows))

    def _n_columns(self, context: base.PublicContext) -> int:
        """Return the number of columns that are requested."""
        return self.features * context.public.n_features + self.targets * context.public.n_outputs


@base.audited
@dataclass(frozen=True, eq=False)
class MagnitudeCounts(_Counts):
    """Counts of values by sign and magnitude, for each column.

    Sensitivity: a near value adds 1 to one bin, and a far value adds ``DIGIT`` to each of two bins
    of its column. As ``2 * DIGIT**2 < 1`` and no entry is negative, both statements of `_Counts`
    hold: the norm is at most 1 in each column, and the inner product of two records is at least 0,
    so that their squared distance is at most the sum of their squared norms. Products with
    ``DIGIT`` are rounded once, by less than that norm is below 1. A record whose weight is 0 is a
    null record: it is not counted.

    Parameters
    ----------
    features, targets : bool
        The columns: those of X, those of the targets, or both, in this order.
    """

    kind: ClassVar[str] = "magnitudes"

    def shape(self, context: base.PublicContext) -> tuple[int, ...]:
        return self._n_columns(context), N_MAGNITUDES

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        counts = rows.total(magnitude_counts, self.features, self.targets)
        counts = np.array(counts, dtype=np.float64)
        counts[:, FAR.start : BLOCK.stop] *= DIGIT
        return counts


@base.audited
@dataclass(frozen=True, eq=False)
class BinCounts(_Counts):
    """Counts of values in equal bins between public edges, for each column.

    Sensitivity as in `MagnitudeCounts`: the outermost bins are open, so every value, of whatever
    size, lies in exactly one bin.

    Parameters
    ----------
    features, targets : bool
        The columns: those of X, those of the targets, or both, in this order.
    low, width : array of shape (n_columns,)
        Left end of the first bin, and width of a bin; finite, widths positive. They are copied.
    n_bins : int
        At least 1.
    """

    low: base.Point = field(repr=False)
    width: base.Point = field(repr=False)
    n_bins: base.Integer
    kind: ClassVar[str] = "histograms"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not ((self.width > 0).all() and self.n_bins >= 1):
            raise ValueError("BinCounts: widths must be positive, and n_bins at least 1.")

    def shape(self, context: base.PublicContext) -> tuple[int, ...]:
        n_columns = self._n_columns(context)
        if self.low.shape != (n_columns,) or self.width.shape != (n_columns,):
            raise ValueError(f"BinCounts: low and width must have shape ({n_columns},).")
        return n_columns, self.n_bins

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        columns, ranges = (self.features, self.targets), (self.low, self.width)
        arguments: tuple[AnyArray | float, ...] = *columns, *ranges, self.n_bins
        known = rows.last_counts  # several rounds may be of equal ranges
        if known is None or not all(map(np.array_equal, known[0], arguments)):
            known = rows.last_counts = arguments, rows.total(bin_counts, *arguments)
        return np.array(known[1], dtype=np.float64)  # not the kept counts themselves
