"""Rows in memory that belong to groups: a group, such as all rows of a person, is one record.

A group adds to a sum the mean of its rows' contributions, so its part is within the bound of a row,
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
from skdp._oracle.sources.records import Records
from skdp._oracle.sources.row_blocks import MOST_ROWS, block_rows, is_csr

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
