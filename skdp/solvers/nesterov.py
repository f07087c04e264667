"""Nesterov's accelerated gradient method, with noise that is optimal for its error bound."""

from __future__ import annotations

import numpy as np

from skdp._numbers import Array
from skdp.objective import Problem
from skdp.planning import nesterov_bounds
from skdp.solvers.accelerated import MAX_STEPS, Accelerated, documented
from skdp.steps import NesterovNoise, NesterovPath, NoiseSchedule, Path


@documented
class Nesterov(Accelerated):
    """Accelerated gradient method of Nesterov, with optimal noise (DP-NAG, DP-NAG-opt).

    Step t asks for the mean gradient at ``z = (1 + beta) x - beta x_previous``, with each record's
    gradient clipped, adds the gradient of the penalty, and moves to ``x_next = z - a gradient``,
    with ``a = step / L`` and ``beta = (1 - sqrt(a mu)) / (1 + sqrt(a mu))`` (Kuru, Birbil,
    Gurbuzbalaban, Yildirim 2022, eq. 27). The last iterate is returned.

    mu is the strong convexity of the penalty, in the coefficients; problems without a strongly
    convex penalty are refused. An intercept is not penalised. It takes the same steps, but the
    theory is for ``fit_intercept=False``.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps. "auto" minimises the error bound (eq. 32) of a full-batch run, up to 1000;
        see `skdp.planning.nesterov_bounds`.
    noise_schedule : str, NoiseSchedule or array of shape (max_iter,), default="optimal"
        "optimal" minimises the error bound (Prop. 4.2; numerically on samples with delta = 0),
        with at most 100 times the noise of the least noisy step; "uniform" is DP-NAG.
    {shared}

    References
    ----------
    {paper}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(
    ...     solver="nesterov", C=0.1, epsilon=1.0, delta=0, scaling="none"
    ... )
    >>> model.fit(scale(X), y).score(scale(X), y) > 0.8
    True
    >>> model.solver_.mechanism
    'laplace'
    """

    name = "nesterov"
    purpose = "Reference implementation of DP-NAG (Kuru et al. 2022); 'gd' was mostly better."

    def _bounds(self, smoothness: float, problem: Problem, variance: float, law: str) -> Array:
        facts = smoothness, problem.strong_convexity, self.initial_gap, variance
        schedule = self._bounded_schedule()
        return nesterov_bounds(MAX_STEPS, *facts, step=self.step, noise_schedule=schedule, law=law)

    def _schedule(self, smoothness: float, problem: Problem) -> NoiseSchedule:
        return NesterovNoise(self._kappa(smoothness, problem), self.step)

    def _path(self, start: Array, smoothness: float, problem: Problem) -> Path:
        sizes = np.full(self.max_iter, self.step / smoothness)
        return NesterovPath(start, sizes, problem.strong_convexity)
