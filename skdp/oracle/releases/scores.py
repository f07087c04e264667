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
from skdp.oracle.releases.record_sums import cell_bits
from skdp.oracle.sources.base import RepeatableSource
from skdp.oracle.sources.records import Records


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
    bits = cell_bits(n_groups)
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
        base.require_columns(self, context, self.column, self.class_column)
        if self.is_divided:
            of_classes = self.class_column, self.n_classes
            counts = rows.total(divided_counts, self.column, *of_classes, context.public.n_rows)
            return np.asarray(counts, dtype=np.float64)
        arguments = self.column, self.edges, self.class_column, self.n_classes
        return np.asarray(rows.total(table_counts, *arguments), dtype=np.float64)
