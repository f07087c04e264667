"""Tables and their columns, of whatever library: names, kinds and types, no cells in messages."""

import re
from collections.abc import Sequence
from datetime import UTC
from numbers import Number
from typing import Any

import numpy as np
from scipy import sparse

from skdp._numbers import AnyArray, Array, Indices, Mask, are_numbers, is_real, listed
from skdp.oracle.sources.partitioned import Partitions

# Names of types of polars and pyarrow, which have no ``kind``; pandas' intervals are none of them.
NUMBERS = re.compile(r"u?int\d|float|halffloat|double|bool|decimal")


def refuse_lazy(who: str, X: Any) -> None:
    """Raise ValueError for a frame whose rows have not been computed, or that are elsewhere."""
    if isinstance(X, Partitions):
        raise ValueError(
            f"{who}: this method takes rows in memory; X is a {type(X).__name__}, rows in "
            "partitions. Predict each partition's X where it is read; for a score of them all "
            "call skdp.metrics.evaluate. Nothing was released."
        )
    # Such as a LazyFrame of polars.
    if callable(getattr(X, "collect", None)) and not hasattr(X, "__array__"):
        raise ValueError(
            f"{who}: X is a {type(X).__name__}, which holds no rows yet; pass X.collect(). Nothing "
            "was released."
        )


def numbered_columns(
    who: str, parameter: str, columns: Sequence[int | str], names: Sequence[str] | None
) -> list[int]:
    """Return columns that a parameter names, by number; numbers stay as they are.

    Parameters
    ----------
    who, parameter : str
        The estimator and its parameter, for refusals.
    columns : sequence of int or of str
    names : sequence of str or None
        Of all columns; None where they are not known yet, so that columns that are named are none.
    """
    numbers = [one for one in columns if not isinstance(one, str)]
    if len(numbers) == len(columns):
        return numbers
    if names is None:
        return []
    if not names:
        raise ValueError(
            f"{who}: {parameter} name columns, and X is not a data frame with named columns; "
            "number the columns, from 0 on. Nothing was released."
        )
    unknown = [name for name in columns if name not in names]
    if unknown:
        raise ValueError(
            f"{who}: {parameter} must name columns of X, or number all of them; not in X: "
            f"{listed(unknown)}. Nothing was released."
        )
    return [names.index(str(name)) for name in columns]


def as_table(who: str, X: Any) -> Any:
    """Return a data frame as it is, anything else as an array with rows and columns.

    Raises
    ------
    ValueError
        If it is lazy or sparse, has no rows or columns, or not two dimensions.
    """
    refuse_lazy(who, X)
    if sparse.issparse(X):
        raise ValueError(f"{who}: sparse input is not supported; pass X.toarray().")
    X = np.asarray(X) if names_of(X) is None else X
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise ValueError(f"{who}: Complex data not supported; X must hold real numbers.")
    shape = X.shape
    if len(shape) != 2:
        raise ValueError(
            f"{who}: X must be a data frame or have two dimensions, rows and columns; got "
            f"{len(shape)}. Reshape your data: X.reshape(-1, 1) if there is one column."
        )
    for count, what in zip(shape, ("sample", "feature"), strict=True):
        if count < 1:
            raise ValueError(
                f"{who}: 0 {what}(s) (shape={shape}) while a minimum of 1 is required."
            )
    return X


def names_of(X: Any) -> list[Any] | None:
    """Names of the columns of a data frame or Arrow table; None for anything else."""
    if _is_arrow(X):
        return list(X.column_names)
    columns = getattr(X, "columns", None)
    if columns is None or not hasattr(X, "__getitem__") or callable(columns):
        return None
    return list(columns)


def _is_arrow(X: Any) -> bool:
    """Whether X is a table of pyarrow, whose ``columns`` are no names."""
    return hasattr(X, "column_names") and hasattr(X, "schema")


def _type_of(X: Any, place: int) -> Any:
    """Return the type of a column, an object of whatever library."""
    if names_of(X) is None:
        return getattr(X, "dtype", None)
    return list(X.schema.types if _is_arrow(X) else X.dtypes)[place]


def column(X: Any, place: int) -> AnyArray:
    """Return a column of a data frame, Arrow table or array as an array."""
    names = names_of(X)
    if _is_arrow(X):
        return np.asarray(X.column(place))
    if sparse.issparse(X):
        return np.asarray(X.tocsc()[:, [place]].toarray()[:, 0])
    if names is None:
        return np.asarray(X)[:, place]
    return np.asarray(X.iloc[:, place] if hasattr(X, "iloc") else X[names[place]])


def column_kind(X: Any, place: int) -> str:
    """Return "dates", "numbers", "text" or "objects" for a column, from its type alone."""
    dtype = _type_of(X, place)
    kind, name = str(getattr(dtype, "kind", "O")), str(dtype).lower()
    if kind in "mM" or name.startswith(("date", "duration", "time", "period")):
        return "dates"
    if kind in "US" or name.startswith(("str", "utf8", "large_string")):
        return "text"
    return "numbers" if kind in "biuf" or NUMBERS.match(name) else "objects"


def is_categorical(X: Any, place: int) -> bool:
    """Whether the type of a column has levels, as pandas' category or Arrow's dictionary."""
    return str(_type_of(X, place)).lower().startswith(("categor", "enum", "dictionary"))


def columns_of_dates(X: Any) -> list[Any]:
    """Columns that hold dates, periods or durations by their type."""
    names = names_of(X)
    if names is None:
        return [0] if getattr(getattr(X, "dtype", None), "kind", "") in tuple("mM") else []
    return [name for place, name in enumerate(names) if column_kind(X, place) == "dates"]


def columns_of_text(X: Any) -> list[Any]:
    """Columns with a cell that is no number."""
    names = names_of(X)
    if names is None and np.ndim(X) != 2:
        return []
    places = range(np.shape(X)[1]) if names is None else range(len(names))
    entries = []
    for place in places:
        if names is not None and column_kind(X, place) == "numbers":
            continue
        try:
            column(X, place).astype(np.float64)
        except Exception:  # a cell runs code of its own when it is converted
            entries.append(place if names is None else names[place])
    return entries


def not_numbers(X: Any, names: list[Any]) -> str:
    """Say in a message what columns of text or categories hold in place of numbers."""
    known = names_of(X)
    levels = [] if known is None else [n for n in names if is_categorical(X, known.index(n))]
    texts = [name for name in names if name not in levels]
    entries = []
    if texts:
        entries.append(f"text where numbers are needed, in {columns_in_words(texts)}")
    if levels:
        entries.append(
            f"categories where numbers are needed, in {columns_in_words(levels)}, whose levels "
            "were learnt from the rows unless you declared them: a rare one would give somebody "
            "away, so the type's levels are not used"
        )
    return "; and ".join(entries)


def columns_in_words(columns: list[Any]) -> str:
    """Name columns in a message."""
    return f"column{'s' if len(columns) > 1 else ''} {listed(columns)}"


def is_missing(cell: Any) -> bool:
    """Whether a cell is None, nan, or what a data frame has in their place."""
    nothing = type(cell).__name__ in ("NAType", "NaTType")
    return cell is None or nothing or (isinstance(cell, float) and cell != cell)


def numbers_of(X: Any, place: int) -> Array:
    """Return a column as numbers, nan where one is missing.

    Raises
    ------
    TypeError, ValueError
        If a cell is no number.
    """
    values = column(X, place)
    if values.dtype == object:
        values = np.array([np.nan if is_missing(cell) else cell for cell in values.tolist()])
        if not are_numbers(values):
            raise TypeError("no numbers")
    return np.asarray(values.astype(np.float64))


def days_of(X: Any, place: int, origin: str) -> Array:
    """Return dates as days since a day, or durations in days; nan where one is missing.

    Raises
    ------
    TypeError, ValueError
        If a cell is neither.
    """
    values = column(X, place)
    if values.dtype.kind == "m":
        since = values
    else:
        if values.dtype.kind != "M":  # as pandas gives periods, and dates with a time zone
            values = np.fromiter(map(_in_utc, values.tolist()), "datetime64[us]", len(values))
        since = values.astype("datetime64[us]") - np.datetime64(origin)
    return np.where(np.isnat(since), np.nan, since / np.timedelta64(1, "D"))


def number_or_days(value: Any, origin: str) -> float:
    """Return a number as it is, a date as days since a day, and nan for anything else."""
    if is_real(value):
        return float(value)
    try:
        day = np.datetime64(value if isinstance(value, str) else _in_utc(value), "us")
    except (TypeError, ValueError):
        return float("nan")
    return float((day - np.datetime64(origin)) / np.timedelta64(1, "D"))


def _in_utc(cell: Any) -> Any:
    """Return a date without a time zone; numpy would warn, once for each that has one."""
    if is_missing(cell):
        return np.datetime64("NaT")
    if isinstance(cell, Number):  # numpy would take it for microseconds
        raise TypeError("no date")
    cell = getattr(cell, "start_time", cell)
    zoned = getattr(cell, "tzinfo", None) is not None
    return cell.astimezone(UTC).replace(tzinfo=None) if zoned else cell


def codes_of(X: Any, place: int, labels: list[Any]) -> tuple[Indices, Mask]:
    """Place of each cell of a column among labels, -1 for none, and which cells are missing."""
    places = {label: number for number, label in enumerate(labels)}

    def code(cell: Any) -> int:
        # A list and the like is no label; what the other cells become must not follow from it.
        try:
            return places.get(cell, -1)
        except Exception:  # of any type, by code of the cell's own
            return -1

    values, where = column(X, place), None
    if values.dtype.kind in "biufSU":  # a cell of an array is as any other of its value
        values, where = np.unique(values, return_inverse=True)
    cells = values.tolist()
    missing = np.array([is_missing(cell) for cell in cells], dtype=bool)
    codes = np.array([code(cell) for cell in cells], dtype=np.int64)
    return (codes, missing) if where is None else (codes[where], missing[where])


def kind_of_objects(X: Any, place: int) -> str:
    """Return "text" or "numbers" if all known cells of a column of objects are that."""
    known = [cell for cell in column(X, place).tolist() if not is_missing(cell)]
    for kind, types in (("text", str), ("numbers", int | float | np.number)):
        if known and all(isinstance(cell, types) for cell in known):
            return kind
    return "objects"


def are_labels(labels: Any) -> bool:
    """Whether these can be the labels of a column: at least two, and all different."""
    if isinstance(labels, str) or not np.iterable(labels):
        return False
    entries = list(labels)
    return len(entries) >= 2 and len(set(entries)) == len(entries)


def is_dask(X: Any) -> bool:
    """Whether X is a collection of dask's; dask is not imported for it."""
    return hasattr(X, "__dask_graph__") and type(X).__module__.partition(".")[0].startswith("dask")
