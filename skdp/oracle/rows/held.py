"""Rows that are held in memory, dense or CSR, in the caller's own array: nothing is copied."""

from __future__ import annotations

import functools
import mmap
import operator
from collections.abc import Callable
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.oracle import kernels
from skdp.oracle.rows.divisions import Divisions
from skdp.oracle.scaling import Scaling
from skdp.oracle.threads import Map

Array = NDArray[np.float64]
Total = TypeVar("Total", float, Array)


def canonical(X: Any) -> Any:
    """Return CSR rows with every entry given once; other rows as they are.

    An entry given in parts, such as 1e30 and -1e30, passes for small in a norm and swallows the
    other rows when the parts are added up one by one. Flags of the caller's matrix are not trusted.

    Raises
    ------
    ValueError
        If the parts of an entry add up to infinity.
    """
    if not sparse.issparse(X):
        return X
    rows = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
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


def _try_to_allocate(n_bytes: int) -> None:
    """Raise MemoryError if so much memory is not to be had; none is used."""
    try:
        mmap.mmap(-1, n_bytes).close()
    except OSError as refusal:
        raise MemoryError(
            f"a fit of this size needs about {n_bytes / 2**20:.0f} MB more memory than there is. "
            "Nothing was released and nothing was charged."
        ) from refusal


class HeldRows:
    """Records (x, y, weight) in memory, and the two bounds that are enforced on them.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features), float32 or float64, finite
    targets : array, first axis n_rows
        As the loss wants them.
    weights : array of shape (n_rows,) or None
        Scale a record's gradient before it is clipped.
    row_bound : float or None
        Rows longer than this are treated as scaled down to it; X itself is left alone.
    intercept_size : float
        Size of the one more, constant feature that each row has; 0 for none.
    spread : callable, default=map
        Maps a function over parts of the rows; see :mod:`skdp.oracle.threads`.
    """

    __slots__ = (
        "_X",
        "_block",
        "_divisions",
        "_intercept_size",
        "_inverse_norms",
        "_inverse_sums",
        "_known_norms",
        "_row_bound",
        "_shrink",
        "_spare",
        "_spread",
        "_targets",
        "_weights",
    )

    def __init__(
        self,
        X: Any,
        targets: NDArray[Any],
        weights: Array | None = None,
        row_bound: float | None = None,
        intercept_size: float = 1.0,
        spread: Map = map,
    ) -> None:
        X = canonical(X)
        norms = kernels.row_norms(X)
        shrink = None
        if row_bound is not None:
            shrink = np.minimum(1.0, kernels.quotient(row_bound, norms))
            norms = np.minimum(norms, row_bound)
        if intercept_size:
            norms = np.hypot(norms, intercept_size)
        self._X, self._targets, self._weights = X, targets, weights
        self._divisions = Divisions(X.shape[0])
        self._inverse_norms, self._shrink = kernels.quotient(1.0, norms), shrink
        self._inverse_sums: Array | None = None
        self._intercept_size, self._spread = intercept_size, spread
        self._row_bound = row_bound
        self._block: tuple[object, Self] | None = None
        self._known_norms: tuple[Array, Array] | None = None
        self._spare: NDArray[Any] | None = None

    def __reduce__(self) -> Any:
        raise TypeError("rows cannot be pickled: a saved model must not hold its training data.")

    @property
    def is_sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return bool(sparse.issparse(self._X))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._X.shape[0])

    @property
    def row_bound(self) -> float | None:
        """The bound that longer rows are scaled down to."""
        return self._row_bound

    @property
    def weighted(self) -> bool:
        """Whether weights were given."""
        return self._weights is not None

    def take(self, numbers: NDArray[np.int64]) -> Self:
        """Return the rows with these numbers, copied."""
        chosen = object.__new__(type(self))
        chosen._X, chosen._targets = self._X[numbers], self._targets[numbers]
        chosen._weights = None if self._weights is None else self._weights[numbers]
        chosen._shrink = None if self._shrink is None else self._shrink[numbers]
        chosen._divisions = Divisions(len(numbers))
        chosen._inverse_norms = self._inverse_norms[numbers]
        chosen._inverse_sums = None if self._inverse_sums is None else self._inverse_sums[numbers]
        chosen._intercept_size, chosen._spread = self._intercept_size, self._spread
        chosen._row_bound, chosen._block = self._row_bound, None
        chosen._known_norms, chosen._spare = None, None
        return chosen

    def reserve(self, standardised: bool) -> None:
        """Take hold of the memory that a run is going to need, while nothing has been charged.

        Parameters
        ----------
        standardised : bool
            Whether the rows are going to be standardised, which makes a copy of them.

        Raises
        ------
        MemoryError
            If there is not enough. A fit that ran out of memory later would have lost its budget.
        """
        if standardised and not self.is_sparse:
            self._spare = np.empty(self._X.shape, dtype=self._X.dtype)
        # Norms, factors and residuals of a whole pass; blocks of all threads; entries of a copy.
        entries = 4 * len(self._X.data) if standardised and self.is_sparse else 0
        blocks = min(32 * kernels.BLOCK_BYTES // 8, 6 * self.n_rows * self._X.shape[1])
        _try_to_allocate(8 * (8 * self.n_rows + blocks + entries))

    def standardised(self, scaling: Scaling, row_bound: float | None) -> Self:
        """Return the rows mapped by public numbers, one by one, with another bound on them."""
        X, targets = self._X, self._targets
        if scaling.columns is not None:
            X = scaling.columns.apply(X, self._spread, self._spare)
            self._spare = None
        if scaling.targets is not None:
            targets = scaling.targets.apply(targets)
        size = self._intercept_size
        mapped = type(self)(X, targets, self._weights, row_bound, size, self._spread)
        # The ledger takes blocks asked for before and after for those of one partition.
        mapped._divisions = self._divisions
        return mapped

    def _parts(self) -> list[slice]:
        n_rows, n_columns = self._X.shape
        return kernels.parts(n_rows, n_columns, self._X.dtype.itemsize, self.is_sparse)

    def _total(self, over: Callable[[slice], Total]) -> Total:
        """Sum what comes of the parts, in their order, whichever thread is done first."""
        total: Total = functools.reduce(operator.add, self._spread(over, self._parts()))
        return total

    def _margins(self, point: Array, rows: slice) -> Array:
        """Margins of some rows in float64; inf or nan where huge products overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            block = kernels.take(self._X, rows)
            margins = np.asarray(block @ point[: self._X.shape[1]]).astype(np.float64, copy=False)
            if self._shrink is not None:
                margins *= self._shrink[rows, None]
            if self._intercept_size:
                margins += self._intercept_size * point[-1]
        return np.asarray(margins)
