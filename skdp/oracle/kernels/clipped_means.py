"""Sums over groups of rows of a group's mean gradient, clipped as a whole: average, then clip.

Rows of one group disagree, so their mean is shorter than most of them, and a clipping norm that is
smaller by as much makes for less noise. The gradient of a row is the row times its residual, so the
means are a product of a sparse matrix, with an entry for every row, and X.
"""

from collections.abc import Iterator

import numpy as np

from skdp._numbers import Array, Mask
from skdp.oracle.sources.groups import GroupBlock
from skdp.oracle.sources.sparse_rows import AnyRows, is_csr


def _means(block: GroupBlock, residuals: Array) -> Iterator[tuple[AnyRows, Array]]:
    """Yield, for each output, the mean gradients of the groups: of columns, and of the constant."""
    records = block.records
    for output in residuals.T:
        shares = output * records.multipliers
        factors = shares if records.shrink is None else shares * records.shrink
        yield block.sums(factors), block.sums_of(records.constant * shares)


def _lengths(means: list[tuple[AnyRows, Array]]) -> Array:
    """L2 norm of each group's mean gradient over all coordinates; inf where it has no finite one.

    Groups whose mean is not finite, such as those with products that overflow, are made null.
    """
    squares = np.zeros(len(means[0][1]))
    for columns, constant in means:
        if is_csr(columns):
            squares += np.asarray(columns.multiply(columns).sum(axis=1)).ravel()
        else:
            squares += np.einsum("ij,ij->i", columns, columns)
        squares += constant**2
    lengths = np.sqrt(squares)
    lengths[~np.isfinite(lengths)] = np.inf
    return np.asarray(lengths)


def clipped_means(block: GroupBlock, residuals: Array, clip_norm: float) -> Array:
    """Sum over groups of the mean of their rows' gradients, each clipped to L2 norm ``clip_norm``.

    Parameters
    ----------
    block : GroupBlock
    residuals : array of shape (n_rows, n_outputs), finite
        Weighted, of all rows.
    clip_norm : float

    Returns
    -------
    array of shape (n_parameters, n_outputs), float64
    """
    means = list(_means(block, residuals))
    lengths = _lengths(means)
    with np.errstate(divide="ignore", over="ignore"):
        factors = np.minimum(1.0, clip_norm / lengths)
    usable = np.isfinite(lengths)
    factors[~usable] = 0.0
    n_features = block.records.n_features
    total = np.empty((block.records.n_parameters, len(means)))
    for output, (columns, constant) in enumerate(means):
        if not usable.all():
            columns, constant = _without(columns, constant, usable)
        total[:n_features, output] = columns.T @ factors
        if block.records.constant:
            total[-1, output] = constant @ factors
    return total


def _without(columns: AnyRows, constant: Array, usable: Mask) -> tuple[AnyRows, Array]:
    """Make groups null: 0 times inf would show that they are there."""
    if is_csr(columns):
        kept = columns.copy()
        kept.data[np.repeat(~usable, np.diff(kept.indptr))] = 0.0
        return kept, np.where(usable, constant, 0.0)
    return np.where(usable[:, None], columns, 0.0), np.where(usable, constant, 0.0)


def count_short_means(block: GroupBlock, residuals: Array, limit: float) -> float:
    """Count the groups whose mean gradient is at most ``limit`` long and that are not null.

    A group is null if all of its rows have weight 0.
    """
    within = _lengths(list(_means(block, residuals))) <= limit
    weights = block.records.weights
    if weights is not None:
        within &= block.sums_of((weights != 0).astype(np.float64)) > 0
    return float(np.count_nonzero(within))
