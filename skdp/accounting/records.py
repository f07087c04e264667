"""Releases as a privacy statement lists them: as lines of text, and as plain Python objects."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Self, cast

import numpy as np

from skdp.accounting import events
from skdp.accounting.events import Composed, Event, EventWrapper, OnBlock, Partition, Sampled, walk

DISJOINT = "disjoint blocks of rows"
PART_OF_SPLIT = "part of a random split"


@dataclass(frozen=True)
class ReleaseRecord:
    """A run of equal releases: their kind, their number and their noise.

    Attributes
    ----------
    kind : str
        The statistic, such as "gradient".
    count : int
        Number of consecutive releases.
    noise_multiplier : float
        Noise standard deviation over the bound on one record's contribution. It is nan for releases
        that have no single figure.
    event : Event
        One of the ``count`` releases, as it is priced.
    """

    kind: str
    count: int
    noise_multiplier: float
    event: Event = field(repr=False)

    @classmethod
    def of(cls, kind: str, event: Event, count: int = 1) -> Self:
        """Return a record. Its noise multiplier is nan unless its mechanisms are all alike."""
        parts = {part for part, _ in walk(event) if not part.inner()}
        noise = getattr(parts.pop(), "noise_multiplier", math.nan) if len(parts) == 1 else math.nan
        return cls(kind, count, float(noise), event)


@dataclass(frozen=True)
class ReleaseLine:
    """One line of a statement: all releases that look alike, wherever they are in the sequence.

    Attributes
    ----------
    what : str
        The kind, and the number of steps in each release if there are several.
    count : int
    rows : str
        Which rows are read, if not all of them.
    noise : str
        The noise multiplier.
    """

    what: str
    count: int
    rows: str
    noise: str

    def __str__(self) -> str:
        rows = f" ({self.rows})" if self.rows else ""
        return f"{self.count} x {self.what}{rows}, noise multiplier {self.noise}"


def release_lines(records: Iterable[ReleaseRecord], unit: str = "row") -> list[ReleaseLine]:
    """Summarise releases, one line for all that look alike. Samples and blocks are of units."""
    alike: dict[tuple[str, str, str], list[ReleaseRecord]] = {}
    for record in records:
        n_steps = _n_steps(record.event)
        what = f"{record.kind} of {n_steps} steps" if n_steps > 1 else record.kind
        key = what, _rows(record.event), f"{record.noise_multiplier:.6g}"
        alike.setdefault(key, []).append(record)
    lines = []
    for (what, rows, noise), group in alike.items():
        count = sum(record.count for record in group)
        if rows == DISJOINT:
            most = _most_of_one_row(group)
            several = most < count * _n_steps(group[0].event)
            rows = f"{DISJOINT}: a row is in at most {most}" if several else ""
        lines.append(ReleaseLine(what, count, rows.replace("row", unit), noise))
    return lines


def footnote(lines: Iterable[ReleaseLine], unit: str = "row") -> str:
    """Return a sentence for statements that list releases on disjoint blocks, "" for others."""
    # In these a row is in some of the answers only, whatever the random draws.
    if not any(line.rows.startswith(("disjoint", "part")) for line in lines):
        return ""
    return f"Answers on disjoint blocks do not add up: a {unit} is charged only for its own."


def _answers(event: Event) -> list[tuple[Event, int]]:
    """Return the answers in an event, with counts. Samples, blocks and passes stay whole."""
    parts = walk(event, into=Composed)
    return [(part, count) for part, count in parts if not isinstance(part, Composed)]


def _n_steps(event: Event) -> int:
    """Return the number of steps in a release. A step may consist of answers of different kinds."""
    counts: Counter[type[Event]] = Counter()
    for answer, count in _answers(event):
        if isinstance(answer, EventWrapper) and not isinstance(answer, events.Selected):
            count *= answer.n_answers * _n_steps(answer.event)
        counts[type(answer)] += count
    return max(counts.values(), default=0)


def _rows(event: Event) -> str:
    """Describe the rows that all answers in an event read, "" where answers differ."""
    labels = {_rows_of_one(answer) for answer, _ in _answers(event)}
    return labels.pop() if len(labels) == 1 else ""


def _rows_of_one(event: Event) -> str:
    if isinstance(event, OnBlock) and event.partition.shared:
        inside = _rows(event.event)
        part = f"part {event.block!r} of the people"
        if isinstance(event.block, int):
            part = f"{PART_OF_SPLIT}, {event.block + 1} of {event.partition.n_blocks}"
        return f"{part}: {inside}" if inside else part
    if isinstance(event, OnBlock | events.DisjointPass | events.Shuffled):
        return DISJOINT
    if isinstance(event, Sampled):
        return f"random samples of {100 * event.rate:.3g}% of the rows"
    return ""


def _most_of_one_row(records: Iterable[ReleaseRecord]) -> int:
    """Return the largest number of the answers on disjoint blocks that one row can be in."""
    return _most_of(
        (answer, count * record.count)
        for record in records
        for answer, count in _answers(record.event)
    )


def _most_of(answers: Iterable[tuple[Event, int]]) -> int:
    passes = 0
    blocks: dict[Partition, dict[int | str, list[tuple[Event, int]]]] = {}
    for answer, count in answers:
        if not isinstance(answer, OnBlock):
            passes += count
            continue
        inside = blocks.setdefault(answer.partition, {}).setdefault(answer.block, [])
        inside += [(one, count * times) for one, times in _answers(answer.event)]
    return passes + sum(max(map(_most_of, of.values())) for of in blocks.values())


Plain = str | float | bool | None | list["Plain"] | dict[str, "Plain"]

# The types that a file may name: nothing else is ever constructed from one.
_KNOWN: dict[str, type[object]] = {
    name: cls
    for name in events.__all__
    if isinstance(cls := getattr(events, name), type)
    and (issubclass(cls, Event) or cls is Partition)
}


def plain(value: object) -> Plain:
    """Return an event, or mappings and sequences of values, as dicts, lists, numbers and text.

    Numbers that are not finite become text, as JSON has none.
    """
    if is_dataclass(value) and not isinstance(value, type):
        parts = {item.name: plain(getattr(value, item.name)) for item in fields(value)}
        return {"type": type(value).__name__, **parts}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return cast(Plain, value)


def from_plain(value: object) -> Any:  # of a type that the file names
    """Return the value that :func:`plain` turned into ``value``, lists become tuples.

    Raises
    ------
    ValueError
        If it names a type that is no event, or its fields are not those of the type.
    """
    if isinstance(value, list):
        return tuple(from_plain(item) for item in value)
    if not isinstance(value, dict):
        return float(value) if value in ("inf", "-inf", "nan") else value
    entries = dict(value)
    name = entries.pop("type", None)
    if name not in _KNOWN:
        raise ValueError(f"a privacy statement names an unknown type of event, {name!r}.")
    try:
        return _KNOWN[name](**{key: from_plain(item) for key, item in entries.items()})
    except TypeError:
        raise ValueError(f"a privacy statement has a {name} with other fields.") from None
