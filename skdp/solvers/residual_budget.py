"""Gradient descent that asks for its budget step by step and stops when the rest does not do."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from skdp._numbers import Array, is_real, shown
from skdp.objective import Problem
from skdp.oracle import Oracle, Public, Solution
from skdp.solvers.base import Solver
from skdp.solvers.bound_rules import bound_rules
from skdp.solvers.checks import check_choice, check_interval, given_steps, is_auto
from skdp.solvers.defaults import descent_defaults
from skdp.steps import (
    AVERAGES,
    MOMENTA,
    ClippingRule,
    IterateAverage,
    NoiseSchedule,
    StepSchedule,
    clip_norms,
    relative_noise,
    step_sizes,
)

# A rest of the budget that is smaller than this, relatively, is a rounding error.
ROUNDING = 1e-10


class ResidualBudget(Solver):
    """Gradient descent whose steps ask for a part of the budget that is left (PGD, Algorithm 1).

    Step t asks for ``rho_t = 1/sigma_t**2``. If the residual budget holds that much, the step is
    made; else the run ends. What a step asks for may depend on all answers before it: here it is
    multiplied by ``boost`` whenever the last noisy gradient was no larger than its noise, so that
    a run which nears the minimum takes fewer, cleaner steps. A privacy filter guards the run.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps that the budget is divided into at the start, at least 1; a run takes at
        most so many. "auto" makes the utility bound least if ``condition_number`` and
        ``initial_gap`` are given.
    learning_rate : float, StepSchedule or "auto", default="auto"
        Step size.
    momentum : float or "auto", default="auto"
        In [0, 1); 0 is none.
    momentum_kind : {"heavy_ball", "averaged"} or "auto", default="auto"
        "averaged" is the bias-corrected average that the bounds are for.
    noise_schedule : str, NoiseSchedule, array of shape (max_iter,) or "auto", default="auto"
        How the budget is divided at the start. "auto" is the best for the bound if
        ``condition_number`` is given, else "uniform".
    clip_norm : float, ClippingRule or "auto", default="auto"
        L2 bound of one record's gradient.
    averaging : {"last", "tail", "random"} or "auto", default="auto"
        Which iterate is returned; "tail" is the mean of the last half of ``max_iter`` iterates. A
        run that ends too early for that returns its last one.
    boost : float, default=1.0
        At least 1. 1 keeps to the schedule. More was nowhere measurably better: a boosted run
        makes fewer steps of the same length, and may end before it has gone its way.
    condition_number : float or None, default=None
        Public guess of kappa, above 1. With it, "auto" stands for the rules of the paper, and the
        last iterate is returned; see `GradientDescent`.
    initial_gap : float or None, default=None
        Public guess of how far the loss is above its minimum at the start.

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

    name: ClassVar[str] = "residual_budget"
    adaptive = True

    def __init__(
        self,
        *,
        max_iter: Any = "auto",
        learning_rate: float | StepSchedule | str = "auto",
        momentum: Any = "auto",
        momentum_kind: str = "auto",
        noise_schedule: str | NoiseSchedule | Any = "auto",
        clip_norm: float | ClippingRule | str = "auto",
        averaging: str = "auto",
        boost: float = 1.0,
        condition_number: float | None = None,
        initial_gap: float | None = None,
    ) -> None:
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.momentum_kind = momentum_kind
        self.noise_schedule = noise_schedule
        self.clip_norm = clip_norm
        self.averaging = averaging
        self.boost = boost
        self.condition_number = condition_number
        self.initial_gap = initial_gap

    def automatic(self, public: Public, problem: Problem) -> dict[str, Any]:
        max_iter, size = given_steps(self.max_iter, self.learning_rate)
        values = {
            **descent_defaults(public, problem, max_iter, size),
            "momentum_kind": "heavy_ball",
        }
        values |= bound_rules(self, public, problem, values)
        return {name: value for name, value in values.items() if is_auto(getattr(self, name))}

    def resolve(self, public: Public, problem: Problem) -> ResidualBudget:
        resolved = super().resolve(public, problem)
        check_interval("momentum", resolved.momentum, low=0.0, below=1.0)
        check_choice("momentum_kind", resolved.momentum_kind, MOMENTA)
        check_choice("averaging", resolved.averaging, AVERAGES)
        if not (is_real(resolved.boost) and 1 <= resolved.boost < math.inf):
            raise ValueError(f"boost must be a number, at least 1; got {shown(resolved.boost)}.")
        sizes = step_sizes(resolved.learning_rate, resolved.max_iter)
        clip_norms(resolved.clip_norm, resolved.max_iter)
        relative_noise(resolved.noise_schedule, resolved.max_iter, sizes=sizes)
        return resolved

    def solve(self, oracle: Oracle) -> Solution:
        n_steps = self.max_iter
        clips = clip_norms(self.clip_norm, n_steps)
        sizes = step_sizes(self.learning_rate, n_steps)
        costs = relative_noise(self.noise_schedule, n_steps, sizes=sizes) ** -2.0
        shares = costs / costs.sum()
        momentum = MOMENTA[self.momentum_kind](self.momentum)
        average = IterateAverage(self.averaging, n_steps, oracle.rng)
        point = oracle.start()
        left, factor, done = 1.0, 1.0, 0
        for size, clip_norm, planned in zip(sizes, clips, shares, strict=True):
            # 1. Ask: equality runs, or an exact schedule would lose its last step.
            share = factor * float(planned)
            if share > left + ROUNDING:
                break
            noise = share**-0.5
            gradient = oracle.gradient(point, clip_norm, noise)
            left, done = left - share, done + 1
            # 2. Step.
            point = oracle.problem.prox(point - size * momentum.direction(gradient), size)
            average.add(point)
            # 3. What the next step asks for follows from answers that were released.
            if self.boost > 1:
                expected = gradient.size * oracle.gradient_std(clip_norm, noise, sampler=None) ** 2
                if np.sum(gradient * gradient) < 2 * expected:
                    factor *= self.boost
        return Solution(self._chosen(average, point, done), done)

    def _chosen(self, average: IterateAverage, point: Array, done: int) -> Array:
        """Return the iterate or mean that was asked for; the last one if the run ended before."""
        reached = {"last": self.max_iter, "tail": self.max_iter // 2 + 1, "random": self.max_iter}
        return average.result() if done >= reached[self.averaging] else point
