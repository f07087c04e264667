"""Compute and clip the residuals of rows, in numpy and in compiled loops."""

import numpy as np

from skdp._numbers import Array
from skdp.objective import Loss
from skdp.objective.losses import HUBER, LOGISTIC, ResidualKernel
from skdp.oracle.compiled import IntegersOut, Vector, VectorOut, compile_inner
from skdp.oracle.sources.records import Records


def weighted_residuals(
    block: Records,
    loss: Loss,
    point: Array,
    anchor: Array | None = None,
) -> Array:
    """Residuals of a block at a point, or their differences from those at the anchor, weighted."""
    with np.errstate(over="ignore", invalid="ignore"):
        margins = block.margins(point)
        residuals: Array = loss.residual(margins, block.targets, out=margins)
        if anchor is not None:
            residuals = residuals - loss.residual(block.margins(anchor), block.targets)
        if block.weights is not None:
            residuals *= block.weights[:, None]
    return residuals if np.isfinite(residuals).all() else np.nan_to_num(residuals)


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


# ---------------------------------------------------------------- compiled

LARGEST = float(np.finfo(np.float64).max)

# exp(x) = 2**k exp(r), |r| <= ln(2) / 2, and exp(r) by its series up to r**13, whose remainder is
# below 2**-57. numba calls the C library for each exponential, which takes five times as long.
# ln(2) is LN2_HIGH + LN2_LOW, as in fdlibm: the last bits of the first are 0, so that k times it is
# exact, and so is what subtracting it leaves of x.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
INVERSE_LN2 = 1.4426950408889634


@compile_inner()
def _exponentials(values: VectorOut, bits: IntegersOut) -> None:
    """Replace values by their exponentials, after cutting them to [-708, 709], nan to -708.

    Beyond that, exponentials would be subnormal or overflow. ``bits`` is work space.
    """
    powers = bits.view(np.float64)
    for i in range(values.shape[0]):
        x = values[i]
        x = x if x > -708.0 else -708.0
        x = x if x < 709.0 else 709.0
        k = np.floor(x * INVERSE_LN2 + 0.5)
        r = (x - k * LN2_HIGH) - k * LN2_LOW
        bits[i] = (np.int64(k) + 1023) << 52  # read as a float64, these are 2**k
        p = 1 / 3628800 + r * (1 / 39916800 + r * (1 / 479001600 + r * (1 / 6227020800)))
        p = 1 / 720 + r * (1 / 5040 + r * (1 / 40320 + r * (1 / 362880 + r * p)))
        p = 1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * p)))
        values[i] = 1.0 + (r + r * r * p)
    for i in range(values.shape[0]):
        values[i] *= powers[i]


@compile_inner()
def write_residuals(
    kernel: ResidualKernel,
    targets: Vector,
    margins: Vector,
    residuals: VectorOut,
    bits: IntegersOut,
) -> None:
    """Write the residuals of rows of one margin each; any number where the margin is nan."""
    n_rows = margins.shape[0]
    if kernel.code == LOGISTIC:
        for i in range(n_rows):
            residuals[i] = -margins[i]
        _exponentials(residuals, bits)
        for i in range(n_rows):
            residuals[i] = 1.0 / (1.0 + residuals[i]) - targets[i]
    else:
        for i in range(n_rows):
            residuals[i] = margins[i] - targets[i]
        if kernel.code == HUBER:
            for i in range(n_rows):
                residuals[i] = min(max(residuals[i], -kernel.bound), kernel.bound)


@compile_inner()
def weigh_and_clip(margins: Vector, weights: Vector, limits: Vector, residuals: VectorOut) -> None:
    """Multiply residuals by the weights and cut them to their limits; nan becomes 0."""
    for i in range(margins.shape[0]):
        value = residuals[i]
        if weights.shape[0] > 0:
            value = value * weights[i]
        value = 0.0 if margins[i] != margins[i] or value != value else value
        # A limit may be infinite, for null rows, and 0 times inf is nan.
        limit = limits[i] if limits[i] < LARGEST else LARGEST
        value = limit if value > limit else value
        residuals[i] = -limit if value < -limit else value
