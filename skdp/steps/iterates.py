"""Move iterates and choose among them: momentum, averages.

Everything here is post-processing of gradients that were released before, and needs no privacy.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from skdp._numbers import Array, is_real, require, shown
from skdp.steps.schedules import Named, named

AVERAGES = ("last", "tail", "random")


# The direction to step along, as a function of the next noisy gradient. That of `HeavyBall` takes
# the standard deviation of its noise, too.
Direction = Callable[..., Array]


@dataclass(eq=False, repr=False)
class Momentum(BaseEstimator):
    """Base of momentum. An object, so that a grid search can reach its parameters.

    Parameters
    ----------
    beta : float, default=0.9
        Weight of the past, in [0, 1). 0 is no momentum.
    """

    beta: float = 0.9

    @abstractmethod
    def start(self) -> Direction:
        """Return a function for one run that maps each gradient to a direction.

        Returns
        -------
        callable
            From a gradient to the direction of the step, an array of its shape.
        """


class AveragedGradient(Momentum):
    """Exponential average with bias correction: ``v = beta v + (1-beta) g``, ``v / (1 - beta**t)``.

    The step keeps the size of a plain gradient step (Hong, Wang, Zhou 2022, sec. 4.2).

    Parameters
    ----------
    beta : float, default=0.9
        Weight of the past, in [0, 1). 0 is no momentum.
    """

    def start(self) -> Direction:
        beta, decay = self.beta, 1.0
        average: Array | float = 0.0

        def direction(gradient: Array) -> Array:
            nonlocal average, decay
            average = beta * average + (1 - beta) * gradient
            decay *= beta
            return np.asarray(average / (1 - decay))

        return direction


class HeavyBall(Momentum):
    """Polyak's momentum with steps of unit gain, ``v = beta v + (1 - beta) g``, starting at 0.

    This is ``w_next = w - a g + beta (w - w_previous)`` with ``a = (1 - beta)`` times the step
    size. Early steps are short. The iteration is stable for step sizes up to
    ``2 (1 + beta) / (1 - beta)`` over the curvature.

    Where the noise of gradients is known, an entry of v is 0 again as soon as its gradient opposes
    it by two standard deviations of that (O'Donoghue and Candes 2015): it has gone too far. Of a
    logistic loss the curvature falls on the way there, so that the way back would be longer.

    Parameters
    ----------
    beta : float, default=0.9
        Weight of the past, in [0, 1). 0 is no momentum.
    """

    def start(self) -> Direction:
        beta = self.beta
        velocity: Array | float = 0.0

        def direction(gradient: Array, std: float = math.inf) -> Array:
            nonlocal velocity
            kept = gradient * np.sign(velocity) >= -2 * std
            velocity = beta * kept * velocity + (1 - beta) * gradient
            return np.asarray(velocity)

        return direction


MOMENTA: dict[str, Callable[..., Momentum]] = {
    "averaged": AveragedGradient,
    "heavy_ball": HeavyBall,
}

# What solvers accept as ``momentum``, beside "auto".
AnyMomentum = float | Named | Momentum


def momentum_rule(given: AnyMomentum) -> Momentum:
    """Return the momentum that a number (the heavy ball's beta), a name or an object stands for.

    Returns
    -------
    Momentum

    Raises
    ------
    ValueError
        If it is none of these, or beta does not lie in [0, 1).

    Examples
    --------
    >>> from skdp.steps import momentum_rule
    >>> momentum_rule(0.5), momentum_rule(("averaged", {"beta": 0.8}))
    (HeavyBall(beta=0.5), AveragedGradient(beta=0.8))
    """
    rule = named("momentum", MOMENTA, given, "'auto', a number in [0, 1), a Momentum")
    if is_real(rule):
        rule = HeavyBall(float(rule))
    if not isinstance(rule, Momentum):
        known = ", ".join(map(repr, MOMENTA))
        raise ValueError(
            "momentum must be 'auto', a number in [0, 1), a Momentum or the name of one "
            f"({known}), got {shown(given)}. Nothing was released."
        )
    is_valid = is_real(rule.beta) and 0 <= rule.beta < 1
    require("momentum", rule.beta, "be 'auto' or a number in [0, 1)", is_valid)
    return rule


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
