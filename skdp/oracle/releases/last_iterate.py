"""Gradient descent run behind the boundary, of which only the last point is shown."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skdp._numbers import Array
from skdp.accounting.events.last_iterate import HiddenIterates
from skdp.objective import L2Ball
from skdp.oracle.kernels.clipped_gradients import clipped_gradients
from skdp.oracle.noise import NoiseSource
from skdp.oracle.releases.base import Bound, Contribution, Positive, PublicContext, Release, audited
from skdp.oracle.releases.gradients import NORM_SLACK, gradient_contribution, smoothness
from skdp.oracle.releases.mechanisms import GaussianNoise
from skdp.oracle.sources.base import IN_ONE_PLACE, REPEATABLE, Source, require_kind
from skdp.oracle.sources.block_sizes import UNIT_ROUNDOFF
from skdp.oracle.sources.memory import MemorySource


@audited
@dataclass(frozen=True, eq=False)
class LastIterate(Release):
    """The last point of ``n_steps`` noisy proximal gradient steps over all rows.

    One step, with ``r = step_size / n`` and S(w) the sum of the clipped gradients, is

        Y = S(w) - w / r + N(0, std^2 I),        w = prox(ball(-r Y)),

    which is ``prox(w - step_size * noisy mean gradient)``. Points and answers in between are
    neither returned nor kept, and nothing but numbers comes in. The first w is public: zero, or the
    start that the fit was given.

    *Theorem.* Bok, Su, Altschuler 2024 ("Shifted interpolation for differential privacy",
    arXiv:2403.00278, sec. 3 and 4) for the maps M from one Y, before its noise, to the next; see
    :func:`~skdp.accounting.events.last_iterate.last_iterate_factor`. The last point is a function
    of the last Y. It needs ``|M(y) - M'(y')| <= c |y - y'| + s`` for all y, y':

    1. *Clipped gradients.* Row x adds ``x h(x'w)``, h the derivative of the loss cut to
       ``clip_norm / |x|``: nondecreasing and no steeper than ``curvature``, because cutting makes
       nothing steeper (Song, Steinke, Thakkar, Thakurta 2020, arXiv:2006.06783). So
       ``S(w) - S(v) = n A (w - v)`` with a symmetric A, ``0 <= A <= beta``, where
       ``beta = curvature * row_norm^2``; and ``w -> w - r S(w)`` is 1-Lipschitz for
       ``step_size <= 2 / beta``. This takes one output, no weights, no intercept (it is not
       penalised) and an enforced bound on rows; a kink of the loss's derivative does no harm. For
       groups, whose parts are means of such terms, nothing changes: n is their number then.
    2. *Contraction.* The prox of a penalty of strong convexity lambda, and so of penalty and
       convex set, is a contraction by ``c = 1 / (1 + step_size * lambda)`` (Bauschke and Combettes
       2017, Prop. 23.13). That is the whole of c: the loss adds nothing to it, since rows may
       all be null. (An explicit step on the penalty would give
       ``max(|1 - eta lambda|, |1 - eta (beta + lambda)|)`` instead.)
    3. *Diameter.* Points in a set of diameter D are at most ``D / r`` apart where noise is added,
       as the map from points is 1-Lipschitz; the event's reach is that over ``clip_norm``.
    4. *Sensitivity.* At one point the maps differ by one record's clipped gradient:
       s is ``clip_norm`` under zero-out and twice that under replace-one, plus what follows.

    *Rounding* is not post-processing here, for what happens in between stays hidden. So noise is
    added to the whole step: were it added to S alone, the low bits of ``w - r Y`` would be those of
    w, and those of the last point would spell out the whole run. The statistic ``S(w) - w / r`` is
    rounded to the grid, which moves two of them by ``g sqrt(d)`` relative to each other (the
    mechanism charges that); the released ``g (k + round(N))`` is a rounding of k + N, which
    as a part of the next M is worth another ``g sqrt(d)``. What floating point adds to M is bounded
    by :meth:`_rounding`, as all that M computes is: points are kept in a ball (a
    projection, hence 1-Lipschitz) so large that only a freak of the noise could reach it.
    All of this is added to the contribution that the noise is measured against.

    Parameters
    ----------
    n_steps : int
        At least 1.
    step_size : float
        Positive, at most ``2 / beta``.
    clip_norm : float
        L2 bound of one record's gradient, from 1e-100 to 1e100.
    mechanism : GaussianNoise, default=GaussianNoise()
        The noise of each step.
    """

    n_steps: int
    step_size: Positive
    clip_norm: Bound
    mechanism: GaussianNoise = field(default_factory=GaussianNoise)
    kind: ClassVar[str] = "last_iterate"
    needs: ClassVar[frozenset[str]] = frozenset({REPEATABLE, IN_ONE_PLACE})
    takes_groups: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "n_steps", int(self.n_steps))
        if self.n_steps < 1:
            raise ValueError(f"LastIterate: n_steps must be at least 1; got {self.n_steps!r}.")

    def parts(self) -> tuple[object, ...]:
        return (self.mechanism,)

    # ------------------------------------------------------------------ the cost

    def event(self, context: PublicContext) -> HiddenIterates:
        """Return the cost, if the conditions of the theorem hold; ValueError if they do not."""
        self._require(context)
        public, constraint = context.public, context.problem.constraint
        reach = math.inf
        if constraint.bounded:
            widest = constraint.diameter(math.prod(public.shape)) * (1 + NORM_SLACK)
            reach = widest * public.n_rows / (self.step_size * self.clip_norm)
        step = self.mechanism.event(spread=2.0)
        return HiddenIterates(step, self.n_steps, self._contraction(context), reach)

    def _contraction(self, context: PublicContext) -> float:
        exact = 1 / (1 + self.step_size * context.problem.strong_convexity)
        return min(1.0, exact * (1 + 1e-12))  # the divisor is rounded

    def _require(self, context: PublicContext) -> None:
        public, problem = context.public, context.problem
        provides, beta = problem.provides, smoothness(public, problem)
        if public.n_outputs != 1 or "separable_loss" not in provides:
            self._refuse(
                f"one output, where clipping leaves a gradient that of a convex function; the loss "
                f"is {problem.loss.name!r} with {public.n_outputs} output(s)"
            )
        if not 0 < problem.loss.curvature < math.inf:
            self._refuse(
                f"a loss of finite curvature; that of {problem.loss.name!r} is "
                f"{problem.loss.curvature!r}"
            )
        if public.weighted:
            self._refuse(
                "rows without sample_weight and class_weight, which change the curvature; weights "
                "were given"
            )
        if public.has_intercept or "no_intercept" not in provides:
            self._refuse(
                "fit_intercept=False: the intercept is neither penalised nor constrained, so that "
                "hiding the steps would save nothing; the problem has an intercept"
            )
        if not {"strongly_convex", "bounded_set"} & provides:
            self._refuse(
                "a strongly convex penalty, such as L2, or a bounded constraint: with neither, "
                f"hiding the steps saves nothing; the penalty is {problem.penalty} and the "
                f"constraint {problem.constraint}"
            )
        if math.isinf(public.epsilon):
            return  # no noise, no promise: the rest bounds what noise has to hide
        if beta is None:
            self._refuse("a bound on the norm of rows; set scaling=RowNorm(norm)")
        elif self.step_size * beta > 2:
            self._refuse(
                f"learning_rate <= 2 / (curvature * row_norm**2) = {2 / beta:.10g}, as longer "
                f"steps may push points apart; got {self.step_size:.10g}"
            )

    @staticmethod
    def _refuse(why: str) -> None:
        raise ValueError(f"release='last' needs {why}. Nothing was released.")

    # ------------------------------------------------------------------ the size of things

    def _rate(self, context: PublicContext) -> float:
        """Return r, from answers to points."""
        return self.step_size / context.public.n_rows

    def _ball(self, context: PublicContext) -> L2Ball:
        """Return the ball that holds points before their prox.

        Without noise ``|prox(w - r S)|`` is at most ``c (|w| + step_size * clip_norm)`` plus the
        length of ``prox(0)``, and the first w adds its own; noise, a sum of Gaussian vectors with
        weights of at most ``c^t``, is allowed for some ten standard deviations. Being a public
        function of numbers, any radius is right; a small one makes for less rounding.
        """
        size, c = math.prod(context.public.shape), self._contraction(context)
        steps = float(self.n_steps) if c == 1 else min(self.n_steps, 1 / (1 - c))
        multiplier = self.mechanism.relative_noise * context.scale
        noise = multiplier * self.clip_norm * (math.sqrt(size) + 8)
        pushed = self.step_size * self.clip_norm * (1 + 1e-6) + self._first(context)
        reached = steps * pushed + 4 * math.sqrt(steps) * self._rate(context) * noise
        return L2Ball(reached + float(np.linalg.norm(context.public.starting_point)))

    def _first(self, context: PublicContext) -> float:
        """Length of the prox of zero."""
        origin = np.zeros(context.public.shape)
        return float(np.linalg.norm(context.problem.prox(origin, self.step_size)))

    def _rounding(self, context: PublicContext, longest: float) -> float:
        """L2 norm of what floating point adds to M, at most, of two runs together.

        Points are no longer than ``longest``; u is the unit roundoff. For n rows at one point:
        margins, taken in float64 whatever the rows are, are off by ``(d + 8) u row_norm longest``,
        and residuals by ``curvature`` times that and by their own evaluation; the sum's rounding
        is in the contribution of `GradientSum`. Points: the product with r, the division by it, the
        norm in the ball, and the prox, which is elementwise but for balls and simplices, whose
        levels are sums of d terms.
        """
        public, loss = context.public, context.problem.loss
        size, row_norm = math.prod(public.shape), public.row_norm or 0.0
        margins = loss.curvature * row_norm**2 * (size + 8) * longest
        residuals = 16 * (self.clip_norm + row_norm * (loss.residual_bound or 0.0))
        operations = float(size + 16)
        if "unconstrained" not in context.problem.provides:
            operations += 4 * size * (size + 8)
        points = operations * longest / self._rate(context)
        one = UNIT_ROUNDOFF * (public.n_rows * (margins + residuals) + points)
        return 2.02 * one  # of two runs; the rest covers higher orders

    def _contribution(self, context: PublicContext) -> Contribution:
        public = context.public
        plain = gradient_contribution(self.clip_norm, context, public.n_rows)
        longest = self._ball(context).radius + self._first(context)
        total = plain.total + longest / self._rate(context)
        exact = plain.bound + self._rounding(context, longest)
        # The noise's rounding depends on the grid, which depends on the noise: a fixed point.
        bound = exact
        for _ in range(16):
            result = Contribution(bound, plain.spread, plain.size, total)
            rounded = exact + self.mechanism._grid(result, context.scale) * math.sqrt(plain.size)
            if rounded <= bound:
                return result
            bound = rounded
        raise ValueError(
            "release='last' needs less noise than "
            f"{self.mechanism.relative_noise * context.scale:g} times the clipping norm, which its "
            "rounding errors would outgrow; choose a larger epsilon. Nothing was released."
        )

    def std(self, context: PublicContext) -> float:
        """Return the standard deviation that one step's noise gives a point, before its prox."""
        self._require(context)
        return self._rate(context) * self.mechanism.std(self._contribution(context), context.scale)

    # ------------------------------------------------------------------ the run

    def n_gradients(self, context: PublicContext) -> float:
        return float(self.n_steps * context.public.n_rows)

    def answer(self, source: Source, context: PublicContext, noise_source: NoiseSource) -> Array:
        self._require(context)
        rows = require_kind(source, MemorySource)
        result = (rows.n_rows, rows.row_bound, rows.records.weights is not None)
        if result != (context.public.n_rows, context.public.row_bound, False):
            raise ValueError(
                "release='last' needs the public number of rows, kept to the public bound and "
                f"without weights, ({context.public.n_rows}, {context.public.row_bound}, False); "
                f"got {result}. Nothing was released."
            )
        rate, ball = self._rate(context), self._ball(context)
        contribution = self._contribution(context)
        point = context.public.starting_point
        for _ in range(self.n_steps):
            # 1. the whole step, point included, in units of the sum
            total = rows.total(clipped_gradients, context.problem.loss, point, self.clip_norm)
            statistic = total - point / rate
            # 2. noise
            noisy = self.mechanism.add_noise(statistic, contribution, context.scale, noise_source)
            # 3. back to a point
            point = context.problem.prox(ball.project(-rate * noisy), self.step_size)
        return point

    def placeholder(self, context: PublicContext, rng: np.random.Generator) -> Array:
        noise = rng.standard_normal(context.public.shape)
        push = self._rate(context) * self.clip_norm / math.sqrt(noise.size)
        return context.problem.prox(push * noise, self.step_size)
