"""Loops over many small steps that numba compiles: variance-reduced ones, and those of one record.

As in `skdp.oracle.loops`, no fast-math. Noise comes from numpy's side, drawn by the fit's own
source; a loop rounds a sum to the grid before it adds the noise of that step.
"""

from typing import Any

import numpy as np
from numba import types

from skdp.oracle.loops import (
    _OPTIONS,
    HUBER,
    LOGISTIC,
    TILE_NUMBERS,
    Loop,
    _array,
    _compiled,
    _f4,
    _f8,
    _find_residuals,
    _integer,
    _njit,
    _result,
    _rows,
    _vector,
)

# Rows from which BLAS multiplies quicker than a loop does, its call included.
ROWS_FOR_BLAS = 8

_numbers = _array(_integer, 1)


def _written_in(function: Loop) -> Loop:
    """Have the source written into the loop that calls this: less to compile, if it is but one."""
    compiled: Loop = _njit(inline="always", **_OPTIONS)(function)
    return compiled


# ---------------------------------------------------------------- sums of differences


@_written_in
def _gather(X: Any, indices: Any, units: Any, shrink: Any, constant: Any, tile: Any) -> None:
    """Copy rows into the tile as they count: standardised, shrunk, with their constant."""
    n_columns = X.shape[1]
    low, high, centre, factor = units
    for k in range(indices.shape[0]):
        i = indices[k]
        if low.shape[0] > 0:
            for j in range(n_columns):
                value = min(max(X[i, j], low[j]), high[j])
                tile[k, j] = (value - centre[j]) * factor[j]
        else:
            for j in range(n_columns):
                tile[k, j] = X[i, j]
        if shrink.shape[0] > 0:
            for j in range(n_columns):
                tile[k, j] *= shrink[i]
        if tile.shape[1] > n_columns:
            tile[k, n_columns] = constant


@_written_in
def _multiply(tile: Any, point: Any, margins: Any) -> None:
    """Write ``tile @ point``."""
    if tile.shape[0] >= ROWS_FOR_BLAS:
        margins[:] = 0.0  # BLAS may multiply by 0 what is there: rows before, which may be nan
        np.dot(tile, point, margins)
        return
    for k in range(tile.shape[0]):
        margin = 0.0
        for j in range(tile.shape[1]):
            margin += tile[k, j] * point[j]
        margins[k] = margin


@_written_in
def _add_rows(tile: Any, residuals: Any, gradient: Any, total: Any) -> None:
    """Add ``tile.T @ residuals`` to the total."""
    if tile.shape[0] >= ROWS_FOR_BLAS:
        np.dot(tile.T, residuals, gradient)
        for j in range(tile.shape[1]):
            total[j] += gradient[j]
        return
    for k in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            total[j] += tile[k, j] * residuals[k]


@_written_in
def _add_differences(
    X: Any,
    indices: Any,
    units: Any,
    of_rows: Any,
    facts: Any,
    away: Any,
    bound: Any,
    work: Any,
    total: Any,
) -> None:
    """Add the clipped differences of a few rows between the anchor and ``away`` from it."""
    n_rows = indices.shape[0]
    targets, weights, shrink, inverse = of_rows
    loss, threshold, constant, anchor = facts
    rows, margins, residuals, wanted, bits, gradient = work
    tile, both = rows[:n_rows], 2 * n_rows
    _gather(X, indices, units, shrink, constant, tile)
    for k in range(n_rows):
        wanted[k] = wanted[n_rows + k] = targets[indices[k]]
    # 1. Residuals at the anchor, and then at the point.
    _multiply(tile, anchor, margins[:n_rows])
    _multiply(tile, away, margins[n_rows:both])
    for k in range(n_rows):
        margins[n_rows + k] += margins[k]
    _find_residuals(loss, threshold, wanted[:both], margins[:both], residuals[:both], bits[:both])
    # 2. Their differences, weighted and clipped.
    for k in range(n_rows):
        i = indices[k]
        value = residuals[n_rows + k] - residuals[k]
        if weights.shape[0] > 0:
            value *= weights[i]
        value = 0.0 if value != value else value  # of a null row, too, whose weight is 0
        limit = bound * inverse[i]
        value = value if value < limit else limit
        residuals[k] = value if value > -limit else -limit
    _add_rows(tile, residuals[:n_rows], gradient, total)


def _difference_signature(kind: Any) -> Any:
    rows = [_array(kind, 2), *[_vector] * 8]
    facts = [_integer, _f8, _f8, _vector, _integer, _f8, _f8, _f8, _f8, types.boolean]
    batches = [_numbers, _numbers, _vector]
    return _integer(*rows, *facts, *batches, _f8, _vector, _vector, _rows, *[_result] * 3)


@_compiled(_difference_signature(_f8), _difference_signature(_f4))
def take_difference_steps(
    X: Any,
    low: Any,
    high: Any,
    centre: Any,
    factor: Any,
    targets: Any,
    weights: Any,
    shrink: Any,
    inverse: Any,
    loss: Any,
    threshold: Any,
    constant: Any,
    anchor: Any,
    block_rows: Any,
    clip_norm: Any,
    smoothness: Any,
    least: Any,
    cells: Any,
    is_noisy: Any,
    indices: Any,
    edges: Any,
    divisors: Any,
    size: Any,
    factors: Any,
    push: Any,
    noise: Any,
    away: Any,
    mean: Any,
    shown: Any,
) -> Any:
    """Take variance-reduced steps, of `SVRGPass`, until the point is not finite; return how many.

    A sum goes through no more additions than in numpy's blocks. It is cut to the step's own bound,
    put on the step's own grid, and rounded before noise is added.

    Parameters
    ----------
    X, low, high, centre, factor, loss, threshold, constant
        As for `skdp.oracle.loops.add_clipped_gradients`.
    targets, weights, shrink, inverse : array of shape (n_rows,)
        Of all rows. ``inverse`` has one over their norms, at most 1e280. ``weights`` and ``shrink``
        have no entries if there are none.
    anchor : array of shape (n_parameters,)
    block_rows : int
        Rows of a block.
    clip_norm, smoothness, least : float
        Differences are cut to ``smoothness`` times the distance from the anchor, at least to
        ``least`` and at most to ``clip_norm``.
    cells : float
        Cells of the grid in a bound.
    is_noisy : bool
        Whether sums are rounded to the grid.
    indices, edges : array of int
        Numbers of the rows of one batch after the other, and where batches begin; the last one's
        end.
    divisors : array of shape (n_steps,)
    size : float
        Of a step.
    factors, push : array of shape (n_parameters,)
        What the prox multiplies by, and what is added then.
    noise : array of shape (n_steps, n_parameters)
        In cells. Not read unless ``is_noisy``.
    away, mean : array of shape (n_parameters,)
        How far the point is from the anchor, and the sum of that over the steps: updated.
    shown : array of shape (n_parameters,)
        Written to: the last step's sum in cells, before rounding.
    """
    n_parameters = away.shape[0]
    tile_rows = max(1, min(block_rows, TILE_NUMBERS // n_parameters))
    tile, bits = np.zeros((tile_rows, n_parameters)), np.zeros(2 * tile_rows, np.int64)
    margins, residuals = np.zeros(2 * tile_rows), np.zeros(2 * tile_rows)
    work = tile, margins, residuals, np.zeros(2 * tile_rows), bits, np.zeros(n_parameters)
    units, of_rows = (low, high, centre, factor), (targets, weights, shrink, inverse)
    facts = loss, threshold, constant, anchor
    total, block = np.zeros(n_parameters), np.zeros(n_parameters)
    for t in range(divisors.shape[0]):
        # 1. The bound, from points that are public.
        squares = 0.0
        for j in range(n_parameters):
            squares += away[j] * away[j]
        distance = np.sqrt(squares)
        if not distance < np.inf:
            return t
        bound = clip_norm
        if distance * smoothness < clip_norm:
            bound = max(distance * smoothness, least)
        # 2. The sum.
        total[:] = 0.0
        for first in range(edges[t], edges[t + 1], block_rows):
            last = min(first + block_rows, edges[t + 1])
            block[:] = 0.0
            for start in range(first, last, tile_rows):
                chosen = indices[start : min(start + tile_rows, last)]
                _add_differences(X, chosen, units, of_rows, facts, away, bound, work, block)
            for j in range(n_parameters):
                total[j] += block[j]
        # 3. On the grid, with noise; and the step.
        scale, back = cells / bound, -size * bound / (cells * divisors[t])
        for j in range(n_parameters):
            answer = shown[j] = total[j] * scale
            if is_noisy:
                answer = np.rint(answer) + noise[t, j]
            away[j] = (away[j] + back * answer) * factors[j] + push[j]
            mean[j] += away[j]
    return divisors.shape[0]


# ---------------------------------------------------------------- one record at a time

_SINGLES = [_rows, _vector, _vector, _vector, _rows, _f8]


@_compiled(
    types.void(*_SINGLES, _integer, _f8, _f8, _f8, _vector, _integer, *[_result] * 3),
)
def take_single_steps(
    rows: Any,
    targets: Any,
    weights: Any,
    limits: Any,
    noise: Any,
    shift: Any,
    loss: Any,
    threshold: Any,
    back: Any,
    held_back: Any,
    factors: Any,
    n_ahead: Any,
    point: Any,
    total: Any,
    shown: Any,
) -> None:
    """Take steps of `ShuffledPass` on one record each.

    Parameters
    ----------
    rows : array of shape (n_rows, n_parameters)
        As they count, with their constant.
    targets, weights : array of shape (n_rows,)
    limits : array of shape (n_rows,)
        The most that weighted residuals may be in absolute value, finite.
    noise : array of shape (n_rows, n_parameters)
        On the grid, minus ``shift``.
    shift : float
        What a gradient is added to so that it comes out rounded to the grid.
    loss, threshold
        As for `skdp.oracle.loops.add_clipped_gradients`.
    back : float
        Factor on answers, minus the size of a step.
    held_back : float
        What is to be added of that of the last parameter.
    factors : array of shape (n_parameters,)
        What the prox multiplies by.
    n_ahead : int
        Steps before the first one whose point is added to the total.
    point, total : array of shape (n_parameters,)
        Updated.
    shown : array of shape (n_parameters,)
        Written to: the last step's gradient plus ``shift``, without noise.
    """
    n_rows, n_parameters = rows.shape
    for i in range(n_rows):
        margin = 0.0
        for j in range(n_parameters):
            margin += rows[i, j] * point[j]
        if loss == LOGISTIC:
            residual = 1.0 / (1.0 + np.exp(-margin)) - targets[i]
        else:
            residual = margin - targets[i]
            if loss == HUBER:
                residual = min(max(residual, -threshold), threshold)
        # What is not a number counts as 0.
        cut = weights[i] * residual
        cut = 0.0 if margin != margin or cut != cut else cut
        cut = limits[i] if cut > limits[i] else cut
        cut = -limits[i] if cut < -limits[i] else cut
        answer = 0.0
        for j in range(n_parameters):
            shown[j] = shift + rows[i, j] * cut  # on the grid
            answer = shown[j] + noise[i, j]
            point[j] += back * answer
        point[n_parameters - 1] += held_back * answer
        for j in range(n_parameters):
            point[j] *= factors[j]
            if i >= n_ahead:
                total[j] += point[j]
