"""Sums of clipped gradients in one pass over the rows: margins, residuals, clipping, accumulation.

For a generalised linear model the gradient of one record is the outer product of its row and its
residual, so clipping it needs two norms and no per-record gradient. Dense rows are processed in
blocks that stay in a cache between the two products.
"""

import functools
from collections.abc import Callable

import numpy as np

from skdp._numbers import Array
from skdp._oracle import compiled
from skdp._oracle.kernels import loops
from skdp._oracle.sources.records import GroupBlock, Records
from skdp._oracle.sources.row_blocks import (
    LONGEST_BASE,
    UNIT_ROUNDOFF,
    block_rows,
    growth_of_rounding,
    is_csr,
    summation_depth,
)
from skdp.objective import Loss

# ---------------------------------------------------------------- residuals


def weighted_residuals(
    block: Records,
    loss: Loss,
    point: Array,
    anchor: Array | None = None,
) -> Array:
    """Residuals of a block at a point, or their differences from those at the anchor, weighted."""
    margins = block.margins(point)
    with np.errstate(over="ignore", invalid="ignore"):
        residuals: Array = loss.residual(margins, block.targets, out=margins)
        if anchor is not None:
            residuals = residuals - loss.residual(block.margins(anchor), block.targets)
        if block.weights is not None:
            residuals *= block.weights[:, None]
    return residuals if np.isfinite(residuals).all() else np.nan_to_num(residuals)


def clip_residuals(
    residuals: Array, clip_norm: float, inverse_norms: Array, order: float = 2
) -> None:
    """Scale residuals in place to L2 norm, or else L1 norm, ``clip_norm * inverse_norms``."""
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        limits = clip_norm * inverse_norms
        if residuals.shape[1] == 1:
            column = residuals[:, 0]
            np.minimum(column, limits, out=column)
            np.maximum(column, np.negative(limits, out=limits), out=column)
        elif order == 2:
            _shorten(residuals, limits, lambda rows: np.sqrt(np.einsum("ij,ij->i", rows, rows)))
        else:
            _shorten(residuals, limits, lambda rows: np.abs(rows).sum(axis=1))


def _shorten(residuals: Array, limits: Array, norms: Callable[[Array], Array]) -> None:
    """Scale rows in place to norms within limits. Neither lengths nor factors leave float64."""
    largest = np.abs(residuals).max(axis=1)
    largest[largest == 0] = 1.0
    residuals /= largest[:, None]
    lengths = norms(residuals)
    residuals *= np.where(largest * lengths > limits, limits / lengths, largest)[:, None]


# ---------------------------------------------------------------- sums


def clipped_gradients(
    records: Records,
    loss: Loss,
    point: Array,
    clip_norm: float,
    anchor: Array | None = None,
    order: float = 2,
) -> Array:
    """Sum over records of the gradient in the parameter, each clipped to L2 norm ``clip_norm``.

    A record's gradient is its row times ``weight * residual``. The residual is clipped to
    ``clip_norm * inverse_norm``, so no record adds more than ``clip_norm``, whatever it holds: a
    residual that is not a number counts as 0. :func:`gradient_rounding` bounds the rounding errors.

    Parameters
    ----------
    records : Records
    loss : Loss
    point : array of shape (n_parameters, n_outputs)
    clip_norm : float
    anchor : array of shape (n_parameters, n_outputs), optional
        Sum differences instead: of the gradient at ``point`` and that at ``anchor``.
    order : {1, 2, inf}, default=2
        Of the norm in which the records' ``inverse_norms`` are.

    Returns
    -------
    array of shape (n_parameters, n_outputs), float64
    """
    if anchor is None and (order == 2 or point.shape[1] == 1):
        done = _compiled_sum(records, loss, point, clip_norm, order != 2)
        if done is not None:
            return done
    total = np.zeros(point.shape)
    for block in records.cached_blocks(dense=order != 2):
        residuals = weighted_residuals(block, loss, point, anchor)
        clip_residuals(residuals, clip_norm, block.inverse_norms, order)
        block.scaled_by_group(residuals)
        _accumulate(block, residuals, total)
    return total


def clipped_in_norm(
    records: Records,
    inverse_norms: Array,
    loss: Loss,
    point: Array,
    clip_norm: float,
    order: float = 1,
) -> Array:
    """Sum over records of the gradient, each clipped in a norm of which rows have these inverses.

    The gradient is an outer product, and its L1 norm is that of the row times that of the residual.
    With one over the largest entries of rows, the largest entry of each is clipped.
    """
    records = records.having(records.weights, inverse_norms)
    return clipped_gradients(records, loss, point, clip_norm, order=order)


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


# ---------------------------------------------------------------- means of groups


def clipped_means(block: GroupBlock, residuals: Array, clip_norm: float) -> Array:
    """Sum over groups of the mean of their rows' gradients, each clipped to L2 norm ``clip_norm``.

    Groups whose mean is not finite, such as those with products that overflow, are made null: 0
    times inf would show that they are there.

    Parameters
    ----------
    block : GroupBlock
    residuals : array of shape (n_rows, n_outputs), finite
        Weighted, of all rows.
    clip_norm : float

    Returns
    -------
    array of shape (n_parameters, n_outputs), float64
    """
    means = [block.sums(output * block.records.multipliers) for output in residuals.T]
    lengths = np.sqrt(sum(np.einsum("ij,ij->i", mean, mean) for mean in means))
    with np.errstate(divide="ignore", over="ignore"):
        factors = np.minimum(1.0, clip_norm / lengths)
    usable = np.isfinite(lengths)
    factors[~usable] = 0.0
    return np.stack([np.where(usable[:, None], mean, 0.0).T @ factors for mean in means], axis=1)


# ---------------------------------------------------------------- compiled


@compiled.or_numpy
def _compiled_sum(
    records: Records, loss: Loss, point: Array, clip_norm: float, dense: bool
) -> Array | None:
    """Return the sum by compiled loops. None if they do not run, or the loss has no formula."""
    kernel, n_features = loss.kernel, records.n_features
    if kernel is None:
        return None
    total = np.zeros((point.shape[1], n_features + 1))
    coef, offsets = loops.readable(point[:n_features].T), np.zeros(point.shape[1])
    if records.constant:
        with np.errstate(over="ignore"):  # an infinite margin is cut, as any other
            offsets = np.asarray(records.constant * point[-1])
    inverse_norms, weights = records.inverse_norms, records.weights
    if records.multipliers is not None:  # of a clipped residual: it and its limit are multiplied
        inverse_norms = inverse_norms * records.multipliers
        weights = records.multipliers * (1.0 if weights is None else weights)
    # Blocks that are copies are added up as one, since loops take no smaller ones.
    size = max(1, block_rows(*records.shape, records.is_sparse, is_copied=False))
    for rows, block in records.numbered_pieces(dense):
        size = size if block is records else max(1, records.n_rows)
        facts = loops.Facts(
            loops.readable(block.targets if block.targets.ndim == 2 else block.targets[:, None]),
            loops.readable(loops.NONE if weights is None else weights[rows]),
            loops.readable(loops.NONE if block.shrink is None else block.shrink),
            loops.readable(inverse_norms[rows]),
            float(clip_norm),
            float(block.constant),
            size,
        )
        arguments = kernel, facts, coef, loops.readable(offsets), total
        if is_csr(block.stored):
            loops.add_sparse(loops.entries_of(block), *arguments)
        else:
            loops.add_dense(loops.readable(block.stored), *arguments)
    return np.ascontiguousarray(total[:, : records.n_parameters].T)


# ---------------------------------------------------------------- rounding


@functools.lru_cache(maxsize=256)
def gradient_rounding(
    n_rows: int,
    n_features: int,
    n_outputs: int,
    is_sparse: bool,
    grouped: bool = False,
    base_ratio: float = LONGEST_BASE,
) -> float:
    """Relative amount by which rounding can raise the contribution of a record to the sum.

    A record's clipped gradient exceeds its bound by a relative ``(n_features + n_outputs + 17) u``
    at most (two norms, limits and products, u is the unit roundoff). A floating-point sum of k
    terms is off by at most ``k u sum |terms|`` to first order, in any order of summation (Higham
    2002, eq. 3.4 and sec. 4.2), here in L2 norm by ``k u n C``. Two neighbouring sums by twice as
    much. k is :func:`skdp._oracle.sources.row_blocks.summation_depth`. The factor 1.01 covers
    higher orders.

    With groups n is their number: the terms of a group, each multiplied by its share, add up to C
    in norm, however many they are, and k holds for any number of rows.

    The same holds in L1. A sum of d absolute values is off by a relative ``(d - 1) u``, no more
    than a Euclidean norm is allowed here. The error of the sum is at most ``k u sum |terms|`` in
    every coordinate, and added up over the coordinates that is ``k u`` times the sum of L1 norms.

    And it holds for the largest entry, whose error is ``k u`` times a sum of largest entries.

    Sparse rows may be added to a base, and their sums split: see
    :func:`skdp._oracle.sources.row_blocks.growth_of_rounding`. In L1 they are written out.
    """
    terms = summation_depth(n_rows, n_features, is_sparse, grouped)
    growth = growth_of_rounding(base_ratio) if is_sparse else 1.0
    return 1.01 * UNIT_ROUNDOFF * (n_features + n_outputs + 17 + 2.0 * growth * terms * n_rows)
