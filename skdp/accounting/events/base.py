"""What every event can do, and the sequence of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

NoiseChange = Callable[[float], float]


class Event:
    """Base of all events: frozen, hashable, comparable."""

    def with_noise(self, change: NoiseChange) -> Event:
        """Return the same event with every noise multiplier passed through ``change``."""
        raise NotImplementedError

    def scaled(self, factor: float) -> Event:
        """Return the same event with ``factor`` times the noise."""
        return self.with_noise(lambda noise_multiplier: factor * noise_multiplier)

    def flattened(self) -> Iterator[tuple[Event, int]]:
        """Yield the (event, count) pairs in sequence that this event consists of.

        Compositions are opened, and what is trivially something simpler becomes it: a sample of
        all rows is no sample, a sample of no rows is nothing.
        """
        yield self, 1


@dataclass(frozen=True)
class Composed(Event):
    """A sequence of events on the same rows, each allowed to depend on earlier *answers*.

    Meaning: adaptive sequential composition of ``parts``, given as pairs (event, count).
    ``Composed()`` is the event in which nothing happened; it costs nothing.
    """

    parts: tuple[tuple[Event, int], ...] = ()

    def __post_init__(self) -> None:
        for event, count in self.parts:
            if not isinstance(event, Event) or count < 1:
                raise ValueError(
                    f"Composed: parts are pairs (event, count >= 1); got {event!r}, {count!r}."
                )

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

    def with_noise(self, change: NoiseChange) -> Composed:
        return Composed(tuple((event.with_noise(change), count) for event, count in self.parts))

    def scaled(self, factor: float) -> Composed:
        return self.with_noise(lambda noise_multiplier: factor * noise_multiplier)

    def flattened(self) -> Iterator[tuple[Event, int]]:
        for event, count in self.parts:
            for inner, inner_count in event.flattened():
                yield inner, inner_count * count
