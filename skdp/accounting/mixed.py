"""Plans some parts of which are known to special accountants only."""

from __future__ import annotations

import math

from skdp.accounting.accountant import Accountant, UnknownCost, bisect_log_delta, register
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events import (
    ApproximateDP,
    Composed,
    Event,
    ObjectivePerturbed,
    Selected,
    Shuffled,
)
from skdp.accounting.objective import ObjectiveModel
from skdp.accounting.plan import Sequence, paths
from skdp.accounting.pld import PrivacyLossDistribution
from skdp.accounting.rdp import RenyiDP
from skdp.accounting.selection import SelectionModel
from skdp.accounting.shuffle import ShuffleModel

# Shares of delta that the special parts are tried with.
_SHARES = (0.2, 0.5, 0.8)
_SPECIALISTS = (SelectionModel(), ShuffleModel(), ObjectiveModel(), RenyiDP())


@register
class MixedComposition(Accountant):
    """Selections, shuffled passes and the like inside longer plans, one point of each curve.

    What only a special accountant knows enters as one (epsilon_i, delta_i) that it certifies, since
    a bound on a curve need not itself be the curve of a mechanism; the composition with all other
    parts is by privacy-loss distributions.
    """

    name = "mixed"
    rank = 60
    special = (ObjectivePerturbed, Selected, Shuffled)

    def examine(self, event: Event, adjacency: Adjacency) -> object:
        found = [_split(path, adjacency) for path in _paths(event, adjacency)]
        for special, rest in found:
            PrivacyLossDistribution().examine(Composed(tuple(rest.items())), adjacency)
            if len(special) == 1 and special[0][1] == 1 and not rest:
                name = special[0][2].name
                raise UnknownCost(f"the one part of this plan is known to {name!r}; ask that.")
        if not any(special for special, _ in found):
            raise UnknownCost("no part of this plan has a special accountant that knows it.")
        return found

    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        self.known(event, adjacency)
        if delta == 0:
            return math.inf
        return max(_epsilon(path, delta, adjacency) for path in _paths(event, adjacency))

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        self.known(event, adjacency)
        return bisect_log_delta(
            lambda delta: self.epsilon(event, delta, adjacency) <= epsilon, precision=1e-3
        )


# An event, how often it happens, and who prices it.
Special = tuple[Event, int, Accountant]


def _paths(event: Event, adjacency: Adjacency) -> list[Sequence]:
    return paths(event, adjacency, keep=MixedComposition.special)


def _split(path: Sequence, adjacency: Adjacency) -> tuple[list[Special], Sequence]:
    """Parts that a special accountant knows, and the parts that are left to "pld"."""
    special: list[Special] = []
    rest: Sequence = {}
    # Several perturbed objectives compose far better by Renyi divergences than point by point.
    perturbed = {part: n for part, n in path.items() if isinstance(part, ObjectivePerturbed)}
    if sum(perturbed.values()) > 1:
        special.append((Composed(tuple(perturbed.items())), 1, RenyiDP()))
        path = {part: count for part, count in path.items() if part not in perturbed}
    for part, count in path.items():
        known = _known(part, count, adjacency)
        if known is None:
            rest[part] = count
        else:
            special.append(known)
    return special, rest


def _known(part: Event, count: int, adjacency: Adjacency) -> Special | None:
    """Prefer an accountant that knows all repetitions together."""
    if not isinstance(part, MixedComposition.special):
        return None
    for accountant in _SPECIALISTS:
        whole = Composed(((part, count),))
        if accountant.objection(whole, adjacency) is None:
            return whole, 1, accountant
        if accountant.objection(part, adjacency) is None:
            return part, count, accountant
    return None


def _epsilon(path: Sequence, delta: float, adjacency: Adjacency) -> float:
    special, rest = _split(path, adjacency)
    times = sum(count for _, count, _ in special)
    bounds = []
    for share in _SHARES:
        each = share * delta / times
        points = tuple(
            (ApproximateDP(accountant.epsilon(event, each, adjacency), each), count)
            for event, count, accountant in special
        )
        plan = Composed((*points, *rest.items()))
        bounds.append(PrivacyLossDistribution().epsilon(plan, delta, adjacency))
    return min(bounds)
