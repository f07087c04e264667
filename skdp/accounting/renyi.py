"""Renyi divergences of single mechanisms, vectorised over real orders."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, log_ndtr, logsumexp

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
    """Randomised response, the dearest of all epsilon-DP mechanisms (Mironov 2017, Prop. 5).

    ``log(cosh((a - 1/2) epsilon) / cosh(epsilon / 2)) / (a - 1)``, without cancellation.
    """
    if math.isinf(epsilon):
        return np.full_like(orders, math.inf)
    small = np.minimum(orders * epsilon, 30.0) / orders
    growth = np.sinh(orders * small / 2) * np.sinh((orders - 1) * small / 2) / np.cosh(small / 2)
    # cosh x is exp(x) / 2 to all digits where x is large.
    large = (orders - 0.5) * epsilon - math.log(2) - _log_cosh(epsilon / 2)
    moments: Array = np.where(orders * epsilon < 30.0, np.log1p(2 * growth), large)
    return np.maximum(moments, 0.0) / (orders - 1)


def _log_cosh(x: float) -> float:
    return x + math.log1p(math.exp(-2 * x)) - math.log(2)


def poisson_renyi(orders: Array, mu: float, rate: float) -> Array:
    """``((1-q) N(0,1) + q N(mu,1)`` against ``N(0,1))``, the dearer of both directions.

    Mironov, Talwar, Zhang 2019 (arXiv:1908.10530), Sec. 3: integer orders by the exact binomial
    sum, others by quadrature of the same moment, whose error falls exponentially with the step.
    In both, terms of first order, whose sum is 0, are left out, so that small costs keep their
    digits.
    """
    costs = np.full_like(orders, math.inf)
    if math.isinf(mu):
        return costs
    for index, order in enumerate(orders):
        if order > LARGEST_SAMPLED_ORDER:
            continue
        if float(order).is_integer():
            log_excess = _binomial_excess(int(order), mu, rate)
        elif order * max(mu, 1.0) < 1e4:
            log_excess = _quadrature_excess(float(order), mu, rate)
        else:
            continue
        costs[index] = np.logaddexp(0.0, log_excess) / (order - 1)
    return costs


def objective_renyi(
    orders: Array, noise_multiplier: float, ratio: float, n_changes: int = 1
) -> Array:
    """Exact minimiser of a perturbed objective; see `skdp.accounting.events.ObjectivePerturbed`.

    ``log(1 + ratio) + a v / 2 + log(2 Phi((a - 1) sqrt(v))) / (a - 1)`` at order a, with
    ``v = (n_changes / noise_multiplier)**2`` (Redberg, Koskela and Wang 2023, arXiv:2401.00583, Thm
    3.2, with ``-log(1 - ratio)`` in place of the first term).

    Proof. Let P be the law of the minimiser w with a record ``l(x'w)`` and Q that without it, in
    any order. Each w belongs to one b, ``b_P(w)`` and ``b_Q(w) = b_P(w) + g(w)`` with
    ``g(w) = l'(x'w) x``, ``|g| <= L``. By the change of variables ``p(w)`` is the Gaussian density
    of ``b_P(w)`` times the determinant of the Hessian, which the record changes by a factor
    ``1 + u'A^-1 u`` for ``u u'`` its own Hessian and A that of the rest: at most ``1 + ratio``, and
    at least 1. So with ``sigma = noise_multiplier L``

        log(p(w) / q(w)) <= log(1 + ratio) + (2 |b_P.g| + L**2) / (2 sigma**2),

    and ``|b_P.g| <= L |b_P.x| / |x|``. Under P the vector ``b_P`` is Gaussian and x is fixed: the
    last bound is ``sigma**2 |X|`` with X of law N(0, v), and ``E exp((a - 1) |X|)`` is
    ``2 exp((a - 1)**2 v / 2) Phi((a - 1) sqrt(v))``. Where one record is replaced by another, g is
    the difference of two such gradients; by Cauchy and Schwarz the same holds with twice L, and the
    determinants differ by a factor of ``1 + ratio`` at most, once more.
    """
    if noise_multiplier == 0:
        return np.full_like(orders, math.inf)
    v = (n_changes / noise_multiplier) ** 2
    moments = math.log(2) + log_ndtr((orders - 1) * math.sqrt(v))
    costs: Array = math.log1p(ratio) + orders * v / 2 + moments / (orders - 1)
    return costs


def _log_binomial(n: int, k: Array) -> Array:
    coefficients: Array = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return coefficients


def _log_expm1(x: Array) -> Array:
    grown: Array = x + np.log(-np.expm1(-x))
    return grown


def _binomial_excess(order: int, mu: float, rate: float) -> float:
    """``log(sum over k of B(k) (exp(k (k-1) mu**2 / 2) - 1))``, B the binomial law."""
    k = np.arange(2.0, order + 1)
    terms = _log_binomial(order, k) + (order - k) * math.log1p(-rate) + k * math.log(rate)
    return float(logsumexp(terms + _log_expm1(k * (k - 1) * mu**2 / 2)))


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
    held = np.clip(u, -1.0, 1e-2 / order)
    series = (1 + (order - 2) / 3 * held * (1 + (order - 3) / 4 * held)) * held**2
    with np.errstate(divide="ignore", invalid="ignore"):
        near = math.log(order * (order - 1) / 2) + np.log(series)
        far = power + np.log1p(-(1 + order * u) * np.exp(-power))
    return float(logsumexp(np.where(np.abs(u) * order < 1e-2, near, far) - x**2 / 2)) + log_weight


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
    for k in range(2, largest + 1, 2):
        x, log_weight = _gaussian_nodes(k, mu)
        shifted = mu * x - mu**2 / 2
        with np.errstate(divide="ignore"):
            small = np.log(np.abs(np.expm1(np.minimum(shifted, 300.0))))
        distance = np.where(shifted > 300.0, shifted, small)
        logs[k] = float(logsumexp(k * distance - x**2 / 2)) + log_weight
    return logs
