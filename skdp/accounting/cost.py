"""The cost of fits and other tools: composed on the same rows, the maximum on disjoint parts."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from skdp._numbers import require
from skdp.accounting.events import Adjacency, Composed, Event, OnBlock, Partition, walk
from skdp.accounting.pricing import price
from skdp.accounting.statement import PrivacyStatement, ReleaseRecord

# A part of a split, or of a split of a part: from the outermost split to the innermost.
Part: TypeAlias = tuple[tuple[Partition, int | str], ...]

NAMED_PART = (
    "These {}s are those of the part {!r} of the people. Who is in which part, and how many there "
    "are in each, is public, and no person is in two parts: fits on other parts cost the people "
    "of this part nothing (parallel composition). Fits outside of any part count for all of them."
)
_FROM_THE_WEAKEST = ("none", "seeded", "system")  # sources of noise


@dataclass(frozen=True)
class Cost:
    """Releases and the terms of their guarantee. The only maker of a `PrivacyStatement`.

    ``one + other`` is the cost of both on the same rows. The releases of the second may depend on
    the answers of the first. Each cost has its own batches, blocks and noise: the sum does not
    hold for fits that had the same seed. ``one | other`` is the cost of both on disjoint parts of
    the rows, which a split made without looking at them: a record meets one of the two, so the
    maximum is charged (parallel composition, McSherry 2009, Thm 4).

    Attributes
    ----------
    releases : tuple of ReleaseRecord
        Distinct releases with counts, in order of first appearance.
    delta : float or None
        The delta at which the cost is stated. None if the summands have different ones.
    adjacency : str
    unit : {"row", "group"}, default="row"
        Unit of privacy.
    n : int or None, default=None
        Number of units, if it is public and common to all summands.
    assumptions : tuple of str, default=()
    noise_source : {"system", "seeded", "none"}, default="system"
    part : tuple of (Partition, int or str), default=()
        The part of the rows that is read: of a random split by its number, of a division of the
        people by its name, () for all rows.
    """

    releases: tuple[ReleaseRecord, ...]
    delta: float | None
    adjacency: str
    unit: str = "row"
    n: int | None = None
    assumptions: tuple[str, ...] = ()
    noise_source: str = "system"
    part: Part = ()
    _certified: tuple[tuple[ReleaseRecord, ...], float | None, float, str] | None = None

    @classmethod
    def of(cls, statement: PrivacyStatement) -> Cost:
        """Return the contents of a statement.

        Parameters
        ----------
        statement : PrivacyStatement

        Returns
        -------
        Cost
        """
        n = statement.n_rows if statement.unit == "row" else statement.n_groups
        return cls(
            statement.releases,
            statement.delta,
            statement.adjacency,
            statement.unit,
            n,
            statement.assumptions,
            statement.noise_source,
        )

    @property
    def event(self) -> Composed:
        """All releases as one event."""
        return Composed(tuple((record.event, record.count) for record in self._on_part))

    @property
    def _on_part(self) -> tuple[ReleaseRecord, ...]:
        releases = self.releases
        for place in reversed(self.part):
            releases = _on_block(releases, *place)
        return releases

    # ------------------------------------------------------------------ several costs

    def __add__(self, other: Cost) -> Cost:
        """Return the cost of both on the same rows."""
        epoch = 1 + max((block.epoch for block in _own_partitions(self.event)), default=-1)
        shifted = (
            replace(record, event=_in_later_epochs(record.event, epoch))
            for record in other._on_part
        )
        return self._joined(other, (*self._on_part, *shifted))

    def __or__(self, other: Cost) -> Cost:
        """Return the cost of both on disjoint parts of the rows."""
        split = Partition(0, 2)
        sides = enumerate((self, other))
        blocks = (_on_block(side._on_part, split, number) for number, side in sides)
        return self._joined(other, tuple(record for block in blocks for record in block))

    def _joined(self, other: Cost, releases: Iterable[ReleaseRecord]) -> Cost:
        terms = sorted({self.adjacency, other.adjacency})
        if len(terms) > 1:
            raise ValueError(
                f"the fits state different adjacencies ({terms}), and such guarantees do not "
                "add up to one. Fit all of them under one adjacency."
            )
        if self.unit != other.unit:
            raise ValueError(
                "some of the fits protect single rows and some protect groups of rows, and such "
                "guarantees do not add up to one. Fit all of them with the same groups."
            )
        distinct: dict[tuple[str, Event], ReleaseRecord] = {}
        for record in releases:
            key = record.kind, record.event
            known = distinct.get(key)
            count = record.count if known is None else known.count + record.count
            distinct[key] = record if known is None else replace(known, count=count)
        # A step that releases nothing, such as a preprocessor with constants, states a delta of 0.
        deltas = {cost.delta for cost in (self, other) if cost.releases} or {self.delta}
        return Cost(
            tuple(distinct.values()),
            deltas.pop() if len(deltas) == 1 else None,
            self.adjacency,
            self.unit,
            self.n if self.n == other.n else None,
            tuple(dict.fromkeys((*self._all_assumptions, *other._all_assumptions))),
            min(self.noise_source, other.noise_source, key=_FROM_THE_WEAKEST.index),
        )

    # ------------------------------------------------------------------ price and statement

    def certify(self, epsilon: float, theorem: str) -> Cost:
        """Return the cost with a price that is known for these very releases and this delta.

        Parameters
        ----------
        epsilon : float
            As a calibration has certified it.
        theorem : str

        Returns
        -------
        Cost
        """
        return replace(self, _certified=(self.releases, self.delta, epsilon, theorem))

    def price(self) -> tuple[float, str]:
        """Return the certified epsilon, and the theorem behind it.

        Returns
        -------
        epsilon : float
        theorem : str

        Raises
        ------
        ValueError
            If delta is out of range, or the fits state different ones.
        UnknownCost
            If no theorem covers all releases together.
        """
        stated = self._stated
        if self._certified is not None:
            releases, delta, epsilon, theorem = self._certified
            if releases is self.releases and delta == stated:
                return epsilon, theorem
        return price(self.event, stated, Adjacency.parse(self.adjacency, labels=True))

    def statement(self) -> PrivacyStatement:
        """Return the privacy statement.

        Returns
        -------
        PrivacyStatement

        Raises
        ------
        ValueError, UnknownCost
            As `price`.
        """
        epsilon, certifier = self.price()
        return PrivacyStatement(
            epsilon=epsilon,
            delta=self._stated,
            adjacency=self.adjacency,
            accountant=certifier,
            releases=self._on_part,
            assumptions=self._all_assumptions,
            noise_source=self.noise_source,
            n_rows=self.n if self.unit == "row" else None,
            unit=self.unit,
            n_groups=self.n if self.unit == "group" else None,
        )

    @property
    def _stated(self) -> float:
        if self.delta is None:
            raise ValueError("the fits state different deltas. Pass the delta of the total.")
        require("delta", self.delta, "lie in [0, 1)", 0 <= self.delta < 1)
        return self.delta

    @property
    def _all_assumptions(self) -> tuple[str, ...]:
        if not self.part:
            return self.assumptions
        split = [place for place in self.part if not isinstance(place[1], str)]
        numbers = " of ".join(
            f"part {int(number) + 1} of {partition.n_blocks}"
            for partition, number in reversed(split)
        )
        random = (
            f"These {self.unit}s are {numbers} of a random split that does not depend on the data. "
            f"Computations on other parts do not use up the budget of these {self.unit}s."
        )
        names = [name for _, name in self.part if isinstance(name, str)]
        named = (NAMED_PART.format(self.unit, name) for name in names)
        return (*self.assumptions, *named, *([random] if split else []))


def composed(
    who: str, costs: Iterable[Cost], delta: float | None = None, disjoint: bool = False
) -> Cost:
    """Return the cost of all on the same rows, or on disjoint rows, at one delta.

    Parameters
    ----------
    who : str
        For messages.
    costs : iterable of Cost
        At least one.
    delta : float or None, default=None
        Of the total. None for the one that all of them state.
    disjoint : bool, default=False
        Whether each cost is of other rows.

    Returns
    -------
    Cost

    Raises
    ------
    ValueError
        If the costs state different adjacencies, units of privacy or, without ``delta``, deltas.
    """
    try:
        total = functools.reduce(operator.or_ if disjoint else operator.add, costs)
        return replace(total, delta=total._stated if delta is None else delta)
    except ValueError as reason:
        raise ValueError(f"{who}: {reason}") from None


def _on_block(
    releases: Iterable[ReleaseRecord], partition: Partition, block: int | str
) -> tuple[ReleaseRecord, ...]:
    return tuple(
        replace(record, event=OnBlock(partition, block, record.event)) for record in releases
    )


def _own_partitions(event: Event) -> Iterable[Partition]:
    """Yield the divisions in an event that no other fit shares."""
    blocks = (part for part, _ in walk(event) if isinstance(part, OnBlock))
    return (block.partition for block in blocks if not block.partition.shared)


def _in_later_epochs(event: Event, shift: int) -> Event:
    """Return the same event on partitions whose epoch numbers are larger by ``shift``.

    Every fit numbers its epochs from 0 and draws its own divisions of the rows. If fits are
    composed, their partitions must not be taken for each other: a record may lie in the costliest
    block of each. A division that fits share, by name, keeps its number.
    """
    moved = event.with_inner(lambda part: _in_later_epochs(part, shift))
    if isinstance(moved, OnBlock) and not moved.partition.shared:
        epoch = moved.partition.epoch + shift
        return replace(moved, partition=replace(moved.partition, epoch=epoch))
    return moved
