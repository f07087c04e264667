"""Rows in partitions, in files or in other processes, on each of which tasks run.

A task is sent to the rows and returns a raw sum over them, to which the oracle adds noise. So the
channel and the other processes must be trusted.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skdp._numbers import AnyArray, Array, Indices, listed
from skdp._oracle import compiled
from skdp._oracle.sources import base
from skdp._oracle.sources.column_map import Map, Scaling
from skdp._oracle.sources.memory import MemorySource
from skdp._oracle.sources.records import Groups, Records
from skdp._oracle.sources.row_blocks import part_rows

# Called with what a partition holds: see `Partitions.run`.
Task = Callable[..., Any]
# X, targets, weights or None, and numbers of groups or None, of what a partition holds: X, y,
# sample_weight or None, and labels of groups or None.
Read = Callable[..., tuple[Any, AnyArray, Array | None, Indices | None]]


SPENT = "The budget of this fit is spent."


class Partitions(ABC):
    """Rows in partitions, on each of which a task can be run.

    A subclass says where they are: see "Rows on other machines" in the documentation. How rows are
    divided has to be public: it must not depend on values of private columns. With labels of
    groups, all rows of a group have to lie in one partition, in every pass.
    """

    @abstractmethod
    def run(self, task: Task, spread: Map = map) -> Iterable[Any]:
        """Return a task's result for the rows of each partition, in the partitions' order.

        Parameters
        ----------
        task : callable
            ``task(X, y, sample_weight=None, groups=None, index=None, offset=None)`` returns a
            number, an array or a small object. It can be pickled, depends only on its arguments and
            never raises. Weights, labels of groups and offsets are those of `fit`. All partitions
            have them, or none. ``index`` is the partition's place in the order, from 0 on. Random
            splits go by it: without it, rows at equal places in their partitions fall into the same
            part.
        spread : callable, default=map
            Maps a function over threads of this process, for partitions that are read by it.
        """


def answers(
    partitions: Partitions, task: Task, so_far: str, spread: Map = map
) -> Generator[Any, None, None]:
    """Yield the results of a task on all partitions. A failure's message closes with ``so_far``."""
    try:
        yield from partitions.run(task, spread)
    except Exception as failure:  # of a storage or a cluster of any kind; it may quote rows
        raise RuntimeError(
            f"{type(partitions).__name__}: a pass over the rows failed with "
            f"{type(failure).__name__}. {so_far}"
        ) from None


@dataclass(frozen=True)
class Failure:
    """Result of a task that failed, which never raises: others would log its arguments, rows.

    Attributes
    ----------
    message : str
        Quotes no cell.
    """

    message: str


@dataclass(frozen=True, eq=False, repr=False)
class PartitionSum:
    """Result of a pass over one partition.

    Attributes
    ----------
    n_records : int
        Number of its rows, or of its groups.
    value : number or array
        The sum over its rows. None if it has none.
    """

    n_records: int
    value: Any


@dataclass(frozen=True, eq=False, repr=False)
class PartitionRows:
    """Rows of a partition, with their targets, weights and groups: the arguments of every task.

    Attributes
    ----------
    X, y, sample_weight, groups
        As `fit` gets them. None if there are none.
    index : int or None
        The place that the partition says it has.
    offset
        As `fit` gets it.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    groups: Any = None
    index: int | None = None
    offset: Any = None

    @property
    def is_empty(self) -> bool:
        """True if there are no rows, as in some partitions once the rows were filtered."""
        return bool(np.shape(self.X)[:1] == np.shape(self.y)[:1] == (0,))


@dataclass(frozen=True, eq=False)
class SumTask:
    """The task of a pass: make records of a partition's rows, and sum a function over them.

    Parameters
    ----------
    read : callable
        Checks rows, weights and labels of groups. Makes targets of y and numbers of labels.
    row_bound : float or None
    constant : float
    scaling : Scaling
        How records are standardised.
    function, arguments, vectors
        As in `RepeatableSource.total`.
    n_records : int
        Number of rows, or of groups, of all partitions.
    by_group : bool
        Whether the function is one of blocks of groups, as in `RepeatableSource.total_over_groups`.
    uses_loops : bool
        Whether compiled loops work in the process of the fit, so that a worker loads them.
    """

    read: Read
    row_bound: float | None
    constant: float
    scaling: Scaling = field(default_factory=Scaling)
    function: base.BlockFunction | None = None
    arguments: tuple[Any, ...] = ()
    vectors: tuple[base.RowVector, ...] = ()
    n_records: int = 0
    by_group: bool = False
    uses_loops: bool = field(default_factory=compiled.is_active)

    def __call__(self, *given: Any, **named: Any) -> PartitionSum | Failure:
        try:
            with np.errstate(all="ignore"):
                return self._sum(PartitionRows(*given, **named))
        except ValueError as refusal:  # by `read`, which quotes no cell
            return Failure(str(refusal))
        except Exception as failure:  # its message may quote rows, so only its type is reported
            return Failure(f"a partition could not be summed up: {type(failure).__name__}.")

    def _sum(self, given: PartitionRows) -> PartitionSum:
        if given.is_empty:
            return PartitionSum(0, None)
        beside = given.sample_weight, given.groups, given.offset
        X, targets, weights, codes = self.read(given.X, given.y, *beside)
        # A group adds here what it adds to a sum over all groups at once, so it keeps to the same
        # bound: the unit of its rows' shares follows from the number of all groups
        # (`skdp._oracle.sources.records.exact_bits`), and what a row adds only from the row.
        groups = None if codes is None else Groups.of(codes, int(codes.max()) + 1, self.n_records)
        no_norms = Records(X, targets, weights, None, np.empty(0), self.constant)
        source = MemorySource(no_norms, groups=groups)
        source = source.transformed(self.scaling, self.row_bound, copies=False)
        assert self.function is not None
        if self.uses_loops:
            compiled.load()
        vectors = tuple(source.per_row(one.function, *one.arguments) for one in self.vectors)
        total = source.total_over_groups if self.by_group else source.total
        value = total(self.function, *self.arguments, rows=vectors)
        return PartitionSum(source.n_rows, value)


class PartitionedSource(base.RepeatableSource):
    """Rows in partitions: they can be passed over many times, and have no numbers.

    Parameters
    ----------
    partitions : Partitions
    sizes : sequence of int
        Numbers of records, rows or groups, that the first pass read. Later passes that read others
        are refused: a record that came twice would move a sum by twice its bound.
    task : SumTask
        How rows become records.
    spread : callable, default=map
        Maps a function over threads of this process.
    starts : sequence of int or None, default=None
        Numbers of the partitions' first records, as in `PartOfPartitions`.
    """

    def __init__(
        self,
        partitions: Partitions,
        sizes: Sequence[int],
        task: SumTask,
        spread: Map = map,
        starts: Sequence[int] | None = None,
    ) -> None:
        self._partitions, self._spread = partitions, spread
        self._sizes, self._starts = list(sizes), [0] * len(sizes) if starts is None else starts
        self.n_rows = sum(sizes)
        self._task = replace(task, n_records=self.n_rows)

    def _with(self, sizes: Sequence[int] | None = None, **changes: Any) -> "PartitionedSource":
        """Return the same partitions with changes of the task."""
        sizes, task = self._sizes if sizes is None else sizes, replace(self._task, **changes)
        return PartitionedSource(self._partitions, sizes, task, self._spread, self._starts)

    def total(
        self, function: base.BlockFunction, *arguments: Any, rows: tuple[base.RowVector, ...] = ()
    ) -> Any:
        """Sum a function over the partitions in pairs, in their order, whichever is done first."""
        return self._total(function=function, arguments=arguments, vectors=rows)

    def total_over_groups(
        self, function: base.BlockFunction, *arguments: Any, rows: tuple[base.RowVector, ...] = ()
    ) -> Any:
        """Sum a function of blocks of groups over the partitions, as `total`."""
        return self._total(function=function, arguments=arguments, vectors=rows, by_group=True)

    def _total(self, **of_pass: Any) -> Any:
        base.note_read()
        return base.added_in_pairs(self._sums(replace(self._task, **of_pass)))

    def _sums(self, task: SumTask) -> Iterator[Any]:
        sizes = []
        for result in answers(self._partitions, task, SPENT, self._spread):
            if isinstance(result, Failure):
                message = result.message.removesuffix(SPENT).removesuffix("Nothing was released.")
                raise ValueError(f"{message.strip()} {SPENT}")
            sizes.append(result.n_records)
            if result.n_records:
                yield result.value
        if sizes != self._sizes:
            raise ValueError(
                f"{type(self._partitions).__name__}: a pass read {sum(sizes)} records in "
                f"{len(sizes)} partitions. The first pass read {self.n_rows} in "
                f"{len(self._sizes)}, or they were divided in another way. (A record is a row, or "
                "a group of rows.) Every pass must read the same rows. "
                f"{SPENT}"
            )

    def per_row(self, function: base.BlockFunction, *arguments: Any) -> base.RowVector:
        """Return a lazy vector, evaluated where its rows are whenever it is needed."""
        return base.RowVector(function, arguments)

    def transformed(
        self,
        scaling: Scaling,
        row_bound: float | None,
        copies: bool = True,
        unit_constant: bool = False,
    ) -> "PartitionedSource":
        """Return the rows mapped by public numbers, in every pass, with another bound on them."""
        constant = float(self._task.constant != 0) if unit_constant else self._task.constant
        return self._with(scaling=scaling, row_bound=row_bound, constant=constant)


class Chunks(Partitions):
    """Rows outside of memory, a chunk of which is read at a time, in every pass of a fit.

    Parameters
    ----------
    X : object with a ``shape`` (n_samples, n_features) that gives rows as ``X[start:stop]``
        A `numpy.memmap`, a data set of h5py or zarr, a `ParquetColumns`, a class of your own. Its
        slices are anything that `fit` accepts as X.
    y : array, or object that gives targets as ``y[start:stop]``
    rows_at_once : int or None, default=None
        Rows of a chunk. None: about 64 MB of them.
    sample_weight : array, or object that gives weights as ``sample_weight[start:stop]``, or None
        Non-negative weights of the rows, as in ``fit``.
    offset : array, or object that gives offsets as ``offset[start:stop]``, or None

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from skdp import DPRidge
    >>> from skdp.data import Chunks
    >>> rng = np.random.default_rng(0)
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     X = np.memmap(file, np.float32, "w+", shape=(20_000, 3))
    ...     X[:] = rng.standard_normal(X.shape)
    ...     y = X @ [1.0, -1.0, 0.5] + 0.1 * rng.standard_normal(len(X))
    ...     model = DPRidge().fit(Chunks(X, y, rows_at_once=5_000))
    >>> model.coef_.round(1).tolist()
    [1.0, -1.0, 0.5]
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        rows_at_once: int | None = None,
        sample_weight: Any = None,
        offset: Any = None,
    ) -> None:
        shape: tuple[int, ...] = tuple(getattr(X, "shape", ()))
        if len(shape) != 2 or not hasattr(X, "__getitem__"):
            raise ValueError(
                "Chunks: X must have a shape (n_samples, n_features) and give rows as "
                f"X[start:stop], got {type(X).__name__}."
            )
        if rows_at_once is None:
            rows_at_once = 4 * part_rows(int(shape[1]), is_sparse=False)
        if not rows_at_once >= 1:
            raise ValueError(f"Chunks: rows_at_once must be at least 1, got {rows_at_once!r}.")
        given = {"y": y, "sample_weight": sample_weight, "offset": offset}
        beside = {name: one for name, one in given.items() if name == "y" or one is not None}
        for name, column in beside.items():
            if len(column) != shape[0]:
                raise ValueError(f"Chunks: X has {shape[0]} rows and {name} has {len(column)}.")
        self._columns = {"X": X, **beside}
        self._slices = [
            slice(start, min(start + rows_at_once, shape[0]))
            for start in range(0, shape[0], rows_at_once)
        ]

    @property
    def arrays(self) -> tuple[Any, ...]:
        """X and the arrays beside it."""
        return tuple(self._columns.values())

    def run(self, task: Task, spread: Map = map) -> Iterable[Any]:
        """Read the chunks, as many at a time as there are threads, and run the task on each."""

        def run_on(index: int) -> Any:
            rows = self._slices[index]
            return task(**{name: one[rows] for name, one in self._columns.items()}, index=index)

        return spread(run_on, range(len(self._slices)))


class ParquetColumns:
    """Columns of Parquet files, which give rows as ``X[start:stop]``: for `Chunks`.

    Needs pyarrow: ``pip install "skdp[arrow]"``.

    Parameters
    ----------
    path : str or path
        A file, or a directory of files, as Spark, dask and pandas write them. Its files are read in
        the order of their names, and names of directories such as ``year=2024`` are a column.
        Row groups are read whole, so chunks should be at least as large as they are.
    columns : list of str, or str
        A list for X. The name of one column for y.

    Raises
    ------
    ValueError
        If a column is missing, or has another type in another file.
    """

    def __init__(self, path: Any, columns: list[str] | str) -> None:
        self._is_one = isinstance(columns, str)
        self._columns = [columns] if isinstance(columns, str) else list(columns)
        files = importlib.import_module("pyarrow.dataset").dataset(
            path, format="parquet", partitioning="hive"
        )
        self._schema = files.schema
        unknown = [name for name in self._columns if name not in files.schema.names]
        if unknown:
            raise ValueError(
                f"ParquetColumns: {path} has no column {listed(unknown)}. It has "
                f"{listed(files.schema.names)}."
            )
        self._pieces: list[Any] = []
        for file in sorted(files.get_fragments(), key=lambda one: str(one.path)):
            own = file.physical_schema
            shared = (name for name in self._columns if name in own.names)
            other = [n for n in shared if own.field(n).type != files.schema.field(n).type]
            if other:
                raise ValueError(
                    f"ParquetColumns: column {listed(other)} has another type in {file.path} than "
                    "in the first file. Write all files with one schema."
                )
            self._pieces += file.split_by_row_group()
        sizes = [sum(group.num_rows for group in piece.row_groups) for piece in self._pieces]
        self._edges = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        n_rows = int(self._edges[-1])
        self.shape = (n_rows,) if self._is_one else (n_rows, len(self._columns))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Any:
        """Return some rows: an Arrow table, or an array of the one column."""
        if not isinstance(rows, slice):
            raise ValueError(
                "ParquetColumns leaves rows in their files. Pass skdp.data.Chunks(X, y) in place "
                "of X and y, or X[:], which reads all rows. Nothing was released."
            )
        arrow = importlib.import_module("pyarrow")
        start, stop, _ = rows.indices(len(self))
        first = max(0, int(np.searchsorted(self._edges, start, side="right")) - 1)
        last = max(first + 1, int(np.searchsorted(self._edges, stop, side="left")))
        tables = [
            piece.to_table(schema=self._schema, columns=self._columns, use_threads=False)
            for piece in self._pieces[first:last]
        ]
        table = arrow.concat_tables(tables)
        table = table.slice(start - int(self._edges[first]), stop - start)
        return np.asarray(table.column(0)) if self._is_one else table
