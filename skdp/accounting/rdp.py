"""Renyi divergences of mechanisms and events, and the accountant that adds them up.

Looser than privacy-loss distributions, but it supports selections.
"""

import math
from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
from scipy.special import gammaln, logsumexp

from skdp._numbers import Array
from skdp.accounting.accountant import Accountant
from skdp.accounting.additive import pure_epsilon
from skdp.accounting.events.base import Adjacency, Event, UnknownCost
from skdp.accounting.events.mechanisms import Gaussian, Laplace
from skdp.accounting.events.wrappers import FixedSizeSampled, Sampled, Selected
from skdp.accounting.plan import EventCounts, counts_of, joint_mu, paths

# Orders at which divergences are computed; the least epsilon over them is taken, so any choice is
# valid. Dense near 1, where the best order lies for large costs; whole numbers further up, where
# the sums of sampled mechanisms are exact; sparse beyond, for mechanisms with a closed form.
ORDERS: Array = np.unique(
    np.concatenate(
        [
            1 + np.geomspace(0.02, 9.0, 160),
            np.arange(2.0, 65.0),
            np.round(np.geomspace(65, 2048, 48)),
            np.geomspace(2200, 1e7, 120),
        ]
    )
)
# Largest order at which divergences of sampled mechanisms, sums over all k up to the order, are
# computed; above it they are given as infinite, a valid bound. A choice of ours, for speed.
LARGEST_SAMPLED_ORDER = 2048
# Largest order at which the sharper coefficients of the bound without replacement are computed.
# A choice of ours, for speed.
_SHARP_ORDER = 256


def gaussian_renyi(orders: Array, mu: float) -> Array:
    """``order mu**2 / 2`` (Mironov 2017, Prop. 7)."""
    return orders * mu**2 / 2


def laplace_renyi(orders: Array, epsilon: float) -> Array:
    """Laplace noise with sensitivity over scale ``epsilon`` (Mironov 2017, Prop. 6)."""
    if math.isinf(epsilon):
        return np.full_like(orders, math.inf)
    # epsilon + log(1 + (a-1) (exp((1-2a) epsilon) - 1) / (2a-1)) / (a-1)
    change = np.expm1((1 - 2 * orders) * epsilon) / (2 * orders - 1)
    return np.asarray(epsilon + np.log1p((orders - 1) * change) / (orders - 1))


def response_renyi(orders: Array, epsilon: float) -> Array:
    """Randomised response, the costliest of all epsilon-DP mechanisms (Mironov 2017, Prop. 5).

    ``log(cosh((a - 1/2) epsilon) / cosh(epsilon / 2)) / (a - 1)``, without cancellation.
    """
    if math.isinf(epsilon):
        return np.full_like(orders, math.inf)
    small = np.minimum(orders * epsilon, 30.0) / orders
    growth = np.sinh(orders * small / 2) * np.sinh((orders - 1) * small / 2) / np.cosh(small / 2)
    # For large x, cosh x equals exp(x) / 2 in float64.
    large = (orders - 1) * epsilon - math.log1p(math.exp(-epsilon))
    moments: Array = np.where(orders * epsilon < 30.0, np.log1p(2 * growth), large)
    return np.maximum(moments, 0.0) / (orders - 1)


def poisson_renyi(orders: Array, mu: float, rate: float) -> Array:
    """``(1-q) N(0,1) + q N(mu,1)`` against ``N(0,1)``, the larger of both directions.

    Mironov, Talwar, Zhang 2019 (arXiv:1908.10530), Sec. 3: integer orders by the exact binomial
    sum, others by quadrature of the same moment, whose error falls exponentially with the step.
    In both, terms of first order, whose sum is 0, are left out, so that small divergences keep
    their relative precision.
    """

    def log_moment(order: float) -> float:
        if order.is_integer():
            log_excess = _binomial_excess(int(order), mu, rate)
        elif order * max(mu, 1.0) < 1e4:
            log_excess = _quadrature_excess(order, mu, rate)
        else:
            return math.inf
        return float(np.logaddexp(0.0, log_excess))

    return _from_moments(orders, mu, log_moment)


def _from_moments(orders: Array, mu: float, log_moment: Callable[[float], float]) -> Array:
    """Divergences of a sampled mechanism by the logarithms of moments; inf at large orders."""
    largest = 0 if math.isinf(mu) else LARGEST_SAMPLED_ORDER
    moments = [log_moment(order) if order <= largest else math.inf for order in orders.tolist()]
    return np.asarray(np.array(moments) / (orders - 1))


def _log_binomial(n: int, k: Array) -> Array:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _binomial_excess(order: int, mu: float, rate: float) -> float:
    """``log(sum over k of B(k) (exp(k (k-1) mu**2 / 2) - 1))``, B the binomial distribution."""
    k = np.arange(2.0, order + 1)
    terms = _log_binomial(order, k) + (order - k) * math.log1p(-rate) + k * math.log(rate)
    exponent = k * (k - 1) * mu**2 / 2
    return float(logsumexp(terms + exponent + np.log(-np.expm1(-exponent))))


def _gaussian_nodes(order: float, mu: float) -> tuple[Array, float]:
    """Nodes for functions like a power of a likelihood ratio, and the log of the weight of each."""
    step = min(0.125, 0.5 / mu)
    reach = 12 + math.sqrt(order)
    x: Array = np.arange(-reach, order * mu + reach, step)
    return x, math.log(step) - math.log(2 * math.pi) / 2


def _quadrature_excess(order: float, mu: float, rate: float) -> float:
    """``log E ((1 + u)**order - 1 - order u)``, u = q (exp(mu x - mu**2 / 2) - 1), x ~ N(0, 1).

    By the trapezoid rule; the nearest singularity is at distance pi/mu from the real line, so the
    error is about ``exp(-2 pi (pi/mu) / step)``. E u is 0.
    """
    x, log_weight = _gaussian_nodes(order, mu)
    shifted = mu * x - mu**2 / 2
    u = rate * np.expm1(np.minimum(shifted, 300.0))
    power = order * np.logaddexp(math.log1p(-rate), math.log(rate) + shifted)
    small = np.clip(u, -1.0, 1e-2 / order)
    series = (1 + (order - 2) / 3 * small * (1 + (order - 3) / 4 * small)) * small**2
    with np.errstate(divide="ignore", invalid="ignore"):
        near = math.log(order * (order - 1) / 2) + np.log(series)
        far = power + np.log1p(-(1 + order * u) * np.exp(-power))
    return float(logsumexp(np.where(np.abs(u) * order < 1e-2, near, far) - x**2 / 2)) + log_weight


def without_replacement_renyi(orders: Array, mu: float, rate: float) -> Array:
    """Fixed-size sample without replacement, under replace-one; ``mu`` of one full release.

    Wang, Balle, Kasiviswanathan 2019 (arXiv:1808.00087), Thm 27 at integer orders, and the
    convexity of the log moment (Cor. 10) in between.
    """

    @cache
    def at_integer(order: int) -> float:
        return _without_replacement_moment(order, mu, rate)

    def log_moment(order: float) -> float:
        below, above = math.floor(order), math.ceil(order)
        share = order - below
        if share == 0:
            return at_integer(below)
        return (1 - share) * at_integer(below) + share * at_integer(above)

    return _from_moments(orders, mu, log_moment)


def _without_replacement_moment(order: int, mu: float, rate: float) -> float:
    if order == 1:
        return 0.0
    sharp = _even_central_moments(mu, _SHARP_ORDER + 2)
    k = np.arange(2.0, order + 1)
    terms = math.log(2) + k * (k - 1) * mu**2 / 2
    # The term k = 2 is at most 4 (exp(mu**2) - 1) as well as 2 exp(mu**2).
    terms[0] = min(math.log(4) + mu**2 + math.log(-math.expm1(-(mu**2))), terms[0])
    if order <= _SHARP_ORDER:
        low = 2 * np.floor(k[1:] / 2).astype(int)
        high = 2 * np.ceil(k[1:] / 2).astype(int)
        terms[1:] = np.minimum(terms[1:], math.log(4) + (sharp[low] + sharp[high]) / 2)
    terms += _log_binomial(order, k) + k * math.log(rate)
    return float(np.logaddexp(0.0, logsumexp(terms)))


@lru_cache(maxsize=8)
def _even_central_moments(mu: float, largest: int) -> Array:
    """``log E (exp(mu x - mu**2/2) - 1)**k`` for x ~ N(0, 1) and even k, at index k.

    These are the forward differences of the theorem; the trapezoid rule has no cancellation.
    """
    logs = np.zeros(largest + 1)
    for k in range(2, largest + 1, 2):
        x, log_weight = _gaussian_nodes(k, mu)
        shifted = mu * x - mu**2 / 2
        with np.errstate(divide="ignore"):
            small = np.log(np.abs(np.expm1(np.minimum(shifted, 300.0))))
        distance = np.where(shifted > 300.0, shifted, small)
        logs[k] = float(logsumexp(k * distance - x**2 / 2)) + log_weight
    return logs


def renyi(event: Event, adjacency: Adjacency, orders: Array) -> Array:
    """Return Renyi divergences of ``event`` at ``orders``, the larger of both directions.

    An event with an epsilon at delta = 0 costs no more than randomised response of that epsilon.

    Raises
    ------
    UnknownCost
        If no theorem gives them.
    """
    match event:
        case Gaussian():
            return gaussian_renyi(orders, event.mu(adjacency))
        case Laplace():
            return laplace_renyi(orders, event.pure_epsilon(adjacency))
        case Sampled():
            return _sampled_renyi(event, adjacency, orders)
        case Selected():
            return _selected_renyi(event, adjacency, orders)
    try:
        return response_renyi(orders, pure_epsilon(event, adjacency))
    except UnknownCost as refusal:
        raise UnknownCost(
            f"{type(event).__name__} has no Renyi theorem under {adjacency}: {refusal}"
        ) from None


def _sampled_renyi(event: Sampled, adjacency: Adjacency, orders: Array) -> Array:
    mu = joint_mu(counts_of(event.event), adjacency)
    fixed = isinstance(event, FixedSizeSampled)
    if mu is None or (fixed and adjacency is Adjacency.ZERO_OUT):
        return response_renyi(orders, pure_epsilon(event, adjacency))
    if fixed:
        return without_replacement_renyi(orders, mu, event.rate)
    if adjacency is Adjacency.REPLACE_ONE:
        raise UnknownCost(
            "PoissonSampled of Gaussian has no Renyi theorem under replace_one; use 'pld'."
        )
    return poisson_renyi(orders, mu, event.rate)


def _selected_renyi(event: Selected, adjacency: Adjacency, orders: Array) -> Array:
    """Best of a random number of runs (Papernot and Steinke 2022, arXiv:2110.03620, Thm 2)."""
    runs = counts_of(event.event)
    base = renyi_total(runs, adjacency, orders)
    gamma, eta = event.gamma, event.shape
    once = (1 + eta) * np.min((1 - 1 / orders) * base - math.log(gamma) / orders)
    costs = base + once + math.log(event.mean_runs) / (orders - 1)
    # Divergences increase with the order, so the bound at a larger order holds at smaller ones.
    return np.asarray(np.minimum.accumulate(costs[::-1])[::-1])


def renyi_total(counts: EventCounts, adjacency: Adjacency, orders: Array) -> Array:
    """Sum over all events (Mironov 2017, Prop. 1)."""
    total = np.zeros_like(orders)
    for event, count in counts.items():
        total = total + count * renyi(event, adjacency, orders)
    return total


def epsilon_from_renyi(orders: Array, costs: Array, delta: float) -> float:
    """Least epsilon over the orders (Canonne, Kamath, Steinke 2020, Prop. 12)."""
    if not costs.any():
        return 0.0
    if delta == 0:
        return math.inf
    if delta**2 + np.expm1(-costs.min()) > 0:
        return 0.0  # total variation is at most sqrt(1 - exp(-KL)) (Bretagnolle and Huber)
    bounds = costs + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    return max(0.0, float(np.min(bounds)))


def _delta_from_renyi(orders: Array, costs: Array, epsilon: float) -> float:
    """Least delta over the orders (the same proposition)."""
    finite = np.isfinite(costs)
    if not finite.any():
        return 1.0
    a, cost = orders[finite], costs[finite]
    logs = (a - 1) * (cost - epsilon) - np.log(a - 1) + a * np.log1p(-1 / a)
    return min(1.0, math.exp(float(np.min(logs))))


Facts = tuple[list[EventCounts], Adjacency]


class RDPAccountant(Accountant):
    """Renyi divergences at many real orders, with the tight conversion; fast but loose."""

    name = "rdp"
    rank = 40

    def examine(self, event: Event, adjacency: Adjacency) -> list[Facts]:
        met = paths(event, adjacency)
        _costliest_renyi((met, adjacency), np.array([2.0]))  # whether there are theorems
        return [(met, adjacency)]

    def divergences(self, event: Event, orders: Array, adjacency: Adjacency) -> Array:
        """Return the Renyi divergence of ``event`` at each order, with the costliest blocks.

        Parameters
        ----------
        event : Event
        orders : array of shape (n_orders,), above 1
        adjacency : Adjacency

        Returns
        -------
        array of shape (n_orders,)
            inf at orders where no finite bound is known.

        Raises
        ------
        UnknownCost
            If there is no theorem for ``event``; the message names the accountant.
        """
        return _costliest_renyi(self.require(event, adjacency)[0], orders)

    def path_epsilon(self, facts: Facts, delta: float) -> float:
        return epsilon_from_renyi(ORDERS, _costliest_renyi(facts, ORDERS), delta)

    def path_delta(self, facts: Facts, epsilon: float) -> float:
        return _delta_from_renyi(ORDERS, _costliest_renyi(facts, ORDERS), epsilon)


def _costliest_renyi(facts: Facts, orders: Array) -> Array:
    """Renyi divergences at ``orders``, each of the costliest path."""
    met, adjacency = facts
    return np.asarray(np.max([renyi_total(path, adjacency, orders) for path in met], axis=0))
