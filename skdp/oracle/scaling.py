"""A map of records by public numbers: clip each column to a range, then shift and divide."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skdp._numbers import AnyArray, Array
from skdp.oracle.sources.records import block_rows, row_parts

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


@dataclass(frozen=True, eq=False)
class Columns:
    """Range, centre and size of columns: ``x`` becomes ``(clip(x, low, high) - centre) / size``.

    It acts on each record alone, by numbers that are public, so it releases nothing.

    Parameters
    ----------
    low, high : array of shape (n_columns,)
        Finite; values outside are clipped.
    centre : array of shape (n_columns,)
        Finite, 0 for sparse columns.
    size : array of shape (n_columns,)
        Positive and finite.
    """

    low: Array
    high: Array
    centre: Array
    size: Array

    def __post_init__(self) -> None:
        for name in ("low", "high", "centre", "size"):
            values: Array = np.array(getattr(self, name), dtype=np.float64, ndmin=1, subok=False)
            if values.ndim != 1 or len(values) != len(np.atleast_1d(self.low)):
                raise ValueError(f"Columns: {name} must have one number for each column.")
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        finite = all(np.isfinite(values).all() for values in (self.low, self.high, self.centre))
        if not (finite and (self.size > 0).all() and (self.size < np.inf).all()):
            raise ValueError("Columns: numbers must be finite, and sizes positive.")
        if (self.low > self.high).any():
            raise ValueError("Columns: low must not exceed high.")

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.size)

    @property
    def keeps_zeros(self) -> bool:
        """Whether 0 stays 0, so that sparse columns can stay sparse."""
        return not (self.centre.any() or (self.low > 0).any() or (self.high < 0).any())

    @property
    def unclipped(self) -> Columns:
        """The same centres and sizes, and no range."""
        everything = np.full(self.n_columns, np.finfo(np.float64).max)
        return Columns(-everything, everything, self.centre, self.size)

    def apply(self, X: Any, spread: Map = map, out: AnyArray | None = None) -> Any:
        """Return the standardised columns as an array or CSR matrix of the same type.

        Parameters
        ----------
        X : array or CSR of shape (n_rows, n_columns), float32 or float64, finite
            Sparse columns keep their zeros: ranges have to hold 0, and centres to be 0.
        spread : callable, default=map
            Maps a function over parts of the rows.
        out : array of the shape and type of X, default=None
            Where dense columns are put; None for a new array.
        """
        if sparse.issparse(X):
            return self._apply_to_sparse(X)
        result = np.empty(X.shape, dtype=X.dtype) if out is None else out
        largest = np.finfo(X.dtype).max
        # No difference from the centre leaves the range of the type, whatever the ends are.
        farthest = float(largest) * (1 - 2.0**-20)
        with np.errstate(over="ignore", under="ignore"):
            middle = np.clip(self.centre, -farthest, farthest)
            low, high, centre, size = (
                _within(values, X.dtype)
                for values in (
                    np.maximum(self.low, middle - farthest),
                    np.minimum(self.high, middle + farthest),
                    middle,
                    self.size,
                )
            )
            # A quotient must not become inf: inf times 0 shows that a record is there.
            reach = np.maximum(np.abs(low - centre), np.abs(high - centre))
            overflows = bool((reach / size > largest / 2).any())
        step = block_rows(len(X), X.shape[1], X.dtype.itemsize, is_sparse=False)

        def over(part: slice) -> None:
            for start in range(part.start, part.stop, max(1, step)):
                rows = slice(start, min(start + step, part.stop))
                block = result[rows]
                np.clip(X[rows], low, high, out=block)
                block -= centre
                with np.errstate(over="ignore", under="ignore"):
                    block /= size
                if overflows:
                    np.clip(block, -largest, largest, out=block)

        n_rows, n_columns = X.shape
        list(spread(over, row_parts(n_rows, n_columns, X.dtype.itemsize, is_sparse=False)))
        return result

    def _apply_to_sparse(self, X: Any) -> Any:
        if not self.keeps_zeros:
            raise ValueError("Columns: sparse columns can be neither centred nor moved from 0.")
        largest = float(np.finfo(X.dtype).max)
        with np.errstate(over="ignore", under="ignore"):
            data = np.clip(X.data, self.low[X.indices], self.high[X.indices]) / self.size[X.indices]
            data = np.clip(data, -largest, largest)
        return sparse.csr_array(
            (data.astype(X.dtype, copy=False), X.indices, X.indptr), shape=X.shape
        )


def _within(values: Array, dtype: np.dtype[Any]) -> AnyArray:
    """Numbers in the type of the rows; none leaves its range, none becomes 0 that was not."""
    largest, least = np.finfo(dtype).max, np.finfo(dtype).tiny
    near = np.clip(values, -largest, largest)
    near = np.where((near != 0) & (np.abs(near) < least), np.copysign(least, near), near)
    return np.asarray(near.astype(dtype))


@dataclass(frozen=True, eq=False)
class Scaling:
    """How the records of a fit were standardised; all numbers are public.

    Attributes
    ----------
    columns : Columns or None
        Of X; None where X is taken as it is.
    targets : Columns or None
        Of the targets of a regression, one for each output.
    """

    columns: Columns | None = None
    targets: Columns | None = None

    @property
    def unclipped(self) -> Scaling:
        """The same centres and sizes, and no ranges."""
        columns, targets = self.columns, self.targets
        return Scaling(columns and columns.unclipped, targets and targets.unclipped)

    def of_coefficients(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Return what predicts standardised records as these predict the records as they were.

        Parameters
        ----------
        coef : array of shape (n_features, n_outputs)
        intercept : array of shape (n_outputs,)

        Returns
        -------
        coef, intercept : array
            New. inf or nan where a number leaves the range of float64.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            if self.columns is not None:
                intercept = intercept + self.columns.centre @ coef
                coef = coef * self.columns.size[:, None]
            if self.targets is not None:
                coef = coef / self.targets.size
                intercept = (intercept - self.targets.centre) / self.targets.size
        return coef, intercept
