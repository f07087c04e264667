"""Composition of mechanisms of which only (epsilon_i, delta_i) is used."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar

from skdp.accounting.accountant import Accountant, UnknownCost, bisect_log_delta, register
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.composition import delta_of, epsilon_of
from skdp.accounting.events import Event
from skdp.accounting.guarantees import guarantee, spends_delta
from skdp.accounting.pairs import ResponsePair
from skdp.accounting.plan import Sequence, paths

# (epsilon_i, delta_i, how often)
Guarantees = list[tuple[float, float, int]]


def advanced_epsilon(guarantees: Guarantees, slack: float) -> float:
    """Epsilon of the composition of (epsilon_i, delta_i)-DP mechanisms, at the price of ``slack``.

    ``sqrt(2 log(1/slack) sum epsilon_i**2) + sum epsilon_i (e**epsilon_i - 1)/(e**epsilon_i + 1)``,
    or the plain sum if that is less; delta is ``1 - prod (1 - delta_i) + slack`` (Wu, Wang,
    Cristali, Gu, Willett 2021, Lemma 2.2, from Kairouz, Oh, Viswanath 2015, Thm 3.5).
    """
    if not guarantees:
        return 0.0
    epsilons, _, counts = np.array(guarantees).T
    plain = float(counts @ epsilons)
    if slack <= 0 or not math.isfinite(plain):
        return plain
    drift = float(counts @ (epsilons * np.tanh(epsilons / 2)))
    return min(plain, math.sqrt(2 * math.log(1 / slack) * float(counts @ epsilons**2)) + drift)


def _lost(guarantees: Guarantees) -> float:
    """``1 - prod (1 - delta_i)``."""
    if any(delta == 1 for _, delta, _ in guarantees):
        return 1.0
    return -math.expm1(sum(count * math.log1p(-delta) for _, delta, count in guarantees))


@register
class AdvancedComposition(Accountant):
    """Extended advanced composition of (epsilon_i, delta_i), for comparison with papers.

    Delta is split between the parts that need some and the slack of the theorem; the shares are
    the best of those that give every such part the same.
    """

    name = "advanced"

    def examine(self, event: Event, adjacency: Adjacency) -> object:
        return [
            [guarantee(part, 1e-6, adjacency) for part in path] for path in paths(event, adjacency)
        ]

    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        self.known(event, adjacency)
        return max(_advanced(path, delta, adjacency) for path in paths(event, adjacency))

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        self.known(event, adjacency)
        return bisect_log_delta(lambda delta: self.epsilon(event, delta, adjacency) <= epsilon)

    @lru_cache(maxsize=64)  # noqa: B019  accountants live as long as the process
    def scale(self, event: Event, epsilon: float, delta: float, adjacency: Adjacency) -> float:
        return super().scale(event, epsilon, delta, adjacency)


def _advanced(path: Sequence, delta: float, adjacency: Adjacency) -> float:
    needy = sum(count for part, count in path.items() if spends_delta(part, adjacency))
    own = _lost(
        [
            (*guarantee(part, 0.5, adjacency), count)
            for part, count in path.items()
            if not spends_delta(part, adjacency)
        ]
    )
    left = 1 - (1 - delta) / (1 - own) if own < 1 else -1.0
    if left < 0 or (left == 0 and needy):
        return math.inf

    def composed(share: float) -> float:
        """Epsilon where the parts that need delta get ``share`` of what is left."""
        each = -math.expm1(math.log1p(-share * left) / needy) if needy else 0.0
        parts = [(*guarantee(part, each, adjacency), count) for part, count in path.items()]
        return advanced_epsilon(parts, max(delta - _lost(parts), 0.0))

    if not needy:
        return composed(0.0)
    found = minimize_scalar(
        lambda log_odds: composed(1 / (1 + math.exp(-log_odds))), bounds=(-12, 12), method="bounded"
    )
    return min(float(found.fun), composed(0.5), composed(1.0))


@register
class OptimalComposition(Accountant):
    """Optimal composition of (epsilon_i, delta_i) where nothing else is known of the parts.

    Exact for heterogeneous pairs: the privacy loss of the randomised responses of Kairouz, Oh and
    Viswanath 2015 (Thm 3.3), which Murtagh and Vadhan 2016 show to be #P-hard in closed form, is
    summed by FFT. Of Laplace noise and of pure samples only their epsilon is used.
    """

    name = "optimal"

    def examine(self, event: Event, adjacency: Adjacency) -> object:
        for path in paths(event, adjacency):
            for part in path:
                if spends_delta(part, adjacency):
                    raise UnknownCost(
                        f"{type(part).__name__} is known by a whole curve, not by one "
                        "(epsilon, delta); ask 'pld'."
                    )
        return None

    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        self.known(event, adjacency)
        return max(self._epsilon(path, delta, adjacency) for path in paths(event, adjacency))

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        self.known(event, adjacency)
        found = 0.0
        for path in paths(event, adjacency):
            parts = _guarantees(path, adjacency)
            if sum(count * bound for bound, _, count in parts) <= epsilon:
                found = max(found, _lost(parts))
            else:
                pairs = tuple((ResponsePair(bound, leak), count) for bound, leak, count in parts)
                found = max(found, delta_of(pairs, pairs, epsilon))
        return found

    def _epsilon(self, path: Sequence, delta: float, adjacency: Adjacency) -> float:
        parts = _guarantees(path, adjacency)
        plain, lost = sum(count * bound for bound, _, count in parts), _lost(parts)
        if lost > delta or not math.isfinite(plain):
            return math.inf
        if lost == delta:
            return plain
        pairs = tuple((ResponsePair(bound, leak), count) for bound, leak, count in parts)
        return min(plain, epsilon_of(pairs, pairs, delta))


def _guarantees(path: Sequence, adjacency: Adjacency) -> Guarantees:
    return [(*guarantee(part, 0.5, adjacency), count) for part, count in path.items()]
