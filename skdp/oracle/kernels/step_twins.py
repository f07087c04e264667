"""Compiled twins of passes of many small steps: they hand arrays to `skdp.oracle.step_loops`.

Imported where `skdp.oracle.compiled.step_twins` says so, by public facts.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from skdp._numbers import Array, Indices
from skdp.objective import Huber, Loss
from skdp.oracle import step_loops
from skdp.oracle.kernels.twins import LOSSES, are_plain, column_numbers, vector
from skdp.oracle.sources.records import Records


def difference_loop(
    records: Records,
    loss: Loss,
    inverse_norms: Array,
    anchor: Array,
    block_rows: int,
    bounds: tuple[float, float | None, float],
    noise: tuple[float, Callable[[int], Array] | None],
    step: tuple[float, Array, Array],
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
    bounds : tuple
        The clip, the smoothness or None, and the least bound.
    noise : tuple
        Cells of the grid in a bound, and what draws noise in cells for a few steps, at most as many
        as it is asked for; None for neither noise nor rounding.
    step : tuple
        Its size, and what a point is multiplied by and moved by afterwards.
    """
    units, kind = column_numbers(records.columns), type(loss)
    if not are_plain(records) or units is None or anchor.shape[1] != 1 or kind not in LOSSES:
        return None
    rows = [
        records.stored,
        *units,
        vector(records.targets),
        vector(records.weights),
        vector(records.shrink),
        vector(inverse_norms),
        LOSSES[kind],
        loss.threshold if isinstance(loss, Huber) else math.inf,
        float(records.constant),
        vector(anchor),
        block_rows,
    ]
    clip_norm, smoothness, least = bounds
    steepest = math.inf if smoothness is None else float(smoothness)
    return DifferenceLoop(rows, (float(clip_norm), steepest, float(least)), noise, step)


class DifferenceLoop:
    """Takes steps of one pass, in blocks; see :func:`difference_loop`."""

    def __init__(
        self,
        rows: list[Any],
        bounds: tuple[float, float, float],
        noise: tuple[float, Callable[[int], Array] | None],
        step: tuple[float, Array, Array],
    ) -> None:
        self._rows, self._bounds = rows, bounds
        self._cells, self._draw = noise
        self._step = step[0], vector(step[1]), vector(step[2])
        self._last, self._nothing = np.zeros(len(step[1])), np.zeros((0, len(step[1])))

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
        shares, done = np.array(divisors, np.float64), 0
        indices, edges = (np.ascontiguousarray(one, np.int64) for one in (indices, edges))
        fixed = [*self._rows, *self._bounds, self._cells, self._draw is not None]
        while done < len(shares):
            left = len(shares) - done
            drawn = self._nothing if self._draw is None else self._draw(left)
            stop = done + (left if self._draw is None else len(drawn))
            batches = indices, edges[done : stop + 1], shares[done:stop]
            arguments = [*fixed, *batches, *self._step, drawn, away, mean, self._last]
            if step_loops.take_difference_steps(*arguments) < stop - done:
                return False
            done = stop
        return True

    def sums(self, indices: Indices) -> Callable[..., None]:
        """Return the sums that steps take, one by one, for whoever looks at every answer.

        It is called as `skdp.oracle.releases.difference_steps.SumUp` is.
        """
        indices, scratch = np.ascontiguousarray(indices, np.int64), np.zeros(len(self._last))
        stay = 0.0, np.ones(len(scratch)), np.zeros(len(scratch))

        def sum_up(
            first: int, stop: int, away: Array, bound: float, factor: float, out: Array
        ) -> None:
            fixed = [*self._rows, bound, math.inf, bound, self._cells, False]
            batch = indices, np.array([first, stop], np.int64), np.ones(1)
            arguments = [*fixed, *batch, *stay, self._nothing, away.copy(), scratch, out]
            step_loops.take_difference_steps(*arguments)

        return sum_up


Singles = tuple[Array, Array, Array, Array]
"""Rows, targets, weights and limits."""


def single_steps(
    loss: Loss,
    singles: Singles,
    noises: Array,
    shift: float,
    step: tuple[float, float, Array],
    n_ahead: int,
    point: Array,
    total: Array,
) -> None:
    """Take steps of a `ShuffledPass` on one record each.

    Parameters
    ----------
    loss : Loss
        One of ``LOSSES``.
    singles : tuple of arrays
    noises : array of shape (n_rows, n_parameters)
        From `StepNoise.draw`.
    shift : float
        Of `StepNoise`.
    step : tuple
        Factor on answers; what is to be added of that of the intercept; what points are multiplied
        by.
    n_ahead : int
        Steps before the first one whose point is added to the total.
    point, total : array of shape (n_parameters,)
        Updated.
    """
    threshold = loss.threshold if isinstance(loss, Huber) else math.inf
    facts = shift, LOSSES[type(loss)], threshold, *step, n_ahead
    step_loops.take_single_steps(*singles, noises, *facts, point, total, np.zeros(len(point)))


def single_sum(
    loss: Loss, singles: Singles, place: int, point: Array, shift: float, out: Array
) -> None:
    """Write what a step of `single_steps` takes, before its noise, for whoever looks at it."""
    one = [values[place : place + 1] for values in singles]
    threshold = loss.threshold if isinstance(loss, Huber) else math.inf
    noise, facts = np.zeros((1, len(point))), (shift, LOSSES[type(loss)], threshold)
    unmoved, vectors = (0.0, 0.0, np.ones(len(point)), 1), (point.copy(), np.zeros(len(point)), out)
    arguments: list[Any] = [*one, noise, *facts, *unmoved, *vectors]
    step_loops.take_single_steps(*arguments)
