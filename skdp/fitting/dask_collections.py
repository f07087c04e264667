"""Fit to dask collections, and predict them, block by block."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._numbers import AnyArray
from skdp.fitting.partitions import refuse_beside
from skdp.fitting.tables import is_dask
from skdp.oracle.sources.column_map import Map
from skdp.oracle.sources.partitioned import Partitions, Task

Method = TypeVar("Method", bound=Callable[..., Any])


def as_partitions(who: str, X: Any, **beside: Any) -> Partitions:
    """Return partitions, or dask collections, as partitions.

    Parameters
    ----------
    who : str
        The estimator, for messages.
    X : Partitions, or collection of dask
    **beside
        ``y``, ``sample_weight`` and ``groups``, as `fit` gets them.

    Raises
    ------
    ValueError, ImportError
        If they cannot be used. Nothing is charged.
    """
    if isinstance(X, Partitions):
        refuse_beside(who, type(X).__name__, **beside)
        return X
    return DaskPartitions(who, X, **beside)


class DaskPartitions(Partitions):
    """Partitions of dask collections, kept by the workers from the first pass on.

    Parameters
    ----------
    who : str
        The estimator, for messages.
    X : dask array or data frame
    y : dask array, series or data frame
        With the same partitions.
    **beside
        ``sample_weight`` and ``groups``: dask arrays or series with the same partitions, or None.
    """

    def __init__(self, who: str, X: Any, y: Any, **beside: Any) -> None:
        distributed = importlib.import_module("distributed")
        delayed = importlib.import_module("dask").delayed
        try:
            self._client = distributed.get_client()
        except ValueError:
            raise ValueError(
                f"{who}: dask collections need a cluster, or distributed.Client() for one on this "
                "machine. Nothing was released."
            ) from None
        given = {"y": y} | {name: one for name, one in beside.items() if one is not None}
        columns = {"X": blocks_of(X)}
        for name, column in given.items():
            if not is_dask(column):
                raise ValueError(
                    f"{who}: with X from dask, {name} must be from dask, too. Nothing was released."
                )
            columns[name] = blocks_of(column)
            if len(columns[name]) != len(columns["X"]):
                raise ValueError(
                    f"{who}: X has {len(columns['X'])} partitions and {name} has "
                    f"{len(columns[name])}; rechunk one of them. Nothing was released."
                )
        together = [
            delayed(dict)(**dict(zip(columns, parts, strict=True)), index=index)
            for index, parts in enumerate(zip(*columns.values(), strict=True))
        ]
        # Rows are lost with the worker that has them, and made again from the graph.
        self._held = self._client.compute(together)

    def kept(self, task: Task) -> DaskPartitions:
        """Return partitions of what a task makes of each, held by the workers."""
        other = object.__new__(DaskPartitions)
        other._client = self._client
        other._held = self._client.map(_kept, self._held, task=task, pure=False)
        return other

    def run(self, task: Task, spread: Map = map) -> Iterator[Any]:
        """Submit one task for each partition; answers come in the partitions' order."""
        answers = self._client.map(_run, self._held, task=task, pure=False)
        while answers:
            # A few at once: each may be a matrix.
            few, answers = answers[:32], answers[32:]
            yield from self._client.gather(few)


def _run(columns: dict[str, Any], task: Task) -> Any:
    return task(**columns)


def _kept(columns: dict[str, Any], task: Task) -> dict[str, Any]:
    return {"held": task(**columns)}


def blocks_of(collection: Any) -> list[Any]:
    """Delayed partitions of a dask array or data frame, each with all columns."""
    if getattr(collection, "numblocks", None) is not None and collection.ndim == 2:
        collection = collection.rechunk({1: -1})
    return list(np.asarray(collection.to_delayed(), dtype=object).ravel())


def on_partitions(method: Method) -> Method:
    """Let a method of X take dask collections: a dask array of its answers, not yet computed."""

    @functools.wraps(method)
    def wrapped(self: Any, X: Any, *options: Any, **named: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *options, **named)
        if options or named:
            raise ValueError(f"{method.__name__}: pass a dask collection alone, without options.")
        delayed = importlib.import_module("dask").delayed
        array = importlib.import_module("dask.array")
        check_is_fitted(self)
        # Of the right type and number of dimensions.
        if hasattr(X, "_meta_nonempty"):  # a data frame of made-up rows
            like = method(self, X._meta_nonempty)
        else:
            is_float32 = X.dtype == np.float32
            nothing = np.zeros((1, self.n_features_in_), np.float32 if is_float32 else np.float64)
            like = method(_without_names(self), nothing)
        rows = getattr(X, "chunks", None)
        sizes: Iterable[float] = (np.nan,) * len(blocks_of(X)) if rows is None else rows[0]
        parts = [
            array.from_delayed(
                delayed(_of_block)(wrapped, self, block, like[:0]),
                shape=(size, *like.shape[1:]),
                dtype=like.dtype,
            )
            for size, block in zip(sizes, blocks_of(X), strict=True)
        ]
        return array.concatenate(parts, allow_unknown_chunksizes=True)

    # No type says "any method of X", with X passed by place or by name.
    return wrapped  # type: ignore[return-value]


def _of_block(method: Callable[..., Any], model: Any, block: Any, nothing: AnyArray) -> Any:
    """Return the answer for a block of rows; ``nothing`` for one without, which is refused."""
    return nothing if np.shape(block)[0] == 0 else method(model, block)


def _without_names(model: Any) -> Any:
    """Return a copy of a model that does not check names of columns."""
    copy = object.__new__(type(model))
    copy.__dict__.update({k: v for k, v in vars(model).items() if k != "feature_names_in_"})
    return copy
