"""Turn noisy answers into steps: step sizes, clipping norms, noise of steps, momentum, averages.

Everything here is a pure function or a small state machine without access to rows or budgets.

If the expected error at the end is an optimisation term plus ``sum_t q_t Var_t``, with q_t the
*influence* of step t, then the noise that minimises it for a given budget is

* Gaussian, ``sum_t sigma_t**-2 = R``: ``sigma_t`` proportional to ``q_t**(-1/4)`` (Hong, Wang, Zhou
  2022, Lemma 4.4).
* Laplace, ``sum_t 1/b_t = epsilon``: ``b_t`` proportional to ``q_t**(-1/3)``
  (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, Prop. 4.2).

Laplace noise on samples has amplified epsilons, which add up (the same paper, eq. 30).

All functions use the logarithm of the influence, so that long runs neither overflow nor underflow.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, Self, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from skdp._numbers import (
    LARGEST_CLIP_NORM,
    LEAST_CLIP_NORM,
    Array,
    is_real,
    require,
    shown,
)

# A name, or a pair of a name and its arguments.
Named = str | tuple[str, dict[str, object]]
T = TypeVar("T")


def is_named(given: object) -> TypeGuard[Named]:
    """Return whether this is a name, or a pair of a name and a dict of arguments."""
    if isinstance(given, tuple | list) and len(given) == 2:
        return isinstance(given[0], str) and isinstance(given[1], dict)
    return isinstance(given, str)


def name_of(given: object) -> str | None:
    """Return the name that was given, with or without arguments. None if there is none."""
    if not is_named(given):
        return None
    return given if isinstance(given, str) else given[0]


def named(
    parameter: str, kinds: Mapping[str, Callable[..., T]], given: object, others: str
) -> Callable[..., T]:
    """Return the function of a name, or of a name and arguments.

    Parameters
    ----------
    parameter : str
        Name of the hyperparameter, for messages.
    kinds : dict of str to callable
        Functions by name. Arguments have defaults.
    given : str, tuple (str, dict) or object
        ``"polynomial"``, or ``("polynomial", {"a": 50.0})``.
    others : str
        Values of other types that are allowed, for messages.

    Returns
    -------
    callable

    Raises
    ------
    ValueError
        If the name is unknown, or has no such argument.

    Examples
    --------
    >>> from skdp.steps import STEP_SIZES, named
    >>> named("learning_rate", STEP_SIZES, ("polynomial", {"a": 0.0}), "a number")(4).tolist()[::3]
    [1.0, 0.5]
    """
    name = name_of(given)
    if name is None or name not in kinds:
        known = ", ".join(repr(word) for word in sorted(kinds))
        raise ValueError(
            f"{parameter} must be {others} or one of {known}, with arguments as in "
            f"({min(kinds)!r}, {{...}}), got {shown(given)}."
        )
    arguments = given[1] if isinstance(given, tuple | list) else {}
    parameters = inspect.signature(kinds[name]).parameters.values()
    allowed = [one.name for one in parameters if one.default is not one.empty]
    unknown = sorted(set(arguments) - set(allowed))
    if unknown:
        raise ValueError(
            f"{parameter}: {name!r} takes {', '.join(allowed) or 'no arguments'}, got "
            f"{', '.join(map(shown, unknown))}."
        )
    for argument, value in arguments.items():
        require(f"{parameter}: {argument}", value, "be a number", is_real(value))
    return partial(kinds[name], **arguments)


# ---------------------------------------------------------------- step sizes and clipping norms


def polynomial(n_steps: int, initial: float = 1.0, a: float = 20.0, c: float = 1.0) -> Array:
    """Step t has size ``initial / sqrt(a + c t)``: after about a/c steps it falls."""
    require("learning_rate: a", a, "not be negative", a >= 0)
    require("learning_rate: c", c, "be positive", c > 0)
    return np.asarray(initial / np.sqrt(a + c * np.arange(1, n_steps + 1)))


def square_root_decay(n_steps: int, initial: float = 0.1, final: float = 1e-10) -> Array:
    """Step t has size ``initial - k sqrt(t)``, with k such that the last size is ``final``."""
    fall = np.sqrt(np.arange(1, n_steps + 1) / n_steps)
    # A weighted mean of both sizes, so that the last size is exactly ``final``.
    return np.asarray(initial * (1 - fall) + final * fall)


STEP_SIZES: dict[str, Callable[..., Array]] = {
    "polynomial": polynomial,
    "square_root_decay": square_root_decay,
}
# What solvers accept as ``learning_rate``, beside "auto".
StepSize = float | Named


def step_sizes(given: StepSize, n_steps: int) -> Array:
    """Turn a number, or the name of a rule, into an array of ``n_steps`` positive step sizes.

    Returns
    -------
    array of shape (n_steps,)

    Raises
    ------
    ValueError
        If it is neither, or a size is not positive and finite.
    """
    if is_real(given):
        sizes = np.full(n_steps, float(given))
    else:
        sizes = named("learning_rate", STEP_SIZES, given, "'auto', a positive number")(n_steps)
    if not ((sizes > 0) & np.isfinite(sizes)).all():
        raise ValueError(f"learning_rate must give positive, finite steps, got {shown(given)}.")
    return sizes


def constant_size(given: StepSize) -> float:
    """Return the step size of a method whose steps are equally long.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If it is no positive, finite number.
    """
    if is_named(given):
        raise ValueError(
            "learning_rate must be one step size throughout in this solver, got "
            f"{shown(given)}. Solver 'gd' takes schedules. Nothing was released."
        )
    return float(step_sizes(given, 1)[0])


def constant_clip(given: float) -> float:
    """Return a clipping norm that is valid.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If it is no number, or not positive, or too small or large for float64 arithmetic.
    """
    allowed = f"be 'auto' or positive and finite, from {LEAST_CLIP_NORM:g} to {LARGEST_CLIP_NORM:g}"
    is_valid = is_real(given) and LEAST_CLIP_NORM <= given <= LARGEST_CLIP_NORM
    require("clip_norm", given, allowed, is_valid)
    return float(given)


class LocalSizes:
    """Step sizes of one run that adapt to the curvature along its path.

    Steps of proximal gradient descent with these converge for any convex loss whose curvature is
    bounded on bounded sets, even if the bound is unknown (Malitsky, Mishchenko 2024). They are
    for exact gradients: noise would pass for curvature.

    Parameters
    ----------
    first : float
        Size of the first step, positive.

    References
    ----------
    Y. Malitsky, K. Mishchenko: Adaptive Proximal Gradient Method for Convex Optimization. NeurIPS
    2024.
    """

    def __init__(self, first: float) -> None:
        self._size, self._growth = first, 1 / 3
        self._before: tuple[Array, Array] | None = None

    def next(self, point: Array, gradient: Array) -> float:
        """Return the size of the step from a point, given the gradient there.

        Returns
        -------
        float
        """
        if self._before is not None:
            moved = float(np.linalg.norm(point - self._before[0]))
            bent = float(np.linalg.norm(gradient - self._before[1]))
            if moved > 0:  # otherwise there is no difference to estimate the curvature from
                size = math.sqrt(2 / 3 + self._growth) * self._size
                # A larger ratio has no square in float64.
                ratio = min(self._size * bent / moved, 1e100)
                if 2 * ratio**2 > 1:
                    size = min(size, self._size / math.sqrt(2 * ratio**2 - 1))
                self._size, self._growth = size, size / self._size
        self._before = point, gradient
        return self._size


# ---------------------------------------------------------------- noise

# A step gets at least this share of what the quietest step spends. This costs a relative 1e-16 of
# the budget per step, and keeps the noise finite where the influence vanishes.
LEAST_SHARE = 1e-16

# The power p such that a step with noise s costs in proportion to s**-p, by rule of composition:
# squares of mu add up for Gaussian noise, epsilons for Laplace noise.
# The variance is proportional to s**2 in both, so optimal noise goes as influence**(-1 / (2 + p)).
COST_POWERS = {"gaussian": 2, "laplace": 1}


def influence_to_noise(log_influence: ArrayLike, composition: str = "gaussian") -> Array:
    """Return the relative noise that minimises ``sum_t q_t s_t**2``, with geometric mean 1.

    Parameters
    ----------
    log_influence : array of shape (n_steps,)
        log q_t, up to a constant, finite.
    composition : {"gaussian", "laplace"}
        Rule by which the costs of steps add up, see `COST_POWERS`.
    """
    logs, power = np.asarray(log_influence, dtype=np.float64), COST_POWERS[composition]
    exponents = -1 / (2 + power) * logs
    exponents = np.minimum(exponents, exponents.min() - math.log(LEAST_SHARE) / power)
    return np.asarray(np.exp(exponents - exponents.mean()), dtype=np.float64)


def powers(gamma: float, n_steps: int) -> Array:
    """Return ``log gamma ** (T - t)`` for the steps 1..T."""
    steps_left = n_steps - np.arange(1, n_steps + 1)
    return np.asarray(math.log(gamma) * steps_left, dtype=np.float64)


def uniform(sizes: Array) -> Array:
    """Every step is equally noisy: ``q_t = 1``."""
    return np.zeros(len(sizes))


def exponential(sizes: Array, gamma: float = 0.95) -> Array:
    """Noise that falls with t: ``q_t = gamma ** (T - t)``, for strongly convex problems.

    The later steps contract the noise of the earlier ones (Hong, Wang, Zhou 2022, Thm 4.5). gamma
    is the contraction of one step in (0, 1], ``1 - 1/kappa`` for gradient descent.
    """
    require("noise_schedule: gamma", gamma, "lie in (0, 1]", 0 < gamma <= 1)
    return powers(gamma, len(sizes))


def momentum(sizes: Array, gamma: float = 0.95, beta: float = 0.9) -> Array:
    """Noise for gradient descent with bias-corrected momentum beta in [0, 1).

    ``q_t = sum_{s >= t} gamma**(T-s) ((1-beta) / (1-beta**s))**2 beta**(2(s-t))``: the noise of
    step t enters the averages of all later steps (Hong, Wang, Zhou 2022, U_3 of Thm 4.6). gamma is
    the contraction of one step, ``1 - eta0/kappa`` for a step size of ``eta0/(2M)``.
    """
    require("noise_schedule: beta", beta, "lie in [0, 1)", 0 <= beta < 1)
    left = exponential(sizes, gamma)
    if beta == 0:
        return left
    decay = np.arange(1, len(sizes) + 1) * math.log(beta)
    correction = math.log1p(-beta) - np.log(-np.expm1(decay))
    terms = left + 2 * correction + 2 * decay
    tails = np.logaddexp.accumulate(terms[::-1])[::-1]
    return np.asarray(tails - 2 * decay, dtype=np.float64)


def step_matched(sizes: Array) -> Array:
    """Noise in inverse proportion to the square root of the step size: ``q_t = eta_t**2``.

    With falling steps the noise rises. This is optimal where later steps do not contract the noise,
    as in a bound on the mean squared gradient of a problem that is not strongly convex (Wu, Wang,
    Cristali, Gu, Willett 2021, ``alpha_t**2 = b_t``).
    """
    return np.asarray(2 * np.log(sizes))


# Logarithms of the influence of steps of these sizes, up to a constant.
NOISE_SCHEDULES: dict[str, Callable[..., Array]] = {
    "exponential": exponential,
    "momentum": momentum,
    "step_matched": step_matched,
    "uniform": uniform,
}
# What solvers accept as ``noise_schedule``.
RelativeNoise = Named | ArrayLike


def relative_noise(schedule: RelativeNoise, sizes: Array, composition: str = "gaussian") -> Array:
    """Turn the name of a rule, or an array of relative noise, into a positive number per step.

    Parameters
    ----------
    schedule : str, tuple (str, dict) or array of shape (n_steps,)
    sizes : array of shape (n_steps,)
        Step sizes of the solver, positive and finite.
    composition : {"gaussian", "laplace"}, default="gaussian"
        Rule by which costs add up: squares of mu for "gaussian", epsilons for "laplace".

    Returns
    -------
    array of shape (n_steps,)

    Raises
    ------
    ValueError
        If the name is unknown, or the numbers are not ``n_steps`` positive ones of similar size.
    """
    if is_named(schedule):
        others = "'auto', an array of relative noise"
        rule = named("noise_schedule", NOISE_SCHEDULES, schedule, others)
        return influence_to_noise(rule(sizes), composition)
    try:
        noise = np.asarray(schedule, dtype=np.float64)
    except (TypeError, ValueError):
        noise = np.array(np.nan)
    are_valid = noise.shape == sizes.shape and ((noise > 0) & np.isfinite(noise)).all()
    allowed = f"be a rule or {len(sizes)} positive, finite numbers, one per step"
    require("noise_schedule", schedule, allowed, bool(are_valid))
    # Rules keep to LEAST_SHARE. What is much noisier cannot be drawn, after the charge.
    most = LEAST_SHARE ** (-1 / COST_POWERS[composition]) * (1 + 1e-9)
    if math.log(noise.max()) - math.log(noise.min()) > math.log(most):
        raise ValueError(
            f"noise_schedule must not vary by more than a factor of {most:.0e}, got numbers from "
            f"{noise.min():g} to {noise.max():g}. Nothing was released."
        )
    return noise


# ---------------------------------------------------------------- momentum and averages

AVERAGES = ("last", "tail", "random")
MOMENTA = ("heavy_ball", "averaged")

# What solvers accept as ``momentum``, beside "auto".
AnyMomentum = float | Named


class Momentum(NamedTuple):
    """Exponential average of gradients, ``v = beta v + (1 - beta) g`` from ``v = 0`` on.

    * "heavy_ball": Polyak's momentum with steps of unit gain. This is
      ``w_next = w - a g + beta (w - w_previous)`` with ``a = (1 - beta)`` times the step size.
      Early steps are short. The iteration is stable for step sizes up to
      ``2 (1 + beta) / (1 - beta)`` over the curvature.
    * "averaged": with bias correction, ``v / (1 - beta**t)``. The step keeps the size of a plain
      gradient step (Hong, Wang, Zhou 2022, sec. 4.2).

    Attributes
    ----------
    kind : {"heavy_ball", "averaged"}
    beta : float, default=0.9
        Weight of the past, in [0, 1). 0 is no momentum.
    """

    kind: str
    beta: float = 0.9

    @classmethod
    def of(cls, given: AnyMomentum) -> Self:
        """Return the momentum that a number (the heavy ball's beta) or a name stands for.

        Raises
        ------
        ValueError
            If it is neither, or beta does not lie in [0, 1).

        Examples
        --------
        >>> from skdp.steps import Momentum
        >>> Momentum.of(0.5).kind, Momentum.of(("averaged", {"beta": 0.8})).beta
        ('heavy_ball', 0.8)
        """
        kinds = {kind: partial(cls, kind) for kind in MOMENTA}
        if is_real(given):
            rule = cls("heavy_ball", float(given))
        else:
            rule = named("momentum", kinds, given, "'auto', a number in [0, 1)")()
        require("momentum", rule.beta, "be 'auto' or a number in [0, 1)", 0 <= rule.beta < 1)
        return rule

    def start(self) -> Callable[[Array], Array]:
        """Return a function for one run that maps each gradient to the direction of its step.

        Returns
        -------
        callable
        """
        beta, decay = self.beta, 1.0
        average: Array | float = 0.0

        def direction(gradient: Array) -> Array:
            nonlocal average, decay
            average = beta * average + (1 - beta) * gradient
            decay *= beta
            return np.asarray(average / (1 - decay) if self.kind == "averaged" else average)

        return direction


class IterateAverage:
    """Collects a start and the iterates after it. Returns the last, a random one, or a mean.

    Parameters
    ----------
    kind : {"last", "tail", "random"}
        "tail" is the mean of the last ``fraction`` of the iterates. "random" is a uniformly random
        one of the points at which gradients are computed, whose squared gradient theory bounds if
        the problem is not convex.
    n_steps : int
        Number of iterates after the start, which is added first.
    rng : numpy.random.Generator
        Used by "random" only.
    fraction : float, default=0.5
        Fraction of the iterates in the tail, in (0, 1].
    """

    def __init__(
        self, kind: str, n_steps: int, rng: np.random.Generator, fraction: float = 0.5
    ) -> None:
        kept = {
            "last": range(n_steps, n_steps + 1),
            "tail": range(n_steps + 1 - max(1, math.ceil(fraction * n_steps)), n_steps + 1),
        }
        if kind == "random":
            chosen = int(rng.integers(n_steps))
            kept["random"] = range(chosen, chosen + 1)
        self._kept = kept[kind]
        self._step = 0
        self._mean: Array | None = None
        self._count = 0

    def add(self, iterate: Array) -> None:
        """Add the next iterate."""
        if self._step in self._kept:
            self._count += 1
            if self._mean is None:
                self._mean = iterate.copy()
            else:
                self._mean += (iterate - self._mean) / self._count
        self._step += 1

    def result(self) -> Array:
        """Return the iterate, or the mean of iterates, that ``kind`` selects.

        Returns
        -------
        array of an iterate's shape

        Raises
        ------
        RuntimeError
            If no iterate that counts has been added yet.
        """
        if self._mean is None:
            raise RuntimeError("IterateAverage: none of the selected iterates has been added yet.")
        return self._mean
