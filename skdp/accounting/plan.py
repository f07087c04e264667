"""Reduce a plan to the events that a single record can meet, with their numbers of occurrences."""

import itertools
import math
from collections.abc import Iterable

from skdp.accounting import events
from skdp.accounting.events import Adjacency, Composed, Event, OnBlock, Parts, Sampled, UnknownCost

# Distinct events with their numbers of occurrences. The order does not matter for the cost.
EventCounts = dict[Event, int]
Blocks = dict[int | str, EventCounts]

# Maximum number of combinations of blocks that a record can lie in. Plans with more raise
# UnknownCost. A choice of ours: each combination is priced separately.
MAX_PATHS = 256


def counts_of(event: Event) -> EventCounts:
    """Count the distinct events that ``event`` is composed of, in order of first appearance."""
    return _merged(event.flattened())


def _merged(pairs: Iterable[tuple[Event, int]]) -> EventCounts:
    total: EventCounts = {}
    for event, count in pairs:
        total[event] = total.get(event, 0) + count
    return total


def by_block(event: Event) -> tuple[EventCounts, dict[events.Partition, Blocks]]:
    """Separate the events on all rows from the events on each block of each partition."""
    common: EventCounts = {}
    blocks: dict[events.Partition, Blocks] = {}
    for part, count in counts_of(event).items():
        if not isinstance(part, OnBlock):
            common[part] = count
        else:
            blocks.setdefault(part.partition, {}).setdefault(part.block, {})[part.event] = count
    return common, blocks


def paths(event: Event, adjacency: Adjacency) -> list[EventCounts]:
    """Return the collections of events that a single record can meet. The costliest is the cost.

    A record lies in one block of each partition. So it meets the events on all rows and, for every
    partition, those on one of its blocks. Blocks that cannot be the costliest are left out.
    Parallel composition holds under both relations: a row keeps its number, hence its block.
    """
    return _block_paths(counts_of(event), adjacency)


def _block_paths(counts: EventCounts, adjacency: Adjacency) -> list[EventCounts]:
    """Return the collections of events that a record can meet in blocks, and blocks of blocks."""
    if not any(isinstance(part, OnBlock) for part in counts):
        return [counts]
    common, partitions = by_block(Composed(tuple(counts.items())))
    choices = [
        _costliest(
            (path for inside in blocks.values() for path in _block_paths(inside, adjacency)),
            adjacency,
        )
        for blocks in partitions.values()
    ]
    if math.prod(map(len, choices)) > MAX_PATHS:
        raise UnknownCost(
            f"more than {MAX_PATHS} combinations of blocks, none of them plainly the costliest."
        )
    return [
        _merged(pair for part in (common, *chosen) for pair in part.items())
        for chosen in itertools.product(*choices)
    ]


def opened(path: EventCounts) -> EventCounts:
    """Return the events with shuffled passes as the one answer that uses the record."""
    parts = (
        (part.event if isinstance(part, events.Shuffled) else part, n) for part, n in path.items()
    )
    return counts_of(Composed(tuple(parts)))


def _costliest(contents: Iterable[EventCounts], adjacency: Adjacency) -> list[EventCounts]:
    """Drop the blocks that cost no more than some other block."""
    distinct = list({tuple(sorted(item.items(), key=repr)): item for item in contents}.values())
    # Gaussian blocks are ordered: the one with the largest mu dominates all others.
    gaussian = [
        item for item in distinct if all(isinstance(part, events.Gaussian) for part in item)
    ]
    others = [item for item in distinct if item not in gaussian]
    top = [max(gaussian, key=lambda item: squared_mu(item, adjacency))] if gaussian else []
    kept: list[EventCounts] = []
    for item in sorted(top + others, key=_least_noise_first):
        if not any(_costs_no_less(other, item) for other in kept):
            kept.append(item)
    return kept


def _least_noise_first(counts: EventCounts) -> tuple[tuple[float, ...], int]:
    levels = [level for event in counts for level in noise_levels(event)]
    return tuple(sorted(levels)), -sum(counts.values())


def _costs_no_less(first: EventCounts, second: EventCounts) -> bool:
    """Whether every event of ``second`` has an event of its own in ``first`` that costs no less.

    Less noise of the same kind costs no less: further noise can be added to the answer afterwards
    (Gaussian and Laplace distributions are sums of one with less noise and another variable), and
    a noisy maximum is charged only by its epsilon.
    """
    if set(second) <= set(first):
        return all(first[event] >= count for event, count in second.items())
    if len(first) != 1 or len(second) != 1:
        return False
    (one, one_count), (other, other_count) = *first.items(), *second.items()
    same_kind = one.with_noise(lambda _: 1.0) == other.with_noise(lambda _: 1.0)
    if not same_kind or one_count < other_count:
        return False
    levels = zip(noise_levels(one), noise_levels(other), strict=True)
    return all(less <= more for less, more in levels)


def squared_mu(counts: EventCounts, adjacency: Adjacency) -> float:
    """Sum of squared mu over Gaussian events (Dong, Roth, Su 2019, Cor. 3.3)."""
    return sum(
        count * event.mu(adjacency) ** 2
        for event, count in counts.items()
        if isinstance(event, events.Gaussian)
    )


def joint_mu(counts: EventCounts, adjacency: Adjacency) -> float | None:
    """Gaussian-DP parameter of Gaussian events together. None if there are other events."""
    if not all(isinstance(event, events.Gaussian) for event in counts):
        return None
    return math.sqrt(squared_mu(counts, adjacency))


def sampled_counts(event: Sampled, adjacency: Adjacency) -> EventCounts:
    """Count the events on one sample. UnknownCost if no sampling theorem can apply to them."""
    counts = counts_of(event.event)
    if isinstance(event, events.FixedSizeSampled) and adjacency is Adjacency.ZERO_OUT:
        raise UnknownCost(
            "FixedSizeSampled is amplified under replace_one only: a record left out changes the "
            "number of rows, and with it the rate."
        )
    if isinstance(event, events.PoissonSampled) and adjacency is Adjacency.REPLACE_ONE:
        for part in counts:
            if not isinstance(part, (events.Gaussian, events.Laplace)):
                raise UnknownCost(
                    "a guarantee under replace_one does not cover a record left out of the "
                    f"sample, so PoissonSampled of {type(part).__name__} has no theorem under "
                    "replace_one."
                )
    return counts


def noise_levels(event: Event) -> tuple[float, ...]:
    """Return the noise multipliers in ``event``, in order."""
    levels: list[float] = []

    def record(noise_multiplier: float) -> float:
        levels.append(noise_multiplier)
        return noise_multiplier

    event.with_noise(record)
    return tuple(levels)


def coarsened(counts: Parts, ratio: float) -> Parts:
    """Round every noise multiplier down to a power of ``ratio``, and merge equal events.

    Less noise costs no less, so the cost of the result is an upper bound.
    """

    def rounded(noise_multiplier: float) -> float:
        if noise_multiplier == 0:
            return 0.0
        power = math.floor(math.log(noise_multiplier) / math.log(ratio))
        return min(noise_multiplier, ratio**power)

    return tuple(_merged((event.with_noise(rounded), count) for event, count in counts).items())
