"""Sums of clipped gradients and of differences between two points, and the steepest coordinate."""

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skdp._numbers import Array
from skdp._oracle.kernels.clipped_gradients import (
    clipped_gradients,
    clipped_in_norm,
    clipped_means,
    weighted_residuals,
)
from skdp._oracle.noise import NoiseSource
from skdp._oracle.public import Public
from skdp._oracle.releases import base
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.releases.mechanisms import (
    ALL_ROWS,
    Mechanism,
    NoisyStatistic,
    Sampler,
    mechanism_by_name,
)
from skdp._oracle.sources.base import RepeatableSource, Source, require_kind
from skdp._oracle.sources.records import inverse_l1_norms, inverse_largest_entries
from skdp.accounting import NoisyMaximum
from skdp.objective import Problem

NORM_SLACK = 1e-9  # relative; covers the rounding of a row's norm up to a million columns
# The bound of a difference never falls below this share of its clipping norm: between equal points
# it would be 0.
LEAST_BOUND = 2.0**-40


class RowSum(base.Statistic):
    """Sum over records of products of a row and a residual: matrices of the parameter's shape.

    *Sensitivity.* The norm of a record's product over all ``d * K`` coordinates, L2 or that of
    another `order`, is at most `largest`, which each sum enforces on the residual, whatever the
    record holds. A null record adds 0. So zero-out moves the sum, in the same norm, by at most
    `largest` and replace-one by at most twice that (Abadi et al. 2016, sec. 3.1, by the triangle
    inequality), or by the spread that a sum proves. Weights act before the cut, so the bound does
    not depend on them.

    *Groups.* A group adds the mean of its rows' products, which lies in the same ball, whatever
    their number.

    *Floating point.* The function :func:`skdp._oracle.kernels.clipped_gradients.gradient_rounding`
    bounds the rounding errors of one sum, and two of them are twice as far off, whatever the
    distance of two products is.
    """

    takes_groups: ClassVar[bool] = True
    order: float = 2

    @abstractmethod
    def largest(self, context: PublicContext) -> tuple[float, float]:
        """Return the norm to which the sum cuts a record's product, and the spread of two.

        The spread is the largest distance of two products, in units of the norm: 2 at most.
        """

    def more_rounding(self, context: PublicContext, n_rows: int) -> float:
        """Return the relative rounding that is more than that of the sum."""
        return 0.0

    def contribution(self, context: PublicContext, n_rows: int) -> base.Contribution:
        (largest, spread), size = self.largest(context), math.prod(context.public.shape)
        # The norm of a group's mean gradient is a sum over all coordinates.
        n_more = size if context.public.clips_means else context.public.n_outputs
        rounding = context.rounding(n_rows, n_more) + self.more_rounding(context, n_rows)
        slack = rounding * 2 / spread
        return base.Contribution.of_sum(largest, n_rows, slack, spread, size, self.order)

    def shape(self, context: PublicContext) -> tuple[int, ...]:
        return context.public.shape


@base.audited
@dataclass(frozen=True, eq=False)
class GradientSum(RowSum):
    """Sum of the records' gradients at ``point``, each clipped to norm ``clip_norm``.

    Sensitivity: that of `RowSum`, as a record adds ``g * min(1, clip_norm / |g|)``, g being the
    gradient of its own loss. The L1 norm of a gradient, an outer product of row and residual, is
    ``|x|_1 |residual|_1``, the row's constant included, and its largest entry at most ``max|x|
    |residual|_1``. Where the public facts have a guess of the number of rows in a group, a group
    adds the mean of its rows' gradients, clipped as a whole.

    Parameters
    ----------
    point : array of shape (n_parameters, n_outputs)
        Point of the gradient, finite.
    clip_norm : float
        From 1e-100 to 1e100: limits on residuals, which are this over the norm of a row, lose
        their relative precision where numbers are subnormal. It is a number, fixed here: a solver
        knows no rows, so whatever it names is public, and the very number that bounds the noise is
        the one that clips.
    order : {1, 2, inf}, default=2
        Of the norm: 2 for Gaussian noise, 1 for Laplace noise, inf for the largest entry.
    """

    point: base.Point = field(repr=False)
    clip_norm: base.Bound
    order: float = 2
    kind: ClassVar[str] = "gradient"

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.order) not in (int, float) or self.order not in (1, 2, math.inf):
            raise ValueError(f"GradientSum: order must be 1, 2 or inf, got {self.order!r}.")

    def largest(self, context: PublicContext) -> tuple[float, float]:
        return self.clip_norm, 2.0

    def total(self, rows: RepeatableSource, context: PublicContext) -> Array:
        base.require_shape(self, context, "point")
        loss = context.problem.loss
        if self.order == 2 and context.public.clips_means:
            residuals = rows.per_row(weighted_residuals, loss, self.point)
            result = rows.total_over_groups(clipped_means, self.clip_norm, rows=(residuals,))
            return np.asarray(result)
        gradient = loss, self.point, self.clip_norm
        if self.order == 2:
            return np.asarray(rows.total(clipped_gradients, *gradient))
        inverse = rows.per_row(inverse_l1_norms if self.order == 1 else inverse_largest_entries)
        return np.asarray(rows.total(clipped_in_norm, *gradient, self.order, rows=(inverse,)))


def noisy_gradient(
    point: Array,
    clip_norm: float,
    relative_noise: float = 1.0,
    sampler: Sampler | None = None,
    mechanism: str = "gaussian",
) -> NoisyStatistic:
    """Return the release of a sum of gradients, clipped in the norm of its noise.

    Parameters
    ----------
    point : array of shape (n_parameters, n_outputs)
    clip_norm : float
        Bound of one record's gradient, in L2 norm for Gaussian and in L1 norm for Laplace noise.
    relative_noise : float, default=1.0
        Noise relative to that of the plan.
    sampler : Sampler or None, default=None
        The rows to use. None means all.
    mechanism : {"gaussian", "laplace"}, default="gaussian"

    Returns
    -------
    NoisyStatistic

    Raises
    ------
    ValueError
        If a number is out of range, or there is no such mechanism.
    """
    noise = mechanism_by_name(mechanism, relative_noise)
    gradients = GradientSum(point, clip_norm, noise.order)
    return NoisyStatistic(gradients, noise, ALL_ROWS if sampler is None else sampler)


# ---------------------------------------------------------------- differences


def smoothness(public: Public, problem: Problem) -> float | None:
    """Return a public bound on the curvature of the mean loss, clipped or not.

    Parameters
    ----------
    public : Public
    problem : Problem

    Returns
    -------
    float or None
        Largest eigenvalue of the Hessian, at most. None if rows have no bound.
    """
    if public.row_norm is None:
        return None
    return problem.loss.curvature * public.row_norm**2 * (1 + NORM_SLACK)


@base.audited
@dataclass(frozen=True, eq=False)
class GradientDifference(RowSum):
    """Sum of the records' gradients at ``point`` minus at ``anchor``, each difference clipped.

    Sensitivity: with ``beta = curvature * row_norm**2`` and ``C = clip_norm``, a record adds
    ``v * min(1, bound / |v|)``, v its difference of gradients and

        ``bound = min(C, slope * beta * |point - anchor|)``,

    over all ``d * K`` coordinates. The bound is a function of the solver's number, of `Public` and
    of the two points, which are post-processing of earlier answers, and it is enforced: `RowSum`.

    If records have weights the bound is only C, as nothing public bounds weights. Were differences
    of heavy records cut as those of records of weight 1, their gradients would seem to change too
    little from the snapshot on: steps between two snapshots would go too far, and further from one
    snapshot to the next.

    *With slope 1 nothing is lost by it*: for a record without weight, of a row x no longer than
    ``row_norm``, which the oracle enforces, the gradient in the parameter is ``x r(x'w)`` with a
    residual r that is ``curvature``-Lipschitz in the margins (the largest eigenvalue of a record's
    Hessian, Loss), so ``|v| <= |x| curvature |x'(point - anchor)| <= beta |point - anchor|`` and
    the second term clips nothing. Were each gradient clipped to C by itself, the first could not
    exceed 2C. The clip may be any number the solver names, such as that one. Cancellation in v
    costs accuracy near the anchor, never privacy.

    Parameters
    ----------
    point, anchor : array of shape (n_parameters, n_outputs)
        Finite.
    clip_norm : float
        From 1e-100 to 1e100.
    slope : float, default=1.0
        In (0, 1]. A public number: whatever it is, the bound is enforced on every record.
    """

    point: base.Point = field(repr=False)
    anchor: base.Point = field(repr=False)
    clip_norm: base.Bound
    slope: base.Positive = 1.0
    kind: ClassVar[str] = "gradient_difference"
    gradients: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.slope > 1:
            raise ValueError(f"GradientDifference: slope must be at most 1, got {self.slope!r}.")

    def largest(self, context: PublicContext) -> tuple[float, float]:
        clip_norm, steepest = self.clip_norm, smoothness(context.public, context.problem)
        if steepest is None or context.public.has_weights:
            return clip_norm, 2.0
        reached = float(np.linalg.norm(self.point - self.anchor)) * (self.slope * steepest)
        least = LEAST_BOUND * clip_norm
        return max(reached, least) if reached < clip_norm else clip_norm, 2.0

    def total(self, rows: RepeatableSource, context: PublicContext) -> Array:
        base.require_shape(self, context, "point", "anchor")
        loss, (bound, _) = context.problem.loss, self.largest(context)
        return np.asarray(rows.total(clipped_gradients, loss, self.point, bound, self.anchor))


@dataclass(frozen=True)
class _HiddenNoise(Mechanism):
    """Laplace noise on sums of which only the largest is named, not audited: no sum may leave."""

    relative_noise: float = 1.0
    order: ClassVar[float] = math.inf
    std_of_unit: ClassVar[float] = math.sqrt(2)

    def event(self, spread: float) -> NoisyMaximum:
        return NoisyMaximum(self.relative_noise, spread)


@base.audited
@dataclass(frozen=True, eq=False)
class VertexSelection(base.Release):
    """The steepest vertex of the unit L1 ball: the sign of the largest entry of a noisy gradient.

    The answer has that sign at that entry, and 0 elsewhere. Entries are those of the sum of the
    records' gradients at ``point``, each clipped to ``clip_norm`` in its largest entry, plus n
    times the gradient of the penalty, which is public, plus independent Laplace noise.

    *Sensitivity.* A record adds a gradient none of whose entries exceeds ``clip_norm``, a null
    record 0. So zero-out moves every entry by at most ``clip_norm`` and replace-one by at most
    twice that.

    *Theorem.* With Laplace noise of scale b on each entry, and entries that move by at most s from
    one neighbour to the other, the answer is ``2 s / b``-DP with delta = 0 (report noisy max: Dwork
    and Roth 2014, Claim 3.9, Talwar, Thakurta, Zhang 2015, Alg. 2, has one entry for each vertex).
    *Proof* for noise on a grid, in units of the grid: entry j is ``k_j + o_j + r_j``, all three
    whole numbers: the rounded sum, the public offset, and ``r_j = round(R_j)`` with R Laplace of
    scale b. Fix all r but r_i, and let t be the largest ``|k_j + o_j + r_j|`` over j != i. The
    answer is i with sign + where ``k_i + o_i + r_i`` is at least t (or above t, where an entry
    before i has it, ties are broken by place): a half-line of r_i, ``r_i >= a``. On the neighbour
    k_i has fallen by at most s, and t risen by at most s, whole numbers all: there the answer is
    the same for all ``r_i >= a + 2 s``. And ``P(R_i >= a - 1/2 + 2 s)`` is at least ``exp(-2 s / b)
    P(R_i >= a - 1/2)`` for every a, as Laplace tails fall no faster. For sign - turn all signs
    around. As the other r have the same distribution on both, so it is on average.

    *Floating point.* Rounding to the grid moves an entry by one step of it more, which is added to
    the bound. Sums of whole multiples of the grid are exact.

    Parameters
    ----------
    point : array of shape (n_parameters, n_outputs)
        Finite.
    clip_norm : float
        From 1e-100 to 1e100.
    relative_noise : float, default=1.0
        Noise relative to that of the plan.
    """

    point: base.Point = field(repr=False)
    clip_norm: base.Bound
    relative_noise: base.Positive = 1.0
    kind: ClassVar[str] = "vertex_selection"
    takes_groups: ClassVar[bool] = True

    @property
    def _gradients(self) -> GradientSum:
        return GradientSum(self.point, self.clip_norm, math.inf)

    @property
    def _noise(self) -> _HiddenNoise:
        return _HiddenNoise(self.relative_noise)

    def parts(self) -> tuple[object, ...]:
        return (self._gradients,)

    def contribution(self, context: PublicContext) -> base.Contribution:
        """Return the bound on the entries of a record's gradient.

        Returns
        -------
        Contribution
        """
        return self._gradients.contribution(context, context.public.n_rows)

    def event(self, context: PublicContext) -> NoisyMaximum:
        return self._noise.event(self.contribution(context).spread)

    def std(self, context: PublicContext) -> float:
        return self._noise.std(self.contribution(context), context.scale)

    def answer(self, source: Source, context: PublicContext, noise_source: NoiseSource) -> Array:
        rows = require_kind(source, RepeatableSource)
        total = self._gradients.total(rows, context)
        contribution = self.contribution(context)
        offset = context.public.total_weight * context.problem.penalty_gradient(self.point)
        noisy = self._noise.add_noise(total, contribution, context.scale, noise_source)
        if context.scale > 0:
            # Sums with it are exact: they have whole numbers below 2**53 on the grid.
            grid = self._noise._grid(contribution, context.scale)
            most = 2.0**52 * grid
            offset = grid * np.rint(np.clip(offset, -most, most) / grid)
        return _vertex(noisy + offset)

    def placeholder(self, context: PublicContext, rng: np.random.Generator) -> Array:
        return _vertex(rng.standard_normal(context.public.shape))


def _vertex(values: Array) -> Array:
    """Return the sign of the first entry of largest absolute value, in its place. 0 counts as +."""
    vertex = np.zeros(values.shape)
    largest = np.argmax(np.abs(values))
    vertex.flat[largest] = -1.0 if values.flat[largest] < 0 else 1.0
    return vertex
