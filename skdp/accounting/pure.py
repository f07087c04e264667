"""Pure differential privacy: epsilons that hold with delta = 0, and their sums."""

import math
from functools import singledispatch

from skdp.accounting.accountant import Accountant, UnknownCost, register
from skdp.accounting.events import Adjacency, ApproximateDP, Event, Laplace
from skdp.accounting.events.sampling import Sampled
from skdp.accounting.pairs import amplified
from skdp.accounting.plan import EventCounts, paths, sampled_counts


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
def _(event: Sampled, adjacency: Adjacency) -> float:
    # Balle, Barthe, Gaboardi 2018, Thm 8 and 9. Under replace-one, a Poisson sample without the
    # record is one record away from the sample with it, which costs no more than a replacement
    # (their Thm 2).
    return amplified(pure_total(sampled_counts(event, adjacency), adjacency), event.rate)


def pure_total(counts: EventCounts, adjacency: Adjacency) -> float:
    """Sum of the epsilons of all events (Dwork, McSherry, Nissim, Smith 2006)."""
    return sum(count * pure_epsilon(event, adjacency) for event, count in counts.items())


@register
class PureDPAccountant(Accountant[float]):
    """Sum of epsilons: the only one for delta = 0, loose for long plans with delta > 0."""

    name = "pure"
    rank = 20

    def examine(self, event: Event, adjacency: Adjacency) -> float:
        return max(pure_total(path, adjacency) for path in paths(event, adjacency))

    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        return self.require(event, adjacency)

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        total = self.require(event, adjacency)
        if total <= epsilon:
            return 0.0
        # What randomised response would need (Kairouz, Oh, Viswanath 2015, Thm 3.4).
        return -math.expm1(epsilon - total) / (1 + math.exp(-total))
