"""Run gradient methods: one loop along a path, over a public schedule of steps.

A path decides where the next answer is requested, where to move and which iterate is the result.
Wrappers of paths add to it: sizes from noisy gradients, clipping norms from noisy counts, a
checkpoint. All but the requests is post-processing of released answers.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from skdp._numbers import Array
from skdp.objective import Problem
from skdp.oracle import AllRows, Sampler
from skdp.solvers.base import Oracle
from skdp.steps import IterateAverage, Momentum


class Step(NamedTuple):
    """Public numbers of a step: its size, and the request that it makes."""

    size: float
    clip_norm: float
    noise: float = 1.0
    batch: Sampler = AllRows()
    mechanism: str = "gaussian"


def schedule(
    sizes: Iterable[float],
    clip_norm: float,
    noises: Iterable[float],
    batches: Iterable[Sampler] | None = None,
    mechanism: str = "gaussian",
) -> Iterator[Step]:
    """Yield the steps of a run, as many as there are sizes."""
    for size, noise, batch in zip(
        sizes, noises, batches or itertools.repeat(AllRows()), strict=False
    ):
        yield Step(float(size), clip_norm, float(noise), batch, mechanism)


def descend(oracle: Oracle, path: "Path", steps: Iterable[Step]) -> Array:
    """Return the result of a path after these steps.

    In a rehearsal no path moves, as the cost of requests does not depend on points.
    """
    for step in steps:
        answer = path.query(oracle, step)
        if not oracle.is_rehearsal:
            path.move(answer, step)
    return oracle.start() if oracle.is_rehearsal else path.result()


class Path(ABC):
    """The iterates of a method."""

    @abstractmethod
    def at(self, step: Step) -> Array:
        """Return the point at which a step takes its gradient."""

    def query(self, oracle: Oracle, step: Step) -> Array:
        """Request what a step needs; how often does not depend on answers."""
        return oracle.gradient(
            self.at(step), step.clip_norm, step.noise, step.batch, step.mechanism
        )

    @abstractmethod
    def move(self, answer: Array, step: Step) -> None:
        """Move to the next iterate."""

    @abstractmethod
    def result(self) -> Array:
        """Return the solution after the last step."""


class Proximal(Path):
    """``w = prox(w - size * direction)``, and an average of the iterates.

    Parameters
    ----------
    problem : Problem
    start : array
    average : IterateAverage
    momentum : Momentum or None
        Turns gradients into directions.
    rates : array or float
        Factors on the steps of the parameters.
    """

    def __init__(
        self,
        problem: Problem,
        start: Array,
        average: IterateAverage,
        momentum: Momentum | None = None,
        rates: Array | float = 1.0,
    ) -> None:
        self.point, self._average, self._rates = start, average, rates
        self._prox = problem.prox
        self._direction = momentum.start() if momentum else lambda gradient: gradient
        average.add(start)

    def at(self, step: Step) -> Array:
        return self.point

    def move(self, answer: Array, step: Step) -> None:
        along = self._rates * self._direction(answer)
        self.point = self._prox(self.point - step.size * along, step.size)
        self._average.add(self.point)

    def result(self) -> Array:
        return self._average.result()


class SmoothPath(Path):
    """A path along the gradient of the objective, with that of its smooth penalty."""

    def query(self, oracle: Oracle, step: Step) -> Array:
        return super().query(oracle, step) + oracle.problem.penalty_gradient(self.at(step))


class HeavyBallPath(SmoothPath):
    """``x_next = x - a g(x) + beta (x - x_previous)`` (Kuru et al. 2022, eq. 9)."""

    def __init__(self, start: Array, momentum: float) -> None:
        self._iterate = self._previous = start
        self._momentum = momentum

    def at(self, step: Step) -> Array:
        return self._iterate

    def move(self, answer: Array, step: Step) -> None:
        ahead = self._momentum * (self._iterate - self._previous)
        self._previous, self._iterate = self._iterate, self._iterate - step.size * answer + ahead

    def result(self) -> Array:
        return self._iterate


class NesterovPath(SmoothPath):
    """``z = (1 + beta) x - beta x_previous``, ``x_next = z - a g(z)`` (Kuru et al. 2022, eq. 27).

    beta is ``(1 - sqrt(a mu)) / (1 + sqrt(a mu))``, for step sizes a of at most ``1/mu``. A new
    stage begins where the step size changes, and momentum restarts there from the last iterate.
    """

    def __init__(self, start: Array, strong_convexity: float) -> None:
        self._iterate = self._previous = start
        self._strong_convexity, self._size = strong_convexity, math.nan

    def at(self, step: Step) -> Array:
        before = self._previous if step.size == self._size else self._iterate
        root = math.sqrt(min(step.size * self._strong_convexity, 1.0))
        beta = (1 - root) / (1 + root)
        return np.asarray((1 + beta) * self._iterate - beta * before)

    def move(self, answer: Array, step: Step) -> None:
        ahead, self._size = self.at(step), step.size
        self._previous, self._iterate = self._iterate, ahead - step.size * answer

    def result(self) -> Array:
        return self._iterate


class Wrapper(Path):
    """A path that does as another one does."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def at(self, step: Step) -> Array:
        return self.path.at(step)

    def query(self, oracle: Oracle, step: Step) -> Array:
        return self.path.query(oracle, step)

    def move(self, answer: Array, step: Step) -> None:
        self.path.move(answer, step)

    def result(self) -> Array:
        return self.path.result()


class Sized(Wrapper):
    """Takes the sizes of steps from a rule, given the point, its noisy gradient and the noise.

    The rule is post-processing of the answer, and costs nothing.
    """

    def __init__(self, path: Path, size_of: Callable[[Array, Array, float], float]) -> None:
        super().__init__(path)
        self._size_of, self._size = size_of, math.nan

    def query(self, oracle: Oracle, step: Step) -> Array:
        answer = super().query(oracle, step)
        std = oracle.gradient_std(step.clip_norm, step.noise, step.batch, step.mechanism)
        self._size = self._size_of(self.at(step), answer, std)
        return answer

    def move(self, answer: Array, step: Step) -> None:
        super().move(answer, step._replace(size=self._size))
