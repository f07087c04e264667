"""Statistics of a given model's predictions: tables of counts, and sums of bounded losses.

The columns of the records are facts about each row that follow from the row and from a model that
is given: a score, the number of a cell, a loss. What bounds them is in here, not where they are
made.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skdp._numbers import Array
from skdp.oracle.releases import base
from skdp.oracle.sources.base import RepeatableSource
from skdp.oracle.sources.groups import share_bits
from skdp.oracle.sources.records import Records

UNIT_BITS = 20  # parts of a sum are rounded to this many bits, so that their sum is exact


def table_counts(
    records: Records, column: int, edges: Array, class_column: int, n_classes: int
) -> Array:
    """Count rows by class, and by the interval between edges that their value lies in.

    A value that is not a number lies in the last interval, a class that is out of range counts as
    the nearest: every row is in one cell. Rows of weight 0 are in none. Where there are groups, a
    row counts as its multiplier; sums of multipliers are exact.
    """
    facts, shares = records.X, records.multipliers
    if records.weights is not None:
        takes_part = records.weights > 0
        facts = facts[takes_part]
        shares = None if shares is None else shares[takes_part]
    n_bins = len(edges) + 1
    cells = np.searchsorted(edges, facts[:, column], side="right")
    if n_classes > 1:
        classes = np.fmin(np.fmax(facts[:, class_column], 0.0), n_classes - 1.0)
        cells = cells + n_bins * classes.astype(np.intp)
    return np.bincount(cells, shares, minlength=n_classes * n_bins).astype(np.float64)


def divided_counts(
    records: Records, column: int, class_column: int, n_classes: int, n_groups: int
) -> Array:
    """Count rows by class, each divided between two cells: (1 - v) / 2 and (1 + v) / 2.

    The value v is cut to [-1, 1], and one that is not a number counts as 0. The upper part is
    rounded to a whole number of 2**-21, as v in `unit_sum` to 2**-20, or, where there are groups,
    of the unit of the multipliers; the lower part is the rest of what the row counts as.
    """
    values = np.clip(np.nan_to_num(records.X[:, column]), -1.0, 1.0)
    counts_as = np.ones(len(values)) if records.multipliers is None else records.multipliers
    if records.weights is not None:
        counts_as = np.where(records.weights > 0, counts_as, 0.0)
    bits = UNIT_BITS + 1 if records.multipliers is None else share_bits(n_groups)
    units = np.ldexp(counts_as, bits)
    upper = np.rint((1 + values) / 2 * units)
    classes = np.fmin(np.fmax(records.X[:, class_column], 0.0), n_classes - 1.0).astype(np.intp)
    parts = [np.bincount(classes, one, minlength=n_classes) for one in (units - upper, upper)]
    return np.ldexp(np.column_stack(parts).ravel(), -bits)


@base.audited
@dataclass(frozen=True, eq=False)
class TableCounts(base.Statistic):
    """Table of counts: records by class, and by the interval that a value lies in.

    Sensitivity: a row adds 1 to one cell, whatever it holds, since the outer intervals are open
    and classes out of range count as the nearest. So its part has L2 norm 1, and two such parts are
    sqrt(2) apart at most: that is the spread. A null record, of weight 0, is in no cell and
    adds 0. Counts of at most 2**53 rows are exact, so rounding adds nothing (Dwork, McSherry,
    Nissim, Smith 2006, Example 1, for histograms; Balle and Wang 2018, Thm 8, for the noise).

    A group of rows adds their shares to the cells that they lie in. The shares are not negative and
    add up to 1 at most, so its part lies in the convex hull of 0 and of what single rows add: bound
    and spread are the same (see `Statistic`). Shares are whole numbers of a power of two, so sums
    of them are exact, too.

    A row that is divided between two cells adds parts to them that are not negative and add up to
    what it counts as, exactly: it lies in the convex hull of the two cells, and the same bounds
    apply. Parts are whole numbers of 2**-21, so sums over up to 2**32 rows are exact.

    Parameters
    ----------
    column : int
        Which fact about a row is looked up.
    edges : array of shape (n_bins - 1,)
        Finite and increasing; public. A value at an edge lies in the interval above. A copy is
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
    takes_groups: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        rising = self.edges.ndim == 1 and bool((np.diff(self.edges) > 0).all())
        if not (rising and self.n_classes >= 1):
            raise ValueError("TableCounts: edges must increase, and n_classes be at least 1.")
        if self.is_divided and self.edges.tolist() != [0.0]:
            raise ValueError("TableCounts: rows are divided at the single edge 0.")

    @property
    def _size(self) -> int:
        return self.n_classes * (len(self.edges) + 1)

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        spread = np.sqrt(2.0) * (1 + 1e-15) if self._size > 1 else 1.0
        return base.Contribution(1.0, float(spread), self._size, total=max(1.0, float(n_rows)))

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        _require_columns(self, context, self.column, self.class_column)
        if self.is_divided:
            of_classes = self.class_column, self.n_classes
            counts = rows.total(divided_counts, self.column, *of_classes, context.public.n_rows)
            return np.asarray(counts, dtype=np.float64)
        arguments = self.column, self.edges, self.class_column, self.n_classes
        return np.asarray(rows.total(table_counts, *arguments), dtype=np.float64)


def unit_sum(records: Records, column: int, n_groups: int) -> float:
    """Sum of the values of a column, each cut to [-1, 1].

    A value that is not a number counts as 0; so does a row of weight 0. Values are rounded to whole
    numbers of 2**-20. Where there are groups, a value is multiplied by the row's multiplier and
    rounded towards 0, to a whole number of the unit of the multipliers.
    """
    return _exact_sum(records, records.X[:, column], n_groups)


def square_sum(records: Records, weights: Array, offset: float, n_groups: int) -> float:
    """Sum over rows of ``2 min(z**2, 1) - 1``, where ``z = offset + weights' facts``.

    The products are added column by column: in a product of matrices the last bit of a row's value
    may depend on which other rows there are.
    """
    combined = np.full(len(records.X), offset)
    with np.errstate(over="ignore", invalid="ignore"):
        for column in np.flatnonzero(weights):
            combined += weights[column] * records.X[:, column]
        squares = np.minimum(combined**2, 1.0)
    return _exact_sum(records, 2 * squares - 1, n_groups)


def _exact_sum(records: Records, values: Array, n_groups: int) -> float:
    values = np.clip(np.nan_to_num(values), -1.0, 1.0)
    if records.weights is not None:
        values = np.where(records.weights > 0, values, 0.0)
    if records.multipliers is None:
        return float(np.ldexp(np.rint(np.ldexp(values, UNIT_BITS)).sum(), -UNIT_BITS))
    bits = share_bits(n_groups)
    parts = np.trunc(np.ldexp(values * records.multipliers, bits))
    return float(np.ldexp(parts.sum(), -bits))


class _UnitStatistic(base.Statistic):
    """A sum of numbers in [-1, 1], which is exact."""

    takes_groups: ClassVar[bool] = True

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        return base.Contribution(1.0, spread=2.0, size=1, total=max(1.0, float(n_rows)))


@base.audited
@dataclass(frozen=True, eq=False)
class UnitSum(_UnitStatistic):
    """Sum of a fact about each row that is cut to [-1, 1].

    Sensitivity: a record adds a number in [-1, 1], a null record 0. So zero-out moves the sum by at
    most 1, replace-one by at most 2. Each part is rounded to a multiple of 2**-20 before
    it is added, so that the sum of up to 2**33 of them is exact (Dwork, McSherry, Nissim, Smith
    2006, Prop. 1; Balle and Wang 2018, Thm 8, for the noise).

    A group of rows adds the mean of theirs. Each row's number times its share is rounded towards 0,
    to the unit of the shares, so it is no larger than the share, and the shares of a group add up
    to 1 at most: the group adds a number in [-1, 1], and the sum over groups is exact.

    Parameters
    ----------
    column : int
        Which fact about a row is summed.
    """

    column: base.Integer
    kind: ClassVar[str] = "loss"

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        _require_columns(self, context, self.column)
        return np.array([rows.total(unit_sum, self.column, context.public.n_rows)])


@base.audited
@dataclass(frozen=True, eq=False)
class InfluenceSquares(_UnitStatistic):
    """Sum of the squares of a weighted sum of facts about each row, such as its part in a ratio.

    By the delta method the variance of a ratio of means is the mean of the squares of what each row
    adds to ``numerator - ratio * denominator``, over n and the square of the denominator.

    Sensitivity: a record adds ``2 min(z**2, 1) - 1``, a number in [-1, 1], whatever its facts are;
    a null record adds 0. So zero-out moves the sum by at most 1, replace-one by at most 2, and
    rounding and groups are those of `UnitSum` (Dwork, McSherry, Nissim, Smith 2006, Prop. 1; Balle
    and Wang 2018, Thm 8, for the noise). The weights and the offset may follow from earlier
    answers, which are public by then, and do not enter the bound.

    Parameters
    ----------
    weights : array of shape (n_facts,)
        Of the facts in ``z = offset + weights' facts``; finite and public. A copy is kept.
    offset : float
        Finite and public.
    """

    weights: base.Point = field(repr=False)
    offset: base.Finite
    kind: ClassVar[str] = "influence"

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        if self.weights.shape != (context.public.n_features,):
            raise ValueError(
                f"InfluenceSquares: there are {context.public.n_features} facts about a row; got "
                f"weights of shape {self.weights.shape}. Nothing was released for it."
            )
        arguments = self.weights, self.offset, context.public.n_rows
        return np.array([rows.total(square_sum, *arguments)])


def _require_columns(statistic: base.Statistic, context: base.PublicContext, *columns: int) -> None:
    if not all(0 <= column < context.public.n_features for column in columns):
        raise ValueError(
            f"{type(statistic).__name__}: there are {context.public.n_features} facts about a row; "
            f"got column {columns}. Nothing was released for it."
        )
