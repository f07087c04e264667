"""Rows that arrive block by block and are read once, of which one block is held at a time."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from skdp._numbers import AnyArray, Array
from skdp.oracle.noise import NoiseSource
from skdp.oracle.sources.base import OrderedSource
from skdp.oracle.sources.memory import MemorySource

# X, targets, weights or None.
Arrival = tuple[Any, AnyArray, Array | None]
MakeSource = Callable[[Any, AnyArray, Array | None], MemorySource]


class StreamSource(OrderedSource):
    """Rows in the order of their arrival, of which only those of one block are held.

    Place i of the order is the i-th row to arrive: it does not depend on any row, so blocks of
    places are disjoint blocks of records under both relations. Places beyond the last row that
    arrives hold null records. What has gone by cannot be asked for again.

    Parameters
    ----------
    arrivals : iterator of (X, targets, weights or None)
        Validated blocks.
    n_rows : int
        Declared number of rows.
    make_source : callable
        Makes `MemorySource` of what arrived.
    nothing : tuple
        An arrival of no rows, of the declared shape and type.
    """

    arrives_in_order = True

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
        self._block: tuple[object, MemorySource] | None = None
        self.n_rows = n_rows

    def block(
        self, epoch: int, cuts: tuple[int, ...], index: int, noise_source: NoiseSource
    ) -> MemorySource:
        """Rows of the block ``[cuts[index], cuts[index + 1])`` of places, if they are yet to come.

        The block asked for last may be asked for again.
        """
        key = epoch, cuts, index
        if self._block is None or self._block[0] != key:
            self._block = None
            self._skip_to(cuts[index])
            self._block = key, self._next(cuts[index + 1] - cuts[index])
        return self._block[1]

    def one_pass(
        self, edges: Iterable[int], noise_source: NoiseSource, in_order: bool
    ) -> Iterator[MemorySource]:
        """Yield the rows between each two edges, in the order of their arrival."""
        for start, stop in itertools.pairwise(edges):
            self._skip_to(start)
            yield self._next(stop - start)

    def finish(self) -> None:
        """Raise ValueError if there are more rows than were declared."""
        self._skip_to(self.n_rows)
        if self._left is None:
            self._left = next(self._arrivals, None)
        while self._left is not None and not self._left[0].shape[0]:
            self._left = next(self._arrivals, None)
        if self._left is not None:
            raise ValueError(
                f"more rows arrived than the {self.n_rows} that were declared as n_samples. "
                "The budget of this fit is spent, and no model was kept."
            )

    def _skip_to(self, place: int) -> None:
        if place < self._gone:
            raise ValueError(
                f"rows from place {place} on were asked for after row {self._gone} had gone by: a "
                "stream is read once."
            )
        while self._gone < place:
            self._next(min(place - self._gone, 1 << 16))

    def _next(self, count: int) -> MemorySource:
        """Return the next ``count`` rows, fewer if no more arrive."""
        pieces: list[Arrival] = []
        missing = count
        while missing:
            if self._left is None:
                self._left = next(self._arrivals, None)
                if self._left is None:
                    break
            piece, self._left = _split(self._left, missing)
            missing -= piece[0].shape[0]
            pieces.append(piece)
        self._gone += count
        return self._make_source(*_joined(pieces or [self._nothing]))


def _split(arrival: Arrival, count: int) -> tuple[Arrival, Arrival | None]:
    """Cut the first ``count`` rows off; None if nothing is left."""
    X, targets, weights = arrival
    if X.shape[0] <= count:
        return arrival, None
    first = X[:count], targets[:count], None if weights is None else weights[:count]
    rest = X[count:], targets[count:], None if weights is None else weights[count:]
    return first, rest


def _joined(pieces: list[Arrival]) -> Arrival:
    if len(pieces) == 1:
        return pieces[0]
    blocks, targets, weights = zip(*pieces, strict=True)
    X = sparse.vstack(blocks, format="csr") if sparse.issparse(blocks[0]) else np.vstack(blocks)
    joint = None if weights[0] is None else np.concatenate(weights)
    return X, np.concatenate(targets), joint
