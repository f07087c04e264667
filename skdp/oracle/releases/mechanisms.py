"""How a sum is hidden: noise on a power-of-two grid, exact after rounding."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp.accounting import Event, Gaussian
from skdp.oracle.noise import NoiseSource
from skdp.oracle.releases.base import Array, audited

GRID_BITS = 30  # the grid is at most 2**-30 standard deviations wide
LEAST_GRID, LARGEST_GRID = 2.0**-900, 2.0**900  # where it is neither subnormal nor nearly infinite


@dataclass(frozen=True)
class Contribution:
    """How a computed sum may depend on one record; all figures are public.

    Attributes
    ----------
    bound : float
        Norm of what one record adds, at most, rounding errors of the sum included.
    spread : float
        Largest distance between two such contributions, in units of ``bound``.
    size : int
        Number of coordinates of the sum.
    total : float
        Bound on the absolute value of any coordinate of the sum.
    order : {1, 2}, default=2
        Of the norm that ``bound`` is in: L1 or L2.
    """

    bound: float
    spread: float
    size: int
    total: float
    order: int = 2


class Mechanism(ABC):
    """A law of noise. It hides sums that are bounded in its own norm, and refuses others.

    Attributes
    ----------
    order : {1, 2}
        Of the norm in which sensitivity is measured.
    relative : float
        How noisy, relative to the solver's other releases.
    """

    order: ClassVar[int]
    relative: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "relative", float(self.relative))
        if not (0 < self.relative < math.inf):
            raise ValueError(
                f"{type(self).__name__}: relative must be positive; got {self.relative!r}."
            )

    @abstractmethod
    def event(self, spread: float) -> Event:
        """Return what hiding one sum costs, in relative units."""

    @abstractmethod
    def std(self, contribution: Contribution, scale: float) -> float:
        """Return the standard deviation of the noise on each coordinate."""

    @abstractmethod
    def hide(
        self, statistic: Array, contribution: Contribution, scale: float, source: NoiseSource
    ) -> Array:
        """Return the statistic plus noise; with scale 0 the statistic itself."""

    def require_norm(self, contribution: Contribution) -> None:
        """Raise ValueError unless the sum is bounded in the norm of this noise."""
        if contribution.order != self.order:
            raise ValueError(
                f"{type(self).__name__} hides sums whose records are bounded in the L{self.order} "
                f"norm; this one is bounded in the L{contribution.order} norm. Nothing was "
                "released for it."
            )

    def _grid(self, contribution: Contribution, scale: float) -> float:
        """Grid width: fine next to the noise, coarse enough that sums on it are exact."""
        finest = max(
            self.relative * scale * contribution.bound * 2.0**-GRID_BITS,
            contribution.total * 2.0**-51,
        )
        if not LEAST_GRID <= finest <= LARGEST_GRID:
            raise ValueError(
                f"{type(self).__name__}: what one record can add, {contribution.bound:g}, times a "
                f"noise multiplier of {self.relative * scale:g} is out of the range in which "
                "numbers keep their precision. Choose bounds and clipping norms of a common size, "
                "or another unit. Nothing was released for it."
            )
        return 2.0 ** math.ceil(math.log2(finest))

    def _check_grid(self, noise: float, grid: float, scale: float) -> None:
        """Raise ValueError if the noise is finer than what it has to hide."""
        if noise < grid:
            raise ValueError(
                f"{type(self).__name__}: a noise multiplier of {self.relative * scale:g} is too "
                "fine to be told from rounding errors; ask for a smaller epsilon, or for "
                "epsilon=inf, which adds no noise. Nothing was released."
            )


@audited
@dataclass(frozen=True)
class GaussianNoise(Mechanism):
    """Isotropic Gaussian noise; ``relative`` says how noisy next to the other releases.

    The sum s is rounded to k = rint(s / g) on a grid g = 2**j, and what is released is
    g * (k + round(N(0, (std/g)**2))). As k is an integer, that is a rounding of
    k + N(0, (std/g)**2): post-processing of the Gaussian mechanism on k (Balle and Wang 2018,
    Thm 8), with no slack for floating point.
    Rounding moves each coordinate by at most g/2, so two neighbouring k are at most
    ``sensitivity/g + sqrt(size)`` apart. That is paid for: the noise multiplier is applied to
    ``bound + g sqrt(size)``, which covers both adjacencies since spread >= 1.
    """

    relative: float = 1.0
    order: ClassVar[int] = 2

    def event(self, spread: float) -> Gaussian:
        """Return what hiding one sum costs, in relative units."""
        return Gaussian(self.relative, spread)

    def std(self, contribution: Contribution, scale: float) -> float:
        """Return the standard deviation of the noise on each coordinate."""
        self.require_norm(contribution)
        if scale == 0:
            return 0.0
        grid = self._grid(contribution, scale)
        std = self.relative * scale * (contribution.bound + grid * math.sqrt(contribution.size))
        self._check_grid(std, grid, scale)
        return std

    def hide(
        self, statistic: Array, contribution: Contribution, scale: float, source: NoiseSource
    ) -> Array:
        """Return the statistic plus noise; with scale 0 the statistic itself."""
        self.require_norm(contribution)
        if scale == 0:
            return statistic
        grid = self._grid(contribution, scale)
        noise = source.gaussian(self.std(contribution, scale) / grid, statistic.shape)
        return grid * (np.rint(statistic / grid) + noise)
