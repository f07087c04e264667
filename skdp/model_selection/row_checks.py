"""Refuse rows that a candidate of a search cannot take, before anything is charged."""

import functools
import warnings
from collections.abc import Iterator

import joblib
import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples

from skdp._numbers import AnyArray, MatrixLike
from skdp.fitting.estimator import PrivateEstimator, is_private_model
from skdp.fitting.refusals import (
    NO_LABELS,
    public_refusal,
    without_cells,
)
from skdp.metrics.dataset import Dataset, PartitionedDataset
from skdp.model_selection.candidates import last_step, private_fits


def check_rows(who: str, ready: list[BaseEstimator], rows: Dataset | PartitionedDataset) -> None:
    """Raise ValueError for rows that a candidate refuses, before the charge.

    The steps of a pipeline are carried out, as they learn nothing, up to the first that is private:
    what that one finds is not known yet. If a failure occurred in a run only, the choice of the
    best run would depend on the record that caused it.
    """
    if isinstance(rows, PartitionedDataset):
        for candidate in ready:
            _require_takes_partitions(who, candidate)
    rows.check(functools.partial(_check_rows, who, ready))


def _require_takes_partitions(who: str, candidate: BaseEstimator) -> None:
    """Raise ValueError for a step that has to be given rows in memory."""
    for name, step in getattr(candidate, "steps", ()):
        if isinstance(step, Pipeline):
            _require_takes_partitions(who, step)
        elif not (isinstance(step, PrivateEstimator) or step in (None, "passthrough")):
            raise ValueError(
                f"{who}: step {name!r} ({type(step).__name__}) takes rows in memory alone, and "
                "these are in partitions. Carry it out where your class reads them. Nothing was "
                "released."
            )


def _check_rows(who: str, ready: list[BaseEstimator], X: MatrixLike, y: AnyArray) -> None:
    checked = set()
    for candidate in ready:
        private_fits(who, candidate, is_sparse=issparse(X))
        steps = list(_steps(candidate))
        key = _fingerprint([step for _, step in steps])
        if key not in checked:
            checked.add(key)
            _try_steps(who, steps, X, y)
    if not is_classifier(ready[0]):
        with without_cells(who, "y"):
            check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        if y.dtype.kind not in "biuf":
            raise public_refusal(
                f"{who}: y must be an array of numbers, which scores need; it is one of objects. "
                "Pass y.astype(float). Nothing was released."
            )
        return
    for candidate in ready:
        classes = np.asarray(private_fits(who, candidate)[-1].classes).tolist()
        with without_cells(who, "y", otherwise=NO_LABELS):
            are_known = set(y.tolist()) <= set(classes)
        if not are_known:
            raise ValueError(
                f"{who}: y holds a label that is not among the declared classes. Nothing was "
                "released."
            )


def _steps(estimator: BaseEstimator) -> Iterator[tuple[str, BaseEstimator]]:
    """Yield the names and steps of a candidate, up to the first private one."""
    if not isinstance(estimator, Pipeline):
        yield type(estimator).__name__, estimator
        return
    for name, step in estimator.steps:
        if isinstance(step, Pipeline) and is_private_model(last_step(step)):
            yield from _steps(step)
        elif step not in (None, "passthrough"):
            yield name, step
        if isinstance(step, PrivateEstimator):
            return


def _fingerprint(steps: list[BaseEstimator]) -> object:
    """Return a key that equal steps share; steps that cannot be pickled have one of their own.

    Which rows a model refuses depends on its type alone; which a preprocessor does, on its
    categories, too.
    """
    steps = [type(one) if is_private_model(one) else one for one in steps]
    try:
        return joblib.hash(steps)
    except Exception:  # whatever someone's step raises when it is pickled
        return object()


def _try_steps(
    who: str, steps: list[tuple[str, BaseEstimator]], X: MatrixLike, y: AnyArray
) -> None:
    n_rows = _num_samples(X)
    X = rows_of(X, np.arange(n_rows))  # a step may write into its input
    for name, step in steps:
        if isinstance(step, PrivateEstimator):
            step._check_rows(X)
            continue
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                X = clone(step).fit(X, y).transform(X)
        except Exception as reason:  # anyone's step fails in its own way, and may quote rows
            raise public_refusal(
                f"{who}: step {name!r} ({type(step).__name__}) of a candidate failed on these "
                f"rows, with {type(reason).__name__}. Nothing was released."
            ) from None
        if _num_samples(X) != n_rows:
            raise public_refusal(
                f"{who}: step {name!r} ({type(step).__name__}) of a candidate adds rows or leaves "
                "some out, and y would not follow. Do that before. Nothing was released."
            )
