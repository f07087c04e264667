"""Hong, Wang, Zhou (FAccT 2022): gradient descent with noise that falls from step to step.

For smooth objectives that satisfy the Polyak-Lojasiewicz inequality the paper bounds the expected
excess after T noisy steps by ``gamma**T`` plus a sum of noise variances, each weighted by its
influence (Thms 4.2 and 4.6). Noise in proportion to ``influence**(-1/4)`` minimises the bound for a
given budget (Lemma 4.4). The noise term is then less than with uniform noise, by a factor that
grows with T.

"residual_budget" is Algorithm 1 as printed: a privacy filter, in place of a plan, checks each
request against the budget that is left. Solver "gd" makes the same steps from a plan. Both accept
``noise_schedule="exponential"``, the optimal one, and ``momentum="averaged"``. By default noise is
uniform.

Worth using: ``noise_schedule="exponential"`` in runs whose later steps undo the noise of earlier
ones, so with strongly convex objectives and many steps, and above all with few rows.
"""

from __future__ import annotations

from skdp import steps
from skdp.solvers import base, checks, descent
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution
from skdp.solvers.defaults import descent_defaults


@base.hyperparameters
class ResidualBudget(descent.GradientSolver):
    """Gradient descent whose steps request a part of the budget that is left (PGD, Algorithm 1).

    Step t requests ``rho_t = 1/sigma_t**2``, which the noise schedule decides. A privacy filter
    admits the step if that much of the budget is left.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps among which the budget is divided, at least 1. "auto" is that of "gd".
    learning_rate : float, str, tuple (str, dict) or "auto", default="auto"
        Step size, or a schedule, as for `GradientDescent`.
    {momentum}
        The bounds cover "averaged".
    noise_schedule : str, tuple (str, dict), array of shape (max_iter,) or "auto", default="auto"
        How the budget is divided. "auto" is "uniform".
    clip_norm : float or "auto", default="auto"
        L2 bound of one record's gradient.
    {averaging}

    References
    ----------
    J. Hong, Z. Wang, J. Zhou: Dynamic Privacy Budget Allocation Improves Data Efficiency of
    Differentially Private Gradient Descent. FAccT 2022.
    A. Smith, A. Thakurta: Fully Adaptive Composition for Gaussian Differential Privacy. 2022,
    arXiv:2210.17520.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPRidge(solver="residual_budget", max_iter=20).fit(X, y)
    >>> model.n_iter_
    20
    """

    name = "residual_budget"
    paper = "Hong, Wang, Zhou (2022)"
    algorithms = (("PGD", {}),)
    purpose = "A filter guards the budget. Solver 'gd' makes the same steps."
    adaptive = True

    max_iter: Resolved[int] = AUTO
    learning_rate: base.StepSize = "auto"
    momentum: base.AnyMomentum = "auto"
    noise_schedule: base.RelativeNoise = "auto"
    clip_norm: Resolved[float] = AUTO
    averaging: str = "auto"

    def averages_groups(self, pure: bool) -> bool:
        return True

    def automatic(self, public: Public, problem: Problem) -> Settings:
        given = checks.given_steps(self.max_iter, self.learning_rate)
        beta = descent.given_beta(self.momentum, public)
        return descent_defaults(public, problem, *given, beta=beta)

    def solve(self, oracle: Oracle) -> Solution:
        n_steps, costs = self.max_iter, self._noises() ** -2.0
        noises = (costs / costs.sum()) ** -0.5
        average = steps.IterateAverage(self.averaging, n_steps, oracle.rng)
        momentum = steps.Momentum.of(self.momentum)
        path = descent.Proximal(oracle.problem, oracle.start(), average, momentum)
        run = descent.schedule(self._sizes(), self.clip_norm, noises)
        return Solution(descent.descend(oracle, path, run), n_steps)
