"""Stage after the solver of a regression: a private slope and shift of its predictions.

Residuals are capped, which bounds the influence of a row; where targets are skewed, that makes
predictions too small and biased. Slope and shift correct it. Both are shrunk according to their
noise, so that little changes where no correction is needed.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from skdp.objective import Problem
from skdp.oracle import DirectionalSum, Oracle, Public, Solution
from skdp.oracle.public import TARGET_RANGE
from skdp.stages.base import CalibrationStage, StageParameters


@dataclass(frozen=True)
class CorrectionRule:
    """Constants of the correction, as measured in docs/defaults.rst.

    Attributes
    ----------
    share : float
        Of mu squared.
    least_clip : float
        Bound on a record's vector of (g r, g**2, r), with g its prediction and r its residual in
        scales of the target.
    clip_growth : float
        Noise, as a share of the rows, up to which the bound grows where that is more: then noise is
        negligible, and the bias of clipping is not.
    z_detect : float
        Sums below it, in noise standard deviations, count as 0.
    least, most : float
        Limits of the slope.
    most_shift : float
        Limit of the shift, in scales of the target.
    """

    share: float = 0.03
    least_clip: float = 3.0
    clip_growth: float = 0.02
    z_detect: float = 2.0
    least: float = 0.5
    most: float = 2.0
    most_shift: float = 1.0


RULE = CorrectionRule()


@dataclass(frozen=True, eq=False)
class Correction(CalibrationStage):
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
    of_regressions: ClassVar[bool] = True

    @classmethod
    def applies(cls, public: Public, problem: Problem, parameters: StageParameters) -> str | None:
        missing = super().applies(public, problem, parameters) or _missing_of_targets(public)
        if missing is not None or parameters.calibration == "private":
            return missing
        is_detectable = cls.for_public(public).is_detectable(public)
        return None if is_detectable else "a shift that can exceed its noise: more rows"

    @classmethod
    def of(cls, public: Public, problem: Problem, parameters: StageParameters) -> Self:
        return cls.for_public(public)

    @classmethod
    def for_public(cls, public: Public) -> Self:
        """Return the stage with the bound that follows from public facts."""
        signal = public.gradient_mu * public.n_rows * math.sqrt(RULE.share)
        return cls(RULE.share, max(RULE.least_clip, RULE.clip_growth * signal))

    def is_detectable(self, public: Public) -> bool:
        """Whether a shift can exceed its noise: if not, the stage would add noise alone."""
        signal = public.gradient_mu * public.n_rows * math.sqrt(self.share)
        return RULE.z_detect * self.clip_norm < RULE.most_shift * signal

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        public, problem, coef = oracle.public, oracle.problem, solution.coef
        with_shift = public.has_intercept
        direction = coef.copy()
        if with_shift:
            direction[-1] = 0.0
        request = DirectionalSum(coef, direction, self.clip_norm, with_shift, its_curvature=False)
        answer, noise = oracle.with_share(request, self.share)
        # The penalty is part of what is minimised, and costs nothing; it is a square.
        pull = public.n_rows * float(np.vdot(problem.penalty_gradient(coef), coef))
        slope = 1.0
        if answer[1] > 2 * RULE.z_detect * noise:
            step = -_positive_part_james_stein(answer[0] + pull, noise) / (answer[1] + pull)
            slope = min(max(1 + step, RULE.least), RULE.most)
        corrected = coef.copy()
        corrected[: public.n_features] *= slope
        if with_shift:
            shift = -_positive_part_james_stein(answer[2], noise) / public.n_rows
            corrected[-1] += (
                min(max(shift, -RULE.most_shift), RULE.most_shift) / public.intercept_size
            )
        return replace(solution, coef=corrected)


def _positive_part_james_stein(total: float, noise: float) -> float:
    """Return a noisy sum, shrunk towards 0 by its noise (James and Stein 1961)."""
    limit = RULE.z_detect * noise
    return 0.0 if abs(total) <= limit else total * (1 - (limit / total) ** 2)


def _missing_of_targets(public: Public) -> str | None:
    """Return what a correction needs of the targets and this regression does not have."""
    if public.n_outputs > 1:
        return "one target"
    if public.weighted:
        return "rows without weights"
    if public.target_bound not in (None, TARGET_RANGE):
        return "targets of unit size, which scaling brings about"
    return None
