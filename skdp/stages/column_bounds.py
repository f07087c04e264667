"""Bounds of columns that users declare: pairs of numbers, or rows that are public."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_array

from skdp._numbers import Array, listed, shown
from skdp.oracle import Columns
from skdp.oracle.public import LONG_ROW, Moments

TRIM = 0.01  # share of the sample left out of a range at each end, about as of private columns
WIDE = 5.0  # least range around the mean, in sizes
LEAST_ROWS = 20


class PublicSample:
    """Public rows that stand for the private ones: ranges, sizes and second moments of columns.

    Last decade's rows, another site's, a census: given as ``bounds``, they standardise columns at
    no cost, and "whitened" takes its coordinates from them, for which it spends a fifth of its
    budget otherwise. Where they differ from the private rows the fit is less accurate, and as
    private.

    Parameters
    ----------
    X : array or data frame of shape (n_rows, n_features)
        At least 20 rows, **none of them private**. Summaries of them are kept, the rows are not.

    Attributes
    ----------
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
    >>> model = DPRidge(bounds=PublicSample(X[:40]), target_bound=350).fit(X[40:], y[40:])
    >>> sorted({release.kind for release in model.privacy_.releases})
    ['calibration', 'gradient']
    """

    def __init__(self, X: Any) -> None:
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
        low, high = np.minimum(low, mean - WIDE * size), np.maximum(high, mean + WIDE * size)
        self._centred = Columns(low, high, mean, size)
        self._divided = Columns(
            np.minimum(low, 0.0), np.maximum(high, 0.0), 0 * mean, np.hypot(mean, size)
        )
        self._moments = {
            True: _second_moments(self._centred, Z),
            False: _second_moments(self._divided, Z),
        }

    def columns(self, centred: bool) -> Columns:
        """Return ranges, centres and sizes of columns; centres are 0 if columns are not moved."""
        return self._centred if centred else self._divided

    def second_moments(self, centred: bool) -> Array:
        """Return the mean of ``z z'`` over standardised rows z with a last entry 1."""
        return self._moments[centred].copy()

    def check(self, n_features: int | None, names: Sequence[str] | None) -> None:
        """Raise ValueError unless it has these columns, in this order."""
        if n_features is not None and n_features != self.n_features:
            raise ValueError(
                f"bounds: the public sample has {self.n_features} columns, and X has {n_features}. "
                "Nothing was released."
            )
        if self.names and names and list(names) != list(self.names):
            differing = [name for name in self.names if name not in names]
            raise ValueError(
                "bounds: the public sample must have the columns of X in the same order"
                f"{'; not in X: ' + listed(differing) if differing else ''}. Nothing was released."
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


DeclaredBounds = tuple[Array, Array] | PublicSample  # as `declared_bounds` returns them
FORMS = (
    "Give a pair (low, high) of numbers, or of one number for each column; a list with a pair for "
    "each column; or a dict with a pair for each column, by its name or number."
)
BOUNDS = "bounds must be None, or finite numbers with low < high; got {}. " + FORMS


def declared_bounds(
    bounds: Any, n_features: int | None = None, names: Sequence[str] | None = None
) -> DeclaredBounds:
    """Return declared bounds as (low, high), each a number or one number for each column.

    A public sample is returned as it is, if it has these columns.

    Parameters
    ----------
    bounds : tuple (low, high), sequence of pairs, dict, or PublicSample
        As the estimators take it.
    n_features : int or None, default=None
        Number of columns, if it is to agree.
    names : sequence of str or None, default=None
        Names of the columns, empty if they have none; None if they are not known yet.

    Raises
    ------
    ValueError
        If the bounds are of another form, or can be read in two ways.
    """
    if isinstance(bounds, PublicSample):
        bounds.check(n_features, names)
        return bounds
    pairs: Any = bounds
    if isinstance(bounds, Mapping):
        pairs = _pairs_in_order(bounds, n_features, names)
    elif isinstance(bounds, str) or not _is_pair(bounds):
        pairs = np.asarray(_numbers(bounds))
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(BOUNDS.format(shown(bounds)))
    if pairs is bounds:
        low, high = (_numbers(part) for part in bounds)
        if low.shape == high.shape == (2,):
            raise ValueError(
                "bounds: two pairs of numbers can be (low, high) of two columns, or (low, high) "
                "for each of them. Write which: bounds={0: (low, high), 1: (low, high)}, by the "
                "number of the column, or by its name in a data frame."
            )
    else:
        low, high = np.asarray(pairs, dtype=float).T
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ValueError(BOUNDS.format(shown(bounds)))
    for part in (low, high):
        if n_features is not None and part.ndim == 1 and len(part) != n_features:
            raise ValueError(
                f"bounds: {len(part)} bounds were given for {n_features} columns. {FORMS}"
            )
    return low, high


def _numbers(value: Any) -> Array:
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        return np.array(np.nan)


def _is_pair(bounds: Any) -> bool:
    """Whether bounds are a pair of numbers, or of one number for each column."""
    try:
        low, high = (_numbers(part) for part in bounds)
    except (TypeError, ValueError):
        return False
    return low.ndim <= 1 and high.ndim <= 1 and not (np.isnan(low).any() or np.isnan(high).any())


def _pairs_in_order(
    bounds: Mapping[Any, Any], n_features: int | None, names: Sequence[str] | None
) -> Any:
    """Return the pairs of a dict in the order of the columns."""
    pairs = {name: _numbers(pair) for name, pair in bounds.items()}
    wrong = [name for name, pair in pairs.items() if pair.shape != (2,)]
    if wrong or not pairs:
        raise ValueError(
            "bounds must hold a pair (low, high) of numbers for each column; not so for "
            f"{listed(wrong) or 'an empty dict'}."
        )
    if n_features is None or (names is None and any(isinstance(name, str) for name in pairs)):
        return np.array(list(pairs.values()))  # the order of columns is not known yet
    by_number = not any(isinstance(name, str) for name in pairs)
    known: Sequence[Any] = range(n_features) if by_number else list(names or ())
    if not by_number and not names:
        raise ValueError(
            "bounds name columns, and X is no data frame whose columns have names; number the "
            "columns: bounds={0: (low, high), ...}. Nothing was released."
        )
    unknown, missing = [n for n in pairs if n not in known], [n for n in known if n not in pairs]
    if unknown or missing:
        raise ValueError(
            "bounds must hold a pair for every column of X, and for no other"
            f"{'; not in X: ' + listed(unknown) if unknown else ''}"
            f"{'; without a pair: ' + listed(missing) if missing else ''}. Nothing was released."
        )
    return np.array([pairs[name] for name in known])


def declared_columns(
    bounds: DeclaredBounds | None, n_features: int, centred: bool, sparse: bool
) -> Columns | None:
    """Return columns between declared bounds, as if uniform, or those of a sample; costs nothing.

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


def known_moments(bounds: DeclaredBounds | None, centred: bool) -> Moments | None:
    """Return the second moments of standardised columns, None if they are not public."""
    if not isinstance(bounds, PublicSample):
        return None
    return Moments(bounds.second_moments(centred), bounds.n_rows)
