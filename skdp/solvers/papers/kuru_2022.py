"""Kuru, Birbil, Gurbuzbalaban, Yildirim (SIAM J. Optim. 2022): accelerated methods, Laplace noise.

For smooth and strongly convex objectives the paper bounds the expected excess of the heavy ball
(Prop. 3.4, Thm 3.5), of Nesterov's method (eq. 32) and of Nesterov's method in stages (eq. 34) with
noisy gradients, and finds the Laplace noise that minimises the bounds for a given epsilon, in
proportion to ``influence**(-1/3)`` (Prop. 4.2).

"heavy_ball" is DP-HB (DP-SHB on batches), "nesterov" DP-NAG and "multistage_nesterov" DP-MASG. With
``noise_schedule="optimal"``, the value of "auto", the last two are DP-NAG-opt and DP-MASG-opt. By
default the number of steps minimises the bound of Nesterov's method. Noise is Laplace if delta is
0, otherwise Gaussian.

Worth using: "nesterov" with delta = 0, a strongly convex penalty and few steps. Otherwise "gd" was
mostly better, as the public bound on the curvature makes for short steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np

from skdp import steps
from skdp._numbers import LARGEST_CLIP_NORM, AnyArray, Array, Indices, is_real, require, shown
from skdp.solvers import base, checks, defaults, descent
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution, Solver
from skdp.steps import (
    COST_POWERS,
    influence_to_noise,
    name_of,
    powers,
)

# Largest number of steps that max_iter="auto" considers.
MAX_STEPS = 1000
# Rounding error of a step size in units of one over the curvature.
ROUNDING = 1e-9
# Noise of the noisiest step in units of that of the least noisy one. The noise that is optimal for
# the bounds grows without limit towards the first of many steps. It relies on a contraction that
# clipped gradients, and intercepts without a penalty, do not have.
MAX_NOISE_RATIO = 100.0
# In place of a contraction of 0 (one step reaches the minimum), which has no logarithm. Small
# enough to leave bounds as they are.
LEAST_CONTRACTION = 1e-12

# ---------------------------------------------------------------- bounds on the error


def sampling_variance(clip_norm: float, batch_size: int, n_rows: int) -> float:
    """Bound the squared length by which the mean over a random batch misses that over all rows.

    ``S**2 / (4 m) (n - m) / (n - 1)`` with ``S = 2 clip_norm`` for a batch of m out of n rows
    without replacement (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, Prop. 3.3). Independent
    draws with rate ``m / n`` have at most ``clip_norm**2 (1 - m / n) / m``, which is less.

    Parameters
    ----------
    clip_norm : float
        Bound of one record's gradient, in L1 or L2 norm.
    batch_size, n_rows : int
        m and n.

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.solvers.papers.kuru_2022 import sampling_variance
    >>> sampling_variance(1.0, 50, 101), sampling_variance(1.0, 101, 101)
    (0.0102, 0.0)
    """
    if batch_size == n_rows:
        return 0.0
    return clip_norm**2 / batch_size * (n_rows - batch_size) / (n_rows - 1)


class RunFacts(NamedTuple):
    """Public numbers that bound the excess of a run.

    Attributes
    ----------
    smoothness, strong_convexity : float
        L and mu, ``0 < mu <= L``.
    initial_excess : float
        E_0, a *public* guess. The recursion behind the bound is about ``F(x_t) - F*`` plus ``mu/2``
        times a squared distance, so E_0 is the initial excess plus ``mu/2 |x_0 - x*|**2``, which is
        at most twice the excess. The paper prints the excess.
    variance : float
        Expected squared length of the noise on the mean gradient if a single step used the whole
        budget: ``2 d S**2 / (n epsilon)**2`` for Laplace, ``d S**2 / (n mu_G)**2`` for Gaussian
        noise, S being the sensitivity.
    composition : {"laplace", "gaussian"}
        Rule by which costs add up: epsilons for "laplace", squares of mu for "gaussian".
    sampling_variance : float, default=0.0
        Expected squared length of the sampling error of a batch in every step. See
        `sampling_variance`.
    """

    smoothness: float
    strong_convexity: float
    initial_excess: float
    variance: float
    composition: str = "laplace"
    sampling_variance: float = 0.0


def nesterov_bounds(
    n_steps: int,
    facts: RunFacts,
    step: float = 1.0,
    stages: tuple[int, float] | None = None,
    is_optimal: bool = True,
) -> Array:
    """Bound the expected excess after T = 1, ..., ``n_steps`` steps, each with noise for its T.

    ``a_{T,0} E_0 + (variance/2) sum_t a_{T,t} s_t**2``, with noise s_t that is scaled to the budget
    and either minimises the bound or is uniform. Laplace noise with delta = 0 gives ``(d S**2 / (n
    epsilon)**2) (sum_t a_{T,t}**(1/3))**3`` for the second term (Kuru, Birbil, Gurbuzbalaban,
    Yildirim 2022, eq. 29 and 32, in stages eq. 34).

    Parameters
    ----------
    n_steps : int
        Largest T.
    facts : RunFacts
    step : float, default=1.0
        Step size in units of 1/L, in (0, 1].
    stages : tuple (first_stage, p) or None, default=None
        Steps of the first stage, and the length of the later ones, as in `MultistageNesterov`. None
        is a single stage.
    is_optimal : bool, default=True
        Whether the noise minimises the bound. Otherwise it is uniform.

    Returns
    -------
    array of shape (n_steps,)

    Examples
    --------
    >>> from skdp.solvers.papers.kuru_2022 import RunFacts, nesterov_bounds
    >>> facts = RunFacts(1.0, 0.01, initial_excess=1.0, variance=1e-6)
    >>> best, uniform = nesterov_bounds(1000, facts), nesterov_bounds(1000, facts, is_optimal=False)
    >>> int(best.argmin()) + 1, int(uniform.argmin()) + 1
    (57, 45)
    >>> bool(best.min() < uniform.min())
    True
    """
    start, weights = nesterov_influence(
        n_steps, facts.smoothness, facts.strong_convexity, step, stages
    )
    # T steps of equal cost have T**(2/p) times the variance of one, costs being 1/noise**p. The
    # effect of optimal noise is (sum of influence**(1/power))**power.
    p = COST_POWERS[facts.composition]
    steps_power, power = 2 // p, (2 + p) // p
    equally = np.logaddexp.accumulate(weights)
    if is_optimal:
        effect = power * np.logaddexp.accumulate(weights / power)
    else:
        effect = equally + steps_power * np.log(np.arange(1, n_steps + 1))
    with np.errstate(over="ignore"):
        noise = facts.variance * np.exp(start + effect)
        sampled = facts.sampling_variance * np.exp(start + equally)
        return np.asarray(np.exp(start) * facts.initial_excess + (noise + sampled) / 2)


def stages_of_steps(n_steps: int, kappa: float, first_stage: int, p: float) -> Indices:
    """Return the stage, counted from 1, of each of the steps 1..n_steps of multistage acceleration.

    The first stage has ``first_stage`` steps, stage k has ``2**k ceil(sqrt(kappa) log(2**(p+2)))``.

    Returns
    -------
    array of shape (n_steps,), int64
    """
    unit = math.ceil(math.sqrt(kappa) * (p + 2) * math.log(2))
    lengths = [min(first_stage, n_steps)]
    while sum(lengths) < n_steps:
        lengths.append(min(2 ** (len(lengths) + 1) * unit, n_steps))
    return np.repeat(np.arange(1, len(lengths) + 1), lengths)[:n_steps]


def nesterov_influence(
    n_steps: int,
    smoothness: float,
    strong_convexity: float,
    step: float = 1.0,
    stages: tuple[int, float] | None = None,
) -> tuple[Array, Array]:
    """Return the logarithms of the contributions of the start and of each step's noise at the end.

    Parameters are as for `RunFacts` and `nesterov_bounds`.

    Returns
    -------
    two arrays of shape (n_steps,)
        log a_{T,0} for each number T of steps, and ``log a_{T,t} - log a_{T,0}`` for each step t,
        which is the same for all T (Kuru et al. 2022, eqs. 29 and 34).
    """
    stage = np.ones(n_steps)
    if stages is not None:
        stage = stages_of_steps(n_steps, smoothness / strong_convexity, *stages).astype(np.float64)
    sizes = step / smoothness * sizes_of_stages(stage)
    shrink = 1 - np.sqrt(np.minimum(sizes * strong_convexity, 1.0))
    start = np.cumsum(np.log(np.maximum(shrink, LEAST_CONTRACTION)))
    start = start + (stage - stage[0]) * math.log(2)
    return start, np.log(sizes) + np.log1p(sizes * smoothness) - start


def sizes_of_stages(stage: AnyArray) -> AnyArray:
    """Return the sizes of steps by their stage, in units of the first: ``4**-k`` for k >= 2."""
    return np.where(stage == 1, 1.0, 4.0**-stage)


def heavy_ball_rate(
    step: float, momentum: float, smoothness: float, strong_convexity: float
) -> float:
    """Return the rate rho at which iterates without noise shrink on quadratics, as ``t rho**t``.

    This is the largest modulus of the roots of ``z**2 - (1 + beta - alpha h) z + beta`` for h = mu
    and h = L (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, Thm 3.5, as printed, eq. 26 has the roots
    of Nesterov's method, while the proof has these).

    Parameters
    ----------
    step, momentum : float
        alpha > 0 and beta in [0, 1).
    smoothness, strong_convexity : float
        L and mu.

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.solvers.papers.kuru_2022 import heavy_ball_rate
    >>> root = 100**0.5
    >>> step, beta = 4 / (1 + root) ** 2, ((root - 1) / (root + 1)) ** 2
    >>> bool(abs(heavy_ball_rate(step, beta, 100.0, 1.0) - (root - 1) / (root + 1)) < 1e-7)
    True
    """
    middle = 1 + momentum - step * np.array([strong_convexity, smoothness], dtype=complex)
    root = np.sqrt(middle**2 - 4 * momentum)
    return float(np.maximum(np.abs(middle + root), np.abs(middle - root)).max() / 2)


# ---------------------------------------------------------------- solvers


@base.hyperparameters
class Accelerated(Solver):
    """Base of the accelerated solvers. Subclasses define the path, its bounds and its noise.

    Parameters
    ----------
    mechanism : {"auto", "gaussian", "laplace"}, default="auto"
        Distribution of the noise. "auto" is Laplace if delta is 0, else Gaussian.
    clip_norm : float or "auto", default="auto"
        Bound of one record's gradient, in L1 norm for Laplace and L2 norm for Gaussian noise.
    learning_rate : float or "auto", default="auto"
        Step size a, at most ``1/L``, which is "auto". With stages, that of the first stage.
    curvature : float or "auto", default="auto"
        L, the largest curvature of the objective. "auto": the loss's curvature times the squared
        bound on rows, plus the penalty's, which is far too large if columns are not strongly
        correlated. A number is the user's public claim.
    strong_convexity : float or "auto", default="auto"
        mu of the objective in all parameters, a public claim. "auto" is that of the penalty in the
        coefficients. With a claim, problems without a strongly convex penalty can be solved, whose
        rows make them strongly convex. A claim that is too large makes for too little momentum.
    initial_gap : float or "auto", default="auto"
        Public guess of the excess at the start plus ``mu/2`` times the squared distance to the
        minimum. "auto" is the loss at zero: log 2 for a binary problem. For squared error, targets
        are assumed to have unit size, or a quarter of their declared bound.
    {batch_size}
    {sampling}

    References
    ----------
    N. Kuru, S. I. Birbil, M. Gurbuzbalaban, S. Yildirim: Differentially Private Accelerated
    Optimization Algorithms. SIAM Journal on Optimization, 2022.
    """

    needs = frozenset({"smooth_penalty", "strongly_convex", "unconstrained"})
    mechanisms = ("gaussian", "laplace")

    max_iter: Resolved[int] = AUTO
    learning_rate: base.StepSize = "auto"
    noise_schedule: base.RelativeNoise = "auto"
    mechanism: str = "auto"
    clip_norm: Resolved[float] = AUTO
    curvature: Resolved[float] = AUTO
    strong_convexity: Resolved[float] = AUTO
    initial_gap: Resolved[float] = AUTO
    batch_size: int | float | None = None
    sampling: str = "poisson"

    # ------------------------------------------------------------------ defined by subclasses

    def _log_influence(self, problem: Problem) -> Array:
        """Return the logarithms of the influence of the steps' noise, up to a constant."""
        facts = self._largest(problem), self._mu(problem), self._pace(problem), self._stages
        return nesterov_influence(self.max_iter, *facts)[1]

    def _bounds(self, facts: RunFacts, n_steps: int = MAX_STEPS) -> Array:
        """Return bounds on the excess after 1, 2, ..., ``n_steps`` steps. Nesterov's."""
        pace = min(self._size * facts.smoothness, 1.0)
        is_optimal = name_of(self.noise_schedule) != "uniform"
        return nesterov_bounds(n_steps, facts, pace, self._stages, is_optimal)

    @property
    def _stages(self) -> tuple[int, float] | None:
        """Steps of the first of several stages, and the length of the later ones."""
        return None

    def _path(self, start: Array, problem: Problem) -> descent.Path:
        """Return the path from ``start``. Nesterov's."""
        return descent.MomentumPath(start, nesterov_momentum(self._mu(problem)), True)

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

    def averages_groups(self, pure: bool) -> bool:
        return self.mechanism_for(pure) == "gaussian"

    def automatic(self, public: Public, problem: Problem) -> Settings:
        mechanism = self.mechanism_for(public.is_pure)
        laplace = mechanism == "laplace"
        rule = defaults.laplace_descent_defaults if laplace else defaults.descent_defaults
        clip_norm, gap = rule(public, problem)["clip_norm"], starting_loss(public, problem)
        if problem.strong_convexity == 0:
            gap *= 2  # mu/2 times the squared distance is at most the excess
        curvature = self.curvature
        if checks.is_auto(curvature):
            curvature = defaults.loss_curvature(public, problem) + problem.strong_convexity
        checks.positive(curvature=curvature)
        return {
            "mechanism": mechanism,
            "learning_rate": 1 / max(curvature, problem.strong_convexity),
            "curvature": curvature,
            "noise_schedule": "optimal",
            "clip_norm": clip_norm,
            "initial_gap": gap,
            "strong_convexity": problem.strong_convexity,
        }

    def resolve(self, public: Public, problem: Problem) -> Self:
        resolved = super().resolve(public, problem)
        resolved._choose_steps(public, problem)
        resolved._noises(public, problem)
        return resolved

    def check_values(self, public: Public, problem: Problem) -> None:
        if not checks.is_auto(self.max_iter):
            checks.count(max_iter=self.max_iter)
        steps.constant_clip(self.clip_norm)
        checks.choice("mechanism", self.mechanism, self.mechanisms)
        descent.check_batches(self.batch_size, self.sampling, public)
        checks.positive(initial_gap=self.initial_gap, strong_convexity=self.strong_convexity)
        largest = self._largest(problem)
        if self._mu(problem) > largest:
            raise ValueError(
                f"solver {self.name!r}: strong_convexity must be at most the curvature, "
                f"{largest:.4g}, got {shown(self.strong_convexity)}. Nothing was released."
            )
        if self._size * largest > 1 + ROUNDING:
            raise ValueError(
                f"solver {self.name!r}: learning_rate must be at most one over the curvature, "
                f"{1 / largest:.4g}, got {shown(self.learning_rate)}. Nothing was released."
            )

    def _mu(self, problem: Problem) -> float:
        """Return the strong convexity of the objective: the penalty's, or more if declared."""
        return max(float(self.strong_convexity), problem.strong_convexity)

    def _largest(self, problem: Problem) -> float:
        """Return the curvature of the objective, which is no less than the penalty's."""
        return max(float(self.curvature), problem.strong_convexity)

    def _choose_steps(self, public: Public, problem: Problem) -> None:
        """Put values that minimise the bound in place of those that are still "auto"."""
        if checks.is_auto(self.max_iter):
            self.max_iter = int(np.argmin(self._bounds(self._facts(public, problem)))) + 1

    @property
    def _size(self) -> float:
        """The step size. With stages, that of the first stage."""
        return steps.constant_size(self.learning_rate)

    def _pace(self, problem: Problem) -> float:
        """Return the step size in units of one over the curvature, at most 1."""
        return min(self._size * self._largest(problem), 1.0)

    def _sizes(self, problem: Problem) -> Array:
        """Return the step sizes of a run."""
        return np.full(self.max_iter, self._size)

    def _kappa(self, problem: Problem) -> float:
        return max(self._largest(problem) / self._mu(problem), 1 + 1e-9)

    def _composition(self, public: Public) -> str:
        return defaults.composition_kind(self.mechanism, public)

    def _facts(self, public: Public, problem: Problem) -> RunFacts:
        sampled = 0.0  # without noise the clipping norm is no size of a gradient
        if self.batch_size is not None and public.is_noisy:
            rows = descent.batch_rows(self.batch_size, public.n_rows)
            sampled = sampling_variance(self.clip_norm, rows, public.n_rows)
        return RunFacts(
            self._largest(problem),
            self._mu(problem),
            self.initial_gap,
            self._variance_of_one_step(public),
            self._composition(public),
            sampled,
        )

    def _variance_of_one_step(self, public: Public) -> float:
        """Return the squared length of the noise of a single step with the whole budget."""
        if not public.is_noisy:
            return 0.0
        budget = public.gradient_mu
        if self._composition(public) == "laplace":
            budget = public.laplace_budget / public.sensitivity_factor
        tails = 2.0 if self.mechanism == "laplace" else 1.0
        scale = self.clip_norm / public.n_rows / budget
        return tails * math.prod(public.shape) * min(scale, LARGEST_CLIP_NORM) ** 2

    def _noises(self, public: Public, problem: Problem) -> Array:
        """Return the relative noise of the steps."""
        schedule, composition = self.noise_schedule, self._composition(public)
        if not checks.is_word(schedule, "optimal"):
            return steps.relative_noise(schedule, self._sizes(problem), composition)
        logs = self._log_influence(problem)
        # Optimal noise is proportional to influence**(-1/3) or influence**(-1/4).
        power = 3 if composition == "laplace" else 4
        logs = np.maximum(logs, logs.max() - power * math.log(MAX_NOISE_RATIO))
        # The rate of a sample that makes a step cheaper.
        return influence_to_noise(logs, composition)

    # ------------------------------------------------------------------ the run

    def solve(self, oracle: Oracle) -> Solution:
        problem, public = oracle.problem, oracle.public
        batches = descent.samplers(self.batch_size, self.sampling, public)
        run = descent.schedule(
            self._sizes(problem),
            self.clip_norm,
            self._noises(public, problem),
            batches,
            self.mechanism,
        )
        path = self._path(oracle.start(), problem)
        return Solution(descent.descend(oracle, path, run), self.max_iter)


def nesterov_momentum(strong_convexity: float) -> Callable[[float], float]:
    """Return ``(1 - sqrt(a mu)) / (1 + sqrt(a mu))`` as a function of the step size a."""

    def momentum(size: float) -> float:
        root = math.sqrt(min(size * strong_convexity, 1.0))
        return (1 - root) / (1 + root)

    return momentum


def starting_loss(public: Public, problem: Problem) -> float:
    """Return a public guess of the mean loss at zero, which bounds the excess there.

    With an L2 penalty it also bounds the first term of the error bounds, the excess plus ``mu/2``
    times the squared distance to the minimum, which is the penalty there. It is exact for the
    logistic losses without weights. For others, targets are assumed to have unit size, or a quarter
    of the declared bound.
    """
    value = problem.loss.value_at_zero
    return public.n_outputs * defaults.target_unit(public) ** 2 / 2 if value is None else value


@base.hyperparameters
class HeavyBallDescent(Accelerated):
    """Polyak's heavy ball on noisy gradients (DP-HB, DP-SHB on batches).

    Step t requests the mean gradient at the last iterate, with each record's gradient clipped, adds
    the gradient of the penalty, and moves to ``x_next = x - a gradient + beta (x - x_previous)``,
    with a the ``learning_rate`` (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, eq. 9). The last
    iterate is returned. Solver "gd" has the same momentum with proximal steps and averaging, and
    needs no strongly convex penalty.

    mu is the strong convexity of the penalty, in the coefficients. See `Nesterov` on intercepts.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps. "auto" minimises `nesterov_bounds`, up to 1000.
    momentum : float, HeavyBall, ("heavy_ball", {"beta": float}) or "auto", default="auto"
        Weight beta of the previous step, in [0, 1). "auto" is ``(1 - sqrt(a mu))**2``, of the best
        rate, at most 0.99. Unlike those of "gd", steps here have the gain ``1 / (1 - beta)``, as in
        the paper: a constant gradient is followed with steps of ``learning_rate / (1 - beta)``.
    noise_schedule : str, tuple (str, dict), array of shape (max_iter,) or "auto", default="auto"
        "auto" is "optimal", which follows the bound of Prop. 3.4, in which the influence of a step
        falls by ``rho**2`` from one to the next. "uniform" is the paper's.
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
    paper = "Kuru, Birbil, Gurbuzbalaban, Yildirim (2022)"
    # The paper's batches have 1,000 of 100,000 rows, too few of smaller tables.
    algorithms = (("DP-HB", {}), ("DP-SHB", {"batch_size": 0.1}))
    purpose = "Median excess at epsilon 1: 1.2 times that of 'gd'."

    momentum: base.AnyMomentum = "auto"

    def _choose_steps(self, public: Public, problem: Problem) -> None:
        if checks.is_auto(self.momentum):
            root = math.sqrt(min(self._size * self._mu(problem), 1.0))
            self.momentum = min((1 - root) ** 2, 0.99)
        if steps.Momentum.of(self.momentum).kind != "heavy_ball":
            raise ValueError(
                "solver 'heavy_ball': momentum must be 'auto' or a number in [0, 1), got "
                f"{shown(self.momentum)}, which solver 'gd' takes. Nothing was released."
            )
        super()._choose_steps(public, problem)

    @property
    def _beta(self) -> float:
        return steps.Momentum.of(self.momentum).beta

    def _log_influence(self, problem: Problem) -> Array:
        facts = self._largest(problem), self._mu(problem)
        rate = float(np.clip(heavy_ball_rate(self._size, self._beta, *facts), 1e-6, 1.0))
        return powers(rate**2, self.max_iter)

    def _path(self, start: Array, problem: Problem) -> descent.Path:
        return descent.MomentumPath(start, lambda size: self._beta, False)


class Nesterov(Accelerated):
    """Accelerated gradient method of Nesterov, with optimal noise (DP-NAG, DP-NAG-opt).

    Step t requests the mean gradient at ``z = (1 + beta) x - beta x_previous``, with each record's
    gradient clipped, adds the gradient of the penalty, and moves to ``x_next = z - a gradient``,
    with a the ``learning_rate`` and ``beta = (1 - sqrt(a mu)) / (1 + sqrt(a mu))`` (Kuru, Birbil,
    Gurbuzbalaban, Yildirim 2022, eq. 27). The last iterate is returned.

    mu is the strong convexity of the penalty, in the coefficients, or a declared value. Problems
    with neither are refused. An intercept is not penalised. It makes the same steps, but the theory
    is for ``fit_intercept=False`` or a mu that was declared.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps. "auto" minimises the error bound (eq. 32) of a full-batch run, up to 1000.
        See `nesterov_bounds`.
    noise_schedule : str, tuple (str, dict), array of shape (max_iter,) or "auto", default="auto"
        "auto" is "optimal", which minimises the error bound (Prop. 4.2, numerically on samples with
        delta = 0), with at most 100 times the noise of the least noisy step. "uniform" is DP-NAG.
    {Parameters}

    References
    ----------
    {References}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(
    ...     classes=[0, 1], solver="nesterov", C=0.1, epsilon=1.0, delta=0
    ... )
    >>> model.fit(X, y).solver_.mechanism
    'laplace'
    """

    name = "nesterov"
    paper = "Kuru, Birbil, Gurbuzbalaban, Yildirim (2022)"
    algorithms = (("DP-NAG", {"noise_schedule": "uniform"}), ("DP-NAG-opt", {}))
    purpose = "Median excess at epsilon 1: 1.2 times that of 'gd'."


@base.hyperparameters
class MultistageNesterov(Accelerated):
    """Nesterov's method in stages, with optimal noise (DP-MASG, DP-MASG-opt).

    The steps are those of solver "nesterov". The first stage has ``first_stage`` steps of
    ``learning_rate``. Stage k >= 2 has ``2**k ceil(sqrt(kappa) log(2**(p+2)))`` steps of
    ``learning_rate / 4**k``, with ``kappa = L / mu``. Each stage has its own momentum and starts at
    the last iterate of the stage before (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, sec. 4.2).

    mu is the strong convexity of the penalty, in the coefficients. See `Nesterov` on intercepts.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps. "auto" minimises the error bound (eq. 34), up to 1000.
    first_stage : int or "auto", default="auto"
        Steps of the first stage. "auto" minimises the error bound.
    p : float, default=1.0
        Length of the later stages, at least 0.
    noise_schedule : str, tuple (str, dict), array of shape (max_iter,) or "auto", default="auto"
        "auto" is "optimal", which minimises the error bound, with at most 100 times the noise of
        the least noisy step. "uniform" is DP-MASG.
    {Parameters}

    References
    ----------
    {References}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPRidge(alpha=50, solver="multistage_nesterov", epsilon=3.0)
    >>> model.fit(X, y).n_iter_ >= 1
    True
    """

    name = "multistage_nesterov"
    paper = "Kuru, Birbil, Gurbuzbalaban, Yildirim (2022)"
    algorithms = (("DP-MASG", {"noise_schedule": "uniform"}), ("DP-MASG-opt", {}))
    purpose = "Median excess at epsilon 1: 1.3 times that of 'gd'."

    first_stage: Resolved[int] = AUTO
    p: float = 1.0

    def check_values(self, public: Public, problem: Problem) -> None:
        super().check_values(public, problem)
        if not checks.is_auto(self.first_stage):
            checks.count(first_stage=self.first_stage)
        is_valid = is_real(self.p) and 0 <= self.p < math.inf
        require("p", self.p, "be a number, at least 0", is_valid)

    def _choose_steps(self, public: Public, problem: Problem) -> None:
        if checks.is_auto(self.first_stage):
            n_steps = None if checks.is_auto(self.max_iter) else self.max_iter
            # The candidates are the same whether or not the number of steps is given.
            most, facts = max(MAX_STEPS, n_steps or 1), self._facts(public, problem)

            def reached(first: int) -> float:
                self.first_stage = int(first)
                bounds = self._bounds(facts, most)
                return float(bounds.min() if n_steps is None else bounds[n_steps - 1])

            self.first_stage = int(min(np.geomspace(1, most, 25).round(), key=reached))
        super()._choose_steps(public, problem)

    @property
    def _stages(self) -> tuple[int, float]:
        return self.first_stage, self.p

    def _sizes(self, problem: Problem) -> Array:
        stage = stages_of_steps(self.max_iter, self._kappa(problem), *self._stages)
        return np.asarray(super()._sizes(problem) * sizes_of_stages(stage))
