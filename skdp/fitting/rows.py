"""Kinds of rows: how each is checked before a charge, and the source that the oracle gets of it.

A kind answers `read`: it refuses rows that cannot be fitted, and returns a `Reading`, the public
facts about them with a function that makes their source. The path of a fit is the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse as scipy_sparse

from skdp._numbers import AnyArray, Array, Indices, is_real, shown
from skdp.accounting import LABEL
from skdp.fitting import parts
from skdp.fitting.between_fits import FitData, numeric_targets
from skdp.fitting.dask_collections import as_partitions
from skdp.fitting.grouping import GroupLabels, label_column, rows_in_memory, within_groups
from skdp.fitting.parameters import planned_records
from skdp.fitting.partitions import CheckTask, labels_in, refuse_beside, summaries
from skdp.fitting.refusals import require_one_kind, without_row_counts, without_sizes
from skdp.fitting.tables import KindsOfLabels, is_dask, kinds_of_labels, names_of
from skdp.fitting.units import Targets, checked_targets, checked_weights
from skdp.oracle import Public
from skdp.oracle.sources.base import IN_MEMORY, NUMBERED, PARTITIONED, STREAMED, Source
from skdp.oracle.sources.keyed_split import are_numbered
from skdp.oracle.sources.memory import Map, MemorySource
from skdp.oracle.sources.partitioned import (
    SPENT,
    PartitionedSource,
    Partitions,
    SumTask,
    require_few_partitions,
)
from skdp.oracle.sources.sparse_rows import AnyRows
from skdp.oracle.sources.stream import Arrival, StreamSource, more_arrived, n_arriving
from skdp.stages.column_bounds import declared_targets

SourceMaker = Callable[[Public, Map], Source]
UNSPENT = "Nothing was released."
DIVISION = (
    "Rows came in partitions; how they are divided does not depend on private values, and every "
    "pass read the same rows in the same order. Whoever runs the passes over them, and carries "
    "their sums, is trusted."
)
WHOLE_GROUPS = (
    "All rows of a group lay in one partition: whoever has rows in k partitions counts as k groups."
)

# ---------------------------------------------------------------- which tool takes which kind

# What a user may pass as X, with labels of groups or weights beside it.
KINDS: Mapping[str, str] = {
    "arrays": "rows in memory",
    "groups": "groups of rows in memory",
    "partitions": "rows in partitions, with what belongs to them: files, or a class of the user's",
    "dask": "collections of dask",
    "groups in dask": "collections of dask, with labels of groups",
    "weights in dask": "collections of dask, with weights",
    "blocks": "an iterator of blocks (X, y), or (X, y, groups), each of which is read once",
}

_SHAPE = "blocks of rows are taken by fit_blocks, whose shape is declared."
_TWICE = "{rows} is read once, and {why}. Collect the blocks in files: see skdp.data.Chunks."
_SPLITS = _TWICE.replace("{why}", "each part of a random split is read several times")

# By tool, the kinds that it does not take, each with the reason.
NOT_TAKEN: Mapping[str, Mapping[str, str]] = {
    "fit": {"blocks": _SHAPE},
    "DPStandardScaler": {"blocks": _TWICE.replace("{why}", "histograms take several passes")},
    "DPTabularPreprocessor": {"blocks": _TWICE.replace("{why}", "medians take several passes")},
    "evaluate": {},
    "dp_train_test_split": {"blocks": _SPLITS},
    "DPHoldout": {"blocks": _SPLITS},
    "dp_cross_validate": {"blocks": _SPLITS},
    "DPSearchCV": {"blocks": _SPLITS},
}


def kind_of_rows(X: object, sample_weight: object = None, groups: object = None) -> str:
    """Return the kind, one of `KINDS`, of what a tool was given."""
    if isinstance(X, Iterator):
        return "blocks"
    beside = "groups" if groups is not None else "weights" if sample_weight is not None else ""
    if isinstance(X, Partitions):  # which hold weights and labels of their rows themselves
        return "partitions"
    if is_dask(X):
        return f"{beside} in dask" if beside else "dask"
    return "groups" if beside == "groups" else "arrays"


def require_taken(who: str, X: object, sample_weight: object = None, groups: object = None) -> str:
    """Return the kind of rows that a tool was given, if it takes them.

    Parameters
    ----------
    who : str
        The tool; one that `NOT_TAKEN` does not name is an estimator's ``fit``.
    X, sample_weight, groups
        As the tool gets them.

    Raises
    ------
    ValueError
        If it does not. Nothing is released or charged.
    """
    kind = kind_of_rows(X, sample_weight, groups)
    reason = NOT_TAKEN.get(who, NOT_TAKEN["fit"]).get(kind)
    if reason is not None:
        rows = type(X).__name__
        raise ValueError(f"{who}: {reason.format(rows=rows)} Nothing was released.")
    return kind


# ---------------------------------------------------------------- the kinds


@dataclass(frozen=True, eq=False)
class Reading:
    """Rows that were checked: what is public about them, and how the oracle gets them.

    Attributes
    ----------
    n_records : int
        Number of rows, or of groups.
    n_features : int
    targets : Targets
        Of a stream or of partitions: two or so of the declared kind.
    is_sparse, weighted, grouped : bool
    make_source : callable
        Returns the source, from the public facts of the fit and a ``map`` over threads.
    provides : frozenset of str
        What releases can rely on, as in `skdp.oracle.sources.base`.
    names : sequence of str or None
        Names of the columns, empty if they have none; None if they are not known.
    column_kinds : mapping or None
        Of a table: how each column is read, by its name or number.
    part : tuple of (Partition, int)
        The part of a random split that the rows are; () for all rows.
    data : FitData or None
        What budgets compare with earlier fits; None for rows that are not in memory.
    reader : estimator or None
        Which validates blocks as they arrive, so that it learns names that are not known before.
    is_checked_here : bool
        Whether the estimator itself has validated X, so that it knows its columns.
    assumptions : tuple of str
        The privacy statement's sentences on where the rows are.
    """

    n_records: int
    n_features: int
    targets: Targets
    is_sparse: bool
    weighted: bool
    grouped: bool
    make_source: SourceMaker
    provides: frozenset[str] = IN_MEMORY
    names: Sequence[str] | None = None
    column_kinds: Mapping[Any, str] | None = None
    part: parts.Part = ()
    data: FitData | None = None
    reader: Any = None
    is_checked_here: bool = True
    assumptions: tuple[str, ...] = ()

    @property
    def shape(self) -> dict[str, Any]:
        """Public facts that a plan depends on, by name."""
        names = ("n_records", "n_features", "grouped", "weighted", "provides")
        return {"sparse": self.is_sparse, **{name: getattr(self, name) for name in names}}

    def keep_columns(self, model: Any) -> None:
        """Set ``n_features_in_`` and ``feature_names_in_`` where validation has not done it."""
        if self.is_checked_here:
            return
        model.n_features_in_ = int(self.n_features)
        vars(model).pop("feature_names_in_", None)  # of an earlier fit
        names = getattr(self.reader, "feature_names_in_", self.names)
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)


class Rows(ABC):
    """Rows of one kind."""

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What was given for the rows, by which those of another fit are recognised."""
        return ()

    @abstractmethod
    def read(self, model: Any) -> Reading:
        """Check the rows as a fit of this estimator needs them.

        Raises
        ------
        ValueError
            If they are refused. Nothing is released or charged.
        """


@dataclass(frozen=True, eq=False)
class Arrays(Rows):
    """Rows in memory; with labels of groups, a group is the unit of privacy.

    Attributes
    ----------
    X, y, sample_weight, groups
        As `fit` gets them; y is None for an estimator without targets.
    """

    X: Any
    y: Any = None
    sample_weight: Any = None
    groups: Any = None

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self.X, self.y

    def read(self, model: Any) -> Reading:
        who, given = type(model).__name__, (self.X, self.y, self.sample_weight, self.groups)
        part = parts.part_of(*given, unit=parts.unit_of(self.groups))
        labels = None
        if self.groups is not None:
            weighing = None if is_real(self.sample_weight) else self.sample_weight
            labels = GroupLabels(who, self.groups, X=self.X, y=self.y, sample_weight=weighing)
        grouped = labels is not None
        with without_sizes(who, grouped), without_row_counts(grouped):
            X, y = model._read_rows(self.X, self.y)
            targets = checked_targets(model, y, X.dtype)
            weights = checked_weights(who, self.sample_weight, X)
        n_records = X.shape[0] if labels is None else labels.n_groups
        codes = None if labels is None else labels.codes

        def make_source(public: Public, spread: Map) -> MemorySource:
            rows, values = mapped_rows(model, X, targets.values, weights, codes)
            return rows_in_memory(public, rows, values, weights, codes, spread)

        data = None
        if self.y is not None:
            seen, labels_alone = numeric_targets(y, targets.values), model._terms.adjacency == LABEL
            data = FitData(X, seen, labels_alone, n_records, self.sample_weight, part)
        return Reading(
            n_records=n_records,
            n_features=X.shape[1],
            targets=targets,
            is_sparse=bool(scipy_sparse.issparse(X)),
            weighted=weights is not None,
            grouped=grouped,
            make_source=make_source,
            names=list(getattr(model, "feature_names_in_", ())),
            column_kinds=getattr(model, "column_kinds", None),
            part=part,
            data=data,
        )


@dataclass(frozen=True, eq=False)
class PartitionedRows(Rows):
    """Rows that stay where they are: in files, or in other processes.

    Attributes
    ----------
    partitions : Partitions
    given : tuple
        What a tool was given for them; a random split remembers its parts by it.
    """

    partitions: Partitions
    given: tuple[Any, ...] = ()

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self.given

    def read(self, model: Any) -> Reading:
        who, reader = model._who, model._reader()
        # A first pass checks the rows, as a fit in memory does.
        reads_labels = model._reads_label_set
        sizes, starts, seen = summaries(who, self.partitions, CheckTask(reader, reads_labels))
        like = seen[0]
        if reads_labels:
            reader.classes = labels_in(who, seen)
            reader._check_parameters()
        declared = replace(reader._declared_targets(like.n_outputs), is_column=like.is_column)
        require_few_partitions(len(seen))

        def make_source(public: Public, spread: Map) -> PartitionedSource:
            read = BlockReader(reader, public, declared)
            task = SumTask(read, public.row_bound, public.intercept_size * public.has_intercept)
            return PartitionedSource(self.partitions, sizes, task, spread, starts)

        return Reading(
            n_records=sum(sizes),
            n_features=like.n_features,
            targets=declared,
            is_sparse=like.is_sparse,
            weighted=like.is_weighted,
            grouped=like.is_grouped,
            make_source=make_source,
            provides=PARTITIONED | ({NUMBERED} if are_numbered(sizes, starts) else set()),
            names=like.names,
            column_kinds=None if like.column_kinds is None else dict(like.column_kinds),
            part=parts.part_of(*self.given, unit="group" if like.is_grouped else "row"),
            is_checked_here=False,
            assumptions=(DIVISION, WHOLE_GROUPS) if like.is_grouped else (DIVISION,),
        )


@dataclass(frozen=True, eq=False)
class Blocks(Rows):
    """Rows that arrive block by block and are read once; their shape is declared.

    Attributes
    ----------
    blocks : iterable of tuples
        (X, y), then weights of rows if there are any, then labels of groups if there are any.
    n_features, n_outputs : int
    n_samples, n_groups : int or None
    is_sparse, has_weights : bool
    """

    blocks: Iterable[tuple[Any, ...]]
    n_features: int
    n_outputs: int
    n_samples: int | None
    n_groups: int | None
    is_sparse: bool
    has_weights: bool = False

    def read(self, model: Any) -> Reading:
        counts = {"n_features": self.n_features, "n_outputs": self.n_outputs}
        n_records = planned_records("fit_blocks", self.n_samples, self.n_groups, **counts)
        # Iterators, and sequences that load their blocks, are not read before the charge.
        listed = self.blocks if isinstance(self.blocks, list | tuple | str) else ()
        fine = isinstance(self.blocks, Iterable) and not hasattr(self.blocks, "shape")
        fine = fine and all(isinstance(block, tuple) for block in listed)
        # Not even a short list is shown, as it may be one of rows.
        given = f"{type(listed).__name__} of length {len(listed)}" if listed else shown(self.blocks)
        if not fine:
            raise ValueError(
                f"fit_blocks: blocks must be an iterable of tuples (X, y); got {given}. "
                "Nothing was released."
            )
        declared = model._declared_targets(self.n_outputs)
        reader = model._reader()

        def make_source(public: Public, spread: Map) -> StreamSource:
            read = BlockReader(reader, public, declared, self.has_weights)
            if listed:
                rehearsal = BlockReader(reader, public, declared, self.has_weights, UNSPENT)
                if n_arriving(rehearsal.arrivals(self.blocks)) > n_records:
                    more = more_arrived(n_records, public.grouped)
                    raise ValueError(
                        f"fit_blocks: {more} Nothing was released, and no model was kept."
                    )
            arrivals, arrived = read.arrivals(self.blocks), partial(rows_in_memory, public)
            return StreamSource(arrivals, n_records, arrived, read.nothing())

        return Reading(
            n_records=n_records,
            n_features=self.n_features,
            targets=declared,
            is_sparse=bool(self.is_sparse),
            weighted=self.has_weights,
            grouped=self.n_groups is not None,
            make_source=make_source,
            provides=STREAMED,
            reader=reader,
            is_checked_here=False,
        )


def rows_of(
    who: str,
    X: Any,
    y: Any,
    sample_weight: Any,
    groups: Any,
    in_memory: Callable[..., Rows] = Arrays,
    in_blocks: Callable[..., Rows] | None = None,
) -> Rows:
    """Return what a tool was given as rows of their kind.

    Parameters
    ----------
    who : str
    X, y, sample_weight, groups
        As the tool gets them.
    in_memory : callable, default=Arrays
        Makes the kind for rows in memory from these four.
    in_blocks : callable or None, default=None
        Makes the kind for blocks of rows from their iterator, for a tool that takes them.

    Raises
    ------
    ValueError
        If it does not take rows of this kind. Nothing is released or charged.
    """
    kind = require_taken(who, X, sample_weight, groups)
    given = {"y": y, "sample_weight": sample_weight, "groups": groups}
    if kind == "blocks" and in_blocks is not None:
        refuse_beside(who, f"an iterator of blocks ({type(X).__name__})", **given)
        return in_blocks(X)
    if kind in ("arrays", "groups"):
        return in_memory(X, y, sample_weight, groups)
    return PartitionedRows(as_partitions(who, X, **given), (X, *given.values()))


# ---------------------------------------------------------------- blocks and partitions, read


def mapped_rows(
    model: Any, X: AnyRows, values: AnyArray, weights: Array | None, codes: Indices | None
) -> tuple[AnyRows, AnyArray]:
    """Return rows and targets as the stages of a fit see them: within groups, or as they are."""
    if codes is None or not getattr(model, "fixed_effects", False):
        return X, values
    X, values = within_groups(X, values, weights, codes)
    declared = declared_targets(model.scaling)
    return X, values if declared is None else np.clip(values, *declared)


class BlockReader:
    """Validates blocks as they arrive.

    Parameters
    ----------
    model : estimator
        Blocks are checked on it; the names of their columns are not kept.
    public : Public
    declared : Targets
        What targets were declared to be.
    has_weights : bool, default=False
        Whether the blocks of a stream hold weights of rows.
    so_far : str
        What refusals say of the budget.
    """

    def __init__(
        self,
        model: Any,
        public: Public,
        declared: Targets,
        has_weights: bool = False,
        so_far: str = SPENT,
    ) -> None:
        self._model, self._public, self._declared = model, public, declared
        self._so_far = so_far
        self._form = ("X", "y", *["sample_weight"] * has_weights, *["groups"] * public.grouped)

    def arrivals(self, blocks: Iterable[tuple[Any, ...]]) -> Iterator[Arrival]:
        """Yield what arrives, validated; all blocks have the same columns and kinds of labels."""
        names: list[Any] | None = None
        kinds = KindsOfLabels()
        is_first = True
        for block in blocks:
            if not (isinstance(block, tuple) and len(block) == len(self._form)):
                form = f"a tuple ({', '.join(self._form)})"
                is_tuple = isinstance(block, tuple)
                got = f"a tuple of {len(block)}" if is_tuple else type(block).__name__
                raise ValueError(
                    f"{self._model._who}: a block is {form}; got {got}. {self._so_far}"
                )
            # scikit-learn refuses to check arrays without rows.
            if np.shape(block[0])[:1] != (0,):
                of = dict(zip(self._form, block, strict=True))
                own = names_of(block[0])
                if not is_first and own != names:
                    raise ValueError(
                        f"{self._model._who}: the columns of a block have other names than those "
                        "of the first block, or another order, or only one of them has names. "
                        f"Pass block[columns] with one list of columns. {self._so_far}"
                    )
                names, is_first = own, False
                with self._refusals():
                    labels = of.get("groups", ())
                    column = label_column(self._model._who, labels) if self._public.grouped else ()
                    kinds |= kinds_of_labels(column)
                    require_one_kind(self._model._who, "groups", [kinds])
                yield self(block[0], block[1], of.get("sample_weight"), of.get("groups"))

    def __call__(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Arrival:
        """Return one block of rows, validated."""
        who, grouped = self._model._who, self._public.grouped
        with self._refusals():
            labels = None
            if grouped:
                labels = GroupLabels(who, groups, X=X, y=y)
            with without_row_counts(grouped):
                X, y = self._model._read_rows(X, y, groups=labels, ensure_min_samples=0)
                targets = checked_targets(self._model, y, X.dtype)
                weights = checked_weights(who, sample_weight, X, is_all=False)
        is_sparse, weighted = bool(scipy_sparse.issparse(X)), weights is not None
        shape = X.shape[1], targets.n_outputs, is_sparse, weighted
        public = self._public
        declared = public.n_features, public.n_outputs, public.sparse, public.weighted
        if shape != declared:
            raise ValueError(
                f"{who}: blocks were declared to have (columns, outputs, sparse, weights) = "
                f"{declared}; got {shape}. {self._so_far}"
            )
        codes = None if labels is None else labels.codes
        X, values = mapped_rows(self._model, X, targets.values, weights, codes)
        return X, values, weights, codes

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Reword refusals, which are those of a fit of rows in memory that was not charged yet."""
        try:
            yield
        except (ValueError, TypeError) as refusal:
            message = str(refusal).removesuffix(UNSPENT).rstrip()
            raise ValueError(f"{message} {self._so_far}") from None

    def nothing(self) -> Arrival:
        """Return an arrival of no rows."""
        shape = 0, self._public.n_features
        X = scipy_sparse.csr_array(shape) if self._public.sparse else np.zeros(shape)
        weights = np.zeros(0) if self._public.weighted else None
        groups = np.zeros(0, dtype=np.int64) if self._public.grouped else None
        return X, self._declared.values[:0], weights, groups
