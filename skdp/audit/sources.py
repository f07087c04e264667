"""Check a class of partitions: what it returns in every pass, and what fits make of it."""

import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from skdp._numbers import MatrixLike, are_numbers
from skdp.fitting import parts
from skdp.fitting.privacy import Privacy, SeededNoise
from skdp.linear_model import DPLogisticRegression, DPRidge
from skdp.model_selection import dp_train_test_split
from skdp.oracle.sources.column_map import Map
from skdp.oracle.sources.partitioned import PartitionRows, Partitions

N_PASSES = 3
LONGEST_DELAY = 0.01  # seconds; those of partitions differ, so that some overtake others
RELATIVE_ERROR = 1e-9  # of coefficients, in units of the largest


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
    """

    source: str
    n_partitions: int
    n_rows: int
    findings: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True if there are no findings."""
        return not self.findings

    def __str__(self) -> str:
        verdict = f"{len(self.findings)} FINDINGS" if self.findings else "all checks passed"
        head = f"{self.source}: {self.n_rows} rows in {self.n_partitions} partitions: {verdict}"
        return "\n".join([head, *(f"  ! {text}" for text in self.findings)])


class Digest(NamedTuple):
    """What a pass returns of a partition; the exact number shows whether floats are changed."""

    n_rows: int
    digest: str
    is_text: bool
    is_grouped: bool
    exact: float = 0.1


@dataclass(frozen=True)
class DigestTask:
    """The task of a pass of a check; it never raises, as no task does."""

    n_pass: int

    def __call__(self, *given: Any, **named: Any) -> Digest | str:
        rows = PartitionRows(*given, **named)
        try:
            digest = joblib.hash((rows.X, rows.y, rows.sample_weight, rows.groups))
            time.sleep(LONGEST_DELAY * int(joblib.hash((digest, self.n_pass))[:4], 16) / 2**16)
            is_text = not are_numbers(np.asarray(rows.y))
            return Digest(int(_num_samples(rows.X)), digest, is_text, rows.groups is not None)
        except Exception as failure:
            return f"a task failed with {type(failure).__name__}: X has to be rows, as for fit"


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
    with ThreadPoolExecutor(2) as pool:
        first, *others = (
            _one_pass(source, number, pool.map if number else map, findings)
            for number in range(N_PASSES)
        )
    n_rows = sum(one.n_rows for one in first)
    if not findings:
        findings += _differences(first, others)
    if X is not None and n_rows != _num_samples(X):
        findings.append(f"a pass read {n_rows} rows; X has {_num_samples(X)}")
    if not findings:  # else what follows would report them once more
        rows = {"X": X, "y": y, "sample_weight": sample_weight, "groups": groups}
        findings += _differences_of_fits(source, first, None if X is None else rows)
        findings += _differences_of_parts(source, n_rows)
    return SourceReport(type(source).__name__, len(first), n_rows, tuple(findings))


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
    if any(one.exact != Digest._field_defaults["exact"] for one in digests):
        findings.append("what a task returns comes back changed: floats must arrive bit for bit")
    return digests


def _differences(first: list[Digest], others: list[list[Digest]]) -> Iterator[str]:
    """Yield what differs between passes, and partitions that count twice."""
    for number, later in enumerate(others, start=2):
        if sorted(later) == sorted(first) and later != first:
            yield f"pass {number} returned the partitions in another order than pass 1"
        elif later != first:
            yield (
                f"pass {number} read other rows than pass 1: {sum(one.n_rows for one in later)} in "
                f"{len(later)} partitions, after {sum(one.n_rows for one in first)} in {len(first)}"
            )
    filled = [one.digest for one in first if one.n_rows]
    if len(set(filled)) < len(filled):
        yield "two partitions hold the same rows, which would count twice"


def _differences_of_fits(
    source: Partitions, digests: list[Digest], rows: dict[str, object] | None
) -> Iterator[str]:
    """Yield how a fit differs from one to the same rows in memory."""
    is_text = any(one.is_text for one in digests)
    make: Callable[..., Any] = DPLogisticRegression if is_text else DPRidge
    model = make(solver="gd", max_iter=3, privacy=Privacy(noise=SeededNoise(0)))
    unit = "group" if any(one.is_grouped for one in digests) else "row"
    with warnings.catch_warnings(action="ignore"), parts.charged_as_a_whole(unit):
        try:
            reference = None if rows is None else clone(model).fit(**rows)
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


def _differences_of_parts(source: Partitions, n_rows: int) -> Iterator[str]:
    """Yield how both parts of a random split differ from all rows."""
    findings: list[str] = []
    try:
        halves = dp_train_test_split(source, test_size=0.5)
    except ValueError as refusal:  # a single record, for one
        yield f"a random split is refused: {refusal}"
        return
    read = [_one_pass(half, 0, map, findings) for half in halves]
    n_read = sum(one.n_rows for one in itertools.chain(*read))
    yield from findings
    if n_read != n_rows:
        yield f"both parts of a random split have {n_read} rows in all, not {n_rows}"
