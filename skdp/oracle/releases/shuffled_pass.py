"""One pass of noisy gradient steps over disjoint blocks of shuffled rows, as one release."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg.blas import daxpy, ddot

from skdp._numbers import Array
from skdp.accounting import DisjointPass, Event, Shuffled
from skdp.objective import Loss, Problem
from skdp.objective.losses import HUBER, LOGISTIC, ResidualKernel
from skdp.oracle import compiled
from skdp.oracle.compiled import Matrix, Vector, VectorOut, compile_loop
from skdp.oracle.kernels.clipped_gradients import clipped_gradients
from skdp.oracle.noise import NoiseSource
from skdp.oracle.releases import base
from skdp.oracle.releases.base import PublicContext
from skdp.oracle.releases.gradients import gradient_contribution
from skdp.oracle.releases.mechanisms import GaussianNoise
from skdp.oracle.releases.step_noise import StepNoise
from skdp.oracle.sources.base import ORDERED, OrderedSource, Source, require_kind
from skdp.oracle.sources.block_sizes import BLOCK_BYTES
from skdp.oracle.sources.column_map import read_only
from skdp.oracle.sources.records import Records

AT_ONCE = 4096  # rows written out, and noises drawn, at once; fewer where rows are long


# ---------------------------------------------------------------- steps on one record each


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


# ---------------------------------------------------------------- the release


@base.audited
@dataclass(frozen=True, eq=False)
class ShuffledPass(base.Release):
    """The mean of the last iterates of one pass of noisy steps, each on rows of its own.

    The rows are put in a secret, uniformly random order (a stream keeps the order of arrival) and
    cut in ``n_steps`` half-open blocks ``[n t // n_steps, n (t + 1) // n_steps)``. Step t is

        w = prox(w - step_size * (sum of the block's clipped gradients + noise) * n_steps / n),

    with ``intercept_rate`` times that step for the intercept. Everything but the rows is a number
    that is fixed here. The noisy sum of every step counts as released; points follow from these
    sums and from numbers, so the mean of the last half of the points is post-processing.

    *Sensitivity.* Under both relations a record keeps its number, and with the coins of the
    order fixed also its block: one step's sum moves, by at most ``clip_norm`` under zero-out and
    twice that under replace-one (`GradientSum`), and no other.
    *Cost.* With the coins fixed it is that of one noisy sum, by parallel composition; mixing over
    the coins cannot make it more (the hockey-stick divergence is jointly convex). That is a
    `DisjointPass`. With ``n_steps = n`` each step is a local randomiser of a single record, so that
    the secret order makes for amplification by shuffling (Feldman, McMillan, Talwar 2021, Thm 3.1):
    that is `Shuffled`, of which the smaller of both prices is charged. A stream's order
    is not secret, so it is charged as `DisjointPass`.
    *Rounding.* Sums are put on a grid, and noise is a multiple of that grid, added exactly: see
    `GaussianNoise`, and `StepNoise` for steps on one record. Nothing enters a point that
    is not on the grid and has its noise. That holds in the compiled loop, too, which takes many
    steps on one record each in one call (`skdp.oracle.compiled`).

    Parameters
    ----------
    n_steps : int
        From 1 to the number of rows.
    step_size : float
        Positive.
    clip_norm : float
        L2 bound of one record's gradient, from 1e-100 to 1e100.
    mechanism : GaussianNoise, default=GaussianNoise()
        The noise of each step.
    tail : float, default=0.5
        Share of the points, the last ones, whose mean is returned; 0 for the last one alone.
    intercept_rate : float, default=1.0
        Step of the intercept, the last row of a point, next to ``step_size``; positive, at most 1.
    """

    n_steps: base.Integer
    step_size: base.Positive
    clip_norm: base.Bound
    mechanism: GaussianNoise = field(default_factory=GaussianNoise)
    tail: float = 0.5
    intercept_rate: float = 1.0
    kind: ClassVar[str] = "shuffled_pass"
    needs: ClassVar[frozenset[str]] = frozenset({ORDERED})
    takes_groups: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "tail", float(self.tail))
        if self.n_steps < 1 or not 0 <= self.tail <= 1:
            raise ValueError(
                "ShuffledPass: n_steps must be at least 1 and tail lie in [0, 1]; got "
                f"{self.n_steps!r}, {self.tail!r}."
            )
        if not 0 < self.intercept_rate <= 1:
            raise ValueError(
                "ShuffledPass: intercept_rate must be a number in (0, 1]; got "
                f"{self.intercept_rate!r}."
            )

    def parts(self) -> tuple[object, ...]:
        return (self.mechanism,)

    # ------------------------------------------------------------------ the cost

    def _require(self, context: PublicContext) -> None:
        if self.n_steps > context.public.n_rows:
            raise ValueError(
                f"ShuffledPass: {self.n_steps} steps need as many rows; there are "
                f"{context.public.n_rows}. Nothing was released."
            )

    def _most(self, context: PublicContext) -> int:
        return -(-context.public.n_rows // self.n_steps)

    def _contribution(self, context: PublicContext) -> base.Contribution:
        return gradient_contribution(self.clip_norm, context, self._most(context))

    def event(self, context: PublicContext) -> Event:
        self._require(context)
        step = self.mechanism.event(spread=2.0)
        if self.n_steps == context.public.n_rows and not context.public.streamed:
            return Shuffled(self.n_steps, step)
        return DisjointPass(self.n_steps, step)

    def std(self, context: PublicContext) -> float:
        """Return the standard deviation of the noise on one step's sum, in each coordinate."""
        self._require(context)
        return StepNoise(self.mechanism, self._contribution(context), context.scale).std

    # ------------------------------------------------------------------ the pass

    def answer(self, source: Source, context: PublicContext, noise_source: NoiseSource) -> Array:
        rows = require_kind(source, OrderedSource)
        result = (rows.n_rows, rows.arrives_in_order)
        if result != (context.public.n_rows, context.public.streamed):
            raise ValueError(
                "ShuffledPass: the rows are not as the public facts say, (n_rows, streamed) = "
                f"{(context.public.n_rows, context.public.streamed)}; got {result}."
            )
        alone = self.n_steps == context.public.n_rows and context.public.n_outputs == 1
        alone &= not context.public.grouped  # a group has several rows
        steps = self._one_by_one if alone else self._in_batches
        return steps(rows, context, noise_source)

    def _first_kept(self) -> int:
        """Return the number, from 0, of the first step whose point is in the mean."""
        return self.n_steps - max(1, math.ceil(self.tail * self.n_steps))

    def _rate(self, context: PublicContext) -> float:
        """Return the factor on the step of the last parameter: 1 unless it is the intercept."""
        return self.intercept_rate if context.public.has_intercept else 1.0

    def _in_batches(
        self, rows: OrderedSource, context: PublicContext, noise_source: NoiseSource
    ) -> Array:
        n_rows, n_steps = context.public.n_rows, self.n_steps
        edges = (n_rows * t // n_steps for t in range(n_steps + 1))
        contribution = self._contribution(context)
        factors = np.full((context.public.n_parameters, 1), self.step_size * n_steps)
        factors /= context.public.total_weight
        factors[-1] *= self._rate(context)
        point = context.public.starting_point
        total, first = np.zeros_like(point), self._first_kept()
        for step, block in enumerate(rows.one_pass(edges, noise_source, in_order=False)):
            # 1. The block's sum, enforced and with noise.
            loss = context.problem.loss
            result = block.total(clipped_gradients, loss, point, self.clip_norm)
            noisy = self.mechanism.add_noise(result, contribution, context.scale, noise_source)
            # 2. From here on it is post-processing.
            point = context.problem.prox(point - factors * noisy, self.step_size)
            if step >= first:
                total += point
        return total / (n_steps - first)

    def _one_by_one(
        self, rows: OrderedSource, context: PublicContext, noise_source: NoiseSource
    ) -> Array:
        """Return what `_in_batches` would: the same steps, in a microsecond or two each."""
        n_rows, (size, _) = context.public.n_rows, context.public.shape
        noise = StepNoise(self.mechanism, self._contribution(context), context.scale)
        problem, step, first = context.problem, 0, self._first_kept()
        factors = _prox_factors(problem, size, self.step_size)
        multiplies = factors is not None and problem.loss.kernel is not None
        step_size = self.step_size / context.public.mean_weight
        held_back = step_size * (1 - self._rate(context))
        move = SingleMove(-step_size, held_back, np.ones(size) if factors is None else factors)
        steps = SingleSteps(
            problem.loss,
            noise.shift,
            move,
            _prox_of_one(problem, factors, self.step_size),
            noise.adder(noise_source),
            is_compiled=multiplies and compiled.takes_steps(n_rows, 1, size),
            is_watched=noise_source.keeps_record,
        )
        at_once = max(1, min(AT_ONCE, BLOCK_BYTES // (8 * size)))
        edges = [*range(0, n_rows, at_once), n_rows]
        point, total = context.public.starting_point[:, 0].copy(), np.zeros(size)
        for block in rows.one_pass(edges, noise_source, in_order=True):
            singles = SingleRows.of(block.records, self.clip_norm)
            noises = noise.draw(block.n_rows, noise_source)
            point = steps.take(singles, noises, max(0, first - step), point, total)
            step += block.n_rows
        return (total / (n_rows - first))[:, None]

    def placeholder(self, context: PublicContext, rng: np.random.Generator) -> Array:
        # As far as a single step goes: enough to move a solver.
        noise = rng.standard_normal(context.public.shape)
        push = self.step_size * self.clip_norm / (self._most(context) * math.sqrt(noise.size))
        return context.problem.prox(push * noise, self.step_size)


def _prox_factors(problem: Problem, size: int, step: float) -> Array | None:
    """Return what the problem's prox multiplies by; None if it does anything else."""
    if problem.penalty.prox_scales and "unconstrained" in problem.provides:
        return problem.prox(np.ones((size, 1)), step)[:, 0].copy()
    return None


def _prox_of_one(
    problem: Problem, factors: Array | None, step: float
) -> Callable[[Array], Array] | None:
    """Return the problem's prox for a vector; None if it changes nothing."""
    if factors is None:
        return lambda point: problem.prox(point[:, None], step)[:, 0]
    if (factors == 1).all():
        return None
    return lambda point: np.multiply(point, factors, out=point)
