"""Composition theorems of papers, for their experiments. No fit is priced by them.

They need more noise than `skdp.accounting.price`: for one Gaussian release zCDP needs 6 to 11 %
more, and advanced composition of sampled steps more than twice the noise.
"""

import math

import numpy as np
from scipy.optimize import minimize_scalar

from skdp.accounting.additive import require_figures
from skdp.accounting.events import Adjacency, Event
from skdp.accounting.plan import EventCounts, opened, paths
from skdp.accounting.shuffle import guarantee, needs_delta

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


def advanced_epsilon(event: Event, delta: float, adjacency: Adjacency) -> float:
    """Epsilon of a plan by extended advanced composition.

    Delta is divided between the parts that need some and the slack of the theorem. All of these
    parts get the same share, and the best such division is chosen.

    Parameters
    ----------
    event : Event
    delta : float
        In [0, 1).
    adjacency : Adjacency

    Returns
    -------
    float
        inf if no finite epsilon holds.

    Raises
    ------
    UnknownCost
        If a part has no single (epsilon, delta).

    Examples
    --------
    >>> from skdp.accounting import Adjacency, Composed, Gaussian
    >>> from skdp.accounting.papers import advanced_epsilon
    >>> round(advanced_epsilon(Composed(((Gaussian(50.0), 10),)), 1e-6, Adjacency.ZERO_OUT), 3)
    0.818
    """
    return max(_path_epsilon(opened(path), delta, adjacency) for path in paths(event, adjacency))


def _path_epsilon(path: EventCounts, delta: float, adjacency: Adjacency) -> float:
    """Epsilon of the events that a record can meet, for the best division of delta."""
    needing = {part: count for part, count in path.items() if needs_delta(part, adjacency)}
    n_needing = sum(needing.values())
    others = {part: count for part, count in path.items() if part not in needing}
    fixed = _total_delta(_guarantees(others, 0.5, adjacency))
    left = 1 - (1 - delta) / (1 - fixed) if fixed < 1 else -1.0
    if left < 0 or (left == 0 and needing):
        return math.inf

    def divided(share: float) -> float:
        """Epsilon if the parts that need delta get ``share`` of the rest of delta."""
        each = -math.expm1(math.log1p(-share * left) / n_needing) if needing else 0.0
        parts = _guarantees(path, each, adjacency)
        return composed_epsilon(parts, max(delta - _total_delta(parts), 0.0))

    if not needing:
        return divided(0.0)
    minimum = minimize_scalar(
        lambda log_odds: divided(1 / (1 + math.exp(-log_odds))), bounds=(-12, 12), method="bounded"
    )
    return min(float(minimum.fun), divided(0.5), divided(1.0))


def _guarantees(counts: EventCounts, delta: float, adjacency: Adjacency) -> Guarantees:
    return [(*guarantee(part, delta, adjacency), count) for part, count in counts.items()]


def _total_delta(guarantees: Guarantees) -> float:
    """``1 - prod (1 - delta_i)``."""
    if any(delta == 1 for _, delta, _ in guarantees):
        return 1.0
    return -math.expm1(sum(count * math.log1p(-delta) for _, delta, count in guarantees))


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
