"""Interfaces of releases and statistics, the audited ones, and checks of their fields.

Everything in this folder is trusted: its classes read rows. A class is answered only if it carries
the mark of :func:`audited`, which only classes of this folder can have.
"""

import functools
import math
import operator
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self, TypeVar, get_origin, get_type_hints

import numpy as np

from skdp._numbers import LARGEST_CLIP_NORM, LEAST_CLIP_NORM, Array
from skdp._oracle.kernels.clipped_gradients import gradient_rounding
from skdp._oracle.noise import NoiseSource
from skdp._oracle.public import Public
from skdp._oracle.sources.base import REPEATABLE, RepeatableSource, Source
from skdp.accounting import Event
from skdp.objective import Problem

Class = TypeVar("Class", bound=type)

_AUDITED: set[type] = set()


class NotAudited(TypeError):  # noqa: N818  reads as what it says
    """A release, or a part of one, comes from outside the audited folder."""


@dataclass(frozen=True)
class PublicContext:
    """Public facts that an answer may depend on besides the rows.

    Attributes
    ----------
    public : Public
    problem : Problem
        The loss, penalty and constraint. It belongs to the oracle, not to the solver.
    scale : float
        Calibrated factor from relative noise to noise multipliers. 0 means no noise.
    """

    public: Public
    problem: Problem
    scale: float

    def rounding(self, n_rows: int, n_more: int) -> float:
        """Return the relative amount by which rounding can raise a record's part in a sum.

        Parameters
        ----------
        n_rows, n_more : int
            As in `skdp._oracle.kernels.clipped_gradients.gradient_rounding`, ``n_more`` for its
            ``n_outputs``.

        Returns
        -------
        float
        """
        public = self.public
        kind = public.sparse, public.grouped, public.base_ratio
        return gradient_rounding(n_rows, public.n_features, n_more, *kind)


def audited(cls: Class) -> Class:
    """Mark a class of this folder as reviewed (class decorator).

    Parameters
    ----------
    cls : type

    Returns
    -------
    type
        The same class.

    Raises
    ------
    NotAudited
        If the class is defined elsewhere: code that was not reviewed must not run over rows.
    """
    home = __name__.rpartition(".")[0] + "."
    if not cls.__module__.startswith(home):
        raise NotAudited(f"{cls.__module__}.{cls.__qualname__} does not lie in {home[:-1]}.")
    _AUDITED.add(cls)
    return cls


def require_audited(part: object) -> None:
    """Raise `NotAudited` unless the exact type of ``part`` carries the mark.

    A subclass of an audited class could override reviewed code, so it does not count.
    """
    if type(part) not in _AUDITED:
        name = f"{type(part).__module__}.{type(part).__qualname__}"
        raise NotAudited(
            f"{name} is not an audited release or part of one. It was not answered and nothing "
            "was released. Audited classes live in skdp/_oracle/releases."
        )


# ---------------------------------------------------------------- checks of fields


def store_point(record: object, name: str) -> None:
    """Put a plain, read-only float64 copy in place of a field, or refuse it.

    A point with inf or nan would turn margins into nan, and a nan in a sum shows that a row is
    there. A copy, because a solver must not be able to change it between the check and the use.
    """
    point: Array = np.array(getattr(record, name), dtype=np.float64, copy=True, subok=False)
    if not np.isfinite(point).all():
        raise ValueError(
            f"{type(record).__name__}: the {name} must be finite. It holds nan or inf. Nothing "
            "was released for it. If a fit diverged, lower its learning_rate."
        )
    point.setflags(write=False)
    object.__setattr__(record, name, point)


def _within(least: float, most: float, allowed: str) -> Callable[[object, str], None]:
    """Return a check that turns a field into a float, or raises ValueError if it is outside."""

    def store(record: object, name: str) -> None:
        value = float(getattr(record, name))
        if not least <= value <= most:
            raise ValueError(
                f"{type(record).__name__}: {name} must be {allowed}, got {value!r}. Nothing was "
                "released for it."
            )
        object.__setattr__(record, name, value)

    return store


def store_integer(record: object, name: str) -> None:
    """Turn a field into an integer, or raise TypeError."""
    object.__setattr__(record, name, operator.index(getattr(record, name)))


def store_flag(record: object, name: str) -> None:
    """Turn a field into True or False."""
    object.__setattr__(record, name, bool(getattr(record, name)))


# Types of the fields of a `Checked` class, which say what is checked.
Point = Annotated[Array, store_point]
LARGEST = sys.float_info.max
Finite = Annotated[float, _within(-LARGEST, LARGEST, "finite")]
Positive = Annotated[float, _within(math.ulp(0.0), LARGEST, "positive and finite")]
# Limits that follow from a bound, such as a clipping norm over the norm of a row, lose their
# relative precision where numbers are subnormal: a record could then add more than its bound.
IN_RANGE = f"positive and finite, from {LEAST_CLIP_NORM:g} to {LARGEST_CLIP_NORM:g}"
Bound = Annotated[float, _within(LEAST_CLIP_NORM, LARGEST_CLIP_NORM, IN_RANGE)]
Integer = Annotated[int, store_integer]
Flag = Annotated[bool, store_flag]


@functools.cache
def _checks(cls: type) -> tuple[tuple[Callable[[object, str], None], str], ...]:
    hints = get_type_hints(cls, include_extras=True).items()
    annotated = ((hint, name) for name, hint in hints if get_origin(hint) is Annotated)
    return tuple((hint.__metadata__[0], name) for hint, name in annotated)


class Checked:
    """A dataclass whose fields are checked, and stored as plain values, by their declared types."""

    def __post_init__(self) -> None:
        # mypy: an instance that does not compare may have no hash; its class has one.
        for store, name in _checks(type(self)):  # type: ignore[arg-type]
            store(self, name)


def require_shape(record: object, context: PublicContext, *names: str) -> None:
    """Raise ValueError unless these fields have the shape of the parameter."""
    for name in names:
        given = getattr(record, name).shape
        if given != context.public.shape:
            raise ValueError(
                f"{type(record).__name__}: the {name} must have shape {context.public.shape}, got "
                f"{given}. Nothing was released for it."
            )


def require_columns(record: object, context: PublicContext, *columns: int) -> None:
    """Raise ValueError unless rows have columns of these numbers."""
    n_columns = context.public.n_features
    if not all(0 <= column < n_columns for column in columns):
        raise ValueError(
            f"{type(record).__name__}: there are {n_columns} facts about a row, got column "
            f"{columns}. Nothing was released for it."
        )


# ---------------------------------------------------------------- the interfaces


class Release(Checked, ABC):
    """A question to the rows whose answer carries enough noise to be given away."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """The request, in the words of the privacy statement."""

    @property
    def needs(self) -> frozenset[str]:
        """Requirements on the source of rows, in the words of `skdp._oracle.sources.base`."""
        return frozenset({REPEATABLE})

    @property
    def takes_groups(self) -> bool:
        """Whether its proof holds, and its code allows, for groups of rows as records."""
        return False

    def is_public(self, context: PublicContext) -> bool:
        """Whether the answer is public anyway, so that it costs nothing and carries no noise.

        Returns
        -------
        bool
        """
        return False

    @abstractmethod
    def parts(self) -> tuple[object, ...]:
        """Return the objects that the release consists of. Each must also be audited.

        Returns
        -------
        tuple of object
        """

    @abstractmethod
    def event(self, context: PublicContext) -> Event:
        """Return the cost of the answer, with noise in relative units (without ``context.scale``).

        Returns
        -------
        Event
        """

    @abstractmethod
    def std(self, context: PublicContext) -> float:
        """Return the standard deviation of the noise in one coordinate of the answer.

        Returns
        -------
        float
            0 where an answer carries no noise.
        """

    def n_gradients(self, context: PublicContext) -> float:
        """Gradients of single records in the answer: a public, expected number.

        One of every row, unless a release knows better.

        Returns
        -------
        float
        """
        return float(context.public.n_rows)

    @abstractmethod
    def answer(self, source: Source, context: PublicContext, noise_source: NoiseSource) -> Array:
        """Read the rows and return the noisy answer. Only the oracle calls this.

        Returns
        -------
        array
            Of the shape of :meth:`placeholder`.
        """

    @abstractmethod
    def placeholder(self, context: PublicContext, rng: np.random.Generator) -> Array:
        """Return an array like an answer, made without rows, for a rehearsal.

        Returns
        -------
        array
        """


@dataclass(frozen=True)
class Contribution:
    """Bounds on the dependence of a computed statistic on one record. All of them are public.

    Attributes
    ----------
    bound : float
        Largest norm of one record's contribution, including rounding errors.
    spread : float
        Largest distance between two such contributions, in units of ``bound``.
    size : int
        Number of coordinates of the statistic.
    total : float
        Bound on the absolute value of any coordinate of the statistic.
    order : {1, 2, inf}, default=2
        Of the norm that ``bound`` is in: L1, L2, or the largest entry.
    """

    bound: float
    spread: float
    size: int
    total: float
    order: float = 2

    @classmethod
    def of_sum(
        cls, bound: float, n_rows: int, slack: float, spread: float, size: int, order: float = 2
    ) -> Self:
        """Return the bounds of a sum over at most ``n_rows`` records.

        Parameters
        ----------
        bound : float
            Largest norm of one record's contribution, before rounding.
        n_rows : int
        slack : float
            Relative amount by which rounding can raise it.
        spread, size, order
            As attributes.

        Returns
        -------
        Contribution
        """
        bound *= 1 + slack
        return cls(bound, spread, size, total=n_rows * bound, order=order)


class Statistic(Checked, ABC):
    """A function of the records that one record can move by a bounded amount.

    Most are sums over records: `total` hands a block function to the source, which adds up the
    results of all blocks. The bound, the function and the proof stand on one page, in one file.

    *Groups of rows.* If a record is a group, it adds the mean of its rows' contributions: the block
    function multiplies a row's part, once it is cut to the bound, by the row's multiplier, and
    those of a group are not negative and add up to 1 at most. So a group's part lies in the convex
    hull of 0 and the parts that rows may have, whatever the number of its rows. Nothing in a convex
    hull is longer, and no two points of it are farther apart, than in the set itself. Bound and
    spread are those of a row. A statistic that is not such a sum has a proof of its own.

    Attributes
    ----------
    kind : str
        Name of the statistic in the privacy statement.
    gradients : int
        Gradients of each record, for the count of a fit's cost.
    takes_groups : bool
        Whether its block function multiplies a row's contribution by the row's multiplier. Where a
        group of rows is a record, no other statistic is answered.
    """

    kind: ClassVar[str]
    gradients: ClassVar[int] = 1
    takes_groups: ClassVar[bool] = False

    @property
    def reads_targets(self) -> bool:
        """Whether targets play a part in it: yes, unless a statistic knows that they do not."""
        return True

    def is_public(self, context: PublicContext) -> bool:
        """Return whether all neighbours have the same value of it, because only targets differ.

        Returns
        -------
        bool
        """
        return context.public.features_are_public and not self.reads_targets

    @abstractmethod
    def contribution(self, context: PublicContext, n_rows: int) -> Contribution:
        """Return the bound on one record's part in a statistic of at most ``n_rows`` rows.

        Returns
        -------
        Contribution
        """

    def shape(self, context: PublicContext) -> tuple[int, ...]:
        """Return the shape of the statistic, by default that of a vector.

        Returns
        -------
        tuple of int
        """
        return (self.contribution(context, context.public.n_rows).size,)

    @abstractmethod
    def total(self, rows: RepeatableSource, context: PublicContext) -> Array:
        """Return the statistic of all rows, each contribution cut down to the bound.

        Returns
        -------
        array of the statistic's shape
        """
