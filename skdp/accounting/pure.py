"""Pure differential privacy: epsilons that hold with delta = 0, and their sums."""

from __future__ import annotations

import math
from functools import singledispatch

from skdp.accounting.accountant import Accountant, UnknownCost, register
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events import (
    ApproximateDP,
    Event,
    FixedSizeSampled,
    Laplace,
    PoissonSampled,
    Selected,
)
from skdp.accounting.plan import Sequence, paths, sequence_of


@singledispatch
def pure_epsilon(event: Event, adjacency: Adjacency) -> float:
    """Return the epsilon that ``event`` meets with delta = 0.

    Raises
    ------
    UnknownCost
        If there is none, or no theorem gives one.
    """
    raise UnknownCost(f"{type(event).__name__} has no epsilon with delta = 0 under {adjacency}.")


@pure_epsilon.register
def _(event: Laplace, adjacency: Adjacency) -> float:
    return event.pure_epsilon(adjacency)


@pure_epsilon.register
def _(event: ApproximateDP, adjacency: Adjacency) -> float:
    if event.delta > 0:
        raise UnknownCost(f"ApproximateDP with delta={event.delta:g} is not pure.")
    return event.epsilon


@pure_epsilon.register
def _(event: PoissonSampled, adjacency: Adjacency) -> float:
    # The sample without the record is one record away from the sample with it, which costs no more
    # than a replacement (Balle, Barthe, Gaboardi 2018, Thm 8 and, for replacements, Thm 2).
    inner = sequence_of(event.event)
    if adjacency is Adjacency.REPLACE_ONE:
        for part in inner:
            if not isinstance(part, Laplace):
                raise UnknownCost(
                    "a guarantee under replace_one says nothing of a record left out of the "
                    f"sample, so PoissonSampled of {type(part).__name__} has no theorem under "
                    "replace_one."
                )
    return amplified(pure_total(inner, adjacency), event.rate)


@pure_epsilon.register
def _(event: FixedSizeSampled, adjacency: Adjacency) -> float:
    if adjacency is Adjacency.ZERO_OUT:
        raise UnknownCost(
            "FixedSizeSampled is amplified under replace_one only: a record left out changes the "
            "number of rows, and with it the rate."
        )
    return amplified(pure_total(sequence_of(event.event), adjacency), event.rate)


@pure_epsilon.register
def _(event: Selected, adjacency: Adjacency) -> float:
    # (2 + eta) epsilon (Papernot and Steinke 2022, Cor. 3).
    return (2 + event.shape) * pure_total(sequence_of(event.event), adjacency)


def amplified(epsilon: float, rate: float) -> float:
    """``log(1 + rate (exp(epsilon) - 1))`` (Balle, Barthe, Gaboardi 2018, Thm 8 and 9)."""
    if epsilon > 30:
        return epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))
    return math.log1p(rate * math.expm1(epsilon))


def pure_total(sequence: Sequence, adjacency: Adjacency) -> float:
    """Sum of the epsilons of a sequence (Dwork, McSherry, Nissim, Smith 2006)."""
    return sum(count * pure_epsilon(event, adjacency) for event, count in sequence.items())


@register
class PureDP(Accountant):
    """Sum of epsilons: the one answer for delta = 0, loose for long plans with delta > 0."""

    name = "pure"
    rank = 20

    def examine(self, event: Event, adjacency: Adjacency) -> float:
        return max(pure_total(path, adjacency) for path in paths(event, adjacency))

    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        total: float = self.known(event, adjacency)
        return total

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        total = self.known(event, adjacency)
        if total <= epsilon:
            return 0.0
        # What randomised response would need (Kairouz, Oh, Viswanath 2015, Thm 3.4).
        return -math.expm1(epsilon - total) / (1 + math.exp(-total))
