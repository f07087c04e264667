"""The algebra of privacy events: what was done, as data, with no rows and no noise in it.

An event says what a release did to the rows in units that make it free of scale: noise is
measured against the *contribution bound*, the most that one record can add to the released sum.
What an event costs is for an accountant to say; see :mod:`skdp.accounting.accountant`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from skdp.accounting.adjacency import Adjacency


class Event:
    """Base of all events: frozen, hashable, comparable."""

    def scaled(self, factor: float) -> Event:
        """Return the same event with ``factor`` times the noise."""
        raise NotImplementedError


def _check_noise(name: str, noise_multiplier: float, spread: float) -> None:
    if not (noise_multiplier >= 0 and math.isfinite(noise_multiplier)):
        raise ValueError(f"{name}: noise_multiplier must be finite and >= 0; got {noise_multiplier!r}.")
    if not 1 <= spread <= 2:
        raise ValueError(f"{name}: spread must lie in [1, 2]; got {spread!r}.")


@dataclass(frozen=True)
class Gaussian(Event):
    """A sum over all rows plus isotropic Gaussian noise.

    Meaning: ``S(D) + N(0, (noise_multiplier * C)**2 I)``, where one record adds a vector of L2
    norm at most ``C`` to ``S``. The sensitivity is ``C`` under zero-out and ``spread * C`` under
    replace-one, so the release is exactly mu-GDP with ``mu = sensitivity / (noise_multiplier * C)``
    (Dong, Roth, Su 2019, Thm 2.7).

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise in units of the contribution bound. 0 means no noise.
    spread : float, default=2.0
        Largest distance between two contributions, in units of the bound. 2 for vectors that may
        point anywhere; 1 for counts; sqrt(2) for Gram matrices.
    """

    noise_multiplier: float
    spread: float = 2.0

    def __post_init__(self) -> None:
        _check_noise("Gaussian", self.noise_multiplier, self.spread)

    def scaled(self, factor: float) -> Gaussian:
        return replace(self, noise_multiplier=self.noise_multiplier * factor)

    def sensitivity(self, adjacency: Adjacency) -> float:
        """L2 sensitivity in units of the contribution bound."""
        return 1.0 if adjacency is Adjacency.ZERO_OUT else self.spread


@dataclass(frozen=True)
class Partition:
    """One division of the row numbers into disjoint blocks, drawn without looking at the rows.

    Two partitions are the same only if both ``epoch`` and ``n_blocks`` agree: the blocks of
    different epochs overlap, so their costs add up.
    """

    epoch: int
    n_blocks: int

    def __post_init__(self) -> None:
        if self.n_blocks < 1:
            raise ValueError(f"Partition: n_blocks must be at least 1; got {self.n_blocks!r}.")


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

    def scaled(self, factor: float) -> OnBlock:
        return replace(self, event=self.event.scaled(factor))


@dataclass(frozen=True)
class Composed(Event):
    """A sequence of events on the same rows, each allowed to depend on earlier *answers*.

    Meaning: adaptive sequential composition of ``parts``, given as pairs (event, count).
    """

    parts: tuple[tuple[Event, int], ...] = ()

    def __post_init__(self) -> None:
        for event, count in self.parts:
            if not isinstance(event, Event) or count < 1:
                raise ValueError(f"Composed: parts are pairs (event, count >= 1); got {event!r}, {count!r}.")

    @classmethod
    def of(cls, events: Iterable[Event]) -> Composed:
        """Compose single events, merging runs of equal ones."""
        parts: list[tuple[Event, int]] = []
        for event in events:
            if parts and parts[-1][0] == event:
                parts[-1] = (event, parts[-1][1] + 1)
            else:
                parts.append((event, 1))
        return cls(tuple(parts))

    def scaled(self, factor: float) -> Composed:
        return Composed(tuple((event.scaled(factor), count) for event, count in self.parts))

    def flattened(self) -> Iterator[tuple[Event, int]]:
        """Yield (event, count) with nested compositions opened."""
        for event, count in self.parts:
            if isinstance(event, Composed):
                for inner, inner_count in event.flattened():
                    yield inner, inner_count * count
            else:
                yield event, count
