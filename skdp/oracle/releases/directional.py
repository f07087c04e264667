"""Derivatives of losses along one direction and along a shift, each record's clipped."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from scipy import sparse

from skdp._numbers import AnyArray, Array
from skdp.objective import Loss
from skdp.oracle import compiled
from skdp.oracle.compiled import Matrix, MatrixOut, Vector
from skdp.oracle.releases import base
from skdp.oracle.sources.base import RepeatableSource
from skdp.oracle.sources.block_sizes import UNIT_ROUNDOFF
from skdp.oracle.sources.column_map import is_plain, read_only
from skdp.oracle.sources.records import Records, quotient, row_norms, vector
from skdp.oracle.sources.sparse_rows import is_csr

VECTOR_ROUNDING = 64.0 * UNIT_ROUNDOFF  # relative error of a clipped vector of five entries

# Number of entries of a record: first and second derivative along the direction; then along a shift
# of the margin; then the second derivative of both, and the second along the shift.
ALONG, WITH_SHIFT, WITH_ITS_CURVATURE = 2, 3, 5


def _size(with_shift: bool, its_curvature: bool) -> int:
    """Return the number of entries of a record."""
    return (WITH_ITS_CURVATURE if its_curvature else WITH_SHIFT) if with_shift else ALONG


def directional_derivatives(
    records: Records,
    loss: Loss,
    point: Array,
    direction: Array,
    clip_norm: float,
    with_shift: bool,
    its_curvature: bool = True,
) -> Array:
    """Sum of the records' derivatives along a direction, each vector of them clipped."""
    size = _size(with_shift, its_curvature)
    total = np.zeros(size)
    for block in records.cached_blocks():
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            margins, along = block.margins(point), block.margins(direction)
            result = derivatives(loss, margins, along, block.targets, block.weights, with_shift)
        total += block.scaled_by_group(clipped(result[:, :size], clip_norm)).sum(axis=0)
    return total


def derivatives(
    loss: Loss,
    margins: Array,
    along: Array,
    targets: AnyArray,
    weights: Array | None,
    with_shift: bool,
) -> Array:
    """Return derivatives of every record's loss as its margins move by ``a * along + b``.

    Parameters
    ----------
    loss : Loss
        Smooth; with one output if a shift is requested.
    margins, along : array of shape (n_rows, n_outputs)
    targets : array, first axis n_rows
    weights : array of shape (n_rows,) or None
    with_shift : bool

    Returns
    -------
    array of shape (n_rows, 2) or (n_rows, 5), float64
        In ``a``, twice in ``a``; and in ``b``, in both, twice in ``b``.
    """
    residuals = loss.residual(margins, targets)
    first = np.einsum("ij,ij->i", residuals, along)
    second = loss.second_derivative_along(margins, along, targets)
    parts = [first, second]
    if with_shift:
        curvature = loss.second_derivative(margins, targets)[:, 0]
        parts += [residuals[:, 0], curvature * along[:, 0], curvature]
    result = np.stack(parts).T  # entry after entry: what is done to all rows at once is quicker
    if weights is not None:
        result *= weights[:, None]
    return np.asarray(result)


@compiled.compile_loop()
def _write_products(X: Matrix, coef: Vector, ranges: Matrix, out: MatrixOut) -> None:
    """Write products of rows, of rows cut to ranges, and the squared lengths of the latter."""
    for i in range(X.shape[0]):
        out[0, i], out[1, i], out[2, i] = _products(X[i], coef, ranges)


@compiled.compile_inner(fastmath={"reassoc", "nsz"})
def _products(row: Vector, coef: Vector, ranges: Matrix) -> tuple[float, float, float]:
    own = of_cut = square = 0.0
    for j in range(row.shape[0]):
        cut = min(max(row[j], ranges[0, j]), ranges[1, j])
        own += row[j] * coef[j]
        of_cut += cut * coef[j]
        square += cut * cut
    return own, of_cut, square


def _compiled_tails(
    block: Records, point: Array, low: Array, high: Array, row_bound: float
) -> tuple[Array, Array] | None:
    """Return margins of cut rows, and what is missing in them, from one pass over the rows."""
    if block.is_sparse or not is_plain(block.stored) or point.shape[1] != 1:
        return None
    products, coef = np.empty((3, block.n_rows)), vector(point[: block.n_features])
    _write_products(block.stored, coef, read_only(np.stack((low, high))), products)
    norms = np.sqrt(products[2])
    odd = np.flatnonzero(~((norms > 1e-140) & (norms < np.inf)))  # see `row_norms`
    norms[odd] = row_norms(np.clip(block.stored[odd], low, high))
    margins = products[1] * np.minimum(1.0, quotient(row_bound, norms))
    along = products[0] * (1.0 if block.shrink is None else block.shrink) - margins
    return (margins + block.constant * point[-1])[:, None], along[:, None]


def clipped(vectors: Array, bound: float) -> Array:
    """Scale vectors longer than the bound down to it, in place; what is not finite becomes 0."""
    vectors[~np.isfinite(vectors).all(axis=1)] = 0.0
    with np.errstate(over="ignore", under="ignore"):
        # Divided by the largest entry first: neither lengths nor factors leave float64's range.
        largest = np.abs(vectors).max(axis=1)
        largest[largest == 0] = 1.0
        units = vectors / largest[:, None]
        lengths = np.sqrt(np.square(units).sum(axis=1))
        too_long = largest * lengths > bound
        vectors[too_long] = units[too_long] * quotient(bound, lengths[too_long])[:, None]
    return vectors


@base.audited
@dataclass(frozen=True, eq=False)
class DirectionalSum(base.Statistic):
    """Sum of derivatives of the records' losses along a direction of the parameter, clipped.

    At ``point + a * direction``, the margin shifted by b as well, a record's loss is a function
    of (a, b). The record adds its weighted derivatives at (0, 0): in a, twice in a; and, with
    ``with_shift``, in b, in both, and twice in b.

    Sensitivity: the record's vector of 2 or 5 derivatives is scaled down to L2 norm ``clip_norm``
    by the sum itself, and a null record, of weight 0, adds 0. So zero-out moves the sum by at most
    ``clip_norm``, replace-one by twice that: the triangle inequality is all that it takes (Abadi et
    al. 2016, sec. 3.1, of gradients). Point and direction are public, as whatever a solver names.
    Floating point adds what :func:`skdp.oracle.kernels.clipped_gradients.gradient_rounding` proves
    of sums over the same blocks.

    Parameters
    ----------
    point, direction : array of shape (n_parameters, n_outputs)
        Finite.
    clip_norm : float
        From 1e-100 to 1e100, in the derivatives' own scale.
    with_shift : bool, default=False
        For one output.
    its_curvature : bool, default=True
        Without effect unless ``with_shift``; for squared error the last one is 1 anyway.
    """

    point: base.Point = field(repr=False)
    direction: base.Point = field(repr=False)
    clip_norm: base.Bound
    with_shift: base.Flag = False
    its_curvature: base.Flag = True
    kind: ClassVar[str] = "calibration"
    takes_groups: ClassVar[bool] = True

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        size = _size(self.with_shift, self.its_curvature)
        slack = VECTOR_ROUNDING + context.rounding(n_rows, size)
        return base.Contribution.of_sum(self.clip_norm, n_rows, slack, spread=2.0, size=size)

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        if self.with_shift and context.public.n_outputs != 1:
            raise ValueError(
                "DirectionalSum: a shift is for one output; got "
                f"{context.public.n_outputs}. Nothing was released for it."
            )
        base.require_shape(self, context, "point", "direction")
        loss, bound = context.problem.loss, self.clip_norm
        arguments = loss, self.point, self.direction, bound, self.with_shift, self.its_curvature
        return np.asarray(rows.total(directional_derivatives, *arguments))


def tail_derivatives(
    records: Records,
    loss: Loss,
    point: Array,
    low: Array,
    high: Array,
    row_bound: float,
    clip_norm: float,
) -> Array:
    """Sum of the records' derivatives from margins of cut rows to their own, each clipped."""
    total, is_compiled = np.zeros(ALONG), compiled.use_compiled(records.public_shape)
    for block in records.cached_blocks():
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            tails = _compiled_tails(block, point, low, high, row_bound) if is_compiled else None
            if tails is None:
                margins = _cut(block, low, high, row_bound).margins(point)
                tails = margins, block.margins(point) - margins
            result = derivatives(loss, *tails, block.targets, block.weights, False)
        total += block.scaled_by_group(clipped(result, clip_norm)).sum(axis=0)
    return total


def _cut(block: Records, low: Array, high: Array, row_bound: float) -> Records:
    """Return the records with rows cut to ranges, and then scaled down to the bound on them."""
    X, base = block.stored, block.base
    if is_csr(X):  # the base is cut, and what is stored is what cutting leaves beside it
        own = X.data if base is None else X.data + base[X.indices]
        base = np.clip(np.zeros(block.n_features) if base is None else base, low, high)
        own = np.clip(own, low[X.indices], high[X.indices]) - base[X.indices]
        X = sparse.csr_array((own, X.indices, X.indptr), shape=X.shape)
    else:
        X = np.clip(X, low, high)
    shrink = np.minimum(1.0, quotient(row_bound, row_norms(X, None, base)))
    return replace(block, stored=X, columns=None, base=base, shrink=shrink)


@base.audited
@dataclass(frozen=True, eq=False)
class TailSum(base.Statistic):
    """Sum of derivatives of the records' losses along what narrower ranges would cut off, clipped.

    Let m be the margin of a record at ``point``, and c its margin with the row cut to the ranges
    from ``low`` to ``high`` and then scaled down to ``row_bound``. The record adds the weighted
    derivatives of its loss at ``c + a (m - c)``, once and twice in a, at a = 0. For squared error
    they are ``(c - y) (m - c)`` and ``(m - c)**2``: minus the quotient of their sums is the slope
    of what is cut off, where that of what is kept is 1.

    Sensitivity: the record's vector of 2 derivatives is scaled down to L2 norm ``clip_norm`` by
    the sum itself, and a null record, of weight 0, adds 0. So zero-out moves the sum by at most
    ``clip_norm``, replace-one by twice that: the triangle inequality is all that it takes (Abadi et
    al. 2016, sec. 3.1, of gradients). Point, ranges and bound are public, as whatever a solver or
    a stage names. Floating point adds what
    :func:`skdp.oracle.kernels.clipped_gradients.gradient_rounding` proves of sums over blocks that
    are no larger.

    Parameters
    ----------
    point : array of shape (n_parameters, n_outputs)
        Finite.
    low, high : array of shape (n_features,)
        Finite, in units of the rows that the oracle answers for.
    row_bound : float
        From 1e-100 to 1e100.
    clip_norm : float
        From 1e-100 to 1e100, in the derivatives' own scale.
    """

    point: base.Point = field(repr=False)
    low: base.Point = field(repr=False)
    high: base.Point = field(repr=False)
    row_bound: base.Bound
    clip_norm: base.Bound
    kind: ClassVar[str] = "tails"
    takes_groups: ClassVar[bool] = True

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        slack = VECTOR_ROUNDING + context.rounding(n_rows, ALONG)
        return base.Contribution.of_sum(self.clip_norm, n_rows, slack, spread=2.0, size=ALONG)

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        base.require_shape(self, context, "point")
        if not self.low.shape == self.high.shape == (context.public.n_features,):
            raise ValueError(
                f"TailSum: low and high must have {context.public.n_features} entries; got "
                f"{self.low.shape} and {self.high.shape}. Nothing was released for it."
            )
        ranges = self.low, self.high, self.row_bound
        result = rows.total(
            tail_derivatives, context.problem.loss, self.point, *ranges, self.clip_norm
        )
        return np.asarray(result)
