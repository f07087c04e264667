"""Polyak's heavy ball, with momentum chosen by an error bound."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from skdp._numbers import Array
from skdp.objective import Problem
from skdp.oracle import Public
from skdp.planning import heavy_ball_bounds, heavy_ball_rate, tune_heavy_ball
from skdp.solvers.accelerated import MOST, Accelerated, documented
from skdp.solvers.checks import check_count, check_interval, is_auto
from skdp.steps import ClippingRule, HeavyBallNoise, HeavyBallPath, NoiseSchedule, Path


@documented
class HeavyBallDescent(Accelerated):
    """Polyak's heavy ball on noisy gradients (DP-HB, DP-SHB on batches).

    Step t asks for the mean gradient at the last iterate, each record's part clipped, adds that of
    the penalty, and goes ``x_next = x - a gradient + beta (x - x_previous)``, with ``a = step / L``
    (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, eq. 9). The last iterate is returned. Solver "gd"
    has the same momentum with proximal steps, averaging and no need of a strongly convex penalty.

    mu is the strong convexity of the penalty, in the coefficients; see `Nesterov` on intercepts.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps, up to 1000; "auto", with ``momentum``, by `skdp.planning.tune_heavy_ball`.
    momentum : float or "auto", default="auto"
        Weight beta of the step before, in [0, 1).
    noise_schedule : str, NoiseSchedule or array of shape (max_iter,), default="optimal"
        "optimal" follows the bound of Prop. 3.4, in which the influence of a step falls by
        ``rho**2`` from one to the next; "uniform" is the paper's.
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
    >>> model = DPRidge(alpha=50, solver="heavy_ball", epsilon=3.0, scaling="none")
    >>> 0 <= model.fit(scale(X), scale(y)).solver_.momentum < 1
    True
    """

    name: ClassVar[str] = "heavy_ball"

    def __init__(
        self,
        *,
        max_iter: Any = "auto",
        momentum: Any = "auto",
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
        self.momentum = momentum

    def _decide(self, smoothness: float, public: Public, problem: Problem) -> None:
        if is_auto(self.momentum):
            if not is_auto(self.max_iter):
                check_count("max_iter", self.max_iter)
            variance, law = self._spent(public)
            choice = tune_heavy_ball(
                smoothness,
                problem.strong_convexity,
                self.initial_gap,
                variance,
                most_steps=MOST,
                n_steps=None if is_auto(self.max_iter) else self.max_iter,
                step=self.step / smoothness,
                law=law,
            )
            self.momentum = choice.momentum
            self.max_iter = choice.n_steps
        check_interval("momentum", self.momentum, low=0.0, below=1.0)
        super()._decide(smoothness, public, problem)

    def _bounds(self, smoothness: float, problem: Problem, excess: float, spent: Any) -> Array:
        return heavy_ball_bounds(
            MOST,
            self.step / smoothness,
            self.momentum,
            smoothness,
            problem.strong_convexity,
            excess,
            *spent,
        )

    def _schedule(self, smoothness: float, problem: Problem) -> NoiseSchedule:
        rate = heavy_ball_rate(
            self.step / smoothness, self.momentum, smoothness, problem.strong_convexity
        )
        return HeavyBallNoise(float(np.clip(rate, 1e-6, 1.0)))

    def _path(self, start: Array, smoothness: float, problem: Problem) -> Path:
        return HeavyBallPath(start, self.step / smoothness, self.momentum)
