"""Noise schedules by name: how noisy each step is next to the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdp._numbers import is_real, shown
from skdp.steps.accelerated_noise import MultistageNoise, NesterovNoise
from skdp.steps.decay import PolynomialStep
from skdp.steps.influence import (
    Array,
    NoiseSchedule,
    check_rates,
    influence_to_noise,
    positive,
    powers,
)
from skdp.steps.schedules import StepSchedule, step_sizes


class UniformNoise(NoiseSchedule):
    """Every step is equally noisy: ``q_t = 1``."""

    def log_influence(self, n_steps: int) -> Array:
        return np.zeros(n_steps)


class ExponentialNoise(NoiseSchedule):
    """Noise falls with t: ``q_t = gamma ** (T - t)``, right for strongly convex problems.

    Early noise is contracted away by the later steps (Hong, Wang, Zhou 2022, Thm 4.5).

    Parameters
    ----------
    gamma : float, default=0.95
        Contraction of one step in (0, 1]; ``1 - 1/kappa`` for gradient descent.
    """

    def __init__(self, gamma: float = 0.95) -> None:
        self.gamma = gamma

    def log_influence(self, n_steps: int) -> Array:
        check_rates("ExponentialNoise", self.gamma, 0.0)
        return powers(self.gamma, n_steps)


class MomentumNoise(NoiseSchedule):
    """Noise for gradient descent with bias-corrected momentum.

    ``q_t = sum_{s >= t} gamma**(T-s) ((1-beta) / (1-beta**s))**2 beta**(2(s-t))``: noise of step t
    lives on in the averages of all later steps (Hong, Wang, Zhou 2022, U_3 of Thm 4.6).

    Parameters
    ----------
    gamma : float, default=0.95
        Contraction of one step in (0, 1]; ``1 - eta0/kappa`` for a step size of ``eta0/(2M)``.
    beta : float, default=0.9
        Momentum in [0, 1).
    """

    def __init__(self, gamma: float = 0.95, beta: float = 0.9) -> None:
        self.gamma = gamma
        self.beta = beta

    def log_influence(self, n_steps: int) -> Array:
        check_rates("MomentumNoise", self.gamma, self.beta)
        if self.beta == 0:
            return powers(self.gamma, n_steps)
        steps = np.arange(1, n_steps + 1)
        decay = steps * math.log(self.beta)
        correction = math.log1p(-self.beta) - np.log(-np.expm1(decay))
        terms = powers(self.gamma, n_steps) + 2 * correction + 2 * decay
        tails = np.logaddexp.accumulate(terms[::-1])[::-1]
        return np.asarray(tails - 2 * decay, dtype=np.float64)


def flattening_horizon(gamma: float, beta: float) -> float:
    """Return the number of steps up to which momentum flattens the influence, or inf.

    The greatest t with ``gamma**(t-1) >= (1-beta) / (1-beta**t)`` (Hong, Wang, Zhou 2022, Thm 4.7).
    The difference of the logarithms is concave in t and 0 at t = 1, so it changes sign once.
    """
    check_rates("flattening_horizon", gamma, beta)
    if gamma == 1:
        return math.inf

    def holds(t: int) -> bool:
        if beta == 0:
            return t == 1
        gain = math.log(-math.expm1(t * math.log(beta))) - math.log1p(-beta)
        return (t - 1) * math.log(gamma) + gain >= -1e-12

    low, high = 1, 2
    while holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


class TwoPhaseMomentumNoise(NoiseSchedule):
    """Noise for momentum in closed form: rising in short runs, falling in long ones.

    ``q_t = gamma**(T+t)`` if the run ends by `flattening_horizon`, else ``gamma**(T-t)``, up to
    constants (Hong, Wang, Zhou 2022, Thm 4.8). It bounds `MomentumNoise` from above.

    Parameters
    ----------
    gamma : float, default=0.95
        Contraction of one step in (0, 1].
    beta : float, default=0.9
        Momentum in [0, 1).
    """

    def __init__(self, gamma: float = 0.95, beta: float = 0.9) -> None:
        self.gamma = gamma
        self.beta = beta

    def log_influence(self, n_steps: int) -> Array:
        if n_steps <= flattening_horizon(self.gamma, self.beta):
            return powers(self.gamma, n_steps)[::-1].copy()
        return powers(self.gamma, n_steps)


class StepMatchedNoise(NoiseSchedule):
    """Noise in inverse proportion to the square root of the step size: ``q_t = eta_t**2``.

    With falling steps the noise rises. It is right where noise is never contracted away, as for
    a bound on the mean squared gradient of a problem that is not strongly convex (Wu, Wang,
    Cristali, Gu, Willett 2021, ``alpha_t**2 = b_t``).

    Parameters
    ----------
    steps : float, StepSchedule or None, default=None
        Step sizes. None takes those of the solver that it is used in; on its own it stands for
        ``PolynomialStep()``.
    """

    def __init__(self, steps: float | StepSchedule | None = None) -> None:
        self.steps = steps

    def log_influence(self, n_steps: int) -> Array:
        sizes = step_sizes(PolynomialStep() if self.steps is None else self.steps, n_steps)
        return np.asarray(2 * np.log(sizes), dtype=np.float64)


class CustomNoise(NoiseSchedule):
    """Influence weights of the user's own.

    Parameters
    ----------
    influence : array of shape (n_steps,), callable (t, n_steps) -> float, or float, default=1.0
        Positive weights q_t; only their ratios matter. One number stands for equal weights.
    logarithmic : bool, default=False
        Whether ``influence`` holds log q_t, as long runs may need it.
    """

    def __init__(
        self,
        influence: ArrayLike | Callable[[int, int], float] = 1.0,
        logarithmic: bool = False,
    ) -> None:
        self.influence = influence
        self.logarithmic = logarithmic

    def log_influence(self, n_steps: int) -> Array:
        weights: Any = self.influence
        if callable(weights):
            weights = [weights(t, n_steps) for t in range(1, n_steps + 1)]
        elif is_real(weights):
            weights = np.full(n_steps, float(weights))
        if not self.logarithmic:
            return np.asarray(np.log(positive(weights, n_steps, "CustomNoise: influence")))
        logs = np.asarray(weights, dtype=np.float64)
        if logs.shape != (n_steps,):
            raise ValueError(
                f"CustomNoise: influence must be {n_steps} numbers, one per step; "
                f"got an array of shape {logs.shape}."
            )
        return logs


NOISE_SCHEDULES: dict[str, Callable[[], NoiseSchedule]] = {
    "custom": CustomNoise,
    "exponential": ExponentialNoise,
    "momentum": MomentumNoise,
    "momentum_two_phase": TwoPhaseMomentumNoise,
    "multistage": MultistageNoise,
    "nesterov": NesterovNoise,
    "step_matched": StepMatchedNoise,
    "uniform": UniformNoise,
}


def relative_noise(
    schedule: Any, n_steps: int, law: str = "gaussian", sizes: ArrayLike | None = None
) -> Array:
    """Turn a name, a schedule or an array of relative noise into ``n_steps`` positive numbers.

    Parameters
    ----------
    schedule : str, NoiseSchedule or array of shape (n_steps,)
    n_steps : int
    law : {"gaussian", "laplace"}, default="gaussian"
        Of the noise that is to be scheduled.
    sizes : array of shape (n_steps,) or None, default=None
        Step sizes of the solver, for a schedule that follows them.

    Raises
    ------
    ValueError
        If a name is unknown, or the numbers do not fit.
    """
    if isinstance(schedule, str):
        if schedule not in NOISE_SCHEDULES:
            known = ", ".join(repr(name) for name in ["auto", *sorted(NOISE_SCHEDULES)])
            raise ValueError(
                f"noise_schedule must be one of {known}, a NoiseSchedule or an array of relative "
                f"noise; got {shown(schedule)}."
            )
        schedule = NOISE_SCHEDULES[schedule]()
    if isinstance(schedule, StepMatchedNoise) and schedule.steps is None and sizes is not None:
        return influence_to_noise(2 * np.log(positive(sizes, n_steps, "learning_rate")), law)
    if isinstance(schedule, NoiseSchedule):
        return positive(schedule.relative(n_steps, law), n_steps, "noise_schedule")
    return positive(schedule, n_steps, "noise_schedule")
