"""One noisy answer about all rows: Gaussian, Laplace, or known by its guarantee alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events.base import Event, NoiseChange


def _check_noise(name: str, noise_multiplier: float) -> None:
    if not (noise_multiplier >= 0 and math.isfinite(noise_multiplier)):
        raise ValueError(
            f"{name}: noise_multiplier must be finite and >= 0; got {noise_multiplier!r}."
        )


@dataclass(frozen=True)
class Gaussian(Event):
    """A sum over all rows plus isotropic Gaussian noise.

    Meaning: ``S(D) + N(0, (noise_multiplier * C)**2 I)``, where one record adds a vector of L2
    norm at most ``C`` to ``S``. The sensitivity is ``C`` under zero-out and ``spread * C`` under
    replace-one, so the release is exactly mu-GDP with ``mu = sensitivity / (noise_multiplier * C)``
    (Dong, Roth, Su 2019, Thm 2.7).

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise in units of the contribution bound. 0 means no noise.
    spread : float, default=2.0
        Largest distance between two contributions, in units of the bound. 2 for vectors that may
        point anywhere; 1 for counts; sqrt(2) for Gram matrices.
    """

    noise_multiplier: float
    spread: float = 2.0

    def __post_init__(self) -> None:
        _check_noise("Gaussian", self.noise_multiplier)
        if not 1 <= self.spread <= 2:
            raise ValueError(f"Gaussian: spread must lie in [1, 2]; got {self.spread!r}.")

    def with_noise(self, change: NoiseChange) -> Gaussian:
        return Gaussian(change(self.noise_multiplier), self.spread)

    def scaled(self, factor: float) -> Gaussian:
        return Gaussian(factor * self.noise_multiplier, self.spread)

    def sensitivity(self, adjacency: Adjacency) -> float:
        """L2 sensitivity in units of the contribution bound."""
        return 1.0 if adjacency is Adjacency.ZERO_OUT else self.spread

    def mu(self, adjacency: Adjacency) -> float:
        """Gaussian-DP parameter; inf without noise."""
        if self.noise_multiplier == 0:
            return math.inf
        return self.sensitivity(adjacency) / self.noise_multiplier


@dataclass(frozen=True)
class Laplace(Event):
    """A sum over all rows plus independent Laplace noise on each coordinate.

    Meaning: ``S(D) + Lap(noise_multiplier * C)`` per coordinate, where one record adds a vector of
    *L1* norm at most ``C`` to ``S``. The release is (sensitivity / noise_multiplier)-DP with
    delta = 0 (Dwork, McSherry, Nissim, Smith 2006), the L1 sensitivity being 1 under zero-out and
    ``spread`` under replace-one, in units of ``C``.

    Parameters
    ----------
    noise_multiplier : float
        The *scale* ``b`` of the noise (its standard deviation is ``b * sqrt(2)``) in units of the
        contribution bound. 0 means no noise.
    spread : float, default=2.0
        Largest L1 distance between two contributions, in units of the bound: 2 for vectors, 1 for
        counts. Figures in between hold for L2 distances (sqrt(2) for Gram matrices) and are
        refused, for in L1 they would be wrong.
    """

    noise_multiplier: float
    spread: float = 2.0

    def __post_init__(self) -> None:
        _check_noise("Laplace", self.noise_multiplier)
        if self.spread not in (1, 2):
            raise ValueError(
                f"Laplace: spread must be 1 (counts) or 2 (anything else); got {self.spread!r}. "
                "No theorem bounds an L1 distance by an L2 figure such as sqrt(2)."
            )

    def with_noise(self, change: NoiseChange) -> Laplace:
        return Laplace(change(self.noise_multiplier), self.spread)

    def sensitivity(self, adjacency: Adjacency) -> float:
        """L1 sensitivity in units of the contribution bound."""
        return 1.0 if adjacency is Adjacency.ZERO_OUT else self.spread

    def pure_epsilon(self, adjacency: Adjacency) -> float:
        """Epsilon at delta = 0; inf without noise."""
        if self.noise_multiplier == 0:
            return math.inf
        return self.sensitivity(adjacency) / self.noise_multiplier


@dataclass(frozen=True)
class ApproximateDP(Event):
    """A mechanism of which nothing is known but its guarantee.

    Meaning: any mechanism that is (epsilon, delta)-DP under the relation at hand; among all of
    these the randomised response of Kairouz, Oh and Viswanath 2015 (Thm 3.4) is the dearest.
    It has no noise that a calibration could scale: ``scaled`` returns the event itself.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float, default=0.0
        In [0, 1].
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise ValueError(f"ApproximateDP: epsilon must be at least 0; got {self.epsilon!r}.")
        if not 0 <= self.delta <= 1:
            raise ValueError(f"ApproximateDP: delta must lie in [0, 1]; got {self.delta!r}.")

    def with_noise(self, change: NoiseChange) -> ApproximateDP:
        return self
