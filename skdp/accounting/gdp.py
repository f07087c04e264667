"""Exact Gaussian-DP accounting: plans of full-batch Gaussian releases are one Gaussian."""

from __future__ import annotations

import math

from skdp.accounting.accountant import Accountant, UnknownCost, register
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events import Event, Gaussian
from skdp.accounting.gaussian_tradeoff import gaussian_delta, gaussian_epsilon, gaussian_mu
from skdp.accounting.plan import paths, squared_mu


@register
class GaussianDP(Accountant):
    """Exact for full-batch Gaussian releases of any noise schedule, also on disjoint blocks.

    The composition is exactly mu-GDP with ``mu**2 = sum (sensitivity_t / sigma_t)**2``
    (Dong, Roth, Su 2019, Cor. 3.3), converted by Balle and Wang 2018, Thm 8. A record lies in one
    block of each partition: the dearest block is charged, once a partition.
    """

    name = "gdp"
    rank = 10
    settles = True

    def examine(self, event: Event, adjacency: Adjacency) -> float:
        """Return the Gaussian-DP parameter of ``event``."""
        found = 0.0
        for path in paths(event, adjacency):
            for part in path:
                if not isinstance(part, Gaussian):
                    raise UnknownCost(
                        f"no exact Gaussian-DP theorem for {type(part).__name__} under {adjacency}."
                    )
            found = max(found, squared_mu(path, adjacency))
        return math.sqrt(found)

    def mu(self, event: Event, adjacency: Adjacency) -> float:
        """Return the Gaussian-DP parameter of ``event``."""
        mu: float = self.known(event, adjacency)
        return mu

    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        return gaussian_epsilon(self.mu(event, adjacency), delta)

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        return gaussian_delta(self.mu(event, adjacency), epsilon)

    def scale(self, event: Event, epsilon: float, delta: float, adjacency: Adjacency) -> float:
        """Return the factor in closed form: mu is inversely proportional to the noise."""
        allowed = gaussian_mu(epsilon, delta)
        if allowed == 0:
            raise UnknownCost(
                f"Gaussian noise cannot meet epsilon={epsilon:g} with delta={delta:g}, "
                "however much of it is added."
            )
        return self.mu(event, adjacency) / allowed
