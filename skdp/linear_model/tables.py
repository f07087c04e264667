"""Tables and their columns, of whatever library: names, kinds and types, no cells in messages."""

from typing import Any

import numpy as np

from skdp._numbers import AnyArray, listed


def is_lazy(X: Any) -> bool:
    """Whether X is a frame whose rows have not been computed, such as a polars LazyFrame."""
    return callable(getattr(X, "collect", None)) and not hasattr(X, "__array__")


def names_of(X: Any) -> list[Any] | None:
    """Names of the columns of a data frame; None for anything else."""
    columns = getattr(X, "columns", None)
    if columns is None or not hasattr(X, "__getitem__") or callable(columns):
        return None
    return list(columns)


def column(X: Any, place: int) -> AnyArray:
    """Return a column of a data frame or array as an array."""
    names = names_of(X)
    if names is None:
        return np.asarray(X)[:, place]
    return np.asarray(X.iloc[:, place] if hasattr(X, "iloc") else X[names[place]])


def kind_of(X: Any, place: int) -> str:
    """Return "dates", "numbers" or "objects" for a column, from its type alone."""
    dtype: Any = getattr(X, "dtype", None)
    if names_of(X) is not None:
        types = X.dtypes
        dtype = types.iloc[place] if hasattr(types, "iloc") else list(types)[place]
    kind = str(getattr(dtype, "kind", "O"))
    if kind in "mM" or str(dtype).startswith(("Date", "Duration", "Time", "timestamp")):
        return "dates"
    numbers = str(dtype).startswith(("Int", "UInt", "Float", "Bool", "Decimal"))
    return "numbers" if kind in "biuf" or numbers else "objects"


def columns_of_dates(X: Any) -> list[Any]:
    """Columns that hold dates or durations by their type."""
    names = names_of(X)
    if names is None:
        return [0] if getattr(getattr(X, "dtype", None), "kind", "") in tuple("mM") else []
    if not hasattr(X, "dtypes"):
        return []
    return [name for place, name in enumerate(names) if kind_of(X, place) == "dates"]


def columns_of_text(X: Any) -> list[Any]:
    """Columns with a cell that is no number."""
    names = names_of(X)
    if names is None and np.ndim(X) != 2:
        return []
    places = range(np.shape(X)[1]) if names is None else range(len(names))
    found = []
    for place in places:
        if names is not None and kind_of(X, place) == "numbers":
            continue
        try:
            column(X, place).astype(np.float64)
        except (TypeError, ValueError):
            found.append(place if names is None else names[place])
    return found


def columns_in_words(columns: list[Any]) -> str:
    """Name columns in a message."""
    return f"column{'s' if len(columns) > 1 else ''} {listed(columns)}"
