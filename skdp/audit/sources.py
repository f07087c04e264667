"""Check a class of partitions: what it returns in every pass, and what fits make of it."""

import gc
import io
import itertools
import os
import pickle
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from skdp._numbers import AnyArray, MatrixLike, are_numbers
from skdp.fitting import parts
from skdp.fitting.privacy import Privacy, SeededNoise
from skdp.linear_model import DPLogisticRegression, DPRidge
from skdp.model_selection import dp_train_test_split
from skdp.oracle.sources.column_map import Map
from skdp.oracle.sources.keyed_split import starts_of_partitions
from skdp.oracle.sources.partitioned import PartitionRows, Partitions

N_PASSES = 3
N_STEPS = 3  # of gradient descent: what is compared are passes, not models
LONGEST_DELAY = 0.01  # seconds; those of partitions differ, so that some overtake others
RELATIVE_ERROR = 1e-9  # of coefficients, in units of the largest
# What comes back as another number from whatever rounds, converts or prints floats.
FLOATS = np.array([0.1, -0.0, 1e-310, 1e300, np.inf, 2.0**53 + 2])


@dataclass(frozen=True)
class SourceReport:
    """Result of `check_source`.

    Attributes
    ----------
    source : str
        Name of the class.
    n_partitions, n_rows : int
        As the first pass read them.
    findings : tuple of str
        What the class does that a fit cannot bear, or that counts rows wrongly.
    notes : tuple of str
        What it does that costs memory, or that makes random splits coarser.
    """

    source: str
    n_partitions: int
    n_rows: int
    findings: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True if there are no findings."""
        return not self.findings

    def __str__(self) -> str:
        verdict = f"{len(self.findings)} FINDINGS" if self.findings else "all checks passed"
        head = f"{self.source}: {self.n_rows} rows in {self.n_partitions} partitions: {verdict}"
        lines = [f"  ! {text}" for text in self.findings] + [f"  - {text}" for text in self.notes]
        return "\n".join([head, *lines])


@dataclass(frozen=True, eq=False)
class Digest:
    """Result of one pass of a check over a partition."""

    index: int | None
    n_rows: int
    digest: str
    is_text: bool
    is_grouped: bool
    floats: AnyArray


@dataclass(frozen=True)
class DigestTask:
    """The task of a pass of a check; it never raises, as no task does."""

    n_pass: int

    def __call__(self, *given: Any, **named: Any) -> Digest | str:
        rows = PartitionRows(*given, **named)
        try:
            _note_rows(rows.X)
            digest = joblib.hash((rows.X, rows.y, rows.sample_weight, rows.groups))
            share = int(joblib.hash((digest, self.n_pass))[:4], 16) / 2**16
            time.sleep(LONGEST_DELAY * share)
            n_rows, is_text = int(_num_samples(rows.X)), not are_numbers(np.asarray(rows.y))
            return Digest(rows.index, n_rows, digest, is_text, rows.groups is not None, FLOATS)
        except Exception as failure:
            return f"a task failed with {type(failure).__name__}: X has to be rows, as for fit"


# Rows that tasks in this process have been given, as long as they live.
_alive: dict[int, list[weakref.ref[object]]] = {}


def _note_rows(X: object) -> None:
    noted = _alive.get(os.getpid())
    if noted is not None:
        noted.append(weakref.ref(X))


def check_source(
    source: Partitions,
    X: MatrixLike | None = None,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> SourceReport:
    """Run a class of partitions of your own through what fits rely on.

    Every pass has to return what the task makes of each partition, bit for bit, in the same order,
    and each partition once. Its rows are read in several passes, with tasks that take unequal
    times, over threads and without; then a model is fitted, rows are split at random, and, with X
    and y, results are compared with those of the same rows in memory.

    Parameters
    ----------
    source : Partitions
        Over made-up or public rows: the report names sizes, and what is fitted has noise of a
        known seed. No budget is charged.
    X, y : arrays, default=None
        The same rows in memory, in the order of the partitions. None leaves the comparison out.
    sample_weight, groups : arrays, default=None
        What the partitions have beside them.

    Returns
    -------
    SourceReport

    Raises
    ------
    TypeError
        If it is no `skdp.data.Partitions`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.data import Partitions
    >>> from skdp.audit import check_source
    >>> class Lists(Partitions):
    ...     def __init__(self, pairs):
    ...         self._pairs = pairs
    ...
    ...     def run(self, task, spread=map):
    ...         return [task(X, y, index=i) for i, (X, y) in enumerate(self._pairs)]
    >>> X, y = np.random.default_rng(0).standard_normal((200, 2)), np.arange(200.0)
    >>> print(check_source(Lists([(X[:50], y[:50]), (X[50:], y[50:])]), X, y).ok)
    True
    """
    if not isinstance(source, Partitions):
        raise TypeError(
            f"check_source: source must be a subclass of skdp.data.Partitions; got "
            f"{type(source).__name__}."
        )
    findings: list[str] = []
    passes: list[list[Digest]] = []
    noted: list[weakref.ref[object]] = []
    _alive[os.getpid()] = noted
    with ThreadPoolExecutor(2) as pool:
        for number in range(N_PASSES):
            passes.append(_one_pass(source, number, pool.map if number else map, findings))
    del _alive[os.getpid()]
    notes = _notes(passes[0], noted)
    if not findings:
        findings += _differences(passes)
    report = SourceReport(
        type(source).__name__, len(passes[0]), sum(one.n_rows for one in passes[0]), (), notes
    )
    if X is not None and report.n_rows != _num_samples(X):
        findings.append(f"a pass read {report.n_rows} rows; X has {_num_samples(X)}")
    if not findings:  # else what follows would report them once more
        rows = None if X is None else {"X": X, "y": y}
        beside = {"sample_weight": sample_weight, "groups": groups}
        is_text = any(one.is_text for one in passes[0])
        unit = "group" if any(one.is_grouped for one in passes[0]) else "row"
        findings += _differences_of_fits(source, unit, is_text, rows, beside)
        findings += _differences_of_parts(source, report.n_rows)
    return replace(report, findings=tuple(findings))


def _one_pass(source: Partitions, number: int, spread: Map, findings: list[str]) -> list[Digest]:
    """Return what a pass returns; add to the findings if that is nothing that a task returned."""
    try:
        results = list(source.run(DigestTask(number), spread))
    except Exception as failure:
        findings.append(f"pass {number + 1} raised {type(failure).__name__}: {failure}")
        return []
    wrong = [one for one in results if not isinstance(one, Digest)]
    for one in wrong[:1]:
        text = one if isinstance(one, str) else f"run returned {type(one).__name__}"
        findings.append(f"{text}, in place of what the task returns")
    digests = [one for one in results if isinstance(one, Digest)]
    if any(one.floats.tobytes() != FLOATS.tobytes() for one in digests):
        findings.append("what a task returns comes back changed: floats must arrive bit for bit")
    return digests


def _differences(passes: list[list[Digest]]) -> Iterator[str]:
    """Yield what differs between passes, or between what partitions say and where they are."""
    first = [one.digest for one in passes[0]]
    sizes = [one.n_rows for one in passes[0]]
    if not sum(sizes):
        yield "there are no rows"
    for number, later in enumerate(passes[1:], start=2):
        digests, read = [one.digest for one in later], [one.n_rows for one in later]
        if digests == first:
            continue
        if sorted(digests) == sorted(first):
            yield f"pass {number} returned the partitions in another order than pass 1"
        elif read != sizes:
            yield (
                f"pass {number} read {sum(read)} rows in {len(read)} partitions; pass 1 read "
                f"{sum(sizes)} in {len(sizes)}: every pass must read the same rows"
            )
        else:
            yield f"pass {number} read other rows than pass 1"
    places: dict[str, int] = {}
    for place, one in enumerate(passes[0]):
        if one.n_rows and places.setdefault(one.digest, place) != place:
            yield (
                f"partitions {places[one.digest]} and {place} are the same rows, which would count "
                "twice"
            )
    try:
        starts_of_partitions(sizes, [one.index for one in passes[0]])
    except ValueError as refusal:
        yield str(refusal).removesuffix(" Nothing was released.")


def _notes(digests: list[Digest], noted: list[weakref.ref[object]]) -> tuple[str, ...]:
    texts = []
    if all(one.index is None for one in digests):
        texts.append(
            "no partition passes its index to the task, so random splits take rows at equal places "
            "in their partitions into the same part: pass index=0, 1, ..."
        )
    gc.collect()
    n_alive = len({id(one()) for one in noted} - {id(None)})
    if n_alive:
        texts.append(
            f"the rows of {n_alive} of {len(digests)} partitions stay in memory between passes"
        )
    return tuple(texts)


def _differences_of_fits(
    source: Partitions,
    unit: str,
    is_text: bool,
    rows: dict[str, object] | None,
    beside: Mapping[str, object],
) -> Iterator[str]:
    """Yield how a fit differs from one to the same rows in memory, and what a model keeps."""
    make: Callable[..., Any] = DPLogisticRegression if is_text else DPRidge
    model = make(solver="gd", max_iter=N_STEPS, privacy=Privacy(noise=SeededNoise(0)))
    with warnings.catch_warnings(), parts.charged_as_a_whole(unit):
        warnings.simplefilter("ignore")
        try:
            reference = None if rows is None else clone(model).fit(**rows, **beside)
            model.fit(source)
        except (ValueError, RuntimeError) as refusal:
            yield f"a fit is refused: {refusal}"
            return
    if reference is not None:
        largest = max(1e-300, float(np.abs(reference.coef_).max()))
        error = float(np.abs(model.coef_ - reference.coef_).max()) / largest
        if not error <= RELATIVE_ERROR:
            yield (
                f"coefficients differ from those of the same rows in memory by {error:.1e} of the "
                "largest: partitions miss rows, weights or groups, or hold others"
            )
    search = _Search(source)
    search.dump(model)
    if search.is_successful:
        yield "a fitted model keeps the source, and so its rows"


class _Search(pickle.Pickler):
    """Looks for an object in the pickle of another."""

    def __init__(self, wanted: object) -> None:
        super().__init__(io.BytesIO())
        self._wanted, self.is_successful = wanted, False

    def persistent_id(self, part: object) -> object:
        if part is not self._wanted:
            return None
        self.is_successful = True
        return "it"


def _differences_of_parts(source: Partitions, n_rows: int) -> Iterator[str]:
    """Yield how both parts of a random split differ from all rows."""
    findings: list[str] = []
    try:
        train, test = dp_train_test_split(source, test_size=0.5)
    except ValueError as refusal:  # a single record, for one
        yield f"a random split is refused: {refusal}"
        return
    halves = [_one_pass(half, 0, map, findings) for half in (train, test)]
    n_read = sum(one.n_rows for one in itertools.chain(*halves))
    yield from findings
    if n_read != n_rows:
        yield f"both parts of a random split have {n_read} rows in all, not {n_rows}"
