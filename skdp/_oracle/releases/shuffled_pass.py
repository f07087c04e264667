"""One pass of noisy gradient steps on single, shuffled rows, as one release."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skdp._numbers import Array
from skdp._oracle.noise import NoiseSource
from skdp._oracle.public import Public
from skdp._oracle.releases import base
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.releases.gradients import GradientSum
from skdp._oracle.releases.mechanisms import GaussianNoise
from skdp._oracle.sources.base import ADDRESSABLE, Source, require_kind
from skdp._oracle.sources.memory import MemorySource
from skdp._oracle.sources.records import Records
from skdp._oracle.sources.row_blocks import BLOCK_BYTES
from skdp.accounting import Event, Shuffled

AT_ONCE = 4096  # rows written out, and noises drawn, at once; fewer where rows are long


@base.audited
@dataclass(frozen=True, eq=False)
class ShuffledPass(base.Release):
    """The mean of the last iterates of one pass of noisy steps, each on one record.

    The records are put in a secret, uniformly random order. Step t is

        w = prox(w - step_size * (the clipped gradient of record t + noise) / mean weight),

    with ``intercept_rate`` times that step for the intercept. Everything but the rows is a number
    that is fixed here. The noisy gradient of every step counts as released. Points follow from
    these gradients and from numbers, so the mean of the last points is post-processing.

    *Sensitivity.* Under both relations a record keeps its number, and with the coins of the order
    fixed also its place: one step's gradient moves, by at most ``clip_norm`` under zero-out and
    twice that under replace-one (`GradientSum`), and no other. *Cost.* Each step is a local
    randomiser of a single record, so the secret order amplifies privacy by shuffling
    (Feldman, McMillan, Talwar 2021, Thm 3.1): that is `Shuffled`. The cost of a single step
    (parallel composition, with the coins fixed) is charged if it is smaller.
    *Rounding.* Sums are put on a grid, and noise is a multiple of that grid, added exactly: see
    `GaussianNoise`. Nothing enters a point that is not on the grid and has its noise.

    Parameters
    ----------
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

    step_size: base.Positive
    clip_norm: base.Bound
    mechanism: GaussianNoise = field(default_factory=GaussianNoise)
    tail: float = 0.5
    intercept_rate: float = 1.0
    kind: ClassVar[str] = "shuffled_pass"
    needs: ClassVar[frozenset[str]] = frozenset({ADDRESSABLE})

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "tail", float(self.tail))
        if not 0 <= self.tail <= 1:
            raise ValueError(f"ShuffledPass: tail must lie in [0, 1], got {self.tail!r}.")
        if not 0 < self.intercept_rate <= 1:
            raise ValueError(
                "ShuffledPass: intercept_rate must be a number in (0, 1], got "
                f"{self.intercept_rate!r}."
            )

    def parts(self) -> tuple[object, ...]:
        return (self.mechanism,)

    # ------------------------------------------------------------------ the cost

    def _contribution(self, context: PublicContext) -> base.Contribution:
        gradients = GradientSum(context.public.starting_point, self.clip_norm)
        return gradients.contribution(context, 1)

    def event(self, context: PublicContext) -> Event:
        if not self.serves(context.public):
            raise ValueError(
                "ShuffledPass: it is for one target of ungrouped records in memory, without "
                "offsets. Nothing was released."
            )
        return Shuffled(context.public.n_rows, self.mechanism.event(spread=2.0))

    @staticmethod
    def serves(public: Public) -> bool:
        """Whether steps on single records can be taken: an order of arrival is not secret."""
        several = public.n_outputs > 1 or public.grouped or public.has_offset
        return not (several or public.streamed)

    def std(self, context: PublicContext) -> float:
        """Return the standard deviation of the noise on one step, in each coordinate."""
        return self.mechanism.std(self._contribution(context), context.scale)

    # ------------------------------------------------------------------ the pass

    def answer(self, source: Source, context: PublicContext, noise_source: NoiseSource) -> Array:
        rows = require_kind(source, MemorySource)
        if rows.n_rows != context.public.n_rows:
            raise ValueError(
                f"ShuffledPass: there are {rows.n_rows} rows, and {context.public.n_rows} in the "
                "public facts."
            )
        problem, contribution = context.problem, self._contribution(context)
        n_rows, (size, _) = context.public.n_rows, context.public.shape
        residual_of, keeps_record = problem.loss.residual_of_one, noise_source.keeps_record
        event = self.mechanism.event(contribution.spread), contribution.bound, self.std(context)
        rates = np.full(size, self.step_size / context.public.mean_weight)
        if context.public.has_intercept:
            rates[-1] *= self.intercept_rate
        factors = None  # of a prox that multiplies
        if problem.penalty.smooth and "unconstrained" in problem.provides:
            factors = problem.prox(np.ones((size, 1)), self.step_size)[:, 0]
        point, kept = context.public.starting_point[:, 0], max(1, math.ceil(self.tail * n_rows))
        total, remaining = np.zeros(size), n_rows
        at_once = max(1, min(AT_ONCE, BLOCK_BYTES // (8 * size)))
        for block in rows.one_by_one(at_once, noise_source):
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
        push = self.step_size * self.clip_norm / math.sqrt(noise.size)
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
