"""Gaussian differential privacy: its relation to (epsilon, delta), and the exact accountant."""

import math

from scipy.optimize import brentq
from scipy.special import log_ndtr

from skdp.accounting.accountant import Accountant, UnknownCost, register
from skdp.accounting.events import Adjacency, Event, Gaussian
from skdp.accounting.plan import paths, squared_mu

# Relative amount by which results are moved towards the private side. It covers the error of the
# root finding, a few units in the last place (2e-16), and of log_ndtr, with a wide margin.
SAFETY = 1e-11


def _log_delta(mu: float, epsilon: float) -> float:
    if mu == 0:
        return -math.inf
    upper = float(log_ndtr(-epsilon / mu + mu / 2))
    lower = float(log_ndtr(-epsilon / mu - mu / 2))
    gap = epsilon + lower - upper
    return upper + math.log(-math.expm1(gap)) if gap < 0 else -math.inf


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Smallest delta such that every mu-GDP mechanism is (epsilon, delta)-DP.

    ``delta = Phi(-epsilon/mu + mu/2) - exp(epsilon) Phi(-epsilon/mu - mu/2)``
    (Balle and Wang 2018, Thm 8; Dong, Roth, Su 2019, Cor. 2.13).

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
    if math.isinf(mu):
        return 0.0 if math.isinf(epsilon) else 1.0
    if math.isinf(epsilon):
        return 0.0
    return math.exp(_log_delta(mu, epsilon))


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
    if mu == 0:
        return 0.0
    if delta == 0 or math.isinf(mu):
        return math.inf
    target = math.log(delta)
    if _log_delta(mu, 0.0) <= target:
        return 0.0
    high = 1.0
    while _log_delta(mu, high) > target:
        high *= 2
    root = float(brentq(lambda e: max(_log_delta(mu, e), -1e9) - target, 0.0, high, xtol=1e-14))
    return root * (1 + SAFETY)


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
    if math.isinf(epsilon):
        return math.inf
    if delta == 0:
        return 0.0
    target = math.log(delta)
    low, high = 0.0, 1.0
    while _log_delta(high, epsilon) < target:
        low, high = high, 2 * high
    while low == 0.0 and _log_delta(high / 2, epsilon) > target:
        high /= 2
    root = float(
        brentq(lambda m: max(_log_delta(m, epsilon), -1e9) - target, high / 2, high, xtol=1e-300)
    )
    return root * (1 - SAFETY)


@register
class GDPAccountant(Accountant[float]):
    """Exact for full-batch Gaussian releases of any noise schedule, also on disjoint blocks.

    The composition is exactly mu-GDP with ``mu**2 = sum (sensitivity_t / sigma_t)**2``
    (Dong, Roth, Su 2019, Cor. 3.3), converted by Balle and Wang 2018, Thm 8. A record lies in one
    block of each partition, so the costliest block of each partition is charged.
    """

    name = "gdp"
    rank = 10
    is_tight = True

    def examine(self, event: Event, adjacency: Adjacency) -> float:
        """Return the Gaussian-DP parameter of ``event``."""
        largest = 0.0
        for path in paths(event, adjacency):
            for part in path:
                if not isinstance(part, Gaussian):
                    raise UnknownCost(
                        f"no exact Gaussian-DP theorem for {type(part).__name__} under {adjacency}."
                    )
            largest = max(largest, squared_mu(path, adjacency))
        return math.sqrt(largest)

    def mu(self, event: Event, adjacency: Adjacency) -> float:
        """Return the Gaussian-DP parameter of ``event``.

        Returns
        -------
        float
            inf without noise.

        Raises
        ------
        UnknownCost
            If there is no theorem for ``event``; the message names the accountant.
        """
        return self.require(event, adjacency)

    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        return gaussian_epsilon(self.mu(event, adjacency), delta)

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        return gaussian_delta(self.mu(event, adjacency), epsilon)

    def scale(self, event: Event, epsilon: float, delta: float, adjacency: Adjacency) -> float:
        """Return the factor in closed form: mu is inversely proportional to the noise."""
        allowed = gaussian_mu(epsilon, delta)
        if allowed == 0:
            raise UnknownCost(
                f"Gaussian noise cannot meet epsilon={epsilon:g} with delta={delta:g}, "
                "however much of it is added."
            )
        return self.mu(event, adjacency) / allowed
