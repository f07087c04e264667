"""Rows that arrive block by block and are read once, of which one block is held at a time."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from skdp._numbers import AnyArray, Array, Indices
from skdp._oracle.noise import NoiseSource
from skdp._oracle.sources import base
from skdp._oracle.sources.column_map import Scaling
from skdp._oracle.sources.memory import MemorySource
from skdp._oracle.sources.row_blocks import AnyRows, part_rows
from skdp._warnings import warn

# X, targets, weights or None, and the numbers of the rows' groups, from 0 on, or None.
Arrival = tuple[AnyRows, AnyArray, Array | None, Indices | None]
MakeSource = Callable[[AnyRows, AnyArray, Array | None, Indices | None], MemorySource]


class StreamSource(base.OrderedSource):
    """Records in the order of their arrival, of which only those of one block are held.

    Place i of the order is the i-th record to arrive: a row or, where rows come with the numbers of
    their groups, a group, which arrives as a whole. It does not depend on their values, so blocks
    of places are disjoint blocks of records under both relations. Places beyond the last record
    that arrives hold null records: rows of zeros with weight 0, so that sums run over as many rows,
    in the same order, however many arrive. (Where groups are the records, sums read one row at a
    time, and nothing stands in for a group that is missing.) Earlier records cannot be requested
    again.

    Parameters
    ----------
    arrivals : iterator of (X, targets, weights or None, numbers of groups or None)
        Validated blocks.
    n_rows : int
        Declared number of records: of rows, or of groups.
    make_source : callable
        Makes a `MemorySource` of the arrivals.
    nothing : tuple
        An arrival of no rows, of the declared shape.
    """

    def __init__(
        self,
        arrivals: Iterator[Arrival],
        n_rows: int,
        make_source: MakeSource,
        nothing: Arrival,
    ) -> None:
        self._arrivals, self._make_source, self._nothing = arrivals, make_source, nothing
        self._left: Arrival | None = None
        self._gone = 0
        self._dtype: Any = None
        self._block: tuple[object, MemorySource] | None = None
        self._map: tuple[Scaling, float | None] | None = None
        self.n_rows = self._n_declared = n_rows

    def take_first(self, count: int) -> MemorySource:
        """Return the first records. The rest is a stream, from place 0 on."""
        if self._gone:
            raise ValueError("the first records have gone by: a stream is read once.")
        first = self._next(count)
        self._gone, self.n_rows = 0, self.n_rows - count
        return first

    def transformed(self, scaling: Scaling, row_bound: float | None, *how: bool) -> "StreamSource":
        """Map the records that are to come by public numbers, with another bound on them."""
        self._map = scaling, row_bound
        return self

    def block(self, cuts: tuple[int, ...], index: int, noise_source: NoiseSource) -> MemorySource:
        """Return the records at places ``[cuts[index], cuts[index + 1])``, if they are to come.

        The block requested last may be requested again.
        """
        key = cuts, index
        if self._block is None or self._block[0] != key:
            self._block = None
            self._skip_to(cuts[index])
            self._block = key, self._next(cuts[index + 1] - cuts[index])
        return self._block[1]

    def passing_block(
        self, cuts: tuple[int, ...], index: int, noise_source: NoiseSource
    ) -> base.RepeatableSource:
        """Return the records of a block for one sum, without holding all of them.

        Groups are held, as a group's rows are added up at one place.
        """
        count, X = cuts[index + 1] - cuts[index], self._nothing[0]
        piece = 4 * part_rows(X.shape[1], bool(sparse.issparse(X)))
        if self._nothing[3] is not None or count <= piece:
            return self.block(cuts, index, noise_source)
        self._block = None
        self._skip_to(cuts[index])
        sizes = (min(piece, count - start) for start in range(0, count, piece))
        return PassingRecords(count, map(self._next, sizes))

    def finish(self) -> None:
        """Warn if there are more records than were declared. They are left out."""
        self._skip_to(self.n_rows)
        try:
            while self._left is None or not self._left[0].shape[0]:
                self._left = next(self._arrivals)
        except StopIteration:
            return
        except Exception:  # of any type, by a block that is left out or by the iterator
            self._left = None
            end = ", or the iterator of blocks failed after these."
        else:
            end = "."
        what = more_arrived(self._n_declared, self._nothing[3] is not None).removesuffix(".") + end
        warn(f"fit_blocks: {what} The model is that of the declared ones.", UserWarning)

    def _skip_to(self, place: int) -> None:
        if place < self._gone:
            raise ValueError(
                f"records from place {place} on were requested after {self._gone} had gone by: a "
                "stream is read once."
            )
        while self._gone < place:
            self._next(min(place - self._gone, 1 << 16))

    def _next(self, count: int) -> MemorySource:
        """Return the next ``count`` records, null ones for those that do not arrive."""
        pieces: list[Arrival] = []
        missing = count
        while missing > 0:
            if self._left is None:
                self._left = next(self._arrivals, None)
                if self._left is None:
                    break
            piece, self._left = _split(self._left, missing)
            missing -= _n_records(piece)
            pieces.append(piece)
        self._gone += count
        if pieces and self._dtype is None:
            self._dtype = pieces[0][0].dtype
        is_grouped = self._nothing[3] is not None
        if not is_grouped:
            # Rows without weights are summed up by other code, which would show whether any are
            # missing: so there are weights even where all are 1.
            pieces = [*map(_weighted, pieces), *self._null(missing)]
        records = self._make_source(*_joined(pieces or [self._nothing]))
        return records if self._map is None else records.transformed(*self._map)

    def _null(self, count: int) -> list[Arrival]:
        """Return an arrival of so many null records, in a list that is empty if there are none.

        They have the type of the first rows: another one would change how rows are summed up.
        """
        X, targets, _, _ = self._nothing
        if not count:
            return []
        rows = sparse.csr_array if sparse.issparse(X) else np.zeros
        dtype = X.dtype if self._dtype is None else self._dtype
        no_targets = np.zeros((count, *targets.shape[1:]), dtype=targets.dtype)
        return [(rows((count, X.shape[1]), dtype=dtype), no_targets, np.zeros(count), None)]


class PassingRecords(base.RepeatableSource):
    """Records of a stream for one sum, of which one piece at a time is in memory.

    The sizes of the pieces follow from public numbers. Their sums are added up in pairs.

    Parameters
    ----------
    n_rows : int
    pieces : iterator of MemorySource
    """

    def __init__(self, n_rows: int, pieces: Iterator[MemorySource]) -> None:
        self.n_rows, self._pieces = n_rows, pieces

    def total(
        self, function: base.BlockFunction, *arguments: Any, rows: tuple[base.RowVector, ...] = ()
    ) -> Any:
        """Sum a function over the pieces."""
        pieces, self._pieces = self._pieces, iter(())
        return base.added_in_pairs(
            piece.total(
                function,
                *arguments,
                rows=tuple(piece.per_row(one.function, *one.arguments) for one in rows),
            )
            for piece in pieces
        )

    def per_row(self, function: base.BlockFunction, *arguments: Any) -> base.RowVector:
        """Return a lazy vector, evaluated as its rows pass by."""
        return base.RowVector(function, arguments)

    def transformed(self, scaling: Scaling, row_bound: float | None, *how: bool) -> NoReturn:
        """Refuse: the stream is mapped before."""
        raise TypeError(
            "a stream cannot be scaled in another way once it is read. Nothing was released."
        )


def more_arrived(n_declared: int, grouped: bool) -> str:
    """Say that more records arrived than were declared."""
    what, name = ("groups", "n_groups") if grouped else ("rows", "n_samples")
    return f"more {what} arrived than the {n_declared} that were declared as {name}."


def n_arriving(arrivals: Iterable[Arrival]) -> int:
    """Return how many records arrive."""
    return sum(map(_n_records, arrivals))


def _n_records(arrival: Arrival) -> int:
    """Return how many rows arrived, or groups."""
    groups = arrival[3]
    if groups is None:
        return int(arrival[0].shape[0])
    return int(groups.max()) + 1 if len(groups) else 0


def _split(arrival: Arrival, count: int) -> tuple[Arrival, Arrival | None]:
    """Cut the first ``count`` records off. None if nothing is left."""
    X, targets, weights, groups = arrival
    if _n_records(arrival) <= count:
        return arrival, None
    if groups is None:
        first, rest = slice(0, count), slice(count, None)
        result = [(X[rows], targets[rows], _some(weights, rows), None) for rows in (first, rest)]
        return result[0], result[1]
    ours, theirs = np.flatnonzero(groups < count), np.flatnonzero(groups >= count)
    return (
        (X[ours], targets[ours], _some(weights, ours), groups[ours]),
        (X[theirs], targets[theirs], _some(weights, theirs), groups[theirs] - count),
    )


def _weighted(arrival: Arrival) -> Arrival:
    X, targets, weights, groups = arrival
    return X, targets, np.ones(X.shape[0]) if weights is None else weights, groups


def _some(weights: Array | None, rows: slice | Indices) -> Array | None:
    return None if weights is None else weights[rows]


def _joined(pieces: list[Arrival]) -> Arrival:
    """Return one arrival of all, row after row in memory.

    How rows lie there decides the order in which products add up their columns. Left to what is put
    together, it would depend on how many pieces there are.
    """
    blocks, targets, weights, groups = zip(*pieces, strict=True)
    if sparse.issparse(blocks[0]):
        X = blocks[0] if len(blocks) == 1 else sparse.vstack(blocks, format="csr")
    else:
        X = np.ascontiguousarray(blocks[0] if len(blocks) == 1 else np.vstack(blocks))
    joint = None if weights[0] is None else np.concatenate(weights)
    if groups[0] is None:
        return X, np.concatenate(targets), joint, None
    before = np.cumsum([0, *map(_n_records, pieces)])
    numbers = [codes + start for codes, start in zip(groups, before[:-1], strict=True)]
    return X, np.concatenate(targets), joint, np.concatenate(numbers)
