"""Accelerated gradient steps: heavy ball, Nesterov, and Nesterov in stages.

A path says where the next gradient is wanted and takes it in. It knows neither rows nor noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def nesterov_momentum(size: float, strong_convexity: float) -> float:
    """``(1 - sqrt(a mu)) / (1 + sqrt(a mu))``, for steps a of at most ``1/mu``."""
    root = math.sqrt(min(size * strong_convexity, 1.0))
    return (1 - root) / (1 + root)


class Path(ABC):
    """Iterates, one gradient after the other.

    Attributes
    ----------
    iterate : array
        Where the path has got to.
    """

    iterate: Array

    @property
    @abstractmethod
    def point(self) -> Array:
        """Where the next gradient is to be taken."""

    @abstractmethod
    def step(self, gradient: Array) -> None:
        """Take in the gradient at :attr:`point`."""


class HeavyBallPath(Path):
    """``x_next = x - a g(x) + beta (x - x_previous)`` (Kuru et al. 2022, eq. 9).

    Parameters
    ----------
    start : array
        The first iterate, and the one before it.
    size, momentum : float
        a and beta.
    """

    def __init__(self, start: Array, size: float, momentum: float) -> None:
        self.iterate = self._previous = start
        self._size, self._momentum = size, momentum

    @property
    def point(self) -> Array:
        return self.iterate

    def step(self, gradient: Array) -> None:
        ahead = self._momentum * (self.iterate - self._previous)
        self._previous, self.iterate = self.iterate, self.iterate - self._size * gradient + ahead


class NesterovPath(Path):
    """``z = (1 + beta) x - beta x_previous``, ``x_next = z - a g(z)`` (Kuru et al. 2022, eq. 27).

    Where the step size changes a new stage begins: momentum is computed anew, and restarted from
    the last iterate.

    Parameters
    ----------
    start : array
    sizes : array of shape (n_steps,)
        a, step by step.
    strong_convexity : float
        mu, from which momentum follows.
    """

    def __init__(self, start: Array, sizes: ArrayLike, strong_convexity: float) -> None:
        self.iterate = self._previous = start
        self._sizes = [float(size) for size in np.atleast_1d(np.asarray(sizes))]
        self._strong_convexity, self._done = strong_convexity, 0

    @property
    def point(self) -> Array:
        t = self._done
        if t > 0 and self._sizes[t] != self._sizes[t - 1]:
            self._previous = self.iterate
        beta = nesterov_momentum(self._sizes[t], self._strong_convexity)
        return np.asarray((1 + beta) * self.iterate - beta * self._previous)

    def step(self, gradient: Array) -> None:
        ahead = self.point
        self._previous, self.iterate = self.iterate, ahead - self._sizes[self._done] * gradient
        self._done += 1
