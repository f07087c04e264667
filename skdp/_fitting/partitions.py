"""Check and map rows in partitions before a fit is charged. Fit to dask collections by block."""

from __future__ import annotations

import copy
import functools
import hashlib
import importlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted

from skdp._fitting import refusals
from skdp._fitting.grouping import GroupLabels, label_column, read_block
from skdp._fitting.tables import KindsOfLabels, is_dask, kinds_of_labels
from skdp._fitting.targets import require_positive_weight
from skdp._numbers import AnyArray, Table
from skdp._oracle.sources.column_map import Map
from skdp._oracle.sources.keyed_split import PartOfPartitions, starts_of_partitions
from skdp._oracle.sources.memory import row_threads
from skdp._oracle.sources.partitioned import Failure, PartitionRows, Partitions, Task, answers

Class = TypeVar("Class", bound=Any)
Mapping = Callable[[PartitionRows], PartitionRows]

# Hash values of a partition's labels of groups that are compared with those of other partitions.
MOST_HASHES = 1024


@dataclass(frozen=True)
class Summary:
    """Public facts about a partition: shapes, types, names, and labels, unless declared.

    ``index`` is the place that the partition says it has, ``n_records`` the number of rows, or of
    groups. ``has_positive_weight`` is None where rows have no weights. ``label_hashes`` are those
    of some labels of groups, see `hashes_of_labels`. None without groups. ``label_kinds`` are those
    of all labels of groups.
    """

    index: int | None
    n_records: int
    n_features: int
    n_outputs: int
    is_column: bool
    is_sparse: bool
    names: tuple[str, ...] | None
    column_kinds: tuple[tuple[Any, str], ...] | None
    labels: AnyArray | None
    has_positive_weight: bool | None
    has_offset: bool
    label_hashes: AnyArray | None
    label_kinds: KindsOfLabels = frozenset()

    @property
    def is_grouped(self) -> bool:
        """Whether rows have labels of groups."""
        return self.label_hashes is not None

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights."""
        return self.has_positive_weight is not None


@dataclass(frozen=True, eq=False)
class CheckTask:
    """The task of the first pass: check a partition as `fit` checks X and y, and sum nothing up.

    Parameters
    ----------
    model : estimator
        Without a generator and a budget. It is sent to where the rows are.
    reads_labels : bool
        Whether y holds labels that are not declared.
    key : bytes
        Of the hash values of labels of groups, which mean nothing to whoever does not have it.
    """

    model: Any
    reads_labels: bool
    key: bytes = field(default_factory=lambda: secrets.token_bytes(16), repr=False)

    def __call__(self, *given: Table, **named: Any) -> Summary | Failure | None:
        rows = PartitionRows(*given, **named)
        try:
            return None if rows.is_empty else self._summary(**vars(rows))
        except Exception as error:
            return _failure(error, "read")

    def _summary(
        self,
        X: Table,
        y: Table,
        sample_weight: Table,
        groups: Table,
        index: int | None,
        offset: Table,
    ) -> Summary:
        model, grouped = copy.copy(self.model), groups is not None  # partitions are read in threads
        hashes, labels, kinds = None, None, KindsOfLabels()
        how = {"is_all": False, "reads_targets": not self.reads_labels}
        X, y, _, weights, numbered = read_block(model, X, y, sample_weight, groups, offset, **how)
        if grouped:
            column = label_column(groups)
            hashes, kinds = hashes_of_labels(column, self.key), kinds_of_labels(column)
        if self.reads_labels:
            with (
                refusals.without_row_counts(grouped),
                refusals.without_cells("y", otherwise=refusals.NO_LABELS),
            ):
                check_classification_targets(y)
                labels = np.unique(y)
        names = getattr(model, "feature_names_in_", None)
        column_kinds = getattr(model, "column_kinds", None)
        return Summary(
            index=index,
            n_records=X.shape[0] if numbered is None else numbered.n_groups,
            n_features=X.shape[1],
            n_outputs=1 if y.ndim == 1 else y.shape[1],
            is_column=y.ndim == 1,
            is_sparse=bool(sparse.issparse(X)),
            names=None if names is None else tuple(names),
            column_kinds=None if column_kinds is None else tuple(column_kinds.items()),
            labels=labels,
            has_positive_weight=None if weights is None else bool(weights.any()),
            has_offset=offset is not None,
            label_hashes=hashes,
            label_kinds=kinds,
        )


def _failure(error: Exception, done: str) -> Failure:
    """Return the result of a task that an error ended. Its message is kept if it quotes no cell."""
    if refusals.quotes_no_cell(error):
        return Failure(str(error))
    return Failure(f"a partition could not be {done}: {type(error).__name__}.")


def summaries(
    partitions: Partitions, task: CheckTask
) -> tuple[list[int], list[int], list[Summary]]:
    """Return the public facts about partitions, if they agree.

    Returns
    -------
    sizes, starts : list of int
        Number of records of each partition, and the number of its first one.
    summaries : list of Summary
        Of those with rows.

    Raises
    ------
    ValueError
        If rows are refused, there are none, or partitions differ in their columns. Nothing is
        charged.
    RuntimeError
        If they cannot be read. Nothing is charged.
    """
    sizes: list[int] = []
    indices: list[int | None] = []
    read: list[Summary] = []
    # Closed at a refusal, so that partitions that threads have not begun are not read.
    with (
        row_threads() as spread,
        closing(answers(partitions, task, "Nothing was released.", spread)) as pass_over_rows,
    ):
        for one in pass_over_rows:
            if isinstance(one, Failure):
                raise refusals.InputError(one.message)
            sizes.append(0 if one is None else one.n_records)
            indices.append(None if one is None else one.index)
            read += [] if one is None else [one]
    _require_alike(read)
    try:
        starts = starts_of_partitions(sizes, indices)
    except ValueError as refusal:
        raise ValueError(f"{type(partitions).__name__}: {refusal}") from None
    return sizes, starts, read


def _require_alike(read: list[Summary]) -> None:
    """Raise ValueError if partitions cannot be the rows of one fit."""
    if not read:
        raise ValueError("there are no rows.")
    kinds = {
        (one.n_features, one.n_outputs, one.is_column, one.is_sparse, one.names, one.column_kinds)
        for one in read
    }
    beside = {(one.is_weighted, one.is_grouped, one.has_offset) for one in read}
    refusals.require_one_kind("groups", [one.label_kinds for one in read])
    labels = [kinds_of_labels(one.labels) for one in read if one.labels is not None]
    if len(kinds) != 1 or len(beside) != 1 or len({*labels, KindsOfLabels()}) > 2:
        raise ValueError(
            "partitions must be alike in the number, names and type of their columns and targets. "
            "All have weights, or none, and so with groups and offsets."
        )
    if read[0].is_weighted:
        require_positive_weight(any(one.has_positive_weight for one in read))
    hashes = [one.label_hashes for one in read if one.label_hashes is not None]
    if hashes and len(np.unique(np.concatenate(hashes))) < sum(map(len, hashes)):
        raise ValueError(
            "rows of one group lie in several partitions, each of which would count as a group of "
            "its own. Sort or shuffle the rows by group."
        )


def hashes_of_labels(labels: AnyArray, key: bytes) -> AnyArray:
    """Return the smallest hash values of the labels of a partition, to find groups that are cut.

    Labels and the division of rows are public, so the result of a comparison is also public. Two
    partitions that share many labels share a small hash value. Of one label that is shared, this is
    certain only if neither has more than `MOST_HASHES`. Integers and strings are compared.

    Parameters
    ----------
    labels : array of shape (n_rows,)
    key : bytes

    Returns
    -------
    array of at most `MOST_HASHES`
    """
    distinct = {one for one in labels.tolist() if type(one) in (int, str)}
    hashes = (hashlib.blake2b(repr(one).encode(), digest_size=8, key=key) for one in distinct)
    values = np.array([int.from_bytes(one.digest()) for one in hashes], dtype=np.uint64)
    return np.sort(values)[:MOST_HASHES]


def labels_in(read: list[Summary]) -> AnyArray:
    """Return the labels of all partitions, sorted."""
    with refusals.without_cells("y", otherwise=refusals.NO_LABELS):
        return np.unique(np.concatenate([one.labels for one in read if one.labels is not None]))


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
            return _failure(error, "mapped")
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

    def kept(self, task: Task) -> Partitions | None:
        """Return partitions of a task's result for each mapped partition, or None."""
        return self._partitions.kept(MappedTask(self._mapping, task))


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
    """Partitions of dask collections, kept by the workers from the first pass on.

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

    def kept(self, task: Task) -> DaskPartitions:
        """Return partitions of the results of a task, held by the workers."""
        other = object.__new__(DaskPartitions)
        other._client = self._client
        other._held = self._client.map(_kept, self._held, task=task, pure=False)
        return other

    def run(self, task: Task, spread: Map = map) -> Iterator[Any]:
        """Submit one task for each partition. Answers come in the partitions' order."""
        answers = self._client.map(_run, self._held, task=task, pure=False)
        while answers:
            # A few at once: each may be a matrix.
            few, answers = answers[:32], answers[32:]
            yield from self._client.gather(few)


def _run(columns: dict[str, Any], task: Task) -> Any:
    return task(**columns)


def _kept(columns: dict[str, Any], task: Task) -> dict[str, Any]:
    return {"held": task(**columns)}


def blocks_of(collection: Table) -> list[Any]:
    """Delayed partitions of a dask array or data frame, each with all columns."""
    if getattr(collection, "numblocks", None) is not None and collection.ndim == 2:
        collection = collection.rechunk({1: -1})
    return list(np.asarray(collection.to_delayed(), dtype=object).ravel())
