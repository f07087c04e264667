"""The accountant of plans in which some events are supported by special accountants only."""

import math

from skdp.accounting.accountant import Accountant
from skdp.accounting.events.base import Adjacency, Composed, Event, UnknownCost
from skdp.accounting.events.mechanisms import ApproximateDP
from skdp.accounting.events.wrappers import Selected, Shuffled
from skdp.accounting.plan import EventCounts, paths
from skdp.accounting.pld import PLDAccountant
from skdp.accounting.rdp import RDPAccountant
from skdp.accounting.selection import SelectionAccountant
from skdp.accounting.shuffle import ShuffleAccountant

# Shares of delta that are tried for the special parts together. Each gives a valid epsilon, and the
# least one is taken.
_SHARES = (0.2, 0.5, 0.8)
_PLD, _RDP = PLDAccountant(), RDPAccountant()
# In the order of preference.
_SPECIALISTS = SelectionAccountant(), ShuffleAccountant(), _RDP
# An event, its number of occurrences, and the accountant that certifies a point of its curve.
Special = tuple[Event, int, Accountant]
Facts = tuple[list[Special], Composed, Adjacency]


class MixedAccountant(Accountant):
    """Plans with selections or shuffled passes beside other events.

    An event that only a special accountant supports enters as one (epsilon_i, delta_i) that this
    accountant certifies, since a bound on a privacy curve need not itself be the curve of a
    mechanism. Its composition with all other events is by privacy-loss distributions.
    """

    name = "mixed"
    rank = 60
    special = (Selected, Shuffled)
    delta_precision = 1e-3

    def examine(self, event: Event, adjacency: Adjacency) -> list[Facts]:
        met = paths(event, adjacency, keep=self.special)
        split = [(*_split(path, adjacency), adjacency) for path in met]
        for special, rest, _ in split:
            _PLD.examine(rest, adjacency)
            if len(split) == 1 and _is_one(special, rest):
                name = special[0][2].name
                raise UnknownCost(f"the one part of this plan is supported by {name!r}; use that.")
        if not any(special for special, _, _ in split):
            raise UnknownCost("no part of this plan has a special accountant that supports it.")
        return split

    def path_epsilon(self, facts: Facts, delta: float) -> float:
        special, rest, adjacency = facts
        if delta == 0:
            return math.inf
        if not special:
            return _PLD.epsilon(rest, delta, adjacency)
        if _is_one(special, rest):
            event, _, accountant = special[0]
            return accountant.epsilon(event, delta, adjacency)
        times = sum(count for _, count, _ in special)
        bounds = []
        for share in _SHARES:
            each = share * delta / times
            points = tuple(
                (ApproximateDP(accountant.epsilon(event, each, adjacency), each), count)
                for event, count, accountant in special
            )
            plan = Composed((*points, *rest.parts))
            bounds.append(_PLD.epsilon(plan, delta, adjacency))
        return min(bounds)


def _split(path: EventCounts, adjacency: Adjacency) -> tuple[list[Special], Composed]:
    """Separate the events for a special accountant from those that are left to "pld"."""
    special: list[Special] = []
    rest: list[tuple[Event, int]] = []
    for part, count in path.items():
        specialist = _specialist(part, count, adjacency)
        if specialist is None:
            rest.append((part, count))
        else:
            special.append(specialist)
    return special, Composed(tuple(rest))


def _is_one(special: list[Special], rest: Composed) -> bool:
    """Whether there is a single event, for a special accountant."""
    return len(special) == 1 and special[0][1] == 1 and not rest.parts


def _specialist(part: Event, count: int, adjacency: Adjacency) -> Special | None:
    """Find a special accountant, preferably one that supports all occurrences together."""
    if not isinstance(part, MixedAccountant.special):
        return None
    together = Composed(((part, count),))
    for accountant in _SPECIALISTS:
        if accountant.why_unsupported(together, adjacency) is None:
            return together, 1, accountant
        if accountant.why_unsupported(part, adjacency) is None:
            return part, count, accountant
    return None
