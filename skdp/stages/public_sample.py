"""Describe columns by public rows of the same kind, at no cost in budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_array

from skdp._numbers import Array, listed
from skdp.oracle import Columns
from skdp.oracle.public import LONG_ROW

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
