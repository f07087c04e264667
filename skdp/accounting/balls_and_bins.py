"""Balls-and-bins amplification, through the optional package PLD-accounting."""

from __future__ import annotations

import importlib.util
import math
from functools import lru_cache

from skdp.accounting.accountant import Accountant, UnknownCost, least_factor, register
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events import BallsAndBins, Event, Gaussian, OnBlock
from skdp.accounting.plan import by_block, sequence_of, squared_mu

# One evaluation takes seconds, so a calibrated factor is allowed to be off by this share.
_TOLERANCE = 2e-4


@register
class BallsAndBinsModel(Accountant):
    """One or more passes over bins that the records were thrown into, secretly and independently.

    Prices `BallsAndBins` events, and blocks of a partition with ``allocation=True``, by the random
    allocation bounds of Feldman and Shenfeld 2026 (arXiv:2602.17284) under zero_out; needs the
    extra ``skdp[amplification]``.
    """

    name = "balls_and_bins"
    rank = 8
    special = (BallsAndBins, OnBlock)

    def examine(self, event: Event, adjacency: Adjacency) -> tuple[BallsAndBins, int]:
        """Return the pass that ``event`` consists of, and how often it is made."""
        passes = _passes(event)
        if adjacency is Adjacency.REPLACE_ONE:
            raise UnknownCost("no dominating pair is known for BallsAndBins under replace_one.")
        if importlib.util.find_spec("PLD_accounting") is None:
            raise UnknownCost(
                "BallsAndBins needs the package PLD-accounting; install skdp[amplification]."
            )
        return passes

    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        one_pass, count = self.known(event, adjacency)
        assert isinstance(one_pass.event, Gaussian)
        sigma = one_pass.event.noise_multiplier
        if sigma == 0 or delta == 0:
            return math.inf
        if delta >= 1:
            return 0.0
        return _epsilon(sigma, one_pass.n_bins, count, delta)

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        one_pass, count = self.known(event, adjacency)
        assert isinstance(one_pass.event, Gaussian)
        sigma = one_pass.event.noise_multiplier
        if sigma == 0:
            return 1.0
        if epsilon <= 0:
            return 1.0  # the package answers for positive epsilons only
        return _delta(sigma, one_pass.n_bins, count, epsilon)

    def scale(self, event: Event, epsilon: float, delta: float, adjacency: Adjacency) -> float:
        def spent(factor: float) -> float:
            return self.epsilon(event.scaled(factor), delta, adjacency)

        return least_factor(spent, epsilon, who=self.name, delta=delta, tolerance=_TOLERANCE)


def _passes(event: Event) -> tuple[BallsAndBins, int]:
    common, partitions = by_block(event)
    if not partitions:
        if len(common) != 1:
            raise UnknownCost("only passes over bins with one noise level are known here.")
        ((part, count),) = common.items()
        if not isinstance(part, BallsAndBins):
            raise UnknownCost(f"{type(part).__name__} is not a pass over bins.")
        inner = sequence_of(part.event)
        return BallsAndBins(part.n_bins, Gaussian(_noise(inner))), count
    if common or not all(partition.allocation for partition in partitions):
        raise UnknownCost(
            "blocks of partitions without allocation=True, and events on all rows, are no passes "
            "over bins."
        )
    # Bins with more noise than others are charged as if they had the least of it.
    found = {
        BallsAndBins(
            partition.n_blocks,
            Gaussian(min(_noise(content) for content in blocks.values())),
        )
        for partition, blocks in partitions.items()
    }
    if len(found) > 1:
        raise UnknownCost("passes over bins must all have the same bins and the same noise.")
    (one_pass,) = found
    return one_pass, len(partitions)


def _noise(content: dict[Event, int]) -> float:
    """Noise multiplier of the one Gaussian answer that ``content`` amounts to, under zero_out."""
    if not content or not all(isinstance(part, Gaussian) for part in content):
        raise UnknownCost("passes over bins are priced for Gaussian answers only.")
    mu = math.sqrt(squared_mu(content, Adjacency.ZERO_OUT))
    return 0.0 if math.isinf(mu) else 1 / mu


@lru_cache(maxsize=256)
def _epsilon(sigma: float, n_bins: int, epochs: int, delta: float) -> float:
    from PLD_accounting import gaussian_allocation_epsilon_range

    upper, _ = gaussian_allocation_epsilon_range(
        delta=delta, sigma=sigma, num_steps=n_bins, num_epochs=epochs
    )
    return float(upper)


@lru_cache(maxsize=256)
def _delta(sigma: float, n_bins: int, epochs: int, epsilon: float) -> float:
    from PLD_accounting import (
        AllocationSchemeConfig,
        PrivacyParams,
        gaussian_allocation_delta_configurable,
    )

    params = PrivacyParams(sigma=sigma, num_steps=n_bins, num_epochs=epochs, epsilon=epsilon)
    config = AllocationSchemeConfig(loss_discretization=min(1e-2, epsilon / 100))
    return min(1.0, float(gaussian_allocation_delta_configurable(params=params, config=config)))
