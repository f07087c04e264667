"""One pass of noisy gradient steps over disjoint blocks of shuffled rows, as one release."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skdp._numbers import Array
from skdp._oracle.kernels.clipped_gradients import clipped_gradients
from skdp._oracle.noise import NoiseSource
from skdp._oracle.releases import base
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.releases.gradients import GradientSum
from skdp._oracle.releases.mechanisms import GaussianNoise
from skdp._oracle.sources.base import ORDERED, OrderedSource, Source, require_kind
from skdp._oracle.sources.records import Records
from skdp._oracle.sources.row_blocks import BLOCK_BYTES
from skdp.accounting import DisjointPass, Event, Shuffled

AT_ONCE = 4096  # rows written out, and noises drawn, at once; fewer where rows are long


@base.audited
@dataclass(frozen=True, eq=False)
class ShuffledPass(base.Release):
    """The mean of the last iterates of one pass of noisy steps, each on rows of its own.

    The rows are put in a secret, uniformly random order (a stream keeps the order of arrival) and
    cut in ``n_steps`` half-open blocks ``[n t // n_steps, n (t + 1) // n_steps)``. Step t is

        w = prox(w - step_size * (sum of the block's clipped gradients + noise) * n_steps / n),

    with ``intercept_rate`` times that step for the intercept. Everything but the rows is a number
    that is fixed here. The noisy sum of every step counts as released. Points follow from these
    sums and from numbers, so the mean of the last half of the points is post-processing.

    *Sensitivity.* Under both relations a record keeps its number, and with the coins of the order
    fixed also its block: one step's sum moves, by at most ``clip_norm`` under zero-out and twice
    that under replace-one (`GradientSum`), and no other. *Cost.* With the coins fixed it is that of
    one noisy sum, by parallel composition. Mixing over the coins cannot make it more (the
    hockey-stick divergence is jointly convex). That is a `DisjointPass`. With ``n_steps = n`` each
    step is a local randomiser of a single record, so that the secret order makes for amplification
    by shuffling (Feldman, McMillan, Talwar 2021, Thm 3.1): that is `Shuffled`, of which the smaller
    of both prices is charged. A stream's order is not secret, so it is charged as `DisjointPass`.
    *Rounding.* Sums are put on a grid, and noise is a multiple of that grid, added exactly: see
    `GaussianNoise`. Nothing enters a point that is not on the grid and has its noise.

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
        Share of the points, the last ones, whose mean is returned. 0 for only the last point.
    intercept_rate : float, default=1.0
        Step of the intercept, the last row of a point, next to ``step_size``, positive, at most 1.
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
                "ShuffledPass: n_steps must be at least 1 and tail lie in [0, 1], got "
                f"{self.n_steps!r}, {self.tail!r}."
            )
        if not 0 < self.intercept_rate <= 1:
            raise ValueError(
                "ShuffledPass: intercept_rate must be a number in (0, 1], got "
                f"{self.intercept_rate!r}."
            )

    def parts(self) -> tuple[object, ...]:
        return (self.mechanism,)

    # ------------------------------------------------------------------ the cost

    def _require(self, context: PublicContext) -> None:
        if self.n_steps > context.public.n_rows:
            raise ValueError(
                f"ShuffledPass: {self.n_steps} steps need as many rows. There are "
                f"{context.public.n_rows}. Nothing was released."
            )

    def _most(self, context: PublicContext) -> int:
        return -(-context.public.n_rows // self.n_steps)

    def _contribution(self, context: PublicContext) -> base.Contribution:
        gradients = GradientSum(context.public.starting_point, self.clip_norm)
        return gradients.contribution(context, self._most(context))

    def event(self, context: PublicContext) -> Event:
        self._require(context)
        step = self.mechanism.event(spread=2.0)
        if self.n_steps == context.public.n_rows and not context.public.streamed:
            return Shuffled(self.n_steps, step)
        return DisjointPass(self.n_steps, step)

    def std(self, context: PublicContext) -> float:
        """Return the standard deviation of the noise on one step's sum, in each coordinate."""
        self._require(context)
        return self.mechanism.std(self._contribution(context), context.scale)

    # ------------------------------------------------------------------ the pass

    def answer(self, source: Source, context: PublicContext, noise_source: NoiseSource) -> Array:
        rows = require_kind(source, OrderedSource)
        result = (rows.n_rows, rows.arrives_in_order)
        if result != (context.public.n_rows, context.public.streamed):
            raise ValueError(
                "ShuffledPass: the rows are not as the public facts say, (n_rows, streamed) = "
                f"{(context.public.n_rows, context.public.streamed)}, got {result}."
            )
        alone = self.n_steps == context.public.n_rows and context.public.n_outputs == 1
        # A group has several rows. An offset is beside the target of a row.
        alone &= not (context.public.grouped or context.public.has_offset)
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
        """Return what `_in_batches` would: the same steps, in a few microseconds each."""
        problem, contribution = context.problem, self._contribution(context)
        n_rows, (size, _) = context.public.n_rows, context.public.shape
        residual_of, keeps_record = problem.loss.residual_of_one, noise_source.keeps_record
        event = self.mechanism.event(contribution.spread), contribution.bound, self.std(context)
        rates = np.full(size, self.step_size / context.public.mean_weight)
        rates[-1] *= self._rate(context)
        factors = None  # of a prox that multiplies
        if problem.penalty.smooth and "unconstrained" in problem.provides:
            factors = problem.prox(np.ones((size, 1)), self.step_size)[:, 0]
        point, kept = context.public.starting_point[:, 0], n_rows - self._first_kept()
        total, remaining = np.zeros(size), n_rows
        at_once = max(1, min(AT_ONCE, BLOCK_BYTES // (8 * size)))
        edges = [*range(0, n_rows, at_once), n_rows]
        for block in rows.one_pass(edges, noise_source, in_order=True):
            singles = _single_records(block.records, self.clip_norm)
            grid, noises = 0.0, np.empty((block.n_rows, 0))
            if context.scale:
                shape = block.n_rows, size
                grid, noises = self.mechanism.draw(contribution, context.scale, noise_source, shape)
            for (row, target, weight, limit), noise in zip(singles, noises, strict=True):
                # 1. The gradient, its residual weighted and clipped. What is no number counts as 0.
                residual = weight * residual_of(row.dot(point), target)
                if not -limit <= residual <= limit:
                    residual = limit if residual > limit else -limit if residual < -limit else 0.0
                gradient = answer = row * residual
                # 2. Its noise, as `Mechanism.noisy` adds it.
                if grid:
                    answer = grid * (np.rint(gradient / grid) + noise)
                if keeps_record:
                    answer = noise_source.record_answer(answer, gradient, *event)
                # 3. From here on it is post-processing.
                point = point - rates * answer
                if factors is None:
                    point = problem.prox(point[:, None], self.step_size)[:, 0]
                else:
                    point *= factors
                if remaining <= kept:
                    total += point
                remaining -= 1
        return (total / kept)[:, None]

    def placeholder(self, context: PublicContext, rng: np.random.Generator) -> Array:
        # As far as a single step goes: enough to move a solver.
        noise = rng.standard_normal(context.public.shape)
        push = self.step_size * self.clip_norm / (self._most(context) * math.sqrt(noise.size))
        return context.problem.prox(push * noise, self.step_size)


def _single_records(
    records: Records, clip_norm: float
) -> Iterator[tuple[Array, float, float, float]]:
    """Yield each row, its target and weight, and the limit that keeps its gradient to a norm."""
    with np.errstate(over="ignore", under="ignore"):
        limits = np.minimum(clip_norm * records.inverse_norms, np.finfo(np.float64).max)
    weights = np.ones(records.n_rows) if records.weights is None else records.weights
    targets = records.targets[:, 0].astype(np.float64)
    return zip(
        records.written_out(), targets.tolist(), weights.tolist(), limits.tolist(), strict=True
    )
