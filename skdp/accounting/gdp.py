"""Exact Gaussian-DP accounting: plans of full-batch Gaussian releases are one Gaussian."""

from __future__ import annotations

import math
from collections import defaultdict

from skdp.accounting.accountant import Accountant, UnknownCost, register
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events import Composed, Event, Gaussian, OnBlock, Partition
from skdp.accounting.gaussian_tradeoff import gaussian_delta, gaussian_epsilon, gaussian_mu


def _squared_mu(event: Event, adjacency: Adjacency) -> float:
    """Sum of squared mu over a composition (Dong, Roth, Su 2019, Cor. 3.3)."""
    if isinstance(event, Gaussian):
        if event.noise_multiplier == 0:
            return math.inf
        return (event.sensitivity(adjacency) / event.noise_multiplier) ** 2
    if isinstance(event, OnBlock):
        return _squared_mu(event.event, adjacency)
    total = 0.0
    blocks: dict[Partition, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    assert isinstance(event, Composed)
    for part, count in event.flattened():
        cost = count * _squared_mu(part, adjacency)
        if isinstance(part, OnBlock):
            blocks[part.partition][part.block] += cost
        else:
            total += cost
    # A record lies in one block of each partition: the dearest block is charged, once a partition.
    return total + sum(max(costs.values()) for costs in blocks.values())


@register
class GaussianDP(Accountant):
    """Exact for full-batch Gaussian releases of any noise schedule, also on disjoint blocks.

    The composition is exactly mu-GDP with ``mu**2 = sum (sensitivity_t / sigma_t)**2``
    (Dong, Roth, Su 2019, Cor. 3.3), converted by Balle and Wang 2018, Thm 8.
    """

    name = "gdp"

    def objection(self, event: Event, adjacency: Adjacency) -> str | None:
        if isinstance(event, Gaussian):
            return None
        if isinstance(event, OnBlock):
            return self.objection(event.event, adjacency)
        if isinstance(event, Composed):
            objections = (self.objection(part, adjacency) for part, _ in event.parts)
            return next((objection for objection in objections if objection), None)
        return f"no exact Gaussian-DP theorem for {type(event).__name__} under {adjacency}."

    def mu(self, event: Event, adjacency: Adjacency) -> float:
        """Return the Gaussian-DP parameter of ``event``."""
        self.require(event, adjacency)
        return math.sqrt(_squared_mu(event, adjacency))

    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        return gaussian_epsilon(self.mu(event, adjacency), delta)

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        return gaussian_delta(self.mu(event, adjacency), epsilon)

    def scale(self, event: Event, epsilon: float, delta: float, adjacency: Adjacency) -> float:
        """Closed form: mu is inversely proportional to the noise."""
        allowed = gaussian_mu(epsilon, delta)
        if allowed == 0:
            raise UnknownCost(
                f"Gaussian noise cannot meet epsilon={epsilon:g} with delta={delta:g}, "
                "however much of it is added."
            )
        return self.mu(event, adjacency) / allowed
