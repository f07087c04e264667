"""Find the number of steps, and the longest steps, that minimise or satisfy the utility bounds."""

import math
from functools import cache

import numpy as np
from scipy.optimize import brentq

from skdp.planning.bounds import check_bound_arguments, utility_bound
from skdp.steps.noise_schedules import RelativeNoise

# Largest number of steps that is considered; the time to compute a bound is proportional to it.
MAX_STEPS = 1_000_000


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
            "momentum_step_limit: beta must lie in [0, 1), gamma in (0, 1], and they must differ; "
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
            "largest_momentum_step: beta must lie in [0, 1) and kappa be at least 1; "
            f"got beta={beta!r}, kappa={kappa!r}."
        )
    largest = kappa * (1 - beta) * (1 - 1e-9)

    def room(eta0: float) -> float:
        return momentum_step_limit(beta, 1 - eta0 / kappa) - eta0

    if room(largest) >= 0:
        return largest
    root = float(brentq(room, 1e-12 * largest, largest, xtol=1e-15, rtol=1e-12))
    return root * (1 - 1e-9)
