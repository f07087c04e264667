"""Record a fit, answer by answer. Repeat it on other rows, or with other noise, answers forced."""

import contextlib
import copyreg
import functools
import io
import math
import pickle
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, ClassVar, NoReturn

import numpy as np
from sklearn.base import BaseEstimator

from skdp._numbers import AnyArray, Array, Indices
from skdp._oracle.noise import NoiseSource, Size, SystemSource, drawing_through
from skdp._oracle.sources.base import noting_reads
from skdp.accounting import Adjacency, Event, Gaussian, Laplace, NoisyMaximum

# What two fits that are compared differ in.
ROWS, SECRETS = "the rows", "the noise or secret choices"


class ReplayMismatch(RuntimeError):  # noqa: N818  reads as what it says
    """A fit differs on the neighbour more than the forced answers explain."""


@dataclass(frozen=True, eq=False)
class Answer:
    """One noisy answer, and the same answer without noise.

    Attributes
    ----------
    value : array
    statistic : array
    event : Event
        The mechanism.
    bound : float
        Largest contribution of one record to the statistic, as it was passed to the mechanism.
    std : float
        Standard deviation of the noise in each coordinate.
    """

    value: Array
    statistic: Array
    event: Gaussian | Laplace | NoisyMaximum
    bound: float
    std: float

    @property
    def order(self) -> float:
        """Of the norm that the sensitivity is in."""
        if isinstance(self.event, NoisyMaximum):
            return math.inf
        return 1 if isinstance(self.event, Laplace) else 2

    def sensitivity(self, adjacency: Adjacency) -> float:
        """Return how far the statistic may move from one neighbour to the other."""
        return self.event.sensitivity(adjacency) * self.bound

    def multiplier(self, adjacency: Adjacency) -> float:
        """Return the noise in units of the sensitivity, as prices depend on it."""
        # of Laplace noise a multiplier is a scale, not a standard deviation
        scale = self.std / (1 if self.order == 2 else np.sqrt(2))
        return float(scale / self.sensitivity(adjacency))

    @property
    def is_noisy(self) -> bool:
        """Whether noise was added to finite numbers, so that it can be looked at."""
        finite = np.isfinite(self.value).all() and np.isfinite(self.statistic).all()
        return bool(self.std > 0 and finite)

    @property
    def noise(self) -> Array:
        """The noise of this answer, in standard deviations."""
        return np.asarray((self.value - self.statistic).ravel() / self.std)


@dataclass(frozen=True, eq=False)
class ChargedRelease:
    """A release that the ledger charged, and the answers that were given for it.

    Attributes
    ----------
    kind : str
    event : Event
    adjacency : Adjacency
    answers : list of Answer
    batches : list of (array, int)
        Numbers of the rows that samplers drew for it, and from how many rows.
    """

    kind: str
    event: Event
    adjacency: Adjacency
    answers: list[Answer] = field(default_factory=list)
    batches: list[tuple[Indices, int]] = field(default_factory=list)

    def terms(self) -> tuple[object, ...]:
        """Return the kind, the event, and sensitivity and noise of every answer."""
        return self.kind, self.event, [(one.event, one.bound, one.std) for one in self.answers]


@dataclass(frozen=True)
class RecordedRun:
    """A run of a private search.

    Attributes
    ----------
    number : int
        Of the candidate.
    start, stop : int
        Its private fits are those of the recording from ``start`` to before ``stop``.
    """

    number: int
    start: int
    stop: int


class RecordingSource(NoiseSource):
    """A source of noise that keeps every draw and every answer of a fit, or repeats them.

    Answers are repeated in their order, and so are draws (noise, and the coins of samplers) unless
    they are to be fresh. Results of the rows are computed anew, so that they can be compared.

    Parameters
    ----------
    source : NoiseSource
        Where draws come from.
    recorder : Recorder
        Of the whole fit, which may have several sources.
    earlier : RecordingSource or None
        The source to repeat.
    """

    name = "seeded"
    keeps_record: ClassVar[bool] = True

    def __init__(
        self, source: NoiseSource, recorder: "Recorder", earlier: "RecordingSource | None"
    ) -> None:
        self.source_name = source.name
        self.charged: list[ChargedRelease] = []
        self.runs_made: list[RecordedRun] = []
        self.n_answers = 0
        # From a seed, fresh draws would be the same ones.
        self._source = SystemSource() if recorder.fresh else source
        self._recorder, self._earlier = recorder, earlier
        self._draws, self._public_draws = list[tuple[object, Any]](), list[Indices]()
        self._forced = [] if earlier is None else [a for c in earlier.charged for a in c.answers]

    def record_charge(self, kind: str, event: Event, scale: float, adjacency: Adjacency) -> None:
        self.charged.append(ChargedRelease(kind, event.scaled(scale), adjacency))

    def record_batch(self, rows: Indices, n_rows: int) -> None:
        if self.charged:
            self.charged[-1].batches.append((rows.copy(), n_rows))

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        self._recorder.n_answering += 1
        try:
            yield
        finally:
            self._recorder.n_answering -= 1

    def record_answer(
        self,
        answer: Array,
        statistic: Array,
        event: Gaussian | Laplace | NoisyMaximum,
        bound: float,
        std: float,
    ) -> Array:
        if self._earlier is not None:
            if self.n_answers >= len(self._forced):
                self._recorder.differ("the number of releases")
            forced = self._forced[self.n_answers].value
            if forced.shape != answer.shape:
                self._recorder.differ("the shape of an answer")
            answer = forced.copy()
        clean = statistic.copy()
        if not self.charged:
            self._recorder.end("an answer that no release was charged for")
        self.charged[-1].answers.append(Answer(answer.copy(), clean, event, bound, std))
        self.n_answers += 1
        return answer

    def runs(self, n: int, mean: int) -> Iterator[int]:
        """Note each run. There are two at least, so that all but the best can be left out."""
        if self._recorder.run is not None:
            yield self._recorder.only(self._recorder.run)
            return
        for number in super().runs(n, mean):
            yield from self._run(number)
        if len(self.runs_made) == 1:
            yield from self._run(int(self.integers(n, 1)[0]))

    def _run(self, number: int) -> Iterator[int]:
        start = len(self._recorder.sources)
        yield number
        self.runs_made.append(RecordedRun(number, start, len(self._recorder.sources)))

    def coins(self) -> np.random.Generator:
        """Return a generator for choices that need no secrecy: always the recorded one."""
        position, earlier = len(self._public_draws), self._earlier
        if self._recorder.fresh and earlier and position < len(earlier._public_draws):
            seed = earlier._public_draws[position]
        else:
            seed = self.integers(2**32, 4)
        self._public_draws.append(seed)
        return np.random.default_rng([int(part) for part in seed])

    def _drawn(self, kind: str, *terms: object) -> AnyArray:
        """Return a draw by the method ``kind`` of the source, or the one that was recorded."""
        if self._earlier is None or self._recorder.fresh:
            drawn = getattr(self._source, kind)(*terms)
        else:
            position = len(self._draws)
            repeated = self._earlier._draws[position : position + 1]
            if not repeated or repeated[0][0] != (kind, *terms):
                self._recorder.differ(f"a draw ({kind})")
            drawn = repeated[0][1]
        self._draws.append(((kind, *terms), drawn.copy()))
        return np.array(drawn)

    def gaussian(self, scale: float, size: Size) -> Array:
        return self._drawn("gaussian", scale, size)

    def laplace(self, scale: float, size: Size) -> Array:
        return self._drawn("laplace", scale, size)

    def integers(self, high: int, size: Size) -> Indices:
        return self._drawn("integers", high, size)

    def permutation(self, n: int) -> Indices:
        return self._drawn("permutation", n)

    def bernoulli_subset(self, n: int, rate: float) -> Indices:
        return self._drawn("bernoulli_subset", n, rate)


class Recorder:
    """Gives every private fit inside a fit a `RecordingSource`.

    Parameters
    ----------
    earlier : Recording or None
        Whose answers are forced.
    fresh : bool
        Whether noise and secret choices are drawn anew all the same.
    run : RecordedRun or None
        The one run that a private search makes, in place of all that were recorded.

    Attributes
    ----------
    cause : str
        Why it may differ from the earlier fit.
    sources : list of RecordingSource
    n_answering : int
        How many releases are being answered, one inside the other.
    n_reads_outside : int
        Passes over the rows that began while none was.
    mismatch : str
        The first difference that ended a fit. Tools such as searches catch its exception.
    """

    def __init__(self, earlier: "Recording | None", fresh: bool, run: RecordedRun | None) -> None:
        self.fresh, self.run = fresh, run
        self.cause = SECRETS if fresh else ROWS
        self.sources: list[RecordingSource] = []
        self.n_answering = self.n_reads_outside = 0
        self.mismatch = ""
        self._is_repeated, self._left = earlier is not None, list[RecordingSource]()
        self._earlier = earlier
        if earlier is not None:
            self._left = list(earlier.sources)

    def through(self, source: NoiseSource) -> RecordingSource:
        """Return a source that records all draws from the given source."""
        if self._is_repeated and not self._left:
            self.differ("the number of private fits")
        before = self._left.pop(0) if self._is_repeated else None
        self.sources.append(RecordingSource(source, self, before))
        return self.sources[-1]

    def differ(self, part: str) -> NoReturn:
        """End a fit of which something depends on more than the forced answers."""
        self.end(f"{part} depends on {self.cause}")

    def end(self, text: str) -> NoReturn:
        """End a fit, and remember why."""
        self.mismatch = self.mismatch or text
        raise ReplayMismatch(text)

    def only(self, run: RecordedRun) -> int:
        """Go on with the recorded fits of one run, and return its candidate."""
        assert self._earlier is not None
        self._left = self._earlier.sources[run.start : run.stop]
        return run.number

    def note_read(self) -> None:
        """Record a pass over the rows."""
        self.n_reads_outside += self.n_answering == 0


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
        The exception of a refusal.
    returned : object
        The result of ``fit``.
    n_reads_outside : int
        Passes over the rows while no release was being answered.
    mismatch : str
        Of `Recorder`. "" if there was none.
    """

    model: BaseEstimator
    sources: list[RecordingSource]
    messages: list[str]
    error: Exception | None
    returned: Any
    n_reads_outside: int
    mismatch: str

    @property
    def charged(self) -> list[ChargedRelease]:
        """All releases, in order."""
        return [one for source in self.sources for one in source.charged]

    @property
    def runs(self) -> list[RecordedRun]:
        """The runs of a private search. None if it was no search."""
        return [run for source in self.sources for run in source.runs_made]

    @property
    def refusal(self) -> str:
        """Type and message of the refusal. "" if there was none."""
        return "" if self.error is None else f"{type(self.error).__name__}: {self.error}"

    def seen(self) -> dict[str, bytes | None]:
        """Return everything that the model holds, by attribute, as bytes. None where none can."""
        state = {name: as_bytes(value) for name, value in vars(self.model).items()}
        if self.returned is not self.model:
            state["what fit returned"] = as_bytes(self.returned)
        return {**state, "its pickle": as_bytes(self.model)}


def record(
    model: BaseEstimator,
    fit: Mapping[str, Any],
    earlier: Recording | None = None,
    *,
    fresh: bool = False,
    run: RecordedRun | None = None,
) -> Recording:
    """Fit a model and keep a record. With an earlier one, repeat its draws and answers.

    Parameters
    ----------
    model : estimator
        It is fitted, not a copy.
    fit : mapping
        Arguments of ``fit``, by name.
    earlier : Recording, optional
    fresh : bool, default=False
        Whether only answers are repeated, and draws are not.
    run : RecordedRun, optional
        The one run to make of those that a search made in the earlier recording.
    """
    recorder = Recorder(earlier, fresh, run)
    printed, error, returned = io.StringIO(), None, model
    with (
        warnings.catch_warnings(record=True) as warned,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        drawing_through(recorder.through),
        noting_reads(recorder.note_read),
    ):
        warnings.simplefilter("always")
        try:
            returned = model.fit(**fit)
        except Exception as refusal:  # of whatever type: it is compared with the other fit's
            error = refusal
    messages = [f"{warning.category.__name__}: {warning.message}" for warning in warned]
    messages.append(printed.getvalue())
    outcome = model, recorder.sources, messages, error, returned
    return Recording(*outcome, recorder.n_reads_outside, recorder.mismatch)


# ---------------------------------------------------------------- contents of a model

REDUCERS = ("__getstate__", "__reduce__", "__reduce_ex__")


def as_bytes(value: object) -> bytes | None:
    """Return bytes that are equal for two objects only if they hold the same. None if unknown.

    They are a pickle in which attributes stand beside the class's own choice, an array that is a
    view is followed by the array that it views, one of a subclass by its attributes, and functions
    that no module knows by name show their defaults and closures and, if partial, their arguments.
    It is made twice, the second time without memo: which of the equal parts are one object follows
    from plans that earlier fits left behind.
    """
    written, plain = io.BytesIO(), io.BytesIO()
    with contextlib.suppress(Exception):  # of whatever type: what is not known is a finding
        _FullPickler(written).dump(value)
        contents = pickle.loads(written.getvalue())
        pickler = pickle.Pickler(plain)
        pickler.fast = True
        try:
            pickler.dump(contents)
        except ValueError:  # cycles need a memo
            return pickle.dumps(contents)
        return plain.getvalue()
    return None


class _Contents:
    """Placeholder that is pickled in place of an object, with everything the object refers to."""


class _FullPickler(pickle.Pickler):
    """Pickles parts of objects that pickling leaves out. What it writes is not to be used."""

    def reducer_override(self, value: object) -> Any:
        parts = _parts(value)
        # Parts are written as a state, once the object itself was noted, so that cycles end.
        return NotImplemented if parts is None else (_Contents, (), {"parts": parts})


def _parts(value: object) -> list[object] | None:
    """Return what stands for an object. None if its pickle leaves nothing out."""
    kind = type(value)
    if isinstance(value, ModuleType):
        return [value.__name__]
    if isinstance(value, type | FunctionType) and _is_importable(value):
        return None
    if isinstance(value, type):
        return [value.__qualname__]
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return [value.__qualname__, value.__defaults__, value.__kwdefaults__, cells, vars(value)]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords, vars(value)]
    if isinstance(value, np.ndarray) and (value.base is not None or hasattr(value, "__dict__")):
        owner = value.base
        viewed = owner if isinstance(owner, np.ndarray | None) else bytes(memoryview(owner))
        # Attributes are those of a subclass, whose pickle leaves them out.
        plain = np.array(value, order="K", subok=False)
        return [kind, plain, viewed, getattr(value, "__dict__", None)]
    names = copyreg._slotnames(kind)  # type: ignore[attr-defined]  # typeshed has not this one
    held = {name: getattr(value, name) for name in names if hasattr(value, name)}
    held |= getattr(value, "__dict__", {})
    is_plain = all(getattr(kind, name) is getattr(object, name) for name in REDUCERS)
    if (is_plain and _is_importable(kind)) or not held:
        return None
    pickled = None
    with contextlib.suppress(Exception):  # rows refuse; what they are made of follows
        pickled = value.__reduce_ex__(pickle.DEFAULT_PROTOCOL)
    return [kind, pickled, held]


def _is_importable(value: type | FunctionType) -> bool:
    target: Any = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        target = getattr(target, name, None)
    return target is value
