"""Split rows at random into parts whose uses cost the maximum, not the sum."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _num_samples

from skdp._fitting import parts
from skdp._fitting.budget import identities_of_open_budgets
from skdp._fitting.grouping import GroupLabels, label_column
from skdp._fitting.partitions import as_partitions, refuse_beside
from skdp._fitting.refusals import refusing
from skdp._fitting.rows import read_plain, refuse_blocks
from skdp._fitting.tables import is_dask
from skdp._fitting.user_warnings import PrivacyWarning
from skdp._numbers import Indices, MatrixLike, Seed, are_numbers, is_integer, is_real, require
from skdp._oracle import noise_source
from skdp._oracle.sources.keyed_split import PartOfPartitions
from skdp._oracle.sources.partitioned import Partitions
from skdp._warnings import warn
from skdp.metrics import Scores, evaluate
from skdp.model_selection import candidates


def scored_records(size: float, n_records: int, unit: str = "row", name: str = "test_size") -> int:
    """Return the number of records of the second part, rounded up as in scikit-learn."""
    count = size
    if is_real(size) and not is_integer(size) and 0 < size < 1:
        count = math.ceil(size * n_records)
    numbers = f"a number of {unit}s from 1 to {n_records - 1}"
    allowed = f"be a share between 0 and 1, such as 0.25, or {numbers}"
    require(name, size, allowed, is_integer(count) and 1 <= count < n_records)
    return int(count)


def dp_train_test_split(
    *arrays: ArrayLike | Partitions,
    test_size: float | int = 0.25,
    random_state: Seed = None,
    groups: ArrayLike | None = None,
) -> list[Any]:
    """Split rows at random into two parts whose uses cost the maximum, not the sum.

    A row is in only one of the parts, so it is charged for the fit or for the score: epsilon 1 for
    each is epsilon 1 in total. `skdp.total_privacy` and `skdp.PrivacyBudget` know it, by the very
    arrays that are returned: pass these to ``fit`` and `skdp.metrics.evaluate` as they are. Arrays
    that are made of them, as in a pipeline, count as all of the rows, so that costs add up. See
    `DPHoldout`, which also follows pipelines. NumPy arrays come read-only. Changes of data frames
    and sparse matrices are not followed: never move rows from one part to the other.

    Parameters
    ----------
    *arrays : arrays, sparse matrices or data frames with the same number of rows, or Partitions
        For rows in partitions, such as `Chunks`, which must be the only argument, both parts are
        partitions, each read in passes over the given ones. Their groups are kept together. Dask
        arrays are accepted, and then both parts are dask arrays.
    test_size : float or int, default=0.25
        Share, or number, of the rows in the second part, public.
    random_state : int, RandomState, Generator or None, default=None
        None draws the split from the operating system's secure source. A split need not be secret,
        only drawn without looking at the rows, so an integer is fine.
    groups : array of shape (n_samples,) or None, default=None
        Labels of groups, such as persons. Each is in one of the parts with all of its rows, and
        ``test_size`` counts groups. Fits and scores with the labels of their part cost a group the
        maximum. Fits without labels protect rows, and count as fits on all rows.

    Returns
    -------
    list of length 2 * len(arrays)
        First and second part of each array, as `sklearn.model_selection.train_test_split` returns
        them. With ``groups`` the labels of both parts come last. There is no ``stratify``: it looks
        at labels.

    Examples
    --------
    >>> import skdp
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp.metrics import evaluate
    >>> from skdp.model_selection import dp_train_test_split
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = dp_train_test_split(X, y)
    >>> with skdp.PrivacyBudget(1.0, 1e-6) as budget:
    ...     model = skdp.DPRidge(epsilon=1.0).fit(X_train, y_train)
    ...     scores = evaluate(model, X_test, y_test, epsilon=1.0)
    >>> budget.spent <= 1.0
    True
    """
    given = arrays if groups is None else (*arrays, groups)
    first, second, *_ = _split("dp_train_test_split", given, test_size, random_state, groups)
    return [part for pair in zip(first, second, strict=True) for part in pair]


Split: TypeAlias = tuple[list[Any], list[Any], list[parts.Part], list[int], str]


def _split(
    who: str,
    arrays: tuple[Any, ...],
    test_size: float,
    random_state: Seed,
    groups: ArrayLike | None,
) -> Split:
    """Split arrays. ``groups``, if any, are the last of them.

    Returns
    -------
    first, second : list of arrays
    sides : list of Part
    sizes : list of int
        Of both, in rows or groups.
    unit : {"row", "group"}
    """
    with refusing(who):
        if len(arrays) <= (groups is not None):
            raise ValueError("at least one array is needed.")
        for array in arrays:
            refuse_blocks(array)
            if is_dask(array) and not is_integer(array.shape[0]):
                raise ValueError(
                    "of dask's collections those are split whose number of rows is known: pass "
                    "frame.to_dask_array(lengths=True), or use DPHoldout."
                )
        draw: Callable[..., list[PartOfPartitions]] = PartOfPartitions.drawn
        if isinstance(arrays[0], Partitions):
            refuse_beside(arrays[0], **{f"array {n}": one for n, one in enumerate(arrays[1:], 2)})
            data = read_plain(who, arrays[0], None)
            n_records, unit, draw = data.n_records, data.unit, data.split
        else:
            unit, (n_records, codes) = parts.unit_of(groups), _records(arrays, groups)
        n_test = scored_records(test_size, n_records, unit)
    split = draw([n_records - n_test, n_test], noise_source(random_state))
    sides = parts.new_split(2, of=parts.part_of(*arrays, unit=unit))
    if isinstance(groups, list | tuple):  # NumPy might make other labels of them
        arrays = (*arrays[:-1], label_column(groups))
    both: list[list[Any]] = []
    for own, side in zip(split, sides, strict=True):
        if isinstance(arrays[0], Partitions):
            taken = [data.subset(own)["X"]]
        else:
            rows = own.rows(0, n_records if codes is None else len(codes), codes)
            taken = [rows_of(np.asarray(a) if isinstance(a, list) else a, rows) for a in arrays]
        for array, whole in zip(taken, arrays, strict=True):
            if isinstance(array, np.ndarray):
                array.setflags(write=False)  # rows of the other part could be written into it
            parts.remember(array, side, unit, whole)
        both.append(taken)
    return both[0], both[1], sides, [sum(own.counts()) for own in split], unit


def _records(arrays: tuple[Any, ...], groups: ArrayLike | None) -> tuple[int, Indices | None]:
    """Return the number of records of arrays, and the group of each row if there are groups."""
    if groups is None:
        check_consistent_length(*arrays)
        return int(_num_samples(arrays[0])), None
    named = {f"array {number}": array for number, array in enumerate(arrays[:-1], 1)}
    labels = GroupLabels(groups, **named)
    return labels.n_groups, labels.codes


class DPHoldout:
    """A random split that knows which part is fitted on, and which one scores.

    Fits on the first part, pipelines included, and scores on the second cost the maximum of both.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features), or Partitions
        Rows in partitions, such as `Chunks`, and collections of dask stay where they are.
    y : array of shape (n_samples,) or None, default=None
        Left out for partitions, which have the targets.
    test_size : float or int, default=0.25
        As in `dp_train_test_split`.
    random_state : int, RandomState, Generator or None, default=None
        As in `dp_train_test_split`.
    groups : array of shape (n_samples,) or None, default=None
        Labels of groups, such as persons: each is in one part. Fits and scores get those of their
        part, and protect groups. Partitions bring their own.
    sample_weight, offset : array of shape (n_samples,) or None, default=None
        Weights of rows, and offsets of their margins. Fits and scores get those of their part.

    Attributes
    ----------
    X_train, y_train, X_test, y_test
        The two parts. Of partitions both X are partitions, and y is None.
    sample_weight_train, sample_weight_test, offset_train, offset_test, groups_train, groups_test
        What belongs to their rows. None if it was not given, and for partitions.

    Examples
    --------
    >>> import skdp
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp.model_selection import DPHoldout
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> holdout = DPHoldout(X, y)
    >>> model = holdout.fit(make_pipeline(skdp.DPLogisticRegression(classes=[0, 1])))
    >>> scores = holdout.evaluate(model, "accuracy")
    >>> round(skdp.total_privacy(model, scores.privacy_, delta=1e-6).epsilon, 6)
    1.0
    """

    def __init__(
        self,
        X: MatrixLike | Partitions,
        y: ArrayLike | None = None,
        *,
        test_size: float | int = 0.25,
        random_state: Seed = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> None:
        beside = {"y": y, "sample_weight": sample_weight, "offset": offset, "groups": groups}
        given = {"X": X, **{name: one for name, one in beside.items() if one is not None}}
        if isinstance(X, Partitions) or is_dask(X):
            with refusing("DPHoldout"):
                given, groups = {"X": as_partitions(X, **beside)}, None
        split = _split("DPHoldout", tuple(given.values()), test_size, random_state, groups)
        *both, self._parts, self._sizes, self._unit = split
        self._train, self._test = (
            {**dict.fromkeys(beside), **dict(zip(given, one, strict=True))} for one in both
        )
        for name in self._train:
            setattr(self, f"{name}_train", self._train[name])
            setattr(self, f"{name}_test", self._test[name])
        self._uses = Counter[str]()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be pickled or copied: it holds rows, and copies of a part are no part."""
        raise TypeError("DPHoldout holds rows and cannot be pickled or copied. Pickle models.")

    def fit(self, model: BaseEstimator) -> BaseEstimator:
        """Fit a clone of a model on the first part, and return it.

        Parameters
        ----------
        model : estimator
            Of skdp, a pipeline, or another estimator around such an estimator. All steps that
            learn from rows must be private.

        Returns
        -------
        estimator
            A fitted clone.

        Raises
        ------
        ValueError
            If a step would learn from rows without privacy. Nothing is released then.
        """
        model = clone(model)
        with refusing("DPHoldout"):
            candidates.require_private(model, issparse(self._train["X"]))
            beside = ("sample_weight", "offset", "groups")
            given = [name for name in beside if self._train[name] is not None]
            candidates.require_takes(model, given)
            y = self._test["y"]
            if is_regressor(model) and y is not None and not are_numbers(np.asarray(y)):
                raise ValueError(
                    "y must be an array of numbers, which scores need. It is one of objects. Pass "
                    "y.astype(float)."
                )
        with parts.fits_on_part(self._parts[0], self._unit):
            model = candidates.fitted(model, **self._train)
        self._count("fit", "{} models were fitted on the first part")
        return model

    def evaluate(
        self, model: BaseEstimator, metrics: str | Iterable[str] | None = None, **options: Any
    ) -> Scores:
        """Score a fitted model on the second part. See `skdp.metrics.evaluate`.

        Parameters
        ----------
        model : fitted classifier or regressor
        metrics : str or iterable of str, default=None
        **options
            Of `skdp.metrics.evaluate`, other than the second part itself.

        Returns
        -------
        Scores
        """
        with parts.fits_on_part(self._parts[1], self._unit):
            scores = evaluate(model, metrics=metrics, **self._test, **options)
        self._count("evaluate", "the second part was scored {} times")
        return scores

    def _count(self, method: str, text: str) -> None:
        """Warn of a second use of the same rows, unless a budget adds up the prices."""
        self._uses[method] += 1
        if self._uses[method] > 1 and not identities_of_open_budgets(()):
            warn(
                f"DPHoldout.{method}: {text.format(self._uses[method])}. The statement of each "
                "states its own price, and the prices add up: skdp.total_privacy(first, second). "
                "Request all metrics in one call, and choose among models by DPSearchCV.",
                PrivacyWarning,
            )

    def __repr__(self) -> str:
        fitted, scored = self._sizes
        return f"<DPHoldout: {fitted} {self._unit}s to fit on, {scored} to score on>"
