"""The privacy statement of a fitted model: what was released, what it cost, what was assumed."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skdp.accounting.adjacency import Adjacency
from skdp.accounting.calibration import knowing, price
from skdp.accounting.events import Composed, in_later_epochs, partitions_in
from skdp.accounting.release_lines import ReleaseRecord, release_lines

# Said where releases on disjoint blocks are among those listed.
NOT_ADDED = "Answers on disjoint blocks do not add up: a row pays for those it is in, no others."


@dataclass(frozen=True)
class PrivacyStatement:
    """What a fit cost and what the cost rests on.

    Attributes
    ----------
    epsilon, delta : float
        The fit is (epsilon, delta)-differentially private; epsilon is the certified figure, which
        is at most what was asked for.
    adjacency : str
        The neighbouring relation that the guarantee speaks of.
    accountant : str
        Which accountant certifies it.
    releases : tuple of ReleaseRecord
        Every noisy answer that depends on rows, in order.
    assumptions : tuple of str
        What was taken as public, or as true, without paying for it.
    noise_source : str
        "system": the operating system's secure source. "seeded": reproducible, so that anyone who
        knows the seed can take the noise off again. "none": no noise (epsilon is infinite).
    n_rows : int or None, default=None
        Number of rows of the fit, which is public; None for several fits on different numbers.
    """

    epsilon: float
    delta: float
    adjacency: str
    accountant: str
    releases: tuple[ReleaseRecord, ...]
    assumptions: tuple[str, ...]
    noise_source: str
    n_rows: int | None = None

    @property
    def event(self) -> Composed:
        """All releases as one event."""
        return Composed(tuple((record.event, record.count) for record in self.releases))

    def epsilon_at(self, delta: float) -> float:
        """Epsilon that the same releases cost at another delta.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        float
            inf where the releases meet no finite epsilon.
        """
        if not 0 <= delta < 1:
            raise ValueError(f"epsilon_at: delta must lie in [0, 1); got {delta!r}.")
        return price(self.event, delta, Adjacency.parse(self.adjacency))[0]

    def delta_at(self, epsilon: float) -> float:
        """Delta that the same releases need for another epsilon.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        float
        """
        if not epsilon >= 0:
            raise ValueError(f"delta_at: epsilon must be at least 0; got {epsilon!r}.")
        adjacency = Adjacency.parse(self.adjacency)
        able = knowing(self.event, adjacency)
        return min(item.delta(self.event, epsilon, adjacency) for item in able)

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as plain Python objects, ready for JSON (inf becomes "inf")."""

        def plain(number: float) -> float | str:
            return number if math.isfinite(number) else str(number)

        return {
            "epsilon": plain(self.epsilon),
            "delta": self.delta,
            "adjacency": self.adjacency,
            "accountant": self.accountant,
            "releases": [
                {
                    "kind": record.kind,
                    "count": record.count,
                    "noise_multiplier": plain(record.noise_multiplier),
                }
                for record in self.releases
            ],
            "assumptions": list(self.assumptions),
            "noise_source": self.noise_source,
            "n_rows": self.n_rows,
        }

    def __str__(self) -> str:
        lines = [
            f"({self.epsilon:.6g}, {self.delta:.6g})-differentially private, "
            f"adjacency {self.adjacency}, accountant {self.accountant}, "
            f"noise source: {self.noise_source}",
            "released:",
        ]
        told = release_lines(self.releases)
        lines += [f"  {line}" for line in told] or ["  nothing"]
        if any(line.disjoint for line in told):
            lines.append(f"  {NOT_ADDED}")
        lines.append("assumed:")
        lines += [f"  - {sentence}" for sentence in self.assumptions]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        told = release_lines(self.releases)
        rows = "".join(
            f"<tr><td>{html.escape(line.what)}</td><td>{line.count}</td>"
            f"<td>{html.escape(line.rows)}</td><td>{line.noise}</td></tr>"
            for line in told
        )
        disjoint = any(line.disjoint for line in told)
        sentences = "".join(f"<li>{html.escape(text)}</li>" for text in self.assumptions)
        return (
            f"<p><b>({self.epsilon:.6g}, {self.delta:.6g})-differentially private</b>, adjacency "
            f"{html.escape(self.adjacency)}, accountant {html.escape(self.accountant)}, noise "
            f"source: {html.escape(self.noise_source)}</p>"
            "<table><thead><tr><th>release</th><th>count</th><th>rows</th><th>noise multiplier</th>"
            f"</tr></thead><tbody>{rows}</tbody></table>{f'<p>{NOT_ADDED}</p>' if disjoint else ''}"
            f"<p>Assumed:</p><ul>{sentences}</ul>"
        )


def compose_statements(
    statements: Sequence[PrivacyStatement], delta: float, accountant: str = "auto"
) -> PrivacyStatement:
    """Return the statement of several fits on the same rows, one after the other.

    Parameters
    ----------
    statements : sequence of PrivacyStatement
        At least one. What a later fit asks may depend on what earlier ones answered. Each fit draws
        its own batches and blocks, so those of different fits are kept apart, and its own noise:
        the total does not hold for fits that were given the same seed.
    delta : float
        In [0, 1): the delta at which the total is stated.
    accountant : str, default="auto"
        Who prices the total: "auto" for the least certified epsilon, or a name.

    Raises
    ------
    ValueError
        If the fits state different adjacencies: such guarantees do not add up to one.
    """
    if not 0 <= delta < 1:
        raise ValueError(f"total_privacy: delta must lie in [0, 1); got {delta!r}.")
    relations = {statement.adjacency for statement in statements}
    if len(relations) > 1:
        raise ValueError(
            f"total_privacy: the models state different adjacencies ({sorted(relations)}); "
            "fit them under one."
        )
    releases = _in_sequence(statements)
    event = Composed(tuple((record.event, record.count) for record in releases))
    epsilon, certifier = price(event, delta, Adjacency.parse(relations.pop()), accountant)
    sources = {statement.noise_source for statement in statements}
    order = ("none", "seeded", "system")  # the weakest speaks for the whole
    assumptions = dict.fromkeys(text for item in statements for text in item.assumptions)
    return PrivacyStatement(
        epsilon=epsilon,
        delta=delta,
        adjacency=statements[0].adjacency,
        accountant=certifier,
        releases=releases,
        assumptions=tuple(assumptions),
        noise_source=min(sources, key=order.index),
        n_rows=statements[0].n_rows if len({item.n_rows for item in statements}) == 1 else None,
    )


def _in_sequence(statements: Iterable[PrivacyStatement]) -> tuple[ReleaseRecord, ...]:
    """Releases of separate fits in order, their partitions kept apart, equal runs merged."""
    releases: list[ReleaseRecord] = []
    epochs = 0
    for statement in statements:
        first = epochs
        for record in statement.releases:
            event = in_later_epochs(record.event, first)
            epochs = max([epochs, *(part.epoch + 1 for part in partitions_in(event))])
            last = releases[-1] if releases else None
            if last is not None and (last.kind, last.event) == (record.kind, event):
                releases[-1] = replace(last, count=last.count + record.count)
            else:
                releases.append(replace(record, event=event))
    return tuple(releases)
