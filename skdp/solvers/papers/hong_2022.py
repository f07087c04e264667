"""Hong, Wang, Zhou (FAccT 2022): gradient descent with noise that falls from step to step.

For smooth objectives that satisfy the Polyak-Lojasiewicz inequality the paper bounds the expected
excess after T noisy steps by ``gamma**T`` plus a sum of noise variances, each weighted by its
influence (Thms 4.2 and 4.6). Noise in proportion to ``influence**(-1/4)`` minimises the bound for a
given budget (Lemma 4.4); the noise term is then less than with uniform noise, by a factor that
grows with T.

Solver "gd" with ``condition_number`` and ``initial_gap`` is Algorithm 1 with its optimal schedule,
and its number of steps (`skdp.solvers.core.bound_rules`); with ``momentum="averaged"`` it is
the version with momentum. "residual_budget" is Algorithm 1 with requests that may depend on earlier
answers, guarded by a privacy filter. By default both have uniform noise and the steps of "gd".

Worth using: ``noise_schedule="exponential"`` in runs whose later steps undo the noise of earlier
ones, so with strongly convex objectives and many steps, and above all with few rows. Requests that
adapt (``boost`` above 1) were nowhere measurably better.
"""

import math

import numpy as np

from skdp import steps
from skdp._numbers import is_real, require
from skdp.solvers import base, checks
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution, Solver
from skdp.solvers.core.bound_rules import bound_rules, named_noise
from skdp.solvers.defaults import descent_defaults

# Rounding error of the remaining budget, as a fraction of the budget.
ROUNDING = 1e-10


@base.hyperparameters
class ResidualBudget(Solver):
    """Gradient descent whose steps request a part of the budget that is left (PGD, Algorithm 1).

    Step t requests ``rho_t = 1/sigma_t**2``. If that much of the budget is left, the step is made;
    otherwise the run ends. The request may depend on all earlier answers: here it is multiplied by
    ``boost`` whenever the last noisy gradient was no larger than its noise, so that a run near the
    minimum takes fewer and less noisy steps. A privacy filter guards the run.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps among which the budget is divided at the start, at least 1. A run takes at
        most this number of steps. "auto" minimises the utility bound if ``condition_number`` and
        ``initial_gap`` are given.
    learning_rate : float, str, tuple (str, dict), StepSchedule or "auto", default="auto"
        Step size, or a schedule, as for `GradientDescent`.
    {momentum}
        The bounds cover "averaged".
    noise_schedule : str, NoiseSchedule, array of shape (max_iter,) or "auto", default="auto"
        How the budget is divided at the start. "auto" minimises the bound if
        ``condition_number`` is given, else it is "uniform".
    clip_norm : float, str, tuple (str, dict), ClippingRule or "auto", default="auto"
        L2 bound of one record's gradient; a rule by name, too: "geometric".
    {averaging}
        A run that ends before the iterates that are to be returned returns its last iterate.
    boost : float, default=1.0
        At least 1, which keeps to the schedule. Larger values were nowhere measurably better: a
        boosted run makes fewer steps of the same length, and may end far from the minimum.
    condition_number : float or None, default=None
        Public guess of kappa, above 1. With it, "auto" follows the rules of the paper, and the
        last iterate is returned; see `GradientDescent`.
    initial_gap : float or None, default=None
        Public guess of the loss's excess over its minimum at the start.

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
    purpose = "Reference implementation of Hong, Wang, Zhou (2022); boost > 1 was never better."
    adaptive = True

    max_iter: Resolved[int] = AUTO
    learning_rate: base.StepSize = "auto"
    momentum: base.AnyMomentum = "auto"
    noise_schedule: base.RelativeNoise = "auto"
    clip_norm: base.ClipNorm = "auto"
    averaging: str = "auto"
    boost: float = 1.0
    condition_number: float | None = None
    initial_gap: float | None = None

    def averages_groups(self, pure: bool) -> bool:
        return True

    def automatic(self, public: Public, problem: Problem) -> Settings:
        given = checks.given_steps(self.max_iter, self.learning_rate)
        values = descent_defaults(public, problem, *given)
        return values | bound_rules(self, public, problem, values)

    def check_values(self, public: Public, problem: Problem) -> None:
        steps.momentum_rule(self.momentum)
        checks.choice("averaging", self.averaging, steps.AVERAGES)
        is_valid = is_real(self.boost) and 1 <= self.boost < math.inf
        require("boost", self.boost, "be a number, at least 1", is_valid)
        sizes = steps.step_sizes(self.learning_rate, self.max_iter)
        steps.clip_norms(self.clip_norm, self.max_iter)
        steps.relative_noise(self.noise_schedule, self.max_iter, sizes=sizes)
        self.noise_schedule = named_noise(self, public, problem)

    def solve(self, oracle: Oracle) -> Solution:
        n_steps = self.max_iter
        clips = steps.clip_norms(self.clip_norm, n_steps)
        sizes = steps.step_sizes(self.learning_rate, n_steps)
        costs = steps.relative_noise(self.noise_schedule, n_steps, sizes=sizes) ** -2.0
        shares = costs / costs.sum()
        direction = steps.momentum_rule(self.momentum).start()
        average = steps.IterateAverage(self.averaging, n_steps, oracle.rng)
        point = oracle.start()
        remaining, factor, done = 1.0, 1.0, 0
        for size, clip_norm, planned in zip(sizes, clips, shares, strict=True):
            # 1. Request. Equality is enough, or an exact schedule would lose its last step.
            share = factor * float(planned)
            if share > remaining + ROUNDING:
                break
            noise = share**-0.5
            gradient = oracle.gradient(point, clip_norm, noise)
            remaining, done = remaining - share, done + 1
            # 2. Step.
            point = oracle.problem.prox(point - size * direction(gradient), size)
            average.add(point)
            # 3. The next request depends on answers that were released.
            if self.boost > 1:
                expected = gradient.size * oracle.gradient_std(clip_norm, noise, sampler=None) ** 2
                if np.sum(gradient * gradient) < 2 * expected:
                    factor *= self.boost
        # The iterate or mean that was selected, or the last one if the run ended early.
        enough = self.max_iter // 2 + 1 if self.averaging == "tail" else self.max_iter
        return Solution(average.result() if done >= enough else point, done)
