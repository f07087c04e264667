"""Sums over records of a few numbers each: one sum, with one proof, for all such statistics.

*Sensitivity.* `record_sum` cuts the numbers of a record to a set that contains 0: the ball with
radius `RecordSum.largest` or, if ``signed`` is False, the cube from 0 to `largest`. A vector that
is not finite counts as 0, and so does an entry that is not a number. A null record, of weight 0,
adds 0. So zero-out moves the sum by at most the radius of the ball, or the diagonal of the cube.
Two points of the ball are at most twice its radius apart, and two points of the cube at most its
diagonal: the spread is 2, or 1 (Dwork, McSherry, Nissim, Smith 2006, Prop. 1, Balle and Wang 2018,
Thm 8, for the noise). The function of a block that computes the numbers has no part in this proof,
nor have the public numbers that it uses.

*Floating point.* Numbers are rounded to a grid on which a sum over n records is exact in float64.
Rounding and the computed length of a vector raise a record's part by a relative
``2 sqrt(size)`` cells at most (`exact_bits`), which is charged.

*Groups.* A group adds the mean of the numbers of its rows. Each product with a row's share is
rounded towards 0, so it stays in the set times the share, and the shares of a group add up to 1 at
most: the mean lies in the convex hull of the set, as `Statistic` explains.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from scipy import sparse

from skdp._numbers import Array
from skdp._oracle.releases import base, moments
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.sources.base import RepeatableSource
from skdp._oracle.sources.column_map import Weights
from skdp._oracle.sources.records import Records, exact_bits, quotient, row_norms
from skdp._oracle.sources.row_blocks import is_csr
from skdp.objective import Loss

# A cell is at least 2**-44, which is 512 times the unit roundoff: the norm of a vector of up to a
# hundred entries, and the quotient that scales it down, are computed more accurately.
FINEST = 44


class RecordSum(base.Statistic):
    """Sum over records of a few numbers each, which the sum itself cuts to a set.

    Attributes
    ----------
    signed : bool
        Whether numbers may be negative: they are cut to a ball if they may, to a cube otherwise.
    size : int
        Number of entries of a record.
    largest : float
        Radius of the ball, or side of the cube.
    order : {1, 2}
        Of the norm in which the sum is bounded. 1 only for a cube.
    """

    takes_groups: ClassVar[bool] = True
    signed: ClassVar[bool] = True
    size: ClassVar[int] = 1
    order: int = 2

    @property
    def largest(self) -> float:
        return 1.0

    def is_signed(self, context: PublicContext) -> bool:
        """Return `signed`, unless public facts decide."""
        return self.signed

    @abstractmethod
    def numbers(self, block: Records, context: PublicContext) -> Array:
        """Return the numbers of each record of a block, of any size: shape (n,) or (n, size)."""

    def contribution(self, context: PublicContext, n_rows: int) -> base.Contribution:
        length = float(self.size) ** (1 / self.order)
        slack = length * 2.0 ** (1 - exact_bits(context.public.n_rows, FINEST))
        bound, spread = (
            (self.largest, 2.0) if self.is_signed(context) else (self.largest * length, 1.0)
        )
        n_rows = max(n_rows, 1)
        return base.Contribution.of_sum(bound, n_rows, slack, spread, self.size, self.order)

    def check(self, context: PublicContext) -> None:
        """Raise ValueError if a field does not fit the problem."""
        base.require_shape(self, context, *{"point", "direction"} & vars(self).keys())

    def total(self, rows: RepeatableSource, context: PublicContext) -> Array:
        self.check(context)
        return np.asarray(rows.total(record_sum, self, context))


def record_sum(records: Records, statistic: RecordSum, context: PublicContext) -> Array:
    """Return the sum of the records' numbers, cut to the statistic's set and exact on a grid."""
    largest, total = statistic.largest, np.zeros(statistic.size)
    is_signed = statistic.is_signed(context)
    bits = exact_bits(context.public.n_rows, FINEST) - math.ceil(math.log2(largest))
    for block in records.cached_blocks():
        with np.errstate(all="ignore"):
            numbers = statistic.numbers(block, context).reshape(block.n_rows, statistic.size)
            if is_signed and statistic.size > 1:
                numbers = within_ball(numbers, largest)
            else:
                least = -largest if is_signed else 0.0
                numbers = np.clip(np.nan_to_num(numbers), least, largest)
            if block.weights is not None:
                numbers[block.weights == 0] = 0.0
            numbers = block.scaled_by_group(numbers)
            if context.scale:  # without noise nothing is charged, and bounds may be huge
                rounded = np.rint if block.multipliers is None else np.trunc
                numbers = np.ldexp(rounded(np.ldexp(numbers, bits)), -bits)
        total += numbers.sum(axis=0)
    return total


def within_ball(vectors: Array, radius: float) -> Array:
    """Scale longer vectors down to the radius, in place. A vector that is not finite becomes 0."""
    vectors[~np.isfinite(vectors).all(axis=1)] = 0.0
    # Divided by the largest entry first: neither lengths nor factors leave float64's range.
    largest = np.abs(vectors).max(axis=1)
    largest[largest == 0] = 1.0
    units = vectors / largest[:, None]
    lengths = np.sqrt(np.square(units).sum(axis=1))
    too_long = largest * lengths > radius
    vectors[too_long] = units[too_long] * quotient(radius, lengths[too_long])[:, None]
    return vectors


def lengths_of(vectors: Array) -> Array:
    """Return the L2 norm of each row, which does not leave float64's range; nan if an entry is."""
    if vectors.shape[1] == 1:
        return np.abs(vectors[:, 0])
    largest = np.abs(vectors).max(axis=1)
    units = vectors / np.where(largest > 0, largest, 1.0)[:, None]
    return np.asarray(largest * np.sqrt(np.einsum("ij,ij->i", units, units)))


# ---------------------------------------------------------------- counts


@base.audited
@dataclass(frozen=True, eq=False)
class ResidualCount(RecordSum):
    """Number of records whose unweighted residual at ``point`` is at most ``limit`` long."""

    point: base.Point = field(repr=False)
    limit: base.Positive
    kind: ClassVar[str] = "residual_count"
    signed: ClassVar[bool] = False

    def numbers(self, block: Records, context: PublicContext) -> Array:
        residuals = context.problem.loss.residual(block.margins(self.point), block.targets)
        return np.asarray(lengths_of(residuals) <= self.limit, float)


@base.audited
@dataclass(frozen=True, eq=False)
class CutCount(moments.OfWhitenedRows, RecordSum):
    """Number of records with a shortened row or a capped residual (see `moments`).

    With ``with_weights``, for a loss of one margin, the sum of working weights over their bound is
    a second entry.
    """

    with_weights: base.Flag = False
    kind: ClassVar[str] = "cut_records"
    signed: ClassVar[bool] = False

    @property
    def size(self) -> int:  # type: ignore[override]
        return 1 + self.with_weights

    def numbers(self, block: Records, context: PublicContext) -> Array:
        loss = context.problem.loss
        _, factors = self.whitened(block, loss)
        lengths = lengths_of(self.residuals(block, loss, factors))
        full = np.ones(block.n_rows) if block.weights is None else np.sqrt(block.weights)
        numbers = np.empty((block.n_rows, self.size))
        numbers[:, 0] = (factors < full) | (lengths > self.residual_bound)
        if self.with_weights:
            margins = np.nan_to_num(block.margins(self.point))
            weights = loss.working_weight(margins, block.targets)[:, 0]
            numbers[:, 1] = np.minimum(weights / (loss.weight_bound or 1.0), full)
        return numbers

    def check(self, context: PublicContext) -> None:
        self.require_coordinates(context)


@base.audited
@dataclass(frozen=True, eq=False)
class WeightSums(RecordSum):
    """Sum of ``min(weight, scale) / scale`` over records, and number of positive weights.

    ``by_label`` has public factors of labels: a record whose label has the factor 0 is not counted.
    It is empty for none. The order of the norm is 1 for Laplace noise.
    """

    scale: base.Positive
    by_label: base.Point
    order: base.Integer = field(default=2, kw_only=True)
    kind: ClassVar[str] = "weight_sums"
    signed: ClassVar[bool] = False
    size: ClassVar[int] = 2

    @property
    def reads_targets(self) -> bool:
        return bool(self.by_label.size)

    def numbers(self, block: Records, context: PublicContext) -> Array:
        given = np.ones(block.n_rows) if block.weights is None else block.weights
        factors = Weights(self.scale, tuple(self.by_label)).of_labels(block.targets)
        counted = (given > 0) if factors is None else (given > 0) & (factors > 0)
        return np.stack([np.minimum(given, self.scale) / self.scale, counted], axis=1)


# ---------------------------------------------------------------- residuals


@base.audited
@dataclass(frozen=True, eq=False)
class ResidualSquares(RecordSum):
    """Sum of the records' squared residuals at ``point``, weighted, each cut to ``bound**2``."""

    point: base.Point = field(repr=False)
    bound: base.Bound
    kind: ClassVar[str] = "residual_squares"
    signed: ClassVar[bool] = False

    @property
    def largest(self) -> float:
        return self.bound**2

    def numbers(self, block: Records, context: PublicContext) -> Array:
        residuals = context.problem.loss.residual(block.margins(self.point), block.targets)
        squares = np.einsum("ij,ij->i", residuals, residuals)
        return np.asarray(squares if block.weights is None else squares * block.weights)


@base.audited
@dataclass(frozen=True, eq=False)
class CappedResiduals(RecordSum):
    """Sum of the residuals at ``point``, each weighted and cut to plus or minus ``bound``."""

    point: base.Point = field(repr=False)
    bound: base.Bound
    kind: ClassVar[str] = "capped_residuals"

    @property
    def largest(self) -> float:
        return self.bound

    def numbers(self, block: Records, context: PublicContext) -> Array:
        residuals = context.problem.loss.residual(block.margins(self.point), block.targets)[:, 0]
        return np.asarray(residuals if block.weights is None else residuals * block.weights)


# ---------------------------------------------------------------- derivatives along a direction


def derivatives(
    block: Records, loss: Loss, margins: Array, along: Array, with_shift: bool = False
) -> Array:
    """Return the first derivatives of the records' weighted losses as margins move, five at most.

    Margins move by ``a * along + b``. The derivatives are in a and twice in a. For a shift of one
    output, those in b, in both, and twice in b follow.
    """
    residuals = loss.residual(margins, block.targets)
    parts = [
        np.einsum("ij,ij->i", residuals, along),
        loss.second_derivative_along(margins, along, block.targets),
    ]
    if with_shift:
        curvature = loss.second_derivative(margins, block.targets)[:, 0]
        parts += [residuals[:, 0], curvature * along[:, 0], curvature]
    result = np.stack(parts).T  # entry after entry: operations on all rows at once are faster
    return np.asarray(result if block.weights is None else result * block.weights[:, None])


@base.audited
@dataclass(frozen=True, eq=False)
class DirectionalSum(RecordSum):
    """Sum of derivatives of the records' losses along a direction of the parameter, clipped.

    At ``point + a * direction``, the margin shifted by b as well, a record's loss is a function of
    (a, b). The record adds its `derivatives` at (0, 0). Without ``its_curvature`` the last two are
    left out.
    """

    point: base.Point = field(repr=False)
    direction: base.Point = field(repr=False)
    clip_norm: base.Bound
    with_shift: base.Flag = False
    its_curvature: base.Flag = True
    kind: ClassVar[str] = "calibration"

    @property
    def largest(self) -> float:
        return self.clip_norm

    @property
    def size(self) -> int:  # type: ignore[override]
        return (5 if self.its_curvature else 3) if self.with_shift else 2

    def numbers(self, block: Records, context: PublicContext) -> Array:
        margins, along = block.margins(self.point), block.margins(self.direction)
        loss = context.problem.loss
        return derivatives(block, loss, margins, along, self.with_shift)[:, : self.size]

    def check(self, context: PublicContext) -> None:
        super().check(context)
        if self.with_shift and context.public.n_outputs != 1:
            raise ValueError(
                "DirectionalSum: a shift is for one output, got "
                f"{context.public.n_outputs}. Nothing was released for it."
            )


@base.audited
@dataclass(frozen=True, eq=False)
class TailSum(RecordSum):
    """Sum of derivatives of the records' losses along values outside of narrower ranges, clipped.

    Let m be the margin of a record at ``point``, and c its margin with the row cut to the ranges
    from ``low`` to ``high`` and then scaled down to ``row_bound``. The record adds the weighted
    derivatives of its loss at ``c + a (m - c)``, once and twice in a, at a = 0. For squared error
    they are ``(c - y) (m - c)`` and ``(m - c)**2``: minus the quotient of their sums is the slope
    of the margins that are cut off, if the slope of the others is 1.
    """

    point: base.Point = field(repr=False)
    low: base.Point = field(repr=False)
    high: base.Point = field(repr=False)
    row_bound: base.Bound
    clip_norm: base.Bound
    kind: ClassVar[str] = "tails"
    size: ClassVar[int] = 2

    @property
    def largest(self) -> float:
        return self.clip_norm

    def numbers(self, block: Records, context: PublicContext) -> Array:
        # Rows are cut to ranges, and then scaled down to the bound on them.
        X, base_row, low, high = block.stored, block.base, self.low, self.high
        if is_csr(X):  # the base is cut, and the rest of the cut row is stored
            own = X.data if base_row is None else X.data + base_row[X.indices]
            zeros = np.zeros(block.n_features) if base_row is None else base_row
            base_row = np.clip(zeros, low, high)
            own = np.clip(own, low[X.indices], high[X.indices]) - base_row[X.indices]
            X = sparse.csr_array((own, X.indices, X.indptr), shape=X.shape)
        else:
            X = np.minimum(np.maximum(X, low), high)  # quicker than np.clip
        shrink = np.minimum(1.0, quotient(self.row_bound, row_norms(X, None, base_row)))
        cut = replace(block, stored=X, columns=None, base=base_row, shrink=shrink)
        margins = cut.margins(self.point)
        along = block.margins(self.point) - margins
        return derivatives(block, context.problem.loss, margins, along)

    def check(self, context: PublicContext) -> None:
        super().check(context)
        if not self.low.shape == self.high.shape == (context.public.n_features,):
            raise ValueError(
                f"TailSum: low and high must have {context.public.n_features} entries, got "
                f"{self.low.shape} and {self.high.shape}. Nothing was released for it."
            )


# ---------------------------------------------------------------- scores of a given model


@base.audited
@dataclass(frozen=True, eq=False)
class UnitSum(RecordSum):
    """Sum of a fact about each row, the ``column`` of that number, cut to [-1, 1] and weighted."""

    column: base.Integer
    kind: ClassVar[str] = "loss"

    def numbers(self, block: Records, context: PublicContext) -> Array:
        values = np.clip(np.nan_to_num(block.X[:, self.column]), -1.0, 1.0)
        return np.asarray(values if block.weights is None else values * block.weights)

    def check(self, context: PublicContext) -> None:
        base.require_columns(self, context, self.column)


@base.audited
@dataclass(frozen=True, eq=False)
class InfluenceSquares(RecordSum):
    """Sum of ``2 min(z**2, 1) - 1``, where ``z = offset + weights' facts``.

    Of records with weights w it is the sum of ``w**2 min(z**2, 1)``. By the delta method the
    variance of a ratio of means is the mean of the squares of each row's contribution to
    ``numerator - ratio * denominator``, over n and the square of the denominator.
    """

    weights: base.Point = field(repr=False)
    offset: base.Finite
    kind: ClassVar[str] = "influence"

    def is_signed(self, context: PublicContext) -> bool:
        return not context.public.weighted

    def numbers(self, block: Records, context: PublicContext) -> Array:
        combined = np.full(block.n_rows, self.offset)
        for column in np.flatnonzero(self.weights):  # no product of matrices: see `Records.margins`
            combined += self.weights[column] * block.X[:, column]
        squares = np.minimum(combined**2, 1.0)
        if not context.public.weighted:
            return np.asarray(2 * squares - 1)
        return np.asarray(squares if block.weights is None else block.weights**2 * squares)

    def check(self, context: PublicContext) -> None:
        base.require_columns(self, context, len(self.weights) - 1)
