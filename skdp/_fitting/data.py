"""Rows that were checked, in memory, in partitions or arriving in blocks, with all they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from skdp._fitting import parts
from skdp._fitting.grouping import GroupLabels
from skdp._fitting.partitions import MappedPartitions, RowsOfPart
from skdp._fitting.refusals import without_row_counts
from skdp._fitting.targets import Targets, checked_offset, checked_targets, checked_weights
from skdp._numbers import AnyArray, Array, Indices, Table, is_real
from skdp._oracle import NoiseSource, Public
from skdp._oracle.sources.base import IN_MEMORY, Source
from skdp._oracle.sources.keyed_split import PartOfPartitions
from skdp._oracle.sources.memory import Map
from skdp._oracle.sources.partitioned import Partitions
from skdp._oracle.sources.records import Groups

# Calls that predict one row of every group. Any further rows of a group have a call of their own.
# With more, small groups are predicted over and over where one group is large. With fewer, more
# groups need such a call.
ROUNDS = 32


@dataclass(frozen=True, eq=False)
class Data:
    """Rows that were checked, with all that belongs to them. Nothing has been charged.

    Attributes
    ----------
    X : array, sparse matrix, table, Partitions, or iterable of blocks
    y : array or None
        Of rows in memory. Of partitions all labels, sorted, if they were read.
    targets : Targets
        Of a stream or of partitions: two or so of the declared kind.
    sizes : sequence of int
        Number of records, rows or groups, of each partition. Rows in memory are one, and so is a
        stream.
    n_features : int
    groups : GroupLabels or None
        Of rows in memory.
    by : array of shape (n_rows,) or None
        Labels of subgroups.
    weights : array of shape (n_rows,) or None
        Of rows in memory.
    offset : array of shape (n_rows, n_outputs) or None
        Of margins, of rows in memory that are split or scored.
    grouped, is_sparse, weighted, has_offset : bool
    make_source : callable or None
        Returns the source, from the public facts of a fit and a ``map`` over threads.
    provides : frozenset of str
        Properties on which releases can rely, as in `skdp._oracle.sources.base`.
    starts : sequence of int
        Number of the first record of each partition.
    names : sequence of str or None
        Names of the columns, empty if they have none. None if they are not known.
    column_kinds : mapping or None
        Of a table: how each column is read, by its name or number.
    part : tuple of (Partition, int)
        The part of a random split that the rows are, () for all rows.
    given : tuple
        X, y, weights and offset as they were passed, by which those of another fit are recognised.
    reader : estimator or None
        Which validates blocks as they arrive, so that it learns names that are not known before.
    is_checked_here : bool
        Whether the estimator itself has validated X, so that it knows its columns.
    assumptions : tuple of str
        The privacy statement's sentences on where the rows are.
    """

    X: Table
    y: Table
    targets: Targets
    sizes: Sequence[int]
    n_features: int
    groups: GroupLabels | None = None
    by: AnyArray | None = None
    weights: Array | None = None
    offset: Array | None = None
    grouped: bool = False
    is_sparse: bool = False
    weighted: bool = False
    has_offset: bool = False
    make_source: Callable[[Public, Map], Source] | None = None
    provides: frozenset[str] = IN_MEMORY
    starts: Sequence[int] = (0,)
    names: Sequence[str] | None = None
    column_kinds: Any = None
    part: parts.Part = ()
    given: tuple[Table, ...] = ()
    reader: Any = None
    is_checked_here: bool = True
    assumptions: tuple[str, ...] = ()

    @property
    def n_records(self) -> int:
        """Number of rows or, where there are some, of groups, public."""
        return sum(self.sizes)

    @property
    def n_rows(self) -> int:
        """Number of rows in memory. Private where there are groups."""
        return int(_num_samples(self.X))

    @property
    def codes(self) -> Indices | None:
        """Number of the group of each row in memory, None without groups."""
        return None if self.groups is None else self.groups.codes

    @property
    def unit(self) -> str:
        """Unit of privacy."""
        return "group" if self.grouped else "row"

    @property
    def shape(self) -> dict[str, Any]:
        """Public facts that a plan depends on, by name."""
        names = ("n_records", "n_features", "grouped", "weighted", "has_offset", "provides")
        return {"sparse": self.is_sparse, **{name: getattr(self, name) for name in names}}

    def keep_columns(self, model: Any) -> None:
        """Set ``n_features_in_`` and ``feature_names_in_`` where validation has not done it."""
        if self.is_checked_here:
            return
        model.n_features_in_ = int(self.n_features)
        vars(model).pop("feature_names_in_", None)  # of an earlier fit
        names = getattr(self.reader, "feature_names_in_", self.names)
        if names is not None and len(names):
            model.feature_names_in_ = np.array(names, dtype=object)

    # ------------------------------------------------------------------ splits and predictions

    def split(self, sizes: list[int], drawn_from: NoiseSource) -> list[PartOfPartitions]:
        """Return the parts of a random split, of these sizes in rows or groups.

        A group is in one part with all of its rows. Where partitions do not know their places,
        sizes are those only in expectation.
        """
        return PartOfPartitions.drawn(sizes, drawn_from, self.starts, self.sizes)

    def subset(self, *several: PartOfPartitions) -> dict[str, Any]:
        """Return some parts as arguments of ``fit``, by name, groups by number."""
        numbers = tuple(number for part in several for number in part.numbers)
        part = replace(several[0], numbers=numbers)
        if isinstance(self.X, Partitions):
            return {"X": MappedPartitions(self.X, RowsOfPart(part))}
        rows = part.rows(0, self.n_rows, self.codes)
        arrays = {"X": self.X, "y": self.y, "groups": self.codes}
        arrays |= {"sample_weight": self.weights, "offset": self.offset}
        known = {name: array for name, array in arrays.items() if array is not None}
        return {name: _safe_indexing(array, rows) for name, array in known.items()}

    def predicted_by(self, predict: Callable[..., AnyArray]) -> AnyArray:
        """Return ``predict(X)``, which has one answer for each row of X.

        A product of matrices may add up a row in another order for another place or another number
        of rows. With groups the number of rows is private, and a group that has one row more would
        move those after it, so that one of them might end on the other side of a threshold. So rows
        are processed in calls whose sizes, and the place of a group in them, are public: the first
        rows of all groups, then the second ones, the last row of a group standing in for those that
        are missing. Rows beyond `ROUNDS` in a group have a call of their own.
        """
        if self.groups is None:
            return np.asarray(predict(self.X, **self._offset_of(slice(None))))
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
            answer = np.asarray(predict(_safe_indexing(X, rows), **self._offset_of(rows)))
            if answer.shape[:1] != (len(rows),):
                return answer  # which the caller refuses
            if predicted is None:
                predicted = np.empty((self.n_rows, *answer.shape[1:]), dtype=answer.dtype)
            # Labels of other lengths, or numbers of another kind, need a wider type.
            predicted = predicted.astype(np.result_type(predicted, answer), copy=False)
            predicted[rows] = answer
        assert predicted is not None
        return predicted

    def _offset_of(self, rows: slice | Indices) -> dict[str, AnyArray]:
        return {} if self.offset is None else {"offset": self.offset[rows]}


def read_block(
    model: Any,
    X: Table,
    y: Table,
    sample_weight: Table = None,
    groups: Table = None,
    offset: Table = None,
    is_all: bool = True,
    reads_targets: bool = True,
    **checks: Any,
) -> Data:
    """Check rows in memory as an estimator needs them: all of a fit, a block or a partition.

    Parameters
    ----------
    model : estimator
    X, y, sample_weight, groups, offset
        As `fit` gets them.
    is_all : bool, default=True
        Whether these are all rows of a fit, one of which needs a positive weight.
    reads_targets : bool, default=True
        Whether y is checked. Otherwise the targets are y as it is.
    **checks
        Passed on to the estimator.

    Returns
    -------
    Data

    Raises
    ------
    ValueError
        If they are refused. Neither cells nor, with groups, numbers of rows are quoted.
    """
    labels = None
    if groups is not None:
        weighing = None if is_real(sample_weight) else sample_weight
        labels = GroupLabels(groups, X=X, y=y, sample_weight=weighing, offset=offset)
    with without_row_counts(labels is not None):
        known = None if offset is None else checked_offset(offset, _num_samples(X))
        if known is not None and model._predicts_rows:
            checks["offset"] = known
        X, y = model._read_rows(X, y, groups=labels, **checks)
        targets = checked_targets(model, y, X.dtype) if reads_targets else Targets(y, 1)
        weights = checked_weights(sample_weight, X, is_all)
        if known is not None and reads_targets:
            targets, weights = model._with_offset(targets, weights, known)
    return Data(
        X,
        y,
        targets,
        [X.shape[0] if labels is None else labels.n_groups],
        X.shape[1],
        groups=labels,
        weights=weights,
        grouped=labels is not None,
        is_sparse=bool(sparse.issparse(X)),
        weighted=weights is not None,
        has_offset=known is not None,
        names=list(getattr(model, "feature_names_in_", ())),
        column_kinds=getattr(model, "column_kinds", None),
    )
