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


def check_bound_arguments(alpha: float, kappa: float, momentum: float | None, eta0: float) -> None:
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


def utility_bound(
    n_steps: int,
    alpha: float,
    kappa: float,
    noise_schedule: Any = "dynamic",
    *,
    momentum: float | None = None,
    eta0: float = 1.0,
) -> float:
    """Bound on the expected excess after ``n_steps``, relative to the initial excess.

    ``gamma**T + a sum_t q_t sigma_t**2 R``, with ``gamma = 1 - 1/kappa``, ``a = alpha`` and steps
    of 1/M without momentum (Hong, Wang, Zhou 2022, Thm 4.2); ``gamma = 1 - eta0/kappa``,
    ``a = 2 eta0 alpha`` and steps of ``eta0/(2M)`` with it (Thm 4.6, the momentum effect, which
    only helps, left out).

    Parameters
    ----------
    n_steps : int
        T, at least 1.
    alpha : float
        From `noise_constant`.
    kappa : float
        Condition number, at least 1.
    noise_schedule : "dynamic" or anything that a solver takes as ``noise_schedule``
        "dynamic" is the best for this bound; "uniform" gives Thm 4.3.
    momentum : float or None, default=None
        beta, in (0, 1), of bias-corrected momentum.
    eta0 : float, default=1.0
        With momentum only: step size in units of 1/(2M); see `momentum_step_limit`.

    Examples
    --------
    >>> from skdp.planning import utility_bound
    >>> bounds = [utility_bound(T, 1e-4, 10, "uniform") for T in (5, 50, 500)]
    >>> bounds[1] < min(bounds[0], bounds[2])
    True
    """
    check_bound_arguments(alpha, kappa, momentum, eta0)
    if momentum is None:
        gamma, factor = 1 - 1 / kappa, alpha
        gamma = max(gamma, LEAST_CONTRACTION)
        logs = ExponentialNoise(gamma).log_influence(n_steps)
    else:
        gamma, factor = 1 - eta0 / kappa, 2 * eta0 * alpha
        logs = MomentumNoise(gamma, momentum).log_influence(n_steps)
    if isinstance(noise_schedule, str) and noise_schedule == "dynamic":
        effect = least_noise_effect(logs)
    else:
        effect = noise_effect(logs, relative_noise(noise_schedule, n_steps))
    return gamma**n_steps + factor * effect


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


def quadratic_influence(curvatures: ArrayLike, step: float, n_steps: int) -> Array:
    """Log q_t of gradient descent on a quadratic: nothing is bounded, the influence is exact.

    Noise of standard deviation s on the gradient of ``1/2 sum_i h_i w_i**2`` at step t adds
    ``q_t s**2`` to the expected excess at the end, ``q_t = step**2/2 sum_i h_i (1 - step h_i)
    ** (2(T-t))``.

    Parameters
    ----------
    curvatures : array
        h, positive; ``step * h`` in (0, 2).
    step : float
    n_steps : int
    """
    h = np.asarray(curvatures, dtype=np.float64)
    left = n_steps - np.arange(1, n_steps + 1)
    rates = 2 * np.log(np.maximum(np.abs(1 - step * h), LEAST_CONTRACTION))
    terms = left[:, None] * rates + np.log(h)
    return np.asarray(np.logaddexp.reduce(terms, axis=1) + math.log(step**2 / 2))


def quadratic_excess(
    curvatures: ArrayLike, step: float, noise_std: ArrayLike, start: ArrayLike
) -> float:
    """Return the expected excess of noisy gradient descent on a quadratic, exactly.

    Parameters
    ----------
    curvatures : array of shape (n_parameters,)
    step : float
    noise_std : array of shape (n_steps,)
        Of the noise on each coordinate of the gradient.
    start : array of shape (n_parameters,)
        First point, the minimum being 0.
    """
    h, std = np.asarray(curvatures, dtype=np.float64), np.asarray(noise_std, dtype=np.float64)
    distance = (1 - step * h) ** (2 * len(std)) * np.asarray(start, dtype=np.float64) ** 2
    influence = np.exp(quadratic_influence(h, step, len(std)))
    return float(h @ distance / 2 + influence @ std**2)
