"""Interfaces of the sources of rows, and their capabilities, which releases may require."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from skdp._numbers import AnyArray
from skdp._oracle.noise import NoiseSource
from skdp._oracle.sources.column_map import Columns, Scaling

# A function of records, of vectors with an entry for each of them, and of other arguments. It is
# defined in a module and depends on its arguments alone, so that threads or processes can run it.
BlockFunction = Callable[..., Any]

# Capabilities of a source, in words.
REPEATABLE = "rows that can be read more than once"
ADDRESSABLE = "rows that can be taken by number"
ORDERED = "rows in an order that does not depend on them, cut in blocks"
NUMBERED = "rows with numbers of their own (partitions that pass their index to tasks)"

IN_MEMORY = frozenset({REPEATABLE, ADDRESSABLE, ORDERED, NUMBERED})
STREAMED = frozenset({ORDERED})
PARTITIONED = frozenset({REPEATABLE})

Kind = TypeVar("Kind", bound="Source")


_on_read: ContextVar[Callable[[], None] | None] = ContextVar("on_read", default=None)


@contextmanager
def noting_reads(note: Callable[[], None]) -> Iterator[None]:
    """Call ``note`` whenever rows are read in this thread, inside the block."""
    token = _on_read.set(note)
    try:
        yield
    finally:
        _on_read.reset(token)


def note_read() -> None:
    """Say that rows are going to be read, to whoever records the fit."""
    note = _on_read.get()
    if note is not None:
        note()


@dataclass(frozen=True, eq=False)
class RowVector:
    """A number for every row, made where the rows are whenever it is needed, and never sent."""

    function: BlockFunction
    arguments: tuple[Any, ...]


class Source(ABC):
    """A place where rows live. Nothing outside the oracle reads it.

    Attributes
    ----------
    n_rows : int
        Number of records, which is public: rows, or groups of rows where a group is one.
    """

    n_rows: int

    def __reduce__(self) -> NoReturn:
        raise TypeError("rows cannot be pickled: a saved model must not hold its training data.")

    def reserve(self, transformed: bool) -> None:  # noqa: B027  most need none
        """Claim the memory that passes over the rows need, while nothing has been charged.

        Parameters
        ----------
        transformed : bool
            Whether the rows are going to be standardised.
        """

    @abstractmethod
    def transformed(
        self,
        scaling: Scaling,
        row_bound: float | None,
        copies: bool = True,
        unit_constant: bool = False,
    ) -> Source:
        """Return the rows mapped by public numbers, one by one, with another bound on them.

        Parameters
        ----------
        scaling : Scaling
        row_bound : float or None
            None if rows are not shortened.
        copies : bool, default=True
            Whether a copy may be made, for many passes.
        unit_constant : bool, default=False
            Whether the constant feature, if there is one, has size 1 from here on.
        """

    def finish(self) -> None:  # noqa: B027  most have nothing to check
        """Raise ValueError if the rows were not as declared. Called once a run is over."""


class RepeatableSource(Source):
    """Rows that can be read more than once.

    Attributes
    ----------
    last_counts : tuple or None
        The latest histograms and their request: as private as the rows.
    """

    last_counts: tuple[tuple[AnyArray | float, ...], AnyArray] | None = None

    @abstractmethod
    def total(self, function: BlockFunction, *arguments: Any, rows: tuple[Any, ...] = ()) -> Any:
        """Sum a function over blocks of the rows, in a fixed order.

        Parameters
        ----------
        function : callable
            ``function(records, *row_vectors, *arguments)`` returns a number or an array.
        *arguments
            Public values, passed on.
        rows : tuple
            Vectors made by `per_row`. The function gets the entries of its records.
        """

    def changed_by(self, columns: Columns, used: Source | None) -> RepeatableSource:
        """Return the records that ranges of columns, or the bound on ``used`` rows, change.

        Whether a record is among them follows from the record and from public numbers. Others may
        be among them.
        """
        return self

    @abstractmethod
    def per_row(self, function: BlockFunction, *arguments: Any) -> Any:
        """Return a vector with a number for every row, to be handed to `total`."""

    def total_over_groups(
        self, function: BlockFunction, *arguments: Any, rows: tuple[Any, ...] = ()
    ) -> Any:
        """Sum a function of blocks of groups: ``function(block, *row_vectors, *arguments)``.

        Parameters
        ----------
        function : callable
            Of a `GroupBlock`. It returns a number or an array.
        *arguments
            Public values, passed on.
        rows : tuple
            Vectors made by `per_row`. The function gets them for all rows that the block's records
            are.
        """
        raise TypeError(f"{type(self).__name__} has no groups. Nothing was released.")


class OrderedSource(Source):
    """Rows in an order that does not depend on their values: of arrival, or random and secret."""

    @abstractmethod
    def block(
        self, cuts: tuple[int, ...], index: int, noise_source: NoiseSource
    ) -> RepeatableSource:
        """Return the rows ``[cuts[index], cuts[index + 1])`` of the order."""

    def passing_block(
        self, cuts: tuple[int, ...], index: int, noise_source: NoiseSource
    ) -> RepeatableSource:
        """Return the result of `block`, for a single `RepeatableSource.total`."""
        return self.block(cuts, index, noise_source)


def require_kind(source: Source, kind: type[Kind]) -> Kind:
    """Return the source, or raise TypeError if it is of another kind."""
    if not isinstance(source, kind):
        raise TypeError(f"{type(source).__name__} is not a {kind.__name__}. Nothing was released.")
    return source


def added_in_pairs(parts: Iterable[Any]) -> Any:
    """Add up in pairs, then pairs of pairs: each of n sums meets about 2 log2(n) additions."""
    waiting: list[tuple[int, Any]] = []
    for part in parts:
        level = 0
        while waiting and waiting[-1][0] == level:
            part = waiting.pop()[1] + part
            level += 1
        waiting.append((level, part))
    return functools.reduce(lambda right, left: left + right, [one for _, one in waiting[::-1]])
