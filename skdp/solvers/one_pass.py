"""What the solvers that read each row once have in common: checks, the polish, and public guesses.

Write h for the curvature of the mean loss along its steepest direction, kappa for its ratio to that
along the flattest that matters, R for the norm that a row is taken to have, and alpha for the noise
multiplier of one release that takes the whole budget. Then, from Theorems 3.2 and 3.7 of Varshney,
Thakurta, Jain (2022),

1. there are ``T = c kappa ln n`` steps on ``b = n / T`` rows each;
2. a step has size ``b / (c R**2 + (b - 1) h)``, c the curvature of the loss;
3. and is no longer than ``b**2 / (c R**2 kappa d alpha**2)``, or noise would carry the point away.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from skdp._numbers import Array, is_real, shown
from skdp.accounting import Gaussian
from skdp.objective import Problem
from skdp.oracle import Oracle, Public, Solution
from skdp.solvers.base import Solver
from skdp.solvers.checks import check_choice, check_count, check_positive, check_share, is_auto
from skdp.solvers.defaults import TARGET_UNITS

# Steepest curvature of columns that are expected to be standardised and somewhat correlated, in
# units of the loss's own.
COLUMNS = 2.5
FEWEST = 8


class OnePass(Solver):
    """Base of the solvers that read each row once, and then may polish the answer."""

    one_pass: ClassVar[bool] = True
    averages: ClassVar[tuple[str, ...]]

    max_iter: Any
    curvature: Any
    averaging: str
    polish_iter: int
    polish_share: float

    def resolve(self, public: Public, problem: Problem) -> Self:
        resolved = super().resolve(public, problem)
        check_choice("averaging", resolved.averaging, self.averages)
        resolved._check()
        if resolved.max_iter > public.n_rows:
            raise ValueError(
                f"max_iter must be at most the number of rows, {public.n_rows}, as every block "
                f"needs one; got {shown(resolved.max_iter)}."
            )
        resolved._check_polish(public)
        return resolved

    @abstractmethod
    def _check(self) -> None:
        """Raise ValueError if a hyperparameter of the subclass is out of its range."""

    def _check_polish(self, public: Public) -> None:
        n_steps = self.polish_iter
        if n_steps != 0:
            check_count("polish_iter", n_steps)
        check_share("polish_share", self.polish_share)
        if n_steps and public.streamed:
            raise ValueError(
                f"solver {self.name!r} with polish_iter={n_steps} goes over all rows again, and "
                "these are read once. Set polish_iter=0. Nothing was released."
            )

    def _pass_noise(self) -> float:
        """Relative noise of the pass, if a polish gets its share of the squared budget."""
        return 1.0 if self.polish_iter == 0 else (1 - self.polish_share) ** -0.5

    def _polished(self, oracle: Oracle, point: Array, clip_norm: float) -> Solution:
        """Return the mean of the last half of the polish's steps over all rows, from a point.

        It takes away what the pass has not forgotten of its start (Remark ii on Theorem 3.7).
        """
        n_steps, size = self.polish_iter, 1 / self.curvature
        if n_steps > 0:
            noise = math.sqrt(n_steps / self.polish_share)
            total, first = np.zeros_like(point), n_steps // 2
            for step in range(n_steps):
                gradient = oracle.gradient(point, clip_norm, noise)
                point = oracle.problem.prox(point - size * gradient, size)
                if step >= first:
                    total += point
            point = total / (n_steps - first)
        return Solution(point, self.max_iter + n_steps)


def noise_of_one(public: Public) -> float:
    """Noise multiplier of one release that takes the whole budget; 0 if there is no noise."""
    return 1 / public.gradient_mu if public.is_noisy else 0.0


def count_ratio(public: Public) -> float:
    """Noise that a count takes next to a gradient of the same price, each in its own unit."""
    unit = Gaussian(1.0, spread=1.0).sensitivity(public.adjacency)
    return unit / public.sensitivity_factor


@dataclass(frozen=True)
class Guess:
    """Public guesses that step sizes and their number follow from.

    Attributes
    ----------
    curvature : float
        Of the mean loss, along its steepest direction.
    kappa : float
        Its condition number.
    row_norm : float
        L2 norm of a row with its constant feature.
    """

    curvature: float
    kappa: float
    row_norm: float


def expected_row_norm(public: Public) -> float:
    """Norm of a row of unit columns, or the declared bound if that is less, with the constant."""
    norm = math.sqrt(public.n_features)
    if public.data_norm is not None:
        norm = min(norm, public.data_norm)
    return math.hypot(norm, public.intercept_size * public.has_intercept)


def make_guess(
    public: Public, problem: Problem, curvature: object, kappa: object, row_norm: object
) -> Guess:
    """Put guesses in place of what is "auto".

    Columns are taken to be standardised. The intercept's feature is as steep as its squared size.
    """
    columns = expected_row_norm(public)
    scale = 1.0 if public.data_norm is None else min(1.0, public.data_norm**2 / public.n_features)
    if is_auto(curvature):
        steepest = min(COLUMNS, public.n_features) * scale
        steepest = max(steepest, public.has_intercept * public.intercept_size**2)
        found = problem.loss.curvature * steepest + problem.strong_convexity
    else:
        found = positive("curvature", curvature)
    if is_auto(kappa):
        flattest = problem.loss.curvature * scale + problem.strong_convexity
        ratio = max(1.0, found / flattest)
    else:
        ratio = positive("kappa", kappa)
    return Guess(found, ratio, positive("row_norm", row_norm) if is_real(row_norm) else columns)


def positive(name: str, value: Any) -> float:
    """Return a positive, finite number, or raise ValueError."""
    check_positive(name, value)
    return float(value)


def number_of_steps(public: Public, guess: Guess, unit: float) -> int:
    """Return ``unit * kappa * ln n``, within the number of rows."""
    wanted = max(FEWEST, math.ceil(unit * guess.kappa * math.log(max(public.n_rows, 2))))
    return min(wanted, public.n_rows)


def step_size(public: Public, problem: Problem, guess: Guess, batch: float, alpha: float) -> float:
    """Return the size of a step on ``batch`` rows whose noise is ``alpha`` times what rows give."""
    batch = max(1.0, batch)
    row = problem.loss.curvature * guess.row_norm**2
    longest = batch / (row + (batch - 1) * guess.curvature)
    if alpha == 0:
        return longest
    n_parameters = math.prod(public.shape)
    loud = row * guess.kappa * n_parameters * alpha**2
    return min(longest, batch**2 / loud)


def residual_unit(public: Public, problem: Problem) -> float:
    """Size of a residual at the start: the loss's bound, or that of the targets."""
    if problem.loss.residual_bound is not None:
        return problem.loss.residual_bound
    return 1.0 if public.target_bound is None else public.target_bound / TARGET_UNITS
