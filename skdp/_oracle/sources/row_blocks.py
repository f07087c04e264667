"""Divide rows into parts and blocks by public shapes, and split sparse rows.

Parts have a fixed size, and sums of parts are added up in pairs: a row's term goes through the same
number of additions, however many rows there are. With groups that number is private.

Rows in CSR format can be one public row, the *base*, plus their entries. Standardised columns are
moved to their centres, and zeros with them. Every row is then the row that a row of zeros becomes,
plus its entries, shifted as zeros are. Products with such rows are split, so none of them is ever
stored.
"""

import itertools
from collections.abc import Iterator
from typing import TypeAlias, TypeGuard

import numpy as np
from scipy import sparse

from skdp._numbers import AnyArray, Array

BLOCK_BYTES = 1 << 22  # of a block of rows: threads that took less would queue for the interpreter
COPIED_BYTES = 1 << 20  # of one that is written and read on the way to the sums, in a near cache
# Of a part in float64, which one thread takes as a whole. Each costs a tenth of a millisecond in
# Python. Smaller ones are cut in two from a quarter of this size on.
PART_BYTES = 1 << 24
MOST_ROWS = 1 << 13  # of a dense block, added up one after the other: rounding grows with them
# Rows of a sparse block, or one for so many columns: each part, and each block, adds a sum of all
# columns.
SPARSE_ROWS, COLUMNS_FOR_A_ROW, SPARSE_BLOCKS = 1 << 12, 32, 4
PAIRED_SUMS = 2 * 64 + 4  # additions of sums of parts in pairs, however many a machine can hold
UNIT_ROUNDOFF = 2.0**-53  # of float64


def part_rows(n_columns: int, is_sparse: bool) -> int:
    """Return how many rows a part has at most."""
    if is_sparse:
        return SPARSE_BLOCKS * max(SPARSE_ROWS, n_columns // COLUMNS_FOR_A_ROW)
    return max(16, PART_BYTES // (8 * max(n_columns, 1)))


def row_parts(n_rows: int, n_columns: int, is_sparse: bool) -> list[slice]:
    """Divide rows into parts for threads, by their shapes.

    The same parts whatever the number of threads, so that a sum comes out the same.
    """
    size = part_rows(n_columns, is_sparse)
    # An even number of parts keeps two threads busy.
    n_parts = 2 * -(-n_rows // (2 * size)) if n_rows > size // 4 else 1
    edges = [n_rows * i // n_parts for i in range(n_parts + 1)]
    return [slice(*pair) for pair in itertools.pairwise(edges)]


def block_rows(n_rows: int, n_columns: int, is_sparse: bool, is_copied: bool) -> int:
    """Return the number of rows of a block, by shapes and types, never by values.

    Parameters
    ----------
    n_rows, n_columns : int
    is_sparse : bool
    is_copied : bool
        Whether blocks are made float64, or standardised, on the way.
    """
    if is_sparse:
        return max(SPARSE_ROWS, n_columns // COLUMNS_FOR_A_ROW)
    n_bytes = COPIED_BYTES if is_copied else BLOCK_BYTES
    return min(n_rows, MOST_ROWS, max(16, n_bytes // (8 * max(n_columns, 1))))


def summation_depth(n_rows: int, n_columns: int, is_sparse: bool, grouped: bool) -> int:
    """Return the largest number of additions that a record's term undergoes in a sum.

    It counts those in a block, those of the blocks of a part, and those of parts in pairs: the
    maximum over storage layouts (rows that are copied on the way or not, sparse rows that are
    written out or not). With groups the number of rows is private, and any number is counted for.
    """
    part = part_rows(n_columns, is_sparse)
    part = part if grouped else min(part, n_rows)
    # Parts may end in shorter blocks. A base adds a second sum for each block.
    kinds = {(False, False), (False, True), (is_sparse, False), (is_sparse, True)}
    most = 0
    for kind in kinds:
        rows = max(1, min(part, block_rows(part, n_columns, *kind)))
        most = max(most, rows + (1 + is_sparse) * (-(-part // rows) + 2))
    return PAIRED_SUMS + most


def slices(start: int, stop: int, step: int) -> Iterator[slice]:
    """Yield the slices of a range, ``step`` long but for the last."""
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))


AnyRows: TypeAlias = AnyArray | sparse.csr_array  # dense or CSR

# Rows are taken apart if the base is no longer than this many times the constant feature, of which
# every row has one. A part of a row, next to the whole, is then no longer than this and 1, so
# rounding errors grow by a known factor. Others are written out, a block at a time. The base of
# encoded categories is well below it: about as long as the root of the number of encoded columns.
LONGEST_BASE = 16.0


def is_csr(X: AnyRows) -> TypeGuard[sparse.csr_array]:
    """Whether rows are sparse."""
    return bool(sparse.issparse(X))


def canonical(X: AnyRows) -> AnyRows:
    """Return CSR rows with every entry given once. Other rows as they are.

    An entry given in parts, such as 1e30 and -1e30, passes for small in a norm and swallows the
    other rows when the parts are added up one by one. Flags of the caller's matrix are not trusted.

    Raises
    ------
    ValueError
        If numbers of columns or of entries are out of range, so that compiled loops would read and
        write outside their arrays, or if the parts of an entry add up to infinity.
    """
    if not is_csr(X):
        return X
    try:
        rows = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
        rows.check_format(full_check=True)
    except ValueError:
        raise ValueError(
            f"X is not a valid CSR matrix: column numbers have to lie in 0 to {X.shape[1] - 1}, "
            "and its index pointer must rise from 0 to the number of entries. Nothing was released."
        ) from None
    if rows.has_canonical_format:
        return rows
    rows = rows.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        rows.sum_duplicates()
    if not np.isfinite(rows.data).all():
        raise ValueError(
            "X holds a sparse entry that is given in several parts which add up to infinity. "
            "Nothing was released."
        )
    return rows


def csr_slice(X: sparse.csr_array, rows: slice) -> sparse.csr_array:
    """Return rows of a CSR matrix whose entries are views.

    Indexing would copy them, and so would scipy if it were handed a view of less than half.
    """
    first, last = X.indptr[rows.start], X.indptr[rows.stop]
    result = sparse.csr_array((rows.stop - rows.start, X.shape[1]), dtype=X.dtype)
    result.data, result.indices = X.data[first:last], X.indices[first:last]
    result.indptr = X.indptr[rows.start : rows.stop + 1] - first
    return result


def base_of(zeros: Array, constant: float) -> Array | None:
    """Return the row that zeros become as a base, None if there is none or it is too long.

    Parameters
    ----------
    zeros : array of shape (n_columns,)
        The public row that a row of zeros becomes.
    constant : float
        Size of the constant feature.
    """
    with np.errstate(over="ignore"):
        is_short = bool(np.linalg.norm(zeros) <= LONGEST_BASE * constant)
    return zeros if is_short and zeros.any() else None


def growth_of_rounding(base_ratio: float) -> float:
    """Factor by which rounding errors of sums grow: the length of parts of rows next to rows.

    Let z be a row ``b + d`` with the base b, and its constant feature k. A sum over rows of c z is
    that of c d, and b times that of c. As ``|z| >= k`` and ``|b| <= L k``, L being the
    ``base_ratio``, both ``|c d| + |c b|`` and hence the errors of the two sums, next to ``|c z|``,
    are at most ``(|z| + 2 |b|) / |z| <= 1 + 2 L``. Rows that are scaled down keep their constant,
    and their base is scaled down with them. The second addition for each block is counted in
    :func:`skdp._oracle.sources.row_blocks.summation_depth`.
    """
    return 1.0 + 2.0 * base_ratio


def written_out(X: sparse.csr_array, base: Array | None, out: Array | None = None) -> Array:
    """Return CSR rows plus their base as dense ones, in ``out`` if given."""
    result: Array = X.toarray() if out is None else X.toarray(out=out)
    if base is not None:
        result += base
    return result


def squared_lengths(X: sparse.csr_array, base: Array | None) -> Array:
    """Squared L2 norms of CSR rows plus their base, rounded, but not down: those of p columns.

    Entries that are not stored add ``|base|**2`` without the squares of stored places. The rounding
    error of that difference is at most ``(2 p + 8) u |base|**2`` (sums of p squares, Higham 2002,
    sec. 3.1, u is the unit roundoff), which is added. All else is a sum of squares: its error is
    relative.
    """
    ones = np.ones(X.shape[1])
    if base is None:
        return np.asarray(X.power(2) @ ones)

    def sums(values: Array) -> Array:
        return np.asarray(sparse.csr_array((values, X.indices, X.indptr), shape=X.shape) @ ones)

    of_base, whole = base[X.indices], float(base @ base)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        rest = np.maximum(whole - sums(of_base * of_base), 0.0)
        lost = (X.shape[1] + 4) * float(np.finfo(np.float64).eps) * whole
        of_base += X.data
        return np.asarray(sums(np.square(of_base, out=of_base)) + (rest + lost))
