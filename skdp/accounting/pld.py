"""Accounting by privacy-loss distributions: tight for plans of any mixture of known mechanisms."""

from __future__ import annotations

import math
from functools import lru_cache

from skdp.accounting.accountant import Accountant, UnknownCost, least_factor, register
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.composition import FULL, ROUGH, Effort, Pairs, delta_of, epsilon_of
from skdp.accounting.dominating import dominating_pair
from skdp.accounting.events import Composed, Event
from skdp.accounting.pairs import Pair
from skdp.accounting.plan import Key, Sequence, coarsened, paths, sequence_of

# More distinct noise levels than this are rounded down to a grid of this ratio first.
MOST_LEVELS, LIMIT_GRID = 2000, 1.0005
# Calibration searches with noise levels rounded down to a grid of this ratio.
SEARCH_GRID = 1.005
# Tails of smaller mass are lost among the smallest numbers of float64.
LEAST_DELTA = 1e-280
# Up to so many levels an evaluation takes milliseconds, and the answer is refined further.
FEW_LEVELS = 32


@register
class PrivacyLossDistribution(Accountant):
    """Fast Fourier transform of privacy losses: tight for sampled, Laplace and mixed plans.

    Each event is replaced by its dominating pair (see ``dominating.py``), each pair by its
    connect-the-dots discretisation; the two directions of a pair are composed separately, and the
    larger cost is charged. With delta = 0 there is no finite answer here; ask "pure".
    """

    name = "pld"
    rank = 30
    settles = True

    def paths(self, event: Event, adjacency: Adjacency) -> list[Sequence]:
        """Return the sequences of events that a single record can meet."""
        return paths(event, adjacency)

    def examine(self, event: Event, adjacency: Adjacency) -> object:
        return [_pairs(tuple(path.items()), adjacency) for path in self.paths(event, adjacency)]

    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        return self._epsilon(event, delta, adjacency, FULL)

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        self.known(event, adjacency)
        return max(
            _sequence_delta(tuple(path.items()), epsilon, adjacency)
            for path in self.paths(event, adjacency)
        )

    def scale(self, event: Event, epsilon: float, delta: float, adjacency: Adjacency) -> float:
        """Search on a rough bound, few noise levels on a coarse lattice; end on the full one."""
        self.known(event, adjacency)
        sequence = tuple(sequence_of(event).items())
        rough = Composed(coarsened(sequence, SEARCH_GRID))
        rougher = Composed(coarsened(sequence, SEARCH_GRID**2))

        def spent_roughly(factor: float) -> float:
            return self._epsilon(rough.scaled(factor), delta, adjacency, ROUGH)

        def spent(factor: float) -> float:
            return self.epsilon(event.scaled(factor), delta, adjacency)

        factor = least_factor(spent_roughly, epsilon, who=self.name, delta=delta)
        if event.scaled(2.0) == event:
            return factor
        # What twice the rounding adds is about what the rounding has added.
        added = self._epsilon(rougher.scaled(factor), delta, adjacency, ROUGH) / epsilon
        if not added > 0:  # delta is so large that the rough bound is 0
            return least_factor(spent, epsilon, who=self.name, delta=delta, guess=factor)
        aim = epsilon * added
        near = 1e-4 if len(sequence) <= FEW_LEVELS else 9e-4
        for _ in range(5):
            aim *= 1 - near / 3
            factor = least_factor(spent_roughly, aim, who=self.name, delta=delta, guess=factor)
            cost = spent(factor)
            if (1 - near) * epsilon <= cost <= epsilon:
                return factor
            if not 0.5 * epsilon < cost < 2 * epsilon:
                break
            aim *= epsilon / cost
        return least_factor(spent, epsilon, who=self.name, delta=delta, guess=factor)

    def _epsilon(self, event: Event, delta: float, adjacency: Adjacency, effort: Effort) -> float:
        self.known(event, adjacency)
        if 0 < delta < LEAST_DELTA:
            raise UnknownCost(
                f"accountant {self.name!r} cannot tell a delta of {delta:g} from 0; choose at "
                f"least {LEAST_DELTA:g}, or 0 for pure differential privacy."
            )
        return max(
            _sequence_epsilon(tuple(path.items()), delta, adjacency, effort)
            for path in self.paths(event, adjacency)
        )


@lru_cache(maxsize=256)
def _sequence_epsilon(sequence: Key, delta: float, adjacency: Adjacency, effort: Effort) -> float:
    limited = sequence if len(sequence) <= MOST_LEVELS else coarsened(sequence, LIMIT_GRID)
    pairs, coarse = _pairs(limited, adjacency), _pairs(_few_levels(sequence), adjacency)
    if pairs is None or coarse is None or (delta == 0 and pairs):
        return math.inf
    return epsilon_of(pairs, coarse, delta, effort)


@lru_cache(maxsize=256)
def _sequence_delta(sequence: Key, epsilon: float, adjacency: Adjacency) -> float:
    limited = sequence if len(sequence) <= MOST_LEVELS else coarsened(sequence, LIMIT_GRID)
    pairs, coarse = _pairs(limited, adjacency), _pairs(_few_levels(sequence), adjacency)
    if pairs is None or coarse is None:
        return 1.0
    return delta_of(pairs, coarse, epsilon)


@lru_cache(maxsize=256)
def _pairs(sequence: Key, adjacency: Adjacency) -> Pairs | None:
    """Pairs of a sequence, equal ones merged; None if an event has no finite epsilon."""
    merged: dict[Pair, int] = {}
    for event, count in sequence:
        pair = dominating_pair(event, adjacency)
        if pair is None:
            return None
        merged[pair] = merged.get(pair, 0) + count
    return tuple(merged.items())


def _few_levels(sequence: Key) -> Key:
    """Coarsen until a sketch of every level is quick."""
    for ratio in (1.01, 1.03, 1.1):
        if len(sequence) > FEW_LEVELS:
            sequence = coarsened(sequence, ratio)
    return sequence
