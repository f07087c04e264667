"""What a release is, and the list of the audited ones.

Everything in this folder is trusted: its classes read rows. A class is answered only if it carries
the mark of :func:`audited`, which is given to classes of this folder alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from skdp.accounting import Event
from skdp.objective import Problem
from skdp.oracle.noise import NoiseSource
from skdp.oracle.public import Public

if TYPE_CHECKING:
    from skdp.oracle.rows import Rows

Array = NDArray[np.float64]
Class = TypeVar("Class", bound=type)

_AUDITED: set[type] = set()


class NotAudited(TypeError):  # noqa: N818  reads as what it says
    """A release, or a part of one, comes from outside the audited folder."""


@dataclass(frozen=True)
class Terms:
    """What an answer may depend on besides the rows: all of it public.

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
    """Mark a class of this folder as reviewed (class decorator)."""
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
        """What was asked, in the words of the privacy statement."""

    @abstractmethod
    def parts(self) -> tuple[object, ...]:
        """Objects this release is made of; each of them must be audited, too."""

    @abstractmethod
    def event(self, terms: Terms) -> Event:
        """Return what the answer costs, noise in relative units (without ``terms.scale``)."""

    @abstractmethod
    def std(self, terms: Terms) -> float:
        """Return the standard deviation of the noise in one coordinate of the answer."""

    def n_gradients(self, terms: Terms) -> float:
        """Gradients of single records that the answer takes: a public, expected number.

        One of every row, unless a release knows better.
        """
        return float(terms.public.n_rows)

    @abstractmethod
    def answer(self, rows: Rows, terms: Terms, source: NoiseSource) -> Array:
        """Read the rows and return the noisy answer. Only the oracle calls this."""

    @abstractmethod
    def stand_in(self, terms: Terms, rng: np.random.Generator) -> Array:
        """Return an array like an answer, made without rows, for a rehearsal."""
