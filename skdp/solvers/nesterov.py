"""Nesterov's accelerated gradient method, with noise that falls as the end comes near."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from skdp.objective import Problem
from skdp.planning import nesterov_bounds
from skdp.solvers.accelerated import MOST, Accelerated
from skdp.steps import ClippingRule, NesterovNoise, NesterovPath, Path
from skdp.steps.influence import Array, NoiseSchedule


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
    mechanism : {"auto", "gaussian", "laplace"}, default="auto"
        Law of the noise; "auto" is Laplace if delta is 0, else Gaussian.
    clip_norm : float, ClippingRule or "auto", default="auto"
        Bound of one record's gradient, in L1 norm for Laplace and L2 norm for Gaussian noise.
    step : float, default=1.0
        Step size in units of ``1/L``, in (0, 1].
    smoothness : "public", "private" or float, default="public"
        L of the objective. "public": the loss's curvature times the squared bound on rows, plus the
        penalty's, far above the truth where columns are not alike. "private": a noisy release of
        the largest eigenvalue of the rows' Gram matrix, for a part of the budget, which steps and
        momentum follow; noise and number of steps, which must be known before, follow the public
        bound. A number is a public claim of the user's.
    smoothness_share : float, default=0.05
        Part of the budget for ``smoothness="private"``, in (0, 1), about.
    initial_gap : float or "auto", default="auto"
        Public guess of the excess at the start plus ``mu/2`` times the squared distance to the
        minimum. "auto" is the loss at zero: log 2 for a binary problem; squared error takes targets
        to have unit size, or a quarter of ``target_bound``.
    batch_size : int, float or None, default=None
        Expected rows in a batch, as a number or a fraction. None takes all rows at every step.
    sampling : {"poisson", "fixed_size", "shuffled", "balls_and_bins"}, default="poisson"
        How batches are drawn. The paper's is "fixed_size", under replace_one only.

    References
    ----------
    N. Kuru, S. I. Birbil, M. Gurbuzbalaban, S. Yildirim: Differentially Private Accelerated
    Optimization Algorithms. SIAM Journal on Optimization, 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(
    ...     solver="nesterov", C=0.1, epsilon=1.0, delta=0, scaling="none", random_state=0
    ... )
    >>> model.fit(scale(X), y).score(scale(X), y) > 0.8
    True
    >>> model.solver_.mechanism
    'laplace'
    """

    name: ClassVar[str] = "nesterov"

    def __init__(
        self,
        *,
        max_iter: Any = "auto",
        noise_schedule: str | NoiseSchedule | Any = "optimal",
        mechanism: str = "auto",
        clip_norm: float | ClippingRule | str = "auto",
        step: float = 1.0,
        smoothness: float | str = "public",
        smoothness_share: float = 0.05,
        initial_gap: float | str = "auto",
        batch_size: int | float | None = None,
        sampling: str = "poisson",
    ) -> None:
        self.max_iter = max_iter
        self.noise_schedule = noise_schedule
        self.mechanism = mechanism
        self.clip_norm = clip_norm
        self.step = step
        self.smoothness = smoothness
        self.smoothness_share = smoothness_share
        self.initial_gap = initial_gap
        self.batch_size = batch_size
        self.sampling = sampling

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
