"""Divide a budget among steps, by the noise that is optimal for the influence of each.

If the expected error at the end is an optimisation term plus ``sum_t q_t Var_t``, with q_t the
*influence* of step t, then the noise that minimises it for a given budget is

* Gaussian, ``sum_t sigma_t**-2 = R``: ``sigma_t`` proportional to ``q_t**(-1/4)`` (Hong, Wang, Zhou
  2022, Lemma 4.4).
* Laplace, ``sum_t 1/b_t = epsilon``: ``b_t`` proportional to ``q_t**(-1/3)``
  (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, Prop. 4.2).

Laplace noise on samples has amplified epsilons, which add up (the same paper, eq. 30).

All functions use the logarithm of the influence, so that long runs neither overflow nor underflow.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from sklearn.base import BaseEstimator

from skdp._numbers import Array, is_real, require
from skdp.steps.schedules import Named, PolynomialStep, named

# A step gets at least this share of what the quietest step spends. This costs a relative 1e-16 of
# the budget per step, and keeps the noise finite where the influence vanishes.
LEAST_SHARE = 1e-16
BISECTIONS = 60  # of an interval in float64

# The power p such that a step with noise s costs in proportion to s**-p, by rule of composition:
# squares of mu add up for Gaussian noise, epsilons for Laplace noise.
# The variance is proportional to s**2 in both, so optimal noise goes as influence**(-1 / (2 + p)).
COST_POWERS = {"gaussian": 2, "laplace": 1}


def cost_power(composition: str) -> int:
    """Return the power p such that a step with noise s costs in proportion to s**-p.

    Returns
    -------
    int
        2 for Gaussian noise, 1 for Laplace noise.

    Raises
    ------
    ValueError
        If ``composition`` is neither.
    """
    if composition not in COST_POWERS:
        raise ValueError(f"composition must be one of {sorted(COST_POWERS)}, got {composition!r}.")
    return COST_POWERS[composition]


def influence_to_noise(log_influence: ArrayLike, composition: str = "gaussian") -> Array:
    """Return the relative noise that minimises ``sum_t q_t s_t**2``, with geometric mean 1.

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
    """Return the noise that has the least effect and spends exactly the budget.

    Parameters
    ----------
    log_influence : array of shape (n_steps,)
        log q_t, up to a constant.
    budget : float
        Gaussian: the sum of ``sigma_t**-2``, which is the squared mu of Gaussian DP, or twice the
        rho of zCDP. Laplace: the sum of ``1/b_t``, in units of the sensitivity.
    composition : {"gaussian", "laplace"}
        Rule by which the costs of steps add up.

    Returns
    -------
    array of shape (n_steps,)

    Raises
    ------
    ValueError
        If log-influences are not finite, or the rule of composition is unknown.
    """
    relative, power = influence_to_noise(log_influence, composition), cost_power(composition)
    scale = (np.sum(relative ** float(-power)) / budget) ** (1 / power)
    return np.asarray(scale * relative, dtype=np.float64)


def noise_effect(
    log_influence: ArrayLike, noise: ArrayLike, composition: str = "gaussian"
) -> float:
    """Return ``sum_t q_t s_t**2``, the noise s scaled to a budget of 1.

    With Gaussian noise this is ``(sum q s**2) (sum s**-2)``: uniform noise gives ``T sum q``,
    optimal noise ``(sum sqrt(q))**2``.

    Returns
    -------
    float
    """
    logs, relative = _finite(log_influence), np.asarray(noise, dtype=np.float64)
    power = cost_power(composition)
    spent = np.sum(relative ** float(-power))
    return float(np.sum(np.exp(logs) * relative**2) * spent ** (2 / power))


def least_noise_effect(log_influence: ArrayLike, composition: str = "gaussian") -> float:
    """Return the least `noise_effect` that any noise has, in closed form.

    ``(sum q**(1/2))**2`` for Gaussian noise, ``(sum q**(1/3))**3`` for Laplace noise.

    Returns
    -------
    float
    """
    power = cost_power(composition) / (2 + cost_power(composition))
    return float(np.sum(np.exp(power * _finite(log_influence))) ** (1 / power))


def _finite(log_influence: ArrayLike) -> Array:
    logs = np.asarray(log_influence, dtype=np.float64)
    if logs.ndim != 1 or not len(logs) or not np.isfinite(logs).all():
        raise ValueError(
            "log-influences must be a sequence of finite numbers, one per step, "
            f"got an array of shape {logs.shape}."
        )
    return logs


class NoiseSchedule(BaseEstimator):
    """Base of noise schedules. An object, so that a grid search can reach its parameters."""

    @abstractmethod
    def log_influence(self, n_steps: int) -> Array:
        """Return log q_t for the steps 1..n_steps, up to a constant.

        Returns
        -------
        array of shape (n_steps,)
        """

    def relative(self, n_steps: int, composition: str = "gaussian") -> Array:
        """Return the relative noise of the steps 1..n_steps, with geometric mean 1.

        Returns
        -------
        array of shape (n_steps,)
        """
        return influence_to_noise(self.log_influence(n_steps), composition)


def positive_numbers(values: object, n_steps: int, who: str) -> Array:
    """Return ``n_steps`` positive, finite numbers as an array, or raise ValueError."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    are_valid = array.shape == (n_steps,) and ((array > 0) & np.isfinite(array)).all()
    allowed = f"be {n_steps} positive, finite numbers, one per step"
    require(who, values, allowed, bool(are_valid))
    return array


def powers(gamma: float, n_steps: int) -> Array:
    """Return ``log gamma ** (T - t)`` for the steps 1..T."""
    steps_left = n_steps - np.arange(1, n_steps + 1)
    return np.asarray(math.log(gamma) * steps_left, dtype=np.float64)


def check_rates(who: str, gamma: object, beta: object) -> None:
    """Raise ValueError unless gamma is a contraction and beta a momentum."""
    require(f"{who}: gamma", gamma, "lie in (0, 1]", is_real(gamma) and 0 < gamma <= 1)
    require(f"{who}: beta", beta, "lie in [0, 1)", is_real(beta) and 0 <= beta < 1)


class UniformNoise(NoiseSchedule):
    """Every step is equally noisy: ``q_t = 1``."""

    def log_influence(self, n_steps: int) -> Array:
        return np.zeros(n_steps)


class ExponentialNoise(NoiseSchedule):
    """Noise that falls with t: ``q_t = gamma ** (T - t)``, for strongly convex problems.

    The later steps contract the noise of the earlier ones (Hong, Wang, Zhou 2022, Thm 4.5).

    Parameters
    ----------
    gamma : float, default=0.95
        Contraction of one step in (0, 1]. ``1 - 1/kappa`` for gradient descent.
    """

    def __init__(self, gamma: float = 0.95) -> None:
        self.gamma = gamma

    def log_influence(self, n_steps: int) -> Array:
        check_rates("ExponentialNoise", self.gamma, 0.0)
        return powers(self.gamma, n_steps)


class MomentumNoise(NoiseSchedule):
    """Noise for gradient descent with bias-corrected momentum.

    ``q_t = sum_{s >= t} gamma**(T-s) ((1-beta) / (1-beta**s))**2 beta**(2(s-t))``: the noise of
    step t enters the averages of all later steps (Hong, Wang, Zhou 2022, U_3 of Thm 4.6).

    Parameters
    ----------
    gamma : float, default=0.95
        Contraction of one step in (0, 1]. ``1 - eta0/kappa`` for a step size of ``eta0/(2M)``.
    beta : float, default=0.9
        Momentum in [0, 1).
    """

    def __init__(self, gamma: float = 0.95, beta: float = 0.9) -> None:
        self.gamma = gamma
        self.beta = beta

    def log_influence(self, n_steps: int) -> Array:
        check_rates("MomentumNoise", self.gamma, self.beta)
        if self.beta == 0:
            return powers(self.gamma, n_steps)
        steps = np.arange(1, n_steps + 1)
        decay = steps * math.log(self.beta)
        correction = math.log1p(-self.beta) - np.log(-np.expm1(decay))
        terms = powers(self.gamma, n_steps) + 2 * correction + 2 * decay
        tails = np.logaddexp.accumulate(terms[::-1])[::-1]
        return np.asarray(tails - 2 * decay, dtype=np.float64)


def stages(n_steps: int, kappa: float, first_stage: int, p: float) -> NDArray[np.int_]:
    """Return the stage, counted from 1, of each of the steps 1..n_steps of multistage acceleration.

    The first stage has ``first_stage`` steps, stage k has ``2**k ceil(sqrt(kappa) log(2**(p+2)))``.

    Returns
    -------
    array of shape (n_steps,), int64
    """
    unit = math.ceil(math.sqrt(kappa) * (p + 2) * math.log(2))
    lengths = [min(first_stage, n_steps)]
    while sum(lengths) < n_steps:
        lengths.append(min(2 ** (len(lengths) + 1) * unit, n_steps))
    return np.repeat(np.arange(1, len(lengths) + 1), lengths)[:n_steps]


class StepMatchedNoise(NoiseSchedule):
    """Noise in inverse proportion to the square root of the step size: ``q_t = eta_t**2``.

    With falling steps the noise rises. This is optimal where later steps do not contract the noise,
    as in a bound on the mean squared gradient of a problem that is not strongly convex (Wu, Wang,
    Cristali, Gu, Willett 2021, ``alpha_t**2 = b_t``).

    The step sizes are those of the solver. Outside of a solver, those of ``PolynomialStep()``.
    """

    def log_influence(self, n_steps: int) -> Array:
        return np.asarray(2 * np.log(PolynomialStep().sizes(n_steps)))


NOISE_SCHEDULES: dict[str, Callable[..., NoiseSchedule]] = {
    "exponential": ExponentialNoise,
    "momentum": MomentumNoise,
    "step_matched": StepMatchedNoise,
    "uniform": UniformNoise,
}


# What solvers accept as ``noise_schedule``.
RelativeNoise = NoiseSchedule | Named | ArrayLike


def noise_rule(given: RelativeNoise) -> RelativeNoise:
    """Return the schedule that ``noise_schedule`` names. All else is returned as such.

    Returns
    -------
    NoiseSchedule, str or array

    Raises
    ------
    ValueError
        If the name is unknown, or has no such argument.
    """
    others = "'auto', an array of relative noise, a NoiseSchedule"
    return named("noise_schedule", NOISE_SCHEDULES, given, others)


def relative_noise(
    schedule: RelativeNoise,
    n_steps: int,
    composition: str = "gaussian",
    sizes: ArrayLike | None = None,
) -> Array:
    """Turn a name, a schedule or an array of relative noise into ``n_steps`` positive numbers.

    Parameters
    ----------
    schedule : str, tuple (str, dict), NoiseSchedule or array of shape (n_steps,)
    n_steps : int
    composition : {"gaussian", "laplace"}, default="gaussian"
        Rule by which costs add up: squares of mu for "gaussian", epsilons for "laplace".
    sizes : array of shape (n_steps,) or None, default=None
        Step sizes of the solver, for a schedule that follows them.

    Returns
    -------
    array of shape (n_steps,)

    Raises
    ------
    ValueError
        If the name is unknown, or the numbers are not ``n_steps`` positive ones of similar size.
    """
    rule = noise_rule(schedule)
    if isinstance(rule, StepMatchedNoise) and sizes is not None:
        positive = positive_numbers(sizes, n_steps, "learning_rate")
        return influence_to_noise(2 * np.log(positive), composition)
    if isinstance(rule, NoiseSchedule):
        return positive_numbers(rule.relative(n_steps, composition), n_steps, "noise_schedule")
    noise = positive_numbers(rule, n_steps, "noise_schedule, where it is no schedule or its name,")
    # Schedules keep to LEAST_SHARE. What is much noisier cannot be drawn, after the charge.
    most = LEAST_SHARE ** (-1 / cost_power(composition)) * (1 + 1e-9)
    if math.log(noise.max()) - math.log(noise.min()) > math.log(most):
        raise ValueError(
            f"noise_schedule must not vary by more than a factor of {most:.0e}, got numbers from "
            f"{noise.min():g} to {noise.max():g}. Nothing was released."
        )
    return noise


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
    logs, log_rate = logs - logs.max(), math.log(rate)

    def scales(log_factor: float) -> Array:
        """Solve 3 log u + log g(u) = log_factor + log q by bisection, as rate <= g(u) <= 1."""
        goal = log_factor + logs
        low, high = goal / 3, (goal - log_rate) / 3
        with np.errstate(divide="ignore"):  # no other rows at rate 1
            log_others = np.log1p(-rate)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            log_g = log_rate - np.logaddexp(log_others - np.exp(middle), log_rate)
            is_above = 3 * middle + log_g > goal
            low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
        return np.asarray(np.exp(-high))

    def excess(log_factor: float) -> float:
        return float(sampled_epsilon(scales(log_factor), rate).sum()) - epsilon

    return scales(float(brentq(excess, -600.0, 600.0, xtol=1e-14, rtol=1e-15, maxiter=500)))
