"""Passes over rows for second moments: Gram matrices, norms in other coordinates, counts.

Rows come as in :mod:`skdp.oracle.kernels`: row i stands for ``z_i = (shrink[i] * X[i],
intercept_size)``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.objective import Loss
from skdp.oracle.kernels import (
    BLOCK_BYTES,
    MOST_PARTS,
    UNIT_ROUNDOFF,
    Array,
    clipped_gradient_sum,
    diagonal,
    gradient_rounding,
    quotient,
    take,
)

FEW_ROWS = 1 << 9  # added up at once where a sum has to be accurate


def blocks(X: Any, part: slice | None = None) -> Iterator[slice]:
    """Rows of which a dense float64 copy fits in a cache; shapes alone decide."""
    n_rows, n_columns = X.shape
    step = max(16, BLOCK_BYTES // (8 * max(n_columns, 1)))
    first, stop = (0, n_rows) if part is None else (part.start, part.stop)
    for start in range(first, stop, step):
        yield slice(start, min(start + step, stop))


@functools.lru_cache(maxsize=64)
def _triangle(size: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    rows, columns = np.triu_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))


def pack(symmetric: Array) -> Array:
    """Return the upper triangle as a vector, entries off the diagonal times sqrt(2).

    The vector is as long as the matrix: its L2 norm is the Frobenius norm.
    """
    rows, columns, factors = _triangle(len(symmetric))
    return symmetric[rows, columns] * factors


def unpack(vector: Array, size: int) -> Array:
    """Return the symmetric matrix that :func:`pack` makes this vector of."""
    rows, columns, factors = _triangle(size)
    matrix = np.zeros((size, size))
    matrix[rows, columns] = vector / factors
    matrix[columns, rows] = matrix[rows, columns]
    return matrix


def gram_sum(
    X: Any,
    factors: Array,
    shrink: Array | None,
    intercept_size: float,
    extra: NDArray[Any] | None = None,
    part: slice | None = None,
) -> Array:
    """Sum over rows of ``v v'``, where ``v = factors[i] * (z_i, extra[i])``.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features), float32 or float64
    factors : array of shape (n_rows,)
    shrink : array of shape (n_rows,) or None
    intercept_size : float
        0 for no constant.
    extra : array of shape (n_rows, n_extra), optional
        More columns, such as targets.
    part : slice, optional
        Rows to sum over, all by default.

    Returns
    -------
    array of shape (p, p), float64, p = n_features + (1 if there is a constant) + n_extra
    """
    n_features = X.shape[1]
    n_constant = int(intercept_size != 0)
    n_extra = 0 if extra is None else extra.shape[1]
    size = n_features + n_constant + n_extra
    total = np.zeros((size, size))
    is_sparse = sparse.issparse(X)
    for rows in blocks(X, part):
        block = take(X, rows)
        weights = factors[rows] if shrink is None else factors[rows] * shrink[rows]
        # 1. the last columns, dense in any case
        last = np.empty((block.shape[0], n_constant + n_extra))
        if n_constant:
            last[:, 0] = intercept_size
        if extra is not None:
            last[:, n_constant:] = extra[rows]
        last *= factors[rows, None]
        # 2. the products
        if is_sparse:
            scaled = diagonal(weights) @ block.astype(np.float64, copy=False)
            total[:n_features, :n_features] += (scaled.T @ scaled).toarray()
            total[:n_features, n_features:] += scaled.T @ last
            total[n_features:, n_features:] += last.T @ last
        else:
            record = np.empty((block.shape[0], size))
            np.multiply(block, weights[:, None], out=record[:, :n_features])
            record[:, n_features:] = last
            total += record.T @ record
    total[n_features:, :n_features] = total[:n_features, n_features:].T
    return total


def norms_in(
    X: Any,
    shrink: Array | None,
    intercept_size: float,
    transform: Array,
    part: slice | None = None,
) -> Array:
    """L2 norm of ``transform' z_i`` for every row of a part, in float64.

    Inf or nan where products of huge entries overflow: such a row is too long to be used.
    """
    n_features = X.shape[1]
    found = []
    for rows in blocks(X, part):
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            moved = np.asarray(
                take(X, rows).astype(np.float64, copy=False) @ transform[:n_features]
            )
            if shrink is not None:
                moved *= shrink[rows, None]
            if intercept_size:
                moved += intercept_size * transform[n_features]
            found.append(np.sqrt(np.einsum("ij,ij->i", moved, moved)))
    return np.concatenate(found) if found else np.empty(0)


def joint_norms(inverse_norms: Array, extra: Array) -> Array:
    """L2 norm of rows with more columns, from one over the norm of the rows alone."""
    with np.errstate(divide="ignore", over="ignore"):
        lengths = 1 / inverse_norms
        return np.asarray(np.hypot(lengths, np.sqrt(np.einsum("ij,ij->i", extra, extra))))


def factors_within(bound: float, inverse_norms: Array, root_weights: Array | None) -> Array:
    """Return ``min(root weight, bound / norm)``: what makes a weighted row no longer than that."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        limits = bound * inverse_norms
        most = 1.0 if root_weights is None else root_weights
        factors = np.minimum(most, limits)
    factors[~(factors >= 0)] = 0.0
    return np.asarray(factors)


def weighted_gradient_sum(
    X: Any,
    targets: NDArray[Any],
    weights: Array,
    shrink: Array | None,
    intercept_size: float,
    loss: Loss,
    point: Array,
    part: slice,
) -> Array:
    """Sum over rows of weight times gradient, in float64 throughout; nothing is clipped.

    Few rows at once, as rounding errors grow with the longest chain of additions; and their sums
    are added up with what rounding takes away on the side (Neumaier 1974).
    """
    most = np.full(X.shape[0], np.finfo(np.float64).max)
    total, lost = np.zeros(point.shape), np.zeros(point.shape)
    for start in range(part.start, part.stop, FEW_ROWS):
        rows = slice(start, min(start + FEW_ROWS, part.stop))
        few = clipped_gradient_sum(
            X, targets, weights, shrink, most, intercept_size, loss, point, 1.0, rows, precise=True
        )
        after = total + few
        taken = after - total
        lost += (total - (after - taken)) + (few - taken)
        total = after
    return total + lost


def weighted_gradient_rounding(n_rows: int) -> float:
    """Error of such a sum in L2 norm, next to ``n_rows`` times the longest term.

    That of k terms is ``k u sum |terms|`` in each entry (Higham 2002, eq. 3.4), k the rows that are
    added up at once and the number of parts, with a few more for the products. The compensated sum
    of m such sums is off by ``u |sum| + (m u)**2 sum |terms|``, about (ibid., sec. 4.3).
    """
    sums = 2.0 + UNIT_ROUNDOFF * (2.0 + n_rows / FEW_ROWS) ** 2 * 4
    return 1.01 * UNIT_ROUNDOFF * (FEW_ROWS + sums + 2 * MOST_PARTS + 8)


def gram_rounding(n_rows: int, n_features: int, n_more: int, is_sparse: bool) -> float:
    """Relative amount by which rounding can raise the contribution of a record to a Gram sum.

    ``n_more`` columns, such as the constant and targets, stand next to those of X, which alone say
    how many rows are summed at once. A scaled record is longer than its bound R by a relative
    ``(n_features + n_more + 17) u`` at most, its outer product by twice that. A sum of k terms in
    floating point is off by ``k u sum |terms|`` in each entry (Higham 2002, eq. 3.4), and
    ``|v| |v|'`` has the Frobenius norm ``|v|**2``, at most ``R**2``, so the whole matrix by
    ``k u n R**2``, two neighbouring ones by twice as much.
    """
    return 2 * gradient_rounding(n_rows, n_features, n_more, is_sparse)


def condition_number(transform: Array) -> float:
    """``|T|_F`` over the least singular value of T, rounded up; inf for a singular matrix."""
    size = float(np.linalg.norm(transform))
    least = float(np.linalg.svd(transform, compute_uv=False)[-1])
    if not least > size * len(transform) * 64 * UNIT_ROUNDOFF:
        return np.inf
    return size / (0.5 * least)


def transform_rounding(
    condition: float, n_rows: int, n_features: int, n_columns: int, is_sparse: bool
) -> float:
    """Relative rounding of a gradient sum that is taken in the rows' coordinates, then moved.

    Norms there are off by ``(p + 4) u |T|_F |z|``, and ``|T'z| >= s |z|`` with s the least singular
    value of T: a relative ``(p + 4) u k``, k = |T|_F / s. The sum's own error and that of the
    last product, both of them bounds in terms of ``sum |z_i c_i|``, grow by the same factor.
    """
    plain = gradient_rounding(n_rows, n_features, 1 + n_columns - n_features, is_sparse)
    return (plain + 4.0 * (n_columns + 4) * UNIT_ROUNDOFF * (n_rows + 1)) * condition


__all__ = [
    "blocks",
    "condition_number",
    "factors_within",
    "gram_rounding",
    "gram_sum",
    "joint_norms",
    "norms_in",
    "pack",
    "quotient",
    "transform_rounding",
    "unpack",
    "weighted_gradient_rounding",
    "weighted_gradient_sum",
]
