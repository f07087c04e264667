"""Read rows that are to be scored or split: in memory, or in partitions, which stay there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils import column_or_1d
from sklearn.utils.validation import _num_samples

from skdp._numbers import AnyArray, Indices, MatrixLike
from skdp.fitting import parts, tables
from skdp.fitting.dask_collections import as_partitions
from skdp.fitting.grouping import GroupLabels
from skdp.fitting.partitions import (
    CheckTask,
    MappedPartitions,
    RowsOfPart,
    Summary,
    labels_in,
    summaries,
)
from skdp.fitting.refusals import without_cells, without_row_counts
from skdp.fitting.rows import require_taken
from skdp.fitting.units import Targets
from skdp.oracle import NoiseSource
from skdp.oracle.sources.groups import Groups
from skdp.oracle.sources.keyed_split import KeyedSplit, PartOfPartitions, are_numbered
from skdp.oracle.sources.partitioned import Partitions

# Calls that predict one row of every group; any further rows of a group have a call of their own.
# With more, small groups are predicted over and over where one group is large; with fewer, more
# groups need such a call.
ROUNDS = 32


def random_split(
    sizes: list[int], drawn_from: NoiseSource, groups: GroupLabels | None = None
) -> list[Indices]:
    """Return the row numbers of disjoint parts of these sizes, drawn at random.

    The part of a row or group follows from its number and a key: see `KeyedSplit`.

    Parameters
    ----------
    sizes : list of int
        In rows or, where there are groups, in groups; each is in one part with all of its rows.
    drawn_from : NoiseSource
    groups : GroupLabels or None, default=None
    """
    numbers = KeyedSplit.drawn(sizes, drawn_from).parts(0, sum(sizes))
    if groups is not None:
        numbers = numbers[groups.codes]
    return [np.flatnonzero(numbers == number) for number in range(len(sizes))]


@dataclass(frozen=True, eq=False)
class Dataset:
    """X and y to be scored or split, and the groups that the rows belong to, if any.

    Attributes
    ----------
    X : array, sparse matrix or data frame of shape (n_rows, n_features)
    y : array of shape (n_rows,)
    n_rows : int
        Private where there are groups.
    groups : GroupLabels or None
    by : array of shape (n_rows,) or None
        Labels of subgroups.
    """

    X: MatrixLike
    y: AnyArray
    n_rows: int
    groups: GroupLabels | None = None
    by: AnyArray | None = None

    @property
    def n_records(self) -> int:
        """Number of rows or, where there are some, of groups; public."""
        return self.n_rows if self.groups is None else self.groups.n_groups

    @property
    def n_features(self) -> int:
        """Number of columns; public."""
        shape = np.shape(self.X)
        return int(shape[1]) if len(shape) == 2 else 1

    @property
    def unit(self) -> str:
        """Unit of privacy."""
        return parts.unit_of(self.groups)

    @property
    def labels(self) -> AnyArray:
        """Entries of y, among them all labels."""
        return self.y

    def split(self, sizes: list[int], drawn_from: NoiseSource) -> list[Indices]:
        """Return the numbers of the rows of each part of a random split; see `random_split`."""
        return random_split(sizes, drawn_from, self.groups)

    def subset(self, *several: Indices) -> dict[str, Any]:
        """Return the rows of some parts as arguments of ``fit``, by name; groups by number."""
        arrays, numbers = {"X": self.X, "y": self.y}, np.concatenate(several)
        if self.groups is not None:
            arrays["groups"] = self.groups.codes
        return {name: rows_of(array, numbers) for name, array in arrays.items()}

    def check(self, check: Callable[[MatrixLike, AnyArray], None]) -> None:
        """Run a check of X and y, which raises ValueError to refuse them."""
        with without_row_counts(self.groups is not None):
            check(self.X, self.y)

    def predicted_by(self, predict: Callable[[MatrixLike], AnyArray]) -> AnyArray:
        """Return ``predict(X)``, which has one answer for each row of X.

        A product of matrices may add up a row in another order for another place or another number
        of rows. With groups the number of rows is private, and a group that has one row more would
        move those after it, so that one of them might end on the other side of a threshold. So
        rows are taken in calls whose sizes, and the place of a group in them, are public: the
        first rows of all groups, then the second ones, the last row of a group standing in for
        those that are missing. Rows beyond `ROUNDS` in a group have a call of their own.
        """
        if self.groups is None:
            return np.asarray(predict(self.X))
        X = np.asarray(self.X) if isinstance(self.X, list) else self.X
        groups = Groups.of(self.groups.codes, self.groups.n_groups)
        starts, sizes = groups.edges[:-1], np.diff(groups.edges)
        calls = [
            groups.order[starts + np.minimum(turn, sizes - 1)]
            for turn in range(min(ROUNDS, int(sizes.max())))
        ]
        for group in np.flatnonzero(sizes > ROUNDS):
            calls.append(groups.order[starts[group] + ROUNDS : groups.edges[group + 1]])
        predicted: AnyArray | None = None
        for rows in calls:
            answer = np.asarray(predict(rows_of(X, rows)))
            if answer.shape[:1] != (len(rows),):
                return answer  # which the caller refuses
            if predicted is None:
                predicted = np.empty((self.n_rows, *answer.shape[1:]), dtype=answer.dtype)
            # Labels of other lengths, or numbers of another kind, need a wider type.
            predicted = predicted.astype(np.result_type(predicted, answer), copy=False)
            predicted[rows] = answer
        assert predicted is not None
        return predicted


def read_dataset(
    who: str,
    X: MatrixLike,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    **arrays: ArrayLike | None,
) -> Dataset:
    """Return the rows, y as a vector, and the groups that they belong to.

    Parameters
    ----------
    who : str
        For refusals.
    X, y : array or data frame of n_rows
    groups : array of shape (n_rows,) or None, default=None
        Labels.
    **arrays
        What else has to have as many rows as there are labels.
    """
    require_taken(who, X, groups=groups)
    if groups is not None:
        labels = GroupLabels(who, groups, X=X, y=y, **arrays)
        with without_row_counts(True):
            return replace(read_dataset(who, X, y), groups=labels)
    if y is None:
        raise ValueError(f"{who}: y is needed: scores compare predictions with it.")
    n_rows = int(_num_samples(X))
    with without_cells(who, "y"):
        values = column_or_1d(y)
    if len(values) != n_rows or n_rows < 1:
        raise ValueError(
            f"{who}: X has {n_rows} rows and y has {len(values)}; there must be as many, and at "
            "least one. Nothing was released."
        )
    return Dataset(X, values, n_rows)


# ---------------------------------------------------------------- rows in partitions

# Raises ValueError to refuse X and y; it can be pickled.
RowCheck = Callable[[MatrixLike, AnyArray], None]


@dataclass(frozen=True, eq=False)
class PartitionedDataset:
    """Rows in partitions to be split; what is public about them.

    Attributes
    ----------
    who : str
        For refusals.
    partitions : Partitions
    sizes, starts : sequence of int
        Number of records of each partition, rows or groups, and the number of its first one.
    like : Summary
        Of any partition.
    labels : array
        Sorted, if they were read; else empty.
    """

    who: str
    partitions: Partitions
    sizes: Sequence[int]
    starts: Sequence[int]
    like: Summary
    labels: AnyArray

    @classmethod
    def read(cls, who: str, partitions: Partitions, reads_labels: bool = False) -> Self:
        """Return what a first pass shows: sizes, shapes, and the set of labels if it is wanted."""
        task = CheckTask(PlainReader(who), reads_labels)
        sizes, starts, seen = summaries(who, partitions, task)
        labels = labels_in(who, seen) if reads_labels else np.empty(0)
        return cls(who, partitions, sizes, starts, seen[0], labels)

    @property
    def n_records(self) -> int:
        """Number of rows or, where there are some, of groups; public."""
        return sum(self.sizes)

    @property
    def n_features(self) -> int:
        """Number of columns; public."""
        return self.like.n_features

    @property
    def unit(self) -> str:
        """Unit of privacy."""
        return "group" if self.like.is_grouped else "row"

    def split(self, sizes: list[int], drawn_from: NoiseSource) -> list[PartOfPartitions]:
        """Return the parts of a random split, of these sizes in rows or groups; see `KeyedSplit`.

        Where partitions do not know their places, sizes are those only in expectation.
        """
        split = KeyedSplit.drawn(sizes, drawn_from)
        where = self.starts, self.sizes
        return [PartOfPartitions(split, (number,), *where) for number in range(len(sizes))]

    def subset(self, *several: PartOfPartitions) -> dict[str, Any]:
        """Return some parts as arguments of ``fit``, by name."""
        numbers = tuple(number for part in several for number in part.numbers)
        part = replace(several[0], numbers=numbers)
        return {"X": MappedPartitions(self.partitions, RowsOfPart(part))}

    def check(self, check: RowCheck) -> None:
        """Run a check of X and y where the rows are."""
        summaries(self.who, self.partitions, CheckTask(PlainReader(self.who, check), False))


class PlainReader(BaseEstimator):
    """Reader of partitions that takes rows as they are, or runs a check on them.

    Parameters
    ----------
    who : str
    check : callable or None, default=None
    """

    def __init__(self, who: str, check: RowCheck | None = None) -> None:
        self.who = who
        self.check = check

    @property
    def _who(self) -> str:
        return self.who

    def _read_rows(
        self, X: MatrixLike, y: ArrayLike, groups: object = None, **checks: object
    ) -> tuple[MatrixLike, AnyArray]:
        names = tables.names_of(X)
        if names is not None:
            self.feature_names_in_ = names
        if self.check is not None:
            rows = read_dataset(self.who, X, y)
            self.check(rows.X, rows.y)
        if not sparse.issparse(X):  # the shape is all that is wanted
            X = np.broadcast_to(np.zeros(()), (*np.shape(X), 1)[:2])
        return X, np.asarray(y)

    def _read_targets(self, y: AnyArray, dtype: object) -> Targets:
        return Targets(y, 1)


def read_rows(
    who: str, X: Any, y: Any, groups: ArrayLike | None, reads_labels: bool
) -> Dataset | PartitionedDataset:
    """Return rows that are to be split once a budget is charged, of any kind.

    Parameters
    ----------
    who : str
    X, y, groups
        As the tool gets them.
    reads_labels : bool
        Whether the set of labels is needed.

    Raises
    ------
    ValueError
        If the tool does not take them. Nothing is released or charged.
    """
    if require_taken(who, X, groups=groups) in ("arrays", "groups"):
        return read_dataset(who, X, y, groups)
    partitions = as_partitions(who, X, y=y, groups=groups)
    data = PartitionedDataset.read(who, partitions, reads_labels)
    if not are_numbered(data.sizes, data.starts):
        raise ValueError(  # a part that came out empty would have cost the budget
            f"{who}: partitions have to pass their index to tasks, so that parts of a random split "
            "have the sizes that were planned. Nothing was released."
        )
    return data
