"""Run Polyak's heavy ball, with momentum and number of steps that minimise an error bound."""

import numpy as np

from skdp import steps
from skdp._numbers import Array
from skdp.planning import heavy_ball_bounds, heavy_ball_rate, tune_heavy_ball
from skdp.solvers import base, checks
from skdp.solvers.base import AUTO, Problem, Public, Resolved
from skdp.solvers.papers.kuru_2022.accelerated import MAX_STEPS, Accelerated, BoundArguments


@base.hyperparameters
class HeavyBallDescent(Accelerated):
    """Polyak's heavy ball on noisy gradients (DP-HB, DP-SHB on batches).

    Step t requests the mean gradient at the last iterate, with each record's gradient clipped, adds
    the gradient of the penalty, and moves to ``x_next = x - a gradient + beta (x - x_previous)``,
    with ``a = step / L`` (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, eq. 9). The last iterate is
    returned. Solver "gd" has the same momentum with proximal steps and averaging, and needs no
    strongly convex penalty.

    mu is the strong convexity of the penalty, in the coefficients; see `Nesterov` on intercepts.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps; "auto", up to 1000, and ``momentum`` by `skdp.planning.tune_heavy_ball`.
    momentum : float or "auto", default="auto"
        Weight beta of the previous step, in [0, 1).
    noise_schedule : str, NoiseSchedule or array of shape (max_iter,), default="optimal"
        "optimal" follows the bound of Prop. 3.4, in which the influence of a step falls by
        ``rho**2`` from one to the next; "uniform" is the paper's.
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

    momentum: Resolved[float] = AUTO

    def _choose_steps(self, smoothness: float, public: Public, problem: Problem) -> None:
        if checks.is_auto(self.momentum):
            n_steps = None if checks.is_auto(self.max_iter) else self.max_iter
            if n_steps is not None:
                checks.count(max_iter=n_steps)
            facts, size = self._facts(smoothness, public, problem), self.step / smoothness
            choice = tune_heavy_ball(**facts, most_steps=MAX_STEPS, n_steps=n_steps, step=size)
            self.momentum, self.max_iter = choice.momentum, choice.n_steps
        checks.interval("momentum", self.momentum, low=0.0, below=1.0)
        super()._choose_steps(smoothness, public, problem)

    def _bounds(self, facts: BoundArguments, n_steps: int = MAX_STEPS) -> Array:
        size = self.step / facts["smoothness"]
        return heavy_ball_bounds(n_steps, size, self.momentum, **facts)

    def _schedule(self, smoothness: float, problem: Problem) -> steps.NoiseSchedule:
        facts = smoothness, self._mu(problem)
        rate = heavy_ball_rate(self.step / smoothness, self.momentum, *facts)
        return steps.HeavyBallNoise(float(np.clip(rate, 1e-6, 1.0)))

    def _path(self, start: Array, smoothness: float, problem: Problem) -> steps.Path:
        return steps.HeavyBallPath(start, self.step / smoothness, self.momentum)
