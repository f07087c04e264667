"""Renyi divergences of single mechanisms, vectorised over real orders."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, logsumexp

from skdp.accounting.pairs import Array

# Sums over all k up to the order are exact; beyond this order the cost is given as infinite.
LARGEST_SAMPLED_ORDER = 2048
# Up to this order the sharper coefficients of the bound without replacement are used.
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
    costs: Array = epsilon + np.log1p((orders - 1) * change) / (orders - 1)
    return costs


def response_renyi(orders: Array, epsilon: float) -> Array:
    """Randomised response, the dearest of all epsilon-DP mechanisms (Mironov 2017, Prop. 5)."""
    if math.isinf(epsilon):
        return np.full_like(orders, math.inf)
    truth = -np.log1p(np.exp(-epsilon))
    lie = truth - epsilon
    same = orders * truth + (1 - orders) * lie
    swapped = orders * lie + (1 - orders) * truth
    costs: Array = np.logaddexp(same, swapped) / (orders - 1)
    return costs


def poisson_renyi(orders: Array, mu: float, rate: float) -> Array:
    """``((1-q) N(0,1) + q N(mu,1)`` against ``N(0,1))``, the dearer of both directions.

    Mironov, Talwar, Zhang 2019 (arXiv:1908.10530), Sec. 3: integer orders by the exact binomial
    sum, others by quadrature of the same moment, whose error falls exponentially with the step.
    """
    costs = np.full_like(orders, math.inf)
    if math.isinf(mu):
        return costs
    for index, order in enumerate(orders):
        if order > LARGEST_SAMPLED_ORDER:
            continue
        if float(order).is_integer():
            moment = _binomial_moment(int(order), mu, rate)
        elif order * max(mu, 1.0) < 1e4:
            moment = _quadrature_moment(float(order), mu, rate)
        else:
            continue
        costs[index] = max(moment, 0.0) / (order - 1)
    return costs


def _log_binomial(n: int, k: Array) -> Array:
    coefficients: Array = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return coefficients


def _binomial_moment(order: int, mu: float, rate: float) -> float:
    k = np.arange(order + 1.0)
    terms = _log_binomial(order, k) + (order - k) * math.log1p(-rate) + k * math.log(rate)
    return float(logsumexp(terms + k * (k - 1) * mu**2 / 2))


def _quadrature_moment(order: float, mu: float, rate: float) -> float:
    """``log E (1 - q + q exp(mu x - mu**2 / 2))**order`` for x ~ N(0, 1), by the trapezoid rule.

    The nearest singularity is at distance pi/mu from the real line, so the error is about
    ``exp(-2 pi (pi/mu) / step)``.
    """
    step = min(0.125, 0.5 / mu)
    x: Array = np.arange(-12.0, order * mu + 12.0, step)
    mixture = np.logaddexp(math.log1p(-rate), math.log(rate) + mu * x - mu**2 / 2)
    exponents = order * mixture - x**2 / 2
    return float(logsumexp(exponents)) + math.log(step) - math.log(2 * math.pi) / 2


def without_replacement_renyi(orders: Array, mu: float, rate: float) -> Array:
    """Fixed-size sample without replacement, under replace-one; ``mu`` of one full release.

    Wang, Balle, Kasiviswanathan 2019 (arXiv:1808.00087), Thm 27 at integer orders, and the
    convexity of the log moment (Cor. 10) in between.
    """
    costs = np.full_like(orders, math.inf)
    if math.isinf(mu):
        return costs
    sharp = _even_central_moments(mu, _SHARP_ORDER + 2)
    moments: dict[int, float] = {1: 0.0}

    def moment(order: int) -> float:
        if order not in moments:
            moments[order] = _without_replacement_moment(order, mu, rate, sharp)
        return moments[order]

    for index, order in enumerate(orders):
        if order > LARGEST_SAMPLED_ORDER:
            continue
        below, above = math.floor(order), math.ceil(order)
        share = float(order) - below
        log_moment = (
            moment(below) if share == 0 else ((1 - share) * moment(below) + share * moment(above))
        )
        costs[index] = log_moment / (order - 1)
    return costs


def _without_replacement_moment(order: int, mu: float, rate: float, sharp: Array) -> float:
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


def _even_central_moments(mu: float, largest: int) -> Array:
    """``log E (exp(mu x - mu**2/2) - 1)**k`` for x ~ N(0, 1) and even k, at index k.

    These are the forward differences of the theorem; the trapezoid rule has no cancellation.
    """
    logs = np.zeros(largest + 1)
    step = min(0.125, 0.5 / mu)
    for k in range(2, largest + 1, 2):
        x = np.arange(-12.0, k * mu + 12.0, step)
        with np.errstate(divide="ignore"):
            distance = np.log(np.abs(np.expm1(np.minimum(mu * x - mu**2 / 2, 700.0))))
        distance = np.where(mu * x - mu**2 / 2 > 700.0, mu * x - mu**2 / 2, distance)
        logs[k] = logsumexp(k * distance - x**2 / 2) + math.log(step) - math.log(2 * math.pi) / 2
    return logs
