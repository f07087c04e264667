"""The last stage of a regression: a slope and a shift of its predictions, found privately.

Residuals are capped, so that one row cannot pull far; where targets are skewed, that leaves
predictions too small and off centre. Two numbers mend it, each only as far as it stands out of
its noise, so that where nothing is amiss little is changed.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp.oracle import DirectionalSum, Oracle, Public, Solution, Stage
from skdp.oracle.public import TARGET_RANGE


@dataclass(frozen=True)
class CorrectionRule:
    """What the stage spends and believes, as measured in docs/defaults.rst.

    Attributes
    ----------
    share : float
        Of mu squared.
    least_clip : float
        Bound on a record's vector of (g r, g**2, r), with g its prediction and r its residual in
        sizes of the target.
    clip_growth : float
        The bound grows so that noise is this share of the rows, where that is more: then noise no
        longer matters, and the bias of clipping still does.
    stands_out : float
        What a sum has to exceed for any of it to be believed, in units of its noise.
    least, most : float
        Limits of the slope.
    most_shift : float
        Limit of the shift, in sizes of the target.
    """

    share: float = 0.03
    least_clip: float = 3.0
    clip_growth: float = 0.02
    stands_out: float = 2.0
    least: float = 0.5
    most: float = 2.0
    most_shift: float = 1.0


RULE = CorrectionRule()


@dataclass(frozen=True, eq=False)
class Correction(Stage):
    """A slope and a shift for the predictions of the solver's solution.

    One release: sums of g r, g**2 and r. The slope and the shift are Newton's step in each of the
    two by itself. The 2 x 2 system of both is never solved: where predictions hardly vary, its
    noisy matrix is singular. Where columns are centred it is diagonal anyway, and otherwise a
    step in each by itself still does not lead away from the minimum of a quadratic in both.

    Parameters
    ----------
    share : float
        Of mu squared; in (0, 1).
    clip_norm : float
        Of a record's vector.
    """

    share: float
    clip_norm: float

    @classmethod
    def for_public(cls, public: Public) -> "Correction":
        """Return the stage with the bound that public facts suggest."""
        told = public.gradient_mu * public.n_rows * math.sqrt(RULE.share)
        return cls(RULE.share, max(RULE.least_clip, RULE.clip_growth * told))

    def tells(self, public: Public) -> bool:
        """Whether a shift can stand out of its noise: if not, noise is all that it would add."""
        told = public.gradient_mu * public.n_rows * math.sqrt(self.share)
        return RULE.stands_out * self.clip_norm < RULE.most_shift * told

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        public, problem, coef = oracle.public, oracle.problem, solution.coef
        with_shift = public.has_intercept
        direction = coef.copy()
        if with_shift:
            direction[-1] = 0.0
        asked = DirectionalSum(coef, direction, self.clip_norm, with_shift, its_curvature=False)
        answer, noise = oracle.with_share(asked, self.share)
        # The penalty is part of what is minimised, and costs nothing; it is a square.
        pull = public.n_rows * float(np.vdot(problem.penalty_gradient(coef), coef))
        slope = 1.0
        if answer[1] > 2 * RULE.stands_out * noise:
            step = -_believed(answer[0] + pull, noise) / (answer[1] + pull)
            slope = min(max(1 + step, RULE.least), RULE.most)
        found = coef.copy()
        found[: public.n_features] *= slope
        if with_shift:
            shift = -_believed(answer[2], noise) / public.n_rows
            found[-1] += min(max(shift, -RULE.most_shift), RULE.most_shift) / public.intercept_size
        return replace(solution, coef=found)


def _believed(total: float, noise: float) -> float:
    """Return a noisy sum, less what noise may have added (James and Stein 1961)."""
    limit = RULE.stands_out * noise
    return 0.0 if abs(total) <= limit else total * (1 - (limit / total) ** 2)


def lacks(public: Public) -> str | None:
    """Return what a correction of this regression would need and lacks, None if nothing."""
    if public.n_outputs > 1:
        return "one target"
    if public.weighted:
        return "rows without weights"
    if public.target_bound not in (None, TARGET_RANGE):
        return "targets of unit size, which scaling brings about"
    return None
