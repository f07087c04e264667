"""Accountants: their base class, the registry of their names, and the choice among them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from scipy.optimize import brentq

from skdp._numbers import is_real, require, shown
from skdp.accounting.events import Adjacency, Composed, Event, OnBlock, UnknownCost, walk

Facts = Any  # of a type of its own for each accountant

_REGISTRY: dict[str, Accountant] = {}

# Largest argument of exp; the range of float64 ends at exp(709.78).
MAX_EXPONENT = 700.0
# Of a finite epsilon: below, accountants lose precision, and above noise is lost in rounding.
LEAST_EPSILON, LARGEST_EPSILON = 1e-6, 1e9


class Accountant(ABC):
    """Pure functions from an event to its cost; every figure is a proved upper bound.

    A subclass defines `examine` and `path_epsilon`, and `path_delta` or `scale` where a formula is
    better than the searches here. It is available by its name once its module is imported.

    Attributes
    ----------
    name : str
        The name by which users choose it.
    rank : float
        Position in the order in which "auto" tries accountants; inf if "auto" never does.
    is_tight : bool
        Whether, for the plans that this accountant supports, only special accountants can do
        better.
    special : tuple of event types
        If not empty, the accountant is only meant for plans with such events.
    tolerance : float
        Relative width to which the search of `scale` narrows the factor down.
    delta_precision : float
        Relative width to which the search of `path_delta` narrows delta down.
    """

    name: ClassVar[str]
    rank: ClassVar[float] = math.inf
    is_tight: ClassVar[bool] = False
    special: ClassVar[tuple[type[Event], ...]] = ()
    tolerance: ClassVar[float] = 1e-5
    delta_precision: ClassVar[float] = 1e-9

    def __init_subclass__(cls) -> None:
        if cls.name in _REGISTRY:
            raise ValueError(f"an accountant named {cls.name!r} is registered already.")
        _REGISTRY[cls.name] = cls()

    @abstractmethod
    def examine(self, event: Event, adjacency: Adjacency) -> list[Facts]:
        """Return the facts that determine the cost of every collection of events a record can meet.

        Parameters
        ----------
        event : Event
        adjacency : Adjacency

        Returns
        -------
        list
            Of arguments of `path_epsilon` and `path_delta`, in the type of the accountant; more
            than one where a record can lie in one or another block.

        Raises
        ------
        UnknownCost
            If no theorem applies; the message states the reason.
        """

    @abstractmethod
    def path_epsilon(self, facts: Facts, delta: float, /) -> float:
        """Return an epsilon at ``delta`` of one of the collections of events.

        Parameters
        ----------
        facts : object
            An element of the result of `examine`.
        delta : float
            In [0, 1).

        Returns
        -------
        float
        """

    def path_delta(self, facts: Facts, epsilon: float, /) -> float:
        """Return a delta at ``epsilon`` of one of the collections of events, by bisection.

        Parameters
        ----------
        facts : object
            An element of the result of `examine`.
        epsilon : float
            At least 0.

        Returns
        -------
        float
            In [0, 1].
        """
        low, high = 1e-15, 1.0
        if self.path_epsilon(facts, low) <= epsilon:
            return low
        while high > low * (1 + self.delta_precision):
            middle = math.sqrt(low * high)
            suffices = self.path_epsilon(facts, middle) <= epsilon
            low, high = (low, middle) if suffices else (middle, high)
        return high

    def why_unsupported(self, event: Event, adjacency: Adjacency) -> str | None:
        """Return the reason why this accountant has no theorem for ``event``.

        Parameters
        ----------
        event : Event
        adjacency : Adjacency

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

    def require(self, event: Event, adjacency: Adjacency) -> list[Facts]:
        """Return the result of `examine`; a refusal begins with the name of the accountant.

        Parameters
        ----------
        event : Event
        adjacency : Adjacency

        Returns
        -------
        list

        Raises
        ------
        UnknownCost
            If there is no theorem for ``event``.
        """
        try:
            return self.examine(event, adjacency)
        except UnknownCost as refusal:
            raise UnknownCost(f"accountant {self.name!r}: {refusal}") from None

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
        return max(self.path_epsilon(facts, delta) for facts in self.require(event, adjacency))

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        """Return a delta such that ``event`` is (epsilon, delta)-DP.

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
        return max(self.path_delta(facts, epsilon) for facts in self.require(event, adjacency))

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


def available_accountants() -> dict[str, str]:
    """Return the names of the registered accountants, each with a one-line description.

    Returns
    -------
    dict of str
    """
    return {name: (item.__doc__ or "").splitlines()[0] for name, item in sorted(_REGISTRY.items())}


def candidates(name: str) -> tuple[Accountant, ...]:
    """Return the accountant called ``name``; for "auto" all that have a rank, in that order.

    Raises
    ------
    ValueError
        If there is no accountant of this name.
    """
    if not isinstance(name, str) or name not in {"auto", *_REGISTRY}:
        known = ", ".join(map(repr, ["auto", *sorted(_REGISTRY)]))
        raise ValueError(f"accountant must be one of {known}; got {shown(name)}.")
    if name == "auto":
        ranked = [item for item in _REGISTRY.values() if item.rank < math.inf]
        return tuple(sorted(ranked, key=lambda item: item.rank))
    return (_REGISTRY[name],)


@dataclass(frozen=True)
class Calibration:
    """A noise factor, the epsilon it guarantees, and the accountant that certifies it.

    Attributes
    ----------
    scale : float
        Factor of the noise of the plan; 0 for none, where epsilon is infinite.
    epsilon : float
        The certified figure, at most the requested one.
    accountant : str
        "none" where nothing has to be certified.
    """

    scale: float
    epsilon: float
    accountant: str


def supporting_accountants(
    event: Event, adjacency: Adjacency, accountant: str = "auto"
) -> list[Accountant]:
    """Return the accountants of a name that have a theorem for ``event``.

    "auto" tries the accountants in the order of their ranks. After the first one that is tight for
    the plan it tries only special accountants of events that the plan contains. So the choice
    depends on the plan alone, never on the speed of the machine, and slow accountants are tried
    only where no quick one is tight.

    Parameters
    ----------
    event : Event
    adjacency : Adjacency
    accountant : str, default="auto"
        A registered name, or "auto".

    Returns
    -------
    list of Accountant
        At least one.

    Raises
    ------
    UnknownCost
        If there is none; the message lists the reasons of all that are meant for such plans.
    ValueError
        If there is no accountant of this name.
    """
    supporting: list[Accountant] = []
    reasons: dict[str, list[str]] = {}
    tried = candidates(accountant)
    parts = [part for item, _ in event.flattened() for part, _ in walk(item, (Composed, OnBlock))]
    is_tight = False
    for item in tried:
        relevant = not is_tight
        if item.special and len(tried) > 1:
            relevant = any(isinstance(part, item.special) for part in parts)
        if not relevant:
            continue
        reason = item.why_unsupported(event, adjacency)
        if reason is None:
            supporting.append(item)
            is_tight |= item.is_tight
        else:
            reasons.setdefault(reason, []).append(item.name)
    if not supporting:
        listed = [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]
        raise UnknownCost(
            f"No accountant can price this plan under {adjacency}. {' '.join(listed)}"
        )
    return supporting


def price(
    event: Event, delta: float, adjacency: Adjacency, accountant: str = "auto"
) -> tuple[float, str]:
    """Return the least certified epsilon of ``event``, and the accountant that certifies it.

    Parameters
    ----------
    event : Event
    delta : float
        In [0, 1).
    adjacency : Adjacency
    accountant : str, default="auto"
        A registered name, or "auto" for the one with the least epsilon.

    Returns
    -------
    epsilon : float
        inf where no finite epsilon holds.
    accountant : str

    Raises
    ------
    UnknownCost
        If no accountant supports the plan.
    ValueError
        If there is no accountant of this name.

    Examples
    --------
    >>> from skdp.accounting import Adjacency, Gaussian, price
    >>> epsilon, accountant = price(Gaussian(5.0), 1e-6, Adjacency.ZERO_OUT)
    >>> round(epsilon, 3), accountant
    (0.834, 'gdp')
    """
    supporting = supporting_accountants(event, adjacency, accountant)
    costs = [(item.epsilon(event, delta, adjacency), item.name) for item in supporting]
    return min(costs, key=lambda cost: cost[0])


def check_budget(epsilon: object, delta: object) -> None:
    """Raise ValueError unless epsilon is from 1e-6 to 1e9, or infinite, and delta in [0, 1)."""
    is_valid = is_real(epsilon) and (
        LEAST_EPSILON <= epsilon <= LARGEST_EPSILON or epsilon == math.inf
    )
    allowed = "be a positive number from 1e-6 to 1e9, or inf for no privacy at all"
    require("epsilon", epsilon, allowed, is_valid)
    require("delta", delta, "be a number in [0, 1)", is_real(delta) and 0 <= delta < 1)


def calibrate(
    event: Event, epsilon: float, delta: float, adjacency: Adjacency, accountant: str = "auto"
) -> Calibration:
    """Find the least ``scale`` such that ``event.scaled(scale)`` is (epsilon, delta)-DP.

    Errors are on the private side: the certified epsilon never exceeds the requested one.

    Parameters
    ----------
    event : Event
        The plan, with noise in relative units. The cost of parts whose noise cannot be scaled, such
        as `ApproximateDP`, stays as it is.
    epsilon, delta : float
        The budget: from 1e-6 to 1e9, and in [0, 1). ``epsilon=inf`` gives scale 0: no noise at all.
    adjacency : Adjacency
    accountant : str, default="auto"
        A registered name, or "auto" for the one that needs the least noise.

    Returns
    -------
    Calibration

    Raises
    ------
    UnknownCost
        If no accountant supports the plan, or no amount of noise meets the budget.
    ValueError
        If epsilon or delta is out of range, or there is no accountant of this name.

    Examples
    --------
    >>> from skdp.accounting import Adjacency, Composed, Gaussian, calibrate
    >>> plan = Composed(((Gaussian(1.0), 100),))
    >>> round(calibrate(plan, 1.0, 1e-6, Adjacency.ZERO_OUT).scale, 3)
    42.247
    """
    candidates(accountant)  # an unknown name is refused, whatever the budget
    if math.isinf(epsilon):
        return Calibration(0.0, math.inf, "none")
    if not any(True for _ in event.flattened()):
        return Calibration(1.0, 0.0, "none")
    check_budget(epsilon, delta)
    refusals: list[str] = []
    calibrations: list[Calibration] = []
    for item in supporting_accountants(event, adjacency, accountant):
        try:
            scale = item.scale(event, epsilon, delta, adjacency)
        except UnknownCost as refusal:
            refusals.append(str(refusal))
            continue
        if not math.isfinite(scale):
            refusals.append(
                f"accountant {item.name!r}: no amount of noise meets epsilon={epsilon:g}, "
                f"delta={delta:g} beside parts that have none."
            )
            continue
        # Rounding may leave the cost just above the budget; each step up is twice the one before.
        step = 1e-9
        spent = item.epsilon(event.scaled(scale), delta, adjacency)
        while spent > epsilon:
            scale, step = scale * (1 + step), 2 * step
            spent = item.epsilon(event.scaled(scale), delta, adjacency)
        calibrations.append(Calibration(scale, spent, item.name))
    if not calibrations:
        raise UnknownCost(" ".join(refusals))
    return min(calibrations, key=lambda calibration: calibration.scale)
