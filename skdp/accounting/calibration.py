"""Find the one factor on the noise of a plan that makes it cost what the user allows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skdp.accounting.accountant import Accountant, UnknownCost, candidates
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events import Composed, Event


@dataclass(frozen=True)
class Calibration:
    """A noise factor, the accountant that vouches for it, and the epsilon it certifies."""

    scale: float
    epsilon: float
    accountant: str


def knowing(event: Event, adjacency: Adjacency, accountant: str = "auto") -> list[Accountant]:
    """Accountants among those that ``accountant`` stands for which have a theorem for ``event``.

    Raises
    ------
    UnknownCost
        If there is none; the message gives every objection.
    """
    asked = candidates(accountant)
    objections = {item.name: item.objection(event, adjacency) for item in asked}
    able = [item for item in asked if objections[item.name] is None]
    if not able:
        reasons = "; ".join(f"{name}: {why}" for name, why in objections.items())
        raise UnknownCost(f"no accountant can price this plan ({reasons})")
    return able


def price(
    event: Event, delta: float, adjacency: Adjacency, accountant: str = "auto"
) -> tuple[float, str]:
    """Least certified epsilon of ``event`` at ``delta``, and the accountant that certifies it."""
    able = knowing(event, adjacency, accountant)
    return min((item.epsilon(event, delta, adjacency), item.name) for item in able)


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
        The plan, with noise in relative units.
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
    if math.isinf(epsilon):
        return Calibration(0.0, math.inf, "none")
    if event == Composed():
        return Calibration(1.0, 0.0, "none")
    refusals = []
    found: list[Calibration] = []
    for item in knowing(event, adjacency, accountant):
        try:
            scale = item.scale(event, epsilon, delta, adjacency)
        except UnknownCost as refusal:
            refusals.append(str(refusal))
            continue
        spent = item.epsilon(event.scaled(scale), delta, adjacency)
        while spent > epsilon:
            scale *= 1 + 1e-9
            spent = item.epsilon(event.scaled(scale), delta, adjacency)
        found.append(Calibration(scale, spent, item.name))
    if not found:
        raise UnknownCost(" ".join(refusals))
    return min(found, key=lambda calibration: calibration.scale)
