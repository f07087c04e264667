"""Statistics of how a given model does on rows: tables of counts, and sums of bounded losses.

The columns of the records are facts about each row that follow from the row and from a model that
is given: a score, the number of a cell, a loss. What bounds them is in here, not where they are
made.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skdp._numbers import Array, Indices
from skdp.oracle.releases import base
from skdp.oracle.sources.base import RepeatableSource
from skdp.oracle.sources.records import Records

UNIT_BITS = 20  # parts of a sum are rounded to this many bits, so that their sum is exact


def table_counts(
    records: Records, column: int, edges: Array, group_column: int, n_groups: int
) -> Indices:
    """Count records by group, and by the interval between edges that their value lies in.

    A value that is not a number lies in the last interval, a group that is out of range counts as
    the nearest: every record is in one cell. Rows of weight 0 are in none.
    """
    facts = records.X if records.weights is None else records.X[records.weights > 0]
    n_bins = len(edges) + 1
    cells = np.searchsorted(edges, facts[:, column], side="right")
    if n_groups > 1:
        groups = np.fmin(np.fmax(facts[:, group_column], 0.0), n_groups - 1.0)
        cells = cells + n_bins * groups.astype(np.intp)
    return np.bincount(cells, minlength=n_groups * n_bins).astype(np.int64)


@base.audited
@dataclass(frozen=True, eq=False)
class TableCounts(base.Statistic):
    """Table of counts: records by group, and by the interval that a value lies in.

    Sensitivity: a record adds 1 to one cell, whatever it holds, since the outer intervals are open
    and groups out of range count as the nearest. So its part has L2 norm 1, and two such parts are
    sqrt(2) apart at most: that is the spread. A null record, of weight 0, is in no cell and
    adds 0. Counts of at most 2**53 rows are exact, so rounding adds nothing (Dwork, McSherry,
    Nissim, Smith 2006, Example 1, for histograms; Balle and Wang 2018, Thm 8, for the noise).

    Parameters
    ----------
    column : int
        Which fact about a row is looked up.
    edges : array of shape (n_bins - 1,)
        Finite and increasing; public. A value at an edge lies in the interval above. A copy is
        kept.
    group_column : int, default=0
        Which fact is the group, a number from 0 to ``n_groups - 1``.
    n_groups : int, default=1
        1 for no groups.
    """

    column: int
    edges: Array = field(repr=False)
    group_column: int = 0
    n_groups: int = 1
    kind: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        base.store_points(self, "edges")
        base.store_integers(self, "column", "group_column", "n_groups")
        rising = self.edges.ndim == 1 and bool((np.diff(self.edges) > 0).all())
        if not (rising and self.n_groups >= 1):
            raise ValueError("TableCounts: edges must increase, and n_groups be at least 1.")

    @property
    def _size(self) -> int:
        return self.n_groups * (len(self.edges) + 1)

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        spread = np.sqrt(2.0) * (1 + 1e-15) if self._size > 1 else 1.0
        return base.Contribution(1.0, float(spread), self._size, total=max(1.0, float(n_rows)))

    def shape(self, context: base.PublicContext) -> tuple[int, ...]:
        return (self._size,)

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        _require_columns(self, context, self.column, self.group_column)
        arguments = self.column, self.edges, self.group_column, self.n_groups
        return np.asarray(rows.total(table_counts, *arguments), dtype=np.float64)


def unit_sum(records: Records, column: int) -> float:
    """Sum of the values of a column, each cut to [-1, 1], in units of 2**-20.

    A value that is not a number counts as 0; so does a row of weight 0.
    """
    values = records.X[:, column]
    parts = np.rint(2.0**UNIT_BITS * np.clip(np.nan_to_num(values), -1.0, 1.0))
    if records.weights is not None:
        parts = parts[records.weights > 0]
    return float(parts.sum())


@base.audited
@dataclass(frozen=True, eq=False)
class UnitSum(base.Statistic):
    """Sum of a fact about each row that is cut to [-1, 1].

    Sensitivity: a record adds a number in [-1, 1], a null record 0. So zero-out moves the sum by at
    most 1, replace-one by at most 2. Each part is rounded to a multiple of 2**-20 before
    it is added, so that the sum of up to 2**33 of them is exact (Dwork, McSherry, Nissim, Smith
    2006, Prop. 1; Balle and Wang 2018, Thm 8, for the noise).

    Parameters
    ----------
    column : int
        Which fact about a row is summed.
    """

    column: int
    kind: ClassVar[str] = "loss"

    def __post_init__(self) -> None:
        base.store_integers(self, "column")

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        return base.Contribution(1.0, spread=2.0, size=1, total=max(1.0, float(n_rows)))

    def shape(self, context: base.PublicContext) -> tuple[int, ...]:
        return (1,)

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        _require_columns(self, context, self.column)
        return np.array([rows.total(unit_sum, self.column) / 2.0**UNIT_BITS])


def _require_columns(statistic: base.Statistic, context: base.PublicContext, *columns: int) -> None:
    if not all(0 <= column < context.public.n_features for column in columns):
        raise ValueError(
            f"{type(statistic).__name__}: there are {context.public.n_features} facts about a row; "
            f"got column {columns}. Nothing was released for it."
        )
