"""Figures that add up over releases: epsilon with delta = 0, and squared mu."""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr

from skdp._numbers import require
from skdp.accounting import events
from skdp.accounting.events import Adjacency, Event, UnknownCost
from skdp.accounting.pairs import amplified
from skdp.accounting.plan import EventCounts, counts_of, sampled_counts

# Relative amount by which results are moved towards the private side. It covers the error of the
# root finding, a few units in the last place (2e-16), and of `_log_delta`, which the tests compare
# with 60 digits, with a wide margin.
SAFETY = 1e-11
# Quadrature over an interval of length mu. For mu below 0.1 its error is less than rounding's.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)


def pure_epsilon(event: Event, adjacency: Adjacency) -> float:
    """Return the epsilon that ``event`` guarantees with delta = 0.

    Raises
    ------
    UnknownCost
        If there is none, or no theorem gives one.
    """
    match event:
        case events.Laplace() | events.NoisyMaximum():
            return event.pure_epsilon(adjacency)
        case events.ApproximateDP(epsilon, delta=0):
            return epsilon
        case events.ApproximateDP():
            raise UnknownCost(f"ApproximateDP with delta={event.delta:g} is not pure.")
        case events.Sampled():
            # Balle, Barthe, Gaboardi 2018, Thm 8 and 9. Under replace-one, a Poisson sample without
            # the record is one record away from the sample with it, which costs no more than a
            # replacement (their Thm 2).
            return amplified(pure_total(sampled_counts(event, adjacency), adjacency), event.rate)
        case events.Selected():  # 2 + eta (Papernot and Steinke 2022, Cor. 3), eta = 1
            return 3 * pure_total(counts_of(event.event), adjacency)
    raise UnknownCost(f"{type(event).__name__} has no epsilon with delta = 0 under {adjacency}.")


def pure_total(counts: EventCounts, adjacency: Adjacency) -> float:
    """Sum of the epsilons of all events (Dwork, McSherry, Nissim, Smith 2006)."""
    return sum(count * pure_epsilon(event, adjacency) for event, count in counts.items())


def require_figures(delta: float = 0.0, **figures: float) -> None:
    """Raise ValueError where a figure is negative, or delta above 1."""
    require("delta", delta, "lie in [0, 1]", 0 <= delta <= 1)
    for name, value in figures.items():
        require(name, value, "be at least 0", not value < 0)


def _log_delta(mu: float, epsilon: float) -> float:
    """Return the logarithm of `gaussian_delta`, without cancellation where mu is small."""
    if mu == 0:
        return -math.inf
    near = epsilon / mu - mu / 2
    if mu < 0.1 and near < 40:  # the difference below would cancel; beyond, delta is below 1e-300
        # phi(near) (R(near) - R(near + mu)), with the ratio of Mills R, of derivative z R(z) - 1.
        z = near + mu / 2 * (NODES + 1)
        falls = 1 - z * math.sqrt(math.pi / 2) * erfcx(z / math.sqrt(2))
        return math.log(mu / 2 * (WEIGHTS @ falls)) - near**2 / 2 - math.log(2 * math.pi) / 2
    upper = float(log_ndtr(-epsilon / mu + mu / 2))
    lower = float(log_ndtr(-epsilon / mu - mu / 2))
    gap = epsilon + lower - upper
    return upper + math.log(-math.expm1(gap)) if gap < 0 else -math.inf


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Smallest delta such that every mu-GDP mechanism is (epsilon, delta)-DP.

    ``delta = Phi(-epsilon/mu + mu/2) - exp(epsilon) Phi(-epsilon/mu - mu/2)`` (Balle and Wang 2018,
    Thm 8, Dong, Roth, Su 2019, Cor. 2.13).

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter, at least 0.
    epsilon : float
        At least 0.

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.accounting import gaussian_delta
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    require_figures(mu=mu)
    if math.isinf(epsilon):
        return 0.0
    return 1.0 if math.isinf(mu) else math.exp(_log_delta(mu, epsilon))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon such that every mu-GDP mechanism is (epsilon, delta)-DP, rounded up.

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter, at least 0.
    delta : float
        In [0, 1). With 0 the answer is infinite, unless mu is 0.

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.accounting import gaussian_epsilon
    >>> round(gaussian_epsilon(1.0, 1e-5), 4)
    4.3772
    """
    require_figures(mu=mu, delta=delta)
    if mu == 0:
        return 0.0
    if delta == 0 or not mu < math.inf:  # nan proves nothing
        return math.inf
    target = math.log(delta)
    at_zero = _log_delta(mu, 0.0)
    if at_zero <= target - 1e-13:  # by more than rounding
        return 0.0
    high = 1.0
    while _log_delta(mu, high) > target:
        high *= 2

    def excess(epsilon: float) -> float:
        return max(_log_delta(mu, epsilon), -1e9) - target

    root = float(brentq(excess, 0.0, high, xtol=1e-300)) if at_zero > target else 0.0
    # Rounding moves an epsilon near 0 by a share of delta, which is no small part of it.
    return (root + 1e-14 * delta) * (1 + SAFETY)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu such that mu-GDP implies (epsilon, delta)-DP, rounded down.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In [0, 1).

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.accounting import gaussian_mu
    >>> round(gaussian_mu(1.0, 1e-5), 10)
    0.2680511232
    """
    require_figures(epsilon=epsilon, delta=delta)
    if math.isinf(epsilon):
        return math.inf
    if delta == 0:
        return 0.0
    target = math.log(delta)
    high = 1.0
    while _log_delta(high, epsilon) < target:
        high *= 2
    while _log_delta(high / 2, epsilon) > target:
        high /= 2
    root = float(
        brentq(lambda m: max(_log_delta(m, epsilon), -1e9) - target, high / 2, high, xtol=1e-300)
    )
    return root * (1 - SAFETY)
