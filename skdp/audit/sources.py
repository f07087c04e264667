"""Check a class of partitions: its answers in every pass, and the fits that use it."""

from __future__ import annotations

import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from skdp._fitting import parts
from skdp._fitting.privacy import Privacy, SeededNoise
from skdp._numbers import MatrixLike, are_numbers
from skdp._oracle.sources.column_map import Map
from skdp._oracle.sources.partitioned import PartitionRows, Partitions
from skdp.linear_model import DPLogisticRegression, DPRidge

N_PASSES = 3
LONGEST_DELAY = 0.01  # seconds; those of partitions differ, so that some overtake others
RELATIVE_ERROR = 1e-9  # of coefficients, in units of the largest


class Digest(NamedTuple):
    """A pass's result for a partition."""

    n_rows: int
    digest: str
    is_text: bool
    is_grouped: bool


BESIDE = ("X", "y", "sample_weight", "groups", "offset")


def _digest(n_pass: int, *given: Any, **named: Any) -> Digest | str:
    """Run the task of a pass of a check. It never raises, as no task does."""
    rows = PartitionRows(*given, **named)
    try:
        digest = joblib.hash(tuple(vars(rows)[name] for name in BESIDE))
        time.sleep(LONGEST_DELAY * int(joblib.hash((digest, n_pass))[:4], 16) / 2**16)
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
) -> None:
    """Check that a class of partitions of your own has the properties that fits rely on.

    Every pass has to return the task's result for each partition, bit for bit, in the same order,
    and each partition once. Its rows are read in several passes, with tasks of unequal duration,
    over threads and without. Then a model is fitted and, with X and y, compared with that of the
    same rows in memory.

    Parameters
    ----------
    source : Partitions
        Over made-up or public rows: errors name sizes, and the fit has noise of a known seed. No
        budget is charged.
    X, y : arrays, default=None
        The same rows in memory, in the order of the partitions. None leaves the comparison out.
    sample_weight, groups : arrays, default=None
        Weights and groups of the partitions.

    Raises
    ------
    AssertionError
        If the class does something that a fit cannot bear, or that counts rows wrongly.

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
    >>> check_source(Lists([(X[:50], y[:50]), (X[50:], y[50:])]), X, y)
    """
    with ThreadPoolExecutor(2) as pool:
        first, *others = (
            _one_pass(source, number, pool.map if number else map) for number in range(N_PASSES)
        )
    _require_equal_passes(first, others)
    n_rows = sum(one.n_rows for one in first)
    if X is not None and n_rows != _num_samples(X):
        raise AssertionError(f"a pass read {n_rows} rows; X has {_num_samples(X)}")
    make: Any = DPLogisticRegression if any(one.is_text for one in first) else DPRidge
    model = make(solver="gd", max_iter=3, privacy=Privacy(noise=SeededNoise(0)))
    rows = {"X": X, "y": y, "sample_weight": sample_weight, "groups": groups}
    unit = "group" if any(one.is_grouped for one in first) else "row"
    with warnings.catch_warnings(action="ignore"), parts.charged_as_a_whole(unit):
        model.fit(source)
        reference = model if X is None else clone(model).fit(**rows)
    largest = max(1e-300, float(np.abs(reference.coef_).max()))
    error = float(np.abs(model.coef_ - reference.coef_).max()) / largest
    if not error <= RELATIVE_ERROR:
        raise AssertionError(
            f"coefficients differ from those of the same rows in memory by {error:.1e} of the "
            "largest: partitions miss rows, weights or groups, or hold others"
        )


def _one_pass(source: Partitions, number: int, spread: Map) -> list[Digest]:
    """Return what a pass returns, which has to be what the task returned."""
    results = list(source.run(partial(_digest, number), spread))
    for one in results:
        if not isinstance(one, Digest):
            text = one if isinstance(one, str) else f"run returned {type(one).__name__}"
            raise AssertionError(f"{text}, in place of what the task returns")
    return results


def _require_equal_passes(first: list[Digest], others: list[list[Digest]]) -> None:
    """Raise AssertionError if passes differ, or partitions count twice."""
    for number, later in enumerate(others, start=2):
        if later != first:
            raise AssertionError(
                f"pass {number} read other rows, or another order, than pass 1: "
                f"{sum(one.n_rows for one in later)} in {len(later)} partitions, after "
                f"{sum(one.n_rows for one in first)} in {len(first)}"
            )
    filled = [one.digest for one in first if one.n_rows]
    if len(set(filled)) < len(filled):
        raise AssertionError("two partitions hold the same rows, which would count twice")
