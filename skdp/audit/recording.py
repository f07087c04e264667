"""Record a fit, answer by answer; repeat it on other rows with the same answers forced."""

import contextlib
import inspect
import io
import pickle
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, ClassVar

import numpy as np

from skdp._numbers import Array, Indices
from skdp.accounting import Adjacency, Event, Gaussian, Laplace, ObjectivePerturbed
from skdp.oracle.noise import NoiseSource, Size, drawing_through


class ReplayMismatch(RuntimeError):  # noqa: N818  reads as what it says
    """A fit took another course on the neighbour than the answers that were forced explain."""


@dataclass(frozen=True, eq=False)
class Answer:
    """One noisy answer, and what it would have been without noise.

    Attributes
    ----------
    value : array
    statistic : array
    event : Event
        The mechanism.
    bound : float
        What one record adds to the statistic at most, as the mechanism was told.
    std : float
        Standard deviation of the noise in each coordinate.
    """

    value: Array
    statistic: Array
    event: Gaussian | Laplace | ObjectivePerturbed
    bound: float
    std: float

    @property
    def order(self) -> int:
        """Of the norm that the sensitivity is in."""
        return 1 if isinstance(self.event, Laplace) else 2

    def sensitivity(self, adjacency: Adjacency) -> float:
        """Return how far the statistic may move from one neighbour to the other."""
        return self.event.sensitivity(adjacency) * self.bound

    def multiplier(self, adjacency: Adjacency) -> float:
        """Return the noise in units of the sensitivity, as accountants take it."""
        # of L1 sums a multiplier is a scale, not a standard deviation
        scale = self.std / (np.sqrt(2) if self.order == 1 else 1)
        return float(scale / self.sensitivity(adjacency))

    @property
    def is_noisy(self) -> bool:
        """Whether noise was added to finite numbers, so that it can be looked at."""
        finite = np.isfinite(self.value).all() and np.isfinite(self.statistic).all()
        return bool(self.std > 0 and finite)

    @property
    def noise(self) -> Array:
        """The noise of this answer, in standard deviations."""
        drawn: Array = (self.value - self.statistic).ravel() / self.std
        return drawn


@dataclass(frozen=True, eq=False)
class ChargedRelease:
    """A release that the ledger charged, and the answers that were given for it."""

    kind: str
    event: Event
    adjacency: Adjacency
    answers: list[Answer] = field(default_factory=list)


class RecordingSource(NoiseSource):
    """A source of noise that keeps every draw and every answer of a fit, or repeats them.

    Draws (noise, and the coins of samplers) and answers are repeated in their order; what is
    computed from the rows is computed anew, so that it can be compared.

    Parameters
    ----------
    source : NoiseSource
        Where draws come from.
    earlier : RecordingSource or None
        The source to repeat.
    """

    name = "seeded"
    keeps_record: ClassVar[bool] = True

    def __init__(self, source: NoiseSource, earlier: "RecordingSource | None") -> None:
        self.source_name = source.name
        self.charged: list[ChargedRelease] = []
        self.n_answers = 0
        self._source, self._draws = source, list[tuple[object, Any]]()
        self._earlier = earlier
        self._forced = [] if earlier is None else [a for c in earlier.charged for a in c.answers]

    def record_charge(self, kind: str, event: Event, scale: float, adjacency: Adjacency) -> None:
        self.charged.append(ChargedRelease(kind, event.scaled(scale), adjacency))

    def record_answer(
        self,
        answer: Array,
        statistic: Array | Callable[[Array], Array],
        event: Gaussian | Laplace | ObjectivePerturbed,
        bound: float,
        std: float,
    ) -> Array:
        if self._earlier is not None:
            if self.n_answers >= len(self._forced):
                raise ReplayMismatch("more releases on the neighbour")
            forced = self._forced[self.n_answers].value
            if forced.shape != answer.shape:
                raise ReplayMismatch("the shape of an answer depends on the rows")
            answer = forced.copy()
        found = statistic(answer) if callable(statistic) else statistic.copy()
        if not self.charged:
            raise ReplayMismatch("an answer that no release was charged for")
        self.charged[-1].answers.append(Answer(answer.copy(), found, event, bound, std))
        self.n_answers += 1
        return answer

    def _drawn(self, what: tuple[object, ...], draw: Callable[[], Any]) -> Any:
        if self._earlier is None:
            drawn = draw()
        else:
            position = len(self._draws)
            repeated = self._earlier._draws[position : position + 1]
            if not repeated or repeated[0][0] != what:
                raise ReplayMismatch(f"a draw depends on the rows: {what[0]}")
            drawn = repeated[0][1]
        self._draws.append((what, drawn.copy()))
        return drawn.copy()

    def gaussian(self, scale: float, size: Size) -> Array:
        drawn: Array = self._drawn(
            ("gaussian", scale, size), lambda: self._source.gaussian(scale, size)
        )
        return drawn

    def laplace(self, scale: float, size: Size) -> Array:
        drawn: Array = self._drawn(
            ("laplace", scale, size), lambda: self._source.laplace(scale, size)
        )
        return drawn

    def integers(self, high: int, size: Size) -> Indices:
        drawn: Indices = self._drawn(
            ("integers", high, size), lambda: self._source.integers(high, size)
        )
        return drawn

    def permutation(self, n: int) -> Indices:
        drawn: Indices = self._drawn(("permutation", n), lambda: self._source.permutation(n))
        return drawn

    def bernoulli_subset(self, n: int, rate: float) -> Indices:
        drawn: Indices = self._drawn(
            ("bernoulli_subset", n, rate), lambda: self._source.bernoulli_subset(n, rate)
        )
        return drawn


@dataclass(frozen=True, eq=False)
class Recording:
    """A fit, and all that could be seen of it.

    Attributes
    ----------
    model : object
        Fitted, unless it was refused.
    sources : list of RecordingSource
        One for each private fit inside.
    messages : list of str
        Warnings and printed lines.
    error : Exception or None
        What it was refused with.
    """

    model: Any
    sources: list[RecordingSource]
    messages: list[str]
    error: Exception | None

    @property
    def charged(self) -> list[ChargedRelease]:
        """All releases, in order."""
        return [one for source in self.sources for one in source.charged]

    @property
    def refusal(self) -> str:
        """Type and message of the refusal; "" if there was none."""
        return "" if self.error is None else f"{type(self.error).__name__}: {self.error}"

    def seen(self) -> dict[str, bytes | None]:
        """Return everything that the model holds, by attribute, as bytes; None where none can."""
        found = {name: _as_bytes(value) for name, value in vars(self.model).items()}
        return {**found, "its pickle": _as_bytes(self.model)}


def _as_bytes(value: Any, holders: tuple[int, ...] = ()) -> bytes | None:
    """Pickle a value; twice, so that it does not matter which of its equal parts are one object.

    What cannot be pickled, as rows refuse to be, is pickled part by part. ``holders`` are the ids
    of what holds the value.
    """
    with contextlib.suppress(pickle.PicklingError, TypeError, AttributeError):
        return pickle.dumps(pickle.loads(pickle.dumps(value)))
    if id(value) in holders:
        return b"a cycle"
    parts: Any = None
    if isinstance(value, FunctionType):
        parts = [value.__qualname__, value.__defaults__, inspect.getclosurevars(value).nonlocals]
    elif isinstance(value, Mapping):
        parts = [*value.items()]
    elif isinstance(value, list | tuple):
        parts = value
    elif hasattr(value, "__dict__") and not isinstance(value, type | ModuleType):
        parts = [type(value).__qualname__, vars(value)]
    if parts is None:
        return None
    found = [_as_bytes(part, (*holders, id(value))) for part in parts]
    known = [part for part in found if part is not None]
    return b"|".join(known) if len(known) == len(found) else None


def record(model: Any, fit: Mapping[str, Any], earlier: Recording | None = None) -> Recording:
    """Fit a model and keep a record; with an earlier one, repeat its draws and answers.

    Parameters
    ----------
    model : estimator
        It is fitted, not a copy.
    fit : mapping
        Arguments of ``fit``, by name.
    earlier : Recording, optional
    """
    sources: list[RecordingSource] = []

    def through(source: NoiseSource) -> RecordingSource:
        before = None
        if earlier is not None:
            if len(sources) >= len(earlier.sources):
                raise ReplayMismatch("more private fits on the neighbour")
            before = earlier.sources[len(sources)]
        sources.append(RecordingSource(source, before))
        return sources[-1]

    printed, error = io.StringIO(), None
    with (
        warnings.catch_warnings(record=True) as warned,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        drawing_through(through),
    ):
        warnings.simplefilter("always")
        # An accountant imports its reference at first use, which warns once, whatever the rows.
        warnings.simplefilter("ignore", ImportWarning)
        try:
            model.fit(**fit)
        except Exception as refusal:  # of whatever type: it is compared with the other fit's
            error = refusal
    messages = [f"{warning.category.__name__}: {warning.message}" for warning in warned]
    return Recording(model, sources, [*messages, printed.getvalue()], error)
