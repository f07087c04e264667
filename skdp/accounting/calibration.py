"""Choose accountants for a plan, price it, and find the noise factor at which it costs a budget."""

import math
from dataclasses import dataclass

from skdp.accounting.accountant import Accountant, UnknownCost, candidates
from skdp.accounting.events import Adjacency, Composed, Event, OnBlock, walk


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
) -> list[Accountant[object]]:
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
    supporting: list[Accountant[object]] = []
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
            f"no accountant can price this plan under {adjacency}. {' '.join(listed)}"
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


def calibrate(
    event: Event,
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    accountant: str = "auto",
) -> Calibration:
    """Find the least ``scale`` such that ``event.scaled(scale)`` is (epsilon, delta)-DP.

    Errors are on the private side: the certified epsilon never exceeds the requested one.

    Parameters
    ----------
    event : Event
        The plan, with noise in relative units. The cost of parts whose noise cannot be scaled, such
        as `ApproximateDP`, stays as it is.
    epsilon, delta : float
        The budget. ``epsilon=inf`` gives scale 0: no noise at all.
    adjacency : Adjacency
    accountant : str, default="auto"
        A registered name, or "auto" for the one which needs the least noise.

    Returns
    -------
    Calibration

    Raises
    ------
    UnknownCost
        If no accountant supports the plan, or no amount of noise meets the budget.
    ValueError
        If there is no accountant of this name.

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
