"""Bounds on the expected excess at the end, as functions of the number of steps.

All bounds of gradient descent are relative to the initial excess: 1 means nothing is gained
(Hong, Wang, Zhou 2022, "ERUB"). They hold for a mean loss that is M-smooth and satisfies the
Polyak-Lojasiewicz inequality with constant mu; ``kappa = M/mu``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.steps import (
    ExponentialNoise,
    MomentumNoise,
    StepSchedule,
    least_noise_effect,
    noise_effect,
    relative_noise,
    step_sizes,
)

Array = NDArray[np.float64]
# Contraction where kappa is 1 and a step forgets everything: small enough, and has a logarithm.
LEAST_CONTRACTION = 1e-12


def noise_constant(
    n_parameters: int,
    clip_norm: float,
    budget: float,
    smoothness: float,
    n_rows: int,
    initial_excess: float,
) -> float:
    """Excess that one step with the whole budget would leave, relative to the initial excess.

    ``alpha = D G**2 / (2 R M n**2 (F(w_1) - F*))`` (Hong, Wang, Zhou 2022, eq. 4).

    Parameters
    ----------
    n_parameters : int
        D.
    clip_norm : float
        G, the sensitivity of the gradient sum.
    budget : float
        R, as from `exact_budget`.
    smoothness : float
        M, a public bound.
    n_rows : int
    initial_excess : float
        A *public* guess of ``F(w_1) - F*``.
    """
    return n_parameters * clip_norm**2 / (2 * budget * smoothness * n_rows**2 * initial_excess)


def batch_constant(gradient_variance: float, smoothness: float, initial_excess: float) -> float:
    """Excess that the draw of one batch leaves, relative to the initial excess.

    ``V / (2 M (F(w_1) - F*))``, where V is the expected squared distance of a batch's mean gradient
    from the mean over all rows. A batch of n rows has V of the order 1/n; the paper writes
    ``V = D sigma_g**2 / n**2`` and its ``alpha_g sigma_g**2`` is this constant times kappa, with
    ``n = N sqrt(R)`` put in (Hong, Wang, Zhou 2022, Thm 4.9).

    Parameters
    ----------
    gradient_variance : float
        V, a public guess: gradients of norm C or less have ``V <= C**2 / n`` in batches of n.
    smoothness : float
        M, a public bound.
    initial_excess : float
        A *public* guess of ``F(w_1) - F*``.
    """
    return gradient_variance / (2 * smoothness * initial_excess)


def check_bound_arguments(
    alpha: float,
    kappa: float,
    momentum: float | None,
    eta0: float,
    step: float = 1.0,
    batch_noise: float = 0.0,
) -> None:
    """Raise ValueError if there is no bound for such arguments."""
    if not 0 < alpha < math.inf:
        raise ValueError(f"utility_bound: alpha must be positive; got {alpha!r}.")
    if not 1 <= kappa < math.inf:
        raise ValueError(f"utility_bound: kappa must be at least 1; got {kappa!r}.")
    if momentum is not None and not (0 < momentum < 1 and 0 < eta0 < kappa):
        raise ValueError(
            "utility_bound: momentum must lie in (0, 1) and eta0 in (0, kappa); "
            f"got momentum={momentum!r}, eta0={eta0!r}, kappa={kappa!r}."
        )
    if not (0 < step < 2 and (momentum is None or step == 1)):
        raise ValueError(
            "utility_bound: step must lie in (0, 2), and be left alone with momentum, where eta0 "
            f"takes its place; got {step!r}."
        )
    if not 0 <= batch_noise < math.inf:
        raise ValueError(f"utility_bound: batch_noise must not be negative; got {batch_noise!r}.")


def utility_bound(
    n_steps: int,
    alpha: float,
    kappa: float,
    noise_schedule: Any = "dynamic",
    *,
    momentum: float | None = None,
    eta0: float = 1.0,
    step: float = 1.0,
    batch_noise: float = 0.0,
) -> float:
    """Bound on the expected excess after ``n_steps``, relative to the initial excess.

    ``gamma**T + a sum_t q_t (sigma_t**2 R + b / alpha)``. Without momentum ``q_t = gamma**(T-t)``,
    ``gamma = 1 - s (2 - s)/kappa``, ``a = alpha s**2``, for steps of s/M; s = 1 is the theorem of
    the paper (Hong, Wang, Zhou 2022, Thm 4.2), and its proof does for the others. With it
    ``gamma = 1 - eta0/kappa``, ``a = 2 eta0 alpha`` for steps of ``eta0/(2M)`` (Thm 4.6; the
    momentum effect, which only helps, is left out). b is the noise of batches (Thms 4.9, 4.10).

    Parameters
    ----------
    n_steps : int
        T, at least 1.
    alpha : float
        From `noise_constant`.
    kappa : float
        Condition number M/mu, at least 1; mu is the strong convexity, or the constant of Polyak
        and Lojasiewicz where the loss is not convex.
    noise_schedule : "dynamic" or anything that a solver takes as ``noise_schedule``
        "dynamic" is the best for this bound; "uniform" gives Thm 4.3.
    momentum : float or None, default=None
        beta, in (0, 1), of bias-corrected momentum.
    eta0 : float, default=1.0
        With momentum only: step size in units of 1/(2M); see `momentum_step_limit`.
    step : float, default=1.0
        Without momentum only: step size in units of 1/M, in (0, 2).
    batch_noise : float, default=0.0
        b, from `batch_constant`, of private *stochastic* gradient descent; 0 for all rows. Then
        alpha takes the rows of a batch, and the sum of ``sigma_t**-2`` that an accountant of
        sampled plans allows. The paper's ``alpha_g sigma_g**2`` is ``kappa b``, what the sum comes
        to in long runs.

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
        effect = least_noise_effect(logs)
    else:
        effect = noise_effect(logs, relative_noise(noise_schedule, n_steps))
    drawn = batch_noise * float(np.exp(logs).sum()) if batch_noise else 0.0
    return gamma**n_steps + factor * (alpha * effect + drawn)


def improvement_ratio(steps: float | StepSchedule | ArrayLike, n_steps: int | None = None) -> float:
    """Factor by which step-matched noise betters the noise term of ADP-SGD's bound.

    ``M_dp / M_adp = T sum_t eta_t**2 / (sum_t eta_t)**2`` (Wu, Wang, Cristali, Gu, Willett 2021,
    Remark 4.1); 1 for constant steps.

    Parameters
    ----------
    steps : float, StepSchedule or array of step sizes
    n_steps : int or None
        Needed unless ``steps`` is an array.

    Examples
    --------
    >>> from skdp.planning import improvement_ratio
    >>> from skdp.steps import PolynomialStep
    >>> improvement_ratio(0.1, 100)
    1.0
    >>> round(improvement_ratio(PolynomialStep(), 10_000), 2)
    1.69
    """
    sizes = np.asarray(steps, dtype=np.float64) if n_steps is None else step_sizes(steps, n_steps)
    sizes = sizes / sizes.max()
    return float(len(sizes) * np.sum(sizes**2) / np.sum(sizes) ** 2)
