"""What "auto" stands for in gradient descent with Laplace noise.

Clipping is in L1 norm here, and a plan of T steps with delta = 0 costs the *sum* of the steps'
epsilons. In the words of :mod:`skdp.solvers.defaults`, whose rules are kept: the noise of T steps,
averaged, is what one Gaussian release of

    mu = max(epsilon / sqrt(T), mu(epsilon, delta)) / sqrt(2 d)

would have. The sqrt(d) is the price of L1 (a row with d entries of unit size has L1 norm d where
its L2 norm is sqrt(d)), the sqrt(2) that of Laplace's tails, and the sqrt(T) that of adding up
epsilons instead of their squares; with delta > 0 the accountant adds up squares here, too.

So with delta = 0 steps are few, ``3 sqrt(a)`` with a the signal-to-noise ratio at T = 1, from 1 (8
where residuals have no bound and clipping makes the way long) to 60;
momentum is ``1 - 5/T``, 0.5 at least, which needs fewer of them to get going; and steps are at most
as long as it bears, ``2 (1 + beta) / (1 - beta)`` over the curvature, or, where residuals are
bounded and nothing can run away, the geometric mean of that and of what momentum 0.9 bears.
"""

from __future__ import annotations

import math
from typing import Any

from skdp.objective import Problem
from skdp.oracle import Public
from skdp.oracle.public import LARGEST_EPSILON
from skdp.solvers import defaults
from skdp.solvers.defaults import descent_defaults

# Chosen on a handful of public data sets, as the constants of gradient descent were.
FEWEST, FEWEST_UNBOUNDED, MOST, GROWTH = 1, 8, 60, 3.0
GETTING_GOING = 5  # steps that are spent on building up speed


def composition_kind(mechanism: str, public: Public) -> str:
    """How costs add up: epsilons with pure Laplace noise, their squares with anything else."""
    return "laplace" if mechanism == "laplace" and public.is_pure else "gaussian"


def equivalent_mu(public: Public, n_steps: int) -> float:
    """Return the mu of a Gaussian release with the noise of ``n_steps`` Laplace ones, averaged."""
    mu = min(public.laplace_budget, LARGEST_EPSILON) / math.sqrt(n_steps)
    if not public.is_pure:
        mu = max(mu, public.mu)
    return mu / math.sqrt(2 * public.n_parameters)


def residual_factor(public: Public, problem: Problem) -> float:
    """About how many times the L1 norm of a residual is its L2 norm."""
    # Probabilities minus an indicator have L1 norm at most 2, L2 norm at most sqrt(2).
    return math.sqrt(public.n_outputs if problem.loss.separable else 2.0)


def laplace_descent_defaults(
    public: Public,
    problem: Problem,
    max_iter: int | None = None,
    learning_rate: float | None = None,
) -> dict[str, Any]:
    """Hyperparameters of gradient descent with Laplace noise for this shape and budget."""
    factor = residual_factor(public, problem)
    pure = public.is_pure and public.is_noisy
    if max_iter is None and pure:
        spread = public.n_parameters * math.sqrt(public.n_outputs)
        ratio = equivalent_mu(public, 1) / factor * public.n_rows / spread
        fewest = FEWEST_UNBOUNDED if problem.loss.residual_bound is None else FEWEST
        max_iter = min(max(round(GROWTH * math.sqrt(ratio)), fewest), MOST)
    mu = equivalent_mu(public, max_iter or 1) / factor
    values = descent_defaults(public, problem, max_iter, learning_rate, mu)
    values["clip_norm"] *= factor * math.sqrt(public.n_parameters)
    if pure:
        beta = min(max(1 - GETTING_GOING / (max_iter or 1), 0.5), defaults.MOMENTUM)
        shorter = (1 + beta) / (1 - beta) * (1 - defaults.MOMENTUM) / (1 + defaults.MOMENTUM)
        if problem.loss.residual_bound is not None:
            shorter = math.sqrt(shorter)
        longest = shorter * descent_defaults(public, problem, 1, None, 1e12)["learning_rate"]
        values["momentum"] = beta
        values["learning_rate"] = min(values["learning_rate"], longest)
    return values
