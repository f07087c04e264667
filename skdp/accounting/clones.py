"""Hiding among the clones: what shuffling local randomisers is worth, by an exact sum."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import bdtr, bdtrc
from scipy.stats import binom

from skdp.accounting.pairs import Array

Counts = npt.NDArray[np.int64]

# Tails of the number of clones below this are charged in full.
_CLONE_TAIL = 1e-18

# Beyond it exp leaves float64's range.
MOST_EXPONENT = 700.0


def clone_delta(n: int, local_epsilon: float, epsilon: float) -> float:
    """Delta at ``epsilon`` of ``n`` shuffled, adaptive, ``local_epsilon``-DP randomisers.

    Feldman, McMillan, Talwar 2021 (arXiv:2012.12803), Sec. 3: each of the other n - 1 records is a
    clone of one of the two candidates with chance exp(-local_epsilon), so the pair

        (A + D, G - A + 1 - D)   against   (A + 1 - D, G - A + D)

    dominates, with G ~ Bin(n - 1, exp(-local_epsilon)) clones, A ~ Bin(G, 1/2) of the first kind, D
    a coin of bias ``exp(local_epsilon) / (1 + exp(local_epsilon))``. The sum over G is taken term
    by term; given G the best test is a threshold on the first count. The larger clone probability
    of their later paper (arXiv:2208.04591) is withdrawn for adaptive randomisers and not used.
    """
    if epsilon >= local_epsilon:
        return 0.0
    if epsilon > MOST_EXPONENT:
        return 1.0
    clones, chance, missed = _clones(n - 1, math.exp(-local_epsilon))
    truth = 1 / (1 + math.exp(-local_epsilon))
    lie = math.exp(-local_epsilon) * truth  # 1 - truth would have no digit left from 36 on
    # Given c clones, the first count is a with chance (truth B(a-1) + lie B(a)) against the same
    # with truth and lie exchanged, B = Bin(c, 1/2); B(a-1)/B(a) = a / (c + 1 - a) grows with a.
    # The ratio exceeds exp(epsilon) from the odds below on. They are those of (truth exp(epsilon) -
    # lie) to (truth - lie exp(epsilon)), divided by truth.
    odds = (math.exp(epsilon) - math.exp(-local_epsilon)) / -math.expm1(epsilon - local_epsilon)
    best = np.floor((clones + 1) * (odds / (1 + odds))) + 1
    gain = np.zeros(len(clones))
    # Where rounding moves the best threshold, the sum would be too small, as any other test tells
    # less. So its neighbours are tried, too.
    tails = [_at_least(best + near, clones) for near in (-2, -1, 0, 1)]
    for shifted, straight in itertools.pairwise(tails):
        first = truth * shifted + lie * straight
        second = lie * shifted + truth * straight
        # The two may cancel: what rounding leaves of them is added, as a share of their sizes.
        weighted = math.exp(epsilon) * second
        rounding = 16 * np.finfo(float).eps * (first + weighted)
        gain = np.maximum(gain, first - weighted + rounding)
    return min(1.0, float(chance @ gain) * (1 + 1e-9) + missed)


def clone_epsilon(n: int, local_epsilon: float, delta: float) -> float:
    """Least epsilon with ``clone_delta`` at most ``delta``, rounded up."""
    if delta <= 0 or math.isinf(local_epsilon):
        return local_epsilon
    if clone_delta(n, local_epsilon, 0.0) <= delta:
        return 0.0

    def excess(epsilon: float) -> float:
        return math.log(max(clone_delta(n, local_epsilon, epsilon), 1e-300) / delta)

    root = brentq(excess, 0.0, local_epsilon, xtol=1e-10 * local_epsilon)
    return min(local_epsilon, float(root) + 2e-10 * local_epsilon)


def approximate_delta(n: int, local_epsilon: float, local_delta: float, epsilon: float) -> float:
    """Return what ``n`` randomisers with a ``local_delta`` each add to delta (same paper)."""
    if epsilon > MOST_EXPONENT:
        return math.inf if local_delta > 0 else 0.0
    return (math.exp(epsilon) + 1) * (1 + math.exp(-local_epsilon) / 2) * n * local_delta


def _clones(others: int, rate: float) -> tuple[Counts, Array, float]:
    """Likely numbers of clones, their chances, and the chance of any other number."""
    if others == 0:
        return np.zeros(1, dtype=np.int64), np.ones(1), 0.0
    spread = 10 * math.sqrt(others * rate * (1 - rate)) + 50
    low = max(0, math.floor(others * rate - spread))
    high = min(others, math.ceil(others * rate + spread))
    clones = np.arange(low, high + 1, dtype=np.int64)
    missed = bdtr(low - 1, others, rate) if low > 0 else 0.0
    missed += bdtrc(high, others, rate) if high < others else 0.0
    return clones, binom.pmf(clones, others, rate), float(missed) + _CLONE_TAIL


def _at_least(threshold: Array, clones: Counts) -> Array:
    """``P(Bin(clones, 1/2) >= threshold)``."""
    inside = np.clip(threshold - 1, 0, clones)
    tail: Array = np.where(inside < clones, bdtrc(np.minimum(inside, clones - 1), clones, 0.5), 0.0)
    return np.where(threshold <= 0, 1.0, tail)
