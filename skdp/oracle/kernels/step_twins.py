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

DifferenceLoop = Callable[[Indices, Indices, list[float], Array, Array], bool]


def difference_loop(
    records: Records,
    loss: Loss,
    inverse_norms: Array,
    anchor: Array,
    block_rows: int,
    bounds: tuple[float, float | None, float],
    noise: tuple[float, Callable[[int], Array] | None],
    step: tuple[float, Array, Array],
) -> DifferenceLoop | None:
    """Return what takes the steps of an `SVRGPass`, those of a block in one call.

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

    Returns
    -------
    callable or None
        None for records or losses that it cannot take. It gets row numbers, the edges of batches in
        them, divisors, and the vectors to update: how far the point is from the anchor, and the sum
        of that over the steps. It returns whether that was a finite distance all along.
    """
    units, kind = column_numbers(records.columns), type(loss)
    if not are_plain(records) or units is None or anchor.shape[1] != 1 or kind not in LOSSES:
        return None
    clip_norm, smoothness, least = bounds
    cells, draw = noise
    fixed: list[Any] = [
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
        float(clip_norm),
        math.inf if smoothness is None else float(smoothness),
        float(least),
        cells,
        draw is not None,
    ]
    size, factors, push = step[0], vector(step[1]), vector(step[2])

    def take(
        indices: Indices, edges: Indices, divisors: list[float], away: Array, mean: Array
    ) -> bool:
        shares, done = np.array(divisors, np.float64), 0
        indices, edges = (np.ascontiguousarray(one, np.int64) for one in (indices, edges))
        while done < len(shares):
            drawn = np.zeros((0, away.size)) if draw is None else draw(len(shares) - done)
            stop = len(shares) if draw is None else done + len(drawn)
            batches = [indices, edges[done : stop + 1], shares[done:stop]]
            arguments = [*fixed, *batches, size, factors, push, drawn, away, mean]
            taken = step_loops.take_difference_steps(*arguments)
            if taken < stop - done:
                return False
            done = stop
        return True

    return take


def single_steps(
    loss: Loss,
    singles: tuple[Array, Array, Array, Array],
    noises: Array,
    shift: float,
    step: tuple[float, float, Array],
    n_ahead: int,
    point: Array,
    total: Array,
) -> bool:
    """Take steps of a `ShuffledPass` on one record each; False if none was, for some other loss.

    Parameters
    ----------
    loss : Loss
    singles : tuple of arrays
        Rows, targets, weights and limits.
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
    if type(loss) not in LOSSES:
        return False
    step_loops.take_single_steps(
        *singles,
        noises,
        shift,
        LOSSES[type(loss)],
        loss.threshold if isinstance(loss, Huber) else math.inf,
        *step,
        n_ahead,
        point,
        total,
    )
    return True
