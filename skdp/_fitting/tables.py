"""Tables and their columns, of whatever library: names, kinds and types, no cells in messages."""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, time, timedelta
from decimal import Decimal
from numbers import Number, Real
from typing import Any

import numpy as np
from scipy import sparse

from skdp._numbers import AnyArray, Array, Indices, Mask, Table, is_real, listed
from skdp._oracle.sources.partitioned import Partitions


@dataclass(frozen=True)
class Kind:
    """Cells of one kind. The kind of a column is public, as types are.

    Attributes
    ----------
    name : str
        In messages.
    codes : str
        Kinds of NumPy's types.
    types : tuple of type
        Of cells in a column of objects, their subclasses included.
    named : str
        Pattern of names of types of other libraries, at whose columns no cell is looked at.
    remedy : str
        How to make numbers of such cells.
    """

    name: str
    codes: str = ""
    types: tuple[type, ...] = ()
    named: str = "$"
    remedy: str = ""


FIRST_DAY = np.datetime64("2000-01-01")  # from which the days of dates are counted
AS_DAYS = (
    "Turn dates into numbers, such as days since a day that you choose beforehand, or let "
    "skdp.DPTabularPreprocessor do it."
)
TEXT = (
    "If they are numbers written as text, convert them by pandas.to_numeric, or read the file by "
    "pandas.read_csv(thousands=..., decimal=...). If they are dates, convert them by "
    "pandas.to_datetime. If they are free text, leave the column out."
)
OTHERS = (
    "Turn values of other types, such as durations, bytes, lists and structs, into real numbers "
    "(Complex data not supported), or leave the columns out."
)
NUMBERS = r"u?int\d|float|halffloat|double|bool|decimal"
NO_NUMBERS = (
    r"(large_|fixed_size_)?(binary|list)|array|map|struct|duration|timedelta|time(32|64)?(\[|$)"
)
NOT_READ = complex, np.complexfloating, bytes, timedelta, np.timedelta64, time, dict, np.void
SEQUENCES = list, tuple, set, frozenset, np.ndarray
# The first that fits counts.
KINDS = (
    Kind("numbers", "biuf", (Real, Decimal, np.bool_), NUMBERS),
    Kind("text", "UT", (str,), remedy=TEXT),
    Kind("dates", "M", (date, np.datetime64), remedy=AS_DAYS),
    Kind("values of other types", "cmSV", (*NOT_READ, *SEQUENCES), NO_NUMBERS, OTHERS),
    Kind("objects", types=(object,), remedy=OTHERS),
)
# How `DPTabularPreprocessor` reads a column of a kind without declared labels. Others are refused.
READ_AS = {"numbers": "number", "dates": "date"}
BY_CODE = {code: kind.name for kind in KINDS for code in kind.codes}
MAY_BE_NAN = (float, np.floating, Decimal, np.datetime64, np.timedelta64)


def refuse_lazy(X: Table, what: str = "X") -> None:
    """Raise ValueError for a frame whose rows have not been computed, or that are elsewhere."""
    is_lazy = callable(getattr(X, "collect", None)) and not hasattr(X, "__array__")  # LazyFrame
    if is_lazy or isinstance(X, Partitions) or is_dask(X):
        raise ValueError(
            f"{what} is a {type(X).__name__}, whose rows are not in memory. Collect them, as by "
            "X.collect(), or pass partitions in place of X, without y, to fit or "
            "skdp.metrics.evaluate. Predict each partition where it is read, as by "
            "X.map_partitions(model.predict) or X.map_blocks(model.predict, drop_axis=1, "
            "dtype=float)."
        )


def as_table(X: Table) -> Table:
    """Return a data frame as it is, anything else as an array with rows and columns.

    Raises
    ------
    ValueError
        If it is lazy or sparse, has no rows or columns, or not two dimensions.
    """
    refuse_lazy(X)
    if sparse.issparse(X):
        raise ValueError("sparse input is not supported. Pass X.toarray().")
    X = as_array(X) if names_of(X) is None else X
    shape = X.shape
    if len(shape) != 2:
        raise ValueError(
            f"X must be a data frame or have two dimensions, rows and columns, got {len(shape)}. "
            "Reshape your data: X.reshape(-1, 1) if there is one column."
        )
    for count, what in zip(shape, ("sample", "feature"), strict=True):
        if count < 1:
            raise ValueError(f"0 {what}(s) (shape={shape}) while a minimum of 1 is required.")
    return X


def names_of(X: Table) -> list[Hashable] | None:
    """Names of the columns of a data frame or Arrow table. None for anything else."""
    if _is_arrow(X):
        return list(X.column_names)
    columns = getattr(X, "columns", None)
    if columns is None or not hasattr(X, "__getitem__") or callable(columns):
        return None
    return list(columns)


def _is_arrow(X: Table) -> bool:
    """Whether X is a table of pyarrow, whose ``columns`` are no names."""
    return hasattr(X, "column_names") and hasattr(X, "schema")


def _type_of(X: Table, place: int) -> Any:
    """Return the type of a column, an object of whatever library."""
    if names_of(X) is None:
        return getattr(X, "dtype", None)
    return list(X.schema.types if _is_arrow(X) else X.dtypes)[place]


def has_mark_of_missing(X: Table, place: int) -> bool:
    """Whether cells of a column may be missing by its type. Integers of numpy never are."""
    dtype = _type_of(X, place)
    return not (isinstance(dtype, np.dtype) and dtype.kind in "biu")


def column(X: Table, place: int) -> AnyArray:
    """Return a column of a data frame, Arrow table or array as an array."""
    names = names_of(X)
    if _is_arrow(X):
        return np.asarray(X.column(place))
    if sparse.issparse(X):
        return np.asarray(X.tocsc()[:, [place]].toarray()[:, 0])
    if names is None:
        return np.asarray(X)[:, place]
    return np.asarray(X.iloc[:, place] if hasattr(X, "iloc") else X[names[place]])


def kinds_in(X: Table, place: int) -> frozenset[str]:
    """Return the kinds of the cells of a column that are not missing, by their types.

    There is one, unless cells are mixed, or all are missing. Most columns have a type that says it.
    """
    dtype = _type_of(X, place)
    code, name = str(getattr(dtype, "kind", "O")), str(dtype).lower()
    if code in BY_CODE:
        return frozenset({BY_CODE[code]})
    named = next((kind.name for kind in KINDS if re.match(kind.named, name)), None)
    if named is not None:
        return frozenset({named})
    values = column(X, place)
    return kinds_of_cells(values) if values.ndim == 1 else frozenset({"values of other types"})


def kinds_of_cells(values: AnyArray) -> frozenset[str]:
    """Return the kinds of the cells of an array that are not missing."""
    if values.dtype.kind in BY_CODE:
        return frozenset({BY_CODE[values.dtype.kind]})
    cells = values.ravel().tolist()
    types = set(map(type, cells))
    if len(types) > 1 and any(issubclass(one, MAY_BE_NAN) for one in types):
        types = {type(cell) for cell in cells if not is_missing(cell)}
    known = [one for one in types if one.__name__ not in ("NoneType", "NAType", "NaTType")]
    return frozenset(
        next(kind.name for kind in KINDS if issubclass(one, kind.types)) for one in known
    )


def kinds_of_labels(labels: Table) -> frozenset[str]:
    """Return the kinds of labels, of missing ones none.

    Numbers of all types are one kind, as equal ones are one label.
    """
    return kinds_of_cells(labels if isinstance(labels, np.ndarray) else one_dimensional(labels))


def one_dimensional(labels: Table) -> AnyArray:
    """Return labels as an array. Labels of a list keep their types, also tuples."""
    if isinstance(labels, list | tuple):
        return np.fromiter(labels, dtype=object, count=len(labels))
    return np.asarray(labels)


def in_words(kinds: Iterable[str]) -> str:
    """Return kinds as a message lists them."""
    return " and ".join(sorted(kinds))


def no_numbers(X: Table) -> dict[Hashable, frozenset[str]]:
    """Return the columns with cells that are known not to be numbers, with their kinds.

    Objects of unknown types may be numbers. A single column without a name is called None.
    """
    numbers, names = frozenset({"numbers", "objects"}), names_of(X)
    if names is not None:
        return {n: kinds for i, n in enumerate(names) if (kinds := kinds_in(X, i)) - numbers}
    if X is None or sparse.issparse(X):
        return {}
    try:
        values = as_array(X)
    except Exception:  # nested lists of several lengths, or code of a cell's own
        return {}
    if values.ndim not in (1, 2):
        return {}
    columns = [(None, values)] if values.ndim == 1 else enumerate(values.T)
    return {n: kinds for n, cells in columns if (kinds := kinds_of_cells(cells)) - numbers}


def as_array(rows: Table) -> AnyArray:
    """Return rows as an array. Cells of a list keep their types, numbers next to text."""
    values = np.asarray(rows)
    if values.dtype.kind in "US" and isinstance(rows, list | tuple):
        return np.array(rows, dtype=object)
    return values


def is_categorical(X: Table, place: int) -> bool:
    """Whether the type of a column has levels, as pandas' category or Arrow's dictionary."""
    return str(_type_of(X, place)).lower().startswith(("categor", "enum", "dictionary"))


def not_numbers(present: Mapping[Hashable, frozenset[str]]) -> str:
    """Name the values of columns that are not numbers, and the remedy, in a message.

    Parameters
    ----------
    present : mapping of column to kinds
        As of `no_numbers`.
    """
    entries = []
    for kinds in dict.fromkeys(present.values()):
        columns = [name for name in present if present[name] == kinds]
        place = "" if columns == [None] else f", in {columns_in_words(columns)}"
        given = in_words(kinds - {"numbers"} or kinds)
        entries.append(f"{given} where numbers are needed{place}")
    kinds = frozenset().union(*present.values())
    remedies = dict.fromkeys(kind.remedy for kind in KINDS if kind.name in kinds and kind.remedy)
    return f"{'; and '.join(entries)}. {' '.join(remedies)}"


def where(X: Table, is_affected: Callable[[Table, int], bool], comma: str = "") -> str:
    """Say in a message in which columns of a table something holds. "" if that cannot be said."""
    names = names_of(X)
    if names is None and (np.ndim(X) != 2 or sparse.issparse(X)):
        return ""
    table = X if names is not None else as_array(X)
    try:
        columns = list(range(table.shape[1])) if names is None else names
        present = [one for place, one in enumerate(columns) if is_affected(table, place)]
    except Exception:  # of any type, by code of a cell's own
        return ""
    return f"{comma} in {columns_in_words(present)}" if present else ""


def has_missing(X: Table, place: int) -> bool:
    """Whether a cell of a column of numbers is missing."""
    return bool(np.isnan(numbers_of(X, place)).any())


def has_infinity(X: Table, place: int) -> bool:
    """Whether a cell of a column of numbers is infinite."""
    return kinds_in(X, place) == {"numbers"} and bool(np.isinf(numbers_of(X, place)).any())


def has_objects(X: Table, place: int) -> bool:
    """Whether a cell of a column is of an unknown type."""
    return "objects" in kinds_in(X, place)


def columns_in_words(columns: Sequence[Hashable]) -> str:
    """Name columns in a message."""
    return f"column{'s' if len(columns) > 1 else ''} {listed(columns)}"


def is_missing(cell: object) -> bool:
    """Whether a cell is None, nan, or a data frame's own mark of a missing value."""
    if isinstance(cell, Decimal):
        return cell.is_nan()  # a comparison with a signalling one would raise
    nothing = type(cell).__name__ in ("NAType", "NaTType")
    return cell is None or nothing or (isinstance(cell, MAY_BE_NAN) and cell != cell)


def all_missing(X: Table, place: int) -> bool:
    """Whether no cell of a column is known, whose type then says nothing."""
    return all(map(is_missing, column(X, place).ravel().tolist()))


def has_hidden_cells(values: Table) -> bool:
    """Whether the mask of a masked array hides a cell."""
    if not np.ma.isMaskedArray(values):
        return False
    # As bytes, since the mask of a structured array has fields, and no `any`.
    return bool(np.frombuffer(np.ma.getmaskarray(values).tobytes(), np.uint8).any())


def numbers_of(X: Table, place: int) -> Array:
    """Return a column as numbers, nan where one is missing.

    Raises
    ------
    Exception, of any type
        If a cell is no number, by code of its own perhaps.
    """
    values = column(X, place)
    if values.dtype == object:
        values = np.array([np.nan if is_missing(cell) else cell for cell in values.tolist()], float)
    return np.asarray(values.astype(np.float64))


def days_of(X: Table, place: int) -> Array:
    """Return dates as days since a day, nan where one is missing.

    Raises
    ------
    TypeError, ValueError
        If a cell is no date.
    """
    values = column(X, place)
    if values.dtype.kind != "M":  # as pandas gives dates with a time zone
        values = np.fromiter(map(_in_utc, values.tolist()), "datetime64[us]", len(values))
    since = values.astype("datetime64[us]") - FIRST_DAY
    return np.where(np.isnat(since), np.nan, since / np.timedelta64(1, "D"))


def number_or_days(value: Any) -> float:
    """Return a number as it is, a date as days since a day, and nan for anything else."""
    if is_real(value) or isinstance(value, bool):
        return float(value)
    try:
        day = np.datetime64(value if isinstance(value, str) else _in_utc(value), "us")
    except (TypeError, ValueError):
        return float("nan")
    return float((day - FIRST_DAY) / np.timedelta64(1, "D"))


def _in_utc(cell: Table) -> Table:
    """Return a date without a time zone. Numpy would warn, once for each that has one."""
    if is_missing(cell):
        return np.datetime64("NaT")
    if isinstance(cell, Number):  # numpy would take it for microseconds
        raise TypeError("no date")
    zoned = getattr(cell, "tzinfo", None) is not None
    return cell.astimezone(UTC).replace(tzinfo=None) if zoned else cell


def codes_of(X: Table, place: int, labels: Sequence[Hashable]) -> tuple[Indices, Mask]:
    """Place of each cell of a column among labels, -1 for none, and which cells are missing."""
    places = {label: number for number, label in enumerate(labels)}

    def code(cell: object) -> int:
        # A list and the like is no label. What the other cells become must not follow from it.
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


def are_labels(labels: Table) -> bool:
    """Whether these can be the labels of a column: two or more of one kind, and all different."""
    if isinstance(labels, str) or not np.iterable(labels):
        return False
    entries = list(labels)
    is_known = len(kinds_of_labels(entries)) == 1 and not any(map(is_missing, entries))
    return len(entries) >= 2 and len(set(entries)) == len(entries) and is_known


def is_dask(X: Table) -> bool:
    """Whether X is a collection of dask's. Dask is not imported for it."""
    return hasattr(X, "__dask_graph__") and type(X).__module__.partition(".")[0].startswith("dask")
