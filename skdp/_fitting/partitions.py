"""Check and map rows in partitions before a fit is charged. Fit to dask collections by block."""

from __future__ import annotations

import copy
import functools
import importlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from skdp._fitting import refusals
from skdp._fitting.grouping import GroupLabels, label_column
from skdp._fitting.tables import is_dask
from skdp._numbers import Table
from skdp._oracle.sources.column_map import Map
from skdp._oracle.sources.keyed_split import PartOfPartitions
from skdp._oracle.sources.partitioned import Failure, PartitionRows, Partitions, Task

Class = TypeVar("Class", bound=Any)
Mapping = Callable[[PartitionRows], PartitionRows]


def failure(error: Exception, done: str) -> Failure:
    """Return the result of a task that an error ended. Its message is kept if it quotes no cell."""
    if refusals.quotes_no_cell(error):
        return Failure(str(error))
    return Failure(f"a partition could not be {done}: {type(error).__name__}.")


@dataclass(frozen=True, eq=False)
class MappedTask:
    """A task on partitions that are mapped first. It never raises.

    Parameters
    ----------
    mapping : callable
        ``mapping(rows)`` returns the `PartitionRows` that the task gets. It maps each row by
        itself, by public numbers, or leaves rows out by their place.
    task : callable
    """

    mapping: Mapping
    task: Task

    def __call__(self, *given: Table, **named: Any) -> Any:
        rows = PartitionRows(*given, **named)
        try:
            with np.errstate(all="ignore"):
                mapped = rows if rows.is_empty else self.mapping(rows)
        except Exception as error:
            return failure(error, "mapped")
        return self.task(**vars(mapped))


@dataclass(frozen=True, eq=False)
class MappedColumns:
    """Mapping of a partition's X by a function that maps each row by itself."""

    function: Callable[[Any], object]

    def __call__(self, rows: PartitionRows) -> PartitionRows:
        return replace(rows, X=self.function(rows.X))


@dataclass(frozen=True, eq=False)
class RowsOfPart:
    """Mapping of a partition to its rows that belong to a part of a random split.

    A group is in one part with all of its rows. Its number is that of its label among those of the
    partition: as in memory, it follows from the set of labels, not from values of rows.
    """

    part: PartOfPartitions

    def __call__(self, rows: PartitionRows) -> PartitionRows:
        codes = None
        if rows.groups is not None:
            codes = GroupLabels(rows.groups, X=rows.X, y=rows.y).codes
            rows = replace(rows, groups=label_column(rows.groups))
        try:
            numbers = self.part.rows(rows.index, _num_samples(rows.X), codes)
        except ValueError as refusal:
            raise refusals.InputError(str(refusal)) from None
        some = {
            name: None if one is None else _safe_indexing(one, numbers)
            for name, one in vars(rows).items()
            if name != "index"
        }
        return PartitionRows(**some, index=rows.index)


class MappedPartitions(Partitions):
    """Rows in partitions that are mapped where they are, in every pass.

    Parameters
    ----------
    partitions : Partitions
    mapping : callable
        As in `MappedTask`.
    """

    def __init__(self, partitions: Partitions, mapping: Mapping) -> None:
        self._partitions, self._mapping = partitions, mapping

    def run(self, task: Task, spread: Map = map) -> Iterable[Any]:
        """Run the task on each partition once it is mapped."""
        return self._partitions.run(MappedTask(self._mapping, task), spread)


def transforms_partitions(transformer: Class) -> Class:
    """Let a class of transformers return partitions for partitions, mapped in every pass.

    scikit-learn's wrapper of both methods would put their results into the container that
    ``set_output`` names. Here each partition is put into one.
    """
    transform, fit_transform = transformer.transform, transformer.fit_transform

    @functools.wraps(transform)
    def transform_any(self: Any, X: Table) -> Table:
        if not isinstance(X, Partitions):
            return transform(self, X)
        check_is_fitted(self)
        # Of a copy, as another fit must not change it.
        return MappedPartitions(X, MappedColumns(copy.copy(self).transform))

    @functools.wraps(fit_transform)
    def fit_transform_any(self: Any, X: Table, y: Table = None, **beside: Any) -> Any:
        if not isinstance(X, Partitions):
            return fit_transform(self, X, y, **beside)
        return self.fit(X, y, **beside).transform(X)

    transformer.transform, transformer.fit_transform = transform_any, fit_transform_any
    return transformer


def refuse_beside(rows: object, **beside: object) -> None:
    """Raise ValueError if anything is given beside rows that have it themselves."""
    given = [name for name, value in beside.items() if value is not None]
    if given:
        raise ValueError(
            f"{type(rows).__name__} holds targets, weights, offsets and labels of groups beside "
            f"its rows. Leave {' and '.join(given)} out."
        )


def as_partitions(X: Table, **beside: Any) -> Partitions:
    """Return partitions, or dask collections, as partitions.

    Parameters
    ----------
    X : Partitions, or collection of dask
    **beside
        ``y``, ``sample_weight`` and ``groups``, as `fit` gets them.

    Raises
    ------
    ValueError, ImportError
        If they cannot be used. Nothing is charged.
    """
    if isinstance(X, Partitions):
        refuse_beside(X, **beside)
        return X
    return DaskPartitions(X, **beside)


class DaskPartitions(Partitions):
    """Partitions of dask collections, whose rows the workers keep for all passes.

    Parameters
    ----------
    X : dask array or data frame
    y : dask array, series or data frame
        With the same partitions.
    **beside
        ``sample_weight`` and ``groups``: dask arrays or series with the same partitions, or None.
    """

    def __init__(self, X: Table, y: Table, **beside: Any) -> None:
        distributed = importlib.import_module("distributed")
        delayed = importlib.import_module("dask").delayed
        try:
            self._client = distributed.get_client()
        except ValueError:
            raise ValueError(
                "dask collections need a cluster, or distributed.Client() for one on this machine."
            ) from None
        given = {"y": y} | {name: one for name, one in beside.items() if one is not None}
        columns = {"X": blocks_of(X)}
        for name, column in given.items():
            if not is_dask(column):
                raise ValueError(f"with X from dask, {name} must also be from dask.")
            columns[name] = blocks_of(column)
            if len(columns[name]) != len(columns["X"]):
                raise ValueError(
                    f"X has {len(columns['X'])} partitions and {name} has {len(columns[name])}. "
                    "Rechunk one of them."
                )
        together = [
            delayed(dict)(**dict(zip(columns, parts, strict=True)), index=index)
            for index, parts in enumerate(zip(*columns.values(), strict=True))
        ]
        # Rows are lost with the worker that has them, and made again from the graph.
        self._held = self._client.compute(together)

    def run(self, task: Task, spread: Map = map) -> Iterator[Any]:
        """Submit one task for each partition. Answers come in the partitions' order."""
        answers = self._client.map(_run, self._held, task=task, pure=False)
        while answers:
            # A few at once: each may be a matrix.
            few, answers = answers[:32], answers[32:]
            yield from self._client.gather(few)


def _run(columns: dict[str, Any], task: Task) -> Any:
    return task(**columns)


def blocks_of(collection: Table) -> list[Any]:
    """Delayed partitions of a dask array or data frame, each with all columns."""
    if getattr(collection, "numblocks", None) is not None and collection.ndim == 2:
        collection = collection.rechunk({1: -1})
    return list(np.asarray(collection.to_delayed(), dtype=object).ravel())
