"""Events on disjoint blocks of the rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from skdp.accounting.events.base import Composed, Event, NoiseChange


@dataclass(frozen=True)
class Partition:
    """One division of the row numbers into disjoint blocks, drawn without looking at the rows.

    Two partitions are the same only if all fields agree: the blocks of different epochs overlap,
    so their costs add up.

    Parameters
    ----------
    epoch : int
        Which division this is; a new division of the same rows needs a new number.
    n_blocks : int
    shares : tuple of float or None, default=None
        Chance that a given record lies in each block (block size over number of rows), if the
        division is drawn uniformly at random, whether or not it is published afterwards. None if
        the division is fixed, or not known to be uniform.
    allocation : bool, default=False
        Whether every record draws its block uniformly and independently of all others (balls and
        bins), the draws stay secret, and empty blocks are answered like any other.
    cuts : tuple of int or None, default=None
        Where blocks of unequal size begin and end, as n_blocks + 1 places in the order of the
        rows; block i is ``[cuts[i], cuts[i + 1])``. It tells divisions apart that have the same
        number of blocks. None for blocks of equal size.
    """

    epoch: int
    n_blocks: int
    shares: tuple[float, ...] | None = None
    allocation: bool = False
    cuts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.n_blocks < 1:
            raise ValueError(f"Partition: n_blocks must be at least 1; got {self.n_blocks!r}.")
        if self.cuts is not None and len(self.cuts) != self.n_blocks + 1:
            raise ValueError(
                f"Partition: {self.n_blocks} blocks have {self.n_blocks + 1} cuts; got "
                f"{len(self.cuts)}."
            )
        if self.shares is not None:
            fitting = len(self.shares) == self.n_blocks and min(self.shares) >= 0
            if not fitting or not math.isclose(sum(self.shares), 1.0, rel_tol=1e-9):
                raise ValueError(
                    "Partition: shares must be n_blocks numbers >= 0 that add up to 1; "
                    f"got {self.shares!r}."
                )


@dataclass(frozen=True)
class OnBlock(Event):
    """An event on the rows of one block of a partition that was drawn independently of the rows.

    Meaning: ``event`` is applied to the rows whose numbers lie in block ``block``. A record lies in
    one block of the partition only, so the costs of *different* blocks of the *same* partition do
    not add: their maximum is charged (parallel composition, McSherry 2009, Thm 4; valid here
    because both relations keep row numbers in place). Asking the same block again adds up.
    """

    partition: Partition
    block: int
    event: Event

    def __post_init__(self) -> None:
        if not 0 <= self.block < self.partition.n_blocks:
            raise ValueError(
                f"OnBlock: block must lie in [0, {self.partition.n_blocks}); got {self.block!r}."
            )

    def with_noise(self, change: NoiseChange) -> OnBlock:
        return replace(self, event=self.event.with_noise(change))

    def scaled(self, factor: float) -> OnBlock:
        return replace(self, event=self.event.scaled(factor))

    def flattened(self) -> Iterator[tuple[Event, int]]:
        for inner, count in self.event.flattened():
            yield replace(self, event=inner), count


@dataclass(frozen=True)
class BallsAndBins(Event):
    """One pass over blocks to which the records were thrown like balls into bins.

    Meaning: every record draws one of ``n_bins`` bins uniformly, independently of all others, and
    the draws stay secret; then ``event`` is applied to each bin in turn, each time allowed to
    depend on earlier answers. All ``n_bins`` answers are released, empty bins included, and no
    answer is divided by a number of rows that came out. Each record being used once, the pass
    costs no more than one answer. For Gaussian answers under zero-out the secret draws make it
    cost less: the pair ``(mean over j of N(e_j), N(0))`` dominates (Chua et al. 2025,
    arXiv:2412.16802; Feldman and Shenfeld 2026, arXiv:2602.17284).

    Parameters
    ----------
    n_bins : int
    event : Gaussian
        The answer on one bin. Where the noise varies over the bins, the least of it.
    """

    n_bins: int
    event: Event

    def __post_init__(self) -> None:
        if self.n_bins < 1:
            raise ValueError(f"BallsAndBins: n_bins must be at least 1; got {self.n_bins!r}.")

    def with_noise(self, change: NoiseChange) -> BallsAndBins:
        return replace(self, event=self.event.with_noise(change))

    def flattened(self) -> Iterator[tuple[Event, int]]:
        if self.n_bins == 1:
            yield from self.event.flattened()
        else:
            yield self, 1


def partitions_in(event: Event) -> Iterator[Partition]:
    """Yield the partition of every event on a block inside ``event``."""
    if isinstance(event, OnBlock):
        yield event.partition
    parts = event.parts if isinstance(event, Composed) else ((getattr(event, "event", None), 1),)
    for inner, _ in parts:
        if inner is not None:
            yield from partitions_in(inner)


def in_later_epochs(event: Event, shift: int) -> Event:
    """Return the same event on partitions whose epochs are numbered ``shift`` higher.

    Every fit counts its epochs from 0 and draws divisions of its own. Where fits are composed,
    their partitions must not be taken for each other: a record may lie in the dearest block of
    each.
    """
    if not shift or not any(True for _ in partitions_in(event)):
        return event
    if isinstance(event, Composed):
        return Composed(tuple((in_later_epochs(part, shift), count) for part, count in event.parts))
    changed: dict[str, Any] = {"event": in_later_epochs(event.event, shift)}  # type: ignore[attr-defined]
    if isinstance(event, OnBlock):
        changed["partition"] = replace(event.partition, epoch=event.partition.epoch + shift)
    moved: Event = replace(event, **changed)  # type: ignore[type-var]
    return moved
