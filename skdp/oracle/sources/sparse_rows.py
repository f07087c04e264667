"""CSR rows, and rows that are one public row, the *base*, plus what a CSR row holds.

Standardised columns are moved to their centres, and zeros with them. Every row is then the row that
a row of zeros becomes, plus its entries, moved by what zeros are moved by. Products with such rows
are taken apart, so none of them is ever written out.
"""

from typing import TypeAlias, TypeGuard

import numpy as np
from scipy import sparse

from skdp._numbers import AnyArray, Array

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
    """Return CSR rows with every entry given once; other rows as they are.

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
        What a row of zeros becomes; public.
    constant : float
        Size of the constant feature.
    """
    with np.errstate(over="ignore"):
        is_short = bool(np.linalg.norm(zeros) <= LONGEST_BASE * constant)
    return zeros if is_short and zeros.any() else None


def growth_of_rounding() -> float:
    """Factor by which rounding errors of sums grow: the length of parts of rows next to rows.

    Let z be a row ``b + d`` with the base b, and its constant feature k. A sum over rows of c z is
    that of c d, and b times that of c. As ``|z| >= k`` and ``|b| <= L k``, both ``|c d| + |c b|``
    and hence the errors of the two sums, next to ``|c z|``, are at most
    ``(|z| + 2 |b|) / |z| <= 1 + 2 L``. Rows that are scaled down keep their constant, and their
    base is scaled down with them. The second addition for each block is counted in
    :func:`skdp.oracle.sources.block_sizes.summation_depth`.
    """
    return 1.0 + 2.0 * LONGEST_BASE


def written_out(X: sparse.csr_array, base: Array | None, out: Array | None = None) -> Array:
    """Return CSR rows plus their base as dense ones, in ``out`` if given."""
    result: Array = X.toarray() if out is None else X.toarray(out=out)
    if base is not None:
        result += base
    return result


def squared_lengths(X: sparse.csr_array, base: Array | None) -> Array:
    """Squared L2 norms of CSR rows plus their base, rounded, but not down: those of p columns.

    What is not stored adds ``|base|**2`` without the squares of stored places. The rounding error
    of that difference is at most ``(2 p + 8) u |base|**2`` (sums of p squares, Higham 2002, sec.
    3.1; u is the unit roundoff), which is added. All else is a sum of squares: its error is
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
