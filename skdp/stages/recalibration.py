"""Stage after the solver of a classification: a private slope and shift of its margins.

Noise and clipping leave a model whose predictions rank well and are overconfident or
underconfident. A slope and a shift of its margins correct that (Platt 1999; with several outputs a
slope alone, as in temperature scaling). Two numbers take a small part of the budget that thousands
of coefficients need.

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
from skdp.objective import Problem
from skdp.oracle import DirectionalSum, Oracle, Public, Solution
from skdp.stages.base import CalibrationStage, StageParameters

ROUNDS = 2  # Newton steps, each a release
MAX_SHARE = 0.05  # of mu squared
# From this signal, mu n, on the share falls as 1 / (mu n), so that noise falls as its root; the
# bound on a record's derivatives grows by this power, so that its bias vanishes, too; and the prior
# becomes narrower.
AMPLE, GROWTH = 1500.0, 0.25


@dataclass(frozen=True)
class CalibrationPrior:
    """Prior of slope and shift of a model, and the bound on a record's derivatives.

    Attributes
    ----------
    slope, slope_std, shift_std : float
        The mean of the shift is 0.
    clip_norm : float
        Bound on a record's derivatives.
    """

    slope: float
    slope_std: float
    shift_std: float
    clip_norm: float


# Priors at a low signal.
LOGISTIC = CalibrationPrior(0.8, 0.35, 0.1, clip_norm=3.0)
MULTINOMIAL = CalibrationPrior(1.0, 0.35, 0.1, clip_norm=3.0)


def _prior(public: Public, problem: Problem) -> CalibrationPrior:
    """Return the prior for these public facts: around a slope of 1 for a strong signal."""
    few, ample = LOGISTIC if problem.loss.separable else MULTINOMIAL, max(1.0, _abundance(public))
    return CalibrationPrior(
        slope=1 - (1 - few.slope) / ample,
        slope_std=few.slope_std / math.sqrt(ample),
        shift_std=few.shift_std / math.sqrt(ample),
        clip_norm=few.clip_norm * ample**GROWTH,
    )


def _abundance(public: Public) -> float:
    """Return the signal mu n, relative to an ample one."""
    return public.gradient_mu * public.n_rows / AMPLE


def recalibration_share(public: Public) -> float:
    """Return the share of mu squared for a recalibration, from public facts."""
    return MAX_SHARE / max(1.0, _abundance(public))


# Least eigenvalue of a noisy Hessian, of the mean loss or in noise standard deviations if less.
LEAST_CURVATURE, LEAST_SEEN = 0.02, 2.0
LEAST_SLOPE, MOST_SLOPE = 0.05, 2.0


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
        So the minimum has the precision ``H**2 / std**2``, around where Newton's step leads. H
        is noisy, too, and its eigenvalues are lifted to a least one, smaller where noise is.

        Parameters
        ----------
        at : array of shape (k,)
            Where the derivatives were taken.
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
    share : float
        Of mu squared; in (0, 1).
    expected : CalibrationPrior
    """

    share: float
    expected: CalibrationPrior
    of_regressions: ClassVar[bool] = False

    @classmethod
    def of(cls, public: Public, problem: Problem, parameters: StageParameters) -> Self:
        return cls.for_problem(public, problem)

    @classmethod
    def for_problem(cls, public: Public, problem: Problem) -> Self:
        """Return the stage with the share and the prior that follow from public facts."""
        return cls(recalibration_share(public), _prior(public, problem))

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        coef = solution.coef
        public, problem, expected = oracle.public, oracle.problem, self.expected
        with_shift = public.n_outputs == 1 and public.has_intercept
        mean = np.array([expected.slope, 0.0])[: 1 + with_shift]
        std = np.array([expected.slope_std, expected.shift_std])[: len(mean)]
        posterior = GaussianPosterior.prior(mean, std)
        for _ in range(ROUNDS):
            at = posterior.best
            point = _moved(coef, at, public)
            request = DirectionalSum(point, coef, expected.clip_norm, with_shift)
            answer, noise = oracle.with_share(request, self.share / ROUNDS)
            mean_loss = answer / public.n_rows
            gradient, hessian = mean_loss[[0]], mean_loss[[[1]]]
            if with_shift:
                gradient, hessian = mean_loss[[0, 2]], mean_loss[[[1, 3], [3, 4]]]
            # The penalty is part of what is minimised, and costs nothing.
            pull = problem.penalty_gradient(coef)
            gradient[0] += at[0] * np.vdot(pull, coef)
            hessian[0, 0] += np.vdot(pull, coef)
            posterior = posterior.after(at, gradient, hessian, noise / public.n_rows)
        return replace(solution, coef=_moved(coef, posterior.best, public))


def _moved(coef: Array, at: Array, public: Public) -> Array:
    """Return the parameter with this slope and shift."""
    point = at[0] * coef
    if len(at) > 1:
        point[-1] += at[1] / public.intercept_size
    return np.asarray(point)
