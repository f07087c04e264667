"""The Gram matrix of the rows, block by block, and what rounding does to it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.oracle.kernels import UNIT_ROUNDOFF, diagonal

Array = NDArray[np.float64]

ENTRIES = 1 << 19  # of a block, in float64: 4 MiB


def gram(X: Any, shrink: Array | None, intercept_size: float) -> Array:
    """Sum of ``z z'`` over rows z, each shrunk and with its constant.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features), finite
    shrink : array of shape (n_rows,) or None
        Factor on each row; the constant is not shrunk.
    intercept_size : float
        0 for no constant.

    Returns
    -------
    array of shape (n_parameters, n_parameters)
    """
    n_rows, n_features = X.shape
    size = n_features + bool(intercept_size)
    total = np.zeros((size, size))
    step = max(1, ENTRIES // max(n_features, 1))
    for start in range(0, n_rows, step):
        rows = slice(start, min(start + step, n_rows))
        block = X[rows].astype(np.float64)
        factors = np.ones(rows.stop - start) if shrink is None else shrink[rows]
        if sparse.issparse(block):
            block = diagonal(factors) @ block
            square = (block.T @ block).toarray()
            sums = np.asarray(block.sum(axis=0)).ravel()
        else:
            block *= factors[:, None]
            square, sums = block.T @ block, block.sum(axis=0)
        total[:n_features, :n_features] += square
        if intercept_size:
            total[-1, :n_features] += intercept_size * sums
    if intercept_size:
        total[:n_features, -1] = total[-1, :n_features]
        total[-1, -1] = n_rows * intercept_size**2
    return total


def largest_eigenvalue(matrix: Array) -> float:
    """Largest eigenvalue of a symmetric matrix."""
    return float(np.linalg.eigvalsh(matrix)[-1])


def eigenvalue_rounding(n_rows: int, n_parameters: int) -> float:
    """Amount by which rounding can move the eigenvalue, relative to a bound on ``|z|**2``.

    A record's ``|z|**2`` exceeds its bound by a relative ``(n_parameters + 8) u`` at most (its
    norm, the quotient, the product). The computed matrix is ``G + E`` with ``|E_jk| <= k u sum
    |z_j z_k|`` to first order, k being the rows of a block plus the number of blocks (Higham 2002,
    eq. 3.13), so in spectral norm E is at most ``k u sum |z|**2 <= k u n R**2``. The eigenvalue is
    that of a matrix ``100 n_parameters**2 u n R**2`` away, at most: the reduction to tridiagonal
    form is ``n_parameters`` reflections, each off by a small multiple of ``n_parameters u`` times
    the Frobenius norm (Higham 2002, Lemma 19.3), and the iteration that follows does no worse. Two
    neighbouring data sets are off by twice as much.
    """
    blocks = max(1, ENTRIES // n_parameters)
    terms = min(blocks, n_rows) + n_rows // blocks + 2 + 100 * n_parameters**2
    return 1.01 * UNIT_ROUNDOFF * (n_parameters + 8 + 2.0 * terms * n_rows)
