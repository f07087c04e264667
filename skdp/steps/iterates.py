"""Move iterates and choose among them: momentum, averages.

Everything here is post-processing of gradients that were released before, and needs no privacy.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from skdp._numbers import Array, is_real, require
from skdp.steps.schedules import Named, named

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
