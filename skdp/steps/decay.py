"""Falling step sizes: of a fixed shape, or from the norms of the noisy gradients so far."""

from __future__ import annotations

import math

import numpy as np
from sklearn.base import BaseEstimator

from skdp._numbers import is_real, shown
from skdp.steps.schedules import Array, StepSchedule


class PolynomialStep(StepSchedule):
    """Step t has size ``initial / sqrt(a + c t)``.

    Parameters
    ----------
    initial : float, default=1.0
        Positive.
    a : float, default=20.0
        Not negative; ``a/c`` is about the number of steps before the size falls.
    c : float, default=1.0
        Positive.
    """

    def __init__(self, initial: float = 1.0, a: float = 20.0, c: float = 1.0) -> None:
        self.initial = initial
        self.a = a
        self.c = c

    def sizes(self, n_steps: int) -> Array:
        if not (is_real(self.a) and self.a >= 0 and is_real(self.c) and self.c > 0):
            raise ValueError(
                "PolynomialStep: a must not be negative and c must be positive; "
                f"got a={shown(self.a)}, c={shown(self.c)}."
            )
        return np.asarray(self.initial / np.sqrt(self.a + self.c * np.arange(1, n_steps + 1)))


class SquareRootDecayStep(StepSchedule):
    """Step t has size ``initial - k sqrt(t)``, with k such that the last one is ``final``.

    Parameters
    ----------
    initial : float, default=0.1
        Positive.
    final : float, default=1e-10
        Positive, at most ``initial``.
    """

    def __init__(self, initial: float = 0.1, final: float = 1e-10) -> None:
        self.initial = initial
        self.final = final

    def sizes(self, n_steps: int) -> Array:
        fall = np.sqrt(np.arange(1, n_steps + 1) / n_steps)
        # written as a mean of both ends, so that the last size is ``final`` to the last bit
        return np.asarray(self.initial * (1 - fall) + self.final * fall)


class AdaptiveStep(BaseEstimator):
    """Step t has size ``initial / b_t``, where b grows with the norms of the noisy gradients.

    ``b_t**2 = b_{t-1}**2 + max(weight ||g_t||**2, least)``. Only answers that were released already
    enter, so the sizes cost nothing. With ``debias`` the expected square of the noise, which is
    public, is taken off ``||g_t||**2``. The noise of the steps has to be fixed beforehand: it is
    matched to the guess ``b_t**2 = first**2 + growth t`` (Wu, Wang, Cristali, Gu, Willett 2021,
    sec. 5.2, where b is computed from gradients without noise, which is not private).

    Parameters
    ----------
    initial : float, default=1.0
        Positive.
    first : float, default=1.0
        b_0; positive.
    weight : float, default=1.0
        Not negative.
    least : float, default=1e-3
        Least growth of ``b**2`` in a step; positive.
    growth : float, default=1.0
        Guess of the growth of ``b**2`` in a step; not negative.
    debias : bool, default=True
        Whether the expected square of the noise is taken off.
    """

    def __init__(
        self,
        initial: float = 1.0,
        first: float = 1.0,
        weight: float = 1.0,
        least: float = 1e-3,
        growth: float = 1.0,
        debias: bool = True,
    ) -> None:
        self.initial = initial
        self.first = first
        self.weight = weight
        self.least = least
        self.growth = growth
        self.debias = debias

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        for name in ("initial", "first", "least"):
            value = getattr(self, name)
            if not (is_real(value) and 0 < value < math.inf):
                raise ValueError(f"AdaptiveStep: {name} must be positive; got {shown(value)}.")
        for name in ("weight", "growth"):
            value = getattr(self, name)
            if not (is_real(value) and 0 <= value < math.inf):
                raise ValueError(f"AdaptiveStep: {name} must not be negative; got {shown(value)}.")

    def expected_sizes(self, n_steps: int) -> Array:
        """Sizes of the steps 1..n_steps if the guess ``growth`` were right."""
        self.check()
        return np.asarray(
            self.initial / np.sqrt(self.first**2 + self.growth * np.arange(1, n_steps + 1))
        )


class AdaptiveSizes:
    """The sizes of one run of an `AdaptiveStep`."""

    def __init__(self, rule: AdaptiveStep) -> None:
        self._rule = rule
        self._squared = float(rule.first) ** 2

    def next(self, gradient: Array, noise_std: float) -> float:
        """Take in the next noisy gradient, whose coordinates have ``noise_std``; return its step.

        Sums over many steps of large gradients may leave the range of floats: the size is 0 then.
        """
        rule = self._rule
        with np.errstate(over="ignore"):
            square = float(np.sum(gradient * gradient))
        if rule.debias:
            square -= gradient.size * noise_std**2
        self._squared += max(rule.weight * square, rule.least)
        return float(rule.initial / math.sqrt(self._squared))
