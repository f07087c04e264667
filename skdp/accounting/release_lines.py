"""Releases of a fit, and the lines in which a statement tells of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from skdp.accounting.events import (
    BallsAndBins,
    Composed,
    Event,
    FixedSizeSampled,
    OnBlock,
    OnePass,
    Partition,
    PoissonSampled,
    Shuffled,
)
from skdp.accounting.events.last_iterate import HiddenIterates

DISJOINT = "disjoint blocks of rows"


@dataclass(frozen=True)
class ReleaseRecord:
    """A run of equal releases: what was asked, how often, and with how much noise.

    Attributes
    ----------
    kind : str
        What the sum was, such as "gradient".
    count : int
        How many times in a row.
    noise_multiplier : float
        Noise standard deviation over the most that one record can contribute; for releases
        that have no single figure, nan.
    event : Event
        What an accountant prices: one of the ``count`` releases.
    """

    kind: str
    count: int
    noise_multiplier: float
    event: Event = field(repr=False)


@dataclass(frozen=True)
class ReleaseLine:
    """Releases that look alike, wherever in the sequence they stand, in words.

    Attributes
    ----------
    what : str
        The kind, and of how many steps each release is made if of several.
    count : int
    rows : str
        What is to be known of the rows that are read, where that is not all of them.
    noise : str
        The noise multiplier.
    """

    what: str
    count: int
    rows: str
    noise: str

    @property
    def disjoint(self) -> bool:
        """Whether a row is in some of the answers only, however the draws come out."""
        return self.rows.startswith(DISJOINT)

    def __str__(self) -> str:
        rows = f" ({self.rows})" if self.rows else ""
        return f"{self.count} x {self.what}{rows}, noise multiplier {self.noise}"


def release_lines(records: Iterable[ReleaseRecord]) -> list[ReleaseLine]:
    """Sum up releases in lines: what looks alike stands in one."""
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
        lines.append(ReleaseLine(what, count, rows, noise))
    return lines


def _answers(event: Event) -> Iterator[tuple[Event, int]]:
    """Yield the answers, with counts, that an event consists of; samples and passes stay whole."""
    if isinstance(event, Composed):
        for part, count in event.parts:
            for answer, times in _answers(part):
                yield answer, count * times
    else:
        yield event, 1


def _n_steps(event: Event) -> int:
    """Return the number of steps in one release; two answers of different kinds may make a step."""
    counts: Counter[type[Event]] = Counter()
    for answer, count in _answers(event):
        match answer:
            case OnePass(n_steps=n) | HiddenIterates(n_steps=n) | Shuffled(n=n):
                count *= n
            case BallsAndBins(n_bins=n):
                count *= n
            case OnBlock(event=inner):
                count *= _n_steps(inner)
        counts[type(answer)] += count
    return max(counts.values(), default=0)


def _rows(event: Event) -> str:
    """Return words for the rows that all answers in an event read; none where they differ."""
    found = {_rows_of_one(answer) for answer, _ in _answers(event)}
    return found.pop() if len(found) == 1 else ""


def _rows_of_one(event: Event) -> str:
    match event:
        case OnBlock() | OnePass() | Shuffled() | BallsAndBins():
            return DISJOINT
        case PoissonSampled() | FixedSizeSampled():
            return f"random samples of {100 * event.rate:.3g}% of the rows"
        case HiddenIterates():
            return "only the last point is shown"
    return ""


def _most_of_one_row(records: Iterable[ReleaseRecord]) -> int:
    """Return how many of the answers on disjoint blocks one row can be in, at most."""
    passes = 0
    blocks: dict[Partition, Counter[int]] = {}
    for record in records:
        for answer, count in _answers(record.event):
            count *= record.count
            if isinstance(answer, OnBlock):
                times = count * _n_steps(answer.event)
                blocks.setdefault(answer.partition, Counter())[answer.block] += times
            else:
                passes += count
    return passes + sum(max(counts.values()) for counts in blocks.values())
