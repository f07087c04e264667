"""Map records by public numbers: clip each column to a range, then shift and divide."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from skdp._numbers import AnyArray, Array, Mask
from skdp._oracle.sources.row_blocks import AnyRows, block_rows, slices

Map = Callable[..., Iterable[Any]]  # as the builtin map


@dataclass(frozen=True, eq=False)
class Columns:
    """Range, centre and scale of columns: ``x`` becomes ``(clip(x, low, high) - centre) / scale``.

    It acts on single records by public numbers, so it releases nothing.

    Parameters
    ----------
    low, high : array of shape (n_columns,)
        Finite. Values outside are clipped.
    centre : array of shape (n_columns,)
        Finite.
    scale : array of shape (n_columns,)
        Positive and finite.
    skewness : array of shape (n_columns,), default=None
        Estimated from the values within the range. None if it was not estimated.
    may_be_constant : array of bool of shape (n_columns,), default=None
        Columns that, given the noise, may have only one value. None if none was searched for.
    """

    low: Array
    high: Array
    centre: Array
    scale: Array
    skewness: Array | None = None
    may_be_constant: Mask | None = None

    def __post_init__(self) -> None:
        numbers = [np.atleast_1d(one) for one in (self.low, self.high, self.centre, self.scale)]
        if {one.shape for one in numbers} != {(len(numbers[0]),)}:
            raise ValueError("Columns: all fields must have one number for each column.")
        table: Array = np.array(numbers, dtype=np.float64)
        table.setflags(write=False)
        for name, values in zip(("low", "high", "centre", "scale"), table, strict=True):
            object.__setattr__(self, name, values)
        if not (np.isfinite(table).all() and (self.scale > 0).all()):
            raise ValueError("Columns: numbers must be finite, and scales positive.")
        if (self.low > self.high).any():
            raise ValueError("Columns: low must not exceed high.")

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.scale)

    @property
    def is_point(self) -> Mask:
        """Which columns are clipped to a single value, so that they determine no coefficient."""
        return np.asarray(self.low == self.high)

    @property
    def keeps_zeros(self) -> bool:
        """Whether 0 stays 0, so that `apply` can leave sparse columns sparse."""
        return not (self.centre.any() or (self.low > 0).any() or (self.high < 0).any())

    @property
    def unclipped(self) -> Columns:
        """The same centres and scales, and no range."""
        everything = np.full(self.n_columns, np.finfo(np.float64).max)
        return Columns(-everything, everything, self.centre, self.scale)

    def apply(self, X: AnyRows, spread: Map = map, out: AnyArray | None = None) -> AnyRows:
        """Return the standardised columns as an array or CSR matrix of the same type.

        Parameters
        ----------
        X : array or CSR of shape (n_rows, n_columns), float32 or float64, finite
            Sparse columns keep their zeros: ranges have to hold 0, and centres to be 0.
        spread : callable, default=map
            Maps a function over parts of the rows.
        out : array of the shape and type of X, default=None
            Where dense columns are put. None for a new array.

        Returns
        -------
        array or CSR of the shape and type of X

        Raises
        ------
        ValueError
            If sparse columns would not keep their zeros.
        """
        in_units = self.for_type(X.dtype)
        if sparse.issparse(X):
            if not self.keeps_zeros:
                raise ValueError("Columns: sparse columns can be neither centred nor moved from 0.")
            return in_units(X)
        result = np.empty(X.shape, dtype=X.dtype) if out is None else out
        n_rows, n_columns = X.shape
        step = max(1, block_rows(n_rows, n_columns, is_sparse=False, is_copied=True))
        blocks = list(slices(0, n_rows, step))
        list(spread(in_units, [X[rows] for rows in blocks], [result[rows] for rows in blocks]))
        return result

    def for_type(self, dtype: npt.DTypeLike) -> ColumnMap:
        """Return the map of rows to standardised rows of a type, float32 or float64.

        Returns
        -------
        ColumnMap
            Its centres and scales are rounded to that type.
        """
        return ColumnMap(self, np.dtype(dtype))


class ColumnMap:
    """Standardises rows, a block at a time. Its results are finite in their type.

    Parameters
    ----------
    columns : Columns
    dtype : dtype
        Of the result.
    """

    def __init__(self, columns: Columns, dtype: np.dtype[Any]) -> None:
        self._dtype, self._columns = dtype, columns
        self._largest = largest = float(np.finfo(dtype).max)
        # No difference from the centre leaves the range of the type, whatever the range is.
        farthest = largest * (1 - 2.0**-20)
        with np.errstate(over="ignore", under="ignore"):
            middle = np.clip(columns.centre, -farthest, farthest)
            low = np.maximum(columns.low, middle - farthest)
            high = np.minimum(columns.high, middle + farthest)
            numbers = np.clip([low, high, middle, columns.scale], -largest, largest)
            # No number other than 0 becomes 0.
            least = np.finfo(dtype).tiny
            is_small = (numbers != 0) & (np.abs(numbers) < least)
            numbers[is_small] = np.copysign(least, numbers[is_small])
            self._low, self._high, self._centre, self._scale = numbers.astype(dtype)
            # A quotient must not become inf: inf times 0 shows that a record is there.
            reach = np.maximum(np.abs(self._low - self._centre), np.abs(self._high - self._centre))
            self._overflows = bool((reach / self._scale > largest / 2).any())
        # To multiply is quicker. Near the ends of float64's range that would lose digits.
        self._factor: AnyArray | None = None  # None if multiplication will not do
        multiplies = dtype == np.float64 and not self._overflows
        if multiplies and ((self._scale > 1e-300) & (self._scale < 1e300)).all():
            self._factor = 1.0 / self._scale

    @functools.cached_property
    def zeros(self) -> Array:
        """The image of a row of zeros."""
        if self._columns.keeps_zeros:
            return np.zeros(self._columns.n_columns)
        return np.asarray(self(np.zeros((1, self._columns.n_columns)))[0], dtype=np.float64)

    def __call__(self, X: AnyRows, out: AnyArray | None = None) -> AnyRows:
        """Return the standardised rows. They, or their entries, are put into ``out`` if given.

        CSR rows are returned without :attr:`zeros`, which have to be added to each of them.
        """
        if sparse.issparse(X):
            return self._sparse(X, out)
        out = np.empty(X.shape, self._dtype) if out is None else out
        # Quicker than np.clip, which does not use the processor's vectors here.
        np.maximum(X, self._low, out=out)
        np.minimum(out, self._high, out=out)
        out -= self._centre
        with np.errstate(over="ignore", under="ignore"):
            if self._factor is not None:
                out *= self._factor
            else:
                out /= self._scale
        if self._overflows:
            np.clip(out, -self._largest, self._largest, out=out)
        return out

    def _sparse(self, X: sparse.csr_array, out: AnyArray | None) -> sparse.csr_array:
        data = np.empty(len(X.data), self._dtype) if out is None else out
        own = np.empty_like(data)

        def of_entries(values: AnyArray) -> AnyArray:
            # Indices are valid: with mode "raise" they would be checked by way of a copy.
            return np.take(values, X.indices, mode="clip", out=own)

        np.maximum(X.data, of_entries(self._low), out=data)
        np.minimum(data, of_entries(self._high), out=data)
        of_zero = np.clip(np.zeros((), self._dtype), self._low, self._high)
        if of_zero.any():  # an entry of 0 stays 0
            data -= of_entries(of_zero)
        with np.errstate(over="ignore", under="ignore"):
            data /= of_entries(self._scale)
        if self._overflows:
            np.clip(data, -self._largest, self._largest, out=data)
        rows = sparse.csr_array(X.shape, dtype=self._dtype)
        rows.data, rows.indices, rows.indptr = data, X.indices, X.indptr
        return rows


@dataclass(frozen=True, eq=False)
class Weights:
    """Scale of the weights of records: ``w`` becomes ``min(w, scale) / scale``, at most 1.

    It acts on single records by public numbers, so it releases nothing.

    Parameters
    ----------
    scale : float
        Positive. Larger weights are clipped to it.
    by_label : tuple of float, default=()
        Public factors in [0, 1] for the labels of a classifier, empty for none.
    is_clipped : bool, default=True
        Whether larger weights are clipped: not without noise.
    """

    scale: float
    by_label: tuple[float, ...] = ()
    is_clipped: bool = True

    def apply(self, weights: Array | None, targets: AnyArray) -> Array | None:
        """Return the weights in units of the scale, times the factors of the labels.

        Parameters
        ----------
        weights : array of shape (n_rows,) or None
            Not negative. None for 1 throughout.
        targets : array, first axis n_rows
            As the loss wants them.

        Returns
        -------
        array of shape (n_rows,) in [0, 1], or None
        """
        factors = self.of_labels(targets)
        if weights is None:
            return factors
        if self.is_clipped:
            weights = np.minimum(weights, self.scale)
        weights = weights / self.scale
        return weights if factors is None else weights * factors

    def of_labels(self, targets: AnyArray) -> Array | None:
        """Return the factor of each record's label. None if there are none.

        Returns
        -------
        array of shape (n_rows,), or None
        """
        if not self.by_label:
            return None
        if targets.ndim == 2:  # two classes are a column of 0 and 1, more are columns of their own
            n_labels = len(self.by_label)  # offsets follow behind a column of codes
            is_column = n_labels == 2 or targets.shape[1] != n_labels
            targets = targets[:, 0] if is_column else targets.argmax(axis=1)
        return np.asarray(np.array(self.by_label)[targets.astype(np.intp)])


@dataclass(frozen=True, eq=False)
class Scaling:
    """Standardisation of the records of a fit, by public numbers.

    Attributes
    ----------
    columns : Columns or None
        Of X. None for raw X.
    targets : Columns or None
        Of the targets of a regression, one for each output.
    link : str, default="identity"
        Of the loss: with "log", predictors are logarithms of means.
    weights : Weights or None, default=None
        Of the records. None for raw weights.
    """

    columns: Columns | None = None
    targets: Columns | None = None
    link: str = "identity"
    weights: Weights | None = None

    @property
    def unclipped(self) -> Scaling:
        """The same centres and scales, and no ranges. Weights are those of before."""
        columns, targets = self.columns, self.targets
        return replace(
            self,
            columns=columns and columns.unclipped,
            targets=targets and targets.unclipped,
        )

    @property
    def predictors(self) -> tuple[Array, Array] | None:
        """Offset and unit of linear predictors, each of shape (K,), by those of the targets."""
        if self.targets is None:
            return None
        centre, scale = self.targets.centre, self.targets.scale
        return (np.log(centre), scale / centre) if self.link == "log" else (centre, scale)

    def has_units_of(self, other: Scaling) -> bool:
        """Whether the other has the same centres and scales.

        Returns
        -------
        bool
        """
        pairs = (self.columns, other.columns), (self.targets, other.targets)
        return all(
            one is two
            or (one and two and np.array_equal((one.centre, one.scale), (two.centre, two.scale)))
            for one, two in pairs
        )

    def of_coefficients(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Return coefficients for standardised records with the same predictions.

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
                coef = coef * self.columns.scale[:, None]
            if self.predictors is not None:
                offset, unit = self.predictors
                coef, intercept = coef / unit, (intercept - offset) / unit
        return coef, intercept
