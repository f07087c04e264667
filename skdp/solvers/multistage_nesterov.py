"""Nesterov's method in stages of falling step sizes."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from skdp._numbers import Array, is_real, shown
from skdp.objective import Problem
from skdp.oracle import Public
from skdp.planning import multistage_bounds, multistage_sizes
from skdp.solvers.accelerated import MOST, Accelerated, documented
from skdp.solvers.checks import check_count, is_auto
from skdp.steps import ClippingRule, MultistageNoise, NesterovPath, NoiseSchedule, Path


@documented
class MultistageNesterov(Accelerated):
    """Nesterov's method in stages, with optimal noise (DP-MASG, DP-MASG-opt).

    Steps as in solver "nesterov". The first stage has ``first_stage`` steps of ``step/L``; stage
    k >= 2 has ``2**k ceil(sqrt(kappa) log(2**(p+2)))`` steps of ``step/(4**k L)``, with
    ``kappa = L / mu``. Each stage starts with a momentum of its own, from the last iterate of the
    one before (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, sec. 4.2).

    mu is the strong convexity of the penalty, in the coefficients; see `Nesterov` on intercepts.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps; "auto" by the error bound (eq. 34), up to 1000.
    first_stage : int or "auto", default="auto"
        Steps of the first stage; "auto" by the error bound.
    p : float, default=1.0
        Length of the later stages; at least 0.
    noise_schedule : str, NoiseSchedule or array of shape (max_iter,), default="optimal"
        "optimal" is the best for the error bound, within a factor of 100 between steps; "uniform"
        is DP-MASG.
    {shared}

    References
    ----------
    {paper}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPRidge(alpha=50, solver="multistage_nesterov", epsilon=3.0, scaling="none")
    >>> model.fit(scale(X), scale(y)).n_iter_ >= 1
    True
    """

    name: ClassVar[str] = "multistage_nesterov"

    def __init__(
        self,
        *,
        max_iter: Any = "auto",
        first_stage: Any = "auto",
        p: float = 1.0,
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
        super().__init__(
            max_iter=max_iter,
            noise_schedule=noise_schedule,
            mechanism=mechanism,
            clip_norm=clip_norm,
            step=step,
            smoothness=smoothness,
            smoothness_share=smoothness_share,
            initial_gap=initial_gap,
            batch_size=batch_size,
            sampling=sampling,
        )
        self.first_stage = first_stage
        self.p = p

    def _check(self) -> None:
        super()._check()
        if not is_auto(self.first_stage):
            check_count("first_stage", self.first_stage)
        if not (is_real(self.p) and 0 <= self.p < math.inf):
            raise ValueError(f"p must be a number, at least 0; got {shown(self.p)}.")

    def _decide(self, smoothness: float, public: Public, problem: Problem) -> None:
        if is_auto(self.first_stage):
            most = MOST
            if not is_auto(self.max_iter):
                check_count("max_iter", self.max_iter)
                most = self.max_iter
            tried = np.unique(np.geomspace(1, most, 25).round().astype(int))
            least = math.inf
            for first in tried:
                self.first_stage = int(first)
                bounds = self._bounds(
                    smoothness, problem, self.initial_gap, self._spent(public), most
                )
                reached = float(bounds.min() if is_auto(self.max_iter) else bounds[-1])
                if reached < least:
                    least, best = reached, self.first_stage
            self.first_stage = best
        super()._decide(smoothness, public, problem)

    def _bounds(
        self, smoothness: float, problem: Problem, excess: float, spent: Any, most: int = MOST
    ) -> Array:
        variance, law = spent
        return multistage_bounds(
            most,
            smoothness,
            problem.strong_convexity,
            excess,
            variance,
            step=self.step,
            first_stage=self.first_stage,
            p=self.p,
            noise_schedule=self._scheduled(),
            law=law,
        )

    def _schedule(self, smoothness: float, problem: Problem) -> NoiseSchedule:
        kappa = self._kappa(smoothness, problem)
        return MultistageNoise(kappa, self.step, self.first_stage, self.p)

    def _path(self, start: Array, smoothness: float, problem: Problem) -> Path:
        kappa = self._kappa(smoothness, problem)
        sizes = multistage_sizes(
            self.max_iter, smoothness, kappa, self.step, self.first_stage, self.p
        )
        return NesterovPath(start, sizes, problem.strong_convexity)
