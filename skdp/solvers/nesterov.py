"""Nesterov's accelerated gradient method, with noise that falls as the end comes near."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from skdp._numbers import Array
from skdp.objective import Problem
from skdp.planning import nesterov_bounds
from skdp.solvers.accelerated import MOST, Accelerated, documented
from skdp.steps import NesterovNoise, NesterovPath, NoiseSchedule, Path


@documented
class Nesterov(Accelerated):
    """Accelerated gradient method of Nesterov, with optimal noise (DP-NAG, DP-NAG-opt).

    Step t asks for the mean gradient at ``z = (1 + beta) x - beta x_previous``, each record's part
    clipped, adds that of the penalty, and goes ``x_next = z - a gradient``, with ``a = step / L``
    and ``beta = (1 - sqrt(a mu)) / (1 + sqrt(a mu))`` (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022,
    eq. 27). The last iterate is returned.

    mu is the strong convexity of the penalty, in the coefficients; without a strongly convex
    penalty the solver refuses. An intercept is not penalised: it is part of the same steps, and the
    theory, which is for ``fit_intercept=False``, takes its convexity for granted.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps. "auto" makes the error bound (eq. 32) least, up to 1000, for a full-batch
        run; see `skdp.planning.nesterov_bounds`.
    noise_schedule : str, NoiseSchedule or array of shape (max_iter,), default="optimal"
        "optimal" is the best for the error bound (Prop. 4.2; on samples, with delta = 0, it is
        found numerically), but no step gets more than 100 times the noise of the quietest;
        "uniform" is DP-NAG.
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

    name: ClassVar[str] = "nesterov"

    def _bounds(self, smoothness: float, problem: Problem, excess: float, spent: Any) -> Array:
        variance, law = spent
        return nesterov_bounds(
            MOST,
            smoothness,
            problem.strong_convexity,
            excess,
            variance,
            step=self.step,
            noise_schedule=self._scheduled(),
            law=law,
        )

    def _schedule(self, smoothness: float, problem: Problem) -> NoiseSchedule:
        return NesterovNoise(self._kappa(smoothness, problem), self.step)

    def _path(self, start: Array, smoothness: float, problem: Problem) -> Path:
        sizes = np.full(self.max_iter, self.step / smoothness)
        return NesterovPath(start, sizes, problem.strong_convexity)
