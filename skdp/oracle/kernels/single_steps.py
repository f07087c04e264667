"""Take gradient steps on one record each, in numpy and compiled."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import daxpy, ddot

from skdp._numbers import Array
from skdp.objective import Loss
from skdp.objective.losses import HUBER, LOGISTIC, ResidualKernel
from skdp.oracle.compiled import Matrix, Vector, VectorOut, compile_loop
from skdp.oracle.sources.column_map import read_only
from skdp.oracle.sources.records import Records


class SingleRows(NamedTuple):
    """Records, one by one.

    Attributes
    ----------
    rows : array of shape (n_rows, n_parameters)
        As they count, with their constant.
    targets, weights : array of shape (n_rows,)
    limits : array of shape (n_rows,)
        The most that weighted residuals may be in absolute value for gradients to keep to the
        clipping norm; finite.
    """

    rows: Matrix
    targets: Vector
    weights: Vector
    limits: Vector

    @classmethod
    def of(cls, records: Records, clip_norm: float) -> "SingleRows":
        """Return the records, whose gradients are to be clipped to this norm."""
        with np.errstate(over="ignore", under="ignore"):
            limits = np.minimum(clip_norm * records.inverse_norms, np.finfo(np.float64).max)
        weights = np.ones(records.n_rows) if records.weights is None else records.weights
        targets = records.targets[:, 0].astype(np.float64)
        vectors = records.written_out(), targets, np.asarray(weights, np.float64), limits
        return cls(*map(read_only, vectors))


class SingleMove(NamedTuple):
    """Step from an answer to the next point.

    Attributes
    ----------
    rate : float
        Factor on answers, minus the size of a step.
    held_back : float
        What is added of the answer's last entry, so that the intercept moves less.
    factors : array of shape (n_parameters,)
        What the prox multiplies by.
    """

    rate: float
    held_back: float
    factors: Vector


@dataclass(frozen=True)
class SingleSteps:
    """The steps of a `ShuffledPass` on one record each.

    Attributes
    ----------
    loss : Loss
    shift : float
        What a gradient is added to so that it comes out rounded to the grid: see `StepNoise`.
    move : SingleMove
    prox : callable or None
        The prox of the problem for a vector; None if it changes nothing.
    add_noise : callable
        Adds a step's noise to its gradient plus ``shift``.
    is_compiled : bool
        Whether the compiled loop takes the steps; it ignores ``prox``.
    is_watched : bool
        Whether ``add_noise`` is to see each answer.
    """

    loss: Loss
    shift: float
    move: SingleMove
    prox: Callable[[Array], Array] | None
    add_noise: Callable[[Array, Array], Array]
    is_compiled: bool
    is_watched: bool

    def take(
        self, singles: SingleRows, noises: Array, n_ahead: int, point: Array, total: Array
    ) -> Array:
        """Take steps, from ``point`` on, and return the last point.

        Parameters
        ----------
        singles : SingleRows
        noises : array of shape (n_rows, n_parameters)
            From `StepNoise.draw`.
        n_ahead : int
            Steps before the first one whose point is added to the total.
        point, total : array of shape (n_parameters,)
            Updated.
        """
        if self.is_compiled and not self.is_watched:
            self._take_compiled(singles, noises, self.move, n_ahead, point, total)
            return point
        residual_of, prox, add_noise = self.loss.residual_of_one, self.prox, self.add_noise
        (n_rows, size), (rate, held_back, _) = singles.rows.shape, self.move
        lists = (numbers.tolist() for numbers in singles[1:])
        shifted = np.full((n_rows, size), self.shift)
        for step, (row, target, weight, limit, answer, drawn) in enumerate(
            zip(singles.rows, *lists, shifted, noises, strict=True)
        ):
            if self.is_compiled:
                self._compiled_sum(singles, step, point, answer)
            else:
                # 1. The residual, weighted and clipped; what is not a number counts as 0.
                clipped = weight * residual_of(ddot(row, point), target)
                if not -limit <= clipped <= limit:
                    clipped = limit if clipped > limit else -limit if clipped < -limit else 0.0
                # 2. The gradient, on the grid, and then its noise; exact from here on.
                daxpy(row, answer, size, clipped)
            add_noise(answer, drawn)
            # 3. Post-processing.
            daxpy(answer, point, size, rate)
            if held_back:
                point[-1] += held_back * answer[-1]
            if prox is not None:
                point = prox(point)
            if step >= n_ahead:
                daxpy(point, total)
        return point

    def _take_compiled(
        self,
        singles: SingleRows,
        noises: Array,
        move: SingleMove,
        n_ahead: int,
        point: Array,
        total: Array,
    ) -> Array:
        """Take steps in the compiled loop; return the last gradient plus shift, without noise."""
        last, kernel = np.zeros(len(point)), self.loss.kernel
        assert kernel is not None
        move = move._replace(factors=read_only(move.factors))
        take_single_steps(singles, noises, self.shift, kernel, move, n_ahead, point, total, last)
        return last

    def _compiled_sum(self, singles: SingleRows, step: int, point: Array, out: Array) -> None:
        """Write what the compiled loop adds noise to in a step."""
        one = SingleRows(*(values[step : step + 1] for values in singles))
        stay = SingleMove(0.0, 0.0, np.ones(len(point)))
        noise, total = np.zeros((1, len(point))), np.zeros(len(point))
        out[:] = self._take_compiled(one, noise, stay, 1, point.copy(), total)


@compile_loop(over_steps=True)
def take_single_steps(
    singles: SingleRows,
    noise: Matrix,
    shift: float,
    kernel: ResidualKernel,
    move: SingleMove,
    n_ahead: int,
    point: VectorOut,
    total: VectorOut,
    last: VectorOut,
) -> None:
    """Take steps on one record each; parameters as for `SingleSteps.take`.

    ``last`` is written to: the last step's gradient plus ``shift``, without noise.
    """
    rows, targets, weights, limits = singles
    n_rows, n_parameters = rows.shape
    for i in range(n_rows):
        margin = 0.0
        for j in range(n_parameters):
            margin += rows[i, j] * point[j]
        if kernel.code == LOGISTIC:
            residual = 1.0 / (1.0 + np.exp(-margin)) - targets[i]
        else:
            residual = margin - targets[i]
            if kernel.code == HUBER:
                residual = min(max(residual, -kernel.bound), kernel.bound)
        # What is not a number counts as 0.
        clipped = weights[i] * residual
        clipped = 0.0 if margin != margin or clipped != clipped else clipped
        clipped = limits[i] if clipped > limits[i] else clipped
        clipped = -limits[i] if clipped < -limits[i] else clipped
        answer = 0.0
        for j in range(n_parameters):
            last[j] = shift + rows[i, j] * clipped  # on the grid
            answer = last[j] + noise[i, j]
            point[j] += move.rate * answer
        point[n_parameters - 1] += move.held_back * answer
        for j in range(n_parameters):
            point[j] *= move.factors[j]
            if i >= n_ahead:
                total[j] += point[j]
