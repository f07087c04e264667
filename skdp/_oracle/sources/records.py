"""Records: rows with all facts about each of them, in blocks for the kernels, and their groups."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NoReturn, Self

import numpy as np
from scipy import sparse

from skdp._numbers import AnyArray, Array, Indices
from skdp._oracle.sources import column_map, row_blocks
from skdp._oracle.sources.row_blocks import MOST_ROWS, block_rows, is_csr, row_parts, slices

LEAST_QUOTIENT = 2.0**-480  # smaller ones count as 0: near subnormal numbers accuracy is lost


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """Rows with their targets and every other fact about each of them.

    Row i stands for ``z_i = (shrink[i] * X[i], constant)``: scaled down to the bound on rows, with
    one more feature of constant size. Rows that are to be standardised may be stored as they came:
    `blocks` then maps a few of them at a time, so that no copy of all of them is needed.

    Attributes
    ----------
    stored : array or CSR of shape (n_rows, n_features), float32 or float64, finite
        X, or the input of ``columns``.
    targets : array, first axis n_rows
        As the loss wants them.
    weights : array of shape (n_rows,) or None
        Multiply a record's gradient before it is clipped.
    shrink : array of shape (n_rows,) or None
        Factors that make rows no longer than the bound on them.
    inverse_norms : array of shape (n_rows,)
        One over the L2 norm of ``z_i``, as :func:`quotient` gives it.
    constant : float
        Size of the constant feature, 0 for none.
    columns : ColumnMap or None, default=None
        Map of the stored columns to X. None if they are X.
    multipliers : array of shape (n_rows,) or None
        Multiply a record's contribution to a sum, after clipping: with groups, one over the number
        of rows of the record's group, rounded down to a multiple of a power of two.
    base : array of shape (n_features,) or None
        A public row that every sparse row of X is to be added to: see
        `skdp._oracle.sources.row_blocks`. None for none.
    n_groups : int or None
        Where there are groups, the number of them that sums are over.
    """

    stored: row_blocks.AnyRows
    targets: AnyArray
    weights: Array | None
    shrink: Array | None
    inverse_norms: Array
    constant: float
    columns: column_map.ColumnMap | None = None
    multipliers: Array | None = None
    base: Array | None = None
    n_groups: int | None = None

    @classmethod
    def of(
        cls,
        X: row_blocks.AnyRows,
        targets: AnyArray,
        weights: Array | None = None,
        row_bound: float | None = None,
        constant: float = 1.0,
        columns: column_map.ColumnMap | None = None,
        base: Array | None = None,
    ) -> Self:
        """Return the records of rows, none of them longer than ``row_bound``. X is not copied."""
        X = row_blocks.canonical(X) if sparse.issparse(X) else X
        if columns is not None and sparse.issparse(X):
            base = row_blocks.base_of(columns.zeros, constant)
        norms = row_norms(X, columns, base)
        shrink = None
        if row_bound is not None:
            shrink = np.minimum(1.0, quotient(row_bound, norms))
            norms = np.minimum(norms, row_bound)
        if constant:
            norms = np.hypot(norms, constant)
        inverse = quotient(1.0, norms)
        return cls(X, targets, weights, shrink, inverse, constant, columns, base=base)

    def __reduce__(self) -> NoReturn:
        raise TypeError("rows cannot be pickled: a saved model must not hold its training data.")

    @property
    def X(self) -> row_blocks.AnyRows:
        """All rows at once, which may be a copy. Prefer blocks."""
        X = self.stored if self.columns is None else self._mapped(self.stored)
        return X if self.base is None else row_blocks.written_out(X, self.base)

    def _mapped(self, stored: row_blocks.AnyRows) -> row_blocks.AnyRows:
        """Return rows that are stored as they count, but for the base."""
        if self.columns is None:
            return stored
        return self.columns(row_blocks.written_out(stored, None) if self.loses_zeros else stored)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.stored.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.stored.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns of X."""
        return self.n_rows, self.n_features

    @property
    def n_parameters(self) -> int:
        """Number of columns with the constant feature."""
        return self.n_features + bool(self.constant)

    @functools.cached_property
    def is_sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return bool(sparse.issparse(self.stored))

    @property
    def loses_zeros(self) -> bool:
        """Whether sparse rows have to be written out to be mapped: there is no base for them."""
        if self.columns is None or self.base is not None or not self.is_sparse:
            return False
        return bool(self.columns.zeros.any())

    @property
    def is_copied(self) -> bool:
        """Whether blocks are copies: of float32 rows, and of rows that are yet to be mapped."""
        return self.columns is not None or self.stored.dtype != np.float64

    def __getitem__(self, rows: slice | Indices) -> Self:
        """Return some records: views for a slice, copies, mapped where need be, for indices."""
        stored, columns = self.stored, self.columns
        if not isinstance(rows, slice):
            stored = stored[rows]
            if not self.loses_zeros:  # many rows that are written out are for blocks to map
                stored, columns = self._mapped(stored), None
        elif rows.start == 0 and rows.stop >= self.stored.shape[0]:
            return self
        else:
            stored = row_blocks.csr_slice(stored, rows) if self.is_sparse else stored[rows]
        return replace(
            self,
            stored=stored,
            columns=columns,
            targets=self.targets[rows],
            weights=None if self.weights is None else self.weights[rows],
            shrink=None if self.shrink is None else self.shrink[rows],
            inverse_norms=self.inverse_norms[rows],
            multipliers=None if self.multipliers is None else self.multipliers[rows],
        )

    def having(self, weights: Array | None, inverse_norms: Array) -> Self:
        """Return the same records with other weights and norms."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, weights=weights, inverse_norms=inverse_norms)
        return other

    def parts(self) -> list[slice]:
        """Divide the rows into parts for threads: see :func:`row_parts`."""
        return row_parts(self.n_rows, self.n_features, self.is_sparse)

    def blocks(self, n_rows: int, dense: bool = False) -> Iterator[Self]:
        """Yield the records, ``n_rows`` at a time, X in float64. Each is valid until the next.

        With ``dense``, sparse rows are added to their base, if they have one, and written out.
        """
        buffer, dense = None, dense and self.base is not None
        base = None if dense else self.base
        for rows in slices(0, self.n_rows, max(1, n_rows)):
            block = self[rows]
            if block.is_copied or dense:
                if buffer is None and not self.is_sparse:
                    buffer = np.empty_like(block.stored, dtype=np.float64)
                elif buffer is None and (dense or self.loses_zeros):
                    buffer = np.empty(block.shape)
                out = None if buffer is None else buffer[: block.n_rows]
                stored = block.in_float64(dense, out)
                block = replace(block, stored=stored, columns=None, base=base)
            yield block

    def in_float64(self, dense: bool, out: Array | None) -> row_blocks.AnyRows:
        """Return the rows mapped and in float64: dense ones in ``out``."""
        if self.is_sparse and not self.loses_zeros:
            X = self._mapped(self.stored).astype(np.float64, copy=False)
            return row_blocks.written_out(X, self.base, out) if dense else X
        if self.columns is not None:
            X = self.stored
            return self.columns(row_blocks.written_out(X, None) if self.is_sparse else X, out)
        assert out is not None
        np.copyto(out, self.stored)
        return out

    def cached_blocks(self, dense: bool = False) -> Iterator[Self]:
        """Return blocks that stay in a cache between two products with them. See `blocks`."""
        is_dense = self.loses_zeros or (dense and self.base is not None)
        kind = self.is_sparse and not is_dense, self.is_copied or is_dense
        return self.blocks(block_rows(*self.shape, *kind), dense)

    def numbered_blocks(self, dense: bool = False) -> Iterator[tuple[slice, Self]]:
        """Yield `cached_blocks`, each behind the numbers of its rows."""
        start = 0
        for block in self.cached_blocks(dense):
            yield slice(start, start + block.n_rows), block
            start += block.n_rows

    def numbered_pieces(self, dense: bool = False) -> Iterator[tuple[slice, Self]]:
        """Yield `numbered_blocks` if they are copies, or else all records at once."""
        if self.is_copied or self.loses_zeros or (dense and self.base is not None):
            return self.numbered_blocks(dense)
        return iter([(slice(None), self)])

    def float64_blocks(self, dense: bool = True) -> Iterator[Self]:
        """Return blocks of which a dense copy in float64 stays in a cache. See `blocks`."""
        is_copied = self.is_copied or self.base is not None
        return self.blocks(block_rows(*self.shape, False, is_copied), dense)

    def margins(self, point: Array) -> Array:
        """Return ``z_i'point`` in float64. It is inf or nan where huge products overflow.

        Where there are groups, no row's bits depend on the other rows. A product of matrices may
        add up a row in another order for another place in its block. With groups the number of rows
        is private, so a group that has one row less moves those after it: their parts must stay the
        same, bit for bit.
        """
        coef, n_outputs = np.ascontiguousarray(point[: self.n_features]), point.shape[1]
        if n_outputs == 1:
            coef = coef[:, 0]  # matrix times vector is quicker than times a matrix of one column
        with np.errstate(over="ignore", invalid="ignore"):
            if self.base is not None:
                margins = self._mapped(self.stored) @ coef + self.base @ coef
            elif self.multipliers is None or self.is_sparse:
                margins = self.X @ coef
            else:
                X, columns = np.ascontiguousarray(self.X), coef.reshape(-1, n_outputs).T
                columns = np.ascontiguousarray(columns)
                margins = np.stack([np.einsum("ij,j->i", X, one) for one in columns], axis=1)
            margins = np.asarray(margins, dtype=np.float64).reshape(-1, n_outputs)
            if self.shrink is not None:
                margins *= self.shrink[:, None]
            if self.constant:
                margins += self.constant * (point[-1] if n_outputs > 1 else point[-1, 0])
        return margins

    def scaled_by_group(self, parts: Array) -> Array:
        """Multiply each record's clipped contribution by its multiplier, in place."""
        if self.multipliers is not None:
            parts *= self.multipliers if parts.ndim == 1 else self.multipliers[:, None]
        return parts

    def written_out(self) -> Array:
        """Return ``z_i`` as a dense array of float64."""
        X = self.X
        vectors = np.full((self.n_rows, self.n_parameters), float(self.constant))
        vectors[:, : self.n_features] = row_blocks.written_out(X, None) if sparse.issparse(X) else X
        if self.shrink is not None:
            with np.errstate(over="ignore", under="ignore"):
                vectors[:, : self.n_features] *= self.shrink[:, None]
        return vectors


def row_norms(
    X: row_blocks.AnyRows, columns: column_map.ColumnMap | None = None, base: Array | None = None
) -> Array:
    """L2 norm of every row, mapped if need be. Neither over- nor underflows on finite rows."""
    norms, nothing, start = np.empty(X.shape[0]), np.empty(0), 0
    records = Records(X, nothing, None, None, nothing, 0.0, columns, base=base)
    is_sparse = records.is_sparse and not records.loses_zeros
    for part in records.blocks(block_rows(records.n_rows, X.shape[1], is_sparse, True)):
        block, rows = part.stored, slice(start, start + part.n_rows)
        start = rows.stop
        with np.errstate(over="ignore", under="ignore"):
            if is_csr(block):
                least = np.where((np.diff(block.indptr) > 0) | (base is not None), 1e-300, 0.0)
                squares = np.maximum(row_blocks.squared_lengths(block, base), least)
            else:  # row after row, so that no sum over a row follows from its place
                block = np.ascontiguousarray(block)
                squares = np.einsum("ij,ij->i", block, block)
                zero = squares == 0  # of null rows; of others, by underflow
                squares[zero] = np.where(block[zero].any(axis=1), 1e-300, 0.0)
        norms[rows] = np.sqrt(squares)
    # Rows whose squares leave float64's range are taken again, divided by their largest entry.
    for i in np.flatnonzero(~((norms > 1e-140) & (norms < np.inf) | (norms == 0))):
        row = records._mapped(X[[i]])
        row = np.abs(
            (row_blocks.written_out(row, base) if sparse.issparse(row) else row)[0],
            dtype=np.float64,
        )
        largest = row.max(initial=0.0)
        with np.errstate(over="ignore"):
            norms[i] = largest * np.sqrt(np.sum((row / largest) ** 2)) if largest > 0 else 0.0
    return norms


def inverse_l1_norms(records: Records) -> Array:
    """One over the L1 norm of ``z_i``, as :func:`quotient` gives it."""
    return quotient(1.0, _over_rows(records, np.sum) + records.constant)


def inverse_largest_entries(records: Records) -> Array:
    """One over the largest absolute value in ``z_i``, as :func:`quotient` gives it."""
    return quotient(1.0, np.maximum(_over_rows(records, np.max), records.constant))


def _over_rows(records: Records, combine: Callable[..., row_blocks.AnyRows]) -> Array:
    """Combine the absolute values of each row, without its constant."""
    results = np.empty(records.n_rows)
    for rows, block in records.numbered_blocks(dense=True):
        with np.errstate(over="ignore"):
            combined = combine(np.abs(block.stored), axis=1)
        written = combined if isinstance(combined, np.ndarray) else combined.toarray()
        results[rows] = np.asarray(written).ravel()
    if records.shrink is not None:
        # Rows too long to divide by count as null. Their result may be infinite.
        results = np.where(records.shrink > 0, results, 0.0) * records.shrink
    return results


def quotient(bound: float, norms: Array) -> Array:
    """``bound / norms`` without ever being too large. 0 for rows too long to divide by.

    Null rows get the largest float64: they add nothing, whatever they are multiplied by.
    """
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        result = np.minimum(bound / norms, np.finfo(np.float64).max)
    result[~(result >= LEAST_QUOTIENT)] = 0.0  # not a number counts as too long, too
    return result


# ---------------------------------------------------------------- groups
#
# A group of rows, such as all rows of a person, is one record. It adds to a sum the mean of its
# rows' contributions, so its part is within the bound of a row, whatever the number of its rows.
# That number is private. So nothing here that shows may follow from it: a source counts groups,
# samples and blocks are made of whole groups, and the rounding of a sum has a bound that holds for
# any number of rows.

# Shares of rows in their group are whole numbers of 2**-32 or, with millions of groups, of a larger
# unit: sums of them are exact in float64, in any order.
SHARE_BITS, EXACT_BITS = 32, 52


def exact_bits(n_records: int, finest: int = SHARE_BITS) -> int:
    """Return b, so that sums of ``n_records`` multiples of 2**-b in [-1, 1] are exact."""
    return min(finest, EXACT_BITS - math.ceil(math.log2(max(n_records, 1))))


@dataclass(frozen=True, eq=False)
class Groups:
    """Assignment of rows to groups.

    Attributes
    ----------
    order : array of shape (n_rows,)
        Row numbers, group after group. Within a group in their own order.
    edges : array of shape (n_groups + 1,)
        Where the rows of each group begin in ``order``, and where the last ones end.
    n_summed : int or None
        Number of groups that sums are over. None for these ones, more of them if they are a part.
    """

    order: Indices
    edges: Indices
    n_summed: int | None = None

    @classmethod
    def of(cls, codes: Indices, n_groups: int, n_summed: int | None = None) -> Self:
        """Return the groups of rows whose groups have these numbers, from 0 on."""
        sizes = np.bincount(codes, minlength=n_groups)
        edges = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return cls(np.argsort(codes, kind="stable"), edges, n_summed)

    def __reduce__(self) -> NoReturn:
        raise TypeError("groups cannot be pickled: a saved model must not hold its training data.")

    @property
    def n_groups(self) -> int:
        """Number of groups, which is public."""
        return len(self.edges) - 1

    def multipliers(self) -> Array:
        """Return, for each row, one over the number of rows of its group, rounded down.

        Those of a group add up to 1 at most, and all sums of them are exact.
        """
        bits = exact_bits(self.n_summed or self.n_groups)
        sizes = np.diff(self.edges)
        shares = np.ldexp(np.floor(np.ldexp(1.0 / np.maximum(sizes, 1), bits)), -bits)
        result = np.empty(len(self.order))
        result[self.order] = np.repeat(shares, sizes)
        return result

    def between(self, start: int, stop: int) -> Groups:
        """Return the groups of a range of numbers, over all rows."""
        edges = self.edges[start : min(stop, self.n_groups) + 1]
        return Groups(self.order[edges[0] : edges[-1]], edges - edges[0])

    def take(self, groups: Indices) -> tuple[Indices, Groups]:
        """Return the numbers of the rows of these groups, and these groups over those rows."""
        starts, sizes = self.edges[groups], self.edges[groups + 1] - self.edges[groups]
        edges = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        places = np.repeat(starts - edges[:-1], sizes) + np.arange(edges[-1])
        return self.order[places], Groups(np.arange(edges[-1]), edges)


@dataclass(frozen=True, eq=False)
class GroupBlock:
    """Some groups, and the records of all rows. Theirs are anywhere among them.

    Attributes
    ----------
    records : Records
    groups : Groups
    """

    records: Records
    groups: Groups

    def sums(self, factors: Array) -> Array:
        """Return, for each group, the sum over its rows of ``z_i``, see `Records`, times a factor.

        Each is added up row after row, so that it follows from no other group, bit for bit.

        Parameters
        ----------
        factors : array of shape (n_rows,)

        Returns
        -------
        array of shape (n_groups, n_parameters), float64
        """
        records, order, edges = self.records, self.groups.order, self.groups.edges
        result = np.empty((self.groups.n_groups, records.n_parameters))
        columns = result[:, : records.n_features]
        within = factors if records.shrink is None else factors * records.shrink
        # In float64, row after row, a few groups at a time. None is cut in two.
        start, most = 0, block_rows(MOST_ROWS, records.n_features, is_sparse=False, is_copied=True)
        while start < self.groups.n_groups:
            stop = int(np.searchsorted(edges, edges[start] + most, side="right")) - 1
            stop = max(stop, start + 1)
            own = order[edges[start] : edges[stop]]
            some = records[own]
            rows = (some.X if some.loses_zeros else some.stored).astype(np.float64, copy=False)
            rows = rows if is_csr(rows) else np.ascontiguousarray(rows)
            sums = _adding(within[own], edges[start : stop + 1]) @ rows
            columns[start:stop] = sums.toarray() if is_csr(sums) else sums
            start = stop
        if records.base is not None:
            columns += np.outer(_adding(within[order], edges) @ np.ones(len(order)), records.base)
        if records.constant:
            result[:, -1] = _adding(records.constant * factors[order], edges) @ np.ones(len(order))
        return result


def _adding(factors: Array, edges: Indices) -> sparse.csr_array:
    """Return the CSR matrix that adds up rows, times their factors, from edge to edge."""
    shape = len(edges) - 1, len(factors)
    entries = factors, np.arange(len(factors)), edges - edges[0]
    return sparse.csr_array(entries, shape=shape, copy=False)
