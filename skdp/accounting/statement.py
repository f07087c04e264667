"""The privacy statement of a fitted model: its releases, their cost, and the assumptions made."""

import html
import json
import math
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Self, cast

from skdp._numbers import require
from skdp.accounting.events import (
    Adjacency,
    Composed,
    Event,
    EventWrapper,
    OnBlock,
    Sampled,
    Selected,
    Shuffled,
    UnknownCost,
    walk,
)
from skdp.accounting.interchange import Plain, from_plain, plain
from skdp.accounting.pricing import delta_at, event_mu, price

_ADJACENCY = {
    "zero_out": "bounded: a record is replaced by a null record. The number of records is public",
    "replace_one": "bounded: a record is replaced by any other. The number of records is public",
    "label": "bounded: the target of a record is replaced by any other. All else is public",
}
_NOISE = {
    "system": "operating system's cryptographic source",
    "seeded": "seeded generator: the noise can be removed by whoever knows the seed",
    "none": "no noise was added",
}
_DISJOINT = "disjoint blocks of rows"
_PART_OF_SPLIT = "part of a random split"


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
class PrivacyStatement:
    """Privacy cost of a fit, with its releases and the assumptions behind the guarantee.

    Attributes
    ----------
    epsilon, delta : float
        The fit is (epsilon, delta)-differentially private. Epsilon is the certified figure, at most
        the requested one.
    adjacency : str
        The neighbouring relation of the guarantee.
    accountant : str
        The theorem that certifies it, as `skdp.accounting.price` names it.
    releases : tuple of ReleaseRecord
        Every noisy answer that depends on rows, in order.
    assumptions : tuple of str
        Facts that are assumed to be public or true.
    noise_source : str
        "system": the operating system's secure source. "seeded": reproducible, so that anyone who
        knows the seed can subtract the noise. "none": no noise (epsilon is infinite).
    n_rows : int or None, default=None
        Number of rows of the fit, which is public. None for several fits on different numbers, and
        with groups, where it is private.
    expectations : tuple of str, default=()
        The expected accuracy of a fit. The figure of a plan follows only from public facts, the
        figure of a fitted regression also from the estimated skewness of its targets.
    notes : tuple of str, default=()
        Of a plan: which solver "auto" stands for, and which stages are left out, with the reasons.
    unit : {"row", "group"}, default="row"
        Unit of privacy: whom the guarantee protects. A row, or a group: all rows with one label.
    n_groups : int or None, default=None
        Number of groups of the fit, which is public. None for rows, and for different numbers.
    """

    epsilon: float
    delta: float
    adjacency: str
    accountant: str
    releases: tuple[ReleaseRecord, ...]
    assumptions: tuple[str, ...]
    noise_source: str
    n_rows: int | None = None
    expectations: tuple[str, ...] = ()
    unit: str = "row"
    n_groups: int | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", abs(self.delta))  # -0.0 is 0

    @property
    def event(self) -> Composed:
        """All releases as one event."""
        return Composed(tuple((record.event, record.count) for record in self.releases))

    @property
    def _relation(self) -> Adjacency:
        return Adjacency.parse(self.adjacency, labels=True)

    @property
    def mu(self) -> float | None:
        """Gaussian-DP parameter of all releases. None where no theorem gives them one.

        It implies every pair (epsilon, delta) of the releases, and figures of several fits on the
        same rows compose to the root of the sum of their squares.
        """
        try:
            return event_mu(self.event, self._relation)
        except UnknownCost:
            return None

    def epsilon_at(self, delta: float) -> float:
        """Return the epsilon that the same releases cost at another delta.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        float
            inf where the releases meet no finite epsilon.

        Raises
        ------
        ValueError
            If delta is not in [0, 1).
        UnknownCost
            If no theorem covers the releases together.
        """
        require("epsilon_at: delta", delta, "lie in [0, 1)", 0 <= delta < 1)
        return price(self.event, delta, self._relation)[0]

    def delta_at(self, epsilon: float) -> float:
        """Return the delta that the same releases need for another epsilon.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        float
            In [0, 1].

        Raises
        ------
        ValueError
            If epsilon is negative.
        UnknownCost
            If no theorem covers the releases together.
        """
        require("delta_at: epsilon", epsilon, "be at least 0", epsilon >= 0)
        return delta_at(self.event, epsilon, self._relation)

    def to_dict(self) -> dict[str, Plain]:
        """Return the statement as plain Python objects, ready for JSON (inf becomes "inf").

        Returns
        -------
        dict
            The attributes by their names, and "mu". A release that differs from an earlier one only
            by its block is ``{"like": position, "block": number}``, with the position of that one.
        """
        return {
            **{
                name: list(_written(self.releases)) if name == "releases" else plain(value)
                for name, value in vars(self).items()
            },
            "mu": plain(self.mu),
        }

    @property
    def _one_unit(self) -> str:
        """Name of the unit of privacy, with the number of units if it is public."""
        is_row = self.unit == "row"
        n_units = self.n_rows if is_row else self.n_groups
        if n_units is None:
            return f"one {'row' if is_row else 'group of rows'} of the training data"
        return f"one of {n_units} {'rows' if is_row else 'groups of rows'}"

    @classmethod
    def from_dict(cls, stated: Mapping[str, Any]) -> Self:
        """Return the statement that `to_dict` turned into plain objects.

        It is not compared with a model, so it proves nothing about one.

        Parameters
        ----------
        stated : dict

        Returns
        -------
        PrivacyStatement

        Raises
        ------
        ValueError
            If an entry is missing, or an event is not known.
        """
        missing = [
            item.name for item in fields(cls) if item.default is MISSING and item.name not in stated
        ]
        if missing:
            raise ValueError(f"PrivacyStatement.from_dict: {', '.join(missing)} must be given.")
        values = {
            item.name: from_plain(stated[item.name])
            for item in fields(cls)
            if item.name in stated and item.name != "releases"
        }
        return cls(**values, releases=_read(stated["releases"]))

    def to_json(self, **options: Any) -> str:
        """Return the statement as JSON text.

        Parameters
        ----------
        **options
            Those of `json.dumps`, such as ``indent``.

        Returns
        -------
        str
        """
        return json.dumps(self.to_dict(), allow_nan=False, **options)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the statement in JSON text, as `to_json` writes it.

        Parameters
        ----------
        text : str

        Returns
        -------
        PrivacyStatement

        Raises
        ------
        ValueError
            If the text is not JSON, an entry is missing, or an event is not known.
        """
        return cls.from_dict(json.loads(text))

    def _facts(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return the statement in words: labels, each with one text or several."""
        mu = "" if self.mu is None else f", Gaussian DP with mu = {self.mu:.6g}"
        released = release_lines(self.releases, self.unit) or ["nothing"]
        if any(f"({start}" in line for line in released for start in ("disjoint", "part")):
            # A row is in some of these answers only, whatever the random draws.
            released.append(
                "Answers on disjoint blocks do not add up: "
                f"a {self.unit} is charged only for its own."
            )
        named: list[tuple[str, tuple[str, ...]]] = [
            (
                "guarantee",
                (f"({self.epsilon:.6g}, {self.delta:.6g})-differentially private{mu}",),
            ),
            ("unit of privacy", (self._one_unit,)),
            ("adjacency", (f"{self.adjacency} ({_ADJACENCY[self.adjacency]})",)),
            ("accountant", (self.accountant,)),
            ("noise source", (f"{self.noise_source} ({_NOISE[self.noise_source]})",)),
            ("released", tuple(released)),
            ("assumed", self.assumptions),
            ("chosen", self.notes),
            ("expected", self.expectations),
        ]
        return [(label, texts) for label, texts in named if texts]

    def __str__(self) -> str:
        return "\n".join(f"{label}:{_in_lines(texts)}" for label, texts in self._facts())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{label}</th><td>{'<br>'.join(map(html.escape, texts))}</td></tr>"
            for label, texts in self._facts()
        )
        return f"<table>{rows}</table>"


def _written(records: Iterable[ReleaseRecord]) -> Iterator[dict[str, Plain]]:
    """Yield plain releases. Of a pass over blocks only the first one is written with the cuts."""
    known: dict[ReleaseRecord, int] = {}
    for number, record in enumerate(records):
        if isinstance(record.event, OnBlock) and isinstance(record.event.innermost.block, int):
            first = known.setdefault(replace(record, event=record.event.moved(0)), number)
            if first < number:
                yield {"like": first, "block": record.event.innermost.block}
                continue
        yield {name: plain(value) for name, value in vars(record).items()}


def _read(releases: Iterable[Mapping[str, Any]]) -> tuple[ReleaseRecord, ...]:
    """Return the releases that `_written` turned into plain objects."""
    records: list[ReleaseRecord] = []
    try:
        for entry in releases:
            if "like" in entry:
                number, block = map(operator.index, (entry["like"], entry["block"]))
                first = records[number if number >= 0 else len(records)]
                moved = cast(OnBlock, first.event).moved(block)
                records.append(replace(first, event=moved))
            else:
                values = (from_plain(entry[item.name]) for item in fields(ReleaseRecord))
                records.append(ReleaseRecord(*values))
    except (LookupError, AttributeError, TypeError):
        raise ValueError("a privacy statement has a release that lacks an entry.") from None
    return tuple(records)


def _in_lines(texts: Sequence[str]) -> str:
    """Return one text on the line of its label, or several as a list below it."""
    return f" {texts[0]}" if len(texts) == 1 else "".join(f"\n  - {text}" for text in texts)


def release_lines(records: Iterable[ReleaseRecord], unit: str = "row") -> list[str]:
    """Describe releases, one line for all that look alike. Samples and blocks are of units."""
    counts: Counter[str] = Counter()
    for record in records:
        n_steps, rows = _n_steps(record.event), _rows(record.event).replace("row", unit)
        steps = f" of {n_steps} steps" if n_steps > 1 else ""
        beside = f" ({rows})" if rows else ""
        noise = f"{record.noise_multiplier:.6g}"
        counts[f"{record.kind}{steps}{beside}, noise multiplier {noise}"] += record.count
    return [f"{count} x {line}" for line, count in counts.items()]


def _answers(event: Event) -> list[tuple[Event, int]]:
    """Return the answers in an event, with counts. Samples, blocks and passes stay whole."""
    parts = walk(event, into=Composed)
    return [(part, count) for part, count in parts if not isinstance(part, Composed)]


def _n_steps(event: Event) -> int:
    """Return the number of steps in a release. A step may consist of answers of different kinds."""
    counts: Counter[type[Event]] = Counter()
    for answer, count in _answers(event):
        if isinstance(answer, EventWrapper) and not isinstance(answer, Selected):
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
            part = f"{_PART_OF_SPLIT}, {event.block + 1} of {event.partition.n_blocks}"
        return f"{part}: {inside}" if inside else part
    if isinstance(event, OnBlock | Shuffled):
        return _DISJOINT
    if isinstance(event, Sampled):
        return f"random samples of {100 * event.rate:.3g}% of the rows"
    return ""
