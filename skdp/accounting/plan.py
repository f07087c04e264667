"""What one record can meet in a plan: the sequences of events left after parallel composition."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

from skdp.accounting.accountant import UnknownCost
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events import BallsAndBins, Event, Gaussian, OnBlock, Partition, Shuffled

# Distinct events with their counts, in order of first appearance.
Sequence = dict[Event, int]
Key = tuple[tuple[Event, int], ...]
Kind = TypeVar("Kind", bound=Event)

# So many different fates of a record are told apart; plans with more are refused.
MOST_PATHS = 256


def sequence_of(event: Event) -> Sequence:
    """Count the distinct events that ``event`` consists of; order does not matter for the cost."""
    counts: Sequence = defaultdict(int)
    for part, count in event.flattened():
        counts[part] += count
    return dict(counts)


def only_event(event: Event, kind: type[Kind], what: str) -> Kind:
    """Return the one event, of a kind, that ``event`` consists of; or raise UnknownCost."""
    parts = sequence_of(event)
    part = next(iter(parts), None)
    if not isinstance(part, kind) or parts != {part: 1}:
        raise UnknownCost(f"only a single {what} is known here; ask 'mixed'.")
    return part


def by_block(event: Event) -> tuple[Sequence, dict[Partition, dict[int, Sequence]]]:
    """Tell what all records meet from what only the records of one block meet."""
    common: Sequence = {}
    blocks: dict[Partition, dict[int, Sequence]] = defaultdict(dict)
    for part, count in event.flattened():
        if not isinstance(part, OnBlock):
            common[part] = common.get(part, 0) + count
            continue
        if isinstance(part.event, OnBlock):
            raise UnknownCost("a block inside a block (OnBlock of OnBlock) has no theorem here.")
        content = blocks[part.partition].setdefault(part.block, {})
        content[part.event] = content.get(part.event, 0) + count
    return common, dict(blocks)


def paths(
    event: Event, adjacency: Adjacency, *, keep: tuple[type[Event], ...] = ()
) -> list[Sequence]:
    """Return the sequences of events that a single record can meet; the dearest one is the cost.

    A record lies in one block of each partition, so it meets what all records meet and, for every
    partition, what is asked of one of its blocks. Blocks that cannot be the dearest are left out.
    Parallel composition holds under both relations: a row keeps its number, hence its block.
    Passes over bins or shuffled records count as the one answer that uses the record, except for
    those of a type to ``keep``.
    """
    common, partitions = by_block(event)
    if not partitions:
        return [_once(common, keep)]
    choices = [_dearest(blocks.values(), adjacency) for blocks in partitions.values()]
    if math.prod(map(len, choices)) > MOST_PATHS:
        raise UnknownCost(
            f"more than {MOST_PATHS} combinations of blocks, none of them plainly the dearest."
        )
    return [
        _merged(_once(part, keep) for part in (common, *chosen))
        for chosen in itertools.product(*choices)
    ]


def _once(sequence: Sequence, keep: tuple[type[Event], ...]) -> Sequence:
    """Replace passes that use each record once by what is done to it then."""
    if not any(isinstance(event, (BallsAndBins, Shuffled)) for event in sequence):
        return sequence
    opened: Sequence = {}
    for event, count in sequence.items():
        met = event
        if not isinstance(event, keep):
            match event:
                case BallsAndBins(event=answer) | Shuffled(randomiser=answer):
                    met = answer
        for part, times in met.flattened():
            opened[part] = opened.get(part, 0) + count * times
    return opened


def _merged(sequences: Iterable[Sequence]) -> Sequence:
    total: Sequence = {}
    for sequence in sequences:
        for event, count in sequence.items():
            total[event] = total.get(event, 0) + count
    return total


def _dearest(contents: Iterable[Sequence], adjacency: Adjacency) -> list[Sequence]:
    """Leave out blocks which ask no more than another block does."""
    distinct = list({tuple(sorted(item.items(), key=repr)): item for item in contents}.values())
    # Gaussian blocks are in order: the one with the largest mu dominates all others.
    gaussian = [item for item in distinct if all(isinstance(part, Gaussian) for part in item)]
    others = [item for item in distinct if item not in gaussian]
    top = [max(gaussian, key=lambda item: squared_mu(item, adjacency))] if gaussian else []
    kept: list[Sequence] = []
    for item in sorted(top + others, key=_least_noise_first):
        if not any(_covers(other, item) for other in kept):
            kept.append(item)
    return kept


def squared_mu(sequence: Sequence, adjacency: Adjacency) -> float:
    """Sum of squared mu over Gaussian events (Dong, Roth, Su 2019, Cor. 3.3)."""
    return sum(
        count * event.mu(adjacency) ** 2
        for event, count in sequence.items()
        if isinstance(event, Gaussian)
    )


def noise_levels(event: Event) -> tuple[float, ...]:
    """Return the noise multipliers in ``event``, in order."""
    levels: list[float] = []

    def note(noise_multiplier: float) -> float:
        levels.append(noise_multiplier)
        return noise_multiplier

    event.with_noise(note)
    return tuple(levels)


def _least_noise_first(sequence: Sequence) -> tuple[tuple[float, ...], int]:
    levels = [level for event in sequence for level in noise_levels(event)]
    return tuple(sorted(levels)), -sum(sequence.values())


def _covers(dear: Sequence, cheap: Sequence) -> bool:
    """Whether every event of ``cheap`` has its own event in ``dear`` that costs no less.

    With less noise of the same kind an answer is no less informative: more noise can be added to
    it afterwards (both Gaussian and Laplace laws are divisible by a less noisy one).
    """
    if set(cheap) <= set(dear):
        return all(dear[event] >= count for event, count in cheap.items())
    if len(dear) != 1 or len(cheap) != 1:
        return False
    (first, first_count), (second, second_count) = *dear.items(), *cheap.items()
    same_kind = first.with_noise(lambda _: 1.0) == second.with_noise(lambda _: 1.0)
    if not same_kind or first_count < second_count:
        return False
    levels = zip(noise_levels(first), noise_levels(second), strict=True)
    return all(one <= other for one, other in levels)


def coarsened(sequence: Key, ratio: float) -> Key:
    """Round every noise multiplier down to a power of ``ratio``, and merge what becomes equal.

    Less noise costs no less, so the rounded sequence is an upper bound.
    """

    def rounded(noise_multiplier: float) -> float:
        if noise_multiplier == 0:
            return 0.0
        power = math.floor(math.log(noise_multiplier) / math.log(ratio))
        return min(noise_multiplier, ratio**power)

    merged: Sequence = {}
    for event, count in sequence:
        rounded_event = event.with_noise(rounded)
        merged[rounded_event] = merged.get(rounded_event, 0) + count
    return tuple(merged.items())
