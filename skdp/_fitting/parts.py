"""Parts of random splits: the rows of a fit, and the charges so far.

A split that does not look at the rows makes fits on its parts cost their maximum (parallel
composition). So a fit has to know that it was given a part. Two ways tell: the very arrays that a
split returned are remembered, and a block of code can say that all fits inside it use one part.
Whatever else a fit is given counts as all of the rows, which costs no less.

A split of groups puts all rows of a group into one part. It says nothing about the cost of a single
row, nor a split of rows about the cost of a group: a part counts only for fits of its own unit. A
part of the people, which has a name, holds all rows of each of them: it counts for both units.
"""

import itertools
import uuid
import weakref
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from math import gcd
from typing import NamedTuple, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from skdp._fitting.surroundings import everything_in
from skdp._fitting.tables import is_dask
from skdp._numbers import AnyArray, Table, is_real
from skdp._oracle.sources.partitioned import Chunks
from skdp.accounting import Partition, PrivacyStatement
from skdp.accounting.cost import Part as Part

T = TypeVar("T")


class Place(NamedTuple):
    """Which rows an array holds.

    Attributes
    ----------
    table : hashable
        Equal for all arrays that hold rows of one table.
    part : tuple of (Partition, int)
    rows : range or None
        Numbers of rows in the memory of the table. None for all of them.
    """

    table: Hashable
    part: Part
    rows: range | None = None


# By the id of an array: its part, the unit of that, and a number of the rows that were split.
_parts: dict[int, tuple[weakref.ref[object], Part, str, Hashable]] = {}
_numbers = itertools.count()
# Neither reaches the threads of a pool: what is fitted there counts as on all rows, and is charged.
_current_part: ContextVar[tuple[Part, str]] = ContextVar("part of a split", default=((), "row"))
_current_people: ContextVar[Part] = ContextVar("part of the people", default=())
_charged: ContextVar[str | None] = ContextVar("unit of what is charged as a whole", default=None)


def new_split(n_parts: int, of: Part = ()) -> list[Part]:
    """Return the parts of a new split of a part, or of all rows."""
    partition = Partition(0, n_parts, shared=uuid.uuid4().hex)
    return [(*of, (partition, number)) for number in range(n_parts)]


def unit_of(groups: Table) -> str:
    """Return the unit of privacy of a fit with these labels, if any."""
    return "row" if groups is None else "group"


def remember(array: Table, part: Part, unit: str = "row", of: Table = None) -> None:
    """Remember that an array holds exactly the rows of a part, as long as the array lives.

    Parameters
    ----------
    array : object
        Nothing is remembered of one to which there are no weak references, such as a list.
    part : tuple of (Partition, int)
    unit : {"row", "group"}, default="row"
    of : object, default=None
        The array whose rows were split.
    """
    key, place = id(array), place_of(of)

    def forget(_: object) -> None:
        _parts.pop(key, None)

    number = next(_numbers) if place is None else place.table
    with suppress(TypeError):
        _parts[key] = weakref.ref(array, forget), part, unit, number


def place_of(array: Table) -> Place | None:
    """Return which rows an array holds. None if in doubt.

    The values are private, so they are not compared. Columns of one data frame of pandas have one
    index, and views of an array share its memory. Columns of dask have one name whenever they are
    made in one way. Other copies of the same rows are not recognised.
    """
    if array is None or is_real(array):
        return None
    if not _is_remembered(array):
        of_table = getattr(getattr(array, "index", None), "_id", None)  # what `Index.is_` compares
        of_table = array._name if is_dask(array) else of_table
        if of_table is not None:
            return Place(of_table, ())
    owner = array
    while isinstance(owner, np.ndarray) and isinstance(owner.base, np.ndarray):
        owner = owner.base
    if not _is_remembered(owner):
        remember(owner, ())
    if not _is_remembered(owner):
        return None
    _, part, _, number = _parts[id(owner)]
    is_view = isinstance(array, np.ndarray) and array is not owner
    return Place(number, part, _rows_of_view(array, owner) if is_view and not part else None)


def places_of(array: Table) -> list[Place]:
    """Return which rows an array holds: a table of pandas may be a slice of another one's memory.

    Parameters
    ----------
    array : object
    """
    first = array
    if hasattr(array, "iloc") and not is_dask(array):
        first = array.iloc[:, 0] if array.ndim == 2 and array.shape[1] else array
        first = first.to_numpy() if isinstance(getattr(first, "dtype", None), np.dtype) else None
    several = [array] if first is array else [array, first]
    return [place for place in map(place_of, several) if place is not None]


def _rows_of_view(view: AnyArray, owner: AnyArray) -> range | None:
    """Return which rows of an array a view of it holds, by their places in memory.

    Rows lie along the axis of the owner whose stride is the largest one within the view's own.
    """
    step = abs(view.strides[0]) if view.ndim and len(view) else 0
    along = max((abs(stride) for stride in owner.strides if abs(stride) <= step), default=0)
    if not along:
        return None
    start = _lowest_address(view) - _lowest_address(owner)
    for stride in sorted({abs(one) for one in owner.strides if abs(one) > step}, reverse=True):
        start %= stride
    first, count = start // along, 1 + (len(view) - 1) * step // along
    is_flat = owner.ndim < view.ndim  # rows that are made of a vector lie across its entries
    return range(first, first + count, 1 if is_flat else step // along)


def _lowest_address(array: AnyArray) -> int:
    reach = (stride * (size - 1) for stride, size in zip(array.strides, array.shape, strict=True))
    return int(array.ctypes.data + sum(min(0, last) for last in reach))


def overlap(one: Place, other: Place) -> bool:
    """Whether two arrays may hold the same rows: not if a split put them into different parts."""
    if one.table != other.table:
        return False
    if one.rows is not None and other.rows is not None:
        between = one.rows[0] - other.rows[0]
        meet = one.rows[0] <= other.rows[-1] and other.rows[0] <= one.rows[-1]
        return meet and between % gcd(one.rows.step, other.rows.step) == 0
    for (partition, number), (other_partition, other_number) in zip(
        one.part, other.part, strict=False
    ):
        if partition != other_partition:
            return True
        if number != other_number:
            return False
    return True


def part_of(*arrays: Table, unit: str = "row") -> Part:
    """Return the part that all of these arrays belong to, () for all rows, if in doubt.

    Parameters
    ----------
    *arrays
        X, y, weights and labels of a fit. None is left out, and so is a number.
    unit : {"row", "group"}, default="row"
        Of the fit. Parts of splits of another unit do not count.
    """
    around = _of_unit(*_current_part.get(), unit) or _current_people.get()
    given = [array for array in arrays if not (array is None or is_real(array))]
    known = {_remembered(array, unit) for array in given}
    if len(known) == 1 and around == next(iter(known))[: len(around)]:
        return known.pop()
    # What is not remembered is of the part around. What is must not be of another one, or of more.
    agree = all(not own or own[: len(around)] == around for own in known)
    return around if agree else ()


def is_of_another(array: Table, part: Part, unit: str) -> bool:
    """Whether an array is remembered from another part than that of some rows."""
    own = _remembered(array, unit)
    return bool(own and part) and own != part[: len(own)]


def _is_remembered(array: Table) -> bool:
    return id(array) in _parts and _parts[id(array)][0]() is array


def _remembered(array: Table, unit: str) -> Part:
    return _of_unit(*_parts[id(array)][1:3], unit) if _is_remembered(array) else ()


def _of_unit(part: Part, own: str, unit: str) -> Part:
    return part if own == unit else ()


@contextmanager
def _setting(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Set a variable for a block, in this thread."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def fits_on_part(part: Part, unit: str = "row") -> AbstractContextManager[None]:
    """Say that all fits in a block, in this thread, use rows of one part only."""
    return _setting(_current_part, (part, unit))


def fits_on_people(who: str, partition: Partition, name: str) -> AbstractContextManager[None]:
    """Say that all fits in a block, in this thread, use rows of one part of the people only."""
    if _current_people.get() or _current_part.get()[0]:
        raise ValueError(
            f"{who}: the part {name!r} was opened inside of another part, and no person is in two "
            "parts. Close that one first. Nothing was released."
        )
    return _setting(_current_people, ((partition, name),))


def charged_as_a_whole(unit: str = "row") -> AbstractContextManager[None]:
    """Charge none of the fits in a block, in this thread: all of them together were charged."""
    return _setting(_charged, unit)


def is_charged() -> bool:
    """Whether fits are charged as a whole, somewhere around here."""
    return _charged.get() is not None


def require_charged_unit(who: str, unit: str) -> None:
    """Raise ValueError where fits are charged as a whole, for another unit of privacy than this."""
    charged = _charged.get()
    if charged not in (None, unit):
        raise ValueError(
            f"{who}: this fit protects a {unit}, and the search or cross-validation around it was "
            f"charged for a {charged}. The two guarantees do not add up. Nothing was released."
        )


# ---------------------------------------------------------------- rows of earlier fits

# What each estimator was fitted on, as long as it lives. Copies of it begin anew.
_fits: weakref.WeakKeyDictionary[object, list[tuple[list[Place], PrivacyStatement]]]
_fits = weakref.WeakKeyDictionary()


def add_fit(
    model: object, arrays: tuple[Table, ...], statement: PrivacyStatement
) -> list[PrivacyStatement]:
    """Remember a fit, and return those of this very estimator on the same rows, itself the last.

    Rows are the same if one of the arrays is the same, or a part of it, as `places_of` says.
    """
    places = all_places(arrays)
    known = _fits.setdefault(model, [])
    known.append((places, statement))
    return [stated for held, stated in known[:-1] if meet(held, places)] + [statement]


def was_fitted_on(model: object, arrays: tuple[Table, ...]) -> bool:
    """Whether a model, or one inside of it, was fitted on some of these rows."""
    places = all_places(arrays)
    models = (one for one in everything_in(model) if isinstance(one, BaseEstimator))
    return any(meet(held, places) for one in models for held, _ in _fits.get(one, ()))


def all_places(arrays: tuple[Table, ...]) -> list[Place]:
    """Return which rows the arrays hold, and those inside `Chunks`."""
    inside = (one for array in arrays if isinstance(array, Chunks) for one in array.arrays)
    return [place for array in (*arrays, *inside) for place in places_of(array)]


def meet(some: list[Place], others: list[Place]) -> bool:
    """Whether any of some arrays may hold rows of any of others."""
    return any(overlap(one, other) for one in some for other in others)
