"""Passes over records for second moments: Gram matrices, Hessians, norms in other coordinates."""

import functools

import numpy as np
from scipy import sparse
from scipy.linalg import blas

from skdp._numbers import Array, Indices
from skdp._oracle import compiled
from skdp._oracle.kernels import loops
from skdp._oracle.kernels.clipped_gradients import clipped_gradients
from skdp._oracle.sources.records import Records, quotient
from skdp._oracle.sources.row_blocks import (
    UNIT_ROUNDOFF,
    is_csr,
)
from skdp.objective import Loss

# Share of entries stored in CSR rows up to which their products take less time than dense ones.
MOST_FILLED = 0.2


@functools.lru_cache(maxsize=64)
def _triangle(size: int) -> tuple[Indices, Indices, Array]:
    rows, columns = np.triu_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))


def pack(symmetric: Array) -> Array:
    """Return the upper triangle as a vector, entries off the diagonal times sqrt(2).

    The vector is as long as the matrix: its L2 norm is the Frobenius norm.
    """
    rows, columns, factors = _triangle(len(symmetric))
    return symmetric[rows, columns] * factors


def unpack(vector: Array, size: int) -> Array:
    """Return the symmetric matrix that :func:`pack` makes this vector of."""
    rows, columns, factors = _triangle(size)
    matrix = np.zeros((size, size))
    matrix[rows, columns] = vector / factors
    matrix[columns, rows] = matrix[rows, columns]
    return matrix


# ---------------------------------------------------------------- Gram matrices


def weighted_gram(records: Records, factors: Array) -> Array:
    """Sum over records of ``v v'``, where ``v = factors[i] * z_i``.

    Parameters
    ----------
    records : Records
    factors : array of shape (n_rows,)

    Returns
    -------
    array of shape (p, p), float64, p = n_parameters
        Where there are groups, ``v v'`` is multiplied by the record's multiplier.
    """
    n_features, n_constant = records.n_features, int(records.constant != 0)
    size = n_features + n_constant
    if records.multipliers is not None:
        factors = factors * np.sqrt(records.multipliers)
    if (done := _compiled_weighted_gram(records, factors)) is not None:
        return done
    total, start = np.zeros((size, size)), 0
    vectors = np.empty((0, size))
    for block in records.float64_blocks():
        rows = slice(start, start + block.n_rows)
        start = rows.stop
        weights = factors[rows] if block.shrink is None else factors[rows] * block.shrink
        # 1. The last columns, dense in any case.
        last = np.full((block.n_rows, n_constant), block.constant) * factors[rows, None]
        # 2. The products.
        if block.is_sparse:
            shape = block.n_rows, block.n_rows
            scaled = sparse.dia_array((weights[np.newaxis], [0]), shape=shape) @ block.X
            total[:n_features, :n_features] += (scaled.T @ scaled).toarray()
            total[:n_features, n_features:] += scaled.T @ last
            total[n_features:, n_features:] += last.T @ last
        else:
            vectors = vectors if len(vectors) else np.empty((block.n_rows, size))
            few = vectors[: block.n_rows]
            np.multiply(block.stored, weights[:, None], out=few[:, :n_features])
            few[:, n_features:] = last
            total += few.T @ few
    total[n_features:, :n_features] = total[:n_features, n_features:].T
    return total


@compiled.or_numpy
def _compiled_weighted_gram(records: Records, factors: Array) -> Array | None:
    """Sum over CSR rows, which are added to their base when all of them are added up.

    With w the row's factor times its scaling, ``v = (w d + w b, last)`` for what is stored, d, and
    the base b. Sums of products of ``(w d, last, w)`` give those of v by products with b. Parts of
    v are `growth_of_rounding` times as long as v at most, products of parts its square. So terms
    are added with compensation (Kahan 1965): each sum is off by ``2 u sum |terms|``, however many
    they are (Higham 2002, eq. 4.8), and all is by less than 32 u times that square. This is below
    half of what is charged for by `summation_depth`, which is 4,096 or more. It may be less for
    rows of groups. These are for numpy.
    """
    if not _is_for_loops(records):
        return None
    # 1. Sums of products, the root of the base's part last.
    base, n_constant = records.base, int(records.constant != 0)
    size, n_last = records.n_features + n_constant, n_constant + (base is not None)
    total, lost = np.zeros((2, records.n_features + n_last, records.n_features + n_last))
    for rows, block in records.numbered_pieces():
        last = np.empty((block.n_rows, n_last))
        weights = factors[rows] if block.shrink is None else factors[rows] * block.shrink
        last[:, :n_constant] = block.constant * factors[rows, None]
        last[:, n_constant:] = weights[:, None]
        loops.add_sparse_products(loops.entries_of(block), weights, last, total, lost)
    # 2. The base.
    total += np.triu(total, 1).T
    if base is None:
        return total
    long = np.concatenate((base, np.zeros(n_constant)))
    crossed = np.outer(long, total[:size, size] + total[size, size] / 2 * long)
    return np.asarray(total[:size, :size] + (crossed + crossed.T))


def bounded_gram(records: Records, row_norm: float) -> Array:
    """Sum over records of ``z z'``, z weighted by its root and shrunk to L2 norm ``row_norm``."""
    roots = root_weights(records)
    return weighted_gram(records, factors_within(row_norm, records.inverse_norms, roots))


def factors_within(bound: float, inverse_norms: Array, root_weights: Array | None) -> Array:
    """Return ``min(root weight, bound / norm)``, which bounds the norm of a weighted row."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        factors = bound * inverse_norms
        np.minimum(factors, 1.0 if root_weights is None else root_weights, out=factors)
    return np.fmax(factors, 0.0, out=factors)  # what is no number becomes 0


def root_weights(records: Records) -> Array | None:
    """Return the roots of the weights of records, None if there are none."""
    return None if records.weights is None else np.sqrt(records.weights)


# ---------------------------------------------------------------- gradients of shrunk rows


def shrunk_gradients(
    records: Records,
    factors: Array,
    loss: Loss,
    point: Array,
    residual_bound: float,
    whole_records: bool = False,
) -> Array:
    """Sum of the records' gradients, rows shrunk by factors and residuals capped.

    With ``whole_records`` a row's target is shrunk with it, as in `bounded_gram`, which for squared
    error multiplies its residual once more.
    """
    weights = factors
    if whole_records:
        weights = factors * factors
    elif records.weights is not None:
        with np.errstate(over="ignore", under="ignore"):
            weights = factors * records.weights
    return clipped_gradients(records.having(weights, factors), loss, point, residual_bound)


def shrink_factors(
    records: Records, inverse_norms: Array, row_norm: float, by_root: bool, is_capped: bool
) -> Array:
    """Return the factors ``min(1, row_norm / norm)``, the root of a weight in place of 1 if wanted.

    With ``is_capped`` the square of a factor times the norm is at most ``row_norm`` as well.
    """
    factors = factors_within(row_norm, inverse_norms, root_weights(records) if by_root else None)
    if is_capped:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            factors = np.minimum(factors, np.sqrt(np.maximum(1.0, row_norm * inverse_norms)))
    return factors


def shrink_factors_in(
    records: Records,
    triangle: Array,
    square: Array,
    largest: float,
    row_norm: float,
    *kind: bool,
) -> Array:
    """Return `shrink_factors` by the norms of ``T'z_i``. See `inverse_norms_in`.

    ``largest`` is at least the largest singular value of T. So most rows may be seen to be short
    by their own norms, which are known. Those without weights have the factor 1.
    """
    if records.weights is None and records.multipliers is None:
        with np.errstate(over="ignore"):
            long = np.flatnonzero(records.inverse_norms * (row_norm / largest) < 1)
        if 2 * len(long) <= records.n_rows:
            factors = np.ones(records.n_rows)
            if len(long):
                few = records[long]
                norms = inverse_norms_in(few, triangle, square)
                factors[long] = shrink_factors(few, norms, row_norm, *kind)
            return factors
    return shrink_factors(records, inverse_norms_in(records, triangle, square), row_norm, *kind)


def inverse_norms_in(records: Records, triangle: Array, square: Array) -> Array:
    """One over the L2 norm of ``R z_i`` for every record, as `quotient` gives it.

    R is an upper triangle, and ``square`` is R'R.
    Where products of huge entries overflow, a row counts as too long to be used.
    """
    if (done := _compiled_inverse_norms(records, square)) is not None:
        return done
    n_features, result = records.n_features, []
    columns, last = np.asfortranarray(triangle[:n_features, :n_features]), triangle[:, n_features:]
    # Without groups, only the record's own norm counts, which parts make worse by a known factor.
    in_parts = records.is_sparse and records.multipliers is None
    for block in records.float64_blocks(not in_parts):
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            if is_csr(block.stored):
                moved = np.asarray(block.stored @ columns.T)
            else:
                moved = blas.dtrmm(1.0, columns, block.stored.copy("C").T, overwrite_b=True).T
            if block.base is not None:
                moved += block.base @ columns.T
            if block.shrink is not None:
                moved *= block.shrink[:, None]
            if block.constant:
                moved += block.constant * last[:n_features, 0]
            squares = np.einsum("ij,ij->i", moved, moved)
            if block.constant:
                squares += np.square(block.constant * last[-1, 0])
            result.append(np.sqrt(squares))
    return quotient(1.0, np.concatenate(result) if result else np.empty(0))


@compiled.or_numpy
def _compiled_inverse_norms(records: Records, square: Array) -> Array | None:
    """Return the inverse norms of CSR rows by products of pairs of stored entries.

    With the square M, entries d, the base b, the scaling h and the constant k, the squared norm is
    that of ``h (d + b)`` and of k in M. The absolute values of all terms add up to
    ``|M|_F (h |d| + h |b| + k)**2`` at most, and rounding errors to less than ``(3 p + 16) u``
    times that, which is added: no norm is rounded down.
    """
    if not _is_for_loops(records):
        return None
    n_features, constant, h = records.n_features, float(records.constant), records.shrink
    within, size = np.ascontiguousarray(square[:n_features, :n_features]), len(square)
    base = np.zeros(n_features) if records.base is None else records.base
    of_base, of_constant = within @ base, constant * square[:n_features, -1]
    squares, products, lengths = np.empty((3, records.n_rows))
    linear = 2.0 * np.stack([of_base, of_constant])
    for rows, block in records.numbered_pieces():
        out = squares[rows], products[rows], lengths[rows]
        loops.write_squares(loops.entries_of(block), within, linear, *out)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squares += base @ of_base
        products += 2.0 * (base @ of_constant)
        lengths = np.sqrt(lengths) + np.linalg.norm(base)
        if h is not None:
            squares, products, lengths = h * h * squares, h * products, h * lengths
        squares += products + constant**2 * square[-1, -1]
        slack = (3 * size + 16) * UNIT_ROUNDOFF * float(np.linalg.norm(square))
        squares += slack * np.square(lengths + constant)
        return quotient(1.0, np.sqrt(squares))


def _is_for_loops(records: Records) -> bool:
    """Return whether sums over pairs of stored entries take less time than dense products.

    Entries are private. They only affect the running time.
    """
    if records.multipliers is not None or records.loses_zeros or not is_csr(records.stored):
        return False
    return bool(records.stored.nnz <= MOST_FILLED * records.n_rows * records.n_features)


def condition_numbers(transform: Array) -> tuple[float, float, float]:
    """``|T|_F`` and ``|T|_2`` over the least singular value of T, and ``|T|_2``, rounded up.

    The first two are inf if T is singular.

    Singular values are off by a small multiple of ``p u |T|_2``.
    """
    size, singular = float(np.linalg.norm(transform)), np.linalg.svd(transform, compute_uv=False)
    least, largest = float(singular[-1]), float(singular[0])
    is_regular = least > size * len(transform) * 64 * UNIT_ROUNDOFF
    least, largest = 0.5 * least, 1.01 * largest
    return (size / least, largest / least, largest) if is_regular else (np.inf, np.inf, largest)
