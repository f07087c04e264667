"""Noise schedules: how noisy each step is next to the others, from how much it influences the end.

If the expected error at the end is ``sum_t q_t sigma_t**2`` and the budget is
``sum_t sigma_t**-2``, the error is least for ``sigma_t`` proportional to ``q_t ** (-1/4)``
(Hong, Wang, Zhou 2022, Lemma 4.4). Schedules give log-influences, so that long runs neither
overflow nor underflow; the scale of the noise is the accountant's to find.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

Array = NDArray[np.float64]


class NoiseSchedule(BaseEstimator):
    """Base of noise schedules; an object, so that a grid search can reach its parameters."""

    @abstractmethod
    def log_influence(self, n_steps: int) -> Array:
        """Return log q_t for the steps 1..n_steps, up to a constant."""

    def relative(self, n_steps: int) -> Array:
        """Return the relative noise of the steps 1..n_steps, with geometric mean 1."""
        exponent = -0.25 * np.asarray(self.log_influence(n_steps), dtype=np.float64)
        return np.asarray(np.exp(exponent - exponent.mean()), dtype=np.float64)


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
        if not 0 < self.gamma <= 1:
            raise ValueError(f"ExponentialNoise: gamma must lie in (0, 1]; got {self.gamma!r}.")
        steps_left = n_steps - np.arange(1, n_steps + 1)
        return np.asarray(np.log(self.gamma) * steps_left, dtype=np.float64)


class CustomNoise(NoiseSchedule):
    """Influence weights of the user's own.

    Parameters
    ----------
    influence : array of shape (n_steps,) or callable (t, n_steps) -> float
        Positive weights q_t; only their ratios matter.
    """

    def __init__(self, influence: ArrayLike | Callable[[int, int], float]) -> None:
        self.influence = influence

    def log_influence(self, n_steps: int) -> Array:
        if callable(self.influence):
            weights = [self.influence(t, n_steps) for t in range(1, n_steps + 1)]
        else:
            weights = self.influence  # type: ignore[assignment]
        values = _positive(weights, n_steps, "CustomNoise: influence")
        return np.asarray(np.log(values), dtype=np.float64)


NOISE_SCHEDULES: dict[str, Callable[[], NoiseSchedule]] = {
    "uniform": UniformNoise,
    "exponential": ExponentialNoise,
}


def _positive(values: Any, n_steps: int, who: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (n_steps,) or not ((array > 0) & np.isfinite(array)).all():
        raise ValueError(
            f"{who} must be {n_steps} positive, finite numbers, one per step; "
            f"got an array of shape {array.shape}."
        )
    return array


def relative_noise(schedule: Any, n_steps: int) -> Array:
    """Turn a name, a schedule or an array of relative noise into ``n_steps`` positive numbers.

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
                f"noise; got {schedule!r}."
            )
        schedule = NOISE_SCHEDULES[schedule]()
    if isinstance(schedule, NoiseSchedule):
        return _positive(schedule.relative(n_steps), n_steps, "noise_schedule")
    return _positive(schedule, n_steps, "noise_schedule")
