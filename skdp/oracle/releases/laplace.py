"""Laplace noise on the power-of-two grid: pure differential privacy for sums bounded in L1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.accounting import Laplace
from skdp.oracle.noise import NoiseSource
from skdp.oracle.releases.base import Array, audited
from skdp.oracle.releases.mechanisms import Contribution, Mechanism


@audited
@dataclass(frozen=True)
class LaplaceNoise(Mechanism):
    """Independent Laplace noise on every coordinate; ``relative`` is multiplied by the scale.

    The sum S is rounded to g k on a grid of width g, a power of two, and ``g * round(b/g * L)`` is
    added, L with density ``exp(-|x|)/2``. As ``round(k + x) = k + round(x)`` for whole k, the
    answer is a function of ``g k + b L``: continuous Laplace noise of *scale* b, whose standard
    deviation is ``sqrt(2) b``, on the rounded sum.
    Sums that differ by s in L1 norm differ by at most ``s + g * size`` once they are rounded: each
    of the ``size`` coordinates by g more. That is paid for: b is the noise multiplier times
    ``bound + g * size``, which covers both adjacencies since spread >= 1. The ratio of densities
    is then at most ``exp(sensitivity / multiplier)`` everywhere (Dwork, McSherry, Nissim, Smith
    2006, Prop. 1; Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, Thm A.1).
    """

    relative: float = 1.0
    order: ClassVar[int] = 1

    def event(self, spread: float) -> Laplace:
        """Return what hiding one sum costs, in relative units."""
        return Laplace(self.relative, spread)

    def scale_of_noise(self, contribution: Contribution, scale: float) -> float:
        """Return b, the scale of the noise on each coordinate; *not* its standard deviation."""
        self.require_norm(contribution)
        if scale == 0:
            return 0.0
        grid = self._grid(contribution, scale)
        noise = self.relative * scale * (contribution.bound + grid * contribution.size)
        self._check_grid(noise, grid, scale)
        return noise

    def std(self, contribution: Contribution, scale: float) -> float:
        """Return the standard deviation of the noise on each coordinate, ``sqrt(2) b``."""
        return math.sqrt(2) * self.scale_of_noise(contribution, scale)

    def hide(
        self, statistic: Array, contribution: Contribution, scale: float, source: NoiseSource
    ) -> Array:
        """Return the statistic plus noise; with scale 0 the statistic itself."""
        noise = self.scale_of_noise(contribution, scale)
        if scale == 0:
            return statistic
        grid = self._grid(contribution, scale)
        return grid * (np.rint(statistic / grid) + source.laplace(noise / grid, statistic.shape))
