"""Sums of clipped gradients in one pass over the rows: margins, residuals, clipping, accumulation.

For a generalised linear model the gradient of one record is the outer product of its row and its
residual, so clipping it needs two norms and no per-record gradient. Dense rows are taken in blocks
that stay in a cache between the two products.
"""

import functools
from collections.abc import Callable, Iterator

import numpy as np

from skdp._numbers import Array, Mask
from skdp.objective import Loss
from skdp.objective.losses import HUBER, LOGISTIC, ResidualKernel
from skdp.oracle import compiled
from skdp.oracle.compiled import IntegersOut, Matrix, Vector, VectorOut
from skdp.oracle.sources.block_sizes import UNIT_ROUNDOFF, block_rows, summation_depth
from skdp.oracle.sources.column_map import standardise_rows
from skdp.oracle.sources.groups import GroupBlock
from skdp.oracle.sources.records import (
    EntryArrays,
    Records,
    RowArrays,
    entry_arrays,
    row_arrays,
    vector,
)
from skdp.oracle.sources.sparse_rows import AnyRows, growth_of_rounding, is_csr

# Entries (float64) of a tile, the piece of a block that goes through both matrix products at once:
# 8 KiB, so that it is still in the L1 cache for the second one. Rows that are too long for that are
# taken by 64 KiB, so that the tile is in the L2 cache.
TILE_NUMBERS = 1 << 10
# Rows of a tile of CSR rows, which hold a few dozen entries each, as a rule.
SPARSE_TILE_ROWS = 1 << 8

LARGEST = float(np.finfo(np.float64).max)

# exp(x) = 2**k exp(r), |r| <= ln(2) / 2, and exp(r) by its series up to r**13, whose remainder is
# below 2**-57. numba calls the C library for each exponential, which takes five times as long.
# ln(2) is LN2_HIGH + LN2_LOW, as in fdlibm: the last bits of the first are 0, so that k times it is
# exact, and so is what subtracting it leaves of x.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
INVERSE_LN2 = 1.4426950408889634


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


def clip_l2(residuals: Array, clip_norm: float, inverse_norms: Array) -> None:
    """Scale residuals in place to L2 norm at most ``clip_norm * inverse_norms``."""
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        limits = clip_norm * inverse_norms
        if residuals.shape[1] == 1:
            column = residuals[:, 0]
            np.minimum(column, limits, out=column)
            np.maximum(column, np.negative(limits, out=limits), out=column)
            return
        _shorten(residuals, limits, lambda rows: np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def clip_l1(residuals: Array, clip_norm: float, inverse_norms: Array) -> None:
    """Scale residuals in place to L1 norm at most ``clip_norm * inverse_norms``."""
    if residuals.shape[1] == 1:
        clip_l2(residuals, clip_norm, inverse_norms)
        return
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        _shorten(residuals, clip_norm * inverse_norms, lambda rows: np.abs(rows).sum(axis=1))


def _shorten(residuals: Array, limits: Array, norms: Callable[[Array], Array]) -> None:
    """Scale rows in place to norms within limits; neither lengths nor factors leave float64."""
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
    if anchor is None and compiled.use_compiled(records.public_shape):
        inverse_norms = records.inverse_norms
        done = _compiled_clipped_gradients(records, inverse_norms, loss, point, clip_norm)
        if done is not None:
            return done
    total = np.zeros(point.shape)
    for block in records.cached_blocks():
        residuals = weighted_residuals(block, loss, point, anchor)
        clip_l2(residuals, clip_norm, block.inverse_norms)
        block.scaled_by_group(residuals)
        _accumulate(block, residuals, total)
    return total


def l1_clipped_gradients(
    records: Records, inverse_l1_norms: Array, loss: Loss, point: Array, clip_norm: float
) -> Array:
    """Sum over records of the gradient, each clipped to L1 norm ``clip_norm``.

    The gradient is an outer product, and its L1 norm is that of the row times that of the residual.
    With one over the largest entries of rows, the largest entry of each is clipped.
    """
    if not records.is_sparse and compiled.use_compiled(records.public_shape):
        done = _compiled_clipped_gradients(records, inverse_l1_norms, loss, point, clip_norm)
        if done is not None:
            return done
    total = np.zeros(point.shape)
    for rows, block in records.numbered_blocks(dense=True):
        residuals = weighted_residuals(block, loss, point)
        clip_l1(residuals, clip_norm, inverse_l1_norms[rows])
        block.scaled_by_group(residuals)
        _accumulate(block, residuals, total)
    return total


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


def _means(block: GroupBlock, residuals: Array) -> Iterator[tuple[AnyRows, Array]]:
    """Yield, for each output, the mean gradients of the groups: of columns, and of the constant."""
    records = block.records
    for output in residuals.T:
        shares = output * records.multipliers
        factors = shares if records.shrink is None else shares * records.shrink
        yield block.sums(factors), block.sums_of(records.constant * shares)


def _lengths(means: list[tuple[AnyRows, Array]]) -> Array:
    """L2 norm of each group's mean gradient over all coordinates; inf where it has no finite one.

    Groups whose mean is not finite, such as those with products that overflow, are made null.
    """
    squares = np.zeros(len(means[0][1]))
    for columns, constant in means:
        if is_csr(columns):
            squares += np.asarray(columns.multiply(columns).sum(axis=1)).ravel()
        else:
            squares += np.einsum("ij,ij->i", columns, columns)
        squares += constant**2
    lengths = np.sqrt(squares)
    lengths[~np.isfinite(lengths)] = np.inf
    return np.asarray(lengths)


def clipped_means(block: GroupBlock, residuals: Array, clip_norm: float) -> Array:
    """Sum over groups of the mean of their rows' gradients, each clipped to L2 norm ``clip_norm``.

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
    means = list(_means(block, residuals))
    lengths = _lengths(means)
    with np.errstate(divide="ignore", over="ignore"):
        factors = np.minimum(1.0, clip_norm / lengths)
    usable = np.isfinite(lengths)
    factors[~usable] = 0.0
    n_features = block.records.n_features
    total = np.empty((block.records.n_parameters, len(means)))
    for output, (columns, constant) in enumerate(means):
        if not usable.all():
            columns, constant = _without(columns, constant, usable)
        total[:n_features, output] = columns.T @ factors
        if block.records.constant:
            total[-1, output] = constant @ factors
    return total


def _without(columns: AnyRows, constant: Array, usable: Mask) -> tuple[AnyRows, Array]:
    """Make groups null: 0 times inf would show that they are there."""
    if is_csr(columns):
        kept = columns.copy()
        kept.data[np.repeat(~usable, np.diff(kept.indptr))] = 0.0
        return kept, np.where(usable, constant, 0.0)
    return np.where(usable[:, None], columns, 0.0), np.where(usable, constant, 0.0)


def count_short_means(block: GroupBlock, residuals: Array, limit: float) -> float:
    """Count the groups whose mean gradient is at most ``limit`` long and that are not null.

    A group is null if all of its rows have weight 0.
    """
    within = _lengths(list(_means(block, residuals))) <= limit
    weights = block.records.weights
    if weights is not None:
        within &= block.sums_of((weights != 0).astype(np.float64)) > 0
    return float(np.count_nonzero(within))


# ---------------------------------------------------------------- compiled


@compiled.compile_inner()
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


@compiled.compile_inner()
def write_residuals(
    kernel: ResidualKernel,
    start: int,
    targets: Vector,
    margins: Vector,
    residuals: VectorOut,
    bits: IntegersOut,
) -> None:
    """Write the residuals of rows of one margin each; any number where the margin is nan.

    Their targets are those from ``start`` on, unsigned so that loops need no test for its sign.
    """
    n_rows = margins.shape[0]
    if kernel.code == LOGISTIC:
        for i in range(n_rows):
            residuals[i] = -margins[i]
        _exponentials(residuals, bits)
        for i in range(n_rows):
            residuals[i] = 1.0 / (1.0 + residuals[i]) - targets[np.uint64(start + i)]
    else:
        for i in range(n_rows):
            residuals[i] = margins[i] - targets[np.uint64(start + i)]
        if kernel.code == HUBER:
            for i in range(n_rows):
                residuals[i] = min(max(residuals[i], -kernel.bound), kernel.bound)


@compiled.compile_inner(inline="always")
def weigh_and_clip(
    start: int, margins: Vector, weights: Vector, limits: Vector, residuals: VectorOut
) -> None:
    """Multiply residuals by the weights and cut them to their limits; nan becomes 0."""
    if weights.shape[0] > 0:
        for i in range(margins.shape[0]):
            residuals[i] *= weights[np.uint64(start + i)]
    for i in range(margins.shape[0]):
        value = residuals[i] if residuals[i] == residuals[i] else 0.0
        value = value if margins[i] == margins[i] else 0.0
        # A limit may be infinite, for null rows, and 0 times inf is nan.
        limit = limits[np.uint64(start + i)]
        limit = limit if limit < LARGEST else LARGEST
        value = limit if value > limit else value
        residuals[i] = -limit if value < -limit else value


def _compiled_clipped_gradients(
    records: Records, inverse_norms: Array, loss: Loss, point: Array, clip_norm: float
) -> Array | None:
    n_features, kernel = records.n_features, loss.kernel
    if kernel is None or point.shape[1] != 1:
        return None
    if records.multipliers is not None:  # of a clipped residual: it and its limit are multiplied
        inverse_norms = inverse_norms * records.multipliers
    size = max(1, block_rows(*records.shape, records.is_sparse, is_copied=False))
    limits, total = residual_limits(clip_norm, inverse_norms), np.zeros(n_features + 1)
    coef = vector(point[:n_features])
    offset = float(records.constant * point[-1, 0]) if records.constant else 0.0
    if records.is_sparse:
        entries = entry_arrays(records, size)
        if entries is None:
            return None
        add_clipped_sparse_gradients(entries, kernel, limits, coef, offset, total)
    else:
        rows = row_arrays(records, size)
        if rows is None:
            return None
        add_clipped_gradients(rows, kernel, limits, coef, offset, total)
    return total[: records.n_parameters, None]


def residual_limits(clip_norm: float, inverse_norms: Array) -> Array:
    """Return the most that the weighted residual of each row may be."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(clip_norm * inverse_norms)


@compiled.compile_inner(
    fastmath={"reassoc", "nsz"}
)  # so that several terms of a product are added at once
def _write_margins(X: Matrix, coef: Vector, margins: VectorOut) -> None:
    """Write the products of rows and coefficients, in float64."""
    for i in range(X.shape[0]):
        product = 0.0
        for j in range(X.shape[1]):
            product += X[i, j] * coef[j]
        margins[i] = product


@compiled.compile_inner()
def _add_products(X: Matrix, residuals: Vector, total: VectorOut) -> None:
    """Add the products of rows and residuals to the total, in float64, four rows at a time."""
    n_rows, n_columns = X.shape
    in_fours = n_rows - n_rows % 4
    for i in range(0, in_fours, 4):
        first, second = residuals[i], residuals[i + 1]
        third, fourth = residuals[i + 2], residuals[i + 3]
        for j in range(n_columns):
            half = first * X[i, j] + second * X[i + 1, j]
            total[j] += half + (third * X[i + 2, j] + fourth * X[i + 3, j])
    for i in range(in_fours, n_rows):
        for j in range(n_columns):
            total[j] += residuals[i] * X[i, j]


@compiled.compile_inner(inline="always")
def _add_tile(
    X: Matrix,
    kernel: ResidualKernel,
    point: tuple[float, Vector, float],
    start: int,
    of_rows: tuple[Vector, Vector, Vector, Vector],
    work: tuple[VectorOut, VectorOut, IntegersOut],
    total: VectorOut,
) -> None:
    """Add the clipped gradients of the few rows from ``start`` on; ``work`` is space to work in.

    Tiles are too many for slices of each vector.
    """
    n_rows, n_columns = X.shape
    constant, coef, offset = point
    targets, weights, shrink, limits = of_rows
    margins, residuals, bits = work
    _write_margins(X, coef, margins)
    if shrink.shape[0] > 0:
        for i in range(n_rows):
            margins[i] *= shrink[np.uint64(start + i)]
    for i in range(n_rows):
        margins[i] += offset
    write_residuals(kernel, start, targets, margins, residuals, bits)
    weigh_and_clip(start, margins, weights, limits, residuals)
    if constant > 0.0:
        sum_of_residuals = 0.0
        for i in range(n_rows):
            sum_of_residuals += residuals[i]
        total[n_columns] += constant * sum_of_residuals
    if shrink.shape[0] > 0:
        for i in range(n_rows):
            residuals[i] *= shrink[np.uint64(start + i)]
    _add_products(X, residuals, total)


@compiled.compile_loop()
def add_clipped_gradients(
    rows: RowArrays,
    kernel: ResidualKernel,
    limits: Vector,
    coef: Vector,
    offset: float,
    total: VectorOut,
) -> None:
    """Add the clipped gradients of rows of one margin each to the total.

    Sums over the columns of a row may be added in another order than in numpy, as BLAS does: no
    matter which, as what a row adds is clipped afterwards.

    Parameters
    ----------
    rows : RowArrays
    kernel : ResidualKernel
    limits : array of shape (n_rows,)
        The most that weighted residuals may be in absolute value.
    coef : array of shape (n_columns,)
    offset : float
        What the constant feature adds to every margin.
    total : array of shape (n_columns + 1,)
        Added to; the last entry is that of the constant feature.
    """
    X, units, targets, weights, shrink, constant, block_rows = rows
    n_rows, n_columns = X.shape
    standardises = units.low.shape[0] > 0
    n_bytes = max(1, n_columns) * (8 if standardises else X.itemsize)
    tile_rows = 8 * TILE_NUMBERS // n_bytes // 8 * 8  # eights, as many as loops take at once
    tile_rows = min(
        block_rows, max(8, tile_rows if tile_rows > 0 else 64 * TILE_NUMBERS // n_bytes)
    )
    tile = np.zeros((tile_rows if standardises else 0, n_columns))
    margins, residuals = np.zeros(tile_rows), np.zeros(tile_rows)
    bits, block = np.zeros(tile_rows, np.int64), np.zeros(n_columns + 1)
    point, of_rows = (constant, coef, offset), (targets, weights, shrink, limits)
    for first in range(0, n_rows, block_rows):
        last = min(first + block_rows, n_rows)
        block[:] = 0.0
        work = margins, residuals, bits
        for start in range(first, last, tile_rows):
            size = min(tile_rows, last - start)
            if size < tile_rows:
                work = margins[:size], residuals[:size], bits[:size]
            some = X[start : start + size]
            if standardises:
                standardise_rows(some, units, tile[:size])
                _add_tile(tile[:size], kernel, point, start, of_rows, work, block)
            else:
                _add_tile(some, kernel, point, start, of_rows, work, block)
        for j in range(n_columns + 1):
            total[j] += block[j]


@compiled.compile_loop()
def add_clipped_sparse_gradients(
    rows: EntryArrays,
    kernel: ResidualKernel,
    limits: Vector,
    coef: Vector,
    offset: float,
    total: VectorOut,
) -> None:
    """Add the clipped gradients of CSR rows of one margin each to the total.

    As in numpy, what is stored is added up, block after block, and the base times the sum of the
    block's residuals is added apart, so that no row is written out. Unsigned indices spare the
    loop the test whether they count from the end. Parameters: see `add_clipped_gradients`.
    """
    data, indices, indptr, base, targets, weights, shrink, constant, block_rows = rows
    n_rows, n_columns = indptr.shape[0] - 1, coef.shape[0]
    tile_rows = min(block_rows, SPARSE_TILE_ROWS)
    margins, residuals = np.zeros(tile_rows), np.zeros(tile_rows)
    bits, block = np.zeros(tile_rows, np.int64), np.zeros(n_columns)
    of_base = 0.0
    for j in range(base.shape[0]):
        of_base += base[j] * coef[j]
    for first in range(0, n_rows, block_rows):
        last = min(first + block_rows, n_rows)
        block[:] = 0.0
        of_constant, shrunk = 0.0, 0.0  # sums of residuals: as they are, and scaled down with rows
        for start in range(first, last, tile_rows):
            size = min(tile_rows, last - start)
            for i in range(size):
                margin = 0.0
                for k in range(indptr[start + i], indptr[start + i + 1]):
                    margin += data[k] * coef[np.uint64(indices[k])]
                margin += of_base
                if shrink.shape[0] > 0:
                    margin *= shrink[start + i]
                margins[i] = margin + offset
            some, few = margins[:size], residuals[:size]
            write_residuals(kernel, start, targets, some, few, bits[:size])
            weigh_and_clip(start, some, weights, limits, few)
            for i in range(size):
                residual = residuals[i]
                of_constant += residual
                if shrink.shape[0] > 0:
                    residual *= shrink[start + i]
                shrunk += residual
                for k in range(indptr[start + i], indptr[start + i + 1]):
                    block[np.uint64(indices[k])] += residual * data[k]
        for j in range(n_columns):
            total[j] += block[j]
        for j in range(base.shape[0]):
            total[j] += base[j] * shrunk
        total[n_columns] += constant * of_constant


# ---------------------------------------------------------------- rounding


@functools.lru_cache(maxsize=256)
def gradient_rounding(
    n_rows: int, n_features: int, n_outputs: int, is_sparse: bool, grouped: bool = False
) -> float:
    """Relative amount by which rounding can raise the contribution of a record to the sum.

    A record's clipped gradient exceeds its bound by a relative ``(n_features + n_outputs + 17) u``
    at most (two norms, limits and products; u is the unit roundoff). A floating-point sum of k
    terms is off by at most ``k u sum |terms|`` to first order, in any order of summation (Higham
    2002, eq. 3.4 and sec. 4.2), here in L2 norm by ``k u n C``; two neighbouring sums by twice as
    much. k is :func:`skdp.oracle.sources.block_sizes.summation_depth`. The factor 1.01 covers
    higher orders.

    With groups n is their number: the terms of a group, each multiplied by its share, add up to C
    in norm, however many they are, and k holds for any number of rows.

    The same holds in L1. A sum of d absolute values is off by a relative ``(d - 1) u``, no more
    than a Euclidean norm is allowed here; the error of the sum is at most ``k u sum |terms|`` in
    every coordinate, and added up over the coordinates that is ``k u`` times the sum of L1 norms.

    And it holds for the largest entry, whose error is ``k u`` times a sum of largest entries.

    Sparse rows may be added to a base, and their sums taken apart: see
    :func:`skdp.oracle.sources.sparse_rows.growth_of_rounding`. In L1 they are written out.
    """
    terms = summation_depth(n_rows, n_features, is_sparse, grouped)
    growth = growth_of_rounding() if is_sparse else 1.0
    return 1.01 * UNIT_ROUNDOFF * (n_features + n_outputs + 17 + 2.0 * growth * terms * n_rows)
