"""Counts over rows, and sums of contributions between 0 and 1.

The contribution of any record lies in [0, 1], and the null record adds 0: a row of weight 0, and a
place of a stream that no row arrived for. A group of rows adds the mean of theirs; the multipliers
are whole numbers of a small unit, so that their sums are exact, too. So two contributions are at
most 1 apart: that is the sensitivity under zero-out and under replace-one alike (the spread is 1).
Samples under zero-out rest on the 0 of the null record, as amplification compares a record with its
absence.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skdp._numbers import Array
from skdp.objective import Loss
from skdp.oracle.kernels.clipped_gradients import count_short_means, weighted_residuals
from skdp.oracle.releases import base
from skdp.oracle.sources.base import RepeatableSource, require_kind
from skdp.oracle.sources.groups import GroupedSource
from skdp.oracle.sources.records import Records

SQUARE_BITS = 20  # squared norms are rounded to this many bits, so that their sum is exact


class _Count(base.Statistic):
    """One number, exact in float64, that a record moves by at most 1."""

    takes_groups: ClassVar[bool] = True

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        # A sum of at most 2**53 ones is exact: rounding adds nothing.
        return base.Contribution(1.0, spread=1.0, size=1, total=max(1.0, float(n_rows)))


def count_short(
    records: Records, loss: Loss, point: Array, limit: float, of_gradients: bool
) -> float:
    """Count the records whose residual, or weighted gradient, is at most ``limit`` long.

    A residual that is not a number, or too large for float64, is not counted, so each row adds 0 or
    1 whatever it holds. A row of weight 0 is a null record, and adds 0.
    """
    result = 0.0
    for block in records.cached_blocks():
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            residuals = loss.residual(block.margins(point), block.targets)
            if block.weights is not None and of_gradients:
                residuals *= block.weights[:, None]
            limits = limit * block.inverse_norms if of_gradients else limit
            within = _lengths(residuals) <= limits
            if block.weights is not None:
                within &= block.weights != 0
        if block.multipliers is not None:
            result += float(block.multipliers[within].sum())
        else:
            result += int(np.count_nonzero(within))
    return float(result)


def _lengths(residuals: Array) -> Array:
    """L2 norm of each row; not a number where an entry is not."""
    sizes = np.abs(residuals)
    if sizes.shape[1] == 1:
        return np.asarray(sizes[:, 0])
    # Divided by the largest entry first: squares do not leave float64's range.
    largest = sizes.max(axis=1)
    scale = np.where(largest > 0, largest, 1.0)
    sizes /= scale[:, None]
    return np.asarray(scale * np.sqrt(np.einsum("ij,ij->i", sizes, sizes)))


@dataclass(frozen=True, eq=False)
class _CountWithin(_Count):
    """Number of records with a vector at ``point`` that is at most ``limit`` long."""

    point: base.Point = field(repr=False)
    limit: base.Positive
    of_gradients: ClassVar[bool]

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        base.require_shape(self, context, "point")
        loss = context.problem.loss
        if self.of_gradients and context.public.clips_means:
            groups = require_kind(rows, GroupedSource)
            residuals = groups.per_row(weighted_residuals, loss, self.point)
            count = groups.total_over_groups(count_short_means, self.limit, rows=(residuals,))
            return np.array([count])
        return np.array([rows.total(count_short, loss, self.point, self.limit, self.of_gradients)])


@base.audited
@dataclass(frozen=True, eq=False)
class ResidualCount(_CountWithin):
    """Number of records whose residual at ``point`` is at most ``limit`` long.

    Sensitivity: a record adds 0 or 1, the null record 0; so either relation moves the count by at
    most 1. A record of weight 0 is not counted; other weights have no say in the comparison. A
    residual that is not a number adds 0.

    Parameters
    ----------
    point : array of shape (n_parameters, n_outputs)
        Finite.
    limit : float
        Positive and finite, in the unit of the target.
    """

    kind: ClassVar[str] = "residual_count"
    of_gradients: ClassVar[bool] = False


@base.audited
@dataclass(frozen=True, eq=False)
class GradientCount(_CountWithin):
    """Number of records whose gradient at ``point`` is at most ``limit`` long, before clipping.

    Sensitivity: as for `ResidualCount`, at most 1 under either relation. Weights act before the
    comparison, as they do before clipping.

    Parameters
    ----------
    point : array of shape (n_parameters, n_outputs)
        Finite.
    limit : float
        Positive and finite.
    """

    kind: ClassVar[str] = "gradient_count"
    of_gradients: ClassVar[bool] = True


def squared_norms(records: Records, limit: float) -> float:
    """Sum of ``min(1, (norm / limit)**2)``, in units of 2**-20, each a whole number of them.

    Rows of weight 0 are null records and add 0.
    """
    total = 0.0
    for block in records.cached_blocks():
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            shares = np.minimum(1.0, (1.0 / block.inverse_norms / limit) ** 2)
        if block.weights is not None:
            shares[block.weights == 0] = 0.0
        if block.multipliers is None:
            total += float(np.rint(2.0**SQUARE_BITS * shares).sum())
        else:  # rounded down, so that those of a group add up to 1 at most
            total += float(np.floor(2.0**SQUARE_BITS * shares * block.multipliers).sum())
    return total


@base.audited
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

    limit: base.Positive
    kind: ClassVar[str] = "squared_norm"

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        units = rows.total(squared_norms, self.limit)
        return np.array([units / 2.0**SQUARE_BITS])
