"""Theorems of papers: shuffling, which prices passes of single steps, and composition theorems.

zCDP and advanced composition serve the papers' experiments. No fit is priced by them, as they need
more noise than `skdp.accounting.price`: for one Gaussian release zCDP needs 6 to 11 % more, and
advanced composition of sampled steps more than twice the noise.
"""

import itertools
import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import bdtr, bdtrc
from scipy.stats import binom

from skdp._numbers import Array, Indices
from skdp.accounting import events
from skdp.accounting.composition import MAX_EXPONENT
from skdp.accounting.events import (
    Adjacency,
    ApproximateDP,
    Event,
    Sampled,
    Shuffled,
    UnknownCost,
    joint_mu,
    sampled_counts,
)
from skdp.accounting.pairs import amplified, gaussian_epsilon, pure_epsilon, require_figures

# (epsilon_i, delta_i, number of mechanisms with both)
Guarantees = list[tuple[float, float, int]]


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon at ``delta`` that is guaranteed by every rho-zCDP mechanism.

    ``inf over a > 1 of a rho + log(1 - 1/a) - log(delta a) / (a-1)``
    (Canonne, Kamath, Steinke 2020, arXiv:2004.00010, Prop. 12).

    Parameters
    ----------
    rho : float
        At least 0.
    delta : float
        In [0, 1).

    Returns
    -------
    float
        inf if delta is 0 and rho is not.

    Examples
    --------
    >>> from skdp.accounting.papers import zcdp_epsilon
    >>> round(zcdp_epsilon(0.1, 1e-6), 6)
    2.141939
    """
    require_figures(rho=rho, delta=delta)
    if rho == 0:
        return 0.0
    if math.isinf(rho) or delta == 0:
        return math.inf

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        return order * rho + math.log1p(-1 / order) - math.log(delta * order) / excess

    minimum = minimize_scalar(bound, bounds=(-8, 16), method="bounded", options={"xatol": 1e-12})
    return max(0.0, float(minimum.fun))


def composed_epsilon(guarantees: Guarantees, slack: float) -> float:
    """Epsilon of the composition of (epsilon_i, delta_i)-DP mechanisms for a further ``slack``.

    ``sqrt(2 log(1/slack) sum epsilon_i**2) + sum epsilon_i (e**epsilon_i - 1)/(e**epsilon_i + 1)``,
    or the plain sum if that is less. Delta is ``1 - prod (1 - delta_i) + slack`` (Wu, Wang,
    Cristali, Gu, Willett 2021, Lemma 2.2, from Kairouz, Oh, Viswanath 2015, Thm 3.5).

    Parameters
    ----------
    guarantees : list of (epsilon_i, delta_i, count)
    slack : float
        At least 0.

    Returns
    -------
    float
    """
    if not guarantees:
        return 0.0
    epsilons, _, counts = np.array(guarantees).T
    plain = float(counts @ epsilons)
    if slack <= 0 or not math.isfinite(plain):
        return plain
    drift = float(counts @ (epsilons * np.tanh(epsilons / 2)))
    return min(plain, math.sqrt(2 * math.log(1 / slack) * float(counts @ epsilons**2)) + drift)


# A randomiser has to hold between any two records, so its guarantee is taken under replace-one for
# both relations: exchanging a record for the null record is one of the replacements.
_LOCAL = Adjacency.REPLACE_ONE
# Local deltas that are tried, as shares of delta / n. Each gives a valid epsilon. The least counts.
_SHARES = (1e-3, 0.01, 0.03, 0.06, 0.1, 0.2, 0.3, 0.45)


def guarantee(event: Event, delta: float, adjacency: Adjacency) -> tuple[float, float]:
    """Return an (epsilon, delta) that ``event`` guarantees, at the given delta if it has a choice.

    Mechanisms with delta = 0, or with a delta of their own, keep it. For samples, epsilon shrinks
    to ``log(1 + q (exp(epsilon) - 1))`` and delta to ``q delta`` (Balle, Barthe, Gaboardi 2018, Thm
    8 and 9, Thm 2 for Poisson samples under replace-one).
    """
    match event:
        case events.Gaussian():
            return gaussian_epsilon(event.mu(adjacency), delta), delta
        case events.Laplace() | events.NoisyMaximum():
            return event.pure_epsilon(adjacency), 0.0
        case ApproximateDP():
            return event.epsilon, event.delta
        case Sampled():
            mu = joint_mu(sampled_counts(event, adjacency), adjacency)
            if mu is None:
                return pure_epsilon(event, adjacency), 0.0
            epsilon = gaussian_epsilon(mu, min(delta / event.rate, 1.0))
            return amplified(epsilon, event.rate), delta
    raise UnknownCost(
        f"{type(event).__name__} has no single (epsilon, delta) theorem under {adjacency}."
    )


def needs_delta(event: Event, adjacency: Adjacency) -> bool:
    """Whether ``event`` needs a share of delta to have a finite epsilon."""
    return guarantee(event, 1e-3, adjacency)[1] == 1e-3 and not isinstance(event, ApproximateDP)


def clone_delta(n: int, local_epsilon: float, epsilon: float) -> float:
    """Delta at ``epsilon`` of ``n`` shuffled, adaptive, ``local_epsilon``-DP randomisers.

    Feldman, McMillan, Talwar 2021 (arXiv:2012.12803), Sec. 3: each of the other n - 1 records is a
    clone of one of the two candidates with probability exp(-local_epsilon), so the pair

        (A + D, G - A + 1 - D)   against   (A + 1 - D, G - A + D)

    dominates, with G ~ Bin(n - 1, exp(-local_epsilon)) clones, A ~ Bin(G, 1/2) of the first kind, D
    a coin of bias ``exp(local_epsilon) / (1 + exp(local_epsilon))``. The sum over G is computed
    term by term. Given G the best test is a threshold on the first count. The larger clone
    probability of their later paper (arXiv:2208.04591) is withdrawn for adaptive randomisers and
    not used.
    """
    if epsilon >= local_epsilon:
        return 0.0
    if epsilon > MAX_EXPONENT:
        return 1.0
    clones, probability, missed = _clones(n - 1, math.exp(-local_epsilon))
    truth = 1 / (1 + math.exp(-local_epsilon))
    lie = math.exp(-local_epsilon) * truth  # 1 - truth would have no digits left from 36 on
    # Given c clones, the first count is a with probability (truth B(a-1) + lie B(a)) against the
    # same with truth and lie exchanged, B = Bin(c, 1/2). B(a-1)/B(a) = a / (c + 1 - a) increases
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
    # The tails are charged in full, with 1e-18 for the error of these probabilities.
    return clones, binom.pmf(clones, others, rate), float(missed) + 1e-18


def _at_least(threshold: Array, clones: Indices) -> Array:
    """``P(Bin(clones, 1/2) >= threshold)``."""
    inside = np.clip(threshold - 1, 0, clones)
    tail: Array = np.where(inside < clones, bdtrc(np.minimum(inside, clones - 1), clones, 0.5), 0.0)
    return np.where(threshold <= 0, 1.0, tail)


def shuffle_epsilon(event: Shuffled, delta: float, adjacency: Adjacency) -> float:
    """Epsilon of one pass of local randomisers over shuffled records, by hiding among clones.

    By the exact sum of `clone_delta` (Feldman, McMillan, Talwar 2021). For randomisers with a
    privacy curve, by the best of some points (local epsilon, local delta) on it. Never more than
    the epsilon of one randomiser: each record is used once.

    Parameters
    ----------
    event : Shuffled
    delta : float
        In [0, 1).
    adjacency : Adjacency
        Of the plan. The guarantee of a randomiser holds between any two records in any case.

    Returns
    -------
    float
        inf if no finite epsilon holds.

    Raises
    ------
    UnknownCost
        If the randomiser has no single (epsilon, delta).
    """
    randomiser = event.event
    once, spent_once = guarantee(randomiser, delta, adjacency)  # parallel composition
    once = once if spent_once <= delta else math.inf
    shares = _SHARES if delta > 0 and needs_delta(randomiser, _LOCAL) else (0.0,)
    points = (guarantee(randomiser, share * delta / event.n, _LOCAL) for share in shares)
    return min(once, *(clone_epsilon(event.n, epsilon, delta, spent) for epsilon, spent in points))
