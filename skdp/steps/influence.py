"""From the influence of every step on the end to how noisy the steps should be.

If the expected error at the end is an optimisation term plus ``sum_t q_t Var_t``, the noise that
makes it least for a given budget is

* Gaussian, ``sum_t sigma_t**-2 = R``: ``sigma_t`` proportional to ``q_t**(-1/4)``
  (Hong, Wang, Zhou 2022, Lemma 4.4);
* Laplace, ``sum_t 1/b_t = epsilon``: ``b_t`` proportional to ``q_t**(-1/3)``
  (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, Prop. 4.2).

Everything works on log-influences, so that long runs neither overflow nor underflow.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from skdp._numbers import is_real, shown

Array = NDArray[np.float64]

# No step is given less than this part of what the quietest step spends. It costs the budget a
# relative 1e-16 a step, and keeps noise from growing beyond all bounds where influence vanishes.
LEAST_SHARE = 1e-16


@dataclass(frozen=True)
class NoiseLaw:
    """How the cost and the variance of a release depend on its noise s.

    The cost is proportional to ``s**-cost``, the variance to ``s**2``.
    """

    cost: int

    @property
    def exponent(self) -> float:
        """Power of the influence that the best noise is proportional to."""
        return -1 / (2 + self.cost)


LAWS = {"gaussian": NoiseLaw(cost=2), "laplace": NoiseLaw(cost=1)}


def noise_law(name: str) -> NoiseLaw:
    """Return a law of noise by name."""
    if name not in LAWS:
        raise ValueError(f"law must be one of {sorted(LAWS)}; got {name!r}.")
    return LAWS[name]


def influence_to_noise(log_influence: ArrayLike, law: str = "gaussian") -> Array:
    """Relative noise that makes ``sum_t q_t s_t**2`` least, with geometric mean 1.

    Parameters
    ----------
    log_influence : array of shape (n_steps,)
        log q_t, up to a constant.
    law : {"gaussian", "laplace"}
        Of the noise; it says what a step costs.
    """
    logs = _finite(log_influence)
    chosen = noise_law(law)
    exponents = chosen.exponent * logs
    exponents = np.minimum(exponents, exponents.min() - math.log(LEAST_SHARE) / chosen.cost)
    return np.asarray(np.exp(exponents - exponents.mean()), dtype=np.float64)


def noise_multipliers(log_influence: ArrayLike, budget: float, law: str = "gaussian") -> Array:
    """Noise of least influence that spends a budget exactly.

    Parameters
    ----------
    log_influence : array of shape (n_steps,)
        log q_t, up to a constant.
    budget : float
        Gaussian: the sum of ``sigma_t**-2``, which is the squared mu of Gaussian DP, or twice the
        rho of zCDP. Laplace: the sum of ``1/b_t``, in units of the sensitivity.
    law : {"gaussian", "laplace"}
    """
    relative = influence_to_noise(log_influence, law)
    cost = noise_law(law).cost
    scale = (np.sum(relative ** float(-cost)) / budget) ** (1 / cost)
    return np.asarray(scale * relative, dtype=np.float64)


def noise_effect(log_influence: ArrayLike, noise: ArrayLike, law: str = "gaussian") -> float:
    """``sum_t q_t s_t**2``, the noise s scaled to a budget of 1; its square root is linear in s.

    With Gaussian noise this is ``(sum q s**2) (sum s**-2)``: uniform noise gives ``T sum q``, the
    best noise ``(sum sqrt(q))**2``.
    """
    logs, relative = _finite(log_influence), np.asarray(noise, dtype=np.float64)
    cost = noise_law(law).cost
    spent = np.sum(relative ** float(-cost))
    return float(np.sum(np.exp(logs) * relative**2) * spent ** (2 / cost))


def least_noise_effect(log_influence: ArrayLike, law: str = "gaussian") -> float:
    """Return the least `noise_effect` that any noise has, in closed form.

    ``(sum q**(1/2))**2`` for Gaussian noise, ``(sum q**(1/3))**3`` for Laplace noise.
    """
    chosen = noise_law(law)
    power = chosen.cost / (2 + chosen.cost)
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

    def relative(self, n_steps: int, law: str = "gaussian") -> Array:
        """Return the relative noise of the steps 1..n_steps, with geometric mean 1."""
        return influence_to_noise(self.log_influence(n_steps), law)


def positive(values: Any, n_steps: int, who: str) -> Array:
    """Return ``n_steps`` positive, finite numbers, or raise ValueError."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (n_steps,) or not ((array > 0) & np.isfinite(array)).all():
        raise ValueError(
            f"{who} must be {n_steps} positive, finite numbers, one per step; "
            f"got an array of shape {array.shape}."
        )
    return array


def powers(gamma: float, n_steps: int) -> Array:
    """Return ``log gamma ** (T - t)`` for the steps 1..T."""
    steps_left = n_steps - np.arange(1, n_steps + 1)
    return np.asarray(math.log(gamma) * steps_left, dtype=np.float64)


def require(who: str, name: str, value: Any, allowed: str, holds: bool) -> None:
    """Raise ValueError unless ``holds``."""
    if not holds:
        raise ValueError(f"{who}: {name} must {allowed}; got {shown(value)}.")


def check_rates(who: str, gamma: Any, beta: Any) -> None:
    """Raise ValueError unless gamma is a contraction and beta a momentum."""
    require(who, "gamma", gamma, "lie in (0, 1]", is_real(gamma) and 0 < gamma <= 1)
    require(who, "beta", beta, "lie in [0, 1)", is_real(beta) and 0 <= beta < 1)
