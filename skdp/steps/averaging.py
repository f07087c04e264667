"""Which iterate a solver returns: the last, a random one, or a mean over the last part."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

AVERAGES = ("last", "tail", "random")


class IterateAverage:
    """Takes in iterates one by one and gives back the one to return.

    Parameters
    ----------
    kind : {"last", "tail", "random"}
        "tail" is the mean of the last ``fraction`` of the iterates; "random" is one of them all,
        uniformly, as theory asks for where the problem is not convex.
    n_steps : int
        How many iterates there are going to be.
    coins : numpy.random.Generator
        Used by "random" only.
    fraction : float, default=0.5
        Part of the iterates in the tail, in (0, 1].
    """

    def __init__(
        self, kind: str, n_steps: int, coins: np.random.Generator, fraction: float = 0.5
    ) -> None:
        kept = {
            "last": range(n_steps - 1, n_steps),
            "tail": range(n_steps - max(1, math.ceil(fraction * n_steps)), n_steps),
        }
        if kind == "random":
            chosen = int(coins.integers(n_steps))
            kept["random"] = range(chosen, chosen + 1)
        self._kept = kept[kind]
        self._step = 0
        self._mean: Array | None = None
        self._count = 0

    def add(self, iterate: Array) -> None:
        """Take in the next iterate."""
        if self._step in self._kept:
            self._count += 1
            if self._mean is None:
                self._mean = iterate.copy()
            else:
                self._mean += (iterate - self._mean) / self._count
        self._step += 1

    def result(self) -> Array:
        """Return the iterate, or mean of iterates, that was asked for."""
        if self._mean is None:
            raise RuntimeError("no iterate was taken in yet.")
        return self._mean
