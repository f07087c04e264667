"""Mechanisms on all rows: sums with noise, noisy maximum, bare guarantee."""

import math
from dataclasses import dataclass, replace
from typing import Self

from skdp.accounting.events.base import Adjacency, Event, NoiseChange, check_field


def _check_noise(event: Event, *names: str) -> None:
    for name in names:
        check_field(event, name, 0 <= getattr(event, name) < math.inf, "be finite and >= 0")


@dataclass(frozen=True)
class _AdditiveNoise(Event):
    """Base class of sums with additive noise; the subclasses explain the fields."""

    noise_multiplier: float
    spread: float = 2.0

    def __post_init__(self) -> None:
        _check_noise(self, "noise_multiplier")

    def with_noise(self, change: NoiseChange) -> Self:
        return replace(self, noise_multiplier=change(self.noise_multiplier))

    def sensitivity(self, adjacency: Adjacency) -> float:
        """Return the sensitivity in units of the contribution bound, in the norm of that bound.

        Parameters
        ----------
        adjacency : Adjacency

        Returns
        -------
        float
            1 under zero-out, ``spread`` under replace-one.
        """
        return 1.0 if adjacency is Adjacency.ZERO_OUT else self.spread

    def _sensitivity_over_noise(self, adjacency: Adjacency) -> float:
        if self.noise_multiplier == 0:
            return math.inf
        return self.sensitivity(adjacency) / self.noise_multiplier


@dataclass(frozen=True)
class Gaussian(_AdditiveNoise):
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

    Raises
    ------
    ValueError
        If a field is out of its range.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "spread", 1 <= self.spread <= 2, "lie in [1, 2]")

    def mu(self, adjacency: Adjacency) -> float:
        """Return the Gaussian-DP parameter.

        Parameters
        ----------
        adjacency : Adjacency

        Returns
        -------
        float
            inf without noise.
        """
        return self._sensitivity_over_noise(adjacency)


@dataclass(frozen=True)
class Laplace(_AdditiveNoise):
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
        counts. Values in between hold for L2 distances (sqrt(2) for Gram matrices); they would be
        wrong for L1 and are refused.

    Raises
    ------
    ValueError
        If a field is out of its range.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        why = "as no theorem bounds an L1 distance by an L2 figure such as sqrt(2)"
        rule = f"be 1 (counts) or 2 (anything else), {why}"
        check_field(self, "spread", self.spread in (1, 2), rule)

    def pure_epsilon(self, adjacency: Adjacency) -> float:
        """Return the epsilon at delta = 0.

        Parameters
        ----------
        adjacency : Adjacency

        Returns
        -------
        float
            inf without noise.
        """
        return self._sensitivity_over_noise(adjacency)


@dataclass(frozen=True)
class NoisyMaximum(_AdditiveNoise):
    """The place and the sign of the largest entry, in absolute value, of a sum with Laplace noise.

    Meaning: the noise is that of `Laplace`, ``Lap(noise_multiplier * C)`` per coordinate, but no
    entry leaves, and one record adds a vector whose *largest entry* is at most ``C``. The release
    is ``2 sensitivity / noise_multiplier``-DP with delta = 0, whatever the number of entries
    ("report noisy max", Dwork and Roth 2014, Claim 3.9); the proof for two-sided entries is in
    `skdp.oracle.releases.gradients`. Nothing but this epsilon is used: what Laplace noise on one
    number costs is no bound.

    Parameters
    ----------
    noise_multiplier : float
        The *scale* of the noise in units of C. 0 means no noise.
    spread : float, default=2.0
        Largest distance between two entries, in units of C.

    Raises
    ------
    ValueError
        If a field is out of its range.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "spread", 1 <= self.spread <= 2, "lie in [1, 2]")

    def pure_epsilon(self, adjacency: Adjacency) -> float:
        """Return the epsilon at delta = 0.

        Parameters
        ----------
        adjacency : Adjacency

        Returns
        -------
        float
            inf without noise.
        """
        return 2 * self._sensitivity_over_noise(adjacency)


@dataclass(frozen=True)
class ApproximateDP(Event):
    """A mechanism of which only its guarantee is known.

    Meaning: any mechanism that is (epsilon, delta)-DP under the adjacency at hand. The costliest of
    them is the randomised response of Kairouz, Oh and Viswanath 2015 (Thm 3.4). Its noise cannot be
    calibrated: ``scaled`` returns the event itself.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float, default=0.0
        In [0, 1].

    Raises
    ------
    ValueError
        If a field is out of its range.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_field(self, "epsilon", self.epsilon >= 0, "be at least 0")
        check_field(self, "delta", 0 <= self.delta <= 1, "lie in [0, 1]")
