"""Sums of clipped gradients in one pass over the rows: margins, residuals, clipping, accumulation.

For a generalised linear model the gradient of one record is the outer product of its row and its
residual, so clipping it needs two norms and no per-record gradient. Dense rows are taken in blocks
that stay in a cache between the two products.
"""

import functools
from typing import Any

import numpy as np

from skdp._numbers import Array
from skdp.objective import Loss
from skdp.oracle.compiled import has_twin
from skdp.oracle.sources.records import UNIT_ROUNDOFF, Records, longest_sum
from skdp.oracle.sources.sparse_rows import growth_of_rounding

TWINS = "skdp.oracle.kernels.twins"  # imported where numba is installed


@has_twin(TWINS)
def clipped_gradients(
    records: Records,
    loss: Loss,
    point: Array,
    clip_norm: float,
    anchor: Array | None = None,
) -> Array:
    """Sum over records of the gradient in the parameter, each clipped to L2 norm ``clip_norm``.

    A record's gradient is its row times ``weight * residual``; the residual is clipped to
    ``clip_norm * inverse_norm``, so no record adds more than ``clip_norm``, whatever it holds: a
    residual that is not a number counts as 0. :func:`gradient_rounding` bounds what rounding adds.

    Parameters
    ----------
    records : Records
    loss : Loss
    point : array of shape (n_parameters, n_outputs)
    clip_norm : float
    anchor : array of shape (n_parameters, n_outputs), optional
        Sum differences instead: of the gradient at ``point`` and that at ``anchor``.

    Returns
    -------
    array of shape (n_parameters, n_outputs), float64
    """
    total = np.zeros(point.shape)
    for block in records.cached_blocks():
        residuals = weighted_residuals(block, loss, point, anchor)
        clip_l2(residuals, clip_norm, block.inverse_norms)
        block.scaled_by_group(residuals)
        _accumulate(block, residuals, total)
    return total


@has_twin(TWINS)
def l1_clipped_gradients(
    records: Records, inverse_l1_norms: Array, loss: Loss, point: Array, clip_norm: float
) -> Array:
    """Sum over records of the gradient, each clipped to L1 norm ``clip_norm``.

    The gradient is an outer product, and its L1 norm is that of the row times that of the residual.
    """
    total = np.zeros(point.shape)
    for block, inverse in _with_rows(records, inverse_l1_norms):
        residuals = weighted_residuals(block, loss, point)
        clip_l1(residuals, clip_norm, inverse)
        block.scaled_by_group(residuals)
        _accumulate(block, residuals, total)
    return total


def _with_rows(records: Records, vector: Array) -> Any:
    """Yield blocks of records, and the entries of a vector that go with them."""
    start = 0
    for block in records.cached_blocks(dense=True):
        yield block, vector[start : start + block.n_rows]
        start += block.n_rows


def weighted_residuals(
    block: Records,
    loss: Loss,
    point: Array,
    anchor: Array | None = None,
) -> Array:
    """Residuals of a block at a point, or their differences from those at the anchor, weighted."""
    with np.errstate(over="ignore", invalid="ignore"):
        residuals = residuals_at(block, loss, point)
        if anchor is not None:
            residuals = residuals - residuals_at(block, loss, anchor)
        if block.weights is not None:
            residuals *= block.weights[:, None]
    return residuals if np.isfinite(residuals).all() else np.nan_to_num(residuals)


def residuals_at(block: Records, loss: Loss, point: Array) -> Array:
    """Residuals of a block of rows, in float64, at a point."""
    n_features, n_outputs = block.n_features, point.shape[1]
    coef = np.ascontiguousarray(point[:n_features])
    if n_outputs == 1:
        coef = coef[:, 0]  # matrix times vector is quicker than times a matrix of one column
    margins = block.products(coef).reshape(-1, n_outputs)
    if block.shrink is not None:
        margins *= block.shrink[:, None]
    if block.constant:
        margins += block.constant * point[-1]
    residuals: Array = loss.residual(margins, block.targets, out=margins)
    return residuals


def _accumulate(block: Records, residuals: Array, total: Array) -> None:
    """Add rows times residuals to the total, in float64 also for float32 rows."""
    n_features = block.n_features
    if block.constant:
        total[-1] += block.constant * residuals.sum(axis=0)
    if block.shrink is not None:
        residuals *= block.shrink[:, None]
    columns = block.X.T if block.base is None else block.stored.T
    if residuals.shape[1] == 1:
        total[:n_features, 0] += columns @ residuals[:, 0]
    else:
        total[:n_features] += columns @ residuals
    if block.base is not None:
        total[:n_features] += block.base[:, None] * residuals.sum(axis=0)


def clip_l2(residuals: Array, clip_norm: float, inverse_norms: Array) -> None:
    """Scale residuals in place to L2 norm at most ``clip_norm * inverse_norms``."""
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        limits = clip_norm * inverse_norms
        if residuals.shape[1] == 1:
            column = residuals[:, 0]
            np.minimum(column, limits, out=column)
            np.maximum(column, np.negative(limits, out=limits), out=column)
            return
        largest = _divided_by_largest(residuals)
        lengths = np.sqrt(np.einsum("ij,ij->i", residuals, residuals))
        residuals *= np.where(largest * lengths > limits, limits / lengths, largest)[:, None]


def clip_l1(residuals: Array, clip_norm: float, inverse_norms: Array) -> None:
    """Scale residuals in place to L1 norm at most ``clip_norm * inverse_norms``."""
    if residuals.shape[1] == 1:
        clip_l2(residuals, clip_norm, inverse_norms)
        return
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        limits = clip_norm * inverse_norms
        largest = _divided_by_largest(residuals)
        lengths = np.abs(residuals).sum(axis=1)
        residuals *= np.where(largest * lengths > limits, limits / lengths, largest)[:, None]


def _divided_by_largest(residuals: Array) -> Array:
    """Divide rows by their largest entry, so that neither lengths nor factors leave float64."""
    largest = np.abs(residuals).max(axis=1)
    largest[largest == 0] = 1.0
    residuals /= largest[:, None]
    return np.asarray(largest)


@functools.lru_cache(maxsize=256)
def gradient_rounding(
    n_rows: int, n_features: int, n_outputs: int, is_sparse: bool, grouped: bool = False
) -> float:
    """Relative amount by which rounding can raise the contribution of a record to the sum.

    A record's clipped gradient exceeds its bound by a relative ``(n_features + n_outputs + 17) u``
    at most (two norms, limits and products; u is the unit roundoff). A floating-point sum of k
    terms is off by at most ``k u sum |terms|`` to first order, in any order of summation (Higham
    2002, eq. 3.4 and sec. 4.2), here in L2 norm by ``k u n C``; two neighbouring sums by twice as
    much. k is :func:`skdp.oracle.sources.records.longest_sum`. The factor 1.01 covers higher
    orders.

    With groups n is their number: the terms of a group, each multiplied by its share, add up to C
    in norm, however many they are, and k holds for any number of rows.

    The same holds in L1. A sum of d absolute values is off by a relative ``(d - 1) u``, no more
    than a Euclidean norm is allowed here; the error of the sum is at most ``k u sum |terms|`` in
    every coordinate, and added up over the coordinates that is ``k u`` times the sum of L1 norms.

    Sparse rows may be added to a base, and their sums taken apart: see
    :func:`skdp.oracle.sources.sparse_rows.growth_of_rounding`. In L1 they are written out.
    """
    terms = longest_sum(n_rows, n_features, is_sparse, grouped)
    growth = growth_of_rounding() if is_sparse else 1.0
    return 1.01 * UNIT_ROUNDOFF * (n_features + n_outputs + 17 + 2.0 * growth * terms * n_rows)
