"""Rows in memory, dense or CSR, in the caller's own array: threads pass over parts of them."""

from __future__ import annotations

import functools
import itertools
import math
import mmap
import operator
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from threadpoolctl import ThreadpoolController

from skdp._numbers import AnyArray, Array, Indices
from skdp._oracle import compiled
from skdp._oracle.noise import NoiseSource
from skdp._oracle.sources import row_blocks
from skdp._oracle.sources.base import (
    BlockFunction,
    OrderedSource,
    RepeatableSource,
    Source,
    added_in_pairs,
    note_read,
)
from skdp._oracle.sources.column_map import ColumnMap, Columns, Scaling
from skdp._oracle.sources.column_map import Map as Map
from skdp._oracle.sources.records import GroupBlock, Groups, Records
from skdp._oracle.sources.row_blocks import AnyRows, base_of, csr_slice, is_csr

# Rows of so many bytes or fewer are standardised once, into a copy. Beyond, blocks are mapped in
# every pass, which takes up to twice as long as the rest of a pass.
COPY_BYTES = 1 << 30
# The same of the entries of sparse rows, in float64. To map those takes as long as the rest, or a
# third of it where that is compiled.
SPARSE_COPY = 1 << 24
MOST_THREADS = 16


class MemorySource(RepeatableSource, OrderedSource):
    """Records in memory: they can be read many times, and selected by number.

    With groups, a group of rows is the unit. It is counted and selected as a whole.

    Parameters
    ----------
    records : Records
        With groups, their multipliers are set here.
    row_bound : float or None
        Bound that longer rows are scaled down to, in ``records``.
    spread : callable, default=map
        Maps a function over parts of the rows. See :func:`row_threads`.
    groups : Groups or None, default=None
    """

    def __init__(
        self,
        records: Records,
        row_bound: float | None = None,
        spread: Map = map,
        groups: Groups | None = None,
    ) -> None:
        if groups is not None:
            n_groups = groups.n_summed or groups.n_groups
            records = replace(records, multipliers=groups.multipliers(), n_groups=n_groups)
        self._records, self.row_bound, self.groups = records, row_bound, groups
        self.n_rows = records.n_rows if groups is None else groups.n_groups
        self._spread, self._parts = spread, records.parts()
        self._orders: dict[tuple[int, ...], Indices] = {}
        self._block: tuple[object, MemorySource] | None = None
        self._row_vectors: dict[BlockFunction, tuple[tuple[Any, ...], Array]] = {}
        self._views: list[Records] | None = None  # of all parts, for many passes

    @classmethod
    def of(
        cls,
        X: AnyRows,
        targets: AnyArray,
        weights: Array | None = None,
        row_bound: float | None = None,
        constant: float = 1.0,
        columns: ColumnMap | None = None,
    ) -> Self:
        """Return a source of these rows. See `Records.of`."""
        return cls(Records.of(X, targets, weights, row_bound, constant, columns), row_bound)

    @property
    def records(self) -> Records:
        """All records, for a release that is being answered."""
        note_read()
        return self._records

    # ------------------------------------------------------------------ passes over all rows

    def total(self, function: BlockFunction, *arguments: Any, rows: tuple[Array, ...] = ()) -> Any:
        """Sum a function over parts of the rows, in pairs and in their order."""
        note_read()
        if self._views is None:
            self._views = [self._records[part] for part in self._parts]
        vectors = ([one[part] for part in self._parts] for one in rows)
        sums = self._spread(function, self._views, *vectors, *map(itertools.repeat, arguments))
        return added_in_pairs(sums)

    def per_row(self, function: BlockFunction, *arguments: Any) -> Array:
        """Return a number, or some, for every row, for `total`. The last ones are kept."""
        known = self._row_vectors.get(function)
        if known is None or not all(map(operator.is_, known[0], arguments)):
            note_read()
            parts = (self._records[part] for part in self._parts)
            repeated = map(itertools.repeat, arguments)
            result = np.concatenate([*self._spread(function, parts, *repeated)])
            known = self._row_vectors[function] = arguments, result
        return known[1]

    def total_over_groups(
        self, function: BlockFunction, *arguments: Any, rows: tuple[Array, ...] = ()
    ) -> Any:
        """Sum a function of blocks of groups, the number of which in a block is public."""
        if self.groups is None:
            return super().total_over_groups(function, *arguments, rows=rows)
        note_read()
        n_numbers = self._records.n_parameters * max(1, *(one.shape[-1] for one in rows))
        step = row_blocks.block_rows(self.n_rows, n_numbers, is_sparse=False, is_copied=True)
        starts = range(0, max(self.n_rows, 1), max(step, 1))
        blocks = [GroupBlock(self._records, self.groups.between(i, i + step)) for i in starts]
        repeated = map(itertools.repeat, (*rows, *arguments))
        return added_in_pairs(self._spread(function, blocks, *repeated))

    def transformed(
        self,
        scaling: Scaling,
        row_bound: float | None,
        copies: bool = True,
        unit_constant: bool = False,
    ) -> MemorySource:
        """Return the rows mapped by public numbers, one by one, with another bound on them.

        Where there are few they are copied. Of many, blocks are mapped in every pass.
        """
        old = self._records
        constant = float(old.constant != 0) if unit_constant else old.constant
        X, targets, columns, base = old.stored, old.targets, old.columns, old.base
        if scaling.columns is not None:
            X, columns, base = self._mapped(scaling.columns, old.X, constant, copies)
        if scaling.targets is not None:
            targets = scaling.targets.apply(targets)
        weights = old.weights
        if scaling.weights is not None:
            weights = scaling.weights.apply(weights, old.targets)
        records = Records.of(X, targets, weights, row_bound, constant, columns, base)
        mapped = MemorySource(records, row_bound, self._spread, self.groups)
        # The ledger takes blocks from before and after for those of one partition.
        mapped._orders = self._orders
        return mapped

    def changed_by(self, columns: Columns, used: Source | None) -> MemorySource:
        """Return the rows of which a value is clipped, or that are too long. All of sparse rows."""
        X, low, high = self._records.stored, columns.low, columns.high
        if self.groups is not None or is_csr(X) or not isinstance(used, MemorySource):
            return self  # a group's rows belong together: its multipliers are made of all of them
        shrink, (n_rows, n_columns) = used._records.shrink, X.shape
        is_changed = np.zeros(n_rows, dtype=bool) if shrink is None else shrink < 1
        step = row_blocks.block_rows(n_rows, n_columns, is_sparse=False, is_copied=True)
        for rows in row_blocks.slices(0, n_rows, max(1, step)):
            outside = np.flatnonzero((X[rows] < low) | (X[rows] > high))
            is_changed[rows.start + outside // n_columns] = True
        return MemorySource(self._records[np.flatnonzero(is_changed)], None, self._spread)

    def _copies_fit(self, X: AnyRows) -> bool:
        """Whether to standardise rows once, rather than in every pass.

        A public matter of size, but for sparse rows, whose number of entries is not public. They
        are standardised in float64 either way, and what is charged for the rounding of sums holds
        for both (`skdp._oracle.sources.row_blocks.summation_depth`). Only runtime and memory
        differ, which the privacy statement lists.
        """
        if self.groups is not None:  # how many rows there are is private
            return True
        if is_csr(X):
            return bool(8 * X.nnz <= SPARSE_COPY)
        return bool(X.nbytes <= COPY_BYTES)

    def _mapped(
        self,
        columns: Columns,
        X: AnyRows,
        constant: float,
        copies: bool,
    ) -> tuple[AnyRows, ColumnMap | None, Array | None]:
        """Return rows to be stored, what is to be made of them in every pass, and their base."""
        in_units = columns.for_type(np.float64)
        base = base_of(in_units.zeros, constant) if sparse.issparse(X) else None
        has_to_be_dense = sparse.issparse(X) and base is None and not columns.keeps_zeros
        if has_to_be_dense or not (copies and self._copies_fit(X)):
            return X, in_units, base
        if not is_csr(X):
            return columns.apply(X, self._spread), None, base
        data = np.empty(X.nnz)
        blocks = [*row_blocks.slices(0, X.shape[0], row_blocks.SPARSE_ROWS)]
        entries = [data[X.indptr[rows.start] : X.indptr[rows.stop]] for rows in blocks]
        list(self._spread(in_units, [csr_slice(X, rows) for rows in blocks], entries))
        return sparse.csr_array((data, X.indices, X.indptr), shape=X.shape), None, base

    def reserve(self, transformed: bool) -> None:
        """Allocate the memory that a run needs, before anything is charged.

        Parameters
        ----------
        transformed : bool
            Whether the rows are going to be standardised, which copies them if they are few.

        Raises
        ------
        MemoryError
            If there is not enough. A fit that ran out of memory later would have lost its budget.
        """
        X = self._records.stored
        # Norms, factors and residuals of a whole pass. Blocks of all threads, sparse ones with
        # several numbers for an entry, or written out.
        n_rows = self._records.n_rows
        if is_csr(X):
            at_once = row_blocks.block_rows(n_rows, X.shape[1], True, True) / max(n_rows, 1)
            written = 3 * row_blocks.COPIED_BYTES // 8
            blocks = min(16, len(self._parts)) * (
                8 * math.ceil(X.nnz * min(1.0, at_once)) + written
            )
        else:
            blocks = min(32 * row_blocks.BLOCK_BYTES // 8, 6 * n_rows * X.shape[1])
        # Two copies: while ranges change, there is one of each.
        copied = transformed and self._copies_fit(X)
        blocks += 2 * copied * (X.nnz if is_csr(X) else X.shape[0] * X.shape[1])
        _try_to_allocate(8 * (8 * n_rows + blocks), is_public=not is_csr(X))

    # ------------------------------------------------------------------ some of the rows

    def take(self, indices: Indices) -> MemorySource:
        """Return the rows, or groups, with these numbers, copied."""
        rows, groups = (indices, None) if self.groups is None else self.groups.take(indices)
        return MemorySource(self._records[rows], self.row_bound, self._spread, groups)

    def block(self, cuts: tuple[int, ...], index: int, noise_source: NoiseSource) -> MemorySource:
        """Return the rows of one block of a secret, random order. The last block is kept.

        The order of the same cuts is drawn once: otherwise a row would be in several blocks.
        """
        if self._block is None or self._block[0] != (cuts, index):
            self._block = None  # before the next one is copied
            if cuts not in self._orders:
                self._orders[cuts] = noise_source.permutation(self.n_rows)
            indices = np.sort(self._orders[cuts][cuts[index] : cuts[index + 1]])
            self._block = (cuts, index), self.take(indices)
        return self._block[1]

    def one_by_one(self, at_once: int, noise_source: NoiseSource) -> Iterator[MemorySource]:
        """Yield all rows in a secret, uniformly random order, so many of them in each block."""
        order = noise_source.permutation(self.n_rows)
        for start in range(0, self.n_rows, at_once):
            yield self.take(order[start : start + at_once])


NO_THREADS = (
    "a fit of this size takes {} threads, and they could not be started, for want of memory most "
    "likely. Lower OMP_NUM_THREADS. Nothing was released and nothing was charged."
)


def _try_to_allocate(n_bytes: int, is_public: bool) -> None:
    """Raise MemoryError if this much memory is not to be had. None is used.

    The message says how much, if that is public.
    """
    try:
        mmap.mmap(-1, n_bytes).close()
    except OSError as refusal:
        much = f"about {n_bytes / 2**20:.0f} MB more" if is_public else "more"
        raise MemoryError(
            f"a fit of this size needs {much} memory than there is. "
            "Nothing was released and nothing was charged."
        ) from (refusal if is_public else None)


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def row_threads(most_parts: int = MOST_THREADS) -> Iterator[Map]:
    """Hold BLAS to one thread, and give a ``map`` that uses the others.

    Blocks that fit in a near cache are too small for BLAS to share out well. Whole parts of the
    rows are not. As many threads are used as BLAS was going to use, so that limits set by a user or
    by joblib's workers hold, but no more than there are going to be parts of rows, as threads that
    wait cost a small fit more than its products.

    Functions are mapped without numpy's floating-point warnings, as an overflow shows that a record
    is there. Threads do not inherit the setting of their caller.

    Parameters
    ----------
    most_parts : int, default=MOST_THREADS
        Public number of parts that the rows come in, at most.
    """
    blas = _controller().select(user_api="blas")
    n_threads = max((library["num_threads"] for library in blas.info()), default=1)
    n_threads = min(n_threads, most_parts, MOST_THREADS)
    with blas.limit(limits=1):
        if n_threads == 1:
            with np.errstate(all="ignore"):
                yield map
            return
        is_quiet = compiled.is_quiet  # which threads do not inherit
        with ThreadPoolExecutor(n_threads, "", is_quiet.set, (is_quiet.get(),)) as pool:
            # Threads start here, not at their first task: the budget is charged in between.
            together = threading.Barrier(n_threads)
            try:
                list(pool.map(lambda _: together.wait(), range(n_threads)))
            except RuntimeError as refusal:  # each needs memory for its stack
                together.abort()
                raise MemoryError(NO_THREADS.format(n_threads)) from refusal
            yield lambda function, *parts: pool.map(np.errstate(all="ignore")(function), *parts)
