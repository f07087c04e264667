"""Define the base of solvers that read each row once, with public guesses and a final polish.

Write h for the curvature of the mean loss along its steepest direction, kappa for its ratio to that
along the flattest that matters, R for the expected norm of a row, and alpha for the noise
multiplier of one release that takes the whole budget. Then, from Theorems 3.2 and 3.7 of Varshney,
Thakurta, Jain (2022),

1. there are ``T = c kappa ln n`` steps on ``b = n / T`` rows each. The logarithm is how far a start
   has to be forgotten, which is down to the noise: where that does not fall with the fit, as a clip
   is fixed or residuals are bounded, it is that of the signal-to-noise ratio, if that is less;
2. a step has size ``b / (c R**2 + (b - 1) h)``, with c the curvature of the loss;
3. and is at most ``b**2 / (c R**2 kappa d alpha**2)`` long, or its noise would dominate.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from skdp._numbers import Array, is_real, shown
from skdp.solvers import checks
from skdp.solvers.base import Oracle, Problem, Public, Resolved, Solution, Solver
from skdp.solvers.defaults import expected_row_norm

# Expected curvature along the steepest direction of standardised, somewhat correlated columns, in
# units of the curvature of the loss. A guess; see docs/read_once.rst.
STEEPEST = 2.5
# Fewest blocks that are taken by default.
MIN_BLOCKS = 8


class OnePassSolver(Solver):
    """Base of the solvers that read each row once, and may then polish the solution."""

    one_pass = True
    averages: ClassVar[tuple[str, ...]]

    curvature: Resolved[float]
    condition_number: Resolved[float]
    averaging: str
    polish_iter: int
    polish_share: float

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.choice("averaging", self.averaging, self.averages)
        if self.max_iter > public.n_rows:
            raise ValueError(
                f"max_iter must be at most the number of rows, {public.n_rows}, as every block "
                f"needs one; got {shown(self.max_iter)}."
            )
        if self.polish_iter != 0:
            checks.count(polish_iter=self.polish_iter)
        checks.share(polish_share=self.polish_share)
        if self.polish_iter and public.streamed:
            raise ValueError(
                f"solver {self.name!r} with polish_iter={self.polish_iter} goes over all rows "
                "again, and these are read once. Set polish_iter=0. Nothing was released."
            )

    def _pass_noise(self) -> float:
        """Return the relative noise of the pass; a polish gets its share of the squared budget."""
        return 1.0 if self.polish_iter == 0 else (1 - self.polish_share) ** -0.5

    def _polished(self, oracle: Oracle, point: Array, clip_norm: float) -> Solution:
        """Return the mean of the last half of the polish's steps over all rows, from a point.

        They reduce the remaining influence of the start on the pass (Remark ii on Theorem 3.7).
        """
        n_steps, size = self.polish_iter, 1 / self.curvature
        rates = step_rates(oracle.public, oracle.problem, self.curvature)
        if n_steps > 0:
            noise = math.sqrt(n_steps / self.polish_share)
            total, first = np.zeros_like(point), n_steps // 2
            for step in range(n_steps):
                gradient = oracle.gradient(point, clip_norm, noise)
                point = oracle.problem.prox(point - size * rates * gradient, size)
                if step >= first:
                    total += point
            point = total / (n_steps - first)
        return Solution(point, self.max_iter + n_steps)


def intercept_rate(public: Public, problem: Problem, curvature: float) -> float:
    """Return the step of the intercept, next to that of the columns, of the given curvature.

    The curvature along the intercept is that of the loss times the square of its feature, which may
    be larger than that along any direction of the columns. Steps that are as much shorter there
    make a problem with the condition number of the columns. The requests stay the same.
    """
    if not public.has_intercept:
        return 1.0
    return min(1.0, curvature / (problem.loss.curvature * public.intercept_size**2))


def step_rates(public: Public, problem: Problem, curvature: float) -> Array:
    """Return factors on the steps of all parameters: 1, and `intercept_rate`; a column."""
    rates = np.ones((public.n_parameters, 1))
    if public.has_intercept:
        rates[-1] = intercept_rate(public, problem, curvature)
    return rates


def full_budget_noise(public: Public) -> float:
    """Return the noise multiplier of one gradient with the whole budget; 0 without noise."""
    return 1 / public.gradient_mu if public.is_noisy else 0.0


@dataclass(frozen=True)
class Guess:
    """Public guesses, which determine the sizes and the number of steps.

    Attributes
    ----------
    curvature : float
        Curvature of the mean loss along its steepest direction.
    condition_number : float
        Its ratio to the curvature along the flattest direction.
    row_norm : float
        L2 norm of a row with its constant feature.
    """

    curvature: float
    condition_number: float
    row_norm: float

    @classmethod
    def of(cls, solver: OnePassSolver, public: Public, problem: Problem) -> Self:
        """Check a solver's guesses, and put values for standardised columns in place of "auto".

        They are those of the columns: :func:`intercept_rate` shortens the steps of the intercept.
        """
        scale = 1.0
        if public.data_norm is not None:
            scale = min(1.0, public.data_norm**2 / public.n_features)
        curvature, kappa = solver.curvature, solver.condition_number
        if checks.is_auto(curvature):
            steepest = min(STEEPEST, public.n_features) * scale
            curvature = problem.loss.curvature * steepest + problem.strong_convexity
        checks.positive(curvature=curvature)
        if checks.is_auto(kappa):
            flattest = problem.loss.curvature * scale + problem.strong_convexity
            kappa = max(1.0, curvature / flattest)
        row_norm = getattr(solver, "row_norm", "auto")
        if not is_real(row_norm):
            row_norm = expected_row_norm(public)
        checks.positive(condition_number=kappa, row_norm=row_norm)
        return cls(float(curvature), float(kappa), float(row_norm))

    def n_blocks(self, public: Public, unit: float, noise_falls: bool = False) -> int:
        """Return ``unit * kappa * ln n``, at most the number of rows; theory leaves ``unit`` open.

        Unless ``noise_falls`` with the fit, the signal-to-noise ratio takes the place of a larger
        n.
        """
        forgotten = float(public.n_rows)
        if public.is_noisy and not noise_falls:
            forgotten = min(forgotten, public.signal_to_noise)
        wanted = max(
            MIN_BLOCKS, math.ceil(unit * self.condition_number * math.log(max(forgotten, 2.0)))
        )
        return min(wanted, public.n_rows)

    def rows_for_full_steps(self, public: Public, problem: Problem, alpha: float) -> float:
        """Return the rows of a block from which on stability limits a step, and not its noise.

        That is where both limits of :meth:`step_size` agree: a root of a quadratic equation.
        """
        row = problem.loss.curvature * self.row_norm**2
        noise = row * self.condition_number * math.prod(public.shape) * alpha**2
        middle = row - self.curvature
        return (math.sqrt(middle**2 + 4 * self.curvature * noise) - middle) / (2 * self.curvature)

    def step_size(self, public: Public, problem: Problem, batch: float, alpha: float) -> float:
        """Return the size of a step on ``batch`` rows, with noise multiplier ``alpha``."""
        batch = max(1.0, batch)
        row = problem.loss.curvature * self.row_norm**2
        longest = batch / (row + (batch - 1) * self.curvature)
        if alpha == 0:
            return longest
        return min(
            longest, batch**2 / (row * self.condition_number * math.prod(public.shape) * alpha**2)
        )
