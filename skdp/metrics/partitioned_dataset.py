"""Read rows that are to be split: in memory, or in partitions, which stay where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from skdp._numbers import AnyArray
from skdp.fitting import tables
from skdp.fitting.partitions import (
    CheckTask,
    MappedPartitions,
    RowsOfPart,
    Summary,
    as_partitions,
    labels_in,
    summaries,
)
from skdp.fitting.rows import require_taken
from skdp.fitting.units import Targets
from skdp.metrics.dataset import Dataset, read_dataset
from skdp.oracle import NoiseSource
from skdp.oracle.sources.keyed_split import KeyedSplit, PartOfPartitions
from skdp.oracle.sources.partitioned import Partitions

# Raises ValueError to refuse X and y; it can be pickled.
RowCheck = Callable[[Any, Any], None]


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

    def _read_rows(self, X: Any, y: Any, groups: object = None, **checks: object) -> Any:
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
    who: str, X: Any, y: Any, groups: Any, reads_labels: bool
) -> Dataset | PartitionedDataset:
    """Return rows that are to be split, of any kind.

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
    return PartitionedDataset.read(who, partitions, reads_labels)
