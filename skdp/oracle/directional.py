"""Derivatives of records' losses along one direction and along a shift, each record's clipped."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.objective import Loss
from skdp.oracle.kernels import quotient

Array = NDArray[np.float64]

# Of a record: first and second derivative along the direction; then along a shift of the margin,
# the second derivative of both, and the second along the shift.
ALONG, WITH_SHIFT = 2, 5


def derivatives(
    loss: Loss,
    margins: Array,
    along: Array,
    targets: NDArray[Any],
    weights: Array | None,
    with_shift: bool,
) -> Array:
    """Return derivatives of every record's loss as its margins move by ``a * along + b``.

    Parameters
    ----------
    loss : Loss
        Smooth; with one output if a shift is asked for.
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
    second = loss.second_derivative_along(margins, along)
    parts = [first, second]
    if with_shift:
        curvature = loss.second_derivative(margins)[:, 0]
        parts += [residuals[:, 0], curvature * along[:, 0], curvature]
    found = np.stack(parts, axis=1)
    if weights is not None:
        found *= weights[:, None]
    return np.asarray(found)


def clipped(vectors: Array, bound: float) -> Array:
    """Scale vectors longer than the bound down to it, in place; what is not finite becomes 0."""
    vectors[~np.isfinite(vectors).all(axis=1)] = 0.0
    with np.errstate(over="ignore", under="ignore"):
        # Divided by the largest entry first: neither lengths nor factors leave float64's range.
        largest = np.abs(vectors).max(axis=1)
        largest[largest == 0] = 1.0
        units = vectors / largest[:, None]
        lengths = np.sqrt(np.einsum("ij,ij->i", units, units))
        too_long = largest * lengths > bound
        vectors[too_long] = units[too_long] * quotient(bound, lengths[too_long])[:, None]
    return vectors
