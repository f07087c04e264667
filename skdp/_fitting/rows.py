"""Check rows of every kind before a charge, and make the source that the oracle gets of them."""

from __future__ import annotations

import copy
import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse as scipy_sparse
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples

from skdp._fitting import grouping, parts, refusals
from skdp._fitting.data import Data, read_block
from skdp._fitting.estimator import PrivateEstimator
from skdp._fitting.parameters import planned_records
from skdp._fitting.partitions import as_partitions, failure
from skdp._fitting.tables import is_dask, kinds_of_labels, names_of
from skdp._fitting.targets import (
    Targets,
    checked_offset,
    checked_weights,
    require_positive_weight,
)
from skdp._numbers import AnyArray, Array, MatrixLike, Table, shown
from skdp._oracle import Public
from skdp._oracle.sources.base import NUMBERED, PARTITIONED, STREAMED
from skdp._oracle.sources.keyed_split import are_numbered, starts_of_partitions
from skdp._oracle.sources.memory import Map, MemorySource, row_threads
from skdp._oracle.sources.partitioned import (
    SPENT,
    Failure,
    PartitionedSource,
    PartitionRows,
    Partitions,
    SumTask,
    answers,
)
from skdp._oracle.sources.row_blocks import AnyRows
from skdp._oracle.sources.stream import Arrival, StreamSource, more_arrived, n_arriving
from skdp._stages.column_bounds import declared_targets

# Fields of `Data` in which all partitions of a fit are alike.
ALIKE = ("n_features", "grouped", "is_sparse", "weighted", "has_offset", "names", "column_kinds")
# Hash values of a partition's labels of groups that are compared with those of other partitions.
MOST_HASHES = 1024
RowCheck = Callable[[MatrixLike, AnyArray, Array | None], None]  # raises ValueError to refuse them
DIVISION = (
    "Rows came in partitions. How they are divided does not depend on private values, and every "
    "pass read the same rows in the same order. Whoever runs the passes over them, and carries "
    "their sums, is trusted."
)
WHOLE_GROUPS = (
    "All rows of a group lay in one partition: whoever has rows in k partitions counts as k groups."
)

# ---------------------------------------------------------------- the kinds


def read_data(
    model: Any,
    X: Table,
    y: Table = None,
    sample_weight: Table = None,
    groups: Table = None,
    offset: Table = None,
    **beside: Any,
) -> Data:
    """Check the arguments of a tool as a fit of an estimator needs them.

    Parameters
    ----------
    model : estimator
    X, y, sample_weight, groups, offset
        As the tool gets them. With labels of groups, a group is the unit of privacy.
    **beside
        Other arrays with an entry for each row, which the estimator checks if rows are in memory.

    Raises
    ------
    ValueError
        If a parameter or the rows are refused. Nothing is released or charged.
    """
    with refusals.refusing(model._who):
        model._check_parameters()
        given = X, y, sample_weight, groups, offset
        refuse_blocks(X)
        if isinstance(X, Partitions) or is_dask(X):
            columns = {"y": y, "sample_weight": sample_weight, "groups": groups}
            partitions = as_partitions(X, **columns, offset=offset)
            return _read_partitions(model._reader(), partitions, given)
        data = read_block(model, *given, **beside)
    part = parts.part_of(*given, unit=data.unit)
    y = None if y is None else data.y
    return with_source(model, replace(data, y=y, part=part, given=(*given[:3], offset)))


def with_source(model: Any, data: Data) -> Data:
    """Return rows in memory, which an estimator has checked, with a source for the oracle."""

    def make_source(public: Public, spread: Map) -> MemorySource:
        mapped = mapped_rows(model, data)
        return grouping.rows_in_memory(public, *mapped, data.weights, data.codes, spread)

    return replace(data, make_source=make_source)


def _read_partitions(reader: Any, partitions: Partitions, given: tuple[Table, ...]) -> Data:
    """Check rows that stay where they are, in files or in other processes."""
    # A first pass checks the rows, as a fit in memory does.
    reads_labels = reader._reads_label_set
    sizes, starts, seen = summaries(partitions, CheckTask(reader, reads_labels))
    like, labels = seen[0], None
    if reads_labels:
        with refusals.without_cells("y", otherwise=refusals.NO_LABELS):
            labels = np.unique(np.concatenate([one.labels for one in seen]))
        reader.classes = labels
        reader._check_parameters()
    n_outputs, is_column = like.targets
    declared = reader._declared_targets(n_outputs)
    declared = replace(declared, is_column=is_column and declared.is_column)

    def make_source(public: Public, spread: Map) -> PartitionedSource:
        read = BlockReader(reader, public, declared)
        task = SumTask(read, public.row_bound, public.intercept_size * public.has_intercept)
        return PartitionedSource(partitions, sizes, task, spread, starts)

    unit = "group" if like.facts["grouped"] else "row"
    return Data(
        partitions,
        labels,
        declared,
        sizes,
        **like.facts,
        make_source=make_source,
        provides=PARTITIONED | ({NUMBERED} if are_numbered(sizes, starts) else set()),
        starts=starts,
        part=parts.part_of(*given, unit=unit),
        given=(*given[:3], given[4]),
        is_checked_here=False,
        assumptions=(DIVISION, WHOLE_GROUPS) if unit == "group" else (DIVISION,),
    )


def read_stream(
    model: Any,
    blocks: Iterable[tuple[Table, ...]],
    n_features: int,
    n_outputs: int,
    n_samples: int | None,
    n_groups: int | None,
    is_sparse: bool,
    has_weights: bool,
) -> Data:
    """Check the declared shape of rows that arrive block by block and are read once.

    Parameters
    ----------
    model : estimator
    blocks : iterable of tuples
        (X, y), then weights of rows if there are any, then labels of groups if there are any.
    n_features, n_outputs : int
    n_samples, n_groups : int or None
    is_sparse, has_weights : bool

    Raises
    ------
    ValueError
        If a parameter or the rows are refused. Nothing is released or charged.
    """
    with refusals.refusing(model._who):
        model._check_parameters()
        counts = {"n_features": n_features, "n_outputs": n_outputs}
        n_records = planned_records("fit_blocks", n_samples, n_groups, **counts)
        listed = _listed_blocks(blocks)
        declared, reader = model._declared_targets(n_outputs), model._reader()

    def make_source(public: Public, spread: Map) -> StreamSource:
        read = BlockReader(reader, public, declared, has_weights)
        if listed:
            rehearsal = BlockReader(reader, public, declared, has_weights, refusals.END)
            if n_arriving(rehearsal.arrivals(blocks)) > n_records:
                more = more_arrived(n_records, public.grouped)
                raise ValueError(f"{more} No model was kept.")
        arrived = partial(grouping.rows_in_memory, public)
        return StreamSource(read.arrivals(blocks), n_records, arrived, read.nothing())

    return Data(
        blocks,
        None,
        declared,
        [n_records],
        n_features,
        grouped=n_groups is not None,
        is_sparse=bool(is_sparse),
        weighted=has_weights,
        make_source=make_source,
        provides=STREAMED,
        part=parts.part_of(unit="row" if n_groups is None else "group"),
        reader=reader,
        is_checked_here=False,
    )


def _listed_blocks(blocks: Iterable[tuple[Table, ...]]) -> Iterable[tuple[Table, ...]]:
    """Return blocks that can be read before the charge. ValueError for what are no blocks.

    Iterators, and sequences that load their blocks, are not read.
    """
    listed = blocks if isinstance(blocks, list | tuple | str) else ()
    fine = isinstance(blocks, Iterable) and not hasattr(blocks, "shape")
    if not (fine and all(isinstance(block, tuple) for block in listed)):
        # Not even a short list is shown, as it may be one of rows.
        given = f"{type(listed).__name__} of length {len(listed)}" if listed else shown(blocks)
        raise ValueError(f"blocks must be an iterable of tuples (X, y), got {given}.")
    return listed


def refuse_blocks(X: object) -> None:
    """Raise ValueError for an iterator of blocks, for a tool that reads rows more than once."""
    if isinstance(X, Iterator):
        raise ValueError(
            f"{type(X).__name__} is read once. Blocks of rows are taken by fit_blocks, whose shape "
            "is declared. For several passes collect them in files: see skdp.data.Chunks."
        )


# ---------------------------------------------------------------- partitions, checked


@dataclass(frozen=True)
class Summary:
    """Public facts about a partition.

    Attributes
    ----------
    index : int or None
        The place that the partition says it has.
    n_records : int
        Number of rows, or of groups.
    facts : dict
        Fields of `Data` in which all partitions are alike.
    targets : tuple
        Number of outputs, and whether y is one-dimensional.
    labels : array or None
        Of a classifier, unless they are declared.
    has_positive_weight : bool or None
        None if rows have no weights.
    label_hashes : array or None
        Of some labels of groups, see `hashes_of_labels`.
    label_kinds : frozenset of str
        Of all labels of groups.
    """

    index: int | None
    n_records: int
    facts: dict[str, Any]
    targets: tuple[int, bool]
    labels: AnyArray | None
    has_positive_weight: bool | None
    label_hashes: AnyArray | None
    label_kinds: frozenset[str]


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
            return failure(error, "read")

    def _summary(
        self,
        X: Table,
        y: Table,
        sample_weight: Table,
        groups: Table,
        index: int | None,
        offset: Table,
    ) -> Summary:
        model = copy.copy(self.model)  # partitions are read in threads
        hashes, labels, kinds = None, None, frozenset[str]()
        how = {"is_all": False, "reads_targets": not self.reads_labels}
        data = read_block(model, X, y, sample_weight, groups, offset, **how)
        if data.grouped:
            column = grouping.label_column(groups)
            hashes, kinds = hashes_of_labels(column, self.key), kinds_of_labels(column)
        if self.reads_labels:
            with (
                refusals.without_row_counts(data.grouped),
                refusals.without_cells("y", otherwise=refusals.NO_LABELS),
            ):
                check_classification_targets(data.y)
                labels = np.unique(data.y)
        facts = {name: getattr(data, name) for name in ALIKE}
        targets = int((*data.y.shape, 1)[1]), data.y.ndim == 1
        is_positive = None if data.weights is None else bool(data.weights.any())
        return Summary(index, data.n_records, facts, targets, labels, is_positive, hashes, kinds)


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
    refusals.require_one_kind("groups", frozenset().union(*(one.label_kinds for one in read)))
    labels = [kinds_of_labels(one.labels) for one in read if one.labels is not None]
    are_alike = all((one.facts, one.targets) == (read[0].facts, read[0].targets) for one in read)
    if not are_alike or len({*labels, frozenset()}) > 2:
        raise ValueError(
            "partitions must be alike in the number, names and type of their columns and targets. "
            "All have weights, or none, and so with groups and offsets."
        )
    if read[0].facts["weighted"]:
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


# ---------------------------------------------------------------- rows to be split or scored


def read_plain(
    who: str, X: Table, y: Table, groups: Table = None, reads_labels: bool = False, **beside: Table
) -> Data:
    """Return rows to be split or scored as they are, with y as a vector.

    Parameters
    ----------
    who : str
        For refusals.
    X, y, groups
        As the tool gets them. Groups may be `GroupLabels`.
    reads_labels : bool, default=False
        Whether the labels of partitions are needed.
    **beside
        ``sample_weight`` and ``offset``, as a fit gets them. None is left out.

    Raises
    ------
    ValueError
        If they are refused. Nothing is released or charged.
    """
    with refusals.refusing(who):
        refuse_blocks(X)
        if isinstance(X, Partitions) or is_dask(X):
            partitions = as_partitions(X, y=y, groups=groups, **beside)
            reader = PlainReader(who, reads_labels=reads_labels)
            return _read_partitions(
                reader,
                partitions,
                (X, y, beside.get("sample_weight"), groups, beside.get("offset")),
            )
        labels = groups
        if groups is not None and not isinstance(groups, grouping.GroupLabels):
            labels = grouping.GroupLabels(groups, X=X, y=y, **beside)
        if y is None:
            raise ValueError("y is needed: scores compare predictions with it.")
        with refusals.without_row_counts(labels is not None):
            n_rows = int(_num_samples(X))
            if np.ndim(y) == 2 and np.shape(y)[1] > 1:
                raise refusals.InputError(
                    f"y must have one target, got {np.shape(y)[1]}. Fit and score a model for each "
                    "target."
                )
            with refusals.without_cells("y"):
                values = column_or_1d(y)
            if len(values) != n_rows or n_rows < 1:
                raise ValueError(
                    f"X has {n_rows} rows and y has {len(values)}. There must be as many, and at "
                    "least one."
                )
            weights = checked_weights(beside.get("sample_weight"), values)
            offset = beside.get("offset")
            offset = None if offset is None else checked_offset(offset, n_rows)
    return Data(
        X,
        values,
        Targets(values, 1),
        [n_rows if labels is None else labels.n_groups],
        int((*np.shape(X), 1)[1]),
        groups=labels,
        weights=weights,
        offset=offset,
        grouped=labels is not None,
        weighted=weights is not None,
        has_offset=offset is not None,
    )


def check_data(who: str, data: Data, check: RowCheck) -> None:
    """Run a check of X, y and offsets where the rows are, which raises ValueError to refuse."""
    with refusals.refusing(who), refusals.without_row_counts(data.grouped):
        if isinstance(data.X, Partitions):
            summaries(data.X, CheckTask(PlainReader(who, check), False))
        else:
            check(data.X, data.y, data.offset)


class PlainReader(PrivateEstimator):
    """Reader of partitions that returns raw rows, or runs a check on them.

    Parameters
    ----------
    who : str
    check : callable or None, default=None
    reads_labels : bool, default=False
    """

    privacy = None
    _predicts_rows = True  # so that it receives offsets

    def __init__(self, who: str, check: RowCheck | None = None, reads_labels: bool = False) -> None:
        self.who, self.check, self.reads_labels = who, check, reads_labels

    @property
    def _who(self) -> str:
        return self.who

    @property
    def _reads_label_set(self) -> bool:
        return self.reads_labels

    def _check_parameters(self) -> None:
        pass

    def _read_rows(
        self,
        X: MatrixLike,
        y: Table,
        groups: object = None,
        offset: Array | None = None,
        **checks: object,
    ) -> tuple[MatrixLike, AnyArray]:
        names = names_of(X)
        if names is not None:
            self.feature_names_in_ = names
        if self.check is not None:
            rows = read_plain(self.who, X, y)
            self.check(rows.X, rows.y, offset)
        if not scipy_sparse.issparse(X):  # the shape is all that is wanted
            X = np.broadcast_to(np.zeros(()), (*np.shape(X), 1)[:2])
        return X, np.asarray(y)


# ---------------------------------------------------------------- blocks and partitions, read


def mapped_rows(model: Any, data: Data) -> tuple[AnyRows, AnyArray]:
    """Return rows and targets as the stages of a fit see them: within groups, or as they are."""
    X, values = data.X, data.targets.values
    if data.groups is None or not getattr(model, "fixed_effects", False):
        return X, values
    X, values = grouping.within_groups(X, values, data.weights, data.groups.codes)
    declared = declared_targets(model.scaling)
    return X, values if declared is None else np.clip(values, *declared)


class BlockReader:
    """Validates blocks as they arrive.

    Parameters
    ----------
    model : estimator
        Blocks are checked on it. The names of their columns are not kept.
    public : Public
    declared : Targets
        Declared kind of targets.
    has_weights : bool, default=False
        Whether the blocks of a stream hold weights of rows.
    so_far : str
        Sentence of refusals on the budget.
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

    def arrivals(self, blocks: Iterable[tuple[Table, ...]]) -> Iterator[Arrival]:
        """Yield validated blocks, which have the same columns and kinds of labels."""
        first: tuple[object] | None = None
        kinds = frozenset[str]()
        for block in blocks:
            with refusals.refusing(self._model._who, self._so_far):
                if not (isinstance(block, tuple) and len(block) == len(self._form)):
                    form = f"a tuple ({', '.join(self._form)})"
                    is_tuple = isinstance(block, tuple)
                    got = f"a tuple of {len(block)}" if is_tuple else type(block).__name__
                    raise ValueError(
                        f"a block is {form}, got {got}. Weights of rows are declared by "
                        "weighted=True, and labels of groups by n_groups=..."
                    )
                # scikit-learn refuses to check arrays without rows.
                if np.shape(block[0])[:1] == (0,):
                    continue
                of, names = dict(zip(self._form, block, strict=True)), (names_of(block[0]),)
                first = first or names
                if names != first:
                    raise ValueError(
                        "the columns of a block have other names than those of the first block, or "
                        "another order, or only one of them has names. Pass block[columns] with "
                        "one list of columns."
                    )
                if self._public.grouped:
                    kinds |= kinds_of_labels(grouping.label_column(of["groups"]))
                    refusals.require_one_kind("groups", kinds)
            yield self(block[0], block[1], of.get("sample_weight"), of.get("groups"))

    def __call__(
        self, X: Table, y: Table, sample_weight: Table, groups: Table, offset: Table = None
    ) -> Arrival:
        """Return one block of rows, validated."""
        public = self._public
        declared = public.n_features, public.n_outputs, public.sparse, public.weighted
        with refusals.refusing(self._model._who, self._so_far):
            how: dict[str, Any] = {"is_all": False, "ensure_min_samples": 0}
            labelled = None if not public.grouped else () if groups is None else groups
            data = read_block(self._model, X, y, sample_weight, labelled, offset, **how)
            shape = data.n_features, data.targets.n_outputs, data.is_sparse, data.weighted
            if shape != declared:
                names = "n_features", "n_outputs", "sparse", "weighted"
                facts = zip(names, declared, shape, strict=True)
                unlike = [
                    f"{name}={one} was declared, got {got}"
                    for name, one, got in facts
                    if one != got
                ]
                raise ValueError(f"a block is not as declared: {'; '.join(unlike)}.")
        return *mapped_rows(self._model, data), data.weights, data.codes

    def nothing(self) -> Arrival:
        """Return an arrival of no rows."""
        shape = 0, self._public.n_features
        X = scipy_sparse.csr_array(shape) if self._public.sparse else np.zeros(shape)
        weights = np.zeros(0) if self._public.weighted else None
        groups = np.zeros(0, dtype=np.int64) if self._public.grouped else None
        return X, self._declared.values[:0], weights, groups
