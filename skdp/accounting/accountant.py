"""Base class of accountants, the searches that they share, and the registry of their names."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

from scipy.optimize import brentq

from skdp._numbers import shown
from skdp.accounting.events.base import Adjacency, Event

_REGISTRY: dict[str, Accountant[object]] = {}
Result = TypeVar("Result", covariant=True)

# Largest argument of exp; the range of float64 ends at exp(709.78).
MAX_EXPONENT = 700.0


class UnknownCost(ValueError):  # noqa: N818 - a result as much as an error
    """No available theorem covers this event under this adjacency; the message names both."""


class Accountant(ABC, Generic[Result]):
    """Pure functions from an event to its cost; every figure is a proved upper bound.

    Attributes
    ----------
    name : str
        The name by which users choose it.
    rank : int or None
        Position in the order in which "auto" tries accountants; None if "auto" never does.
    is_tight : bool
        Whether, for the plans that this accountant supports, only special accountants can do
        better.
    special : tuple of event types
        If not empty, the accountant is only meant for plans with such events.
    tolerance : float
        Relative width to which the search of `scale` narrows the factor down.
    delta_precision : float
        Relative width to which the search of `delta` narrows delta down.
    """

    name: ClassVar[str]
    rank: ClassVar[int | None] = None
    is_tight: ClassVar[bool] = False
    special: ClassVar[tuple[type[Event], ...]] = ()
    tolerance: ClassVar[float] = 1e-5
    delta_precision: ClassVar[float] = 1e-9

    @abstractmethod
    def examine(self, event: Event, adjacency: Adjacency) -> Result:
        """Raise `UnknownCost`, with the reason, if no theorem applies.

        The value returned is for the accountant's own use.
        """

    def why_unsupported(self, event: Event, adjacency: Adjacency) -> str | None:
        """Return the reason why this accountant has no theorem for ``event``.

        Returns
        -------
        str or None
            None if it has one.
        """
        try:
            self.examine(event, adjacency)
        except UnknownCost as refusal:
            return str(refusal)
        return None

    def require(self, event: Event, adjacency: Adjacency) -> Result:
        """Return the result of `examine`; a refusal is prefixed with the accountant's name.

        Raises
        ------
        UnknownCost
            If there is no theorem for ``event``.
        """
        try:
            return self.examine(event, adjacency)
        except UnknownCost as refusal:
            raise UnknownCost(f"accountant {self.name!r}: {refusal}") from None

    @abstractmethod
    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        """Return an epsilon such that ``event`` is (epsilon, delta)-DP.

        Parameters
        ----------
        event : Event
        delta : float
            In [0, 1).
        adjacency : Adjacency

        Returns
        -------
        float
            inf where no finite epsilon holds.

        Raises
        ------
        UnknownCost
            If there is no theorem for ``event``.
        """

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        """Return a delta such that ``event`` is (epsilon, delta)-DP.

        Computed by bisection on `epsilon`; accountants with a formula of the privacy curve override
        it.

        Parameters
        ----------
        event : Event
        epsilon : float
            At least 0.
        adjacency : Adjacency

        Returns
        -------
        float
            In [0, 1].

        Raises
        ------
        UnknownCost
            If there is no theorem for ``event``.
        """
        self.require(event, adjacency)

        def suffices(delta: float) -> bool:
            return self.epsilon(event, delta, adjacency) <= epsilon

        low, high = 1e-15, 1.0
        if suffices(low):
            return low
        while high > low * (1 + self.delta_precision):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if suffices(middle) else (middle, high)
        return high

    def scale(self, event: Event, epsilon: float, delta: float, adjacency: Adjacency) -> float:
        """Return nearly the least factor such that ``event.scaled(factor)`` is (epsilon, delta)-DP.

        The cost falls as the factor grows; the search brackets the factor and returns the private
        end of the bracket. Accountants with a closed form override this.

        Parameters
        ----------
        event : Event
        epsilon, delta : float
            The budget: finite and above 0, and in [0, 1).
        adjacency : Adjacency

        Returns
        -------
        float
            At least 0.

        Raises
        ------
        UnknownCost
            If there is no theorem for ``event``, or no amount of noise meets the budget.
        """

        def cost_of(factor: float) -> float:
            return self.epsilon(event.scaled(factor), delta, adjacency)

        return least_factor(cost_of, epsilon, who=self.name, delta=delta, tolerance=self.tolerance)


def least_factor(
    cost_of: Callable[[float], float],
    epsilon: float,
    *,
    who: str,
    delta: float,
    guess: float = 1.0,
    tolerance: float = Accountant.tolerance,
) -> float:
    """Return a factor with ``cost_of(factor) <= epsilon``, at most slightly above the least one.

    ``cost_of`` must fall as the factor grows. The search works on the logarithms of both, where
    costs are nearly straight lines, and starts at ``guess``, which is returned if noise does not
    affect the cost.
    """

    def excess(log_factor: float) -> float:
        cost = cost_of(math.exp(log_factor))
        return math.log(min(max(cost, 1e-300), 1e300)) - math.log(epsilon)

    near = math.log(guess)
    upwards = excess(near) > 0
    step = 0.25 if upwards else -0.25
    far = near + step
    while (excess(far) > 0) == upwards:
        step *= 2
        near, far = far, far + step
        if far > 64:
            raise UnknownCost(
                f"accountant {who!r}: no amount of noise meets epsilon={epsilon:g}, "
                f"delta={delta:g} for this plan."
            )
        if far < -64:
            return guess  # noise does not affect the cost
    root = float(brentq(excess, min(near, far), max(near, far), xtol=tolerance))
    while cost_of(math.exp(root)) > epsilon:
        root += tolerance
    return math.exp(root)


def bisect(suffices: Callable[[float], bool], low: float, high: float, halvings: int) -> float:
    """Halve the bracket ``halvings`` times and return its upper end.

    ``high`` must suffice; the number returned does, too.
    """
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def one_plus_exp(epsilon: float) -> float:
    """``1 + exp(epsilon)``, finite for every epsilon."""
    return 1 + math.exp(min(epsilon, MAX_EXPONENT))


Registered = TypeVar("Registered", bound=Accountant[object])


def register(accountant: type[Registered]) -> type[Registered]:
    """Make an accountant available by its name (class decorator)."""
    if accountant.name in _REGISTRY:
        raise ValueError(f"an accountant named {accountant.name!r} is registered already.")
    _REGISTRY[accountant.name] = accountant()
    return accountant


def available_accountants() -> dict[str, str]:
    """Return the names of the registered accountants, each with a one-line description.

    Returns
    -------
    dict of str
    """
    return {name: (item.__doc__ or "").splitlines()[0] for name, item in sorted(_REGISTRY.items())}


def candidates(name: str) -> tuple[Accountant[object], ...]:
    """Return the accountant called ``name``; for "auto" all that have a rank, in that order.

    Raises
    ------
    ValueError
        If there is no accountant of this name.
    """
    if isinstance(name, str) and name == "auto":
        ranked = [(item.rank, item) for item in _REGISTRY.values() if item.rank is not None]
        return tuple(item for _, item in sorted(ranked, key=lambda pair: pair[0]))
    if not isinstance(name, str) or name not in _REGISTRY:
        known = ", ".join(repr(word) for word in ["auto", *sorted(_REGISTRY)])
        raise ValueError(f"accountant must be one of {known}; got {shown(name)}.")
    return (_REGISTRY[name],)
