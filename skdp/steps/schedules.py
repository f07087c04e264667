"""Step-size schedules: functions of the step number and the number of steps, of nothing else."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skdp._numbers import is_real, shown

Array = NDArray[np.float64]


class StepSchedule(BaseEstimator):
    """Base of step-size schedules; an object, so that a grid search can reach its parameters."""

    @abstractmethod
    def sizes(self, n_steps: int) -> Array:
        """Return the sizes of steps 1..n_steps."""


class ConstantStep(StepSchedule):
    """The same step size throughout.

    Parameters
    ----------
    size : float, default=0.1
        Positive.
    """

    def __init__(self, size: float = 0.1) -> None:
        self.size = size

    def sizes(self, n_steps: int) -> Array:
        return np.full(n_steps, float(self.size))


class InverseSquareRootStep(StepSchedule):
    """Step t has size ``initial / sqrt(1 + (t - 1) / delay)``.

    Parameters
    ----------
    initial : float, default=0.1
        Size of the first step; positive.
    delay : float, default=1.0
        Steps after which the size has fallen by a factor sqrt(2); positive.
    """

    def __init__(self, initial: float = 0.1, delay: float = 1.0) -> None:
        self.initial = initial
        self.delay = delay

    def sizes(self, n_steps: int) -> Array:
        return self.initial / np.sqrt(1 + np.arange(n_steps) / self.delay)


class LinearDecayStep(StepSchedule):
    """Sizes fall linearly from ``initial`` at the first step to ``final`` at the last.

    Parameters
    ----------
    initial : float, default=0.1
        Positive.
    final : float, default=0.01
        Positive.
    """

    def __init__(self, initial: float = 0.1, final: float = 0.01) -> None:
        self.initial = initial
        self.final = final

    def sizes(self, n_steps: int) -> Array:
        return np.linspace(self.initial, self.final, n_steps)


def step_sizes(schedule: Any, n_steps: int) -> Array:
    """Turn a number or a schedule into an array of ``n_steps`` positive step sizes.

    Raises
    ------
    ValueError
        If it is neither, or a size is not positive and finite.
    """
    if isinstance(schedule, StepSchedule):
        sizes = np.asarray(schedule.sizes(n_steps), dtype=np.float64)
    elif is_real(schedule):
        sizes = np.full(n_steps, float(schedule))
    else:
        raise ValueError(
            "learning_rate must be 'auto', a positive number or a StepSchedule; got "
            f"{shown(schedule)}."
        )
    if sizes.shape != (n_steps,) or not ((sizes > 0) & np.isfinite(sizes)).all():
        raise ValueError(f"learning_rate must give positive, finite steps; got {shown(schedule)}.")
    return sizes
