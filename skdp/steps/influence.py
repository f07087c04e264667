"""Divide a budget among steps, by the noise that is optimal for the influence of each.

If the expected error at the end is an optimisation term plus ``sum_t q_t Var_t``, with q_t the
*influence* of step t, then the noise that minimises it for a given budget is

* Gaussian, ``sum_t sigma_t**-2 = R``: ``sigma_t`` proportional to ``q_t**(-1/4)``
  (Hong, Wang, Zhou 2022, Lemma 4.4);
* Laplace, ``sum_t 1/b_t = epsilon``: ``b_t`` proportional to ``q_t**(-1/3)``
  (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, Prop. 4.2).

All functions take the logarithm of the influence, so that long runs neither overflow nor underflow.
"""

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from sklearn.base import BaseEstimator

from skdp._numbers import Array

# A step gets at least this share of what the quietest step spends. This costs a relative 1e-16 of
# the budget per step, and keeps the noise finite where the influence vanishes.
LEAST_SHARE = 1e-16

# The power p such that a step with noise s costs in proportion to s**-p, by rule of composition:
# squares of mu add up for Gaussian noise, epsilons for Laplace noise.
# The variance is proportional to s**2 in both, so optimal noise goes as influence**(-1 / (2 + p)).
COST_POWERS = {"gaussian": 2, "laplace": 1}


def cost_power(composition: str) -> int:
    """Return the power p such that a step with noise s costs in proportion to s**-p."""
    if composition not in COST_POWERS:
        raise ValueError(f"composition must be one of {sorted(COST_POWERS)}; got {composition!r}.")
    return COST_POWERS[composition]


def influence_to_noise(log_influence: ArrayLike, composition: str = "gaussian") -> Array:
    """Relative noise that minimises ``sum_t q_t s_t**2``, with geometric mean 1.

    Parameters
    ----------
    log_influence : array of shape (n_steps,)
        log q_t, up to a constant.
    composition : {"gaussian", "laplace"}
        Rule by which the costs of steps add up, see `COST_POWERS`.
    """
    logs, power = _finite(log_influence), cost_power(composition)
    exponents = -1 / (2 + power) * logs
    exponents = np.minimum(exponents, exponents.min() - math.log(LEAST_SHARE) / power)
    return np.asarray(np.exp(exponents - exponents.mean()), dtype=np.float64)


def noise_multipliers(
    log_influence: ArrayLike, budget: float, composition: str = "gaussian"
) -> Array:
    """Noise that has the least effect and spends exactly the budget.

    Parameters
    ----------
    log_influence : array of shape (n_steps,)
        log q_t, up to a constant.
    budget : float
        Gaussian: the sum of ``sigma_t**-2``, which is the squared mu of Gaussian DP, or twice the
        rho of zCDP. Laplace: the sum of ``1/b_t``, in units of the sensitivity.
    composition : {"gaussian", "laplace"}
    """
    relative, power = influence_to_noise(log_influence, composition), cost_power(composition)
    scale = (np.sum(relative ** float(-power)) / budget) ** (1 / power)
    return np.asarray(scale * relative, dtype=np.float64)


def noise_effect(
    log_influence: ArrayLike, noise: ArrayLike, composition: str = "gaussian"
) -> float:
    """``sum_t q_t s_t**2``, the noise s scaled to a budget of 1; its square root is linear in s.

    With Gaussian noise this is ``(sum q s**2) (sum s**-2)``: uniform noise gives ``T sum q``,
    optimal noise ``(sum sqrt(q))**2``.
    """
    logs, relative = _finite(log_influence), np.asarray(noise, dtype=np.float64)
    power = cost_power(composition)
    spent = np.sum(relative ** float(-power))
    return float(np.sum(np.exp(logs) * relative**2) * spent ** (2 / power))


def least_noise_effect(log_influence: ArrayLike, composition: str = "gaussian") -> float:
    """Return the least `noise_effect` that any noise has, in closed form.

    ``(sum q**(1/2))**2`` for Gaussian noise, ``(sum q**(1/3))**3`` for Laplace noise.
    """
    power = cost_power(composition) / (2 + cost_power(composition))
    return float(np.sum(np.exp(power * _finite(log_influence))) ** (1 / power))


def _finite(log_influence: ArrayLike) -> Array:
    logs = np.asarray(log_influence, dtype=np.float64)
    if logs.ndim != 1 or not len(logs) or not np.isfinite(logs).all():
        raise ValueError(
            "log-influences must be a sequence of finite numbers, one per step; "
            f"got an array of shape {logs.shape}."
        )
    return logs


class NoiseSchedule(BaseEstimator):
    """Base of noise schedules; an object, so that a grid search can reach its parameters."""

    @abstractmethod
    def log_influence(self, n_steps: int) -> Array:
        """Return log q_t for the steps 1..n_steps, up to a constant."""

    def relative(self, n_steps: int, composition: str = "gaussian") -> Array:
        """Return the relative noise of the steps 1..n_steps, with geometric mean 1."""
        return influence_to_noise(self.log_influence(n_steps), composition)


def positive_numbers(values: object, n_steps: int, who: str) -> Array:
    """Return ``n_steps`` positive, finite numbers as an array, or raise ValueError."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (n_steps,) or not ((array > 0) & np.isfinite(array)).all():
        raise ValueError(
            f"{who} must be {n_steps} positive, finite numbers, one per step; "
            f"got an array of shape {array.shape}."
        )
    return array


# ---------------------------------------------------------------- Laplace noise on samples


def sampled_epsilon(noise: ArrayLike, rate: float) -> Array:
    """Epsilon of Laplace noise on a sample, ``log(1 + rate (exp(1/b) - 1))``, for each b."""
    inner = 1 / np.asarray(noise, dtype=np.float64)
    if rate == 1:
        return inner
    large = np.logaddexp(math.log1p(-rate), math.log(rate) + inner)
    small = np.log1p(rate * np.expm1(np.minimum(inner, 1.0)))  # accurate where ``large`` cancels
    return np.asarray(np.where(inner < 1, small, large))


def sampled_laplace_factor(noise: ArrayLike, epsilon: float, rate: float) -> float:
    """Find c such that noise of scales ``c * noise`` on samples costs ``epsilon`` in total."""
    scales = np.asarray(noise, dtype=np.float64)

    def excess(log_factor: float) -> float:
        spent = float(sampled_epsilon(math.exp(log_factor) * scales, rate).sum())
        return math.log(spent / epsilon)

    # A sample costs at most what all rows cost, and at least ``rate`` times that.
    high = math.log(float(np.sum(1 / scales)) / epsilon)
    low = high + math.log(rate)
    return math.exp(float(brentq(excess, low - 1e-9, high + 1e-9, xtol=1e-14)))


def sampled_laplace_noise(log_influence: ArrayLike, epsilon: float, rate: float) -> Array:
    """Laplace scales that minimise ``sum_t q_t b_t**2`` for a given sum of amplified epsilons.

    The constraint is ``sum_t log(1 + rate (exp(1/b_t) - 1)) = epsilon`` (Kuru, Birbil,
    Gurbuzbalaban, Yildirim 2022, eq. 30), which for ``rate = 1`` has the solution of Prop. 4.2,
    ``b_t`` proportional to ``q_t**(-1/3)``. With ``u = 1/b`` a stationary point satisfies

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
