"""Define step sizes and clipping norms, fixed or by noisy answers, and make them by name."""

import inspect
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeGuard, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from skdp._numbers import (
    LARGEST_CLIP_NORM,
    LEAST_CLIP_NORM,
    Array,
    is_real,
    require,
    require_numbers,
    shown,
)

# A name, or a pair of a name and its arguments.
Named = str | tuple[str, dict[str, object]]
Rule = TypeVar("Rule")


def is_named(given: object) -> TypeGuard[Named]:
    """Return whether this is a name, or a pair of a name and a dict of arguments."""
    if isinstance(given, tuple | list) and len(given) == 2:
        return isinstance(given[0], str) and isinstance(given[1], dict)
    return isinstance(given, str)


def named(
    parameter: str, kinds: Mapping[str, Callable[..., Rule]], given: Rule, others: str
) -> Rule:
    """Make the object of a name, or of a name and arguments. Anything else is returned as it is.

    Parameters
    ----------
    parameter : str
        Name of the hyperparameter, for messages.
    kinds : dict of str to callable
        Classes by name.
    given : str, tuple (str, dict) or object
        ``"polynomial"``, or ``("polynomial", {"a": 50.0})``.
    others : str
        Values of other types that are allowed, for messages.

    Returns
    -------
    object

    Raises
    ------
    ValueError
        If the name is unknown, or has no such argument.

    Examples
    --------
    >>> from skdp.steps import MOMENTA, named
    >>> named("momentum", MOMENTA, ("averaged", {"beta": 0.8}), "a number")
    AveragedGradient(beta=0.8)
    """
    if not is_named(given):
        return given
    name, arguments = (given, {}) if isinstance(given, str) else given
    if name not in kinds:
        known = ", ".join(repr(word) for word in sorted(kinds))
        raise ValueError(
            f"{parameter} must be {others} or one of {known}, with arguments as in "
            f"({min(kinds)!r}, {{...}}), got {shown(name)}. Nothing was released."
        )
    allowed = inspect.signature(kinds[name]).parameters if arguments else {}
    unknown = sorted(set(arguments) - set(allowed))
    if unknown:
        raise ValueError(
            f"{parameter}: {name!r} takes {', '.join(allowed) or 'no arguments'}, got "
            f"{', '.join(map(shown, unknown))}. Nothing was released."
        )
    return kinds[name](**arguments)


class StepSchedule(BaseEstimator):
    """Base of step-size schedules. An object, so that a grid search can reach its parameters.

    A schedule is a function only of the step number and the number of steps.
    """

    @abstractmethod
    def sizes(self, n_steps: int) -> Array:
        """Return the sizes of steps 1..n_steps.

        Returns
        -------
        array of shape (n_steps,)
        """


@dataclass(eq=False, repr=False)
class PolynomialStep(StepSchedule):
    """Step t has size ``initial / sqrt(a + c t)``.

    Parameters
    ----------
    initial : float, default=1.0
        Positive.
    a : float, default=20.0
        Not negative. ``a/c`` is about the number of steps before the size falls.
    c : float, default=1.0
        Positive.
    """

    initial: float = 1.0
    a: float = 20.0
    c: float = 1.0

    def sizes(self, n_steps: int) -> Array:
        require_numbers(self, ["a"], "not be negative", lambda one: one >= 0)
        require_numbers(self, ["c"], "be positive", lambda one: one > 0)
        return np.asarray(self.initial / np.sqrt(self.a + self.c * np.arange(1, n_steps + 1)))


@dataclass(eq=False, repr=False)
class SquareRootDecayStep(StepSchedule):
    """Step t has size ``initial - k sqrt(t)``, with k such that the last size is ``final``.

    Parameters
    ----------
    initial : float, default=0.1
        Positive.
    final : float, default=1e-10
        Positive, at most ``initial``.
    """

    initial: float = 0.1
    final: float = 1e-10

    def sizes(self, n_steps: int) -> Array:
        fall = np.sqrt(np.arange(1, n_steps + 1) / n_steps)
        # A weighted mean of both sizes, so that the last size is exactly ``final``.
        return np.asarray(self.initial * (1 - fall) + self.final * fall)


@dataclass(eq=False, repr=False)
class AdaptiveStep(BaseEstimator):
    """Step t has size ``initial / b_t``, where b grows with the norms of the noisy gradients.

    ``b_t**2 = b_{t-1}**2 + max(||g_t||**2 - E ||noise||**2, least)``. The sizes depend on answers
    that were released before, and cost nothing. The noise of the steps has to be fixed before the
    run: it is matched to the guess ``b_t**2 = first**2 + growth t`` (Wu, Wang, Cristali, Gu,
    Willett 2021, sec. 5.2, where b is computed from gradients without noise, which is not private).

    Parameters
    ----------
    initial : float, default=1.0
        Positive.
    first : float, default=1.0
        b_0, positive.
    least : float, default=1e-3
        Least growth of ``b**2`` in a step, positive.
    growth : float, default=1.0
        Guess of the growth of ``b**2`` in a step, not negative.
    """

    initial: float = 1.0
    first: float = 1.0
    least: float = 1e-3
    growth: float = 1.0

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        positive = ("initial", "first", "least")
        require_numbers(self, positive, "be positive", lambda one: 0 < one < math.inf)
        require_numbers(self, ["growth"], "not be negative", lambda one: 0 <= one < math.inf)

    def expected_sizes(self, n_steps: int) -> Array:
        """Sizes of the steps 1..n_steps if the guess ``growth`` were right.

        Returns
        -------
        array of shape (n_steps,)
        """
        self.check()
        return np.asarray(
            self.initial / np.sqrt(self.first**2 + self.growth * np.arange(1, n_steps + 1))
        )

    def start(self) -> Callable[[Array, float], float]:
        """Return the sizes of one run, each from a noisy gradient and the noise in an entry of it.

        The squares of large gradients may overflow over many steps. The size is 0 then.

        Returns
        -------
        callable
            From the gradient, and the standard deviation of its noise, to the size of the step.
        """
        squared = float(self.first) ** 2

        def size(gradient: Array, noise_std: float) -> float:
            nonlocal squared
            with np.errstate(over="ignore"):
                square = float(np.sum(gradient * gradient)) - gradient.size * noise_std**2
            squared += max(square, self.least)
            return float(self.initial / math.sqrt(squared))

        return size


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


STEP_SCHEDULES: dict[str, Callable[..., StepSchedule | AdaptiveStep]] = {
    "adaptive": AdaptiveStep,
    "polynomial": PolynomialStep,
    "square_root_decay": SquareRootDecayStep,
}


# What solvers accept as ``learning_rate``, beside "auto".
StepSize = float | Named | StepSchedule | AdaptiveStep


def step_schedule(given: StepSize) -> StepSize:
    """Return the schedule that ``learning_rate`` names. Numbers and schedules are returned as such.

    Returns
    -------
    float, str, StepSchedule or AdaptiveStep

    Raises
    ------
    ValueError
        If the name is unknown, or has no such argument.

    Examples
    --------
    >>> from skdp.steps import step_schedule
    >>> step_schedule(("polynomial", {"a": 50.0}))
    PolynomialStep(a=50.0)
    """
    others = "'auto', a positive number, a StepSchedule"
    return named("learning_rate", STEP_SCHEDULES, given, others)


def constant_size(schedule: StepSize) -> float:
    """Return the step size of a method whose steps are equally long.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If steps differ, or their size is not positive and finite.
    """
    first, second = step_sizes(schedule, 2)
    if first != second:
        raise ValueError(
            "learning_rate must be one step size throughout in this solver, got "
            f"{shown(schedule)}. Solver 'gd' takes schedules. Nothing was released."
        )
    return float(first)


def step_sizes(schedule: StepSize, n_steps: int) -> Array:
    """Turn a number, a name or a schedule into an array of ``n_steps`` positive step sizes.

    Returns
    -------
    array of shape (n_steps,)

    Raises
    ------
    ValueError
        If it is neither, or a size is not positive and finite.
    """
    schedule = step_schedule(schedule)
    if isinstance(schedule, StepSchedule):
        sizes = np.asarray(schedule.sizes(n_steps), dtype=np.float64)
    elif is_real(schedule):
        sizes = np.full(n_steps, float(schedule))
    elif isinstance(schedule, AdaptiveStep):
        raise ValueError(
            "learning_rate='adaptive' follows the gradients. Only solver 'adp_sgd' can do so. "
            "Other solvers take a number or a StepSchedule. Nothing was released."
        )
    else:
        raise ValueError(
            "learning_rate must be 'auto', a positive number, a StepSchedule or its name, got "
            f"{shown(schedule)}."
        )
    if sizes.shape != (n_steps,) or not ((sizes > 0) & np.isfinite(sizes)).all():
        raise ValueError(f"learning_rate must give positive, finite steps, got {shown(schedule)}.")
    return sizes


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
    allowed = f"be positive and finite, from {LEAST_CLIP_NORM:g} to {LARGEST_CLIP_NORM:g}"
    is_valid = is_real(given) and LEAST_CLIP_NORM <= given <= LARGEST_CLIP_NORM
    require("clip_norm", given, allowed, is_valid)
    return float(given)
