"""Adjacency, the base classes of events, sequences of events, and the walk over a tree of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar, Self

from skdp._numbers import shown

LABEL = "label"  # the adjacency of targets alone: see `Adjacency.parse`
NoiseChange = Callable[[float], float]
Parts = tuple[tuple["Event", int], ...]  # events with their numbers of occurrences


class UnknownCost(ValueError):  # noqa: N818 - a result as much as an error
    """No available theorem covers this event under this adjacency; the message names both."""


class Adjacency(StrEnum):
    """Neighbouring relation between two data sets with the same, public number of rows.

    ``zero_out``
        One record is replaced by a null record, which contributes nothing to any sum.
    ``replace_one``
        One record is replaced by any other record; a sum of bounded contributions can move
        by up to twice the bound, so the same noise guarantees about twice the epsilon.
    """

    ZERO_OUT = "zero_out"
    REPLACE_ONE = "replace_one"

    @classmethod
    def parse(cls, value: object, labels: bool = False) -> Adjacency:
        """Return the relation with the name ``value``.

        Parameters
        ----------
        value : str
        labels : bool, default=False
            Whether "label" is a name, too: the target of one record is replaced by any other, and
            all else is public. Its neighbours are neighbours under ``replace_one``, whose prices
            are valid for it (Ghazi, Golowich, Kumar, Manurangsi and Zhang 2021, "Deep learning with
            label differential privacy", Def. 1.2).

        Returns
        -------
        Adjacency

        Raises
        ------
        ValueError
            If ``value`` is no such name.
        """
        if isinstance(value, str) and value in [member.value for member in cls]:
            return cls(value)
        if labels and isinstance(value, str) and value == LABEL:
            return cls.REPLACE_ONE
        known = [member.value for member in cls] + [LABEL] * labels
        raise ValueError(
            f"adjacency must be one of {', '.join(map(repr, known))}; got {shown(value)}."
        )


@dataclass(frozen=True)
class Event:
    """Base class of all events, which are frozen, hashable and comparable.

    An event is a *mechanism*, which is one noisy answer; an `EventWrapper`, which states to which
    rows, or how many times, the event inside it was applied; or a sequence, `Composed`.
    """

    def inner(self) -> Parts:
        """Return the events directly inside this one, with the number of times each is answered.

        A mechanism has none.

        Returns
        -------
        tuple of (Event, int)
        """
        return ()

    def with_inner(self, change: Callable[[Event], Event]) -> Self:
        """Return the same event with each of its `inner` events passed through ``change``.

        Parameters
        ----------
        change : callable (Event) -> Event

        Returns
        -------
        Event
        """
        return self

    def with_noise(self, change: NoiseChange) -> Self:
        """Return the same event with every noise multiplier passed through ``change``.

        Parameters
        ----------
        change : callable (float) -> float

        Returns
        -------
        Event
        """
        return self.with_inner(lambda event: event.with_noise(change))

    def scaled(self, factor: float) -> Self:
        """Return the same event with ``factor`` times the noise.

        Parameters
        ----------
        factor : float
            At least 0.

        Returns
        -------
        Event
        """
        return self.with_noise(lambda noise_multiplier: factor * noise_multiplier)

    def flattened(self) -> Iterator[tuple[Event, int]]:
        """Yield, in order, the (event, count) pairs whose composition this event is.

        Sequences are opened. An event that is trivially a simpler one is replaced by it: a sample
        of all rows by the event on the sample, a sample of no rows by nothing.

        Yields
        ------
        event : Event
        count : int
        """
        yield self, 1


def check_field(owner: object, name: str, is_valid: bool, rule: str) -> None:
    """Raise ValueError, naming the owner, the field and its value, unless ``is_valid``."""
    if not is_valid:
        value = getattr(owner, name)
        raise ValueError(f"{type(owner).__name__}: {name} must {rule}; got {value!r}.")


class EventWrapper(Event):
    """Base class of events that contain another event, in the field ``event``."""

    event: Event
    count_field: ClassVar[str | None] = None  # name of a field: how often it is answered

    @property
    def n_answers(self) -> int:
        """Number of times that the event inside is answered."""
        return 1 if self.count_field is None else int(getattr(self, self.count_field))

    def inner(self) -> Parts:
        return ((self.event, self.n_answers),)

    def with_inner(self, change: Callable[[Event], Event]) -> Self:
        return replace(self, event=change(self.event))  # type: ignore[call-arg]  # of subclasses


@dataclass(frozen=True)
class Composed(Event):
    """A sequence of events on the same rows, each of which may depend on the *answers* before it.

    Meaning: adaptive sequential composition of ``parts``, given as pairs (event, count).
    ``Composed()`` is the event in which nothing happened; it costs nothing.

    Parameters
    ----------
    parts : tuple of (Event, int), default=()
        Events with their numbers of occurrences, in order.

    Raises
    ------
    ValueError
        If a part is no pair of an event and an integer of at least 1.
    """

    parts: Parts = ()

    def __post_init__(self) -> None:
        for event, count in self.parts:
            if not (isinstance(event, Event) and count >= 1 and count % 1 == 0):
                raise ValueError(
                    "Composed: parts are pairs of an event and an integer of at least 1; got "
                    f"{event!r}, {count!r}."
                )

    @classmethod
    def of(cls, events: Iterable[Event]) -> Composed:
        """Compose single events, merging runs of equal ones.

        Parameters
        ----------
        events : iterable of Event

        Returns
        -------
        Composed
        """
        runs = itertools.groupby(events)
        return cls(tuple((event, len(list(run))) for event, run in runs))

    def inner(self) -> Parts:
        return self.parts

    def with_inner(self, change: Callable[[Event], Event]) -> Self:
        return replace(self, parts=tuple((change(event), count) for event, count in self.parts))

    def flattened(self) -> Iterator[tuple[Event, int]]:
        for event, count in self.parts:
            for part, times in event.flattened():
                yield part, times * count


def walk(
    event: Event, into: type[Event] | tuple[type[Event], ...] = Event
) -> Iterator[tuple[Event, int]]:
    """Yield ``event`` and the events inside it, outermost first, with their numbers of answers.

    Parameters
    ----------
    event : Event
    into : type or tuple of types, default=Event
        Types of the events to look into; with `Composed` samples, blocks and passes are not opened.

    Yields
    ------
    event : Event
    count : int
    """
    yield event, 1
    if isinstance(event, into):
        for part, count in event.inner():
            for sub_event, times in walk(part, into):
                yield sub_event, count * times
