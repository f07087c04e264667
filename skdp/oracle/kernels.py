"""The fused pass over rows: margins, residuals, clipping and accumulation, block by block.

For a generalised linear model the gradient of one record is the outer product of its row and its
residual, so clipping it needs two norms and no per-record gradient. Dense rows are taken in blocks
that stay in a cache between the two products.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.objective import Loss

Array = NDArray[np.float64]

BLOCK_BYTES = 1 << 22  # large enough for threads not to queue for the interpreter
PART_BYTES = 1 << 21
MOST_PARTS = 16
UNIT_ROUNDOFF = 2.0**-53
# Numbers near the subnormal ones lose relative accuracy: quotients below this count as 0.
LEAST_QUOTIENT = 2.0**-480


def block_rows(n_rows: int, n_columns: int, itemsize: int, is_sparse: bool) -> int:
    """Rows to take at once; a function of shapes and types, never of values."""
    if is_sparse:
        # Sliced CSR gains nothing from the cache; chunks only bound the copies of a cast.
        return n_rows if itemsize == 8 else 1 << 16
    return min(n_rows, max(16, BLOCK_BYTES // (max(n_columns, 1) * itemsize)))


def row_blocks(X: Any, itemsize: int | None = None, rows: slice | None = None) -> Iterator[slice]:
    """Yield the blocks of :func:`block_rows` that the rows, or a part of them, are taken in."""
    n_rows, n_columns = X.shape
    step = block_rows(n_rows, n_columns, itemsize or X.dtype.itemsize, sparse.issparse(X))
    first, stop = (0, X.shape[0]) if rows is None else (rows.start, rows.stop)
    for start in range(first, stop, max(1, step)):
        yield slice(start, min(start + step, stop))


def parts(n_rows: int, n_columns: int, itemsize: int, is_sparse: bool) -> list[slice]:
    """Divide the rows in parts that threads can take; shapes and types alone decide.

    The same parts whatever the number of threads, so that a sum comes out the same, too. CSR stays
    whole: slicing it would copy it.
    """
    enough = max(1, n_rows * n_columns * itemsize // PART_BYTES)
    n_parts = 1 if is_sparse else min(enough, MOST_PARTS)
    edges = [n_rows * i // n_parts for i in range(n_parts + 1)]
    return [slice(start, stop) for start, stop in itertools.pairwise(edges)]


def take(X: Any, rows: slice) -> Any:
    """Return some rows; all of them without a copy."""
    return X if rows.start == 0 and rows.stop >= X.shape[0] else X[rows]


def row_norms(X: Any) -> Array:
    """L2 norm of every row in float64; neither over- nor underflows on finite rows."""
    norms = np.empty(X.shape[0])
    for rows in row_blocks(X, itemsize=4):  # as if cast: a whole pass must not double the memory
        block = take(X, rows).astype(np.float64, copy=False)
        with np.errstate(over="ignore", under="ignore"):
            if sparse.issparse(block):
                squares = np.asarray(block.multiply(block).sum(axis=1)).ravel()
            else:
                squares = np.einsum("ij,ij->i", block, block)
        norms[rows] = np.sqrt(squares)
    # Rows whose squares leave float64's range are taken again, divided by their largest entry.
    for i in np.flatnonzero(~((norms > 1e-140) & (norms < np.inf))):
        row = np.abs((X[[i]].toarray()[0] if sparse.issparse(X) else X[i]).astype(np.float64))
        largest = row.max(initial=0.0)
        with np.errstate(over="ignore"):
            norms[i] = largest * np.sqrt(np.sum((row / largest) ** 2)) if largest > 0 else 0.0
    return norms


def row_sums(X: Any) -> Array:
    """L1 norm of every row in float64; inf where it exceeds float64, never not a number."""
    sums = np.empty(X.shape[0])
    for rows in row_blocks(X, itemsize=4):
        block = take(X, rows).astype(np.float64, copy=False)
        with np.errstate(over="ignore"):
            sums[rows] = np.asarray(np.abs(block).sum(axis=1)).ravel()
    return sums


def quotient(bound: float, norms: Array) -> Array:
    """``bound / norms`` without ever being too large; 0 for rows too long to divide by.

    Null rows get the largest float64: they add nothing, whatever they are multiplied by.
    """
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        result = np.minimum(bound / norms, np.finfo(np.float64).max)
    result[~(result >= LEAST_QUOTIENT)] = 0.0  # not a number counts as too long, too
    return result


def clipped_gradient_sum(
    X: Any,
    targets: NDArray[Any],
    weights: Array | None,
    shrink: Array | None,
    inverse_norms: Array,
    intercept_size: float,
    loss: Loss,
    point: Array,
    clip_norm: float,
    part: slice | None = None,
    precise: bool = False,
    order: int = 2,
    anchor: Array | None = None,
) -> Array:
    """Sum over rows of the gradient in the parameter, each clipped to norm ``clip_norm``.

    Row i stands for ``(shrink[i] * X[i], intercept_size)`` (no constant if that is 0), and
    ``inverse_norms[i]`` is one over its norm. Its gradient is that row times ``weights[i] *
    residual``; the residual is clipped to ``clip_norm * inverse_norms[i]``, so no row adds more
    than ``clip_norm``, whatever it holds: a residual that is not a number counts as 0.
    :func:`gradient_rounding` bounds what rounding adds.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features), float32 or float64
    targets : array, first axis n_rows
    weights, shrink : array of shape (n_rows,) or None
    inverse_norms : array of shape (n_rows,)
        As :func:`quotient` gives them.
    intercept_size : float
    loss : Loss
    point : array of shape (n_parameters, n_outputs)
    clip_norm : float
    part : slice, optional
        Rows to sum over, all by default.
    precise : bool, default=False
        Take margins and residuals in float64 for float32 rows, too.
    order : {1, 2}, default=2
        Of the norm, L1 or L2; ``inverse_norms`` must be of the same. The gradient is an outer
        product, and either norm of it is that of the row times that of the residual.
    anchor : array of shape (n_parameters, n_outputs), optional
        Sum differences instead: of the gradient at ``point`` and that at ``anchor``.

    Returns
    -------
    array of shape (n_parameters, n_outputs), float64
    """
    n_features, n_outputs = X.shape[1], point.shape[1]
    dtype = np.float64 if precise else X.dtype
    total = np.zeros(point.shape)
    for rows in row_blocks(X, rows=part):
        block = take(X, rows)
        scales = None if shrink is None else shrink[rows, None]
        with np.errstate(over="ignore", invalid="ignore"):
            # 1. margins and 2. residuals, weighted before they are clipped
            facts = block, targets[rows], scales, intercept_size, loss
            residuals = residuals_at(*facts, point, dtype)
            if anchor is not None:
                residuals = residuals - residuals_at(*facts, anchor, dtype)
            if weights is not None:
                residuals *= weights[rows, None]
        if not np.isfinite(residuals).all():
            residuals = np.nan_to_num(residuals)
        # 3. clipping
        if order == 1:
            _clip_sums(residuals, clip_norm, inverse_norms[rows])
        else:
            _clip(residuals, clip_norm, inverse_norms[rows])
        # 4. accumulation in float64, also for float32 rows: its rounding is charged
        if intercept_size:
            total[-1] += intercept_size * residuals.sum(axis=0)
        if shrink is not None:
            residuals *= shrink[rows, None]
        columns = block.T.astype(np.float64, copy=False)
        if n_outputs == 1:
            total[:n_features, 0] += columns @ residuals[:, 0]
        else:
            total[:n_features] += columns @ residuals
    return total


def residuals_at(
    block: Any,
    targets: NDArray[Any],
    shrink: Array | None,
    intercept_size: float,
    loss: Loss,
    point: Array,
    dtype: Any,
) -> Array:
    """Residuals of a block of rows at a point, taken in ``dtype`` and returned in float64."""
    n_features, n_outputs = block.shape[1], point.shape[1]
    coef = np.ascontiguousarray(point[:n_features], dtype=dtype)
    if n_outputs == 1:
        coef = coef[:, 0]  # matrix times vector is quicker than times a matrix of one column
    margins = np.asarray(block @ coef).reshape(-1, n_outputs)
    if shrink is not None:
        margins *= shrink
    if intercept_size:
        margins += (intercept_size * point[-1]).astype(dtype)
    residuals: Array = loss.residual(margins, targets, out=margins)
    return residuals.astype(np.float64, copy=False)


def _clip(residuals: Array, clip_norm: float, inverse_norms: Array) -> None:
    """Scale residuals in place to norm at most ``clip_norm * inverse_norms``."""
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        limits = clip_norm * inverse_norms
        if residuals.shape[1] == 1:
            column = residuals[:, 0]
            np.minimum(column, limits, out=column)
            np.maximum(column, np.negative(limits, out=limits), out=column)
            return
        # Divided by the largest entry first: neither lengths nor factors leave float64's range.
        largest = np.abs(residuals).max(axis=1)
        largest[largest == 0] = 1.0
        residuals /= largest[:, None]
        lengths = np.sqrt(np.einsum("ij,ij->i", residuals, residuals))
        residuals *= np.where(largest * lengths > limits, limits / lengths, largest)[:, None]


def _clip_sums(residuals: Array, clip_norm: float, inverse_sums: Array) -> None:
    """Scale residuals in place to L1 norm at most ``clip_norm * inverse_sums``."""
    if residuals.shape[1] == 1:
        _clip(residuals, clip_norm, inverse_sums)
        return
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        limits = clip_norm * inverse_sums
        largest = np.abs(residuals).max(axis=1)
        largest[largest == 0] = 1.0
        residuals /= largest[:, None]
        lengths = np.abs(residuals).sum(axis=1)
        residuals *= np.where(largest * lengths > limits, limits / lengths, largest)[:, None]


@functools.lru_cache(maxsize=256)
def gradient_rounding(n_rows: int, n_features: int, n_outputs: int, is_sparse: bool) -> float:
    """Relative amount by which rounding can raise the contribution of a record to the sum.

    A record's clipped gradient exceeds its bound by a relative ``(n_features + n_outputs + 17) u``
    at most (two norms, limits and products; u is the unit roundoff). A floating-point sum of k
    terms is off by at most ``k u sum |terms|`` to first order, in any order of summation (Higham
    2002, eq. 3.4 and sec. 4.2), here in L2 norm by ``k u n C``; two neighbouring sums by twice as
    much. k is the number of rows in a block plus the number of blocks and parts, the larger of
    those for float32 and float64 rows. The factor 1.01 covers higher orders.

    The same holds in L1. A sum of d absolute values is off by a relative ``(d - 1) u``, no more
    than a Euclidean norm is allowed here; the error of the sum is at most ``k u sum |terms|`` in
    every coordinate, and added up over the coordinates that is ``k u`` times the sum of L1 norms.
    """
    terms = 0
    for itemsize in (4, 8):
        rows = max(1, block_rows(n_rows, n_features, itemsize, is_sparse))
        blocks = -(-n_rows // rows) + 2 * MOST_PARTS  # parts may end in shorter blocks
        terms = max(terms, rows + blocks)
    return 1.01 * UNIT_ROUNDOFF * (n_features + n_outputs + 17 + 2.0 * terms * n_rows)


def diagonal(entries: Array) -> Any:
    """Square sparse array with ``entries`` on its diagonal."""
    return sparse.dia_array((entries[np.newaxis], [0]), shape=(len(entries), len(entries)))
