"""Interfaces of releases and statistics, the audited ones, and checks of their fields.

Everything in this folder is trusted: its classes read rows. A class is answered only if it carries
the mark of :func:`audited`, which is given to classes of this folder alone.
"""

import math
import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from skdp._numbers import LARGEST_CLIP_NORM, LEAST_CLIP_NORM, Array
from skdp.accounting import Event
from skdp.objective import Problem
from skdp.oracle.noise import NoiseSource
from skdp.oracle.public import Public
from skdp.oracle.sources.base import REPEATABLE, RepeatableSource, Source

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
        The loss, penalty and constraint; it belongs to the oracle, not to the solver.
    scale : float
        Calibrated factor from relative noise to noise multipliers. 0 means no noise.
    """

    public: Public
    problem: Problem
    scale: float


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

    A subclass of an audited class could override what was reviewed, so it does not count.
    """
    if type(part) not in _AUDITED:
        name = f"{type(part).__module__}.{type(part).__qualname__}"
        raise NotAudited(
            f"{name} is not an audited release or part of one; it was not answered and nothing "
            "was released. Audited classes live in skdp/oracle/releases."
        )


class Release(ABC):
    """A question to the rows whose answer carries enough noise to be given away."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """The request, in the words of the privacy statement."""

    @property
    def needs(self) -> frozenset[str]:
        """Requirements on the source of rows, in the words of `skdp.oracle.sources.base`."""
        return frozenset({REPEATABLE})

    @property
    def takes_groups(self) -> bool:
        """Whether its proof holds, and its code allows, for groups of rows as records."""
        return False

    def is_public(self, public: Public) -> bool:
        """Whether the answer is public anyway, so that it costs nothing and carries no noise."""
        return False

    @abstractmethod
    def parts(self) -> tuple[object, ...]:
        """Objects this release is made of; each of them must be audited, too."""

    @abstractmethod
    def event(self, context: PublicContext) -> Event:
        """Return what the answer costs, noise in relative units (without ``context.scale``)."""

    @abstractmethod
    def std(self, context: PublicContext) -> float:
        """Return the standard deviation of the noise in one coordinate of the answer."""

    def n_gradients(self, context: PublicContext) -> float:
        """Gradients of single records that the answer takes: a public, expected number.

        One of every row, unless a release knows better.
        """
        return float(context.public.n_rows)

    @abstractmethod
    def answer(self, source: Source, context: PublicContext, noise_source: NoiseSource) -> Array:
        """Read the rows and return the noisy answer. Only the oracle calls this."""

    @abstractmethod
    def placeholder(self, context: PublicContext, rng: np.random.Generator) -> Array:
        """Return an array like an answer, made without rows, for a rehearsal."""


@dataclass(frozen=True)
class Contribution:
    """Bounds on the dependence of a computed statistic on one record; all of them are public.

    Attributes
    ----------
    bound : float
        Norm of what one record adds, at most, rounding errors included.
    spread : float
        Largest distance between two such contributions, in units of ``bound``.
    size : int
        Number of coordinates of the statistic.
    total : float
        Bound on the absolute value of any coordinate of the statistic.
    order : {1, 2}, default=2
        Of the norm that ``bound`` is in: L1 or L2.
    """

    bound: float
    spread: float
    size: int
    total: float
    order: int = 2


class Statistic(ABC):
    """A function of the records that one record can move by a bounded amount.

    Most are sums over records: `total` hands a block function to the source, which adds up what
    comes of every block. The bound, the function and the proof stand on one page, in one file.

    *Groups of rows.* Where a record is a group, it adds the mean of what its rows would add: the
    block function multiplies a row's part, once it is cut to the bound, by the row's multiplier,
    and those of a group are not negative and add up to 1 at most. So a group's part lies in the
    convex hull of 0 and the parts that rows may have, whatever the number of its rows; nothing in
    a convex hull is longer, and no two points of it are farther apart, than in the set itself.
    Bound and spread are those of a row. A statistic that is not such a sum has a proof of its own.

    Attributes
    ----------
    kind : str
        What is computed, in the words of the privacy statement.
    gradients : int
        Gradients that are taken of each record, for the count of a fit's cost.
    takes_groups : bool
        Whether its block function multiplies what a row adds by the row's multiplier. Where a
        group of rows is a record, no other statistic is answered.
    """

    kind: ClassVar[str]
    gradients: ClassVar[int] = 1
    takes_groups: ClassVar[bool] = False

    @property
    def reads_targets(self) -> bool:
        """Whether targets play a part in it: yes, unless a statistic knows that they do not."""
        return True

    @abstractmethod
    def contribution(self, context: PublicContext, n_rows: int) -> Contribution:
        """Return the bound on one record's part in a statistic of at most ``n_rows`` rows."""

    def shape(self, context: PublicContext) -> tuple[int, ...]:
        """Return the shape of the statistic, by default that of one number."""
        return (1,)

    @abstractmethod
    def total(self, rows: RepeatableSource, context: PublicContext) -> Array:
        """Return the statistic of all rows, each contribution cut down to the bound."""


# ---------------------------------------------------------------- checks of fields


def store_points(record: object, *names: str) -> None:
    """Put plain, read-only float64 copies in place of these fields, or refuse them.

    A point with inf or nan would turn margins into nan, and a nan in a sum shows that a row is
    there. A copy, because a solver must not be able to change it between the check and the use.
    """
    for name in names:
        point: Array = np.array(getattr(record, name), dtype=np.float64, copy=True, subok=False)
        if not np.isfinite(point).all():
            raise ValueError(
                f"{type(record).__name__}: the {name} must be finite; it holds nan or inf. Nothing "
                "was released for it. If a fit diverged, lower its learning_rate."
            )
        point.setflags(write=False)
        object.__setattr__(record, name, point)


def store_positive(record: object, *names: str) -> None:
    """Turn these fields into floats, or raise ValueError where one is not positive and finite."""
    for name in names:
        value = float(getattr(record, name))
        if not 0 < value < math.inf:
            who = type(record).__name__
            raise ValueError(f"{who}: {name} must be positive and finite; got {value!r}.")
        object.__setattr__(record, name, value)


def store_bounds(record: object, *names: str) -> None:
    """Turn these fields into floats, or raise ValueError unless they lie in [1e-100, 1e100].

    Limits that follow from them, such as a clipping norm over the norm of a row, lose their
    relative precision where numbers are subnormal: a record could then add more than its bound.
    """
    for name in names:
        value = float(getattr(record, name))
        if not LEAST_CLIP_NORM <= value <= LARGEST_CLIP_NORM:
            raise ValueError(
                f"{type(record).__name__}: {name} must be positive and finite, from "
                f"{LEAST_CLIP_NORM:g} to {LARGEST_CLIP_NORM:g}; got {value!r}. Nothing was "
                "released for it."
            )
        object.__setattr__(record, name, value)


def store_integers(record: object, *names: str) -> None:
    """Turn these fields into integers; what is not one raises TypeError."""
    for name in names:
        object.__setattr__(record, name, operator.index(getattr(record, name)))


def require_shape(record: object, context: PublicContext, *names: str) -> None:
    """Raise ValueError unless these fields have the shape of the parameter."""
    for name in names:
        given = getattr(record, name).shape
        if given != context.public.shape:
            raise ValueError(
                f"{type(record).__name__}: the {name} must have shape {context.public.shape}; got "
                f"{given}. Nothing was released for it."
            )
