"""Rows in memory that belong to groups: a group, such as all rows of a person, is one record.

A group adds to a sum the mean of what its rows add, so its part keeps to the bound of a row,
whatever the number of its rows. That number is private. So nothing here that shows may follow from
the number of rows: a source counts groups, samples and blocks are made of whole groups, and the
rounding of a sum has a bound that holds for any number of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NoReturn, Self

import numpy as np
from scipy import sparse

from skdp._numbers import Array, Indices
from skdp.oracle.sources.records import Records
from skdp.oracle.sources.row_blocks import MOST_ROWS, AnyRows, block_rows, is_csr, written_out

# Shares of rows in their group are whole numbers of 2**-32 or, with millions of groups, of a larger
# unit: sums of them are exact in float64, in any order.
SHARE_BITS, EXACT_BITS = 32, 52


def share_bits(n_groups: int) -> int:
    """Return b, where shares of rows in their group are whole numbers of 2**-b."""
    return min(SHARE_BITS, EXACT_BITS - math.ceil(math.log2(max(n_groups, 1))))


@dataclass(frozen=True, eq=False)
class Groups:
    """Assignment of rows to groups.

    Attributes
    ----------
    order : array of shape (n_rows,)
        Row numbers, group after group; within a group in their own order.
    edges : array of shape (n_groups + 1,)
        Where the rows of each group begin in ``order``, and where the last ones end.
    n_summed : int or None
        Number of groups that sums are over; None for these ones, more of them if they are a part.
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
        bits = share_bits(self.n_summed or self.n_groups)
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
    """Some groups, and the records of all rows; theirs are anywhere among them.

    Attributes
    ----------
    records : Records
    groups : Groups
    """

    records: Records
    groups: Groups

    def sums(self, factors: Array) -> AnyRows:
        """Return, for each group, the sum over its rows of the row of X times its factor.

        Each is added up row after row, so that it follows from no other group, bit for bit.

        Parameters
        ----------
        factors : array of shape (n_rows,)

        Returns
        -------
        array, or CSR for sparse rows without a base, of shape (n_groups, n_features), float64
        """
        outcome, base = self._sums(factors), self.records.base
        if base is None:
            return outcome
        return written_out(outcome, None) + np.outer(self.sums_of(factors), base)

    def _sums(self, factors: Array) -> AnyRows:
        """Return the sums, the base of the rows left out."""
        records, order, edges = self.records, self.groups.order, self.groups.edges
        X = records.stored
        is_sparse = records.is_sparse and not records.loses_zeros
        in_place = records.columns is None and X.dtype == np.float64
        if in_place and (is_sparse or X.flags.c_contiguous):
            return _selecting(factors[order], order, edges, X) @ X
        # Copied in float64, row after row, a few groups at a time; none is cut in two.
        outcome, start = [], 0
        most = block_rows(MOST_ROWS, X.shape[1], is_sparse=False, is_copied=True)
        while start < self.groups.n_groups:
            stop = int(np.searchsorted(edges, edges[start] + most, side="right")) - 1
            stop = max(stop, start + 1)
            own = order[edges[start] : edges[stop]]
            some = records[own]
            rows = (some.X if some.loses_zeros else some.stored).astype(np.float64)
            rows = rows if is_sparse else np.ascontiguousarray(rows)
            places = np.arange(len(own))
            chosen = _selecting(factors[own], places, edges[start : stop + 1] - edges[start], rows)
            outcome.append(chosen @ rows)
            start = stop
        return sparse.vstack(outcome, format="csr") if is_sparse else np.concatenate(outcome)

    def sums_of(self, numbers: Array) -> Array:
        """Return, for each group, the sum of a number of each of its rows."""
        order, edges = self.groups.order, self.groups.edges
        ones = np.ones(len(numbers))
        return np.asarray(_selecting(numbers[order], order, edges, ones) @ ones)


def _selecting(factors: Array, rows: Indices, edges: Indices, X: AnyRows) -> sparse.csr_array:
    """Return the CSR matrix that adds up rows of X, times their factors, from edge to edge."""
    kind = X.indices.dtype if is_csr(X) else np.int64
    entries = factors, rows.astype(kind, copy=False), (edges - edges[0]).astype(kind, copy=False)
    return sparse.csr_array(entries, shape=(len(edges) - 1, X.shape[0]), copy=False)
