"""Define the base of accelerated solvers, whose noise and steps minimise an error bound."""

import math
from abc import abstractmethod
from typing import Self, TypedDict

import numpy as np

from skdp import steps
from skdp._numbers import Array, is_real, require, shown
from skdp.planning import sampling_variance
from skdp.solvers import base, checks, defaults
from skdp.solvers.base import Auto, Oracle, Problem, Public, Resolved, Settings, Solution, Solver
from skdp.solvers.batches import batch_rate, batch_rows, check_batches, samplers

# Largest number of steps that max_iter="auto" considers.
MAX_STEPS = 1000
# Rounding error of a step size in units of one over the curvature.
ROUNDING = 1e-9
# Samplings that make a step cheaper.
AMPLIFIED = ("poisson", "fixed_size")
# A noisy curvature is raised by this many standard deviations of its noise.
Z_CURVATURE = 3.0
# Noise of the noisiest step in units of that of the least noisy one. The noise that is optimal for
# the bounds grows without limit towards the first of many steps. It relies on a contraction that
# clipped gradients, and intercepts without a penalty, do not have.
MAX_NOISE_RATIO = 100.0


class BoundArguments(TypedDict):
    """Arguments of the bounds in `skdp.planning`, which describe them."""

    smoothness: float
    strong_convexity: float
    initial_excess: float
    variance: float
    composition: str
    sampling_variance: float


class Accelerated(Solver):
    """Base of the accelerated solvers; subclasses define the path, its bounds and its noise.

    Parameters
    ----------
    mechanism : {"auto", "gaussian", "laplace"}, default="auto"
        Distribution of the noise; "auto" is Laplace if delta is 0, else Gaussian.
    clip_norm : float, str, tuple (str, dict), ClippingRule or "auto", default="auto"
        Bound of one record's gradient, in L1 norm for Laplace and L2 norm for Gaussian noise; a
        rule by name, too: "geometric".
    learning_rate : float, "inverse_curvature" or "auto", default="auto"
        Step size a, at most ``1/L``; with stages, that of the first stage. "inverse_curvature" is
        ``1/L`` with the L in force, the noisy one where ``curvature="private"``; so is "auto", as a
        number where L is public.
    curvature : float, "private" or "auto", default="auto"
        L, the largest curvature of the objective. "auto": the loss's curvature times the squared
        bound on rows, plus the penalty's, which is far too large if columns are not strongly
        correlated. "private": a noisy release of the largest eigenvalue of the rows' Gram matrix,
        for a share of the budget, on which steps and momentum are based; noise and number of steps,
        which must be known before the run, are based on the public bound. A number is the user's
        public claim.
    strong_convexity : float or "auto", default="auto"
        mu of the objective in all parameters, a public claim; "auto" is that of the penalty in the
        coefficients. With a claim, problems without a strongly convex penalty can be solved, whose
        rows make them strongly convex. A claim that is too large makes for too little momentum.
    curvature_share : float, default=0.05
        Approximate share of the budget for ``curvature="private"``, in (0, 1).
    initial_gap : float or "auto", default="auto"
        Public guess of the excess at the start plus ``mu/2`` times the squared distance to the
        minimum. "auto" is the loss at zero: log 2 for a binary problem; for squared error, targets
        are assumed to have unit size, or a quarter of ``target_bound``.
    {batch_size}
    {sampling}

    References
    ----------
    N. Kuru, S. I. Birbil, M. Gurbuzbalaban, S. Yildirim: Differentially Private Accelerated
    Optimization Algorithms. SIAM Journal on Optimization, 2022.
    """

    strong_convexity: Resolved[float]
    initial_gap: Resolved[float]
    needs = frozenset({"smooth_penalty", "strongly_convex", "unconstrained"})
    mechanisms = ("gaussian", "laplace")

    def __init__(
        self,
        *,
        max_iter: int | Auto = "auto",
        learning_rate: base.StepSize = "auto",
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
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.noise_schedule = noise_schedule
        self.mechanism = mechanism
        self.clip_norm = clip_norm
        self.curvature = curvature
        self.strong_convexity = strong_convexity
        self.curvature_share = curvature_share
        self.initial_gap = initial_gap
        self.batch_size = batch_size
        self.sampling = sampling

    # ------------------------------------------------------------------ defined by subclasses

    @abstractmethod
    def _bounds(self, facts: BoundArguments, n_steps: int = MAX_STEPS) -> Array:
        """Return bounds on the excess after 1, 2, ..., ``n_steps`` steps."""

    @abstractmethod
    def _schedule(self, curvature: float, problem: Problem) -> steps.NoiseSchedule:
        """Return the noise schedule for ``noise_schedule="optimal"``."""

    def _path(self, start: Array, curvature: float, problem: Problem) -> steps.Path:
        """Return the path from ``start``, with step sizes for this curvature; Nesterov's."""
        return steps.NesterovPath(start, self._sizes(curvature, problem), self._mu(problem))

    # ------------------------------------------------------------------ before the run

    def provided(self, problem: Problem) -> frozenset[str]:
        declared = set() if checks.is_auto(self.strong_convexity) else {"strongly_convex"}
        return super().provided(problem) | declared

    def check(self, problem: Problem) -> None:
        if "strongly_convex" not in self.provided(problem):
            raise ValueError(
                f"solver {self.name!r} needs a penalty that is strongly convex, from which its "
                "momentum and its noise follow: set a finite C and l1_ratio=0 "
                "(DPLogisticRegression), or use DPRidge with alpha > 0; or declare the "
                "objective's strong convexity, as a public guess, by the solver's "
                f"strong_convexity. The penalty is {problem.penalty}. Nothing was released."
            )
        super().check(problem)
        if not 0 < problem.loss.curvature < math.inf:
            raise ValueError(
                f"solver {self.name!r} needs a loss of finite curvature; that of "
                f"{shown(problem.loss.name)} is {problem.loss.curvature!r}. Nothing was released."
            )

    def averages_groups(self, pure: bool) -> bool:
        return self.mechanism_for(pure) == "gaussian"

    def automatic(self, public: Public, problem: Problem) -> Settings:
        mechanism = self.mechanism_for(public.is_pure)
        laplace = mechanism == "laplace"
        rule = defaults.laplace_descent_defaults if laplace else defaults.descent_defaults
        clip_norm, gap = rule(public, problem)["clip_norm"], starting_loss(public, problem)
        if problem.strong_convexity == 0:
            gap *= 2  # mu/2 times the squared distance is at most the excess
        curvature = self._public_curvature(public, problem)
        is_public = not checks.is_word(self.curvature, "private")
        return {
            "mechanism": mechanism,
            "learning_rate": 1 / curvature if is_public else "inverse_curvature",
            "curvature": curvature,
            "noise_schedule": "optimal",
            "clip_norm": clip_norm,
            "initial_gap": gap,
            "strong_convexity": problem.strong_convexity,
        }

    def resolve(self, public: Public, problem: Problem) -> Self:
        resolved = super().resolve(public, problem)
        curvature = resolved._public_curvature(public, problem)
        resolved._choose_steps(curvature, public, problem)
        checks.count(max_iter=resolved.max_iter)
        steps.clip_norms(resolved.clip_norm, resolved.max_iter)
        resolved._noises(curvature, public, problem)
        return resolved

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.choice("mechanism", self.mechanism, self.mechanisms)
        check_batches(self.batch_size, self.sampling, public)
        checks.share(curvature_share=self.curvature_share)
        checks.positive(initial_gap=self.initial_gap, strong_convexity=self.strong_convexity)
        is_private = checks.is_word(self.curvature, "private")
        holds = is_private or (is_real(self.curvature) and 0 < self.curvature < math.inf)
        require("curvature", self.curvature, "be 'auto', 'private' or a positive number", holds)
        if is_private and public.row_norm is None:
            raise ValueError(
                f"solver {self.name!r} with curvature='private' needs an enforced bound on the "
                "norm of rows; set data_norm. Nothing was released."
            )
        largest = self._public_curvature(public, problem)
        if self._mu(problem) > largest:
            raise ValueError(
                f"solver {self.name!r}: strong_convexity must be at most the curvature, "
                f"{largest:.4g}; got {shown(self.strong_convexity)}. Nothing was released."
            )
        size = self._size(largest)
        if size * largest > 1 + ROUNDING:
            raise ValueError(
                f"solver {self.name!r}: learning_rate must be at most one over the curvature, "
                f"{1 / largest:.4g}; got {shown(self.learning_rate)}. Nothing was released."
            )

    def _mu(self, problem: Problem) -> float:
        """Return the strong convexity of the objective: the penalty's, or more if declared."""
        return max(float(self.strong_convexity), problem.strong_convexity)

    def _choose_steps(self, curvature: float, public: Public, problem: Problem) -> None:
        """Put values that minimise the bound in place of those that are still "auto"."""
        if checks.is_auto(self.max_iter):
            bounds = self._bounds(self._facts(curvature, public, problem))
            self.max_iter = int(np.argmin(bounds)) + 1

    def _public_curvature(self, public: Public, problem: Problem) -> float:
        """Return the curvature of mean loss and penalty, as claimed or by public bounds."""
        if is_real(self.curvature):
            return max(float(self.curvature), problem.strong_convexity)
        return defaults.loss_curvature(public, problem) + problem.strong_convexity

    def _size(self, curvature: float) -> float:
        """Return the step size; with stages, that of the first stage."""
        if checks.is_word(self.learning_rate, "inverse_curvature"):
            return 1 / curvature
        return steps.constant_size(self.learning_rate)

    def _pace(self, curvature: float) -> float:
        """Return the step size in units of one over the curvature, at most 1."""
        return min(self._size(curvature) * curvature, 1.0)

    def _sizes(self, curvature: float, problem: Problem) -> Array:
        """Return the step sizes of a run."""
        return np.full(self.max_iter, self._size(curvature))

    def _kappa(self, curvature: float, problem: Problem) -> float:
        return max(curvature / self._mu(problem), 1 + 1e-9)

    def _sampling_variance(self, public: Public) -> float:
        """Return the squared length of a batch's deviation, for the bounds."""
        clip = float(steps.clip_norms(self.clip_norm, 1)[0])
        if self.batch_size is None or not public.is_noisy:
            return 0.0  # without noise the clipping norm is no size of a gradient
        return sampling_variance(clip, batch_rows(self.batch_size, public.n_rows), public.n_rows)

    def _bounded_schedule(self) -> str:
        """Return the noise schedule of the bound that is minimised: "uniform" or "optimal"."""
        plain = isinstance(self.noise_schedule, str) and self.noise_schedule == "uniform"
        return "uniform" if plain else "optimal"

    def _composition(self, public: Public) -> str:
        return defaults.composition_kind(self.mechanism, public)

    def _facts(self, curvature: float, public: Public, problem: Problem) -> BoundArguments:
        return {
            "smoothness": curvature,
            "strong_convexity": self._mu(problem),
            "initial_excess": self.initial_gap,
            "variance": self._variance_of_one_step(public),
            "composition": self._composition(public),
            "sampling_variance": self._sampling_variance(public),
        }

    def _variance_of_one_step(self, public: Public) -> float:
        """Return the squared length of the noise of a single step with the whole budget."""
        size = math.prod(public.shape)
        clip = float(steps.clip_norms(self.clip_norm, 1)[0])
        unit = clip / public.n_rows
        if not public.is_noisy:
            return 0.0
        if unit * public.sensitivity_factor / min(public.laplace_budget, 1.0) > 1e100:
            raise ValueError(
                f"solver {self.name!r}: clip_norm={clip:g} requires more noise at this budget than "
                "numbers can hold; lower clip_norm. Nothing was released."
            )
        if self._composition(public) == "laplace":
            scale = unit * public.sensitivity_factor / public.laplace_budget
            return 2 * size * scale**2
        tails = 2.0 if self.mechanism == "laplace" else 1.0
        return tails * size * (unit / public.gradient_mu) ** 2

    def _noises(self, curvature: float, public: Public, problem: Problem) -> Array:
        """Return the relative noise of the steps."""
        schedule, composition = self.noise_schedule, self._composition(public)
        if not checks.is_word(schedule, "optimal"):
            sizes = self._sizes(curvature, problem)
            return steps.relative_noise(schedule, self.max_iter, composition, sizes)
        logs = self._schedule(curvature, problem).log_influence(self.max_iter)
        # Optimal noise is proportional to influence**(-1/3) or influence**(-1/4).
        power = 3 if composition == "laplace" else 4
        logs = np.maximum(logs, logs.max() - power * math.log(MAX_NOISE_RATIO))
        rate = self._amplification(public)
        if composition == "laplace" and rate < 1 and public.is_noisy:
            return steps.sampled_laplace_noise(logs, public.laplace_budget, rate)
        return steps.relative_noise(
            steps.CustomNoise(logs, logarithmic=True), self.max_iter, composition
        )

    def _amplification(self, public: Public) -> float:
        """Return the rate of a sample that makes a step cheaper; 1 if there is none."""
        return batch_rate(self.batch_size, public.n_rows) if self.sampling in AMPLIFIED else 1.0

    # ------------------------------------------------------------------ the run

    def solve(self, oracle: Oracle) -> Solution:
        problem, public, n_steps = oracle.problem, oracle.public, self.max_iter
        curvature = self._public_curvature(public, problem)
        noises = self._noises(curvature, public, problem)
        if self.curvature == "private":
            curvature = self._release_curvature(oracle, noises, curvature)
        path = self._path(oracle.start(), curvature, problem)
        clips = steps.clip_norms(self.clip_norm, n_steps)
        batches = samplers(self.batch_size, self.sampling, public)
        for clip_norm, noise, batch in zip(clips, noises, batches, strict=False):
            point = path.point
            gradient = oracle.gradient(point, clip_norm, noise, batch, self.mechanism)
            path.step(gradient + problem.penalty_gradient(point))
        return Solution(path.iterate, n_steps)

    def _release_curvature(self, oracle: Oracle, noises: Array, largest: float) -> float:
        """Release the largest eigenvalue of the Gram matrix for about its share of the budget."""
        public, problem = oracle.public, oracle.problem
        # 1. The cost of all steps, in units of a full-batch release with noise 1.
        power = 1 if self._composition(public) == "laplace" else 2
        amplification = self._amplification(public)
        if power == 1 and amplification < 1 and public.is_noisy:
            remaining = public.laplace_budget * (1 - self.curvature_share)
            cost = remaining * steps.sampled_laplace_factor(noises, remaining, amplification)
        else:
            cost = float(np.sum((batch_rate(self.batch_size, public.n_rows) / noises) ** power))
        # 2. The noise for the share; one record moves the eigenvalue by one bound, never by two.
        share = self.curvature_share / (1 - self.curvature_share)
        noise = (share * cost) ** (-1 / power) / public.sensitivity_factor
        eigenvalue, std = oracle.largest_eigenvalue(noise, self.mechanism)
        # 3. A cautious value, between bounds that are public.
        least = (public.intercept_size * public.has_intercept) ** 2
        raised = eigenvalue + Z_CURVATURE * std
        if raised <= 0:
            return largest
        curvature = problem.loss.curvature * max(raised, least) + problem.strong_convexity
        return min(curvature, largest)


def starting_loss(public: Public, problem: Problem) -> float:
    """Return a public guess of the mean loss at zero, which bounds the excess there.

    With an L2 penalty it also bounds the first term of the error bounds, the excess plus ``mu/2``
    times the squared distance to the minimum, which is the penalty there. It is exact for the
    logistic losses without weights; for others, targets are assumed to have unit size, or a quarter
    of the declared bound.
    """
    value = problem.loss.value_at_zero
    return public.n_outputs * defaults.target_unit(public) ** 2 / 2 if value is None else value
