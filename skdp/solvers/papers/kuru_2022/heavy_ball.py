"""Run Polyak's heavy ball, with momentum and number of steps that minimise an error bound."""

import numpy as np

from skdp import steps
from skdp._numbers import Array, shown
from skdp.planning import heavy_ball_bounds, heavy_ball_rate, tune_heavy_ball
from skdp.solvers import base, checks
from skdp.solvers.base import Auto, Problem, Public
from skdp.solvers.papers.kuru_2022.accelerated import MAX_STEPS, Accelerated, BoundArguments


class HeavyBallDescent(Accelerated):
    """Polyak's heavy ball on noisy gradients (DP-HB, DP-SHB on batches).

    Step t requests the mean gradient at the last iterate, with each record's gradient clipped, adds
    the gradient of the penalty, and moves to ``x_next = x - a gradient + beta (x - x_previous)``,
    with a the ``learning_rate`` (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, eq. 9). The last
    iterate is returned. Solver "gd" has the same momentum with proximal steps and averaging, and
    needs no strongly convex penalty.

    mu is the strong convexity of the penalty, in the coefficients; see `Nesterov` on intercepts.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps; "auto", up to 1000, and ``momentum`` by `skdp.planning.tune_heavy_ball`.
    momentum : float, HeavyBall, ("heavy_ball", {"beta": float}) or "auto", default="auto"
        Weight beta of the previous step, in [0, 1). Unlike those of "gd", steps here have the gain
        ``1 / (1 - beta)``, as in the paper: a constant gradient is followed with steps of
        ``learning_rate / (1 - beta)``.
    noise_schedule : str, NoiseSchedule, array of shape (max_iter,) or "auto", default="auto"
        "auto" is "optimal", which follows the bound of Prop. 3.4, in which the influence of a step
        falls by ``rho**2`` from one to the next; "uniform" is the paper's.
    {Parameters}

    References
    ----------
    {References}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPRidge(alpha=50, solver="heavy_ball", epsilon=3.0)
    >>> 0 <= model.fit(X, y).solver_.momentum < 1
    True
    """

    name = "heavy_ball"
    purpose = "Reference implementation of DP-HB (Kuru et al. 2022); 'gd' was mostly better."

    def __init__(
        self,
        *,
        max_iter: int | Auto = "auto",
        learning_rate: base.StepSize = "auto",
        momentum: base.AnyMomentum = "auto",
        noise_schedule: base.RelativeNoise = "auto",
        mechanism: str = "auto",
        clip_norm: base.ClipNorm = "auto",
        curvature: float | str = "auto",
        strong_convexity: float | str = "auto",
        curvature_share: float = 0.05,
        initial_gap: float | str = "auto",
        batch_size: int | float | None = None,
        sampling: str = "poisson",
    ) -> None:
        super().__init__(
            max_iter=max_iter, learning_rate=learning_rate, noise_schedule=noise_schedule,
            mechanism=mechanism, clip_norm=clip_norm, curvature=curvature,
            strong_convexity=strong_convexity, curvature_share=curvature_share,
            initial_gap=initial_gap, batch_size=batch_size, sampling=sampling,
        )  # fmt: skip
        self.momentum = momentum

    def _choose_steps(self, curvature: float, public: Public, problem: Problem) -> None:
        if checks.is_auto(self.momentum):
            n_steps = None if checks.is_auto(self.max_iter) else self.max_iter
            if n_steps is not None:
                checks.count(max_iter=n_steps)
            facts, size = self._facts(curvature, public, problem), self._size(curvature)
            choice = tune_heavy_ball(**facts, most_steps=MAX_STEPS, n_steps=n_steps, step=size)
            self.momentum, self.max_iter = choice.momentum, choice.n_steps
        rule = steps.momentum_rule(self.momentum)
        if not isinstance(rule, steps.HeavyBall):
            raise ValueError(
                "solver 'heavy_ball': momentum must be 'auto', a number in [0, 1) or a HeavyBall; "
                f"got {shown(self.momentum)}, which solver 'gd' takes. Nothing was released."
            )
        super()._choose_steps(curvature, public, problem)

    def _bounds(self, facts: BoundArguments, n_steps: int = MAX_STEPS) -> Array:
        return heavy_ball_bounds(n_steps, self._size(facts["smoothness"]), self._beta, **facts)

    @property
    def _beta(self) -> float:
        return float(steps.momentum_rule(self.momentum).beta)

    def _schedule(self, curvature: float, problem: Problem) -> steps.NoiseSchedule:
        facts = curvature, self._mu(problem)
        rate = heavy_ball_rate(self._size(curvature), self._beta, *facts)
        return steps.HeavyBallNoise(float(np.clip(rate, 1e-6, 1.0)))

    def _path(self, start: Array, curvature: float, problem: Problem) -> steps.Path:
        return steps.HeavyBallPath(start, self._size(curvature), self._beta)
