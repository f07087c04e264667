"""Types of arrays, checks of numbers, and the text that a message shows of a value."""

import html
import inspect
import math
from collections.abc import Callable, Iterable, Sequence, Sized
from numbers import Integral, Number, Real
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator

AnyArray = NDArray[Any]  # of numbers of any type; no narrower type admits arithmetic
AnyType: TypeAlias = np.dtype[Any]
Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
Table: TypeAlias = Any  # rows, or an entry for each of them, of whatever library
# Arguments of users: rows, data frames included, and seeds.
MatrixLike: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix
Seed: TypeAlias = int | np.random.RandomState | np.random.Generator | None

# Between these bounds, products of a clipping norm with a row keep the precision of float64.
LEAST_CLIP_NORM, LARGEST_CLIP_NORM = 1e-100, 1e100
LEAST_BOUND, LARGEST_BOUND = 1e-50, 1e50  # of rows, targets and coefficients, for the same reason


def is_integer(value: object) -> TypeGuard[int]:
    """Whether ``value`` is an integer."""
    return not isinstance(value, bool) and isinstance(value, Integral)


def is_real(value: object) -> TypeGuard[float]:
    """Whether ``value`` is a real number, infinities included."""
    return not isinstance(value, bool) and isinstance(value, Real) and not math.isnan(value)


def are_numbers(values: AnyArray) -> bool:
    """Return whether the type of an array is one of real numbers, or of True and False."""
    return values.dtype.kind in "biuf"


def shown(value: object) -> str:
    """Return a value as an error message may show it. Rows passed by mistake are not quoted.

    Numbers, short strings and short tuples and lists of them are, and objects of this package with
    the parameters that were set. Of all else the type is named.
    """
    if value is None or isinstance(value, bool | Number) or type(value) is str:
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:56]} ..."
    if isinstance(value, tuple | list) and len(value) <= 4:
        inner = [shown(item) for item in value]
        text = ", ".join(inner) + ("," if type(value) is tuple and len(value) == 1 else "")
        return f"({text})" if isinstance(value, tuple) else f"[{text}]"
    if isinstance(value, BaseEstimator) and type(value).__module__.startswith("skdp."):
        defaults = inspect.signature(type(value)).parameters
        given = [
            f"{name}={shown(part)}"
            for name, part in value.get_params(deep=False).items()
            if part is not defaults[name].default
        ]
        return f"{type(value).__name__}({', '.join(given)})"
    if type(value).__module__.startswith("skdp."):
        return repr(value)
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{type(value).__name__} of shape {shape}"
    if isinstance(value, Sized) and not isinstance(value, BaseEstimator):
        return f"{type(value).__name__} of length {len(value)}"
    return f"object of type {type(value).__name__}"


def listed(names: Iterable[object], most: int = 10) -> str:
    """Return names as a message may list them: quoted, and not too many."""
    quoted = [repr(name) for name in names]
    return ", ".join(quoted[:most]) + (f" and {len(quoted) - most} more" if quoted[most:] else "")


def counted(number: int, what: str) -> str:
    """Return "1 row" or "2 rows"."""
    return f"{number} {what}{'s' * (number != 1)}"


def html_table(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Return a table in HTML. Its cells are escaped."""

    def line(cells: Iterable[object], tag: str) -> str:
        return "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells)

    body = "".join(f"<tr>{line(cells, 'td')}</tr>" for cells in rows)
    return f"<table><thead><tr>{line(header, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def text_table(rows: Sequence[Sequence[str]], sides: str = "") -> list[str]:
    """Return a line for each row, its cells aligned: each column to the side "<" or ">"."""
    columns = list(zip(*rows, strict=True))
    sides = sides or "<" * len(columns)
    widths = [max(map(len, column)) for column in columns]
    line = "  ".join(f"{{:{side}{width}}}" for side, width in zip(sides, widths, strict=True))
    return [line.format(*row).rstrip() for row in rows]


def require(name: str, value: object, allowed: str, is_valid: bool) -> None:
    """Raise ValueError, "<name> must <allowed>, got <value>.", unless ``is_valid``."""
    if not is_valid:
        raise ValueError(f"{name} must {allowed}, got {shown(value)}.")


def require_bound(name: str, value: object, is_optional: bool = False) -> None:
    """Raise ValueError unless float64 can represent the square of ``value``. None if optional."""
    allowed = f"a positive, finite number, from {LEAST_BOUND:g} to {LARGEST_BOUND:g}"
    is_valid = is_real(value) and LEAST_BOUND <= value <= LARGEST_BOUND
    either = "None or " * is_optional
    require(name, value, f"be {either}{allowed}", is_valid or (is_optional and value is None))


def store_float(owner: object, name: str, allowed: str, is_valid: Callable[[float], bool]) -> None:
    """Turn a field of a frozen dataclass into a float. ValueError unless ``is_valid`` of it."""
    value = getattr(owner, name)
    is_allowed = isinstance(value, Real) and is_valid(float(value))
    require(f"{type(owner).__name__}: {name}", value, allowed, is_allowed)
    object.__setattr__(owner, name, float(value))
