"""Find the one factor on the noise of a plan that makes it cost what the user allows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skdp.accounting.accountant import Accountant, UnknownCost, candidates
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events import Event


@dataclass(frozen=True)
class Calibration:
    """A noise factor, the accountant that vouches for it, and the epsilon it certifies."""

    scale: float
    epsilon: float
    accountant: str


def knowing(event: Event, adjacency: Adjacency, accountant: str = "auto") -> list[Accountant]:
    """Accountants among those that ``accountant`` stands for which have a theorem for ``event``.

    "auto" goes through the accountants in the order of their ranks. The first that settles the
    matter, being tight for what it knows, ends the search, but for special accountants of events
    that the plan contains. So which ones are asked depends on the plan alone, never on how fast
    the machine is, and the slow ones are asked only where no quick one is tight.

    Raises
    ------
    UnknownCost
        If there is none; the message gives the objections of all that are for such plans.
    """
    able: list[Accountant] = []
    objections: dict[str, list[str]] = {}
    asked = candidates(accountant)
    settled = False
    for item in asked:
        concerned = not settled
        if item.special and len(asked) > 1:
            concerned = any(isinstance(part, item.special) for part, _ in event.flattened())
        if not concerned:
            continue
        objection = item.objection(event, adjacency)
        if objection is None:
            able.append(item)
            settled |= item.settles
        else:
            objections.setdefault(objection, []).append(item.name)
    if not able:
        reasons = [f"{', '.join(names)}: {why}" for why, names in objections.items()]
        raise UnknownCost(
            f"no accountant can price this plan under {adjacency}. {' '.join(reasons)}"
        )
    return able


def price(
    event: Event, delta: float, adjacency: Adjacency, accountant: str = "auto"
) -> tuple[float, str]:
    """Least certified epsilon of ``event`` at ``delta``, and the accountant that certifies it."""
    able = knowing(event, adjacency, accountant)
    costs = [(item.epsilon(event, delta, adjacency), item.name) for item in able]
    return min(costs, key=lambda cost: cost[0])


def calibrate(
    event: Event,
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    accountant: str = "auto",
) -> Calibration:
    """Find the least ``scale`` such that ``event.scaled(scale)`` is (epsilon, delta)-DP.

    The answer errs on the private side: the certified epsilon never exceeds the one asked for.

    Parameters
    ----------
    event : Event
        The plan, with noise in relative units. Parts without noise of their own keep their cost.
    epsilon, delta : float
        The budget. ``epsilon=inf`` gives scale 0: no noise at all.
    adjacency : Adjacency
    accountant : str, default="auto"
        A registered name, or "auto" for the one which needs the least noise.

    Raises
    ------
    UnknownCost
        If no accountant knows the plan, or no amount of noise meets the budget.

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
    found: list[Calibration] = []
    for item in knowing(event, adjacency, accountant):
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
        # Rounding may leave the last digits on the wrong side; each try goes twice as far.
        step = 1e-9
        spent = item.epsilon(event.scaled(scale), delta, adjacency)
        while spent > epsilon:
            scale, step = scale * (1 + step), 2 * step
            spent = item.epsilon(event.scaled(scale), delta, adjacency)
        found.append(Calibration(scale, spent, item.name))
    if not found:
        raise UnknownCost(" ".join(refusals))
    return min(found, key=lambda calibration: calibration.scale)
