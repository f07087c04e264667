"""How large residuals and gradients are, row by row: what counts of rows are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.objective import Loss
from skdp.oracle.kernels import Array, residuals_at, row_blocks, take


def count_within(
    X: Any,
    targets: NDArray[Any],
    weights: Array | None,
    shrink: Array | None,
    intercept_size: float,
    loss: Loss,
    point: Array,
    limits: Array | float,
) -> int:
    """Count the rows whose residual at ``point``, times its weight, is at most ``limits`` long.

    Rows are those of :func:`skdp.oracle.kernels.clipped_gradient_sum`. A residual that is not a
    number, or too large for float64, is not counted, so each row adds 0 or 1 whatever it holds. A
    row of weight 0 is a null record, and adds 0.

    Parameters
    ----------
    limits : float or array of shape (n_rows,)
        Not negative.
    """
    found = 0
    for rows in row_blocks(X):
        scales = None if shrink is None else shrink[rows, None]
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            residuals = residuals_at(
                take(X, rows), targets[rows], scales, intercept_size, loss, point, X.dtype
            )
            if weights is not None:
                residuals *= weights[rows, None]
            sizes = _lengths(residuals)
            limit = limits if isinstance(limits, float) else limits[rows]
            within = sizes <= limit
            if weights is not None:
                within &= weights[rows] != 0
            found += int(np.count_nonzero(within))
    return found


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
