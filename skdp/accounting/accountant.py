"""What an accountant is, and the registry of the accountants that can be asked for by name."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

from scipy.optimize import brentq

from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events import Event

_REGISTRY: dict[str, Accountant] = {}


class UnknownCost(ValueError):
    """No theorem at hand covers this event under this relation; the message names both."""


class Accountant(ABC):
    """Pure functions from an event to its cost; every figure is a proved upper bound."""

    name: ClassVar[str]

    @abstractmethod
    def objection(self, event: Event, adjacency: Adjacency) -> str | None:
        """Say why this accountant has no theorem for ``event``, or None if it has one."""

    @abstractmethod
    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        """Return an epsilon such that ``event`` is (epsilon, delta)-DP; inf if there is none."""

    @abstractmethod
    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        """Return a delta such that ``event`` is (epsilon, delta)-DP."""

    def scale(self, event: Event, epsilon: float, delta: float, adjacency: Adjacency) -> float:
        """Return a factor such that ``event.scaled(factor)`` is (epsilon, delta)-DP, nearly least.

        The cost falls as the factor grows; the search brackets the answer and keeps the private
        side. Accountants with a closed form override this.
        """

        def excess(log_factor: float) -> float:
            spent = self.epsilon(event.scaled(math.exp(log_factor)), delta, adjacency)
            return min(spent, 1e9) - epsilon

        low, high = -1.0, 1.0
        while excess(high) > 0:
            low, high = high, 2 * high
            if high > 64:
                raise UnknownCost(
                    f"accountant {self.name!r} finds no amount of noise that meets "
                    f"epsilon={epsilon:g}, delta={delta:g} for this plan."
                )
        while excess(low) <= 0:
            low, high = 2 * low, low
            if low < -64:
                return math.exp(low)
        root = float(brentq(excess, low, high, xtol=1e-7))
        while excess(root) > 0:
            root += 1e-7
        return math.exp(root)

    def require(self, event: Event, adjacency: Adjacency) -> None:
        """Raise `UnknownCost` if there is an objection."""
        objection = self.objection(event, adjacency)
        if objection is not None:
            raise UnknownCost(f"accountant {self.name!r}: {objection}")


def register(accountant: type[Accountant]) -> type[Accountant]:
    """Make an accountant known by its name (class decorator)."""
    if accountant.name in _REGISTRY:
        raise ValueError(f"an accountant named {accountant.name!r} is registered already.")
    _REGISTRY[accountant.name] = accountant()
    return accountant


def available_accountants() -> dict[str, str]:
    """Names of the registered accountants, with one line on each."""
    return {name: (item.__doc__ or "").splitlines()[0] for name, item in sorted(_REGISTRY.items())}


def candidates(name: str) -> tuple[Accountant, ...]:
    """Accountants that the word ``name`` stands for; "auto" stands for all of them."""
    if name == "auto":
        return tuple(_REGISTRY.values())
    if name not in _REGISTRY:
        known = ", ".join(repr(word) for word in ["auto", *sorted(_REGISTRY)])
        raise ValueError(f"accountant must be one of {known}; got {name!r}.")
    return (_REGISTRY[name],)
