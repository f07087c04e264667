"""Noise for a pass of many tiny steps: drawn for many steps at once, added without loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg.blas import daxpy

from skdp.oracle.noise import NoiseSource
from skdp.oracle.releases.base import Array
from skdp.oracle.releases.mechanisms import Contribution, GaussianNoise


@dataclass(frozen=True, eq=False)
class StepNoise:
    """What `GaussianNoise.hide` does to one statistic, in two additions to a vector.

    With g the grid, let ``shift = 1.5 * 2**52 * g``. Floating-point numbers between ``2**52 g`` and
    ``2**53 g`` are the multiples of g. So

    1. ``u = shift + s``, in one rounding, is shift plus s rounded to the grid (a tie goes to the
       even multiple, whatever the noise is), as long as ``|s| <= 2**51 g``: the grid is chosen so.
    2. ``u + (g N - shift)`` is exact, N being the rounded noise: both are multiples of g, as is
       the sum, and none exceeds ``2**53 g`` (a float64 holds all of those) unless N exceeds
       ``2**51``, which :attr:`std` keeps 32 standard deviations away.

    The answer is ``g (rint(s / g) + N)``, as in `GaussianNoise`, and the same argument holds.
    Adding s to shift and noise at once would not do: which way a tie goes, and so whether an answer
    is even, would then tell of s. The noise of a step is never used before the statistic is on
    the grid.

    Attributes
    ----------
    mechanism : GaussianNoise
    contribution : Contribution
        Of one step's statistic.
    scale : float
        Calibrated factor; 0 adds nothing.
    """

    mechanism: GaussianNoise
    contribution: Contribution
    scale: float

    LARGEST: ClassVar[float] = 2.0**46

    @cached_property
    def grid(self) -> float:
        """Width of the grid; 0 without noise."""
        return self.mechanism._grid(self.contribution, self.scale) if self.scale else 0.0

    @cached_property
    def std(self) -> float:
        """Standard deviation of the noise in each coordinate of an answer."""
        std = self.mechanism.std(self.contribution, self.scale)
        if self.scale and std / self.grid > self.LARGEST:
            raise ValueError(
                "StepNoise: the noise is too large next to its grid; ask for a larger epsilon. "
                "Nothing was released."
            )
        return std

    @cached_property
    def shift(self) -> float:
        """What a statistic is added to so that it comes out rounded to the grid."""
        return 1.5 * 2.0**52 * self.grid

    def draw(self, n_steps: int, source: NoiseSource) -> Array:
        """Return ``g N - shift`` for this many steps, one in a row."""
        shape = n_steps, self.contribution.size
        if self.scale == 0:
            return np.zeros(shape)
        noise = source.gaussian(self.std / self.grid, shape)
        noise *= self.grid
        noise -= self.shift
        return noise

    def hide(self, shifted: Array, noise: Array) -> Array:
        """Turn ``shift + s`` into the noisy answer, in place."""
        answer: Array = daxpy(noise, shifted)
        return answer
