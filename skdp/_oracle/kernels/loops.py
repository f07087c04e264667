"""Compiled loops that add clipped gradients: over dense rows and over CSR rows, for every loss.

A tile of rows is so small that it stays in a near cache between its two products. Sums over the
columns of a row may be added up in any order, because the result is clipped afterwards. No bit of a
row's residual depends on other rows.
"""

from typing import Any, NamedTuple

import numpy as np

from skdp._numbers import AnyArray, Array, Indices
from skdp._oracle.compiled import compile_loop
from skdp._oracle.sources.records import Records
from skdp.objective.losses import EXPONENTIAL, HINGE, LINEAR, SIGMOID, SOFTMAX, ResidualKernel

# Entries of a tile: 8 KiB, so that it stays in the L1 cache, or 64 KiB if rows are too long.
TILE_NUMBERS = 1 << 14
SPARSE_TILE_ROWS = 1 << 8  # CSR rows usually contain a few dozen entries
NONE = np.frombuffer(b"")  # for a vector that is missing, read-only
LARGEST = float(np.finfo(np.float64).max)

# exp(x) = 2**k exp(r), |r| <= ln(2) / 2, and exp(r) by its series up to r**13, whose remainder is
# below 2**-57. numba calls the C library for each exponential, which takes five times as long.
# ln(2) is LN2_HIGH + LN2_LOW, as in fdlibm: the last bits of the first are 0, so that k times it is
# exact, and so is what subtracting it leaves of x.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
INVERSE_LN2 = 1.4426950408889634
CUT = 8e307  # exponentials from here on count as infinite


class Facts(NamedTuple):
    """Facts of rows besides their entries. Weighted residuals are cut to products of two of them.

    Attributes
    ----------
    targets : array of shape (n_rows, n_outputs), or (n_rows, 1) for codes of classes
    weights, shrink, inverse_norms : array of shape (n_rows,)
        The first two without entries if there are none.
    clip_norm, constant : float
    block_rows : int
        Rows that are added up as one block, as in numpy, so that a record goes through no more
        additions, whose rounding errors are charged for.
    """

    targets: Array
    weights: Array
    shrink: Array
    inverse_norms: Array
    clip_norm: float
    constant: float
    block_rows: int


class Tile(NamedTuple):
    """Work space of a few rows: margins and residuals, a row for each output, and two rows."""

    margins: Array
    residuals: Array
    most: Array
    bits: Indices


class Entries(NamedTuple):
    """CSR rows, and the public row that is added to each of them, without entries if none is."""

    data: Array
    indices: Indices
    indptr: Indices
    base: Array


# ---------------------------------------------------------------- residuals


@compile_loop()
def exponentials(values: Array, bits: Indices) -> None:
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


@compile_loop()
def write_residuals(
    kernel: ResidualKernel,
    output: int,
    targets: Array,
    margins: Array,
    residuals: Array,
    spare: Array,
    bits: Indices,
) -> None:
    """Write the residuals of one output. Any number if the margin is nan."""
    code, numbers = kernel.code, kernel.numbers
    n_rows = margins.shape[0]
    if code == LINEAR:
        bound = numbers[0]
        for i in range(n_rows):
            residuals[i] = min(max(margins[i] - targets[i, output], -bound), bound)
    elif code == SIGMOID:
        width, of_target, share, level = numbers[0], numbers[1], numbers[2], numbers[3 + output]
        for i in range(n_rows):
            residuals[i] = -(margins[i] - of_target * targets[i, output]) / width
        exponentials(residuals, bits)
        for i in range(n_rows):
            rest = 1.0 / (1.0 + residuals[i]) if residuals[i] < CUT else 0.0
            residuals[i] = rest - (level + share * targets[i, output])
    elif code == HINGE:
        for i in range(n_rows):
            residuals[i] = -(1.0 + (1.0 - 2.0 * targets[i, output]) * margins[i]) / numbers[0]
        exponentials(residuals, bits)
        for i in range(n_rows):
            rest = 1.0 / (1.0 + residuals[i]) if residuals[i] < CUT else 0.0
            residuals[i] = (1.0 - 2.0 * targets[i, output]) * rest
    elif code == EXPONENTIAL:
        power, unit, base = numbers[0], numbers[1], numbers[2]
        least, most, largest = numbers[3], numbers[4], numbers[5]
        for i in range(n_rows):
            within = min(max(margins[i], least), most) * unit
            residuals[i], spare[i] = (2.0 - power) * within, (1.0 - power) * within
        exponentials(residuals, bits)
        if power > 1.0:
            exponentials(spare, bits)
        for i in range(n_rows):
            beyond = margins[i] - min(max(margins[i], least), most)
            ratio = min(max(base + unit * targets[i, output], 0.0), largest)
            if power > 1.0:
                ratio *= spare[i]
                slope = (2.0 - power) * residuals[i] + (power - 1.0) * ratio
            else:  # below the least margin, the residual is bounded without a straight line
                beyond, slope = max(beyond, 0.0), residuals[i]
            residuals[i] = (residuals[i] - ratio) / unit + slope * beyond


@compile_loop()
def write_softmax(
    targets: Array, margins: Array, residuals: Array, most: Array, bits: Indices
) -> None:
    """Write the residuals of classes. It is nan in the rows with a margin that is not finite."""
    n_classes, n_rows = margins.shape
    most[:] = margins[0]
    for k in range(1, n_classes):
        for i in range(n_rows):
            most[i] = max(most[i], margins[k, i])
    for k in range(n_classes):
        for i in range(n_rows):
            residuals[k, i] = margins[k, i] - most[i]
        exponentials(residuals[k], bits)
    most[:] = 0.0
    for k in range(n_classes):
        for i in range(n_rows):
            most[i] += residuals[k, i] + 0.0 * margins[k, i]
    for k in range(n_classes):
        for i in range(n_rows):
            residuals[k, i] = residuals[k, i] / most[i] - (1.0 if targets[i, 0] == k else 0.0)


@compile_loop()
def clip(facts: Facts, start: int, margins: Array, residuals: Array, most: Array) -> None:
    """Multiply residuals by weights and cut their norms to limits. nan becomes 0.

    Neither lengths nor factors leave float64, as in numpy: rows are divided by the largest entry.
    """
    n_outputs, n_rows = margins.shape
    inverse_norms = facts.inverse_norms[start : start + n_rows]
    for i in range(n_rows):
        most[i] = min(facts.clip_norm * inverse_norms[i], LARGEST)
    if facts.weights.shape[0] > 0:
        weights = facts.weights[start : start + n_rows]
        for k in range(n_outputs):
            for i in range(n_rows):
                residuals[k, i] *= weights[i]
    for k in range(n_outputs):
        for i in range(n_rows):
            value = residuals[k, i]
            value = value if value == value and margins[k, i] == margins[k, i] else 0.0
            limit = most[i] if n_outputs == 1 else LARGEST
            residuals[k, i] = min(max(value, -limit), limit)
    if n_outputs == 1:
        return
    most[:] = 0.0
    for k in range(n_outputs):
        for i in range(n_rows):
            most[i] = max(most[i], abs(residuals[k, i]))
    for i in range(n_rows):
        largest = most[i] if most[i] > 0.0 else 1.0
        square = 0.0
        for k in range(n_outputs):
            residuals[k, i] /= largest
            square += residuals[k, i] * residuals[k, i]
        length = np.sqrt(square)
        limit = min(facts.clip_norm * inverse_norms[i], LARGEST)
        most[i] = limit / length if largest * length > limit else largest
    for k in range(n_outputs):
        for i in range(n_rows):
            residuals[k, i] *= most[i]


@compile_loop()
def write_factors(
    kernel: ResidualKernel,
    facts: Facts,
    offsets: Array,
    start: int,
    tile: Tile,
    of_constant: Array,
) -> None:
    """Write the factors of rows in the sum, from products of rows and coefficients in ``margins``.

    The sum of residuals, times the constant feature, is added to ``of_constant``.
    """
    margins, residuals, most, bits = tile
    n_outputs, n_rows = margins.shape
    shrink = facts.shrink[start : start + n_rows]
    targets = facts.targets[start : start + n_rows]
    for k in range(n_outputs):
        if shrink.shape[0] > 0:
            for i in range(n_rows):
                margins[k, i] *= shrink[i]
        for i in range(n_rows):
            margins[k, i] += offsets[k]
    if kernel.code == SOFTMAX:
        write_softmax(targets, margins, residuals, most, bits)
    else:
        for k in range(n_outputs):
            write_residuals(kernel, k, targets, margins[k], residuals[k], most, bits)
    clip(facts, start, margins, residuals, most)
    for k in range(n_outputs):
        total = 0.0
        for i in range(n_rows):
            total += residuals[k, i]
        of_constant[k] += facts.constant * total
        if shrink.shape[0] > 0:
            for i in range(n_rows):
                residuals[k, i] *= shrink[i]


# ---------------------------------------------------------------- sums


@compile_loop(fastmath={"reassoc", "nsz"})  # so that several terms of a product are added at once
def _write_products(X: Array, coef: Array, products: Array) -> None:
    """Write the products of rows and coefficients, of two outputs at once."""
    n_outputs = coef.shape[0]
    if n_outputs % 2:
        for i in range(X.shape[0]):
            product = 0.0
            for j in range(X.shape[1]):
                product += X[i, j] * coef[n_outputs - 1, j]
            products[n_outputs - 1, i] = product
    for k in range(0, n_outputs - 1, 2):
        for i in range(X.shape[0]):
            first = second = 0.0
            for j in range(X.shape[1]):
                first += X[i, j] * coef[k, j]
                second += X[i, j] * coef[k + 1, j]
            products[k, i], products[k + 1, i] = first, second


@compile_loop()
def _add_products(X: Array, residuals: Array, total: Array) -> None:
    """Add the products of rows and residuals to the total, four rows at a time."""
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


@compile_loop()
def add_dense(
    X: Array, kernel: ResidualKernel, facts: Facts, coef: Array, offsets: Array, total: Array
) -> None:
    """Add the clipped gradients of dense rows to the total.

    Parameters
    ----------
    X : array of shape (n_rows, n_columns)
    kernel : ResidualKernel
    facts : Facts
    coef : array of shape (n_outputs, n_columns)
    offsets : array of shape (n_outputs,)
        Contribution of the constant feature to every margin.
    total : array of shape (n_outputs, n_columns + 1)
        Added to. The last column is that of the constant feature.
    """
    (n_rows, n_columns), n_outputs = X.shape, coef.shape[0]
    tile_rows = TILE_NUMBERS // max(1, n_columns) // 8 * 8  # loops handle eight rows at once
    tile_rows = max(8, tile_rows if tile_rows > 0 else 8 * TILE_NUMBERS // n_columns)
    tile_rows = min(facts.block_rows, tile_rows)
    space, block = np.zeros((2, n_outputs * tile_rows)), np.zeros(total.shape)
    most, bits = np.zeros(tile_rows), np.zeros(tile_rows, np.int64)
    of_constant = np.zeros(n_outputs)
    for first in range(0, n_rows, facts.block_rows):
        last = min(first + facts.block_rows, n_rows)
        block[:] = 0.0
        of_constant[:] = 0.0
        for start in range(first, last, tile_rows):
            size = min(tile_rows, last - start)
            some = X[start : start + size]
            margins = space[0, : n_outputs * size].reshape(n_outputs, size)
            residuals = space[1, : n_outputs * size].reshape(n_outputs, size)
            _write_products(some, coef, margins)
            tile = Tile(margins, residuals, most[:size], bits[:size])
            write_factors(kernel, facts, offsets, start, tile, of_constant)
            for k in range(n_outputs):
                _add_products(some, residuals[k], block[k])
        for k in range(n_outputs):
            block[k, n_columns] = of_constant[k]
            for j in range(n_columns + 1):
                total[k, j] += block[k, j]


@compile_loop()
def add_sparse(
    rows: Entries, kernel: ResidualKernel, facts: Facts, coef: Array, offsets: Array, total: Array
) -> None:
    """Add the clipped gradients of CSR rows to the total.

    As in numpy, stored entries are added up, block after block, and the base times the sum of the
    block's residuals is added separately, so that no row is written out. Unsigned indices spare the
    loop the test whether they count from the end. Parameters: see `add_dense`.
    """
    data, indices, indptr, base = rows
    n_rows, n_outputs, n_columns = indptr.shape[0] - 1, coef.shape[0], coef.shape[1]
    tile_rows = min(facts.block_rows, SPARSE_TILE_ROWS)
    space, block = np.zeros((2, n_outputs * tile_rows)), np.zeros((n_outputs, n_columns))
    most, bits = np.zeros(tile_rows), np.zeros(tile_rows, np.int64)
    of_base, shrunk, of_constant = np.zeros(n_outputs), np.zeros(n_outputs), np.zeros(n_outputs)
    for k in range(n_outputs):
        for j in range(base.shape[0]):
            of_base[k] += base[j] * coef[k, j]
    for first in range(0, n_rows, facts.block_rows):
        last = min(first + facts.block_rows, n_rows)
        block[:] = 0.0
        shrunk[:] = 0.0
        of_constant[:] = 0.0
        for start in range(first, last, tile_rows):
            size = min(tile_rows, last - start)
            margins = space[0, : n_outputs * size].reshape(n_outputs, size)
            residuals = space[1, : n_outputs * size].reshape(n_outputs, size)
            for k in range(n_outputs):
                for i in range(size):
                    margin = 0.0
                    for m in range(indptr[start + i], indptr[start + i + 1]):
                        margin += data[m] * coef[k, np.uint64(indices[m])]
                    margins[k, i] = margin + of_base[k]
            tile = Tile(margins, residuals, most[:size], bits[:size])
            write_factors(kernel, facts, offsets, start, tile, of_constant)
            for k in range(n_outputs):
                for i in range(size):
                    residual = residuals[k, i]
                    shrunk[k] += residual
                    for m in range(indptr[start + i], indptr[start + i + 1]):
                        block[k, np.uint64(indices[m])] += residual * data[m]
        for k in range(n_outputs):
            for j in range(n_columns):
                total[k, j] += block[k, j]
            for j in range(base.shape[0]):
                total[k, j] += base[j] * shrunk[k]
            total[k, n_columns] += of_constant[k]


@compile_loop()
def write_squares(
    rows: Entries, matrix: Array, linear: Array, squares: Array, products: Array, lengths: Array
) -> None:
    """Write ``d'Md + v'd``, ``w'd`` and ``d'd`` of CSR rows d, with (v, w) the linear forms."""
    data, indices, indptr = rows.data, rows.indices, rows.indptr
    for i in range(squares.shape[0]):
        square = product = length = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            column, value = np.uint64(indices[k]), data[k]
            pairs = 0.5 * matrix[column, column] * value
            for m in range(indptr[i], k):
                pairs += matrix[column, np.uint64(indices[m])] * data[m]
            square += value * (2.0 * pairs + linear[0, column])
            product += value * linear[1, column]
            length += value * value
        squares[i], products[i], lengths[i] = square, product, length


@compile_loop()
def add_counts(places: AnyArray, shares: Array, total: Array) -> None:
    """Add the shares of rows, 1 if there are none, to a bin of each column; nan counts as 0."""
    n_columns, n_bins = total.shape
    for i in range(places.shape[0]):
        share = shares[i] if shares.shape[0] > 0 else 1.0
        for j in range(n_columns):
            place, number = places[i, j], 0
            if place >= n_bins:
                number = n_bins - 1
            elif place > 0:
                number = int(place)
            total[j, number] += share


@compile_loop()
def add_magnitudes(bits: AnyArray, table: Indices, shares: Array, total: Array) -> None:
    """Add the shares of rows, 1 if there are none, to the bin of each value's sign and exponent."""
    for i in range(bits.shape[0]):
        share = shares[i] if shares.shape[0] > 0 else 1.0
        for j in range(bits.shape[1]):
            total[j, table[bits[i, j] >> np.uint64(52)]] += share


@compile_loop()
def add_sparse_products(
    rows: Entries, weights: Array, last: Array, total: Array, lost: Array
) -> None:
    """Add the upper triangle of products of weighted CSR rows, followed by their last columns.

    ``lost`` is the rounding error that the additions so far have added to the sums.
    """
    data, indices, indptr = rows.data, rows.indices, rows.indptr
    n_last = last.shape[1]
    n_columns = total.shape[0] - n_last
    for i in range(last.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            row, value = np.uint64(indices[k]), weights[i] * data[k]
            for m in range(k, indptr[i + 1]):
                column = np.uint64(indices[m])
                _add_to(total, lost, row, column, value * (weights[i] * data[m]))
            for j in range(n_last):
                _add_to(total, lost, row, np.uint64(n_columns + j), value * last[i, j])
        for j in range(n_last):
            row = np.uint64(n_columns + j)
            for m in range(j, n_last):
                _add_to(total, lost, row, np.uint64(n_columns + m), last[i, j] * last[i, m])


@compile_loop()
def _add_to(total: Array, lost: Array, row: np.uint64, column: np.uint64, term: float) -> None:
    """Add a term to an entry, less what former additions put on top of it (Kahan 1965)."""
    term -= lost[row, column]
    former = total[row, column]
    after = former + term
    lost[row, column] = (after - former) - term
    total[row, column] = after


def readable(values: AnyArray, dtype: Any = np.float64) -> AnyArray:
    """Return values as loops read them: C-contiguous, aligned, write-protected."""
    values = np.ascontiguousarray(values, dtype)
    values = values if values.flags.aligned else values.copy()
    if values.flags.writeable:
        values = values.view()
        values.flags.writeable = False
    return values


def entries_of(records: Records) -> Entries:
    """Return CSR rows as loops read them."""
    X: Any = records.stored
    arrays = readable(X.data), readable(X.indices, X.indices.dtype), readable(X.indptr, np.int64)
    return Entries(*arrays, readable(NONE if records.base is None else records.base))
