"""Accounting for one pass over shuffled records."""

from __future__ import annotations

import math

from scipy.optimize import brentq

from skdp.accounting.accountant import Accountant, bisect_log_delta, register
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.clones import approximate_delta, clone_delta, clone_epsilon
from skdp.accounting.events import Event, Shuffled
from skdp.accounting.guarantees import guarantee, spends_delta
from skdp.accounting.plan import only_event

# A randomiser has to hold between any two records, so replace-one prices it under both relations:
# to exchange a record for the null record is one of the replacements.
_LOCAL = Adjacency.REPLACE_ONE
# Shares of delta / n that the local deltas are tried with.
_SHARES = (1e-3, 0.01, 0.03, 0.06, 0.1, 0.2, 0.3, 0.45)


@register
class ShuffleModel(Accountant):
    """Hiding among the clones, for one pass of local randomisers over shuffled records.

    Feldman, McMillan, Talwar 2021, exact sum (see ``clones.py``); where the randomiser has a whole
    curve, the best point (local epsilon, local delta) on it. Never more than one randomiser costs:
    each record is used once (parallel composition).
    """

    name = "shuffle"
    rank = 50
    special = (Shuffled,)

    def examine(self, event: Event, adjacency: Adjacency) -> Shuffled:
        part = only_event(event, Shuffled, "shuffled pass")
        guarantee(part.randomiser, 1e-6, _LOCAL)
        return part

    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        shuffled = self.known(event, adjacency)
        n, randomiser = shuffled.n, shuffled.randomiser
        once, lost = guarantee(randomiser, delta, adjacency)
        alone = once if lost <= delta else math.inf

        def amplified(local_delta: float) -> float:
            local_epsilon, local_delta = guarantee(randomiser, local_delta, _LOCAL)
            return _solve(n, local_epsilon, local_delta, delta)

        if delta == 0 or not spends_delta(randomiser, _LOCAL):
            return min(alone, amplified(0.0))
        return min(alone, *(amplified(share * delta / n) for share in _SHARES))

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        self.known(event, adjacency)
        return bisect_log_delta(
            lambda delta: self.epsilon(event, delta, adjacency) <= epsilon, precision=1e-6
        )


def _solve(n: int, local_epsilon: float, local_delta: float, delta: float) -> float:
    """Least epsilon whose clones and local deltas together stay within ``delta``."""
    if not math.isfinite(local_epsilon):
        return math.inf
    if local_delta == 0:
        return clone_epsilon(n, local_epsilon, delta)

    def total(epsilon: float) -> float:
        added = approximate_delta(n, local_epsilon, local_delta, epsilon)
        return clone_delta(n, local_epsilon, epsilon) + added

    # The local deltas add more and more as epsilon grows, the clones less and less.
    high = local_epsilon
    while high > 1e-12 and approximate_delta(n, local_epsilon, local_delta, high) > delta / 2:
        high *= 0.8
    if total(high) > delta:
        return math.inf
    if total(0.0) <= delta:
        return 0.0
    root = brentq(
        lambda epsilon: math.log(max(total(epsilon), 1e-300) / delta), 0.0, high, xtol=1e-10 * high
    )
    return float(root) + 2e-10 * high
