"""Public facts about columns that users declare: ranges, a bound on rows, or public rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_array

from skdp._numbers import (
    LARGEST_BOUND,
    LEAST_BOUND,
    Array,
    is_real,
    listed,
    require,
    require_bound,
    shown,
)
from skdp._oracle import Columns
from skdp._oracle.public import LONG_ROW, Moments
from skdp._stages.scaling.distributions import RANGE_IN_SCALES

TRIM = 0.01  # share of the sample left out of a range at each end, about as of private columns
LEAST_ROWS = 20
TargetDeclaration = float | tuple[float, float] | None  # a bound, or both ends


class PublicSample:
    """Public rows that stand for the private ones: ranges, sizes and second moments of columns.

    Examples are the rows of an earlier decade, of another site, or of a census. Given as
    ``scaling``, they standardise columns at no cost, and "whitened" computes its coordinates from
    them, which otherwise costs a part of the budget. If they differ from the private rows, the fit
    is less accurate but equally private.

    Parameters
    ----------
    X : array or data frame of shape (n_rows, n_features)
        At least 20 rows, **none of them private**. Summaries of them are kept, the rows are not.
    target : float, pair (low, high), or None, default=None
        Public range of the targets of a regression, in their unit: both ends, or a bound on their
        absolute value. Targets outside are clipped, predictions keep to the range, and no budget is
        spent on it, except that quantile regression still estimates the scale of its targets. None
        estimates the range as ``scaling="auto"`` does.
    y : array of shape (n_rows,) or None, default=None
        Public targets, for a ``prior``. With them the rows are kept.

    Attributes
    ----------
    rows, targets : array or None
        X and y, if targets were given.
    n_rows, n_features : int
    names : tuple of str or None
        Of the columns of a data frame.

    References
    ----------
    Whitening and bounds by public second moments: arXiv:2508.18037 (linear regression).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidge, PublicSample
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPRidge(scaling=PublicSample(X[:40], target=350)).fit(X[40:], y[40:])
    >>> sorted({release.kind for release in model.privacy_.releases})
    ['calibration', 'gradient']
    """

    def __init__(self, X: Any, target: TargetDeclaration = None, *, y: Any = None) -> None:
        self.target, self.targets = target, None if y is None else np.asarray(y)
        self.rows = None if y is None else X
        names = getattr(X, "columns", None)
        Z = check_array(
            X, dtype=np.float64, ensure_min_samples=LEAST_ROWS, estimator="PublicSample"
        )
        self.names = None if names is None else tuple(str(name) for name in names)
        self.n_rows, self.n_features = Z.shape
        low, high = np.quantile(Z, [TRIM, 1 - TRIM], axis=0)
        inside = np.clip(Z, low, high)
        mean, size = inside.mean(axis=0), inside.std(axis=0)
        # A column that the trimmed sample shows one value of.
        size = np.where(size > 0, size, Z.std(axis=0))
        size = np.where(size > 0, size, np.maximum(np.abs(mean), 1.0))
        half = RANGE_IN_SCALES * size
        low, high = np.minimum(low, mean - half), np.maximum(high, mean + half)
        from_0 = np.minimum(low, 0.0), np.maximum(high, 0.0)
        self._columns = (
            Columns(*from_0, 0 * mean, np.hypot(mean, size)),
            Columns(low, high, mean, size),
        )
        self._moments = [_second_moments(columns, Z) for columns in self._columns]

    def columns(self, centred: bool) -> Columns:
        """Return ranges, centres and sizes of columns. Centres are 0 if columns are not moved."""
        return self._columns[centred]

    def second_moments(self, centred: bool) -> Moments:
        """Return the mean of ``z z'`` over standardised rows z with a last entry 1."""
        return Moments(self._moments[centred].copy(), self.n_rows)

    def check(self, n_features: int | None, names: Sequence[str] | None) -> None:
        """Raise ValueError unless it has these columns, in this order."""
        if n_features is not None and n_features != self.n_features:
            raise ValueError(
                f"PublicSample: the sample has {self.n_features} columns, and X has {n_features}. "
                "Nothing was released."
            )
        if self.names and names and list(names) != list(self.names):
            differing = [name for name in self.names if name not in names]
            raise ValueError(
                "PublicSample: the sample must have the columns of X in the same order"
                f"{'. Not in X: ' + listed(differing) if differing else ''}. Nothing was released."
            )

    def __repr__(self) -> str:
        return f"PublicSample({self.n_rows} rows, {self.n_features} columns)"


def _second_moments(columns: Columns, Z: Array) -> Array:
    """Mean of ``z z'`` over standardised rows, long ones scaled down as a fit does."""
    Z = np.column_stack([columns.apply(Z), np.ones(len(Z))])
    lengths = np.linalg.norm(Z[:, :-1], axis=1)
    longest = LONG_ROW * math.sqrt(Z.shape[1])
    Z[:, :-1] *= np.minimum(1.0, longest / np.maximum(lengths, 1e-300))[:, None]
    return np.asarray(Z.T @ Z / len(Z))


SCALINGS = ("auto", "private", "none")  # words that the parameter ``scaling`` takes
DeclaredBounds = tuple[Array, Array] | PublicSample  # as `declared_bounds` returns them


class PublicRange(BaseEstimator):
    """Public ranges of columns or targets, as a value of ``scaling``: they cost no budget.

    Columns are standardised as if values were evenly spread in the range. Values outside are
    clipped. The ranges must not follow from the rows. With a range of targets only, columns are
    scaled as by ``scaling="auto"``.

    Parameters
    ----------
    low, high : float, array of shape (n_features,), or None, default=None
        Ends of the ranges, in the units of the columns: a number for all of them, or one for each.
    by_column : dict or sequence of pairs, or None, default=None
        In place of both: a pair (low, high) for each column, by its name in a data frame or by its
        number, or in order: ``{"age": (0, 120), "weight": (0, 300)}``.
    target : float, pair (low, high), or None, default=None
        Public range of the targets of a regression, in their unit: both ends, or a bound on their
        absolute value. Targets outside are clipped, predictions keep to the range, and no budget is
        spent on it, except that quantile regression still estimates the scale of its targets. None
        estimates the range as ``scaling="auto"`` does.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidge, PublicRange
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPRidge(scaling=PublicRange(-0.2, 0.2, target=350)).fit(X, y)
    >>> model.set_params(scaling__high=0.3).scaling
    PublicRange(high=0.3, low=-0.2, target=350)
    """

    def __init__(
        self,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        *,
        by_column: Mapping[Any, ArrayLike] | Sequence[ArrayLike] | None = None,
        target: TargetDeclaration = None,
    ) -> None:
        self.low = low
        self.high = high
        self.by_column = by_column
        self.target = target

    @property
    def has_columns(self) -> bool:
        """Whether it is about columns, and not only about targets."""
        declared = self.low, self.high, self.by_column
        return self.target is None or any(part is not None for part in declared)

    def limits(
        self, n_features: int | None = None, names: Sequence[str] | None = None
    ) -> tuple[Array, Array]:
        """Return both ends, each a number or one number for each column.

        Parameters
        ----------
        n_features : int or None, default=None
            Number of columns, if it is to agree.
        names : sequence of str or None, default=None
            Names of the columns, empty if they have none. None if they are not known yet.

        Raises
        ------
        ValueError
            If the ends are not finite numbers with low < high, or do not fit the columns.
        """
        if self.by_column is None:
            low, high = _numbers(self.low), _numbers(self.high)
        elif self.low is not None or self.high is not None:
            raise ValueError("PublicRange takes low and high, or by_column, got both.")
        else:
            table = _numbers(self.by_column)
            if isinstance(self.by_column, Mapping):
                table = _pairs_in_order(self.by_column, n_features, names)
            low, high = table.T if table.ndim == 2 and table.shape[1] == 2 else (table, table)
        is_valid = all(end.ndim <= 1 and np.isfinite(end).all() for end in (low, high))
        fits = low.ndim == 0 or high.ndim == 0 or len(low) == len(high)
        if not (is_valid and fits and (low < high).all()):
            raise ValueError(
                "PublicRange needs finite numbers with low < high, one for all columns or one for "
                f"each, or by_column with a pair for each, got {shown(self)}."
            )
        for end in (low, high):
            if n_features is not None and end.ndim == 1 and len(end) != n_features:
                raise ValueError(
                    f"PublicRange: {len(end)} ends were given for {n_features} columns. Give one "
                    "number for all columns, or one for each. Nothing was released."
                )
        return low, high


class RowNorm(BaseEstimator):
    """Public bound on the length of rows, as a value of ``scaling``: columns stay as they are.

    Longer rows are scaled down to the bound, in ``fit`` and in ``predict``, and no budget is spent
    on ranges of columns or targets.

    Parameters
    ----------
    norm : float
        Bound on a row's L2 norm, without the intercept, from 1e-50 to 1e50.
    target : float, pair (low, high), or None, default=None
        Public range of the targets of a regression, in their unit: both ends, or a bound on their
        absolute value. Targets outside are clipped, predictions keep to the range, and no budget is
        spent on it. None expects targets of about unit size.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidge, RowNorm
    >>> X, y = load_diabetes(return_X_y=True)
    >>> DPRidge(scaling=RowNorm(0.3, target=350)).fit(X, y).row_bound_
    0.3
    """

    def __init__(self, norm: float, target: TargetDeclaration = None) -> None:
        self.norm = norm
        self.target = target


def check_scaling(scaling: object) -> None:
    """Raise ValueError unless this is a value of the parameter ``scaling``, itself in order."""
    declared_targets(scaling)
    if isinstance(scaling, PublicRange):
        declared_bounds(scaling)
    elif isinstance(scaling, RowNorm):
        require_bound("RowNorm: norm", scaling.norm)
    elif not isinstance(scaling, PublicSample):
        allowed = (
            "be 'auto', 'private', 'none', PublicRange(low, high), PublicSample(rows) or "
            "RowNorm(norm)"
        )
        require("scaling", scaling, allowed, isinstance(scaling, str) and scaling in SCALINGS)


def declared_bounds(
    scaling: object, n_features: int | None = None, names: Sequence[str] | None = None
) -> DeclaredBounds | None:
    """Return the ranges of columns that ``scaling`` declares, None if it declares none.

    Parameters
    ----------
    scaling : str, PublicRange, PublicSample or RowNorm
        A sample is returned as it is.
    n_features, names
        As in `PublicRange.limits`.

    Raises
    ------
    ValueError
        If they do not fit the columns.
    """
    if isinstance(scaling, PublicSample):
        scaling.check(n_features, names)
        return scaling
    if isinstance(scaling, PublicRange) and scaling.has_columns:
        return scaling.limits(n_features, names)
    return None


def declared_targets(scaling: object) -> tuple[float, float] | None:
    """Return the range of targets that ``scaling`` declares, None if it declares none.

    Raises
    ------
    ValueError
        If it is no bound or pair of ends, or one whose square is beyond float64.
    """
    target = getattr(scaling, "target", None)
    if target is None:
        return None
    limits = _numbers([-target, target] if is_real(target) else target)
    is_pair = limits.shape == (2,) and bool((np.abs(limits) <= LARGEST_BOUND).all())
    if not is_pair or limits[1] - limits[0] < 2 * LEAST_BOUND:
        raise ValueError(
            f"{type(scaling).__name__}: target must be None, a positive bound on the absolute "
            "value of targets, or a pair (low, high) with low < high, of sizes from "
            f"{LEAST_BOUND:g} to {LARGEST_BOUND:g}, got {shown(target)}."
        )
    return float(limits[0]), float(limits[1])


def _numbers(value: Any) -> Array:
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        return np.array(np.nan)


def _pairs_in_order(
    by_column: Mapping[Any, Any], n_features: int | None, names: Sequence[str] | None
) -> Array:
    """Return the pairs of a dict in the order of the columns."""
    pairs = {name: _numbers(pair) for name, pair in by_column.items()}
    wrong = [name for name, pair in pairs.items() if pair.shape != (2,)]
    if wrong or not pairs:
        raise ValueError(
            "PublicRange: by_column must hold a pair (low, high) of numbers for each column. Not "
            f"so for {listed(wrong) or 'an empty dict'}."
        )
    if n_features is None or (names is None and any(isinstance(name, str) for name in pairs)):
        return np.array(list(pairs.values()))  # the order of columns is not known yet
    by_number = not any(isinstance(name, str) for name in pairs)
    known: Sequence[Any] = range(n_features) if by_number else list(names or ())
    if not by_number and not names:
        raise ValueError(
            "PublicRange: by_column names columns, and X is not a data frame with named "
            "columns. Number the columns: by_column={0: (low, high), ...}. Nothing was released."
        )
    unknown, missing = [n for n in pairs if n not in known], [n for n in known if n not in pairs]
    if unknown or missing:
        raise ValueError(
            "PublicRange: by_column must hold a pair for every column of X, and for no other"
            f"{'. Not in X: ' + listed(unknown) if unknown else ''}"
            f"{'. Without a pair: ' + listed(missing) if missing else ''}. Nothing was released."
        )
    return np.array([pairs[name] for name in known])


def declared_columns(
    bounds: DeclaredBounds | None, n_features: int, centred: bool, sparse: bool
) -> Columns | None:
    """Return columns between declared bounds, as if uniform, or those of a sample, costs nothing.

    Sparse columns whose bounds include 0 keep the centre 0, as most of their values are 0.
    """
    if bounds is None:
        return None
    if isinstance(bounds, PublicSample):
        return bounds.columns(centred)
    low, high = (np.broadcast_to(part, n_features).astype(float) for part in bounds)
    moved = np.full(n_features, centred)
    if sparse:
        moved &= (low > 0) | (high < 0)
    low = np.where(moved, low, np.minimum(low, 0.0))
    high = np.where(moved, high, np.maximum(high, 0.0))
    centre = np.where(moved, low / 2 + high / 2, 0.0)
    scale = (high / 2 - low / 2) / math.sqrt(3)
    return Columns(low, high, centre, scale)
