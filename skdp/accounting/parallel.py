"""Parallel composition over a uniformly random partition: the average of deltas."""

from __future__ import annotations

import itertools
import math

from skdp.accounting.accountant import Accountant, UnknownCost, register
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events import Composed, Event, OnBlock
from skdp.accounting.gdp import GaussianDP
from skdp.accounting.plan import MOST_PATHS, Key, by_block
from skdp.accounting.pld import PrivacyLossDistribution

# Chance that a record meets this plan, and the plan.
Fate = tuple[float, Composed]


@register
class ParallelComposition(Accountant):
    """Average of deltas over the blocks of a uniformly random partition, instead of the maximum.

    ``delta(epsilon) = sum over blocks of share_k delta_k(epsilon)``: the output is a mixture over
    partitions, and the hockey-stick divergence is jointly convex. Needs partitions with ``shares``;
    for all others "gdp" and "pld" charge the dearest block, and so does this one for those of them
    that occur in the same plan.
    """

    name = "parallel"
    rank = 5
    settles = True
    special = (OnBlock,)

    def examine(self, event: Event, adjacency: Adjacency) -> list[Fate]:
        fates = _fates(event)
        for _, plan in fates:
            _pricer(plan, adjacency)
        return fates

    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        fates = self.known(event, adjacency)
        low = 0.0
        high = max(_pricer(plan, adjacency).epsilon(plan, delta, adjacency) for _, plan in fates)
        if not math.isfinite(high) or _average(fates, low, adjacency) <= delta:
            return high if not math.isfinite(high) else 0.0
        while high - low > 1e-7 * high:
            middle = (low + high) / 2
            if _average(fates, middle, adjacency) <= delta:
                high = middle
            else:
                low = middle
        return high

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        return _average(self.known(event, adjacency), epsilon, adjacency)


def _fates(event: Event) -> list[Fate]:
    """Return what a record may meet, by the block of each random partition that it falls in."""
    common, partitions = by_block(event)
    fixed = dict(common)
    choices: list[list[tuple[float, Key]]] = []
    for partition, blocks in partitions.items():
        if partition.shares is None:
            for block, content in blocks.items():
                fixed |= {OnBlock(partition, block, part): n for part, n in content.items()}
            continue
        weights: dict[Key, float] = {}
        for block, share in enumerate(partition.shares):
            content_key = tuple(sorted(blocks.get(block, {}).items(), key=repr))
            weights[content_key] = weights.get(content_key, 0.0) + share
        choices.append([(weight, content) for content, weight in weights.items()])
    if not choices:
        raise UnknownCost("no partition of this plan is declared to be drawn uniformly (shares).")
    if math.prod(map(len, choices)) > MOST_PATHS:
        raise UnknownCost(f"more than {MOST_PATHS} combinations of different blocks.")
    return [
        (
            math.prod(weight for weight, _ in chosen),
            Composed((*fixed.items(), *itertools.chain(*(content for _, content in chosen)))),
        )
        for chosen in itertools.product(*choices)
    ]


def _pricer(plan: Composed, adjacency: Adjacency) -> Accountant:
    exact = GaussianDP()
    if exact.objection(plan, adjacency) is None:
        return exact
    numeric = PrivacyLossDistribution()
    numeric.examine(plan, adjacency)
    return numeric


def _average(fates: list[Fate], epsilon: float, adjacency: Adjacency) -> float:
    return min(
        1.0,
        sum(
            weight * _pricer(plan, adjacency).delta(plan, epsilon, adjacency)
            for weight, plan in fates
        ),
    )
