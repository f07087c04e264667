"""Minimisers of a strongly convex objective: of one with a random linear term, or with noise."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import linalg

from skdp._numbers import Array
from skdp.accounting import Gaussian, ObjectivePerturbed
from skdp.objective.losses import LOGISTIC
from skdp.oracle.kernels import second_moments as moments
from skdp.oracle.noise import NoiseSource
from skdp.oracle.public import Public
from skdp.oracle.releases.base import Contribution, Positive, PublicContext, Release, audited
from skdp.oracle.releases.mechanisms import GRID_BITS, GaussianNoise
from skdp.oracle.releases.moments import gram_rounding
from skdp.oracle.sources.base import (
    IN_ONE_PLACE,
    REPEATABLE,
    RepeatableSource,
    Source,
    require_kind,
)
from skdp.oracle.sources.block_sizes import UNIT_ROUNDOFF

OUTPUT_NOISE = 30.0  # relative to the noise on the objective, each in its own unit
SLACK = 4.0  # tolerance in units of what rounding can do to a gradient
WORTH_A_STEP = 0.5  # so much nearer to the minimiser a further step has to come


def perturbation_damping(public: Public, curvature: float, row_norm: float, share: float) -> float:
    """Return the damping that leaves a share of epsilon to the curvature of a record.

    By the theorem that `PerturbedMinimum` stands on, the curvature costs ``-log(1 - ratio)`` of
    epsilon; under replace-one that is counted twice. Without noise there is next to no damping.
    """
    if not public.is_noisy:
        return 1e-9 * public.n_rows
    epsilon = public.epsilon / public.sensitivity_factor
    ratio = -math.expm1(-share * min(epsilon, 10.0))
    return curvature * row_norm**2 * (1 + 1e-6) / ratio


@dataclass(frozen=True)
class _Minimum(Release):
    """``argmin_w sum_i f_i**2 l(z_i'w) + damping/2 |w|**2 + n penalty(w) + b'w``, nearly.

    z is the row with its constant, l the logistic loss, and f a factor, 1 for short rows of weight
    1, such that ``f**2 |z| <= row_norm`` and ``f**2 |z|**2 <= row_norm**2``. So the gradient of a
    record is no longer than ``L = row_norm``. b is drawn by a subclass, or 0.

    *Inexactness.* What is found is a point v that is, whatever the rows, no farther from the
    minimiser w than the last of :meth:`_distances`, a public number. A search ends where the
    gradient is no longer than a tolerance, computed gradients being off by :meth:`_rounding` at
    most: by strong convexity v is then no farther from w than that over ``damping``. Newton's steps
    from there come nearer, each to within :meth:`_nearer`; so many are made as that, a public
    number as well, calls for.

    *The search* is Newton's method, each step halved until the gradient is shorter by a quarter of
    the step: as Hessians lie between ``damping`` and a public bound, it ends, from any rows
    (Kelley 2003, "Solving nonlinear equations with Newton's method", Thm 1.2.1). No point leaves
    before its gradient is short enough, so there is no failure to report; where rounding stops the
    line search, gradient steps go on. The minimiser is no farther from 0 than :meth:`_farthest`,
    whatever the weights.
    """

    row_norm: Positive
    damping: Positive
    # Its rounding is charged for the blocks of one process.
    needs: ClassVar[frozenset[str]] = frozenset({REPEATABLE, IN_ONE_PLACE})
    takes_groups: ClassVar[bool] = False

    def parts(self) -> tuple[object, ...]:
        return ()

    def _require_bounds(self, context: PublicContext) -> None:
        """Raise ValueError where rounding errors have no bound: bounds are those of a formula."""
        loss, public = context.problem.loss, context.public
        if loss.kernel is None or loss.kernel.code != LOGISTIC or public.n_outputs != 1:
            raise ValueError(f"{self.kind!r} is for the logistic loss. Nothing was released.")
        if public.epsilon < math.inf and public.row_norm is None:
            raise ValueError(
                f"{type(self).__name__}: rounding errors of margins grow with the length of rows, "
                "and these have no bound. Nothing was released."
            )

    def _longest(self, context: PublicContext) -> float:
        """Return a bound on the length of b."""
        return 0.0

    def _half_grid(self, context: PublicContext) -> float:
        """Return the most that rounding moves b."""
        return 0.0

    @property
    def _lipschitz(self) -> float:
        """Longest gradient of a record, the rounding of its factor included."""
        return self.row_norm * (1 + 1e-9)

    def _farthest(self, context: PublicContext) -> float:
        """Bound on the length of the minimiser w: the smaller one of two.

        The objective at w is not above its value at 0: ``damping/2 |w|**2 <= h n log(2) + |b| |w|``
        where no ``f**2`` exceeds h, 1 without weights, and with them ``row_norm`` over the least
        norm of a row, its constant's. And by strong convexity ``damping |w|`` is at most the length
        of the gradient at 0, where residuals are 1/2 and the penalty adds nothing.
        """
        b, public = self._longest(context), context.public
        by_slope = (0.5 * public.n_rows * self._lipschitz + b) / self.damping
        heaviest = 1.0
        if public.weighted:
            constant = public.intercept_size * public.has_intercept
            heaviest = self._lipschitz / constant if constant else math.inf
        inner = b * b + 2 * self.damping * heaviest * public.n_rows * math.log(2.0)
        by_value = (b + math.sqrt(inner)) / self.damping
        return min(by_slope, by_value) * (1 + 1e-6)

    def _rounding(self, context: PublicContext, longest: float) -> float:
        """Longest error of a computed gradient at a point no longer than ``longest``.

        Margins are off by ``(p + 8) u |z| longest``, residuals by a quarter of that and by their
        own evaluation; the sum by
        :func:`skdp.oracle.kernels.second_moments.accurate_gradient_rounding`; the three other terms
        by a few roundings of their own.
        """
        public, problem = context.public, context.problem
        size, n_rows = public.n_parameters, public.n_rows
        long_row = self.row_norm * max(1.0, (public.row_norm or self.row_norm) / self.row_norm)
        each = problem.loss.curvature * self.row_norm * long_row * (size + 8) * longest
        return 1.01 * UNIT_ROUNDOFF * n_rows * each + self._rounding_of_sums(context, longest)

    def _rounding_of_sums(self, context: PublicContext, longest: float) -> float:
        """Longest error of a computed gradient, if margins were exact."""
        public = context.public
        residuals = 32 * UNIT_ROUNDOFF * public.n_rows * self.row_norm
        sums = moments.accurate_gradient_rounding(public.n_rows) * public.n_rows * self.row_norm
        rest = UNIT_ROUNDOFF * 8 * (self._strength(context) * longest + self._longest(context))
        return 1.01 * (residuals + sums + rest)

    def _goal(self, context: PublicContext) -> float:
        """Upper bound on the length of the final gradient; without noise, as short as is of use."""
        if context.scale == 0:
            return 1e-9 * context.public.n_rows
        rounding = self._rounding(context, self._farthest(context))
        return (SLACK - 1) * rounding + self._half_grid(context)

    def _distances(self, context: PublicContext) -> list[float]:
        """Upper bounds on the distance from the minimiser after the search, and after each step."""
        rounding = self._rounding(context, self._farthest(context))
        result = [(self._goal(context) + rounding) / self.damping]
        while (nearer := self._nearer(context, result[-1])) < WORTH_A_STEP * result[-1]:
            result.append(nearer)
        return result

    def _nearer(self, context: PublicContext, distance: float) -> float:
        """Upper bound on the distance from w after a Newton step from within ``distance`` of it.

        Let A be the matrix of rows ``f z``, W the second derivatives at the point v where the step
        starts, M their diagonal matrix, ``H = A'MA + Lambda`` the Hessian, Lambda at least
        ``damping``. Then ``|H^-1 A'M x| <= |M^(1/2) x| / (2 sqrt(damping))``, as no
        ``s / (s**2 + damping)`` exceeds ``1 / (2 sqrt(damping))``; as no W exceeds ``curvature``,
        that is at most ``sqrt(n curvature / damping) / 2`` times the largest entry of x. And a
        margin that moves by t moves a residual by at most ``W (exp(|t|) - 1)``, and W itself by as
        much, because the loss's third derivative does not exceed its second. So the step misses w
        by the sum of

        1. what the Hessian changes on the way to w: entries of x of at most ``row_norm distance
           (exp(|z| distance) - 1)``;
        2. the rounding of margins, ``(p + 8) u |z| |v|``: entries of ``row_norm`` times that for a
           row of length 1;
        3. all other rounding of the gradient, over ``damping``;
        4. the rounding of the Hessian and of its Cholesky factors (Higham 2002, Thm 10.3 and 10.4),
           which over ``damping`` is a relative error of the step, and that of the new point.
        """
        public, loss = context.public, context.problem.loss
        size, n_rows = public.n_parameters, public.n_rows
        longest = self._farthest(context) + distance
        long_row = max(self.row_norm, public.row_norm or 0.0) * (1 + 1e-9)
        off = UNIT_ROUNDOFF * (size + 8) * longest
        if context.scale == 0 or long_row * max(distance, off) > 1:
            return math.inf
        entries = distance * math.expm1(long_row * distance) + off * math.exp(long_row * off)
        missed = self._gain(context) * self._lipschitz * entries
        missed += self._rounding_of_sums(context, longest) / self.damping
        most = self._lipschitz**2
        steepest = n_rows * loss.curvature * most + self._strength(context)
        hessian = gram_rounding(context, n_rows, 1) * most
        hessian += n_rows * most * (16 * UNIT_ROUNDOFF + math.expm1(long_row * off))
        hessian += 16 * size * (size + 1) * UNIT_ROUNDOFF * steepest
        relative = hessian / self.damping
        if relative > 0.5:
            return math.inf
        step = distance + missed
        return 1.01 * (missed + 2 * relative * step + 2 * UNIT_ROUNDOFF * longest)

    def _gain(self, context: PublicContext) -> float:
        """Upper bound on ``|H^-1 A'M x|`` for entries of x of 1; see :meth:`_nearer`."""
        curvature = context.problem.loss.curvature
        return 0.5 * math.sqrt(context.public.n_rows * curvature / self.damping)

    def _strength(self, context: PublicContext) -> float:
        """Largest eigenvalue of the Hessian's public part."""
        return self.damping + context.problem.strong_convexity * context.public.n_rows

    def _gradient(
        self, rows: RepeatableSource, context: PublicContext, b: Array, point: Array
    ) -> Array:
        problem = context.problem
        data = rows.total(moments.accurate_gradients, problem.loss, point, self.row_norm)
        penalty = context.public.n_rows * problem.penalty_gradient(point)
        return np.asarray(data + penalty + self.damping * point + b)

    def _minimum(self, rows: RepeatableSource, context: PublicContext, b: Array) -> Array:
        public, loss = context.public, context.problem.loss
        lifted = np.full(public.n_parameters, self.damping)
        lifted += context.problem.strong_convexity * public.n_rows
        if public.has_intercept:
            lifted[-1] = self.damping
        steepest = public.n_rows * loss.curvature * self.row_norm**2 + lifted.max()
        goal = self._goal(context)

        def hessian_at(point: Array) -> Array:
            result = rows.total(moments.bounded_hessian, loss, point, self.row_norm, True)
            return np.asarray(result + np.diag(lifted))

        point = np.zeros(public.shape)
        gradient = self._gradient(rows, context, b, point)
        length = float(np.linalg.norm(gradient))
        while length > goal:
            # 1. Newton's direction
            direction = np.linalg.solve(hessian_at(point), gradient)
            # 2. halve the step until the gradient is shorter by a quarter of it
            step = 1.0
            while step > 2.0**-30:
                trial = point - step * direction
                there = self._gradient(rows, context, b, trial)
                shorter = float(np.linalg.norm(there))
                if shorter <= (1 - step / 4) * length:
                    break
                step /= 2
            else:
                if context.scale == 0:
                    return point
                # 3. rounding is in the way: a step that is right for any smooth function
                trial = point - gradient / steepest
                there = self._gradient(rows, context, b, trial)
                shorter = float(np.linalg.norm(there))
            point, gradient, length = trial, there, shorter
        # 4. as many whole steps as the distance that is promised takes
        for left in reversed(range(len(self._distances(context)) - 1)):
            point = point - linalg.solve(hessian_at(point), gradient, assume_a="pos")
            if left:
                gradient = self._gradient(rows, context, b, point)
        return point

    def placeholder(self, context: PublicContext, rng: np.random.Generator) -> Array:
        return rng.standard_normal(context.public.shape) / math.sqrt(context.public.n_parameters)


@audited
@dataclass(frozen=True)
class PerturbedMinimum(_Minimum):
    """``argmin_w sum_i f_i**2 l(z_i'w) + damping/2 |w|**2 + n penalty(w) + b'w``, and some noise.

    z is the row with its constant, l the logistic loss, and f a factor, 1 for short rows of weight
    1, such that ``f**2 |z| <= row_norm`` and ``f**2 |z|**2 <= row_norm**2``. b is Gaussian.

    *Sensitivity.* The gradient of a record is no longer than ``L = row_norm`` and its Hessian has
    one eigenvalue, at most ``curvature row_norm**2``, whatever the record; a null record adds a
    constant. So the exact minimiser has the cost of :class:`skdp.accounting.ObjectivePerturbed`
    (Redberg, Koskela, Wang 2023, Thm 3.1) with ``ratio = curvature row_norm**2 / damping``. The
    penalty, convex and public, adds to the regularisation. The theorem takes a Hessian of rank one,
    which that of a group does not have.

    *Inexactness.* What is found is no farther from w than ``D / 2``, a public number; so noise in
    units of D is added (approximate minima perturbation: Iyengar et al. 2019, Alg. 1). It is the
    noise of :class:`GaussianNoise`, which charges for its grid.

    *The noise b* is drawn on a grid: a rounding of a Gaussian vector, which moves the minimiser as
    a gradient of half the grid's diagonal would; the tolerance pays for it. A vector longer than
    :meth:`_longest` is cut to that, which happens with the probability that the event states.

    Parameters
    ----------
    row_norm : float
        Positive.
    damping : float
        More than ``curvature row_norm**2``.
    """

    kind: ClassVar[str] = "perturbed_minimum"

    # ------------------------------------------------------------------ the cost

    def event(self, context: PublicContext) -> ObjectivePerturbed:
        """Return the cost, if the conditions of the theorem hold; ValueError if they do not."""
        self._require_bounds(context)
        loss, public = context.problem.loss, context.public
        ratio = loss.curvature * self.row_norm**2 * (1 + 1e-9) / self.damping
        if public.epsilon < math.inf and not ratio < 1 - 1e-12:
            raise ValueError(
                f"PerturbedMinimum: damping must be above the curvature of a record, "
                f"{loss.curvature * self.row_norm**2:g}; got {self.damping:g}."
            )
        return ObjectivePerturbed(
            1.0,
            min(ratio, 1 - 1e-12),
            OUTPUT_NOISE,
            failure=math.exp(-(self._excess(context) ** 2) / 2),
        )

    def _grid(self, context: PublicContext) -> float:
        return float(2.0 ** math.ceil(math.log2(context.scale * self._lipschitz * 2.0**-GRID_BITS)))

    @staticmethod
    def _excess(context: PublicContext) -> float:
        """Return t: b is longer than std (sqrt(p) + t) with probability below exp(-t**2 / 2)."""
        public = context.public
        certain = math.log(1 / max(public.delta, 1e-300)) + min(public.epsilon, 300.0)
        return math.sqrt(2 * (certain + 14))

    def _longest(self, context: PublicContext) -> float:
        """Return the length that b is cut to."""
        size = context.public.n_parameters
        return context.scale * self._lipschitz * (math.sqrt(size) + self._excess(context))

    def _half_grid(self, context: PublicContext) -> float:
        """Longest rounding of b."""
        if context.scale == 0:
            return 0.0
        return 0.5 * self._grid(context) * math.sqrt(context.public.n_parameters)

    def contribution(self, context: PublicContext) -> Contribution:
        """Return what the noise on the answer hides: points within D of each other.

        Returns
        -------
        Contribution
        """
        half_grid = self._half_grid(context) / self.damping  # b's, which moves the minimiser itself
        distance = 2 * (self._distances(context)[-1] + half_grid) * (1 + 1e-9)
        total = self._farthest(context) + distance
        return Contribution(distance, 1.0, context.public.n_parameters, total)

    def std(self, context: PublicContext) -> float:
        """Return the standard deviation of the perturbation b, in units of the mean gradient."""
        self.event(context)
        if context.scale > 0:
            GaussianNoise(OUTPUT_NOISE).std(self.contribution(context), context.scale)
        return context.scale * self._lipschitz / context.public.n_rows

    # ------------------------------------------------------------------ the run

    def answer(self, source: Source, context: PublicContext, noise_source: NoiseSource) -> Array:
        rows = require_kind(source, RepeatableSource)
        result = self._minimum(rows, context, self._perturbation(context, noise_source))
        noise = GaussianNoise(OUTPUT_NOISE)
        answer = noise.noisy(result, self.contribution(context), context.scale, noise_source)
        if not noise_source.keeps_record:
            return answer

        def hidden(point: Array) -> Array:
            """Return minus the b for which this point is the minimum: what the noise hides."""
            return self._gradient(rows, context, np.zeros(point.shape), point)

        std = self.std(context) * context.public.n_rows
        event = self.event(context)
        return noise_source.record_answer(answer, hidden, event, self._lipschitz, std)

    def _perturbation(self, context: PublicContext, noise_source: NoiseSource) -> Array:
        shape = context.public.shape
        if context.scale == 0:
            return np.zeros(shape)
        grid = self._grid(context)
        b = grid * noise_source.gaussian(context.scale * self._lipschitz / grid, shape)
        return b * min(1.0, self._longest(context) / max(float(np.linalg.norm(b)), 1e-300))


@audited
@dataclass(frozen=True)
class NoisyMinimum(_Minimum):
    """``argmin_w sum_i f_i**2 l(z_i'w) + damping/2 |w|**2 + n penalty(w)``, plus Gaussian noise.

    z is the row with its constant, l the logistic loss, and f a factor, 1 for short rows of weight
    1, such that ``f**2 |z| <= row_norm`` and ``f**2 |z|**2 <= row_norm**2``.

    *Sensitivity.* The objectives of two neighbouring data sets are strongly convex with parameter
    ``damping`` and differ by the loss of one record, whose gradient is no longer than
    ``L = row_norm``; so their minimisers are no farther apart than ``L / damping``, and twice that
    if a record is replaced (Chaudhuri, Monteleoni, Sarwate 2011, Lemma 7). What is found lies
    within D / 2 of either minimiser, D being public (see `PerturbedMinimum`, whose search this is):
    answers before noise are no farther apart than that and D.

    Parameters
    ----------
    row_norm, damping : float
        Positive.
    """

    kind: ClassVar[str] = "noisy_minimum"

    def event(self, context: PublicContext) -> Gaussian:
        self._require_bounds(context)
        return GaussianNoise().event(2.0)

    def contribution(self, context: PublicContext) -> Contribution:
        """Return half the distance of two answers before noise, at most, if a record is replaced.

        Returns
        -------
        Contribution
        """
        distance = 2 * self._distances(context)[-1]
        bound = (self._lipschitz / self.damping + distance) * (1 + 1e-9)
        total = self._farthest(context) + distance
        return Contribution(bound, 2.0, context.public.n_parameters, total)

    def std(self, context: PublicContext) -> float:
        self._require_bounds(context)
        return GaussianNoise().std(self.contribution(context), context.scale)

    def answer(self, source: Source, context: PublicContext, noise_source: NoiseSource) -> Array:
        rows = require_kind(source, RepeatableSource)
        result = self._minimum(rows, context, np.zeros(context.public.shape))
        contribution = self.contribution(context)
        return GaussianNoise().add_noise(result, contribution, context.scale, noise_source)
