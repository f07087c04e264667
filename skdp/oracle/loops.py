"""Loops over rows that numba compiles, in plain arrays. Only `skdp.oracle.compiled` imports this.

No fast-math: what is not a number stays that, and sums are added up as they are written. The two
products with a block are BLAS's, as in numpy.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types

from skdp._numbers import AnyArray

Loop = TypeVar("Loop", bound=Callable[..., Any])

SQUARED, LOGISTIC, HUBER = 0, 1, 2  # losses of one margin
LARGEST = float(np.finfo(np.float64).max)
TILE_NUMBERS = 1 << 13  # of a tile, in which a block is taken: in a near cache between products

_OPTIONS = {"error_model": "numpy", "nogil": True}
_njit: Any = numba.njit  # typed in some versions, but not by what is compiled


def _array(kind: Any, n_dims: int, is_read: bool = True) -> Any:
    """Return the type of a contiguous array; one that is only read may be read-only."""
    return types.Array(kind, n_dims, "C", readonly=is_read)


_f4, _f8 = types.float32, types.float64
_rows, _vector, _result = _array(_f8, 2), _array(_f8, 1), _array(_f8, 1, is_read=False)
_flag, _whole = types.boolean, types.int64


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


# ---------------------------------------------------------------- rows in units of their columns


@_inlined
def _standardise(X: Any, low: Any, high: Any, centre: Any, factor: Any, out: Any) -> None:
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            value = min(max(X[i, j], low[j]), high[j])
            out[i, j] = (value - centre[j]) * factor[j]


@_inlined
def _copy(X: Any, out: Any) -> None:
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            out[i, j] = X[i, j]


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


def is_plain(X: AnyArray) -> bool:
    """Whether rows lie in memory as the loops read them."""
    known = X.dtype in (np.float64, np.float32) and X.dtype.isnative
    return bool(known and X.ndim == 2 and X.flags.c_contiguous and X.flags.aligned)


# ---------------------------------------------------------------- sums of clipped gradients

# exp(x) = 2**k exp(r), |r| <= log(2) / 2, and exp(r) by its series up to r**13, whose rest is below
# 2**-57. numba calls the C library for each exponential, which takes five times as long.
LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
PER_LOG2 = 1.4426950408889634
C2, C3, C4, C5, C6, C7 = 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040
C8, C9, C10, C11 = 1 / 40320, 1 / 362880, 1 / 3628800, 1 / 39916800
C12, C13 = 1 / 479001600, 1 / 6227020800


@_inlined
def _exponentials(values: Any, bits: Any) -> None:
    """Replace values by their exponentials: to -708 below, to 709 above; nan as -708."""
    powers = bits.view(np.float64)
    for i in range(values.shape[0]):
        x = values[i]
        x = x if x > -708.0 else -708.0
        x = x if x < 709.0 else 709.0
        k = np.floor(x * PER_LOG2 + 0.5)
        r = (x - k * LOG2_HIGH) - k * LOG2_LOW
        bits[i] = (np.int64(k) + 1023) << 52
        p = C10 + r * (C11 + r * (C12 + r * C13))
        p = C6 + r * (C7 + r * (C8 + r * (C9 + r * p)))
        p = C2 + r * (C3 + r * (C4 + r * (C5 + r * p)))
        values[i] = 1.0 + (r + r * r * p)
    for i in range(values.shape[0]):
        values[i] *= powers[i]


@_inlined
def _residuals(loss: Any, threshold: Any, targets: Any, margins: Any, found: Any, bits: Any) -> Any:
    """Write the residuals of rows of one margin each; any number where that is nan."""
    n_rows = margins.shape[0]
    if loss == LOGISTIC:
        for i in range(n_rows):
            found[i] = -margins[i]
        _exponentials(found, bits)
        for i in range(n_rows):
            found[i] = 1.0 / (1.0 + found[i]) - targets[i]
    else:
        for i in range(n_rows):
            found[i] = margins[i] - targets[i]
        if loss == HUBER:
            for i in range(n_rows):
                found[i] = min(max(found[i], -threshold), threshold)


@_inlined
def _clip(margins: Any, weights: Any, limits: Any, found: Any) -> None:
    """Weigh residuals and cut them to their limits; what is not a number becomes 0."""
    for i in range(margins.shape[0]):
        value = found[i]
        if weights.shape[0] > 0:
            value = value * weights[i]
        value = 0.0 if margins[i] != margins[i] or value != value else value
        # A limit may be infinite, for null rows, and 0 times inf is not a number.
        limit = limits[i] if limits[i] < LARGEST else LARGEST
        value = limit if value > limit else value
        found[i] = -limit if value < -limit else value


@_inlined
def _add_tile(
    X: Any,
    facts: Any,
    targets: Any,
    weights: Any,
    shrink: Any,
    limits: Any,
    margins: Any,
    found: Any,
    bits: Any,
    moved: Any,
    total: Any,
) -> None:
    """Add the clipped gradients of a few rows to the total."""
    n_rows, n_columns = X.shape
    loss, threshold, constant, coef, offset = facts
    np.dot(X, coef, margins)
    for i in range(n_rows):
        if shrink.shape[0] > 0:
            margins[i] *= shrink[i]
        margins[i] += offset
    _residuals(loss, threshold, targets, margins, found, bits)
    _clip(margins, weights, limits, found)
    if constant > 0.0:
        whole = 0.0
        for i in range(n_rows):
            whole += found[i]
        total[n_columns] += constant * whole
    if shrink.shape[0] > 0:
        for i in range(n_rows):
            found[i] *= shrink[i]
    np.dot(X.T, found, moved)
    for j in range(n_columns):
        total[j] += moved[j]


@_inlined
def _part(vector: Any, start: Any, stop: Any) -> Any:
    """Return entries of a vector that may be missing."""
    return vector[start:stop] if vector.shape[0] > 0 else vector[0:0]


def _gradients_signature(kind: Any) -> Any:
    rows = [_array(kind, 2), _rows, *[_vector] * 4, _whole]
    facts = [_whole, _f8, _vector, _vector, _vector, _vector, _f8]
    return types.void(*rows, *facts, _vector, _f8, _result)


@_compiled(_gradients_signature(_f8), _gradients_signature(_f4))
def add_clipped_gradients(
    X: Any,
    ready: Any,
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

    Blocks are those of numpy's loop, so that a record goes through no more additions. Vectors that
    are missing have no entries.

    Parameters
    ----------
    X : array of shape (n_rows, n_columns)
    ready : array of shape (n_rows, n_columns) or (0, n_columns)
        The rows in float64 once more, if they are to be taken as they are.
    low, high, centre, factor : array of shape (n_columns,) or (0,)
        How rows are standardised.
    block_rows : int
    loss : int
    threshold : float
    targets, limits : array of shape (n_rows,)
        ``limits`` are those of the weighted residuals.
    weights, shrink : array of shape (n_rows,) or (0,)
    constant : float
    coef : array of shape (n_columns,)
    offset : float
        Of all margins.
    total : array of shape (n_columns + 1,)
        Written to; the last entry is that of the constant feature.
    """
    n_rows, n_columns = X.shape
    tile_rows = min(block_rows, max(8, TILE_NUMBERS // max(1, n_columns)))
    is_mapped, is_ready = low.shape[0] > 0, ready.shape[0] > 0
    tile = np.zeros((0 if is_ready else tile_rows, n_columns))
    margins, found = np.zeros(tile_rows), np.zeros(tile_rows)
    bits, moved = np.zeros(tile_rows, np.int64), np.zeros(n_columns)
    block = np.zeros(n_columns + 1)
    for first in range(0, n_rows, block_rows):
        last = min(first + block_rows, n_rows)
        block[:] = 0.0
        for start in range(first, last, tile_rows):
            stop = min(start + tile_rows, last)
            size = stop - start
            some = targets[start:stop], _part(weights, start, stop), _part(shrink, start, stop)
            work = margins[:size], found[:size], bits[:size], moved
            facts = loss, threshold, constant, coef, offset
            if is_ready:
                _add_tile(ready[start:stop], facts, *some, limits[start:stop], *work, block)
                continue
            if is_mapped:
                _standardise(X[start:stop], low, high, centre, factor, tile[:size])
            else:
                _copy(X[start:stop], tile[:size])
            _add_tile(tile[:size], facts, *some, limits[start:stop], *work, block)
        for j in range(n_columns + 1):
            total[j] += block[j]


# ---------------------------------------------------------------- histograms

_COUNTS = _array(types.int64, 2, is_read=False)


@_compiled(types.void(_rows, _vector, _vector, _vector, _whole, _COUNTS))
def add_bin_counts(X: Any, weights: Any, low: Any, width: Any, n_bins: Any, total: Any) -> None:
    """Count the values of each column in equal bins, the outer ones open; nan counts as small.

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


@_compiled(types.void(_array(types.uint64, 2), _vector, _array(types.int64, 1), _COUNTS))
def add_magnitude_counts(patterns: Any, weights: Any, table: Any, total: Any) -> None:
    """Count the bit patterns of each column's values by their sign and exponent."""
    n_rows, n_columns = patterns.shape
    for i in range(n_rows):
        if weights.shape[0] > 0 and not weights[i] > 0.0:
            continue
        for j in range(n_columns):
            total[j, table[patterns[i, j] >> np.uint64(52)]] += 1
