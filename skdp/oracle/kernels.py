"""The fused pass over rows: margins, residuals, clipping and accumulation, block by block.

For a generalised linear model the gradient of one record is the outer product of its row and its
residual, so clipping it needs two norms and no per-record gradient. Dense rows are taken in blocks
that stay in the second-level cache between the two products.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.objective import Loss

Array = NDArray[np.float64]

BLOCK_BYTES = 1 << 20
UNIT_ROUNDOFF = 2.0**-53
# Quotients below this may be subnormal, where the relative error is no longer u: they count as 0.
LEAST_QUOTIENT = 2.0**-960


def block_rows(n_rows: int, n_columns: int, itemsize: int, is_sparse: bool) -> int:
    """Rows to take at once; a function of shapes and types, never of values."""
    if is_sparse:
        # Sliced CSR gains nothing from the cache; chunks only bound the copies of a cast.
        return n_rows if itemsize == 8 else 1 << 16
    return min(n_rows, max(16, BLOCK_BYTES // (max(n_columns, 1) * itemsize)))


def _blocks(X: Any, itemsize: int | None = None) -> Iterator[slice]:
    step = max(1, block_rows(*X.shape, itemsize or X.dtype.itemsize, sparse.issparse(X)))
    for start in range(0, X.shape[0], step):
        yield slice(start, start + step)


def _take(X: Any, rows: slice) -> Any:
    return X if rows.start == 0 and rows.stop >= X.shape[0] else X[rows]


def row_norms(X: Any) -> Array:
    """L2 norm of every row in float64; neither over- nor underflows on finite rows."""
    norms = np.empty(X.shape[0])
    for rows in _blocks(X, itemsize=4):  # as if cast: a whole pass must not double the memory
        block = _take(X, rows).astype(np.float64, copy=False)
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


def quotient(bound: float, norms: Array) -> Array:
    """``bound / norms``, inf for null rows, 0 for rows too long for an accurate quotient."""
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        result = np.divide(bound, norms)
    result[result < LEAST_QUOTIENT] = 0.0
    return result


def clipped_gradient_sum(
    X: Any,
    targets: NDArray[Any],
    weights: Array | None,
    shrink: Array | None,
    norms: Array,
    intercept_size: float,
    loss: Loss,
    point: Array,
    clip_norm: float,
) -> Array:
    """Sum over rows of the gradient in the parameter, each clipped to L2 norm ``clip_norm``.

    Row i stands for ``(shrink[i] * X[i], intercept_size)`` (no constant if that is 0), whose norm is
    ``norms[i]``. Its gradient is that row times ``weights[i] * residual``; the residual is clipped
    to ``clip_norm / norms[i]``, so no row adds more than ``clip_norm``, whatever it holds: a
    residual that is not a number counts as 0. ``gradient_rounding`` bounds what rounding adds.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features), float32 or float64
    targets : array, first axis n_rows
    weights, shrink : array of shape (n_rows,) or None
    norms : array of shape (n_rows,)
    intercept_size : float
    loss : Loss
    point : array of shape (n_parameters, n_outputs)
    clip_norm : float

    Returns
    -------
    array of shape (n_parameters, n_outputs), float64
    """
    coef = np.ascontiguousarray(point[: X.shape[1]], dtype=X.dtype)
    total = np.zeros(point.shape)
    for rows in _blocks(X):
        block = _take(X, rows)
        # 1. margins
        with np.errstate(over="ignore", invalid="ignore"):
            margins = np.asarray(block @ coef)
            if shrink is not None:
                margins *= shrink[rows, None]
            if intercept_size:
                margins += (intercept_size * point[-1]).astype(X.dtype)
            # 2. residuals, weighted before they are clipped
            residuals = loss.residual(margins, targets[rows], out=margins).astype(
                np.float64, copy=False
            )
            if weights is not None:
                residuals *= weights[rows, None]
        if not np.isfinite(residuals).all():
            residuals = np.nan_to_num(residuals)
        # 3. clipping
        _clip(residuals, norms[rows], clip_norm)
        # 4. accumulation in float64, also for float32 rows: its rounding is charged
        if intercept_size:
            total[-1] += intercept_size * residuals.sum(axis=0)
        if shrink is not None:
            residuals *= shrink[rows, None]
        total[: X.shape[1]] += block.T.astype(np.float64, copy=False) @ residuals
    return total


def _clip(residuals: Array, norms: Array, clip_norm: float) -> None:
    """Scale residuals in place to norm at most ``clip_norm / norms`` (no limit for null rows)."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        limits = quotient(clip_norm, norms)
        if residuals.shape[1] == 1:
            np.clip(residuals[:, 0], -limits, limits, out=residuals[:, 0])
            return
        # Divided by the largest entry first: neither lengths nor factors leave float64's range.
        largest = np.abs(residuals).max(axis=1)
        largest[largest == 0] = 1.0
        residuals /= largest[:, None]
        lengths = np.sqrt(np.einsum("ij,ij->i", residuals, residuals))
        residuals *= np.where(largest * lengths > limits, limits / lengths, largest)[:, None]


def gradient_rounding(
    n_rows: int, n_columns: int, n_outputs: int, itemsize: int, is_sparse: bool
) -> float:
    """Relative amount by which rounding can raise the contribution of a record to the sum.

    A record's clipped gradient exceeds its bound by a relative ``(n_columns + n_outputs + 16) u``
    at most (two norms, limits and products; u is the unit roundoff). A floating-point sum of k terms is off by
    at most ``k u sum |terms|`` to first order, in any order of summation (Higham 2002, eq. 3.4 and
    sec. 4.2), here in L2 norm by ``k u n C``; two neighbouring sums by twice as much. k is the
    number of rows in a block plus the number of blocks. The factor 1.01 covers higher orders.
    """
    rows = max(1, block_rows(n_rows, n_columns, itemsize, is_sparse))
    terms = rows + -(-n_rows // rows) + 2
    return 1.01 * UNIT_ROUNDOFF * (n_columns + n_outputs + 16 + 2.0 * terms * n_rows)
