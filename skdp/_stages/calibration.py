"""Correct slope and shift of a solver's predictions, privately, after the solver.

*Classification.* Noise and clipping leave a model whose predictions rank well and are overconfident
or underconfident. A slope and a shift of its margins correct that (Platt 1999, with several outputs
only a slope, as in temperature scaling). Two numbers need a small part of the budget of thousands
of coefficients.

*Regression.* Residuals are capped, which bounds the influence of a row. Where targets are skewed,
that makes predictions too small and biased. Slope and shift correct it. Both are shrunk according
to their noise, so that little changes where no correction is needed. With a log link a factor on
all means does.

References
----------
J. Platt: Probabilistic outputs for support vector machines and comparisons to regularized
likelihood methods. Advances in Large Margin Classifiers, 1999.
C. Guo, G. Pleiss, Y. Sun, K. Weinberger: On calibration of modern neural networks. ICML 2017.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from skdp._numbers import Array
from skdp._oracle import DirectionalSum, Oracle, Public, Solution
from skdp._oracle.public import TARGET_RANGE
from skdp._stages.base import GAUSSIAN, OptionalStage, StageParameters, first_missing
from skdp.objective import Problem, TweedieLog
from skdp.objective.losses import TargetKind
from skdp.objective.tweedie import unbounded_unit


class CalibrationStage(OptionalStage):
    """A stage after the solver that changes slope and shift of its predictions."""

    title: ClassVar[str] = "calibration"
    place: ClassVar[str] = "after"
    targets: ClassVar[TargetKind]

    @classmethod
    def concerns(cls, problem: Problem, parameters: StageParameters) -> bool:
        return parameters.calibrates and problem.loss.targets == cls.targets

    @classmethod
    def applies(cls, public: Public, problem: Problem, parameters: StageParameters) -> str | None:
        needs = {
            "noise: a finite epsilon": not public.is_noisy,
            "scaling other than 'none'": parameters.scaling == "none",
            "no L1 penalty, no constraint and a smooth loss": not problem.provides.issuperset(
                ("smooth_loss", "smooth_penalty", "unconstrained")
            ),
            GAUSSIAN: public.has_laplace_noise,
            "rows that can be read more than once": public.streamed,
            "a solver that plans its noise beforehand": parameters.adaptive,
        }
        return first_missing(needs)


# ------------------------------------------------------------------ classification

SHARE = 0.1  # of mu squared
# The bound on a record's derivatives grows with this power of the signal mu n over AMPLE: clipping
# favours the larger class, and noise matters less.
GROWTH, AMPLE = 0.25, 1500.0


# Expected slope where coefficients are all signal, and bound on a record's derivatives: of two
# classes, and of several.
TWO_CLASSES, MORE_CLASSES = (0.8, 5.0), (1.0, 3.0)
# Standard deviations of slope and shift there, and of a shift, in log odds, where coefficients are
# noise alone: columns whose centres are unknown have moved all margins.
SLOPE_STD, SHIFT_STD, NOISE_SHIFT_STD = 0.35, 0.1, 0.6


@dataclass(frozen=True, eq=False)
class CalibrationPrior:
    """Prior mean and standard deviation of slope and shift, and the bound on derivatives.

    Attributes
    ----------
    mean, std : array of shape (2,)
    clip_norm : float
        Bound on a record's derivatives.
    """

    mean: Array
    std: Array
    clip_norm: float

    @classmethod
    def of(cls, public: Public, problem: Problem) -> Self:
        """Return the prior for these public facts: around a slope of 1 for a strong signal.

        The expected slope is shrunk according to noise, as by the positive part of James and Stein
        (1961): with s the signal-to-noise ratio of coefficients, a share s / (s + 1) of the margins
        is expected to be signal.
        """
        slope, clip_norm = TWO_CLASSES if problem.loss.separable else MORE_CLASSES
        signal = public.gradient_mu * public.n_rows / AMPLE
        ample = max(1.0, signal)
        # Coefficients near a start that was given are no noise.
        noise = 1 / (1 + public.signal_to_noise) if public.start is None else 0.0
        mean = np.array([(1 - (1 - slope) / ample) * (1 - noise), 0.0])
        std = np.array([SLOPE_STD, SHIFT_STD]) / math.sqrt(ample)
        std[1] += noise * max(NOISE_SHIFT_STD - std[1], 0.0)
        return cls(mean, std, clip_norm * signal**GROWTH)


# Least eigenvalue of a noisy Hessian, of the mean loss or in noise standard deviations if less.
LEAST_CURVATURE, LEAST_SEEN = 0.02, 2.0
LEAST_SLOPE, MOST_SLOPE = 0.02, 2.0


@dataclass(frozen=True, eq=False)
class GaussianPosterior:
    """Normal distribution of (slope, shift), by its precision and by precision times mean.

    Attributes
    ----------
    precision : array of shape (k, k)
    information : array of shape (k,)
    """

    precision: Array
    information: Array

    @classmethod
    def prior(cls, mean: Array, std: Array) -> GaussianPosterior:
        """Return independent normal distributions."""
        precision = np.diag(np.asarray(std, dtype=float) ** -2)
        return cls(precision, precision @ mean)

    @property
    def best(self) -> Array:
        """Its mean, with the slope within limits and the conditional mean of the shift."""
        covariance = np.linalg.inv(self.precision)
        mean = covariance @ self.information
        slope = np.clip(mean[0], LEAST_SLOPE, MOST_SLOPE)
        mean += covariance[:, 0] / covariance[0, 0] * (slope - mean[0])
        mean[0] = slope
        return np.asarray(mean, dtype=np.float64)

    def after(self, at: Array, gradient: Array, hessian: Array, std: float) -> GaussianPosterior:
        """Return the posterior after a noisy gradient of the mean loss has been seen.

        Near its minimum the mean loss is about quadratic: ``gradient = H (at - minimum) + noise``.
        So the minimum has the precision ``H**2 / std**2``, around where Newton's step leads. H is
        also noisy, so its eigenvalues are raised to a minimum, which is smaller if the noise is.

        Parameters
        ----------
        at : array of shape (k,)
            Where the derivatives were computed.
        gradient : array of shape (k,)
        hessian : array of shape (k, k)
            Symmetric.
        std : float
            Noise on each entry of the gradient and of the Hessian, positive.
        """
        values, vectors = np.linalg.eigh(hessian)
        least = min(LEAST_CURVATURE, LEAST_SEEN * std)
        lifted = (vectors * np.maximum(values, least)) @ vectors.T
        signal = lifted / std
        return GaussianPosterior(
            self.precision + signal @ signal,
            self.information + signal @ (lifted @ at - gradient) / std,
        )


@dataclass(frozen=True, eq=False)
class Recalibration(CalibrationStage):
    """A slope and a shift for the margins of the solver's solution.

    Parameters
    ----------
    expected : CalibrationPrior
    """

    expected: CalibrationPrior
    share = SHARE
    targets: ClassVar[TargetKind] = "label"

    @classmethod
    def of(cls, public: Public, problem: Problem, parameters: StageParameters) -> Self:
        return cls(CalibrationPrior.of(public, problem))

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        coef, expected = solution.coef, self.expected
        public, problem = oracle.public, oracle.problem
        with_shift = public.n_outputs == 1 and public.has_intercept
        first, second = ([0, 2], [[1, 3], [3, 4]]) if with_shift else ([0], [[1]])
        size = len(first)
        posterior = GaussianPosterior.prior(expected.mean[:size], expected.std[:size])
        at = posterior.best
        request = DirectionalSum(_moved(coef, at, public), coef, expected.clip_norm, with_shift)
        answer, noise = oracle.with_share(request, self.share)
        mean_loss = answer / public.total_weight
        gradient, hessian = mean_loss[first], mean_loss[second]
        # The penalty is part of what is minimised, and costs nothing.
        pull = float(np.vdot(problem.penalty_gradient(coef), coef))
        gradient[0] += at[0] * pull
        # Where margins separate classes, curvature falls about as 1 / slope**2: a slope that
        # clearly has to grow takes Newton's step in 1 / slope, at most twice as long. One that has
        # to fall is at most halved.
        std, curvature = noise / public.total_weight, max(hessian[0, 0], 2 * gradient[0] / at[0])
        falling = min(gradient[0] + std, 0.0) / at[0]
        hessian[0, 0] = max(curvature + falling, curvature / 2) + pull
        posterior = posterior.after(at, gradient, hessian, std)
        return replace(solution, coef=_moved(coef, posterior.best, public))


def _moved(coef: Array, at: Array, public: Public) -> Array:
    """Return the parameter with this slope and shift."""
    point = at[0] * coef
    if len(at) > 1:
        point[-1] += at[1] / public.intercept_size
    return np.asarray(point)


# ------------------------------------------------------------------ log links


# Chosen on the development half of counts.csv. Largest share of mu squared. It is one over the root
# of the signal mu n.
MOST_SHARE = 0.25
# Cap of residuals, whichever is more: in units of targets, and over the mean, in roots of the
# signal of the release. Weight of derivatives next to residuals in the vector that is cut.
LEAST_CAP, CAP_GROWTH, WEIGHT = 1.5, 0.5, 0.5
# Prior of the logarithm of the factor, where this many times the share is 1 or more, and the least
# factor that noise leaves.
LOG_FACTOR, LOG_FACTOR_STD, NARROWING, LEAST_FACTOR = 0.3, 0.7, 10.0, 0.05
# Variance of the noise of slopes, next to that of the slopes of a table, at a signal-to-noise ratio
# of 1.
SLOPE_NOISE = 3.0
# Least estimated skewness of targets that is evidence of a true one above 2: histograms do not show
# the whole tail. Chosen on the development half of held_out.csv.
SKEWED = 0.75


@dataclass(frozen=True, eq=False)
class MeanCorrection(CalibrationStage):
    """Shrink the solution of a log link by its known noise, and correct its mean.

    Noise moves log means the further the rarer events are, and effects of columns have about the
    same size everywhere: the posterior mean of slopes with that size as their prior's keeps the
    share ``1 / (1 + noise**2)`` of them. Of the intercept ``1 - noise**2`` is kept, at least 0 (the
    positive part of James and Stein 1961), of the noise where events are rarer than usual, since
    scaling has noise of its own. It is post-processing.

    The mean is then too small, mostly: noise hides large targets from scaling, and the solver caps
    their residuals. One release shows by which factor: the sum of residuals along the intercept,
    each capped far out, and that of their derivatives. Its logarithm is normal around a prior mean.

    Parameters
    ----------
    share : float
        Of mu squared, for the release, 0 for none.
    reach : float
        Least cap of residuals, over the mean of all targets.
    """

    share: float = 0.0
    reach: float = 0.0
    targets: ClassVar[TargetKind] = "nonnegative"

    @classmethod
    def of(cls, public: Public, problem: Problem, parameters: StageParameters) -> Self:
        if not public.has_intercept or public.target_bound not in (None, TARGET_RANGE):
            return cls()
        signal = public.gradient_mu * public.n_rows
        share = min(MOST_SHARE, 1 / math.sqrt(signal))
        return cls(share, CAP_GROWTH * math.sqrt(signal * math.sqrt(share)))

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        public, loss = oracle.public, oracle.problem.loss
        kept = np.ones(public.shape)
        if public.start is None:  # coefficients near a start that was given are no noise
            signal = public.signal_to_noise**2
            kept[:] = signal / (signal + SLOPE_NOISE * loss.slowdown)
            kept[public.n_features :] = max(1 - (loss.slowdown**2 - 1) / signal, 0.0)
        coef = kept * solution.coef
        if self.share:
            coef[-1] += self._shift(oracle, coef) / public.intercept_size
        return replace(solution, coef=coef)

    def _shift(self, oracle: Oracle, coef: Array) -> float:
        """Return what to add to the margins."""
        public, loss = oracle.public, oracle.problem.loss
        assert isinstance(loss, TweedieLog)
        size, direction = WEIGHT / loss.unit, np.zeros_like(coef)
        direction[-1] = size / public.intercept_size
        # Sums of residuals and of weight times derivatives, in these units.
        unit = size / loss.unit
        # A single event is as large as the unit of the targets before it was bounded.
        event, skewness = loss.unit, SKEWED
        targets = None if oracle.scaling is None else oracle.scaling.targets
        if targets is not None:
            event *= float(unbounded_unit(targets.centre, targets.scale, targets.high)[0])
            if targets.skewness is not None:
                skewness = abs(float(targets.skewness[0]))
        cap = unit * max(LEAST_CAP * event, self.reach)
        answer, noise = oracle.with_share(DirectionalSum(coef, direction, cap), self.share)
        residual, noise = answer[0] / unit, noise / unit
        # Targets over means, both weighted as residuals are, add up to this share.
        means = max(answer[1] / (WEIGHT * unit) + (loss.power - 1) * residual, noise)
        factor = math.log(max(1 - residual / means, LEAST_FACTOR))
        # More rows, a larger budget, or targets without a long tail leave less to correct.
        expected = min(1.0, NARROWING * self.share) * min(1.0, skewness / SKEWED)
        certainty = (expected * LOG_FACTOR_STD * means * math.exp(factor) / noise) ** 2
        shift = (expected * LOG_FACTOR + certainty * factor) / (1 + certainty)
        return float(shift / loss.unit)


# ------------------------------------------------------------------ regression


CORRECTION_SHARE = 0.03  # of mu squared
# Bound on a record's vector of (g r, g**2, r), with g its prediction and r its residual in scales
# of the target. It grows to this share of the rows where that is more: then noise is negligible,
# and the bias of clipping is not.
LEAST_CLIP, CLIP_GROWTH = 3.0, 0.02
Z_DETECT = 2.0  # sums below it, in noise standard deviations, count as 0
LEAST_RATIO, MOST_RATIO = 0.5, 2.0  # of slopes after and before
MOST_SHIFT = 1.0  # in scales of the target


@dataclass(frozen=True, eq=False)
class Correction(CalibrationStage):
    """A slope and a shift for the predictions of the solver's solution.

    One release: sums of g r, g**2 and r. The slope and the shift are Newton's step in each of the
    two by itself. The 2 x 2 system of both is never solved: where predictions hardly vary, its
    noisy matrix is singular. Where columns are centred it is diagonal anyway, and otherwise a
    step in each by itself still does not lead away from the minimum of a quadratic in both.

    Parameters
    ----------
    clip_norm : float
        Of a record's vector.
    """

    clip_norm: float
    share = CORRECTION_SHARE
    targets: ClassVar[TargetKind] = "real"

    @classmethod
    def applies(cls, public: Public, problem: Problem, parameters: StageParameters) -> str | None:
        noise = Z_DETECT * cls.of(public, problem, parameters).clip_norm
        needs = {
            "one target": public.n_outputs > 1,
            "rows without weights": public.has_weights,
            "targets of unit size, which scaling brings about": public.target_bound
            not in (None, TARGET_RANGE),
            # Otherwise the stage would only add noise.
            "a shift that can exceed its noise: more rows": noise >= MOST_SHIFT * _signal(public),
        }
        return super().applies(public, problem, parameters) or first_missing(needs)

    @classmethod
    def of(cls, public: Public, problem: Problem, parameters: StageParameters) -> Self:
        return cls(max(LEAST_CLIP, CLIP_GROWTH * _signal(public)))

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        public, problem, coef = oracle.public, oracle.problem, solution.coef
        with_shift = public.has_intercept
        direction = coef.copy()
        if with_shift:
            direction[-1] = 0.0
        request = DirectionalSum(coef, direction, self.clip_norm, with_shift, its_curvature=False)
        answer, noise = oracle.with_share(request, self.share)
        # The penalty is part of what is minimised, and costs nothing. It is a square.
        pull = public.n_rows * float(np.vdot(problem.penalty_gradient(coef), coef))
        slope = 1.0
        if answer[1] > 2 * Z_DETECT * noise:
            step = -_positive_part_james_stein(answer[0] + pull, noise) / (answer[1] + pull)
            slope = min(max(1 + step, LEAST_RATIO), MOST_RATIO)
        corrected = coef + (slope - 1) * direction
        if with_shift:
            shift = -_positive_part_james_stein(answer[2], noise) / public.n_rows
            corrected[-1] += min(max(shift, -MOST_SHIFT), MOST_SHIFT) / public.intercept_size
        return replace(solution, coef=corrected)


def _positive_part_james_stein(total: float, noise: float) -> float:
    """Return a noisy sum, shrunk towards 0 by its noise (James and Stein 1961)."""
    limit = Z_DETECT * noise
    return 0.0 if abs(total) <= limit else total * (1 - (limit / total) ** 2)


def _signal(public: Public) -> float:
    """Return the number of rows in standard deviations of a count with the correction's share."""
    return public.gradient_mu * public.n_rows * math.sqrt(CORRECTION_SHARE)
