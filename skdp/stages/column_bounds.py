"""Bounds of columns that users declare: pairs of numbers, or rows that are public."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skdp._numbers import Array, listed, shown
from skdp.oracle import Columns
from skdp.oracle.public import Moments
from skdp.stages.public_sample import PublicSample

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
