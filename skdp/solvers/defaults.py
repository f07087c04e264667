"""Compute default hyperparameters, the values of "auto", only from public facts.

**Gradient descent.** Write d for the number of columns with the intercept, K for the outputs, and R
for the expected norm of a row: sqrt(d), or the declared bound if that is smaller. The budget enters
through the signal-to-noise ratio of the whole budget spent on one gradient,

    a = mu n / (d sqrt(K)),

where mu is the Gaussian-DP parameter of (epsilon, delta), halved for replace-one. Then

1. the clipping norm grows with the budget, ``C = c a**(1/3) R``, so that its bias vanishes while
   its noise stays in proportion. A declared ``target_bound`` B multiplies it by B/4, and it never
   exceeds the largest possible gradient.
2. the distance travelled, steps times step size, is ``S = s min(a, a**(3/4))``, times a where that
   is below 1 and residuals have no bound: noise alone carries the predictions no further than about
   ``c s min(a**(1/3), a**(1/12))``, however many steps there are, so that a small budget gives a
   cautious model and not a wild one.
3. the number of steps T, from 40 to 500, or from 100 without noise, keeps the step size stable for
   the most correlated columns, whose curvature is h d with h the curvature of the loss, or h times
   the squared bound on a row where residuals have no bound. The momentum is 0.9 from 100 steps on.
   With fewer it builds up over about a tenth of them: the longest stable step is in proportion to
   their number.
4. noise is uniform, and the mean of the last half of the iterates is returned.

**Laplace noise.** The rules stay, with clipping in L1 norm. A plan of T steps with delta = 0 costs
the *sum* of the steps' epsilons. The averaged noise of T steps equals that of one Gaussian release
with

    mu = max(epsilon / sqrt(T), mu(epsilon, delta)) / sqrt(2 d).

The sqrt(d) is due to the L1 norm (a row with d entries of unit size has L1 norm d and L2 norm
sqrt(d)), the sqrt(2) to the tails of the Laplace distribution, and the sqrt(T) to epsilons that add
up instead of their squares. With delta > 0 a price also adds up squares here. So with delta = 0
there are few steps, ``3 sqrt(a)`` with a the signal-to-noise ratio at T = 1, from 1 (8 where
residuals have no bound and clipping makes the way long) to 60. The momentum is ``beta = 1 - 5/T``,
at least 0.5, which needs fewer steps to build up. Step sizes are at most the limit for beta, ``2 (1
+ beta) / (1 - beta)`` over the curvature, or, where residuals are bounded and cannot diverge, the
geometric mean of that and of the largest step that momentum 0.9 allows.

**Gram matrices.** The bounds to which rows are shrunk grow with powers of a, so that their bias
vanishes while noise stays in proportion.

The constants were chosen on a handful of public data sets. ``python -m benchmarks utility``
measures the accuracy of the defaults. Half and twice of each constant have not been measured.
"""

import math
from dataclasses import replace

import numpy as np

from skdp._numbers import Array
from skdp._oracle import Oracle, Public, smoothness
from skdp._oracle.public import LARGEST_PLANNED_EPSILON, LONG_ROW, TARGET_RANGE
from skdp.objective import Problem
from skdp.solvers.base import Settings
from skdp.steps import LocalSizes

# Polyak's momentum beta in gradient descent with Gaussian noise. Less over few steps.
MOMENTUM = 0.9
# Step size times curvature up to which heavy ball with that momentum is stable.
STABLE = 38
# Largest step size times curvature. A squared loss stays below STABLE for the longest rows that the
# bound allows, uncentred columns included. A loss with bounded residuals cannot diverge. Its step
# size is for rows of the expected norm, unless the constant feature alone is longer.
BOUNDED_ROW_STEP, EXPECTED_ROW_STEP = 36.0, 20.0
# In place of clipping norms, in units of R, and of other bounds, for a fit without noise.
UNCLIPPED = 1e12
UNBOUNDED = 1e30
# Fewest steps of gradient descent with Gaussian noise, and fewest with that momentum.
FEWEST_STEPS, MOMENTUM_STEPS = 40, 100
# Rounding error of a ratio, as a fraction of it.
ROUNDING = 1e-12
# Largest number of columns of a Gram matrix. Its noise and its eigenvectors cost too much beyond.
GRAM_COLUMNS = 2000
# Signal-to-noise ratio from which the bounds of solvers with a Gram matrix grow.
GROWTH_START = 50.0


# ------------------------------------------------------------------ sizes of rows and targets


def expected_row_norm(public: Public) -> float:
    """Norm of a row of unit columns, or the declared bound if that is less, with the constant."""
    norm = math.sqrt(public.n_features)
    if public.data_norm is not None:
        norm = min(norm, public.data_norm)
    return math.hypot(norm, public.intercept_size * public.has_intercept)


def target_unit(public: Public) -> float:
    """Return the expected size of the targets: 1, or a quarter of their declared bound."""
    return 1.0 if public.target_bound is None else public.target_bound / TARGET_RANGE


def loss_curvature(public: Public, problem: Problem) -> float:
    """Bound on the curvature of the mean loss, ``curvature * R**2`` with R the bound on rows.

    Without a bound on rows, where there is no noise either, it is a guess: rows are assumed to have
    at most twice the norm of rows of unit columns. Weights, which change the curvature, are
    ignored.
    """
    bound = smoothness(public, problem)
    if bound is None:
        constant = (public.intercept_size * public.has_intercept) ** 2
        bound = problem.loss.curvature * (LONG_ROW**2 * public.n_parameters + constant)
    return bound


def column_curvature(public: Public, problem: Problem) -> float:
    """Curvature of the mean loss along one column of unit size, or of rows of the declared norm."""
    square = 1.0
    if public.data_norm is not None:
        square = min(1.0, public.data_norm**2 / public.n_features)
    return problem.loss.curvature * square


# ------------------------------------------------------------------ gradient descent


def _constants(public: Public, problem: Problem) -> tuple[float, float]:
    """Constants c of the clipping norm and s of the distance."""
    n_outputs = public.n_outputs
    if not problem.loss.separable:
        return 0.2, 9.0 * math.sqrt(n_outputs)
    if problem.loss.targets == "label":  # log odds are far from 0 where classes are apart
        return 0.2, 7.0
    # Where the link is a logarithm, a residual that is cut makes the mean too small.
    return 0.45 if problem.loss.link == "log" else 0.3, 1.75 * math.sqrt(n_outputs)


def relative_clip(public: Public, problem: Problem, ratio: float | None = None) -> float:
    """Return the clipping norm of gradients, in units of the expected norm of a row.

    ``ratio`` is the signal-to-noise ratio, that of the fit unless it is given.
    """
    ratio = public.signal_to_noise if ratio is None else ratio
    return float(_constants(public, problem)[0] * ratio ** (1 / 3) * target_unit(public))


def descent_defaults(
    public: Public,
    problem: Problem,
    max_iter: int | None = None,
    learning_rate: float | None = None,
    mu: float | None = None,
    beta: float | None = None,
) -> Settings:
    """Hyperparameters of gradient descent for a problem of this shape and budget.

    If the user has set the number of steps or their size, the other one follows, so that the
    distance travelled stays the same. ``mu`` is that of the budget, unless it is given. With less
    momentum than the default, ``beta``, steps are shorter.
    """
    n_columns, n_outputs = public.shape
    _, travelling = _constants(public, problem)
    row_norm = math.sqrt(n_columns)
    if public.data_norm is not None:
        row_norm = min(row_norm, public.data_norm)
    # 0. Signal to noise. A fit without noise is treated as a very large budget.
    mu = public.gradient_mu if mu is None else mu / public.sensitivity_factor
    # Where means of groups are clipped, both they and the noise are shorter.
    row_norm_of_mean = row_norm * public.mean_length
    mu /= public.mean_length
    ratio = mu * public.n_rows / (n_columns * math.sqrt(n_outputs))
    # 1. The clipping norm, in the unit of the targets. At most the largest possible gradient.
    if not public.is_noisy:
        clip_norm = UNCLIPPED * row_norm
    else:
        # It grows as noise falls, to let long gradients in. Averaging has shortened those already.
        clip_norm = row_norm_of_mean * relative_clip(public, problem, ratio * public.mean_length)
        if problem.loss.largest_residual is not None and public.row_norm is not None:
            clip_norm = min(clip_norm, problem.loss.largest_residual * public.row_norm)
    # 2. and 3. The distance, the steps, and the step size that follows. In units of 1 / R**2.
    travel = travelling * min(ratio, ratio**0.75)
    if problem.loss.residual_bound is None:
        travel *= min(1.0, ratio)
    longest, unit = _longest_step(public, problem, row_norm), n_columns / row_norm**2
    reach = 1.0 if beta is None else min(1.0, stable_step(beta) / STABLE)
    if max_iter is None:
        step = reach * longest
        if learning_rate is not None:
            step = max(learning_rate / unit, math.ulp(0.0))
        elif beta is None:
            step = min(step, math.sqrt(travel * longest / MOMENTUM_STEPS))
        build_up = MOMENTUM_STEPS * (min(1.0, step / longest) if beta is None else reach)
        fewest = FEWEST_STEPS if public.is_noisy else MOMENTUM_STEPS
        max_iter = count_within(max(travel / step, build_up), (fewest, 500))
    if beta is None:  # stable up to a step that is longer, the more steps there are
        reach = min(max(max_iter, FEWEST_STEPS) / MOMENTUM_STEPS, 1.0)
        beta = (reach * STABLE - 2) / (reach * STABLE + 2)
    largest = reach * longest
    return {
        "max_iter": max_iter,
        "learning_rate": min(travel / max_iter, largest) * unit,
        "momentum": beta,
        "noise_schedule": "uniform",
        "clip_norm": clip_norm,
        "averaging": "tail",
    }


def stable_step(beta: float) -> float:
    """Return the step size times curvature up to which the heavy ball is stable."""
    return 2 * (1 + beta) / (1 - beta)


def _longest_step(public: Public, problem: Problem, row_norm: float) -> float:
    """Return the longest stable step of gradient descent with momentum, in units of 1 / R**2."""
    curvature, n_columns = problem.loss.typical_curvature, public.n_parameters
    if problem.loss.residual_bound is None and public.row_norm is not None:
        return BOUNDED_ROW_STEP / (curvature * public.row_norm**2) * row_norm**2 / n_columns
    constant = public.intercept_size**2 * public.has_intercept
    inverse = max(n_columns / EXPECTED_ROW_STEP, constant / BOUNDED_ROW_STEP)
    largest = 1 / (curvature * inverse)
    if public.data_norm is not None:
        largest *= min(1.0, n_columns / public.data_norm**2)
    return largest


def count_within(wanted: float, limits: tuple[int, int]) -> int:
    """Return the least integer of at least ``wanted``, up to rounding, within limits."""
    fewest, most = limits
    # A step size that follows from a number of steps gives back that number, and not one more.
    return min(max(math.ceil(min(wanted, most) * (1 - ROUNDING)), fewest), most)


def travelled_distance(public: Public, problem: Problem, factor: float = 1.0) -> float:
    """Return the distance that gradient descent travels, times ``factor``."""
    # With very many steps stability does not limit their size.
    return factor * 1e9 * float(descent_defaults(public, problem, 10**9)["learning_rate"])


def slower_for_weights(public: Public, problem: Problem, n_steps: int) -> float:
    """Return the factor on the sizes of planned steps, once the mean weight is known.

    The signal is that of as many records as their total weight, and so is the distance to travel.
    """
    if public.mean_weight == 1:
        return 1.0
    lighter = replace(public, n_rows=math.ceil(public.total_weight))
    one, other = (
        float(descent_defaults(facts, problem, n_steps)["learning_rate"])
        for facts in (lighter, public)
    )
    return one / other


def local_sizes(oracle: Oracle, first: float) -> LocalSizes | None:
    """Return step sizes that follow the curvature, where there is no noise.

    With a log link the curvature is the mean, which may be many times the typical one. With weights
    it is as many times larger as they are heavy.
    """
    varies = oracle.problem.loss.link == "log" or oracle.public.has_weights
    return LocalSizes(first) if varies and not oracle.is_noisy else None


def longest_plain_step(public: Public, problem: Problem, limit: float) -> float:
    """Return the largest step size without momentum. ``limit`` is that size times the curvature."""
    # The size of a single step of gradient descent is limited by stability and not by the distance.
    values = descent_defaults(public, problem, 1, beta=MOMENTUM)
    return limit / STABLE * float(values["learning_rate"])


# ------------------------------------------------------------------ Laplace noise


def composition_kind(mechanism: str, public: Public) -> str:
    """Return the rule by which costs add up.

    Returns
    -------
    {"laplace", "gaussian"}
        "laplace" for pure Laplace noise, the epsilons of which add up, otherwise "gaussian", where
        squares of mu do.
    """
    return "laplace" if mechanism == "laplace" and public.is_pure else "gaussian"


def equivalent_mu(public: Public, n_steps: int) -> float:
    """Return the mu of one Gaussian release with the averaged noise of ``n_steps`` Laplace ones."""
    mu = min(public.laplace_budget, LARGEST_PLANNED_EPSILON) / math.sqrt(n_steps)
    if not public.is_pure:
        mu = max(mu, public.mu)
    return mu / math.sqrt(2 * public.n_parameters)


def laplace_descent_defaults(
    public: Public,
    problem: Problem,
    max_iter: int | None = None,
    learning_rate: float | None = None,
    beta: float | None = None,
) -> Settings:
    """Hyperparameters of gradient descent with Laplace noise for this shape and budget."""
    # Ratio of the L1 norm of a residual to its L2 norm, about. Probabilities minus an indicator
    # have L1 norm at most 2, L2 norm at most sqrt(2).
    factor = math.sqrt(public.n_outputs if problem.loss.separable else 2.0)
    bounded = problem.loss.residual_bound is not None
    pure = public.has_laplace_noise
    if max_iter is None and pure:
        noise_norm = public.n_parameters * math.sqrt(public.n_outputs)
        ratio = equivalent_mu(public, 1) / factor * public.n_rows / noise_norm
        max_iter = count_within(round(3.0 * math.sqrt(ratio)), (1 if bounded else 8, 60))
    n_steps = max_iter or MOMENTUM_STEPS
    if not pure:  # squares add up, and the number of steps matters where there are few
        n_steps = min(n_steps, MOMENTUM_STEPS)
    mu = equivalent_mu(public, n_steps) / factor
    usual = MOMENTUM if pure and beta is None else beta
    values = descent_defaults(public, problem, max_iter, learning_rate, mu, usual)
    values["clip_norm"] *= factor * math.sqrt(public.n_parameters)
    if pure and beta is None:
        beta = min(max(1 - 5 / (max_iter or 1), 0.5), MOMENTUM)
        shorter = stable_step(beta) / STABLE
        if bounded:
            shorter = math.sqrt(shorter)
        longest = shorter * descent_defaults(public, problem, 1, None, 1e12, usual)["learning_rate"]
        values["momentum"] = beta
        values["learning_rate"] = min(values["learning_rate"], longest)
    return values


# ------------------------------------------------------------------ Gram matrices


def growth(public: Public, power: float, start: float = GROWTH_START) -> float:
    """Return ``(a / start)**power``, at least 1, with a the signal-to-noise ratio."""
    return float(max(1.0, public.signal_to_noise / start) ** power)


def gram_row_norm(public: Public, factor: float, power: float = 0.25) -> float:
    """Bound to which rows are shrunk before their Gram matrix is computed."""
    if not public.is_noisy:
        return UNBOUNDED
    bound = factor * expected_row_norm(public) * growth(public, power)
    return bound if public.row_norm is None else min(bound, public.row_norm)


def penalty_hessian(problem: Problem, public: Public) -> Array:
    """Hessian of a smooth penalty times the number of rows, as a matrix over the parameter."""
    diagonal = np.full(public.n_parameters, problem.strong_convexity * public.total_weight)
    if public.has_intercept:
        diagonal[-1] = 0.0
    return np.diag(diagonal)


def typical_curvature(public: Public, problem: Problem) -> float:
    """Return the curvature of the loss at the start, or more if steps were unstable."""
    largest = problem.loss.typical_curvature
    if problem.loss.separable:
        return largest
    n_outputs = public.n_outputs
    # Steps with momentum beta are stable up to 2 (1 + beta) over the largest curvature.
    return max(2 * (n_outputs - 1) / n_outputs**2, largest / 2.9)
