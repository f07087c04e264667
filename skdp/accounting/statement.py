"""The privacy statement of a fitted model: its releases, their cost, and the assumptions made."""

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Self

from skdp._numbers import require
from skdp.accounting.events import Adjacency, Composed, UnknownCost
from skdp.accounting.pricing import delta_at, event_mu, price
from skdp.accounting.records import Plain, ReleaseRecord, footnote, from_plain, plain, release_lines

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
            The attributes by their names, and "mu".
        """
        return {
            **{item.name: plain(getattr(self, item.name)) for item in fields(self)},
            "mu": plain(self.mu),
            "releases": [
                {name: plain(value) for name, value in vars(record).items()}
                for record in self.releases
            ],
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
        releases = tuple(
            ReleaseRecord(*(from_plain(record[item.name]) for item in fields(ReleaseRecord)))
            for record in stated["releases"]
        )
        return cls(**values, releases=releases)

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

    def facts(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return the statement in words: labels, each with one text or several.

        The text of a statement, its HTML and its section in a model card consist of these facts.

        Returns
        -------
        list of (str, tuple of str)
            Labels without a text are left out.
        """
        mu = "" if self.mu is None else f", Gaussian DP with mu = {self.mu:.6g}"
        lines = release_lines(self.releases, self.unit)
        released = [*map(str, lines), footnote(lines, self.unit)] if lines else ["nothing"]
        named: list[tuple[str, tuple[str, ...]]] = [
            (
                "guarantee",
                (f"({self.epsilon:.6g}, {self.delta:.6g})-differentially private{mu}",),
            ),
            ("unit of privacy", (self._one_unit,)),
            ("adjacency", (f"{self.adjacency} ({_ADJACENCY[self.adjacency]})",)),
            ("accountant", (self.accountant,)),
            ("noise source", (f"{self.noise_source} ({_NOISE[self.noise_source]})",)),
            ("released", tuple(filter(None, released))),
            ("assumed", self.assumptions),
            ("chosen", self.notes),
            ("expected", self.expectations),
        ]
        return [(label, texts) for label, texts in named if texts]

    def __str__(self) -> str:
        return "\n".join(
            f"{label}:{_in_lines(texts, '  - ', ' ')}" for label, texts in self.facts()
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{label}</th><td>{'<br>'.join(map(html.escape, texts))}</td></tr>"
            for label, texts in self.facts()
        )
        return f"<table>{rows}</table>"


def _in_lines(texts: Sequence[str], bullet: str, single: str) -> str:
    """Return one text on the line of its label, or several as a list below it."""
    return f"{single}{texts[0]}" if len(texts) == 1 else "".join(f"\n{bullet}{it}" for it in texts)


def model_card_section(statement: PrivacyStatement) -> dict[str, str]:
    """Return the section "Privacy" of a model card: title and text in Markdown.

    Parameters
    ----------
    statement : PrivacyStatement

    Returns
    -------
    dict of str
        One item. With skops it goes into a card by ``card.add(**model_card_section(statement))``.

    Examples
    --------
    >>> from skdp import DPRidge
    >>> from skdp.accounting import model_card_section
    >>> section = model_card_section(DPRidge().plan(1000, 5))
    >>> print(section["Privacy"].splitlines()[0])
    - **guarantee**: (1, 1e-06)-differentially private, Gaussian DP with mu = 0.236704
    """
    facts = statement.facts()
    lines = [f"- **{label}**:{_in_lines(texts, '  - ', ' ')}" for label, texts in facts]
    return {"Privacy": "\n".join(lines)}
