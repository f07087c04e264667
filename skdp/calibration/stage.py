"""A solver, then a private calibration of what it predicts; one plan on one ledger.

Noise and clipping leave a model whose predictions rank well and are too sure of themselves, or not
sure enough. A slope and a shift of its margins mend that (Platt 1999; with several outputs a
slope alone, as in temperature scaling). Two numbers are found with a small part of what thousands
of coefficients take, so that they cost little.

References
----------
J. Platt: Probabilistic outputs for support vector machines and comparisons to regularized
likelihood methods. Advances in Large Margin Classifiers, 1999.
C. Guo, G. Pleiss, Y. Sun, K. Weinberger: On calibration of modern neural networks. ICML 2017.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp.accounting import Gaussian, gaussian_mu
from skdp.calibration.posterior import Array, Belief
from skdp.objective import Problem
from skdp.oracle import DirectionalSum, Oracle, Public, Solution, Solves, noise_per_mu

ROUNDS = 2
MOST = 0.05  # of mu squared
# Times n: from here on the share falls as 1 / (mu n), so that noise falls as its root, the bound on
# a part of a record grows, so that its bias vanishes, too, and less is expected to be amiss.
AMPLE, GROWTH = 1500.0, 0.25


@dataclass(frozen=True)
class Expected:
    """What is expected of a model before it is calibrated, and a bound on a record's part.

    Attributes
    ----------
    slope, slope_std, shift_std : float
        The shift is expected to be 0.
    clip_norm : float
        Of a record's derivatives.
    """

    slope: float
    slope_std: float
    shift_std: float
    clip_norm: float


# Where there is little to go by.
LOGISTIC = Expected(0.8, 0.35, 0.1, clip_norm=3.0)
MULTINOMIAL = Expected(1.0, 0.35, 0.1, clip_norm=3.0)


def _expected(public: Public, problem: Problem) -> Expected:
    """Return what is expected, from public facts: a slope of 1 where there is ample to go by."""
    few, ample = LOGISTIC if problem.loss.separable else MULTINOMIAL, max(1.0, _abundance(public))
    return Expected(
        slope=1 - (1 - few.slope) / ample,
        slope_std=few.slope_std / math.sqrt(ample),
        shift_std=few.shift_std / math.sqrt(ample),
        clip_norm=few.clip_norm * ample**GROWTH,
    )


def _abundance(public: Public) -> float:
    """Return mu n, next to what is ample."""
    mu = gaussian_mu(min(public.epsilon, 1e4), public.delta) * math.sqrt(public.share)
    return mu * public.n_rows / Gaussian(1.0).sensitivity(public.adjacency) / AMPLE


def calibration_share(public: Public) -> float:
    """Return the share of mu squared for a calibration, from public facts."""
    return MOST / max(1.0, _abundance(public))


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A solver, and a slope and a shift for the margins of its solution.

    Parameters
    ----------
    solver : Solver
        Resolved for ``1 - share`` of the budget; it plans its noise beforehand.
    share : float
        Of mu squared, for the calibration; in (0, 1).
    expected : Expected
    noise : float
        What noise 1 of the solver is in units of the whole budget.
    """

    solver: Solves
    share: float
    expected: Expected
    noise: float = 1.0
    adaptive: bool = False

    @classmethod
    def sharing(
        cls,
        solver: Solves,
        public: Public,
        problem: Problem,
        accountant: str = "auto",
    ) -> Calibrated:
        """Return both with noise such that the calibration gets its share of the budget."""
        share = calibration_share(public)
        noise = noise_per_mu(solver, public, problem, accountant) / math.sqrt(1 - share)
        return cls(solver, share, _expected(public, problem), noise)

    def solve(self, oracle: Oracle) -> Solution:
        """Solve, then calibrate the solution."""
        oracle.relate_noise(self.noise)
        found = self.solver.solve(oracle)
        oracle.relate_noise(1 / self.noise)
        return replace(found, coef=self._calibrated(oracle, found.coef))

    def _calibrated(self, oracle: Oracle, coef: Array) -> Array:
        public, problem, expected = oracle.public, oracle.problem, self.expected
        with_shift = public.n_outputs == 1 and public.has_intercept
        mean = np.array([expected.slope, 0.0])[: 1 + with_shift]
        belief = Belief.prior(mean, np.array([expected.slope_std, expected.shift_std])[: len(mean)])
        for _ in range(ROUNDS):
            at = belief.best
            point = _moved(coef, at, public)
            what = DirectionalSum(point, coef, expected.clip_norm, with_shift)
            answer, std = oracle.sum_of(what, self.share / ROUNDS)
            told = answer / public.n_rows
            gradient, hessian = told[[0]], told[[[1]]]
            if with_shift:
                gradient, hessian = told[[0, 2]], told[[[1, 3], [3, 4]]]
            # The penalty is part of what is minimised, and costs nothing.
            pull = problem.penalty_gradient(coef)
            gradient[0] += at[0] * np.vdot(pull, coef)
            hessian[0, 0] += np.vdot(pull, coef)
            belief = belief.after(at, gradient, hessian, std / public.n_rows)
        return _moved(coef, belief.best, public)


def _moved(coef: Array, at: Array, public: Public) -> Array:
    """Return the parameter with this slope and shift."""
    point = at[0] * coef
    if len(at) > 1:
        point[-1] += at[1] / public.intercept_size
    return np.asarray(point)
