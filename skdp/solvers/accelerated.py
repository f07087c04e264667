"""What the accelerated solvers have in common: steps of 1/L, noise and their number by a bound."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from skdp._docstrings import fill
from skdp._numbers import Array, is_real, shown
from skdp.objective import Problem
from skdp.oracle import Oracle, Public, Solution
from skdp.solvers.base import Solver
from skdp.solvers.batches import SAMPLINGS, batch_rows, samplers
from skdp.solvers.checks import check_choice, check_count, check_share, is_auto
from skdp.solvers.defaults import TARGET_UNITS, descent_defaults
from skdp.solvers.laplace_defaults import composition_kind, laplace_descent_defaults
from skdp.solvers.public_smoothness import public_smoothness
from skdp.steps import (
    ClippingRule,
    CustomNoise,
    NoiseSchedule,
    Path,
    clip_norms,
    relative_noise,
    sampled_laplace_factor,
    sampled_laplace_noise,
)

MOST = 1000  # steps that max_iter="auto" considers
AMPLIFIED = ("poisson", "fixed_size")
DEVIATIONS = 3.0  # a noisy curvature is raised by so many standard deviations of its noise
# The best noise for the bounds grows without limit towards the first of many steps, counting on a
# contraction that clipped gradients, and intercepts without a penalty, do not have.
NOISIEST = 100.0  # times the noise of the least noisy step

# What the docstrings of the accelerated solvers have in common.
SHARED = """
mechanism : {"auto", "gaussian", "laplace"}, default="auto"
    Law of the noise; "auto" is Laplace if delta is 0, else Gaussian.
clip_norm : float, ClippingRule or "auto", default="auto"
    Bound of one record's gradient, in L1 norm for Laplace and L2 norm for Gaussian noise.
step : float, default=1.0
    Step size in units of ``1/L``, in (0, 1]; with stages that of the first.
smoothness : "public", "private" or float, default="public"
    L of the objective. "public": the loss's curvature times the squared bound on rows, plus the
    penalty's, far above the truth where columns are not alike. "private": a noisy release of
    the largest eigenvalue of the rows' Gram matrix, for a part of the budget, which steps and
    momentum follow; noise and number of steps, which must be known before, follow the public
    bound. A number is a public claim of the user's.
smoothness_share : float, default=0.05
    Part of the budget for ``smoothness="private"``, in (0, 1), about.
initial_gap : float or "auto", default="auto"
    Public guess of the excess at the start plus ``mu/2`` times the squared distance to the
    minimum. "auto" is the loss at zero: log 2 for a binary problem; squared error takes targets
    to have unit size, or a quarter of ``target_bound``.
batch_size : int, float or None, default=None
    Expected rows in a batch, as a number or a fraction. None takes all rows at every step.
sampling : {"poisson", "fixed_size", "shuffled", "balls_and_bins"}, default="poisson"
    How batches are drawn. The paper's is "fixed_size", under replace_one only.
"""

PAPER = """
N. Kuru, S. I. Birbil, M. Gurbuzbalaban, S. Yildirim: Differentially Private Accelerated
Optimization Algorithms. SIAM Journal on Optimization, 2022.
"""

documented = fill(shared=SHARED, paper=PAPER)


class Accelerated(Solver):
    """Base of the accelerated solvers; subclasses say how noise acts and which path is taken."""

    needs: ClassVar[frozenset[str]] = frozenset(
        {"smooth_penalty", "strongly_convex", "unconstrained"}
    )
    mechanisms = ("gaussian", "laplace")

    def __init__(
        self,
        *,
        max_iter: Any = "auto",
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
        self.max_iter = max_iter
        self.noise_schedule = noise_schedule
        self.mechanism = mechanism
        self.clip_norm: Any = clip_norm
        self.step = step
        self.smoothness: Any = smoothness
        self.smoothness_share = smoothness_share
        self.initial_gap: Any = initial_gap
        self.batch_size = batch_size
        self.sampling = sampling

    # ------------------------------------------------------------------ what subclasses say

    @abstractmethod
    def _bounds(self, smoothness: float, problem: Problem, excess: float, spent: Any) -> Array:
        """Return bounds on the excess after 1, 2, ... steps; ``spent`` are (variance, law)."""

    @abstractmethod
    def _schedule(self, smoothness: float, problem: Problem) -> NoiseSchedule:
        """Return the noise schedule that "optimal" stands for."""

    @abstractmethod
    def _path(self, start: Array, smoothness: float, problem: Problem) -> Path:
        """Return the path from ``start``, with steps for this smoothness."""

    # ------------------------------------------------------------------ before the run

    def check(self, problem: Problem) -> None:
        if "strongly_convex" not in problem.provides:
            raise ValueError(
                f"solver {self.name!r} needs a penalty that is strongly convex, from which its "
                "momentum and its noise follow: set a finite C and l1_ratio=0 "
                "(DPLogisticRegression), or use DPRidge with alpha > 0. The penalty is "
                f"{problem.penalty}. Nothing was released."
            )
        super().check(problem)
        if not 0 < problem.loss.curvature < math.inf:
            raise ValueError(
                f"solver {self.name!r} needs a loss of finite curvature; that of "
                f"{shown(problem.loss.name)} is {problem.loss.curvature!r}. Nothing was released."
            )

    def automatic(self, public: Public, problem: Problem) -> dict[str, Any]:
        values: dict[str, Any] = {"mechanism": self.mechanism_for(public.is_pure)}
        check_choice("mechanism", values["mechanism"], self.mechanisms)
        pure = values["mechanism"] == "laplace"
        defaults = laplace_descent_defaults if pure else descent_defaults
        values["clip_norm"] = defaults(public, problem)["clip_norm"]
        values["initial_gap"] = starting_loss(public, problem)
        return {name: value for name, value in values.items() if is_auto(getattr(self, name))}

    def resolve(self, public: Public, problem: Problem) -> Self:
        resolved = super().resolve(public, problem)
        resolved._check()
        if resolved.batch_size is not None:
            batch_rows(resolved.batch_size, public.n_rows)
        if resolved.smoothness == "private" and public.row_norm is None:
            raise ValueError(
                f"solver {self.name!r} with smoothness='private' needs an enforced bound on the "
                "norm of rows; set data_norm. Nothing was released."
            )
        bound = resolved._public_smoothness(public, problem)
        resolved._decide(bound, public, problem)
        check_count("max_iter", resolved.max_iter)
        clip_norms(resolved.clip_norm, resolved.max_iter)
        resolved._noises(bound, public, problem)
        return resolved

    def _check(self) -> None:
        """Raise ValueError if a hyperparameter that no other depends on is out of its range."""
        check_choice("sampling", self.sampling, SAMPLINGS)
        if not (is_real(self.step) and 0 < self.step <= 1):
            raise ValueError(
                "step must be a number in (0, 1], in units of 1/smoothness; got "
                f"{shown(self.step)}."
            )
        check_share("smoothness_share", self.smoothness_share)
        excess = self.initial_gap
        if not (is_real(excess) and 0 < excess < math.inf):
            raise ValueError(f"initial_gap must be 'auto' or positive; got {shown(excess)}.")
        if isinstance(self.smoothness, str):
            check_choice("smoothness", self.smoothness, ("public", "private"))
        elif not (is_real(self.smoothness) and 0 < self.smoothness < math.inf):
            raise ValueError(
                f"smoothness must be 'public', 'private' or positive; got {shown(self.smoothness)}."
            )

    def _decide(self, smoothness: float, public: Public, problem: Problem) -> None:
        """Put values in place of the "auto" that are chosen by the bound."""
        if not is_auto(self.max_iter):
            check_count("max_iter", self.max_iter)
            return
        bounds = self._bounds(smoothness, problem, self.initial_gap, self._spent(public))
        self.max_iter = int(np.argmin(bounds)) + 1

    def _public_smoothness(self, public: Public, problem: Problem) -> float:
        """Smoothness of the objective as far as anyone may know it."""
        if is_real(self.smoothness):
            return max(float(self.smoothness), problem.strong_convexity)
        return public_smoothness(public, problem)

    @staticmethod
    def _kappa(smoothness: float, problem: Problem) -> float:
        return max(smoothness / problem.strong_convexity, 1 + 1e-9)

    def _scheduled(self) -> str:
        """Whether the bound to go by is that of uniform or of the best noise."""
        plain = isinstance(self.noise_schedule, str) and self.noise_schedule == "uniform"
        return "uniform" if plain else "optimal"

    def _law(self, public: Public) -> str:
        return composition_kind(self.mechanism, public)

    def _spent(self, public: Public) -> tuple[float, str]:
        """Squared length of the noise if one step took the whole budget; and how costs add up."""
        size = math.prod(public.shape)
        clip = float(clip_norms(self.clip_norm, 1)[0])
        unit = clip / public.n_rows
        law = self._law(public)
        if not public.is_noisy:
            return 0.0, law
        if unit * public.sensitivity_factor / min(public.laplace_budget, 1.0) > 1e100:
            raise ValueError(
                f"solver {self.name!r}: clip_norm={clip:g} asks for more noise at this budget than "
                "numbers can hold; lower clip_norm. Nothing was released."
            )
        if law == "laplace":
            scale = unit * public.sensitivity_factor / public.laplace_budget
            return 2 * size * scale**2, law
        tails = 2.0 if self.mechanism == "laplace" else 1.0
        return tails * size * (unit / public.gradient_mu) ** 2, law

    def _noises(self, smoothness: float, public: Public, problem: Problem) -> Array:
        """Relative noise of the steps."""
        schedule, law = self.noise_schedule, self._law(public)
        if not (isinstance(schedule, str) and schedule in ("auto", "optimal")):
            return relative_noise(schedule, self.max_iter, law)
        logs = self._schedule(smoothness, problem).log_influence(self.max_iter)
        # Noise goes as influence to the power of -1/3 or -1/4.
        power = 3 if law == "laplace" else 4
        logs = np.maximum(logs, logs.max() - power * math.log(NOISIEST))
        rate = self._amplification(public)
        if law == "laplace" and rate < 1 and public.is_noisy:
            return sampled_laplace_noise(logs, public.laplace_budget, rate)
        return relative_noise(CustomNoise(logs, logarithmic=True), self.max_iter, law)

    def _amplification(self, public: Public) -> float:
        """Rate of a sample that makes a step cheaper; 1 where there is none."""
        if self.batch_size is None or self.sampling not in AMPLIFIED:
            return 1.0
        return batch_rows(self.batch_size, public.n_rows) / public.n_rows

    # ------------------------------------------------------------------ the run

    def solve(self, oracle: Oracle) -> Solution:
        problem, public, n_steps = oracle.problem, oracle.public, self.max_iter
        smoothness = self._public_smoothness(public, problem)
        noises = self._noises(smoothness, public, problem)
        if self.smoothness == "private":
            smoothness = self._ask_for_smoothness(oracle, noises, smoothness)
        path = self._path(oracle.start(), smoothness, problem)
        clips = clip_norms(self.clip_norm, n_steps)
        batches = samplers(self.batch_size, self.sampling, public)
        for clip_norm, noise, batch in zip(clips, noises, batches, strict=False):
            point = path.point
            gradient = oracle.gradient(point, clip_norm, noise, batch, self.mechanism)
            path.step(gradient + problem.penalty_gradient(point))
        return Solution(path.iterate, n_steps)

    def _ask_for_smoothness(self, oracle: Oracle, noises: Array, largest: float) -> float:
        """Release the largest eigenvalue of the Gram matrix for about its share of the budget."""
        public, problem = oracle.public, oracle.problem
        # 1. What the steps cost together, in units of a full-batch release with noise 1.
        power = 1 if self._law(public) == "laplace" else 2
        amplification = self._amplification(public)
        if power == 1 and amplification < 1 and public.is_noisy:
            left = public.laplace_budget * (1 - self.smoothness_share)
            steps = left * sampled_laplace_factor(noises, left, amplification)
        else:
            rate = 1.0
            if self.batch_size is not None:
                rate = batch_rows(self.batch_size, public.n_rows) / public.n_rows
            steps = float(np.sum((rate / noises) ** power))
        # 2. The noise for a share; one record moves the eigenvalue by one bound, never by two.
        share = self.smoothness_share / (1 - self.smoothness_share)
        noise = (share * steps) ** (-1 / power) / public.sensitivity_factor
        found, std = oracle.largest_eigenvalue(noise, self.mechanism)
        # 3. On the safe side, and between what is known without asking.
        least = (public.intercept_size * public.has_intercept) ** 2
        raised = found + DEVIATIONS * std
        if raised <= 0:
            return largest
        curvature = problem.loss.curvature * max(raised, least) + problem.strong_convexity
        return min(curvature, largest)


def starting_loss(public: Public, problem: Problem) -> float:
    """Public guess of the mean loss at zero, which bounds the excess there.

    With an L2 penalty it also bounds what the bounds start from, the excess plus ``mu/2`` times the
    squared distance to the minimum, as the latter is the penalty there. For the logistic losses,
    without weights, it is exact; for others it takes targets to have unit size, or a quarter of the
    declared bound.
    """
    n_outputs = public.n_outputs
    if not problem.loss.separable:
        return math.log(n_outputs)
    if problem.loss.name == "logistic":
        return n_outputs * math.log(2)
    unit = 1.0 if public.target_bound is None else public.target_bound / TARGET_UNITS
    return n_outputs * unit**2 / 2
