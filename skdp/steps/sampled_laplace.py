"""Divide a budget among steps with Laplace noise on samples, whose amplified epsilons add up.

Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, eq. 30.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from skdp._numbers import Array


def sampled_epsilon(noise: ArrayLike, rate: float) -> Array:
    """Return epsilon of Laplace noise on a sample, ``log(1 + rate (exp(1/b) - 1))``, for each b."""
    inner = 1 / np.asarray(noise, dtype=np.float64)
    if rate == 1:
        return inner
    large = np.logaddexp(math.log1p(-rate), math.log(rate) + inner)
    small = np.log1p(rate * np.expm1(np.minimum(inner, 1.0)))  # accurate where ``large`` cancels
    return np.asarray(np.where(inner < 1, small, large))


def sampled_laplace_noise(log_influence: ArrayLike, epsilon: float, rate: float) -> Array:
    """Return the Laplace scales of least effect for a given sum of amplified epsilons.

    They minimise ``sum_t q_t b_t**2`` under ``sum_t log(1 + rate (exp(1/b_t) - 1)) = epsilon``
    (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, eq. 30). For ``rate = 1`` the solution is that of
    Prop. 4.2, ``b_t`` proportional to ``q_t**(-1/3)``. With ``u = 1/b`` a stationary point has

        u_t**3 g(u_t) = c q_t,    g(u) = rate e**u / (1 - rate + rate e**u),

    with one c for all t. The left side rises in u, and so does the epsilon spent, from 0 to
    infinity: there is exactly one such point, and the sum grows without bound where any b does.

    Parameters
    ----------
    log_influence : array of shape (n_steps,)
        log q_t, up to a constant.
    epsilon : float
        Positive and finite.
    rate : float
        Fraction of the rows in a sample, in (0, 1].

    Returns
    -------
    array of shape (n_steps,)
        b_t in units of the sensitivity.
    """
    logs = np.asarray(log_influence, dtype=np.float64)
    logs = logs - logs.max()

    def inverse_noise(log_factor: float) -> Array:
        """Solve 3 log u + log g(u) = log_factor + log q; increasing and concave in log u."""
        goal = log_factor + logs
        log_u = (goal - math.log(rate)) / 3
        log_u = np.where(log_u > 0, goal / 3 + 1, log_u)
        for _ in range(100):
            u = np.exp(log_u)
            if rate < 1:
                log_g = math.log(rate) - np.logaddexp(math.log1p(-rate) - u, math.log(rate))
            else:
                log_g = np.zeros_like(u)
            error = 3 * log_u + log_g - goal
            change = error / (3 + u * (1 - np.exp(log_g)))
            log_u = log_u - change
            if np.abs(change).max() < 1e-15:
                break
        return np.asarray(np.exp(log_u))

    def excess(log_factor: float) -> float:
        return float(sampled_epsilon(1 / inverse_noise(log_factor), rate).sum()) - epsilon

    low, high = -10.0, 10.0
    while excess(low) > 0:
        low *= 2
    while excess(high) < 0:
        high *= 2
    root = float(brentq(excess, low, high, xtol=1e-14, rtol=1e-15, maxiter=500))
    return np.asarray(1 / inverse_noise(root))
