"""How many steps, and how long they may be: from bounds, before any budget is spent."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import brentq

from skdp.planning.bounds import LEAST_CONTRACTION, check_bound_arguments, utility_bound

# Bounds take time in proportion to the number of steps; nobody plans more steps than this.
MOST_STEPS = 1_000_000


def printed_number_of_steps(
    alpha: float,
    kappa: float,
    noise_schedule: str = "dynamic",
    *,
    momentum: float | None = None,
    eta0: float = 1.0,
) -> int:
    """Return the closed form for the number of steps, as it is printed.

    ``ceil(kappa' log(1 + 1/(kappa' alpha)))`` for uniform noise and twice that in the argument of
    ceil for dynamic noise, ``kappa' = kappa`` without momentum and ``kappa/eta0`` with it (Hong,
    Wang, Zhou 2022, Thms 4.3, 4.5, 4.7, 4.8). Constants are dropped in its derivation:
    `number_of_steps` finds the number that is best for the bound itself.
    """
    check_bound_arguments(alpha, kappa, momentum, eta0)
    slow = kappa if momentum is None else kappa / eta0
    times = 1 if noise_schedule == "uniform" else 2
    return max(1, math.ceil(times * slow * math.log1p(1 / (slow * alpha))))


def number_of_steps(
    alpha: float,
    kappa: float,
    noise_schedule: Any = "dynamic",
    *,
    momentum: float | None = None,
    eta0: float = 1.0,
    step: float = 1.0,
    batch_noise: float = 0.0,
) -> int:
    """Find the number of steps that makes `utility_bound` least.

    Parameters are those of `utility_bound`. A coarse search over all orders of magnitude is refined
    where it is best.

    Examples
    --------
    >>> from skdp.planning import number_of_steps
    >>> number_of_steps(1e-4, 10, "uniform") < number_of_steps(1e-4, 10, "dynamic")
    True
    """
    # Noise takes what is left of the excess by then; a few times the printed number is enough.
    check_bound_arguments(alpha, kappa, momentum, eta0, step, batch_noise)
    pace = step * (2 - step)
    printed = printed_number_of_steps(alpha * step**2, kappa / pace, momentum=momentum, eta0=eta0)
    most = min(4 * printed + 16, MOST_STEPS)
    options: dict[str, Any] = {
        "momentum": momentum,
        "eta0": eta0,
        "step": step,
        "batch_noise": batch_noise,
    }

    @cache
    def bound(n_steps: int) -> float:
        return utility_bound(n_steps, alpha, kappa, noise_schedule, **options)

    grid = sorted({round(n) for n in np.geomspace(1, most, 48)})
    place = min(range(len(grid)), key=lambda i: bound(grid[i]))
    low, high = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
    while high - low > 4:
        third = (high - low) // 3
        left, right = low + third, high - third
        low, high = (low, right) if bound(left) <= bound(right) else (left, high)
    return min(range(low, high + 1), key=bound)


def relaxed_number_of_steps(alpha: float, kappa: float) -> int:
    """Return the number of steps of DP-GD under the condition of Polyak and Lojasiewicz.

    It makes ``gamma**T + alpha T**2`` least, the bound of Wang, Ye, Xu (2017, Thm 6.2, eq. 81) on
    the last iterate of uniformly noisy gradient descent with steps of 1/M: about ``kappa
    log(1/alpha)``, for alpha of the order ``D G**2 log(1/delta) / (n epsilon)**2``. Early noise
    counts in full there; `number_of_steps` with uniform noise lets it fade, as it does, and takes
    as many steps or more.

    Parameters
    ----------
    alpha : float
        From `noise_constant`.
    kappa : float
        M over the constant of Polyak and Lojasiewicz; at least 1.

    Examples
    --------
    >>> from skdp.planning import number_of_steps, relaxed_number_of_steps
    >>> relaxed_number_of_steps(1e-6, 10), number_of_steps(1e-6, 10, "uniform")
    (64, 88)
    """
    check_bound_arguments(alpha, kappa, None, 1.0)
    rate = -math.log(max(1 - 1 / kappa, LEAST_CONTRACTION))

    def slope(n_steps: float) -> float:
        return 2 * alpha * n_steps - rate * math.exp(-rate * n_steps)

    if slope(1.0) >= 0:  # and it rises: it changes sign once
        return 1
    best = math.floor(float(brentq(slope, 1.0, rate / (2 * alpha))))

    def bound(n_steps: int) -> float:
        return math.exp(-rate * n_steps) + alpha * n_steps**2

    return min(best, best + 1, key=bound)


def momentum_step_limit(beta: float, gamma: float) -> float:
    """Largest eta0 for which the bound with momentum holds, steps being ``eta0/(2M)``.

    ``8 / (sqrt(1 + 64 beta gamma (gamma-beta)**-2 (1-beta)**-3) + 1)`` (Hong, Wang, Zhou 2022,
    Thm 4.6).

    Parameters
    ----------
    beta : float
        Momentum, in [0, 1), other than gamma.
    gamma : float
        Contraction, in (0, 1].
    """
    if not (0 <= beta < 1 and 0 < gamma <= 1 and beta != gamma):
        raise ValueError(
            "momentum_step_limit: beta must lie in [0, 1), gamma in (0, 1], and they must differ; "
            f"got beta={beta!r}, gamma={gamma!r}."
        )
    return 8 / (math.sqrt(1 + 64 * beta * gamma / ((gamma - beta) ** 2 * (1 - beta) ** 3)) + 1)


def largest_momentum_step(beta: float, kappa: float) -> float:
    """Return the largest eta0 that meets its own limit: gamma is ``1 - eta0/kappa``, above beta."""
    if not (0 <= beta < 1 and 1 <= kappa < math.inf):
        raise ValueError(
            "largest_momentum_step: beta must lie in [0, 1) and kappa be at least 1; "
            f"got beta={beta!r}, kappa={kappa!r}."
        )
    most = kappa * (1 - beta) * (1 - 1e-9)

    def room(eta0: float) -> float:
        return momentum_step_limit(beta, 1 - eta0 / kappa) - eta0

    if room(most) >= 0:
        return most
    found = float(brentq(room, 1e-12 * most, most, xtol=1e-15, rtol=1e-12))
    return found * (1 - 1e-9)
