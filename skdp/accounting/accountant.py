"""What an accountant is, and the registry of the accountants that can be asked for by name."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from scipy.optimize import brentq

from skdp._numbers import shown
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events import Event

_REGISTRY: dict[str, Accountant] = {}


class UnknownCost(ValueError):  # noqa: N818 - an answer, not only an error
    """No theorem at hand covers this event under this relation; the message names both."""


class Accountant(ABC):
    """Pure functions from an event to its cost; every figure is a proved upper bound.

    Attributes
    ----------
    name : str
        The word by which users ask for it.
    rank : int or None
        Place in the order in which "auto" asks; None if "auto" never does.
    settles : bool
        Whether only special accountants can do better where this one knows the plan.
    special : tuple of event types
        If not empty, it is for plans with such events only.
    """

    name: ClassVar[str]
    rank: ClassVar[int | None] = None
    settles: ClassVar[bool] = False
    special: ClassVar[tuple[type[Event], ...]] = ()

    def objection(self, event: Event, adjacency: Adjacency) -> str | None:
        """Say why this accountant has no theorem for ``event``, or None if it has one."""
        try:
            self.examine(event, adjacency)
        except UnknownCost as refusal:
            return str(refusal)
        return None

    @abstractmethod
    def examine(self, event: Event, adjacency: Adjacency) -> Any:
        """Raise `UnknownCost`, with a sentence that says why, if there is no theorem.

        What is returned is for the accountant's own use.
        """

    def known(self, event: Event, adjacency: Adjacency) -> Any:
        """Return what `examine` does; a refusal carries the accountant's name."""
        try:
            return self.examine(event, adjacency)
        except UnknownCost as refusal:
            raise UnknownCost(f"accountant {self.name!r}: {refusal}") from None

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

        def spent(factor: float) -> float:
            return self.epsilon(event.scaled(factor), delta, adjacency)

        return least_factor(spent, epsilon, who=self.name, delta=delta)


# Calibrated factors are this close, relatively, to where the cost meets the budget.
TOLERANCE = 1e-5


def least_factor(
    spent: Callable[[float], float],
    epsilon: float,
    *,
    who: str,
    delta: float,
    guess: float = 1.0,
    tolerance: float = TOLERANCE,
) -> float:
    """Return about the least factor with ``spent(factor) <= epsilon``, never a smaller one.

    ``spent`` must fall as the factor grows. The search works on logarithms of both, where costs are
    nearly straight lines, and starts at ``guess``, which it returns if noise plays no part.
    """

    def excess(log_factor: float) -> float:
        cost = spent(math.exp(log_factor))
        return math.log(min(max(cost, 1e-300), 1e300)) - math.log(epsilon)

    here = math.log(guess)
    step = 0.25
    if excess(here) > 0:
        low, high = here, here + step
        while excess(high) > 0:
            step *= 2
            low, high = high, high + step
            if high > 64:
                raise UnknownCost(
                    f"accountant {who!r} finds no amount of noise that meets "
                    f"epsilon={epsilon:g}, delta={delta:g} for this plan."
                )
    else:
        low, high = here - step, here
        while excess(low) <= 0:
            step *= 2
            low, high = low - step, low
            if low < -64:
                return guess  # noise plays no part in the cost
    root = float(brentq(excess, low, high, xtol=tolerance))
    while spent(math.exp(root)) > epsilon:
        root += tolerance
    return math.exp(root)


def bisect_log_delta(suffices: Callable[[float], bool], precision: float = 1e-9) -> float:
    """Return about the least delta that ``suffices``, never one that does not."""
    low, high = 1e-15, 1.0
    if suffices(low):
        return low
    while high > low * (1 + precision):
        middle = math.sqrt(low * high)
        if suffices(middle):
            high = middle
        else:
            low = middle
    return high


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
    """Accountants that the word ``name`` stands for; "auto": those with a rank, in that order."""
    if isinstance(name, str) and name == "auto":
        ranked = [(item.rank, item) for item in _REGISTRY.values() if item.rank is not None]
        return tuple(item for _, item in sorted(ranked, key=lambda pair: pair[0]))
    if not isinstance(name, str) or name not in _REGISTRY:
        known = ", ".join(repr(word) for word in ["auto", *sorted(_REGISTRY)])
        raise ValueError(f"accountant must be one of {known}; got {shown(name)}.")
    return (_REGISTRY[name],)
