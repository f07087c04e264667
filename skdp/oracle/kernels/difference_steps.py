"""Sum clipped differences of gradients over batches, and take steps, in numpy and compiled."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import daxpy, ddot, dscal

from skdp._numbers import Array, Indices
from skdp.objective import Loss
from skdp.objective.losses import ResidualKernel
from skdp.oracle import compiled
from skdp.oracle.compiled import Integers, IntegersOut, Matrix, MatrixOut, Vector, VectorOut
from skdp.oracle.kernels.clipped_gradients import TILE_NUMBERS, clipped_gradients, write_residuals
from skdp.oracle.sources.column_map import read_only
from skdp.oracle.sources.memory import MemorySource
from skdp.oracle.sources.records import Records, RowArrays, row_arrays, vector

SumUp = Callable[[int, int, Array, float, float, Array], None]
"""sum_up(first, stop, away, bound, factor, out): write into ``out``, flat, ``factor`` times the sum
over the batch ``first:stop`` of the differences between the anchor and ``away`` from it, each cut
to ``bound``."""

LARGEST_CLIP = 1e20
LARGEST_QUOTIENT = 1e280  # no product with a clip, nor one with a row after it, leaves float64
# Row by row where a batch has at most FEW rows, unless batches have MANY rows on average.
FEW, MANY = 3, 8


# ---------------------------------------------------------------- sums in numpy


def sums_of_differences(
    rows: MemorySource, indices: Indices, edges: Indices, loss: Loss, anchor: Array, most: int
) -> SumUp:
    """Return how to sum up the batches of a block of steps, in numpy.

    ``most`` is the number of rows that are summed up as one block of additions.
    """
    is_grouped = rows.records.multipliers is not None
    dense = not (rows.records.is_sparse or is_grouped) and anchor.shape[1] == 1
    if dense and int(np.diff(edges).max()) <= min(most, rows.n_rows - 1):
        one_by_one = len(indices) < MANY * (len(edges) - 1)
        return _side_by_side(rows, indices, loss, anchor[:, 0], one_by_one)
    return _through_the_kernel(rows, indices, loss, anchor)


def _through_the_kernel(rows: MemorySource, indices: Indices, loss: Loss, anchor: Array) -> SumUp:
    """Any rows, by the pass that full gradients take."""

    def sum_up(first: int, stop: int, away: Array, bound: float, factor: float, out: Array) -> None:
        everyone = stop - first == rows.n_rows
        chosen = rows if everyone else rows.take(indices[first:stop])
        point = anchor + away.reshape(anchor.shape)
        total = chosen.total(clipped_gradients, loss, point, bound, anchor)
        np.multiply(total.ravel(), factor, out)

    return sum_up


def _side_by_side(
    source: MemorySource, indices: Indices, loss: Loss, anchor: Array, one_by_one: bool
) -> SumUp:
    """Dense rows and one output, copied side by side.

    A record's part is its row times its difference of residuals c, cut to ``|c| <= bound / |row|``,
    so no row adds more than ``bound``. What is not a number counts as 0, so that a null row, whose
    weight is 0, adds 0 where margins overflow, too. With a quotient of at most 1e280 and a clip of
    at most 1e20 every factor is finite.
    """
    records = source.records
    rows, targets = records.written_out(indices), records.targets[indices, 0].astype(np.float64)
    weights = None if records.weights is None else records.weights[indices]
    inverse = np.minimum(records.inverse_norms[indices], LARGEST_QUOTIENT)
    base = np.dot(rows, anchor)
    there = loss.residual(base[:, None], targets[:, None])[:, 0]
    one_by_one &= loss.kernel is not None  # other losses take arrays alone
    few, size, residual_of = FEW if one_by_one else -1, rows.shape[1], loss.residual_of_one
    if one_by_one:
        row_list = list(rows)
        bases, target_list, theres = base.tolist(), targets.tolist(), there.tolist()
        inverses = inverse.tolist()
        weight_list = None if weights is None else weights.tolist()

    def one(i: int, away: Array, bound: float) -> float:
        c: float = residual_of(bases[i] + ddot(row_list[i], away), target_list[i]) - theres[i]
        if weight_list is not None:
            c *= weight_list[i]
        if c != c:
            return 0.0
        limit: float = bound * inverses[i]
        return min(max(c, -limit), limit)

    def sum_up(first: int, stop: int, away: Array, bound: float, factor: float, out: Array) -> None:
        if stop - first <= few:
            out.fill(0.0)
            for i in range(first, stop):
                daxpy(row_list[i], out, size, one(i, away, bound) * factor)
            return
        batch = rows[first:stop]
        margins = batch.dot(away)
        margins += base[first:stop]
        column = margins[:, None]
        loss.residual(column, targets[first:stop, None], out=column)
        margins -= there[first:stop]
        if weights is not None:
            margins *= weights[first:stop]
        np.copyto(margins, 0.0, where=np.isnan(margins))
        limits = inverse[first:stop] * bound
        np.minimum(margins, limits, out=margins)
        np.maximum(margins, np.negative(limits, out=limits), out=margins)
        np.dot(margins, batch, out)
        dscal(factor, out)

    return sum_up


# ---------------------------------------------------------------- compiled steps


class DifferenceBounds(NamedTuple):
    """Bound on a difference: ``smoothness`` times the distance from the anchor, within limits."""

    clip_norm: float
    smoothness: float
    least: float


class Grid(NamedTuple):
    """Grid of a sum: cells in its bound, and whether the sum is rounded to it."""

    cells: float
    is_rounded: bool


class Move(NamedTuple):
    """Step from a sum to the next point, which is then multiplied and moved."""

    size: float
    factors: Vector
    push: Vector


class Batches(NamedTuple):
    """Row numbers of one batch after the other, where each begins and the last ends, divisors."""

    indices: Integers
    edges: Integers
    divisors: Vector


def difference_loop(
    records: Records,
    loss: Loss,
    inverse_norms: Array,
    anchor: Array,
    block_rows: int,
    bounds: DifferenceBounds,
    noise: tuple[float, Callable[[int], Array] | None],
    move: Move,
) -> "DifferenceLoop | None":
    """Return what takes the steps of an `SVRGPass`; None for what it cannot take.

    Parameters
    ----------
    records : Records
    loss : Loss
    inverse_norms : array of shape (n_rows,)
        One over the norms of rows, at most 1e280.
    anchor : array of shape (n_parameters, n_outputs)
    block_rows : int
        Rows that are added up as one block.
    bounds : DifferenceBounds
    noise : tuple
        Cells of the grid in a bound, and what draws noise in cells for a few steps, at most as many
        as are requested; None for neither noise nor rounding.
    move : Move
    """
    rows, kernel = row_arrays(records, block_rows), loss.kernel
    if rows is None or kernel is None or anchor.shape[1] != 1 or records.multipliers is not None:
        return None
    move = Move(move.size, vector(move.factors), vector(move.push))
    differences = rows, kernel, vector(inverse_norms), vector(anchor)
    return DifferenceLoop(differences, bounds, noise, move)


class DifferenceLoop:
    """Takes steps of one pass, in blocks; see :func:`difference_loop`."""

    def __init__(
        self,
        differences: tuple[RowArrays, ResidualKernel, Array, Array],
        bounds: DifferenceBounds,
        noise: tuple[float, Callable[[int], Array] | None],
        move: Move,
    ) -> None:
        self._differences, self._bounds, self._move = differences, bounds, move
        self._cells, self._draw = noise
        self._last = np.zeros(len(move.factors))
        self._no_noise = np.zeros((0, len(move.factors)))

    def take(
        self, indices: Indices, edges: Indices, divisors: list[float], away: Array, mean: Array
    ) -> bool:
        """Take the steps of a block; False if the point ran away to nan or inf.

        Parameters
        ----------
        indices, edges : array of int
            Row numbers of all batches, and where in them each begins and the last one ends.
        divisors : list of float
        away, mean : array of shape (n_parameters,)
            How far the point is from the anchor, and the sum of that over the steps: updated.
        """
        all_divisors, done = vector(np.array(divisors, np.float64)), 0
        indices, edges = _integers(indices), _integers(edges)
        fixed = *self._differences, self._bounds, Grid(self._cells, self._draw is not None)
        while done < len(divisors):
            remaining = len(divisors) - done
            drawn = self._no_noise if self._draw is None else self._draw(remaining)
            stop = done + (remaining if self._draw is None else len(drawn))
            batches = Batches(indices, edges[done : stop + 1], all_divisors[done:stop])
            varying = drawn, away, mean, self._last
            if take_difference_steps(*fixed, batches, self._move, *varying) < stop - done:
                return False
            done = stop
        return True

    def sums(self, indices: Indices) -> SumUp:
        """Return the sums that steps take, one by one, for whoever looks at every answer."""
        indices, scratch = _integers(indices), np.zeros(len(self._last))
        stay = Move(0.0, vector(np.ones(len(scratch))), vector(np.zeros(len(scratch))))

        def sum_up(
            first: int, stop: int, away: Array, bound: float, factor: float, out: Array
        ) -> None:
            fixed = DifferenceBounds(bound, math.inf, bound), Grid(self._cells, False)
            batch = Batches(indices, _integers(np.array([first, stop])), vector(np.ones(1)))
            varying = self._no_noise, away.copy(), scratch, out
            take_difference_steps(*self._differences, *fixed, batch, stay, *varying)

        return sum_up


def _integers(values: Indices) -> Indices:
    return read_only(np.ascontiguousarray(values, np.int64))


# Rows from which BLAS multiplies quicker than a loop does, its call included.
ROWS_FOR_BLAS = 8


@compiled.compile_inner(inline="always")
def _gather(rows: RowArrays, indices: Integers, tile: MatrixOut) -> None:
    """Copy rows into the tile as they count: standardised, shrunk, with their constant."""
    X, units, _, _, shrink, constant, _ = rows
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


@compiled.compile_inner(inline="always")
def _multiply(tile: Matrix, point: Vector, margins: VectorOut) -> None:
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


@compiled.compile_inner(inline="always")
def _add_rows(tile: Matrix, residuals: Vector, gradient: VectorOut, total: VectorOut) -> None:
    """Add ``tile.T @ residuals`` to the total."""
    if tile.shape[0] >= ROWS_FOR_BLAS:
        np.dot(tile.T, residuals, gradient)
        for j in range(tile.shape[1]):
            total[j] += gradient[j]
        return
    for k in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            total[j] += tile[k, j] * residuals[k]


@compiled.compile_inner(inline="always")
def _add_differences(
    rows: RowArrays,
    kernel: ResidualKernel,
    inverse_norms: Vector,
    anchor: Vector,
    indices: Integers,
    away: Vector,
    bound: float,
    work: tuple[MatrixOut, VectorOut, VectorOut, VectorOut, IntegersOut, VectorOut],
    total: VectorOut,
) -> None:
    """Add the clipped differences of a few rows between the anchor and ``away`` from it."""
    n_rows = indices.shape[0]
    space, margins, residuals, wanted, bits, gradient = work
    tile, both = space[:n_rows], 2 * n_rows
    _gather(rows, indices, tile)
    for k in range(n_rows):
        wanted[k] = wanted[n_rows + k] = rows.targets[indices[k]]
    # 1. Residuals at the anchor, and then at the point.
    _multiply(tile, anchor, margins[:n_rows])
    _multiply(tile, away, margins[n_rows:both])
    for k in range(n_rows):
        margins[n_rows + k] += margins[k]
    write_residuals(kernel, 0, wanted, margins[:both], residuals[:both], bits[:both])
    # 2. Their differences, weighted and clipped.
    for k in range(n_rows):
        i = indices[k]
        value = residuals[n_rows + k] - residuals[k]
        if rows.weights.shape[0] > 0:
            value *= rows.weights[i]
        value = 0.0 if value != value else value  # of a null row, too, whose weight is 0
        limit = bound * inverse_norms[i]
        value = value if value < limit else limit
        residuals[k] = value if value > -limit else -limit
    _add_rows(tile, residuals[:n_rows], gradient, total)


@compiled.compile_loop(over_steps=True)
def take_difference_steps(
    rows: RowArrays,
    kernel: ResidualKernel,
    inverse_norms: Vector,
    anchor: Vector,
    bounds: DifferenceBounds,
    grid: Grid,
    batches: Batches,
    move: Move,
    noise: Matrix,
    away: VectorOut,
    mean: VectorOut,
    last: VectorOut,
) -> int:
    """Take variance-reduced steps, of `SVRGPass`, until the point is not finite; return how many.

    A sum goes through no more additions than in numpy's blocks. It is clipped to the step's own
    bound, put on the step's own grid, and rounded before noise is added, which the fit's own source
    drew in numpy.

    Parameters
    ----------
    rows, kernel, inverse_norms, anchor, bounds, grid, batches, move
        As for `difference_loop`.
    noise : array of shape (n_steps, n_parameters)
        In cells. Not read unless sums are rounded.
    away, mean : array of shape (n_parameters,)
        How far the point is from the anchor, and the sum of that over the steps: updated.
    last : array of shape (n_parameters,)
        Written to: the last step's sum in cells, before rounding.
    """
    indices, edges, divisors = batches
    block_rows, n_parameters = rows.block_rows, away.shape[0]
    tile_rows = max(1, min(block_rows, 8 * TILE_NUMBERS // n_parameters))  # of 64 KiB, for BLAS
    tile, bits = np.zeros((tile_rows, n_parameters)), np.zeros(2 * tile_rows, np.int64)
    margins, residuals = np.zeros(2 * tile_rows), np.zeros(2 * tile_rows)
    work = tile, margins, residuals, np.zeros(2 * tile_rows), bits, np.zeros(n_parameters)
    total, block = np.zeros(n_parameters), np.zeros(n_parameters)
    for t in range(divisors.shape[0]):
        # 1. The bound, from points that are public.
        squares = 0.0
        for j in range(n_parameters):
            squares += away[j] * away[j]
        distance = np.sqrt(squares)
        if not distance < np.inf:
            return t
        bound = bounds.clip_norm
        if distance * bounds.smoothness < bounds.clip_norm:
            bound = max(distance * bounds.smoothness, bounds.least)
        # 2. The sum.
        total[:] = 0.0
        for first in range(edges[t], edges[t + 1], block_rows):
            end = min(first + block_rows, edges[t + 1])
            block[:] = 0.0
            for start in range(first, end, tile_rows):
                chosen = indices[start : min(start + tile_rows, end)]
                _add_differences(
                    rows, kernel, inverse_norms, anchor, chosen, away, bound, work, block
                )
            for j in range(n_parameters):
                total[j] += block[j]
        # 3. On the grid, with noise; and the step.
        scale, back = grid.cells / bound, -move.size * bound / (grid.cells * divisors[t])
        for j in range(n_parameters):
            answer = last[j] = total[j] * scale
            if grid.is_rounded:
                answer = np.rint(answer) + noise[t, j]
            away[j] = (away[j] + back * answer) * move.factors[j] + move.push[j]
            mean[j] += away[j]
    return len(divisors)
