"""Run Frank-Wolfe on an L1 ball: each step goes towards a vertex that is chosen privately."""

import math

import numpy as np

from skdp._oracle import VertexSelection
from skdp.objective import L1Ball
from skdp.solvers import base, checks
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution, Solver
from skdp.solvers.defaults import count_within, target_unit

# Largest entry of a gradient, in units of the expected residual, at which it is clipped by default.
CLIP = 2.0
STEPS = (2, 500)


@base.hyperparameters
class FrankWolfe(Solver):
    """Private Frank-Wolfe on an L1 ball, for many columns and delta = 0.

    Step t = 0, 1, ... selects the vertex v of the ball that the noisy gradient points away from
    most, and moves to ``(1 - g) w + g v`` with ``g = 2 / (t + 2)``. Only the vertex is released:
    its noise grows with the logarithm of the number of columns. No more coefficients than steps
    differ from 0 (Talwar, Thakurta, Zhang 2015, Alg. 2).

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps, at least 1. "auto" balances the remaining distance, which falls with the
        steps, and the noise, which grows: ``(n mu)**(2/3)`` steps, about, or ``sqrt(n epsilon)``
        with delta = 0.
    clip_norm : float or "auto", default="auto"
        Largest absolute value of an entry of a record's gradient. A row with a larger one has less
        weight.

    Notes
    -----
    It needs ``constraint=L1Ball(radius)`` and ``fit_intercept=False``. Centre the targets by a
    public number first. The noise is charged by the epsilon of each step (see
    `skdp.accounting.NoisyMaximum`), so it is worth having with delta = 0, where Laplace noise on
    all entries of a gradient grows with the number of columns. With delta > 0
    "accelerated_mirror_descent" was better throughout, and "gd" mostly: ``python -m benchmarks
    papers pure``. Where the budget is too small for any estimate it is worse than zero
    coefficients, as its first step goes all the way to a vertex.

    References
    ----------
    K. Talwar, A. Thakurta, L. Zhang: Nearly Optimal Private LASSO. NeurIPS 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLinearRegression
    >>> from skdp.objective import L1Ball
    >>> X = np.random.default_rng(0).standard_normal((500, 30))
    >>> model = DPLinearRegression(
    ...     solver="frank_wolfe", constraint=L1Ball(1.0), fit_intercept=False
    ... ).fit(X, X[:, 3])
    >>> bool(abs(model.coef_).sum() <= 1.0 + 1e-9)
    True
    """

    name = "frank_wolfe"
    purpose = "For delta=0 on an L1 ball, where 'gd' hardly learns."
    needs = frozenset({"l1_ball", "smooth_penalty", "no_intercept"})
    mechanisms = ("laplace",)
    takes_start = False

    max_iter: Resolved[int] = AUTO
    clip_norm: Resolved[float] = AUTO

    def automatic(self, public: Public, problem: Problem) -> Settings:
        clip_norm = self.clip_norm
        if checks.is_auto(clip_norm):
            bound = problem.loss.residual_bound
            clip_norm = CLIP * (target_unit(public) if bound is None else bound / 2)
        checks.positive(clip_norm=clip_norm)  # steps are counted by it
        return {"max_iter": self._steps(public, problem, clip_norm), "clip_norm": clip_norm}

    @staticmethod
    def _steps(public: Public, problem: Problem, clip_norm: float) -> int:
        """Return the number of steps T that minimises the bound on the excess of the mean loss.

        The bound is ``2 G / T + 4 r b log(2 d) / n`` (Jaggi 2013, Thm 1, with errors of the
        selection), with ``G = 4 r**2 c`` for columns of unit size and curvature c, and noise of
        scale ``b = 2 C sqrt(T) / mu``, or ``2 C T / epsilon`` with delta = 0.
        """
        if not public.is_noisy:
            return STEPS[1]
        radius = _radius(problem)
        curve = 8 * radius**2 * problem.loss.curvature
        noise = 8 * radius * clip_norm * math.log(2 * math.prod(public.shape)) / public.n_rows
        if public.is_pure:
            noise *= public.sensitivity_factor / public.laplace_budget
            return count_within(math.sqrt(curve / noise), STEPS)
        noise /= public.gradient_mu
        return count_within((2 * curve / noise) ** (2 / 3), STEPS)

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.count(max_iter=self.max_iter)

    def solve(self, oracle: Oracle) -> Solution:
        radius, point = _radius(oracle.problem), np.zeros(oracle.public.shape)
        for step in range(self.max_iter):
            vertex = -radius * oracle.request(VertexSelection(point, self.clip_norm))
            point = point + 2 / (step + 2) * (vertex - point)
        return Solution(point, self.max_iter)


def _radius(problem: Problem) -> float:
    assert isinstance(problem.constraint, L1Ball)
    return float(problem.constraint.radius)
