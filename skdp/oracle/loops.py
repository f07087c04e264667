"""Loops over rows that numba compiles, in plain arrays; imported only where numba is installed.

Sums are added up as they are written, but for those over the columns of a row, whose terms may be
added in another order, as BLAS does: no matter which, as what a row adds is clipped afterwards. No
other fast-math: nan stays nan.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types

from skdp._numbers import AnyArray

Loop = TypeVar("Loop", bound=Callable[..., Any])

SQUARED, LOGISTIC, HUBER = 0, 1, 2  # stand for losses, as loops take numbers alone
LARGEST = float(np.finfo(np.float64).max)
# Entries (float64) of a tile, the piece of a block that goes through both matrix products at once:
# 64 KiB, so that it is still in the L2 cache for the second one.
TILE_NUMBERS = 1 << 13

_OPTIONS = {"error_model": "numpy", "nogil": True}
_njit: Any = numba.njit  # typed in some versions, but not by what is compiled


def _array(kind: Any, n_dims: int, is_read: bool = True) -> Any:
    """Return numba's type of a contiguous array; one that is only read may be write-protected."""
    return types.Array(kind, n_dims, "C", readonly=is_read)


_f4, _f8 = types.float32, types.float64
_rows, _vector, _result = _array(_f8, 2), _array(_f8, 1), _array(_f8, 1, is_read=False)
_integer, _short = types.int64, types.int32


def _compiled(*signatures: Any) -> Callable[[Loop], Loop]:
    """Compile for the types that are given, at once; keep the code on disk where that is allowed.

    numba looks for a directory that it can write to, and refuses if there is none.
    """

    def decorate(function: Loop) -> Loop:
        try:
            found: Loop = _njit(list(signatures), cache=True, **_OPTIONS)(function)
        except (RuntimeError, OSError):
            found = _njit(list(signatures), **_OPTIONS)(function)
        return found

    return decorate


def _inlined(function: Loop) -> Loop:
    """Compile as a part of the loops that call this."""
    compiled: Loop = _njit(**_OPTIONS)(function)
    return compiled


def _reordered(function: Loop) -> Loop:
    """Compile likewise, with sums in any order, so that several terms are added at once."""
    compiled: Loop = _njit(fastmath={"reassoc", "nsz"}, **_OPTIONS)(function)
    return compiled


# ---------------------------------------------------------------- rows in units of their columns


@_inlined
def _standardise(X: Any, low: Any, high: Any, centre: Any, factor: Any, out: Any) -> None:
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            value = min(max(X[i, j], low[j]), high[j])
            out[i, j] = (value - centre[j]) * factor[j]


def _standardise_signature(kind: Any) -> Any:
    return types.void(_array(kind, 2), *[_vector] * 4, _array(_f8, 2, is_read=False))


@_compiled(_standardise_signature(_f8), _standardise_signature(_f4))
def _standardise_all(X: Any, low: Any, high: Any, centre: Any, factor: Any, out: Any) -> None:
    _standardise(X, low, high, centre, factor, out)


def compiled_standardise(
    X: AnyArray, low: AnyArray, high: AnyArray, centre: AnyArray, factor: AnyArray, out: AnyArray
) -> Any:
    """Twin of `skdp.oracle.scaling.standardise`."""
    if not (is_plain(X) and is_plain(out) and out.dtype == np.float64):
        return NotImplemented
    _standardise_all(X, low, high, centre, factor, out)
    return out


@_compiled(
    *[
        types.void(_array(kind, 2), *[_vector] * 5, _array(_f8, 2, is_read=False))
        for kind in (_f8, _f4)
    ]
)
def write_scaled_rows(
    X: Any, low: Any, high: Any, centre: Any, factor: Any, weights: Any, out: Any
) -> None:
    """Write rows, standardised unless ``low`` has no entries, times their weights."""
    for i in range(X.shape[0]):
        weight = weights[i]
        if low.shape[0] > 0:
            for j in range(X.shape[1]):
                value = min(max(X[i, j], low[j]), high[j])
                out[i, j] = (value - centre[j]) * factor[j] * weight
        else:
            for j in range(X.shape[1]):
                out[i, j] = X[i, j] * weight


def _entries_signature(kind: Any, index: Any) -> Any:
    return types.void(_array(kind, 1), _array(index, 1), *[_vector] * 4, _result)


@_compiled(
    *[_entries_signature(kind, index) for kind in (_f8, _f4) for index in (_short, _integer)]
)
def _standardise_entries(
    values: Any, columns: Any, low: Any, high: Any, of_zero: Any, size: Any, out: Any
) -> None:
    for k in range(values.shape[0]):
        j = columns[k]
        out[k] = (min(max(values[k], low[j]), high[j]) - of_zero[j]) / size[j]


def compiled_standardise_entries(
    X: Any, low: AnyArray, high: AnyArray, of_zero: AnyArray, size: AnyArray, out: AnyArray
) -> Any:
    """Twin of `skdp.oracle.scaling.standardise_entries`."""
    arrays = (X.data, X.indices, low, high, of_zero, size, out)
    plain = all(
        one.dtype.isnative and one.flags.c_contiguous and one.flags.aligned for one in arrays
    )
    known = X.data.dtype in (np.float64, np.float32) and X.indices.dtype in (np.int32, np.int64)
    if not (plain and known and all(one.dtype == np.float64 for one in arrays[2:])):
        return NotImplemented
    _standardise_entries(*arrays)
    return out


def is_plain(X: AnyArray) -> bool:
    """Whether rows lie in memory as the loops read them."""
    known = X.dtype in (np.float64, np.float32) and X.dtype.isnative
    return bool(known and X.ndim == 2 and X.flags.c_contiguous and X.flags.aligned)


# ---------------------------------------------------------------- sums of clipped gradients

# exp(x) = 2**k exp(r), |r| <= ln(2) / 2, and exp(r) by its series up to r**13, whose remainder is
# below 2**-57. numba calls the C library for each exponential, which takes five times as long.
# ln(2) is LN2_HIGH + LN2_LOW, as in fdlibm: the last bits of the first are 0, so that k times it is
# exact, and so is what subtracting it leaves of x.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
INVERSE_LN2 = 1.4426950408889634
# Coefficients of the series: Ck is 1 / k!.
C2, C3, C4, C5, C6, C7 = 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040
C8, C9, C10, C11 = 1 / 40320, 1 / 362880, 1 / 3628800, 1 / 39916800
C12, C13 = 1 / 479001600, 1 / 6227020800


@_inlined
def _exponentials(values: Any, bits: Any) -> None:
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
        p = C10 + r * (C11 + r * (C12 + r * C13))
        p = C6 + r * (C7 + r * (C8 + r * (C9 + r * p)))
        p = C2 + r * (C3 + r * (C4 + r * (C5 + r * p)))
        values[i] = 1.0 + (r + r * r * p)
    for i in range(values.shape[0]):
        values[i] *= powers[i]


@_inlined
def _find_residuals(
    loss: Any, threshold: Any, targets: Any, margins: Any, residuals: Any, bits: Any
) -> None:
    """Write the residuals of rows of one margin each; any number where the margin is nan."""
    n_rows = margins.shape[0]
    if loss == LOGISTIC:
        for i in range(n_rows):
            residuals[i] = -margins[i]
        _exponentials(residuals, bits)
        for i in range(n_rows):
            residuals[i] = 1.0 / (1.0 + residuals[i]) - targets[i]
    else:
        for i in range(n_rows):
            residuals[i] = margins[i] - targets[i]
        if loss == HUBER:
            for i in range(n_rows):
                residuals[i] = min(max(residuals[i], -threshold), threshold)


@_inlined
def _weigh_and_clip(margins: Any, weights: Any, limits: Any, residuals: Any) -> None:
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


@_reordered
def _find_margins(X: Any, coef: Any, margins: Any) -> None:
    """Write the products of rows and coefficients, in float64."""
    for i in range(X.shape[0]):
        product = 0.0
        for j in range(X.shape[1]):
            product += X[i, j] * coef[j]
        margins[i] = product


@_inlined
def _add_products(X: Any, residuals: Any, total: Any) -> None:
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


@_inlined
def _add_tile(X: Any, facts: Any, of_rows: Any, limits: Any, work: Any, total: Any) -> None:
    """Add the clipped gradients of a few rows to the total; ``work`` is space to work in."""
    n_rows, n_columns = X.shape
    loss, threshold, constant, coef, offset = facts
    targets, weights, shrink = of_rows
    margins, residuals, bits = work
    _find_margins(X, coef, margins)
    for i in range(n_rows):
        if shrink.shape[0] > 0:
            margins[i] *= shrink[i]
        margins[i] += offset
    _find_residuals(loss, threshold, targets, margins, residuals, bits)
    _weigh_and_clip(margins, weights, limits, residuals)
    if constant > 0.0:
        sum_of_residuals = 0.0
        for i in range(n_rows):
            sum_of_residuals += residuals[i]
        total[n_columns] += constant * sum_of_residuals
    if shrink.shape[0] > 0:
        for i in range(n_rows):
            residuals[i] *= shrink[i]
    _add_products(X, residuals, total)


@_inlined
def _slice(vector: Any, start: Any, stop: Any) -> Any:
    """Return entries of a vector; none of one that is missing, and so has none."""
    return vector[start:stop] if vector.shape[0] > 0 else vector[0:0]


def _gradients_signature(kind: Any) -> Any:
    rows = [_array(kind, 2), *[_vector] * 4, _integer]
    facts = [_integer, _f8, _vector, _vector, _vector, _vector, _f8]
    return types.void(*rows, *facts, _vector, _f8, _result)


@_compiled(_gradients_signature(_f8), _gradients_signature(_f4))
def add_clipped_gradients(
    X: Any,
    low: Any,
    high: Any,
    centre: Any,
    factor: Any,
    block_rows: Any,
    loss: Any,
    threshold: Any,
    targets: Any,
    weights: Any,
    shrink: Any,
    limits: Any,
    constant: Any,
    coef: Any,
    offset: Any,
    total: Any,
) -> None:
    """Add the clipped gradients of rows of one margin each to the total.

    Blocks are those of numpy's loop, so that a record goes through no more additions, whose
    rounding errors are charged for. Vectors that are missing have no entries.

    Parameters
    ----------
    X : array of shape (n_rows, n_columns)
    low, high, centre, factor : array of shape (n_columns,) or (0,)
        How rows are standardised: cut to [low, high], then (value - centre) * factor.
    block_rows : int
        Rows of a block.
    loss : int
        ``SQUARED``, ``LOGISTIC`` or ``HUBER``.
    threshold : float
        Of the Huber loss.
    targets : array of shape (n_rows,)
    weights : array of shape (n_rows,) or (0,)
    shrink : array of shape (n_rows,) or (0,)
        Factors that keep rows to their bound.
    limits : array of shape (n_rows,)
        The most that weighted residuals may be in absolute value.
    constant : float
        Value of the constant feature; 0 for none.
    coef : array of shape (n_columns,)
    offset : float
        What the constant feature adds to every margin.
    total : array of shape (n_columns + 1,)
        Added to; the last entry is that of the constant feature.
    """
    n_rows, n_columns = X.shape
    tile_rows = min(block_rows, max(8, TILE_NUMBERS // max(1, n_columns)))
    standardises = low.shape[0] > 0
    tile = np.zeros((tile_rows if standardises else 0, n_columns))
    margins, residuals = np.zeros(tile_rows), np.zeros(tile_rows)
    bits, block = np.zeros(tile_rows, np.int64), np.zeros(n_columns + 1)
    facts = loss, threshold, constant, coef, offset
    for first in range(0, n_rows, block_rows):
        last = min(first + block_rows, n_rows)
        block[:] = 0.0
        for start in range(first, last, tile_rows):
            stop = min(start + tile_rows, last)
            size = stop - start
            of_rows = targets[start:stop], _slice(weights, start, stop), _slice(shrink, start, stop)
            work = margins[:size], residuals[:size], bits[:size]
            if standardises:
                _standardise(X[start:stop], low, high, centre, factor, tile[:size])
                _add_tile(tile[:size], facts, of_rows, limits[start:stop], work, block)
            else:
                _add_tile(X[start:stop], facts, of_rows, limits[start:stop], work, block)
        for j in range(n_columns + 1):
            total[j] += block[j]


# ---------------------------------------------------------------- histograms

_COUNTS = _array(_integer, 2, is_read=False)


@_compiled(types.void(_rows, _vector, _vector, _vector, _integer, _COUNTS))
def add_bin_counts(X: Any, weights: Any, low: Any, width: Any, n_bins: Any, total: Any) -> None:
    """Count the values of each column in equal bins, the outer ones open; nan is in the first.

    Rows of weight 0 are not counted; ``weights`` has no entries if there are none.
    """
    n_rows, n_columns = X.shape
    places = np.zeros(n_columns, np.int64)
    last = n_bins - 1.0
    for i in range(n_rows):
        if weights.shape[0] > 0 and not weights[i] > 0.0:
            continue
        for j in range(n_columns):
            place = (X[i, j] - low[j]) / width[j]
            place = place if place > 0.0 else 0.0
            places[j] = np.int64(place if place < last else last)
        for j in range(n_columns):
            total[j, places[j]] += 1


@_compiled(types.void(_array(types.uint64, 2), _vector, _array(_integer, 1), _COUNTS))
def add_magnitude_counts(patterns: Any, weights: Any, table: Any, total: Any) -> None:
    """Count the bit patterns of each column's values by their sign and exponent."""
    n_rows, n_columns = patterns.shape
    for i in range(n_rows):
        if weights.shape[0] > 0 and not weights[i] > 0.0:
            continue
        for j in range(n_columns):
            total[j, table[patterns[i, j] >> np.uint64(52)]] += 1
