"""Two kinds of momentum: averaged gradients with bias correction, and the heavy ball."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Momentum(ABC):
    """Turns gradients, one by one, into directions to step along."""

    @abstractmethod
    def direction(self, gradient: Array) -> Array:
        """Take in the next gradient and return the direction that a step follows."""


class AveragedGradient(Momentum):
    """Exponential average with bias correction: ``v = beta v + (1-beta) g``, ``v / (1 - beta**t)``.

    The step keeps the size of a plain gradient step (Hong, Wang, Zhou 2022, sec. 4.2).
    """

    def __init__(self, beta: float) -> None:
        self._beta = beta
        self._average: Array | float = 0.0
        self._decay = 1.0

    def direction(self, gradient: Array) -> Array:
        self._average = self._beta * self._average + (1 - self._beta) * gradient
        self._decay *= self._beta
        return np.asarray(self._average / (1 - self._decay))


class HeavyBall(Momentum):
    """Polyak's momentum with steps of unit gain, ``v = beta v + (1 - beta) g``, starting at 0.

    It is ``w_next = w - a g + beta (w - w_previous)`` with ``a = (1 - beta)`` times the step size.
    Early steps are short: it is stable for steps of ``2 (1 + beta) / (1 - beta)`` over the
    curvature.
    """

    def __init__(self, beta: float) -> None:
        self._beta = beta
        self._velocity: Array | float = 0.0

    def direction(self, gradient: Array) -> Array:
        self._velocity = self._beta * self._velocity + (1 - self._beta) * gradient
        return np.asarray(self._velocity)


MOMENTA: dict[str, type[AveragedGradient] | type[HeavyBall]] = {
    "averaged": AveragedGradient,
    "heavy_ball": HeavyBall,
}
