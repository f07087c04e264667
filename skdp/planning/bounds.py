"""Bound the excess of gradient descent after a number of steps, and find the best number.

All bounds are relative to the initial excess, so that 1 means that nothing is gained (Hong, Wang,
Zhou 2022, "ERUB"). They hold for a mean loss that is M-smooth and satisfies the Polyak-Lojasiewicz
inequality with constant mu, ``kappa = M/mu``. The accuracy that a budget costs is predicted from
fits of other data instead.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import brentq

from skdp import steps
from skdp._numbers import require
from skdp.steps import ExponentialNoise, MomentumNoise
from skdp.steps.noise_schedules import RelativeNoise

# In place of a contraction of 0 (one step reaches the minimum), which has no logarithm. Small
# enough to leave bounds as they are.
LEAST_CONTRACTION = 1e-12
# Largest number of steps that is considered. The time to compute a bound is proportional to it.
MAX_STEPS = 1_000_000


def noise_constant(
    n_parameters: int,
    clip_norm: float,
    budget: float,
    smoothness: float,
    n_rows: int,
    initial_excess: float,
) -> float:
    """Return the excess loss due to one step's noise on the whole budget, over the initial excess.

    ``alpha = D G**2 / (2 R M n**2 (F(w_1) - F*))`` (Hong, Wang, Zhou 2022, eq. 4).

    Parameters
    ----------
    n_parameters : int
        D.
    clip_norm : float
        G, the sensitivity of the gradient sum.
    budget : float
        R, the sum of ``sigma_t**-2`` that may be spent: the squared mu of Gaussian DP.
    smoothness : float
        M, a public bound.
    n_rows : int
    initial_excess : float
        A *public* guess of ``F(w_1) - F*``.

    Returns
    -------
    float
    """
    return n_parameters * clip_norm**2 / (2 * budget * smoothness * n_rows**2 * initial_excess)


def check_bound_arguments(
    alpha: float,
    kappa: float,
    momentum: float | None,
    eta0: float,
    step: float = 1.0,
    batch_noise: float = 0.0,
) -> None:
    """Raise ValueError if an argument of `utility_bound` is out of its range."""
    require("utility_bound: alpha", alpha, "be positive", 0 < alpha < math.inf)
    require("utility_bound: kappa", kappa, "be at least 1", 1 <= kappa < math.inf)
    if momentum is not None and not (0 < momentum < 1 and 0 < eta0 < kappa):
        raise ValueError(
            "utility_bound: momentum must lie in (0, 1) and eta0 in (0, kappa), "
            f"got momentum={momentum!r}, eta0={eta0!r}, kappa={kappa!r}."
        )
    rule = "lie in (0, 2), and be left alone with momentum, where eta0 takes its place"
    require("utility_bound: step", step, rule, 0 < step < 2 and (momentum is None or step == 1))
    is_valid = 0 <= batch_noise < math.inf
    require("utility_bound: batch_noise", batch_noise, "not be negative", is_valid)


def utility_bound(
    n_steps: int,
    alpha: float,
    kappa: float,
    noise_schedule: RelativeNoise = "dynamic",
    *,
    momentum: float | None = None,
    eta0: float = 1.0,
    step: float = 1.0,
    batch_noise: float = 0.0,
) -> float:
    """Bound the expected excess after ``n_steps``, relative to the initial excess.

    ``gamma**T + a sum_t q_t (sigma_t**2 R + b / alpha)``. Without momentum ``q_t = gamma**(T-t)``,
    ``gamma = 1 - s (2 - s)/kappa``, ``a = alpha s**2``, for steps of s/M. Here s = 1 is the theorem
    of the paper (Hong, Wang, Zhou 2022, Thm 4.2), and its proof covers the others. With momentum
    ``gamma = 1 - eta0/kappa``, ``a = 2 eta0 alpha`` for steps of ``eta0/(2M)`` (Thm 4.6, the
    momentum effect, which only helps, is left out). b is the noise of batches (Thms 4.9, 4.10).

    Parameters
    ----------
    n_steps : int
        T, at least 1.
    alpha : float
        See `noise_constant`.
    kappa : float
        Condition number M/mu, at least 1. Here mu is the strong convexity, or the constant of
        Polyak and Lojasiewicz where the loss is not convex.
    noise_schedule : "dynamic" or anything that a solver takes as ``noise_schedule``
        "dynamic" is the noise that minimises this bound. "uniform" gives Thm 4.3.
    momentum : float or None, default=None
        beta, in (0, 1), of bias-corrected momentum.
    eta0 : float, default=1.0
        With momentum only: step size in units of 1/(2M). See `momentum_step_limit`.
    step : float, default=1.0
        Without momentum only: step size in units of 1/M, in (0, 2).
    batch_noise : float, default=0.0
        b of private *stochastic* gradient descent (Thms 4.9 and 4.10). 0 for steps on all rows.
        With batches, alpha is computed from the rows of a batch and the sum of ``sigma_t**-2`` that
        the price of a sampled plan allows. The paper's ``alpha_g sigma_g**2`` is ``kappa b``, the
        limit of the sum in long runs.

    Returns
    -------
    float
        1 means that nothing is gained.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> from skdp.planning import utility_bound
    >>> bounds = [utility_bound(T, 1e-4, 10, "uniform") for T in (5, 50, 500)]
    >>> bounds[1] < min(bounds[0], bounds[2])
    True
    """
    check_bound_arguments(alpha, kappa, momentum, eta0, step, batch_noise)
    if momentum is None:
        gamma, factor = 1 - step * (2 - step) / kappa, step**2
        gamma = max(gamma, LEAST_CONTRACTION)
        logs = ExponentialNoise(gamma).log_influence(n_steps)
    else:
        gamma, factor = 1 - eta0 / kappa, 2 * eta0
        logs = MomentumNoise(gamma, momentum).log_influence(n_steps)
    if isinstance(noise_schedule, str) and noise_schedule == "dynamic":
        effect = steps.least_noise_effect(logs)
    else:
        effect = steps.noise_effect(logs, steps.relative_noise(noise_schedule, n_steps))
    drawn = batch_noise * float(np.exp(logs).sum()) if batch_noise else 0.0
    return gamma**n_steps + factor * (alpha * effect + drawn)


# ---------------------------------------------------------------- numbers of steps, and their sizes


def closed_form_steps(alpha: float, slowness: float, factor: int) -> int:
    """Return ``ceil(factor s log(1 + 1/(s alpha)))``, where the excess falls by 1 - 1/s per step.

    This is the number of steps as printed (Hong, Wang, Zhou 2022, Thms 4.3, 4.5, 4.7, 4.8), with
    factor 1 for uniform and 2 for dynamic noise.
    """
    return max(1, math.ceil(factor * slowness * math.log1p(1 / (slowness * alpha))))


def number_of_steps(
    alpha: float,
    kappa: float,
    noise_schedule: RelativeNoise = "dynamic",
    *,
    momentum: float | None = None,
    eta0: float = 1.0,
    step: float = 1.0,
    batch_noise: float = 0.0,
) -> int:
    """Find the number of steps that minimises `utility_bound`.

    A coarse search over all orders of magnitude is refined around its minimum.

    Parameters
    ----------
    alpha, kappa, noise_schedule, momentum, eta0, step, batch_noise
        As for `utility_bound`.

    Returns
    -------
    int
        At most ``MAX_STEPS``.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> from skdp.planning import number_of_steps
    >>> number_of_steps(1e-4, 10, "uniform") < number_of_steps(1e-4, 10, "dynamic")
    True
    """
    check_bound_arguments(alpha, kappa, momentum, eta0, step, batch_noise)
    # Beyond a few times the printed number of steps, noise outweighs the remaining excess.
    slowness = kappa / (step * (2 - step) if momentum is None else eta0)
    limit = min(4 * closed_form_steps(alpha * step**2, slowness, 2) + 16, MAX_STEPS)

    @cache
    def bound(n_steps: int) -> float:
        return utility_bound(
            n_steps, alpha, kappa, noise_schedule,
            momentum=momentum, eta0=eta0, step=step, batch_noise=batch_noise,
        )  # fmt: skip

    grid = sorted({round(n) for n in np.geomspace(1, limit, 48)})
    best = min(range(len(grid)), key=lambda i: bound(grid[i]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    while high - low > 4:
        third = (high - low) // 3
        first, second = low + third, high - third
        low, high = (low, second) if bound(first) <= bound(second) else (first, high)
    return min(range(low, high + 1), key=bound)


def momentum_step_limit(beta: float, gamma: float) -> float:
    """Return the largest eta0 for which the bound with momentum holds, for steps of ``eta0/(2M)``.

    ``8 / (sqrt(1 + 64 beta gamma (gamma-beta)**-2 (1-beta)**-3) + 1)`` (Hong, Wang, Zhou 2022,
    Thm 4.6). The example that the paper gives, ``eta0 <= 0.98`` for beta = 0.9 and gamma = 0.99,
    contradicts it: the formula gives 0.0030.

    Parameters
    ----------
    beta : float
        Momentum, in [0, 1), other than gamma.
    gamma : float
        Contraction, in (0, 1].

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is out of its range, or both are equal.
    """
    if not (0 <= beta < 1 and 0 < gamma <= 1 and beta != gamma):
        raise ValueError(
            "momentum_step_limit: beta must lie in [0, 1), gamma in (0, 1], and they must differ, "
            f"got beta={beta!r}, gamma={gamma!r}."
        )
    return 8 / (math.sqrt(1 + 64 * beta * gamma / ((gamma - beta) ** 2 * (1 - beta) ** 3)) + 1)


def largest_momentum_step(beta: float, kappa: float) -> float:
    """Return the largest eta0 within its own limit, where gamma is ``1 - eta0/kappa`` > beta.

    Parameters
    ----------
    beta : float
        Momentum, in [0, 1).
    kappa : float
        Condition number, at least 1.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """
    if not (0 <= beta < 1 and 1 <= kappa < math.inf):
        raise ValueError(
            "largest_momentum_step: beta must lie in [0, 1) and kappa be at least 1, "
            f"got beta={beta!r}, kappa={kappa!r}."
        )
    largest = kappa * (1 - beta) * (1 - 1e-9)

    def room(eta0: float) -> float:
        return momentum_step_limit(beta, 1 - eta0 / kappa) - eta0

    if room(largest) >= 0:
        return largest
    root = float(brentq(room, 1e-12 * largest, largest, xtol=1e-15, rtol=1e-12))
    return root * (1 - 1e-9)


QUANTILES = 0.1, 0.5, 0.9  # over fits to different data, of the share that is lost
# Shares of the explainable part. Less than the first counts as nothing, more than the second as
# the second: a model is then worse than a constant by as much as one without privacy is better.
LEAST_LOSS, MOST_LOSS = 1e-3, 2.0
# Share that half of the fits lose, or more, where there is a warning before a fit. From 1 on they
# would be worse than a constant. The others, of which some gain much, are left to what a fit finds.
HOPELESS_LOSS = 1.4

# By kind and quantile (at, slope): the share lost is (signal / at) ** -slope, where the signal is
# mu n / p. Skewed regressions are those of targets with a skewness above 2, such as counts. Fitted
# to utility.csv, held_out.csv and, for log links, counts.csv in benchmarks/results by
# `python -m benchmarks expected`, which rewrites these lines.
CURVES = {
    "regression": {0.1: (0.204, 1.13), 0.5: (1.35, 1.22), 0.9: (2.07, 1.01)},
    "skewed regression": {0.1: (0.832, 1.85), 0.5: (2.91, 0.838), 0.9: (13.4, 0.672)},
    "log link": {0.1: (1.45, 1.55), 0.5: (2.17, 0.835), 0.9: (12.7, 0.401)},
    "two classes": {0.1: (0.398, 1.21), 0.5: (1.11, 0.964), 0.9: (2.47, 0.576)},
    "more classes": {0.1: (0.378, 0.812), 0.5: (0.58, 0.661), 0.9: (6.58, 0.708)},
}


@dataclass(frozen=True)
class ExpectedLoss:
    """Share lost of the gain of the same model without privacy over a constant prediction.

    Attributes
    ----------
    low, median, high : float
        Of R2, with a log link of D2, or, for classifiers, of log loss: four in five fits to other
        data lie between low and high. Shares above 1 are those of models that are worse than a
        constant.
    """

    low: float
    median: float
    high: float


def share_lost(curve: tuple[float, float], signal: float) -> float:
    """Return the share lost at a signal by a curve, 0 where it is below ``LEAST_LOSS``."""
    at, slope = curve
    share = math.exp(min(slope * (math.log(at) - math.log(signal)), math.log(MOST_LOSS)))
    return share if share > LEAST_LOSS else 0.0


def expected_loss(kind: str, signal: float) -> ExpectedLoss:
    """Return the share lost by default fits at a signal, by the fits of the benchmarks.

    Parameters
    ----------
    kind : {"regression", "skewed regression", "log link", "two classes", "more classes"}
    signal : float
        ``mu n / p``: the Gaussian-DP parameter of the budget, times rows, over parameters of an
        output. Positive.

    Returns
    -------
    ExpectedLoss
    """
    shares = (share_lost(CURVES[kind][quantile], signal) for quantile in QUANTILES)
    return ExpectedLoss(*sorted(shares))  # curves may cross where a model is worse than a constant


def signal_for(kind: str, share: float) -> float:
    """Return the signal at which half of the fits lose no more than this positive share."""
    at, slope = CURVES[kind][0.5]
    return float(at * share ** (-1 / slope))


def hopeless(kind: str, signal: float) -> bool:
    """Return whether half of the fits of a kind lose more than `HOPELESS_LOSS` at a signal."""
    return signal < signal_for(kind, HOPELESS_LOSS)
