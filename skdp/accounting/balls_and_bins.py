"""Balls-and-bins amplification, by loss distributions of the optional package PLD-accounting."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from skdp._numbers import Array
from skdp.accounting.accountant import Accountant
from skdp.accounting.events.base import Adjacency, Composed, Event, UnknownCost
from skdp.accounting.events.mechanisms import Gaussian
from skdp.accounting.events.wrappers import BallsAndBins, OnBlock
from skdp.accounting.pairs import Pair
from skdp.accounting.plan import EventCounts, by_block, counts_of, joint_mu, paths
from skdp.accounting.pld import PLDAccountant, dominating_pair

# Step of the discretised losses for noise multipliers up to 1; above, it is inversely proportional
# to the noise multiplier. It adds about 1 % to epsilon; the time is inversely proportional to its
# square.
_STEP = 0.05


@dataclass(frozen=True)
class AllocationPair(Pair):
    """``(mean over j of N(e_j), N(0))``, e_j the j-th of ``n_bins`` unit vectors, over ``sigma``.

    It dominates a Gaussian pass over bins under zero-out (Chua et al. 2025, arXiv:2412.16802; Dong,
    Chen, Ma 2025). Its profile is computed from losses that are rounded up (Feldman and Shenfeld
    2026, arXiv:2602.17284).
    """

    sigma: float
    n_bins: int
    symmetric = False

    @property
    def infinity_mass(self) -> float:
        return max(self._losses(forward).infinity_mass for forward in (True, False))

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
    """Discrete privacy losses of one direction: positive values, their masses, mass at infinity."""

    values: Array
    masses: Array
    infinity_mass: float

    def profile(self, epsilon: Array) -> Array:
        """``sum of masses * (1 - exp(epsilon - value))`` over values above epsilon."""
        first = np.searchsorted(self.values, epsilon, side="right")
        # Suffix sums over the values above epsilon.
        above = np.append(np.cumsum(self.masses[::-1])[::-1], 0.0)[first]
        weighted = self.masses * np.exp(-self.values)
        below = np.append(np.cumsum(weighted[::-1])[::-1], 0.0)[first]
        finite = np.maximum(above - np.exp(epsilon) * below, 0.0) + 1e-15 * above
        return np.asarray(self.infinity_mass + finite)

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

    distribution = gaussian_allocation_directional_pld(
        params=PrivacyParams(sigma=sigma, num_steps=n_bins),
        # The mass of either tail is counted as infinite loss.
        config=AllocationSchemeConfig(
            loss_discretization=_STEP / max(1.0, sigma),
            tail_truncation=1e-15,  # counted as infinite loss
        ),
        direction=Direction.REMOVE if forward else Direction.ADD,
    )
    values, masses = np.asarray(distribution.x_array), np.asarray(distribution.prob_arr)
    positive = values > 0
    return _Losses(values[positive], masses[positive], float(distribution.p_max))


@dominating_pair.register
def _(event: BallsAndBins, adjacency: Adjacency) -> Pair | None:
    if adjacency is Adjacency.REPLACE_ONE:
        raise UnknownCost("no dominating pair is known for BallsAndBins under replace_one.")
    if importlib.util.find_spec("PLD_accounting") is None:
        raise UnknownCost(
            "BallsAndBins needs the package PLD-accounting; install skdp[amplification]."
        )
    sigma = _noise(counts_of(event.event))
    return None if sigma == 0 else AllocationPair(sigma, event.n_bins)


class BallsAndBinsAccountant(PLDAccountant):
    """Amplification of passes over bins to which records are assigned secretly and independently.

    Passes are `BallsAndBins` events, and blocks of a partition with ``allocation=True``. Under
    zero_out each is replaced by its dominating pair; all other events are treated as by "pld".
    Needs the extra ``skdp[amplification]``.
    """

    name = "balls_and_bins"
    rank = 8
    is_tight = False
    special = (BallsAndBins, OnBlock)
    tolerance = 2e-4  # coarser than elsewhere, since an evaluation takes a second or more
    scale = Accountant.scale

    def paths(self, event: Event, adjacency: Adjacency) -> list[EventCounts]:
        kept = paths(_with_passes(event), adjacency, keep=(BallsAndBins,))
        if not any(isinstance(part, BallsAndBins) for path in kept for part in path):
            raise UnknownCost("there is no pass over bins in this plan.")
        return kept


def _with_passes(event: Event) -> Composed:
    """Return the same plan with the blocks of each secret random allocation as a pass over bins.

    All bins are charged as if they had the noise of the bin with the least of it.
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


def _noise(content: EventCounts) -> float:
    """Noise multiplier, under zero_out, of one Gaussian answer that costs as much as ``content``.

    0 if there is an answer without noise.
    """
    mu = joint_mu(content, Adjacency.ZERO_OUT)
    if not content or mu is None:
        raise UnknownCost("passes over bins are priced for Gaussian answers only.")
    return 0.0 if math.isinf(mu) else 1 / mu
