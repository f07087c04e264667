"""Replay fits on neighbours with forced answers. Whatever else differs is a leak."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter

from skdp._fitting.privacy import Privacy, terms_among
from skdp._numbers import MatrixLike
from skdp.accounting import LABEL, Adjacency, Event, PrivacyStatement, walk
from skdp.audit import neighbours as pairs
from skdp.audit.randomness import Randomness
from skdp.audit.recording import (
    ROWS,
    SECRETS,
    ChargedRelease,
    RecordedRun,
    Recording,
    record,
)

# Relative amount by which noise may fall short of what is listed: products in another order.
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Finding:
    """Something that a fit showed beyond its charged answers.

    Attributes
    ----------
    pair : str
        The hostile record on which it showed.
    text : str
        Its description.
    """

    pair: str
    text: str

    def __str__(self) -> str:
        return f"{self.pair}: {self.text}"


@dataclass(frozen=True)
class ReplayedRelease:
    """Movement of the statistics of the releases at one place in the sequence.

    Attributes
    ----------
    kind : str
    n_answers : int
        Noisy answers in it, over all fits.
    moved : float
        The farthest that its statistic moved between neighbours, where that was closest to the
        sensitivity.
    sensitivity : float
        How far it may move, as it was charged.
    ratio : float
        One over the other. Above 1 it is a violation.
    pair : str
        The record that moved it so far.
    """

    kind: str
    n_answers: int
    moved: float
    sensitivity: float
    ratio: float
    pair: str


class Report:
    """Result of an audit, which a notebook shows as it is printed."""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


@dataclass(frozen=True)
class ReplayReport(Report):
    """Result of `replay`.

    Attributes
    ----------
    estimator : str
    releases : tuple of ReplayedRelease
        One for each place in the sequence of releases.
    findings : tuple of Finding
    pairs : tuple of str
        The hostile records that were tried.
    refused : tuple of str
        Those that ``fit`` refused, in the same words with and without the record.
    """

    estimator: str
    releases: tuple[ReplayedRelease, ...]
    findings: tuple[Finding, ...]
    pairs: tuple[str, ...]
    refused: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True if the replay raised no finding."""
        return not self.findings

    def __str__(self) -> str:
        verdict = "nothing beyond the charged answers"
        if self.findings:
            verdict = f"{len(self.findings)} FINDINGS"
        refused = f", {len(self.refused)} refused alike" if self.refused else ""
        head = f"replay of {self.estimator} on {len(self.pairs)} pairs{refused}: {verdict}"
        lines = [head, *(f"  ! {finding}" for finding in self.findings)]
        lines.append(f"  {'release':<24}{'moved':>12}{'charged':>12}{'ratio':>8}  farthest on")
        for one in self.releases:
            lines.append(
                f"  {one.kind:<24}{one.moved:>12.4g}{one.sensitivity:>12.4g}{one.ratio:>8.4f}"
                f"  {one.pair}"
            )
        return "\n".join(lines)


class ReplayComparison:
    """Compares recordings of neighbours and keeps the differences."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._places: dict[int, ReplayedRelease] = {}
        self._names: list[str] = []
        self._refused: list[str] = []
        self._randomness = Randomness()
        self._priced: list[PrivacyStatement] = []

    @np.errstate(over="ignore", invalid="ignore")  # of a statistic that has no bound
    def compare(self, name: str, first: Recording, second: Recording, relation: Adjacency) -> None:
        """Compare a recording with its repetition on the neighbour.

        Parameters
        ----------
        name : str
            Of the pair.
        first, second : Recording
        relation : Adjacency
            How the two data sets differ.
        """
        self._names.append(name)
        texts = [*self._courses(first, second)]
        if not texts and first.error is None:
            texts += self._statistics(name, first, second, relation)
            texts += _differences(first, second, ROWS)
            texts += _as_charged(first)
            texts += self._as_stated(first)
            if first.n_reads_outside:
                texts.append("rows were read while no release was being answered")
        elif not texts:
            self._refused.append(name)
        self.findings += [Finding(name, text) for text in texts]
        # With a seed every fit has the same noise, so one fit suffices.
        if len(self._names) == 1 or _is_secure(first):
            self._randomness.add(first)

    def compare_fresh(self, name: str, first: Recording, others: Iterable[Recording]) -> None:
        """Compare a recording with one on the same rows, its answers forced, its draws fresh.

        Noise and secret choices are all that differs, so nothing may. Of a private search, which
        shows one of its runs, each of the others makes only one run. One of them shows the same.

        Parameters
        ----------
        name : str
        first : Recording
        others : iterable of Recording
        """
        found: list[list[str]] = []
        for other in others:
            courses = [*self._courses(first, other, SECRETS, same_runs=not first.runs)]
            found.append(courses or [*_differences(first, other, SECRETS)])
            if not found[-1]:
                break
        self.findings += [Finding(name, text) for text in min(found, key=len)]

    def report(self, estimator: str) -> ReplayReport:
        """Return the report on all fits that were compared."""
        every = list(self.findings)
        every += [Finding("all fits", text) for text in self._randomness.findings()]
        if len(self._refused) == len(self._names):
            every.append(Finding("all fits", "every fit was refused: there is nothing to audit"))
        return ReplayReport(
            estimator,
            tuple(one for _, one in sorted(self._places.items())),
            tuple(dict.fromkeys(every)),
            tuple(self._names),
            tuple(self._refused),
        )

    @staticmethod
    def _courses(
        first: Recording, second: Recording, cause: str = ROWS, same_runs: bool = True
    ) -> Iterator[str]:
        """Yield what is different about the course of two fits."""
        if second.mismatch or first.mismatch:
            yield second.mismatch or first.mismatch
        elif first.refusal != second.refusal:
            yield "only one of the two fits was refused, or their refusals differ"
        elif first.error is None and same_runs:
            here, there = first.charged, second.charged
            if [len(one.answers) for one in here] != [len(one.answers) for one in there]:
                yield f"the number of releases depends on {cause}: {len(here)}, {len(there)}"
            elif not here:
                yield "a fit without a release"
            else:
                yield from (
                    f"sensitivity or noise of release {place}, {one.kind}, depends on {cause}"
                    for place, (one, other) in enumerate(zip(here, there, strict=True), 1)
                    if one.terms() != other.terms()
                )

    def _as_stated(self, recording: Recording) -> Iterator[str]:
        """Yield a finding if a statement claims less than its own releases cost."""
        statement = getattr(recording.model, "privacy_", None)
        if isinstance(statement, PrivacyStatement) and statement not in self._priced:
            self._priced.append(statement)
            cost = statement.epsilon_at(statement.delta)
            if cost > statement.epsilon * (1 + TOLERANCE):
                yield (
                    f"the statement says epsilon {statement.epsilon:.6g}. The releases that it "
                    f"lists cost {cost:.6g}"
                )

    def _statistics(
        self, name: str, first: Recording, second: Recording, relation: Adjacency
    ) -> Iterator[str]:
        """Yield what moved too far, and keep how far everything did."""
        for place, (one, other) in enumerate(zip(first.charged, second.charged, strict=True)):
            farthest: tuple[float, float] = (-1.0, 1.0)
            for here, there in zip(one.answers, other.answers, strict=True):
                sensitivity = here.sensitivity(relation)
                # Scaled first, so that a huge difference does not overflow into a pass.
                change = (here.statistic - there.statistic) / sensitivity
                ratio = float(np.linalg.norm(change.ravel(), here.order))
                farthest = max(farthest, (math.inf if math.isnan(ratio) else ratio, sensitivity))
            ratio, sensitivity = farthest
            if ratio > 1:
                yield f"a {one.kind} statistic moved by {ratio:.6g} times its sensitivity"
            known = self._places.get(place)
            n_answers = len(one.answers) + (known.n_answers if known else 0)
            if known is None or ratio > known.ratio:
                known = ReplayedRelease(
                    one.kind, n_answers, ratio * sensitivity, sensitivity, ratio, name
                )
            self._places[place] = replace(known, n_answers=n_answers)


def _differences(first: Recording, second: Recording, cause: str) -> Iterator[str]:
    """Yield what else is different."""
    if first.messages != second.messages:
        yield f"warnings or printed lines depend on {cause}"
    one, other = first.seen(), second.seen()
    if set(one) != set(other):
        yield f"fitted attributes differ: {', '.join(sorted(set(one) ^ set(other)))}"
        return
    different = [name for name in one if one[name] != other[name]]
    if len(different) > 1:
        different = [name for name in different if name != "its pickle"]
    yield from (f"{name} depends on {cause} beyond the releases" for name in different)
    unknown = sorted(name for name, value in one.items() if value is None)
    yield from (f"{name} cannot be pickled, so what it holds is not known" for name in unknown)


def _as_charged(recording: Recording) -> Iterator[str]:
    """Yield releases with less noise than was charged, or that the statement does not list."""
    statement = getattr(recording.model, "privacy_", None)
    listed: list[Event] = [charged.event for charged in recording.charged]
    if statement is not None and len(recording.sources) == 1:
        if [one.kind for one in statement.releases] == ["adaptive"]:
            # A run that decides its noise on the way states the whole budget, and keeps to it.
            adjacency = Adjacency.parse(statement.adjacency, labels=True)
            answers = [a for charged in recording.charged for a in charged.answers]
            spent = sum(answer.multiplier(adjacency) ** -2 for answer in answers)
            if spent > statement.releases[0].event.mu(adjacency) ** 2 * (1 + TOLERANCE):
                yield "more was spent than the statement says"
        else:
            stated = [one for one in statement.releases for _ in range(one.count)]
            if len(stated) < len(listed):
                yield "the statement does not list every release"
                return
            if [one.kind for one in stated[: len(listed)]] != [c.kind for c in recording.charged]:
                yield "the statement lists other releases"
                return
            listed = [one.event for one in stated]
    for charged, event in zip(recording.charged, listed, strict=False):
        yield from _noise_of(charged, event)


def _noise_of(charged: ChargedRelease, event: Event) -> Iterator[str]:
    """Yield what is wrong with the noise of a release for which an event is listed."""
    # A pass is one release of several answers. The order within it is its own affair.
    parts = [(part, n) for part, n in walk(event) if not part.inner()]
    listed: list[Any] = [mechanism for mechanism, n in parts for _ in range(n)]
    if len(listed) != len(charged.answers):
        yield (
            f"a {charged.kind} release gave {len(charged.answers)} answers; {len(listed)} were "
            "charged"
        )
        return
    adjacency = charged.adjacency
    multipliers = sorted(answer.multiplier(adjacency) for answer in charged.answers)
    stated = sorted(part.noise_multiplier / part.sensitivity(adjacency) for part in listed)
    if any(a < b * (1 - TOLERANCE) for a, b in itertools.zip_longest(multipliers, stated)):
        yield f"a {charged.kind} release has less noise than was charged"


def _is_secure(recording: Recording) -> bool:
    """Check that noise came from the operating system unless the statement lists another source."""
    statement = getattr(recording.model, "privacy_", None)
    drawn_by = {source.source_name for source in recording.sources}
    return drawn_by == {"system"} or getattr(statement, "noise_source", "") == "system"


# ---------------------------------------------------------------------- replay


def replay(
    estimator: BaseEstimator,
    X: MatrixLike | None = None,
    y: ArrayLike | None = None,
    neighbours: Iterable[pairs.NeighbouringPair] | None = None,
    *,
    groups: ArrayLike | None = None,
    adjacency: str | None = None,
) -> ReplayReport:
    """Fit on data and record every answer, then on a neighbour with the recorded answers forced.

    Two data sets that differ in one record must then look alike in everything: every statistic
    moves by no more than the sensitivity that was charged, the noise is as charged, and all fitted
    attributes, warnings, printed lines and refusals are the same, bit for bit. Whatever differs has
    left by another way than a charged release. On one pair a third fit has the same rows and
    answers, and noise, batches and orders of its own: nothing may differ at all.

    It works for any estimator whose private fits go through `skdp`, with solvers of your own, in
    pipelines and in other estimators.

    Parameters
    ----------
    estimator : estimator
        Not changed: clones of it are fitted, without their ``budget``.
    X, y : arrays, default=None
        The other records, for a shape of your choice. If None, small made-up data, and one pair
        that is fitted by compiled loops if numba is installed.
    neighbours : iterable of skdp.audit.NeighbouringPair, default=None
        Pairs of data sets. If None, pairs with an extreme, null, duplicate, opposite, aligned,
        heavy, light or sparse record in one place.
    groups : array of shape (n_samples,), default=None
        Whose record each is: handed to ``fit``. All records of one person differ at once, and
        in some pairs so does their number.
    adjacency : {"zero_out", "replace_one", "label"}, default=None
        Relation to audit, set on the clones. None for the estimator's own.

    Returns
    -------
    ReplayReport

    Raises
    ------
    ValueError
        If the estimator adds no noise (epsilon is infinite), so that there is nothing to audit.

    Notes
    -----
    The report shows how far statistics moved, without noise. Use made-up or public rows: a report
    on private rows is not private.

    Of noise it tests the size and the independence of earlier noise, of batches how often they hold
    a record. All tests together raise a false alarm with a probability below 1e-7. It proves
    nothing about the distribution of noise, nor about records that it did not try. The proofs are
    in the docstrings of releases. It does not search elsewhere, such as in files that hostile code
    writes.

    Examples
    --------
    >>> from skdp import DPRidge, audit
    >>> report = audit.replay(DPRidge(solver="gd", max_iter=5))
    >>> report.ok, max(release.ratio for release in report.releases) <= 1
    (True, True)
    """
    plain = audited_clone(estimator, adjacency)
    is_made_up = X is None
    if is_made_up:
        X, y = pairs.made_up_data(estimator)
    relation = pairs.relation_of(plain)
    weighted = takes_weights(plain, X, y, groups)
    if neighbours is None:
        neighbours = pairs.hostile_pairs(plain, X, y, relation, groups, weighted)
        if is_made_up and groups is None:
            for_loops = pairs.pair_for_loops(plain, relation, weighted)
            neighbours = itertools.chain(neighbours, for_loops)
    comparison = ReplayComparison()
    is_fresh_due = True
    for pair in neighbours:
        made = clone(plain).set_params(**pair.parameters)
        first = record(clone(made), pair.data)
        second = record(clone(made), pair.neighbour, first)
        comparison.compare(pair.name, first, second, pair.relation)
        if is_fresh_due and first.error is None:
            is_fresh_due = False
            runs: list[RecordedRun | None] = [*first.runs] or [None]
            others = (record(clone(made), pair.data, first, fresh=True, run=run) for run in runs)
            comparison.compare_fresh(f"{pair.name}, the same with fresh draws", first, others)
    return comparison.report(type(estimator).__name__)


def audited_clone(estimator: BaseEstimator, adjacency: str | None = None) -> BaseEstimator:
    """Return a clone that charges no budget and states this adjacency."""
    plain = clone(estimator)
    parameters = plain.get_params()
    changes: dict[str, Privacy] = {}
    for name, terms in terms_among(parameters).items():
        given = terms.get_params(deep=False) | {"budget": None}
        if adjacency is not None:
            Adjacency.parse(adjacency, labels=True)
            given["adjacency"] = str(adjacency)
        changes[name] = Privacy(**given)
    for name, value in parameters.items():
        if name.rpartition("__")[2] == "epsilon" and value == math.inf:
            raise ValueError(
                f"{type(estimator).__name__}: epsilon is infinite, so no noise is added and there "
                "is nothing to audit. Set epsilon."
            )
    return plain.set_params(**changes)


def takes_weights(
    estimator: BaseEstimator, X: MatrixLike, y: ArrayLike | None, groups: ArrayLike | None = None
) -> bool:
    """Whether ``fit`` accepts weights, by a trial that also imports all that fits import."""
    given = {"X": X, "y": y, "groups": groups}
    data = {name: one for name, one in given.items() if one is not None}
    # Weights end what adjacency "label" has for free, which is to be audited above all.
    labels_alone = pairs.stated_adjacency(estimator) == LABEL
    if labels_alone or not has_fit_parameter(estimator, "sample_weight"):
        record(clone(estimator), data)
        return False
    weighted = {**data, "sample_weight": np.ones(np.shape(X)[0])}
    return record(clone(estimator), weighted).error is None or bool(
        record(clone(estimator), data).error
    )
