"""Counts of values in bins: one sum, with one proof, for histograms, tables and counts of weights.

*Sensitivity.* `bin_sum` adds, for a record and each of ``n_columns`` columns, 1 to one of the bins
of the column. Bins that a statistic names outside of the range count as the nearest, and a value
that is not a number counts as 0, or as the first bin. A null record, of weight 0, adds nothing. So
the part of a record has the L1 norm ``n_columns`` and the L2 norm ``sqrt(n_columns)``, and the
difference of two parts, where in each column 1 moves from one bin to another, is at most 2 and
sqrt(2) times as long: that is the spread, and 1 if there is a single bin (Dwork, McSherry, Nissim,
Smith 2006, Example 1, Balle and Wang 2018, Thm 8, for the noise).

A record may also add less than 1, its share, which may be its weight, or divide its share between a
bin and the next one.
Such a part lies in the convex hull of 0 and of parts as above, so all bounds hold for it.

*Floating point.* Shares are whole numbers of a unit in which sums over n records are exact
(`skdp._oracle.sources.records.exact_bits`). The root of the number of columns is rounded, which
is charged.

*Groups.* The shares of the rows of a group are multiplied by the row's multiplier, so they add up
to 1 at most: see `Statistic`.
"""

import functools
import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp._numbers import AnyArray, Array
from skdp._oracle import compiled
from skdp._oracle.kernels import loops
from skdp._oracle.releases import base
from skdp._oracle.releases.record_sums import FINEST
from skdp._oracle.sources.base import RepeatableSource
from skdp._oracle.sources.records import Records, exact_bits
from skdp._oracle.sources.row_blocks import UNIT_ROUNDOFF, AnyRows, block_rows, is_csr

BLOCK_VALUES = 1 << 16  # values to look up at once


class BinSum(base.Statistic):
    """Counts of records in bins, for each of several columns.

    Attributes
    ----------
    order : {1, 2}
        Of the norm in which the counts are bounded.
    """

    takes_groups: ClassVar[bool] = True
    order: int = 2

    @abstractmethod
    def table(self, context: base.PublicContext) -> tuple[int, int]:
        """Return the numbers of columns and of bins."""

    @abstractmethod
    def values(self, block: Records) -> Iterator[tuple[int, AnyRows]]:
        """Yield values of a block, a row for each record, and the number of their first column."""

    @abstractmethod
    def bins(self, values: Array, columns: slice | AnyArray) -> AnyArray:
        """Return numbers of any size. Rounded down they are the bins of values of the columns."""

    def by_exponent(self) -> AnyArray | None:
        """Return the bin of each sign and exponent, if it follows from these, or None."""
        return None

    def weights(self, block: Records) -> Array:
        """Return the shares of weighted records, of any size: 1 by default, 0 for null records."""
        return np.where(block.weights == 0, 0.0, 1.0)

    def upper(self, block: Records) -> Array | None:
        """Return the parts of shares, in [0, 1], that count in the next bin, by default none."""
        return None

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        n_columns, n_bins = self.table(context)
        bound = float(n_columns ** (1 / self.order)) * (1 + 8 * UNIT_ROUNDOFF)
        spread = 2.0 ** (1 / self.order) if n_bins > 1 else 1.0
        size, total = n_columns * n_bins, max(1.0, float(n_rows))
        return base.Contribution(bound, spread, size, total, self.order)

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        counts = rows.total(bin_sum, self, self.table(context), context.public.n_rows)
        return np.asarray(counts, dtype=np.float64).reshape(self.shape(context))


def bin_sum(
    records: Records, statistic: BinSum, table: tuple[int, int], n_records: int = 1
) -> Array:
    """Return the counts of records in the statistic's bins, exact, as an array of that shape."""
    total, unit = np.zeros(table), 2.0 ** exact_bits(n_records, FINEST)
    for block in records.blocks(_rows_at_once(records, table[1]), dense=True):
        # 1. What each record counts as, and how many bins further on.
        shares = block.multipliers
        if block.weights is not None:
            own = np.clip(statistic.weights(block), 0.0, 1.0)
            shares = np.floor((own if shares is None else own * shares) * unit) / unit
        parts = [(0, shares)]
        if (upper := statistic.upper(block)) is not None:
            whole = np.ones(block.n_rows) if shares is None else shares
            upper = np.rint(np.clip(np.nan_to_num(upper), 0.0, 1.0) * whole * unit) / unit
            parts = [(1, upper), (0, whole - upper)]
        # 2. Where it counts.
        for first, values in statistic.values(block):
            columns = slice(first, first + values.shape[1])
            own = total[columns]
            if is_csr(values):
                _add_sparse(statistic, values, shares, columns, own)
            else:
                for step, each in parts:
                    if not _by_loop(statistic, values, columns, step, each, own):
                        _add(statistic.bins(values, columns) + step, each, own)
    return total


def _rows_at_once(records: Records, n_bins: int) -> int:
    if records.is_sparse and records.base is None and not records.loses_zeros:
        return block_rows(records.n_rows, records.n_features, is_sparse=True, is_copied=True)
    return max(n_bins, BLOCK_VALUES // max(1, records.n_features))


def _codes(places: AnyArray, columns: AnyArray | int, n_bins: int) -> NDArray[np.intp]:
    """Return numbers of bins over all columns."""
    # fmax and fmin take nan for the number beside it: every value has a bin.
    np.fmin(np.fmax(places, 0, out=places), n_bins - 1, out=places)
    codes = places.astype(np.intp, copy=False)
    codes += n_bins * columns
    return np.asarray(codes)


def _add(places: AnyArray, shares: Array | None, total: Array) -> None:
    """Count the rows of places, one for each column of the total. Each adds 1, or its share."""
    n_columns, n_bins = total.shape
    codes = _codes(places, np.arange(n_columns), n_bins).ravel()
    each = None if shares is None else np.repeat(shares, n_columns)
    total += np.bincount(codes, each, minlength=total.size).reshape(total.shape)


@compiled.or_numpy
def _by_loop(
    statistic: BinSum,
    values: Array,
    columns: slice,
    step: int,
    shares: Array | None,
    total: Array,
) -> bool:
    """Count in a compiled loop, and return True."""
    each, table = loops.readable(loops.NONE if shares is None else shares), statistic.by_exponent()
    if table is not None:
        bits = loops.readable(values).view(np.uint64)
        loops.add_magnitudes(bits, loops.readable(table, table.dtype), each, total)
    else:
        places = statistic.bins(values, columns)
        places = places + step if step else places
        loops.add_counts(loops.readable(places, places.dtype), each, total)
    return True


def _add_sparse(
    statistic: BinSum, X: sparse.csr_array, shares: Array | None, columns: slice, total: Array
) -> None:
    """Count the values of sparse rows. Values that are not stored are 0."""
    n_columns, n_bins = total.shape
    each = None if shares is None else np.repeat(shares, np.diff(X.indptr))
    stored = X.indices.astype(np.intp)
    codes = _codes(statistic.bins(X.data, X.indices), stored, n_bins)
    total += np.bincount(codes, each, minlength=total.size).reshape(total.shape)
    zeros = _codes(statistic.bins(np.zeros(n_columns), columns), 0, n_bins)
    whole = X.shape[0] if shares is None else shares.sum()
    total[np.arange(n_columns), zeros] += whole - np.bincount(stored, each, minlength=n_columns)


# ---------------------------------------------------------------- histograms

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


@functools.cache
def magnitude_table(of_blocks: bool = False) -> NDArray[np.intp]:
    """Bin of a number by its sign and exponent bits: of far ones that of the step, or the block."""
    steps = (np.arange(2048) - 1023) // 2
    near = (steps >= -STEPS) & (steps < STEPS)
    signs = []
    for sign, far in ((1, FAR.start + SIDE), (-1, FAR.start)):
        signs.append(np.where(near, SIDE + sign * (SIDE // 2 + 1 + steps), far + steps % SIDE))
    table = np.stack(signs)
    if of_blocks:
        table[:, ~near] = BLOCK.start + steps[~near] // STEPS - BLOCKS[0]
    table[:, 0], table[:, steps >= BEYOND] = SIDE, N_MAGNITUDES - 1  # subnormal ones count as 0
    return np.asarray(table.ravel(), dtype=np.intp)


@dataclass(frozen=True, eq=False)
class _Histograms(BinSum):
    """Counts of the values of X, of the targets, or of both, whose columns follow each other."""

    features: bool
    targets: bool
    order: base.Integer = field(default=2, kw_only=True)

    @property
    def reads_targets(self) -> bool:
        return self.targets

    def _n_columns(self, context: base.PublicContext) -> int:
        return self.features * context.public.n_features + self.targets * context.public.n_outputs

    def shape(self, context: base.PublicContext) -> tuple[int, ...]:
        return self.table(context)

    def values(self, block: Records) -> Iterator[tuple[int, AnyRows]]:
        if self.features:
            yield 0, block.X
        if self.targets:
            targets = np.ascontiguousarray(block.targets, np.float64)
            yield self.features * block.n_features, targets


@base.audited
@dataclass(frozen=True, eq=False)
class MagnitudeCounts(_Histograms):
    """Counts of values by sign and magnitude, for each column.

    A near value adds 1 to one bin. A far value adds ``DIGIT`` to each of two bins of its column. As
    ``2 * DIGIT**2 < 1`` and no entry is negative, the norm of a record's part is at most 1 in each
    column, and the inner product of two parts is at least 0, so that their squared distance is at
    most the sum of their squared norms: the bounds of `bin_sum` hold. Products with ``DIGIT`` are
    rounded once, by less than that norm is below 1. In L1 norm a record's part is at most
    ``2 * DIGIT`` in each column, and two parts are at most twice that apart.

    Parameters
    ----------
    features, targets : bool
        The columns: those of X, those of the targets, or both, in this order.
    of_blocks : bool, default=False
        Whether far values are counted by their second digit, which is done in another pass.
    """

    of_blocks: bool = False
    kind: ClassVar[str] = "magnitudes"

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        usual = super().contribution(context, n_rows)
        return replace(usual, bound=2 * DIGIT * usual.bound) if self.order == 1 else usual

    def table(self, context: base.PublicContext) -> tuple[int, int]:
        return self._n_columns(context), N_MAGNITUDES

    def by_exponent(self) -> AnyArray:
        return magnitude_table(self.of_blocks)

    def bins(self, values: Array, columns: slice | AnyArray) -> AnyArray:
        patterns = np.ascontiguousarray(values).view(np.uint64)
        return self.by_exponent()[np.right_shift(patterns, np.uint64(52))]

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        counts = super().total(rows, context)
        if self.of_blocks:
            return counts
        if counts[:, FAR].any():
            counts[:, BLOCK] = replace(self, of_blocks=True).total(rows, context)[:, BLOCK]
        counts[:, FAR.start : BLOCK.stop] *= DIGIT
        return counts


@base.audited
@dataclass(frozen=True, eq=False)
class BinCounts(_Histograms):
    """Counts of values in equal bins between public edges, for each column, the outer ones open.

    Parameters
    ----------
    features, targets : bool
        The columns: those of X, those of the targets, or both, in this order.
    low, width : array of shape (n_columns,)
        Left end of the first bin, and width of a bin, finite, widths positive. They are copied.
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

    def table(self, context: base.PublicContext) -> tuple[int, int]:
        n_columns = self._n_columns(context)
        if self.low.shape != (n_columns,) or self.width.shape != (n_columns,):
            raise ValueError(f"BinCounts: low and width must have shape ({n_columns},).")
        return n_columns, self.n_bins

    def bins(self, values: Array, columns: slice | AnyArray) -> AnyArray:
        with np.errstate(over="ignore", invalid="ignore"):
            places = values - self.low[columns]
            places /= self.width[columns]
        return places

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        arguments: tuple[AnyArray | float, ...] = self.low, self.width
        arguments = *arguments, self.features, self.targets, self.n_bins
        known = rows.last_counts  # several rounds may be of equal ranges
        if known is None or not all(map(np.array_equal, known[0], arguments)):
            known = rows.last_counts = arguments, super().total(rows, context)
        return np.array(known[1])  # not the kept counts themselves


# ---------------------------------------------------------------- tables


@base.audited
@dataclass(frozen=True, eq=False)
class TableCounts(BinSum):
    """Table of counts: records by class, and by the interval that a value lies in, weighted.

    The columns of the records are facts about each row that follow from the row and from a model
    that is given. The outer intervals are open. A class out of range counts as the nearest.

    Parameters
    ----------
    column : int
        Which fact about a row is looked up.
    edges : array of shape (n_bins - 1,)
        Finite and increasing, public. A value at an edge lies in the interval above. A copy is
        kept.
    class_column : int, default=0
        Which fact is the class, a number from 0 to ``n_classes - 1``.
    n_classes : int, default=1
        1 for a table without classes.
    is_divided : bool, default=False
        Whether to divide a row between the two cells of its class, (1 - v) / 2 to the lower and
        (1 + v) / 2 to the upper, for a value v that is cut to [-1, 1]. The single edge is 0.
    """

    column: base.Integer
    edges: base.Point = field(repr=False)
    class_column: base.Integer = 0
    n_classes: base.Integer = 1
    is_divided: base.Flag = False
    kind: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        super().__post_init__()
        rising = self.edges.ndim == 1 and bool((np.diff(self.edges) > 0).all())
        if not (rising and self.n_classes >= 1):
            raise ValueError("TableCounts: edges must increase, and n_classes be at least 1.")
        if self.is_divided and self.edges.tolist() != [0.0]:
            raise ValueError("TableCounts: rows are divided at the single edge 0.")

    def table(self, context: base.PublicContext) -> tuple[int, int]:
        base.require_columns(self, context, self.column, self.class_column)
        return 1, self.n_classes * (len(self.edges) + 1)

    def values(self, block: Records) -> Iterator[tuple[int, AnyRows]]:
        cells = np.searchsorted(self.edges, block.X[:, [self.column]], side="right")
        cells *= not self.is_divided
        classes = np.fmin(np.fmax(block.X[:, [self.class_column]], 0.0), self.n_classes - 1.0)
        yield 0, cells + (self.n_classes > 1) * (len(self.edges) + 1) * classes.astype(np.intp)

    def bins(self, values: Array, columns: slice | AnyArray) -> AnyArray:
        return values

    def weights(self, block: Records) -> Array:
        return np.asarray(block.weights)

    def upper(self, block: Records) -> Array | None:
        return (1 + block.X[:, self.column]) / 2 if self.is_divided else None


def logarithms(weights: Array) -> Array:
    """Return binary logarithms, linear between powers of two, of positive weights.

    They follow from exponent and mantissa, so that those of a weight do not depend on other rows.
    """
    mantissas, exponents = np.frexp(weights)
    return np.asarray(exponents + (2 * mantissas - 2))


def weight_of(logarithm: float) -> float:
    """Return the weight of which `logarithms` gives this number, within the range of float64."""
    whole = math.floor(logarithm)
    if whole > 1023:
        return float(np.finfo(float).max)
    return max(math.ldexp(1 + logarithm - whole, whole), math.ulp(0.0))


@base.audited
@dataclass(frozen=True, eq=False)
class WeightCounts(BinSum):
    """Counts of positive weights, as they were given, in equal bins of their logarithms.

    Parameters
    ----------
    low, width : float
        Left end of the first bin and width of a bin, in binary logarithms. See `logarithms`.
    n_bins : int
        At least 1.
    order : {1, 2}, default=2
        Of the norm that is bounded: 1 for Laplace noise.
    """

    low: base.Finite
    width: base.Positive
    n_bins: base.Integer
    order: base.Integer = field(default=2, kw_only=True)
    kind: ClassVar[str] = "weight_counts"
    reads_targets: ClassVar[bool] = False

    def table(self, context: base.PublicContext) -> tuple[int, int]:
        return 1, self.n_bins

    def values(self, block: Records) -> Iterator[tuple[int, AnyRows]]:
        yield 0, (np.ones(block.n_rows) if block.weights is None else block.weights)[:, None]

    def bins(self, values: Array, columns: slice | AnyArray) -> AnyArray:
        return (logarithms(values) - self.low) / self.width
