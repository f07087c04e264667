"""Blocks of rows that arrive one by one: each is checked as the whole of X and y is in a fit."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from scipy import sparse as scipy_sparse

from skdp._numbers import AnyArray, Array
from skdp.fitting.grouping import GroupLabels
from skdp.fitting.refusals import without_row_counts
from skdp.fitting.units import Targets
from skdp.oracle import Public
from skdp.oracle.sources.partitioned import SPENT
from skdp.oracle.sources.stream import Arrival


class ReadsRows(Protocol):
    """The part of an estimator that a reader needs."""

    def _read(self, what: str, *arrays: Any, **checks: Any) -> Any: ...

    def _checked_targets(self, y: Any, dtype: np.dtype[Any]) -> Targets: ...


class BlockReader:
    """Validates blocks as they arrive.

    Parameters
    ----------
    model : estimator
        Blocks are checked on it; the names of their columns are not kept.
    public : Public
    declared : Targets
        What targets were declared to be.
    """

    def __init__(self, model: ReadsRows, public: Public, declared: Targets) -> None:
        self._model, self._public, self._declared = model, public, declared

    def arrivals(self, blocks: Iterable[tuple[Any, ...]]) -> Iterator[Arrival]:
        """Yield what arrives, validated."""
        size = 3 if self._public.grouped else 2
        for block in blocks:
            # scikit-learn refuses to check arrays without rows.
            is_tuple = isinstance(block, tuple) and len(block) == size
            if not (is_tuple and np.shape(block[0])[:1] == (0,)):
                yield self._validated(block)

    def __call__(self, X: Any, y: Any) -> tuple[Any, AnyArray, Array | None]:
        """Return one block of rows without groups, validated."""
        return self._validated((X, y))[:3]

    def nothing(self) -> Arrival:
        """Return an arrival of no rows."""
        shape = 0, self._public.n_features
        X = scipy_sparse.csr_array(shape) if self._public.sparse else np.zeros(shape)
        weights = None if self._declared.weights is None else np.zeros(0)
        groups = np.zeros(0, dtype=np.int64) if self._public.grouped else None
        return X, self._declared.values[:0], weights, groups

    def _validated(self, block: tuple[Any, ...]) -> Arrival:
        who, grouped = type(self._model).__name__, self._public.grouped
        is_tuple = isinstance(block, tuple)
        if not (is_tuple and len(block) == 2 + grouped):
            form = "a triple (X, y, groups)" if grouped else "a pair (X, y)"
            got = f"a tuple of {len(block)}" if is_tuple else type(block).__name__
            raise ValueError(f"{who}: a block is {form}; got {got}. {SPENT}")
        is_regression = self._declared.classes is None
        checks = {"multi_output": True, "y_numeric": True} if is_regression else {}
        try:
            groups = None
            if grouped:
                groups = GroupLabels(who, block[2], X=block[0], y=block[1]).codes
            with without_row_counts(grouped):
                X, y = self._model._read("X or y", *block[:2], ensure_min_samples=0, **checks)
                targets = self._model._checked_targets(y, X.dtype)
        except ValueError as refusal:
            # Refusals are worded for a fit of rows in memory, which is not charged by then.
            message = str(refusal).removesuffix("Nothing was released.").rstrip()
            raise ValueError(f"{message} {SPENT}") from None
        found = X.shape[1], targets.n_outputs, bool(scipy_sparse.issparse(X))
        public = self._public
        if found != (public.n_features, public.n_outputs, public.sparse):
            raise ValueError(
                f"{who}: blocks were declared to have (columns, outputs, sparse) = "
                f"{(public.n_features, public.n_outputs, public.sparse)}; got {found}. {SPENT}"
            )
        return X, targets.values, targets.weights, groups
