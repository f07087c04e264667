"""Balls-and-bins amplification, by loss distributions of the optional package PLD-accounting."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from skdp.accounting.accountant import UnknownCost, least_factor, register
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.dominating import dominating_pair
from skdp.accounting.events import BallsAndBins, Composed, Event, Gaussian, OnBlock
from skdp.accounting.pairs import Array, Pair
from skdp.accounting.plan import Sequence, by_block, paths, sequence_of, squared_mu
from skdp.accounting.pld import PrivacyLossDistribution

# One evaluation takes a second or more, so a calibrated factor may be off by this share.
_TOLERANCE = 2e-4
# Step of the discretised losses, for noise multipliers up to 1; smaller in proportion above. It
# costs about 1 % of epsilon; a finer one takes time in proportion to its inverse square.
_STEP = 0.05
_TAIL = 1e-15  # mass that is counted as infinite loss


@dataclass(frozen=True)
class AllocationPair(Pair):
    """``(mean over j of N(e_j), N(0))``, e_j the j-th of ``n_bins`` unit vectors, over ``sigma``.

    It dominates a Gaussian pass over bins under zero-out (Chua et al. 2025, arXiv:2412.16802; Dong,
    Chen, Ma 2025). Its profile is that of losses rounded up (Feldman and Shenfeld 2026,
    arXiv:2602.17284).
    """

    sigma: float
    n_bins: int

    @property
    def symmetric(self) -> bool:
        return False

    @property
    def leaking(self) -> float:
        return max(self._losses(side).infinite for side in (True, False))

    def _losses(self, forward: bool) -> _Losses:
        return _losses(self.sigma, self.n_bins, forward)

    def forward(self, epsilon: Array) -> Array:
        return self._losses(True).profile(epsilon)

    def backward(self, epsilon: Array) -> Array:
        return self._losses(False).profile(epsilon)

    def reach(self, tail: float) -> tuple[float, float]:
        return self._losses(True).reach(tail), self._losses(False).reach(tail)


@dataclass(frozen=True, eq=False)
class _Losses:
    """Discrete privacy losses of one direction: positive values, masses, mass at infinity."""

    values: Array
    masses: Array
    infinite: float

    def profile(self, epsilon: Array) -> Array:
        """``sum of masses * (1 - exp(epsilon - value))`` over values above epsilon."""
        first = np.searchsorted(self.values, epsilon, side="right")
        # Suffix sums; exp(-value) is taken relative to epsilon, where it can't overflow.
        above = np.append(np.cumsum(self.masses[::-1])[::-1], 0.0)[first]
        weighted = self.masses * np.exp(-self.values)
        below = np.append(np.cumsum(weighted[::-1])[::-1], 0.0)[first]
        finite = np.maximum(above - np.exp(epsilon) * below, 0.0) + 1e-15 * above
        return np.asarray(self.infinite + finite)

    def reach(self, tail: float) -> float:
        """Epsilon beyond which the finite losses add less than ``tail`` to the profile."""
        if not len(self.values):
            return 0.0
        above = np.cumsum(self.masses[::-1])[::-1]
        kept = int(np.count_nonzero(above >= tail))
        return float(self.values[min(kept, len(self.values) - 1)])


@lru_cache(maxsize=64)
def _losses(sigma: float, n_bins: int, forward: bool) -> _Losses:
    from PLD_accounting import (
        AllocationSchemeConfig,
        Direction,
        PrivacyParams,
        gaussian_allocation_directional_pld,
    )

    found = gaussian_allocation_directional_pld(
        params=PrivacyParams(sigma=sigma, num_steps=n_bins),
        config=AllocationSchemeConfig(
            loss_discretization=_STEP / max(1.0, sigma), tail_truncation=_TAIL
        ),
        direction=Direction.REMOVE if forward else Direction.ADD,
    )
    values, masses = np.asarray(found.x_array), np.asarray(found.prob_arr)
    positive = values > 0
    return _Losses(values[positive], masses[positive], float(found.p_max))


@dominating_pair.register
def _(event: BallsAndBins, adjacency: Adjacency) -> Pair | None:
    if adjacency is Adjacency.REPLACE_ONE:
        raise UnknownCost("no dominating pair is known for BallsAndBins under replace_one.")
    if importlib.util.find_spec("PLD_accounting") is None:
        raise UnknownCost(
            "BallsAndBins needs the package PLD-accounting; install skdp[amplification]."
        )
    sigma = _noise(sequence_of(event.event))
    return None if sigma == 0 else AllocationPair(sigma, event.n_bins)


@register
class BallsAndBinsModel(PrivacyLossDistribution):
    """Plans with passes over bins that the records were thrown into, secretly and independently.

    Passes are `BallsAndBins` events, and blocks of a partition with ``allocation=True``. Under
    zero_out each is replaced by its dominating pair; all other events of the plan are as for "pld".
    Needs the extra ``skdp[amplification]``.
    """

    name = "balls_and_bins"
    rank = 8
    settles = False
    special = (BallsAndBins, OnBlock)

    def paths(self, event: Event, adjacency: Adjacency) -> list[Sequence]:
        found = paths(_with_passes(event), adjacency, keep=(BallsAndBins,))
        if not any(isinstance(part, BallsAndBins) for path in found for part in path):
            raise UnknownCost("there is no pass over bins in this plan.")
        return found

    def scale(self, event: Event, epsilon: float, delta: float, adjacency: Adjacency) -> float:
        def spent(factor: float) -> float:
            return self.epsilon(event.scaled(factor), delta, adjacency)

        return least_factor(spent, epsilon, who=self.name, delta=delta, tolerance=_TOLERANCE)


def _with_passes(event: Event) -> Composed:
    """Return the same plan with the blocks of a secret random allocation as one pass over bins.

    Bins with more noise than others are charged as if they had the least of it.
    """
    common, partitions = by_block(event)
    parts = list(common.items())
    for partition, blocks in partitions.items():
        if partition.allocation:
            least = min(_noise(content) for content in blocks.values())
            parts.append((BallsAndBins(partition.n_blocks, Gaussian(least)), 1))
            continue
        parts += [
            (OnBlock(partition, block, answer), count)
            for block, content in blocks.items()
            for answer, count in content.items()
        ]
    return Composed(tuple(parts))


def _noise(content: dict[Event, int]) -> float:
    """Noise multiplier of the one Gaussian answer that ``content`` amounts to, under zero_out."""
    if not content or not all(isinstance(part, Gaussian) for part in content):
        raise UnknownCost("passes over bins are priced for Gaussian answers only.")
    mu = math.sqrt(squared_mu(content, Adjacency.ZERO_OUT))
    return 0.0 if math.isinf(mu) else 1 / mu
