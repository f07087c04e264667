"""Counts over rows, and sums of contributions between 0 and 1.

The contribution of any record lies in [0, 1], and the null record adds 0: a row of weight 0, and a
place of a stream that no row arrived for. So two contributions are at most 1 apart: that is the
sensitivity under zero-out and under replace-one alike (the spread is 1). Samples under zero-out
rest on the 0 of the null record, as amplification compares a record with its absence.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from skdp.objective import Loss
from skdp.oracle.releases.base import Array, Terms, audited
from skdp.oracle.releases.fields import require_shape, store_points, store_positive
from skdp.oracle.releases.mechanisms import Contribution
from skdp.oracle.releases.sums import Sum

if TYPE_CHECKING:
    from skdp.oracle.rows import Rows


class _Count(Sum):
    """What the counts share: one number, exact in float64, that a record moves by at most 1."""

    def contribution(self, terms: Terms, n_rows: int) -> Contribution:
        # A sum of at most 2**53 ones is exact: rounding adds nothing.
        return Contribution(1.0, spread=1.0, size=1, total=max(1.0, float(n_rows)))

    def shape(self, terms: Terms) -> tuple[int, ...]:
        return (1,)


@dataclass(frozen=True, eq=False)
class _CountWithin(_Count):
    """How many records have something at ``point`` that is at most ``limit`` long."""

    point: Array = field(repr=False)
    limit: float

    def __post_init__(self) -> None:
        store_points(self, "point")
        store_positive(self, "limit")

    def total(self, rows: Rows, terms: Terms) -> Array:
        require_shape(self, terms, "point")
        return np.array([float(self._count(rows, terms.problem.loss))])

    @abstractmethod
    def _count(self, rows: Rows, loss: Loss) -> int:
        """Count the records."""


@audited
@dataclass(frozen=True, eq=False)
class ResidualCount(_CountWithin):
    """Number of records whose residual at ``point`` is at most ``limit`` long.

    Sensitivity: a record adds 0 or 1, the null record 0; so either relation moves the count by at
    most 1. Weights act before the comparison, as they do before clipping, and a record of weight 0
    is not counted. A residual that is not a number adds 0.

    Parameters
    ----------
    point : array of shape (n_parameters, n_outputs)
        Finite.
    limit : float
        Positive and finite, in the unit of the target.
    """

    kind: ClassVar[str] = "residual_count"

    def _count(self, rows: Rows, loss: Loss) -> int:
        return rows.count_residuals(loss, self.point, self.limit)


@audited
@dataclass(frozen=True, eq=False)
class GradientCount(_CountWithin):
    """Number of records whose gradient at ``point`` is at most ``limit`` long, before clipping.

    Sensitivity: as for `ResidualCount`, at most 1 under either relation.

    Parameters
    ----------
    point : array of shape (n_parameters, n_outputs)
        Finite.
    limit : float
        Positive and finite.
    """

    kind: ClassVar[str] = "gradient_count"

    def _count(self, rows: Rows, loss: Loss) -> int:
        return rows.count_gradients(loss, self.point, self.limit)


@audited
@dataclass(frozen=True, eq=False)
class SquaredNormSum(_Count):
    """Sum of ``min(1, (norm / limit)**2)`` over records, the constant feature in the norm.

    Sensitivity: a record adds a number in [0, 1], the null record 0; either relation moves the
    sum by at most 1. Each part is rounded to a multiple of 2**-20 before it is added, so
    the sum of up to 2**33 of them is exact.

    Parameters
    ----------
    limit : float
        Positive and finite: longer rows count as this long.
    """

    limit: float
    kind: ClassVar[str] = "squared_norm"

    def __post_init__(self) -> None:
        store_positive(self, "limit")

    def total(self, rows: Rows, terms: Terms) -> Array:
        return np.array([rows.sum_squared_norms(self.limit)])
