"""The steepest coordinate of the objective, chosen privately among all of them."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skdp._numbers import Array
from skdp.accounting import NoisyMaximum
from skdp.oracle.noise import NoiseSource
from skdp.oracle.releases import base
from skdp.oracle.releases.base import PublicContext
from skdp.oracle.releases.gradients import GradientSum
from skdp.oracle.releases.mechanisms import Mechanism
from skdp.oracle.sources.base import RepeatableSource, Source, require_kind


@dataclass(frozen=True)
class _HiddenNoise(Mechanism):
    """Laplace noise on sums of which only the largest is named; not audited: no sum may leave."""

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
    one neighbour to the other, the answer is ``2 s / b``-DP with delta = 0 (report noisy max:
    Dwork and Roth 2014, Claim 3.9; Talwar, Thakurta, Zhang 2015, Alg. 2, has one entry for each
    vertex). *Proof* for noise on a grid, in units of the grid: entry j is ``k_j + o_j + r_j``, all
    three whole numbers: the rounded sum, the public offset, and ``r_j = round(R_j)`` with R Laplace
    of scale b. Fix all r but r_i, and let t be the largest ``|k_j + o_j + r_j|`` over j != i. The
    answer is i with sign + where ``k_i + o_i + r_i`` is at least t (or above t, where an entry
    before i has it; ties are broken by place): a half-line of r_i, ``r_i >= a``. On the neighbour
    k_i has fallen by at most s, and t risen by at most s, whole numbers all: there the answer is
    the same for all ``r_i >= a + 2 s``. And ``P(R_i >= a - 1/2 + 2 s)`` is at least
    ``exp(-2 s / b) P(R_i >= a - 1/2)`` for every a, as Laplace tails fall no faster. For sign -
    turn all signs around. As the other r have the same distribution on both, so it is on average.

    *Floating point.* Rounding to the grid moves an entry by one step of it more, which is added to
    the bound; sums of whole multiples of the grid are exact.

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
    """Return the sign of the first entry of largest absolute value, in its place; 0 counts as +."""
    vertex = np.zeros(values.shape)
    largest = np.argmax(np.abs(values))
    vertex.flat[largest] = -1.0 if values.flat[largest] < 0 else 1.0
    return vertex
