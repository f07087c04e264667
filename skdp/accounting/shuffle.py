"""Privacy amplification by shuffling: one pass of local randomisers over shuffled records."""

import itertools
import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import bdtr, bdtrc
from scipy.stats import binom

from skdp._numbers import Array, Indices
from skdp.accounting.accountant import MAX_EXPONENT, Accountant
from skdp.accounting.events import Adjacency, Event, Shuffled
from skdp.accounting.guarantees import guarantee, needs_delta
from skdp.accounting.plan import only_event

# Bound on the error of the tails of the number of clones, which are charged in full.
_CLONE_TAIL = 1e-18
# A randomiser has to hold between any two records, so its guarantee is taken under replace-one for
# both relations: exchanging a record for the null record is one of the replacements.
_LOCAL = Adjacency.REPLACE_ONE
# Local deltas that are tried, as shares of delta / n. Each gives a valid epsilon; the least counts.
_SHARES = (1e-3, 0.01, 0.03, 0.06, 0.1, 0.2, 0.3, 0.45)


def clone_delta(n: int, local_epsilon: float, epsilon: float) -> float:
    """Delta at ``epsilon`` of ``n`` shuffled, adaptive, ``local_epsilon``-DP randomisers.

    Feldman, McMillan, Talwar 2021 (arXiv:2012.12803), Sec. 3: each of the other n - 1 records is a
    clone of one of the two candidates with probability exp(-local_epsilon), so the pair

        (A + D, G - A + 1 - D)   against   (A + 1 - D, G - A + D)

    dominates, with G ~ Bin(n - 1, exp(-local_epsilon)) clones, A ~ Bin(G, 1/2) of the first kind, D
    a coin of bias ``exp(local_epsilon) / (1 + exp(local_epsilon))``. The sum over G is taken term
    by term; given G the best test is a threshold on the first count. The larger clone probability
    of their later paper (arXiv:2208.04591) is withdrawn for adaptive randomisers and not used.
    """
    if epsilon >= local_epsilon:
        return 0.0
    if epsilon > MAX_EXPONENT:
        return 1.0
    clones, probability, missed = _clones(n - 1, math.exp(-local_epsilon))
    truth = 1 / (1 + math.exp(-local_epsilon))
    lie = math.exp(-local_epsilon) * truth  # 1 - truth would have no digits left from 36 on
    # Given c clones, the first count is a with probability (truth B(a-1) + lie B(a)) against the
    # same with truth and lie exchanged, B = Bin(c, 1/2); B(a-1)/B(a) = a / (c + 1 - a) increases
    # with a. The ratio exceeds exp(epsilon) above these odds: those of (truth exp(epsilon) - lie)
    # to (truth - lie exp(epsilon)), both divided by truth.
    odds = (math.exp(epsilon) - math.exp(-local_epsilon)) / -math.expm1(epsilon - local_epsilon)
    best = np.floor((clones + 1) * (odds / (1 + odds))) + 1
    gain = np.zeros(len(clones))
    # If rounding moved the best threshold, the sum would be too small, as any other test
    # distinguishes less. So its neighbours are tried, too.
    tails = [_at_least(best + near, clones) for near in (-2, -1, 0, 1)]
    for shifted, straight in itertools.pairwise(tails):
        first = truth * shifted + lie * straight
        second = lie * shifted + truth * straight
        # The two may cancel: a bound on the rounding error, relative to their sizes, is added.
        weighted = math.exp(epsilon) * second
        rounding = 16 * np.finfo(float).eps * (first + weighted)
        gain = np.maximum(gain, first - weighted + rounding)
    return min(1.0, float(probability @ gain) * (1 + 1e-9) + missed)


def approximate_delta(n: int, local_epsilon: float, local_delta: float, epsilon: float) -> float:
    """Return the increase of delta by the ``local_delta`` of ``n`` randomisers (same paper)."""
    if epsilon > MAX_EXPONENT:
        return math.inf if local_delta > 0 else 0.0
    return (math.exp(epsilon) + 1) * (1 + math.exp(-local_epsilon) / 2) * n * local_delta


def clone_epsilon(n: int, local_epsilon: float, delta: float, local_delta: float = 0.0) -> float:
    """Least epsilon at which clones and local deltas together stay within ``delta``, rounded up.

    inf if the local deltas are too large.
    """
    if math.isinf(local_epsilon) or (delta <= 0 and local_delta == 0):
        return local_epsilon

    def total(epsilon: float) -> float:
        added = approximate_delta(n, local_epsilon, local_delta, epsilon)
        return clone_delta(n, local_epsilon, epsilon) + added

    def excess(epsilon: float) -> float:
        return math.log(max(total(epsilon), 1e-300) / delta)

    # As epsilon grows, the local deltas add more and the clones less.
    high = local_epsilon
    while high > 1e-12 and approximate_delta(n, local_epsilon, local_delta, high) > delta / 2:
        high *= 0.8
    if total(high) > delta:
        return math.inf
    if total(0.0) <= delta:
        return 0.0
    root = brentq(excess, 0.0, high, xtol=1e-10 * high)
    return min(local_epsilon, float(root) + 2e-10 * high)


def _clones(others: int, rate: float) -> tuple[Indices, Array, float]:
    """Likely numbers of clones, their probabilities, and that of all other numbers."""
    if others == 0:
        return np.zeros(1, dtype=np.int64), np.ones(1), 0.0
    spread = 10 * math.sqrt(others * rate * (1 - rate)) + 50
    low = max(0, math.floor(others * rate - spread))
    high = min(others, math.ceil(others * rate + spread))
    clones = np.arange(low, high + 1, dtype=np.int64)
    missed = bdtr(low - 1, others, rate) if low > 0 else 0.0
    missed += bdtrc(high, others, rate) if high < others else 0.0
    return clones, binom.pmf(clones, others, rate), float(missed) + _CLONE_TAIL


def _at_least(threshold: Array, clones: Indices) -> Array:
    """``P(Bin(clones, 1/2) >= threshold)``."""
    inside = np.clip(threshold - 1, 0, clones)
    tail: Array = np.where(inside < clones, bdtrc(np.minimum(inside, clones - 1), clones, 0.5), 0.0)
    return np.where(threshold <= 0, 1.0, tail)


class ShuffleAccountant(Accountant):
    """Amplification by hiding among clones, for one pass of local randomisers.

    Feldman, McMillan, Talwar 2021, by the exact sum of `clone_delta`; for randomisers with a
    privacy curve, the best point (local epsilon, local delta) on it. Never more than the cost of
    one randomiser: each record is used once (parallel composition).
    """

    name = "shuffle"
    rank = 50
    special = (Shuffled,)
    delta_precision = 1e-6

    def examine(self, event: Event, adjacency: Adjacency) -> list[tuple[Shuffled, Adjacency]]:
        part = only_event(event, Shuffled, "shuffled pass")
        guarantee(part.event, 1e-6, _LOCAL)
        return [(part, adjacency)]

    def path_epsilon(self, facts: tuple[Shuffled, Adjacency], delta: float) -> float:
        shuffled, adjacency = facts
        n, randomiser = shuffled.n, shuffled.event
        bound, own_delta = guarantee(randomiser, delta, adjacency)
        alone = bound if own_delta <= delta else math.inf

        def amplified(local_delta: float) -> float:
            local_epsilon, local_delta = guarantee(randomiser, local_delta, _LOCAL)
            return clone_epsilon(n, local_epsilon, delta, local_delta)

        if delta == 0 or not needs_delta(randomiser, _LOCAL):
            return min(alone, amplified(0.0))
        return min(alone, *(amplified(share * delta / n) for share in _SHARES))
