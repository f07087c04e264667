"""An epoch of variance-reduced steps, run behind the boundary as one release."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.linalg.blas import daxpy, ddot, dscal

from skdp._numbers import Array
from skdp.accounting import Composed, Event
from skdp.objective import Problem, Unconstrained
from skdp.oracle import compiled
from skdp.oracle.kernels import difference_steps
from skdp.oracle.noise import NoiseSource
from skdp.oracle.releases import base, gradients
from skdp.oracle.releases.mechanisms import GaussianNoise, NoisyStatistic
from skdp.oracle.releases.samplers import ALL_ROWS, AllRows, IndexSampler, batches_in_blocks
from skdp.oracle.releases.step_noise import VaryingNoise
from skdp.oracle.sources.base import ADDRESSABLE, Source, require_kind
from skdp.oracle.sources.block_sizes import block_rows
from skdp.oracle.sources.memory import MemorySource

DIVERGED = (
    "the solver diverged: its parameter holds nan or inf. Lower learning_rate. The budget of this "
    "fit is spent."
)


@base.audited
@dataclass(frozen=True, eq=False)
class SVRGPass(base.Release):
    """Noisy variance-reduced proximal steps from ``start``; the last iterate and the mean of all.

    With w~ the ``anchor`` and g~ the noisy mean gradient there, step t draws a batch of b rows, in
    expectation, and goes

        v = (D(w) + noise) / b + g~,        w = prox(w - step_sizes[t] * v),

    where D(w) is the sum over the batch of `GradientDifference` between w and w~.

    *Cost.* D(w) is released with noise of ``mechanism.relative_noise * scale`` times the bound on
    one record's part at w, for which `GradientDifference` and `VaryingNoise` have the proofs. All
    else in a step is a function of numbers fixed beforehand and of noisy answers: w, its distance
    from w~, hence the next bound and grid, the prox. (A ``slope`` is one of the numbers: whatever
    it is, the bound is enforced on every record.) So the pass is an adaptive composition of
    ``n_steps`` Gaussian mechanisms, each seen through its sampler, and its event is the
    composition of theirs; that every noisy answer is shown is what is charged, though two points
    alone are. The noise *multiplier* of a step is fixed although its bound is not, so the event
    depends on nothing that happens in the pass: composition theorems for fixed multipliers allow
    for mechanisms, here bounds, chosen from earlier answers (Dong, Roth, Su 2019, Thm 3.2; Mironov
    2017, Prop. 1).

    If ``snapshot`` is a release rather than its answer, every step uses a fresh answer of it, as
    Wang, Ye, Xu (2017) print it; ``n_steps`` of them are in the event then.

    *Speed.* Dense rows are copied side by side for many steps at once, batches and noise are drawn
    in blocks. How many steps share a block depends on shapes and on the sizes of batches alone. A
    compiled loop takes the steps of a block in one call where there is one, for losses of one
    margin and penalties that multiply (`skdp.oracle.compiled`): public facts decide. Draws come in
    the same order, each sum is cut to the same bounds and put on the same grid before its noise is
    added, so the argument above holds for both.

    Parameters
    ----------
    start, anchor : array of shape (n_parameters, n_outputs)
        Finite.
    snapshot : array of that shape, or NoisyStatistic
        Noisy mean gradient at the anchor, or the sum over all rows to draw fresh copies of.
    step_sizes : array of shape (n_steps,)
        Positive.
    clip_norm : float
        L2 bound of one record's difference of gradients, from 1e-100 to 1e20.
    mechanism : GaussianNoise, default=GaussianNoise()
    sampler : IndexSampler or tuple of IndexSampler, default=AllRows()
        Which rows take part, at every step or step by step.
    slope : float, default=1.0
        In (0, 1]. The bound rises with the distance from the anchor at this share of the rate
        ``curvature * row_norm**2``, at which nothing is cut.
    """

    start: base.Point = field(repr=False)
    anchor: base.Point = field(repr=False)
    snapshot: Array | NoisyStatistic = field(repr=False)
    step_sizes: base.Point = field(repr=False)
    clip_norm: base.Bound
    mechanism: GaussianNoise = field(default_factory=GaussianNoise)
    sampler: IndexSampler | tuple[IndexSampler, ...] = ALL_ROWS
    slope: float = 1.0
    kind: ClassVar[str] = "svrg_pass"
    needs: ClassVar[frozenset[str]] = frozenset({ADDRESSABLE})
    takes_groups: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.snapshot, NoisyStatistic):
            base.store_point(self, "snapshot")
        if self.clip_norm > difference_steps.LARGEST_CLIP:
            raise ValueError(
                f"SVRGPass: clip_norm must be at most {difference_steps.LARGEST_CLIP:g}; got "
                f"{self.clip_norm!r}."
            )
        if not 0 < self.slope <= 1:
            raise ValueError(f"SVRGPass: slope must be a number in (0, 1]; got {self.slope!r}.")
        if type(self.mechanism) is not GaussianNoise:
            raise ValueError(f"SVRGPass: the noise of steps is Gaussian; got {self.mechanism!r}.")
        sizes = self.step_sizes
        if sizes.ndim != 1 or not len(sizes) or not (sizes > 0).all():
            raise ValueError("SVRGPass: step_sizes must be a list of at least one positive number.")
        if isinstance(self.sampler, tuple) and len(self.sampler) != len(sizes):
            raise ValueError(
                f"SVRGPass: {len(sizes)} steps need as many samplers; got {len(self.sampler)}."
            )

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return len(self.step_sizes)

    def parts(self) -> tuple[object, ...]:
        samplers = self._samplers()
        snapshot = self.snapshot
        fresh = (snapshot, *snapshot.parts()) if isinstance(snapshot, NoisyStatistic) else ()
        return self.mechanism, *samplers, *fresh

    def _samplers(self) -> tuple[IndexSampler, ...]:
        return self.sampler if isinstance(self.sampler, tuple) else (self.sampler,)

    # ------------------------------------------------------------------ the cost

    def event(self, context: base.PublicContext) -> Composed:
        self._require_shapes(context)
        step = self.mechanism.event(spread=2.0)
        if isinstance(self.sampler, tuple):
            steps = Composed.of(item.event(step, context.public) for item in self.sampler)
        else:
            steps = Composed(((self.sampler.event(step, context.public), self.n_steps),))
        if isinstance(self.snapshot, NoisyStatistic):
            copies: tuple[Event, int] = (self.snapshot.event(context), self.n_steps)
            return Composed((copies, *steps.parts))
        return steps

    def _require_shapes(self, context: base.PublicContext) -> None:
        given = [self.start.shape, self.anchor.shape]
        if isinstance(self.snapshot, NoisyStatistic):
            statistic = self.snapshot.statistic
            of_all = isinstance(self.snapshot.sampler, AllRows)
            if not (isinstance(statistic, gradients.GradientSum) and of_all):
                raise ValueError("SVRGPass: snapshot must be a sum of gradients over all rows.")
            given.append(statistic.point.shape)
        else:
            given.append(self.snapshot.shape)
        if any(shape != context.public.shape for shape in given):
            raise ValueError(
                f"SVRGPass: points must have shape {context.public.shape}; got {given}. "
                "Nothing was released for it."
            )

    def _unit(self, context: base.PublicContext) -> base.Contribution:
        """Contribution to a step's sum, were its bound 1."""
        most = max(item.max_rows(context.public) for item in self._samplers())
        return gradients.gradient_contribution(1.0, context, most)

    def std(self, context: base.PublicContext) -> float:
        """Return the standard deviation of a step's noise in D, were the bound ``clip_norm``."""
        if isinstance(self.snapshot, NoisyStatistic):
            self.snapshot.std(context)
        noise = VaryingNoise(self.mechanism, self._unit(context), context.scale)
        return noise.std * self.clip_norm / noise.cells

    def n_gradients(self, context: base.PublicContext) -> float:
        samplers = self._samplers()
        mean = sum(item.divisor(context.public) for item in samplers) / len(samplers)
        total = gradients.GradientDifference.gradients * self.n_steps * mean
        if isinstance(self.snapshot, NoisyStatistic):
            total += self.snapshot.n_gradients(context)
        return total

    def placeholder(self, context: base.PublicContext, rng: np.random.Generator) -> Array:
        self._require_shapes(context)
        divisor = min(item.divisor(context.public) for item in self._samplers())
        push = self.clip_norm / math.sqrt(self.start.size) / max(divisor, 1.0)
        push *= float(self.step_sizes.mean())
        noise = rng.standard_normal((2, *self.start.shape))
        return self.start + push * noise

    # ------------------------------------------------------------------ the run

    def answer(
        self, source: Source, context: base.PublicContext, noise_source: NoiseSource
    ) -> Array:
        self._require_shapes(context)
        rows = require_kind(source, MemorySource)
        unit = self._unit(context)
        noise = VaryingNoise(self.mechanism, unit, context.scale, noise_source, self.n_steps)
        beta = gradients.difference_smoothness(context)
        if beta is not None:
            beta *= self.slope
        move = _ProximalStep(context.problem, self.anchor)
        copies = self._copies(rows, context, noise_source)
        away = (self.start - self.anchor).ravel()  # from the anchor, where differences are small
        answer, mean = np.zeros(away.size), np.zeros(away.size)
        sizes = iter(self.step_sizes.tolist())
        loop = self._compiled_loop(rows, context, move, beta, noise)
        loss, most = context.problem.loss, largest_batch(context)
        with np.errstate(all="ignore"):
            for indices, edges, divisors in batches_in_blocks(
                self._samplers(), self.n_steps, rows, context.public, noise_source
            ):
                divisors = [one * context.public.mean_weight for one in divisors]
                if loop is None:
                    sum_up = difference_steps.sums_of_differences(
                        rows, indices, edges, loss, self.anchor, most
                    )
                elif noise.is_watched:
                    sum_up = loop.sums(indices)
                elif loop.take(indices, edges, divisors, away, mean):
                    continue
                else:
                    raise FloatingPointError(DIVERGED)
                for (first, stop), divisor in zip(
                    itertools.pairwise(edges.tolist()), divisors, strict=True
                ):
                    # 1. the bound, from points that are public
                    distance = math.sqrt(ddot(away, away))
                    if not distance < math.inf:
                        raise FloatingPointError(DIVERGED)
                    bound = gradients.difference_bound(self.clip_norm, beta, distance)
                    # 2. the sum, in units of the grid, and its noise
                    sum_up(first, stop, away, bound, noise.cells / bound, answer)
                    noise.add_noise(answer)
                    # 3. the step
                    size = next(sizes)
                    dscal(-size * bound / (noise.cells * divisor), answer)
                    move(away, answer, size, next(copies))
                    daxpy(away, mean)
        dscal(1 / self.n_steps, mean)
        points = np.stack([away, mean]) + self.anchor.ravel()
        return points.reshape(2, *self.start.shape)

    def _compiled_loop(
        self,
        rows: MemorySource,
        context: base.PublicContext,
        move: "_ProximalStep",
        beta: float | None,
        noise: VaryingNoise,
    ) -> difference_steps.DifferenceLoop | None:
        """Return what takes the steps of a block in one call; None where numpy does.

        Public facts decide. Batches are added up in blocks of :func:`largest_batch` rows, whose
        rounding `gradient_contribution` charges for.
        """
        public, sizes = context.public, self.step_sizes
        if isinstance(self.snapshot, NoisyStatistic) or not move.scales:
            return None
        batch, block = max(one.divisor(public) for one in self._samplers()), largest_batch(context)
        if public.grouped or batch > block or (sizes != sizes[0]).any():
            return None
        if not compiled.takes_steps(self.n_steps, batch, public.n_parameters):
            return None
        size, steepest = float(sizes[0]), math.inf if beta is None else beta
        bounds = self.clip_norm, steepest, gradients.LEAST_BOUND * self.clip_norm
        return difference_steps.difference_loop(
            rows.records,
            context.problem.loss,
            np.minimum(rows.records.inverse_norms, difference_steps.LARGEST_QUOTIENT),
            self.anchor,
            block,
            difference_steps.DifferenceBounds(*bounds),
            (noise.cells, noise.next if context.scale else None),
            difference_steps.Move(size, *move.prepared(size, self.snapshot)),
        )

    def _copies(
        self, rows: MemorySource, context: base.PublicContext, noise_source: NoiseSource
    ) -> Iterator[Array]:
        """Yield the noisy mean gradient at the anchor for every step: the same, or fresh ones."""
        if not isinstance(self.snapshot, NoisyStatistic):
            while True:
                yield self.snapshot
        release, total = self.snapshot, self.snapshot.statistic.total(rows, context)
        contribution = release.statistic.contribution(context, context.public.n_rows)
        while True:
            noisy = release.mechanism.add_noise(total, contribution, context.scale, noise_source)
            yield noisy / (release.divisor(context) * context.public.mean_weight)


def largest_batch(context: base.PublicContext) -> int:
    """Return the most rows that are summed up as one block of additions."""
    public = context.public
    return block_rows(public.n_rows, public.n_features, is_sparse=False, is_copied=False)


class _ProximalStep:
    """One proximal step, in terms of how far the point is from the anchor."""

    def __init__(self, problem: Problem, anchor: Array) -> None:
        self._problem, self._anchor = problem, anchor
        scales = problem.penalty.prox_scales
        self.scales = scales and isinstance(problem.constraint, Unconstrained)
        self._size = math.nan
        self._snapshot: Array | None = None
        self._factors = self._push = np.empty(0)

    def __call__(self, away: Array, step: Array, size: float, snapshot: Array) -> None:
        """Move ``away`` by ``step`` and by the snapshot's gradient, then take the prox."""
        if size != self._size or snapshot is not self._snapshot:
            self._prepare(size, snapshot)
        daxpy(step, away)
        if self.scales:
            np.multiply(away, self._factors, away)
            daxpy(self._push, away)
        else:
            daxpy(self._push, away)
            point = self._anchor + away.reshape(self._anchor.shape)
            away[:] = (self._problem.prox(point, size) - self._anchor).ravel()

    def prepared(self, size: float, snapshot: Array) -> tuple[Array, Array]:
        """Return what a step multiplies by and then adds, where the prox multiplies."""
        self._prepare(size, snapshot)
        return self._factors, self._push

    def _prepare(self, size: float, snapshot: Array) -> None:
        """Set factors and push; a prox that multiplies by f: f (w~ + away + step - size g) - w~."""
        self._size, self._snapshot = size, snapshot
        push = -size * snapshot
        if self.scales:
            factors = self._problem.prox(np.ones(self._anchor.shape), size)
            push = factors * (self._anchor + push) - self._anchor
            self._factors = factors.ravel()
        self._push = push.ravel()
