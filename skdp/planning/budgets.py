"""Budgets and noise in the units of the papers, beside the exact figures."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp.accounting import gaussian_mu


def exact_budget(epsilon: float, delta: float) -> float:
    """Sum of ``sigma_t**-2`` that full-batch Gaussian releases may spend: the squared mu.

    Parameters
    ----------
    epsilon, delta : float
        The budget, for neighbours whose sums differ by one contribution ("zero_out").

    Examples
    --------
    >>> from skdp.planning import exact_budget, printed_budget
    >>> exact_budget(4.0, 1e-8) > 1.2 * printed_budget(4.0, 1e-8)
    True
    """
    return gaussian_mu(epsilon, delta) ** 2


def printed_budget(epsilon: float, delta: float) -> float:
    """Return the same by zCDP: ``R = 2 rho`` with ``rho + 2 sqrt(rho log(1/delta)) = epsilon``.

    Solved for rho that is ``(sqrt(epsilon + log(1/delta)) - sqrt(log(1/delta)))**2`` (Hong, Wang,
    Zhou 2022, Lemma C.4, where the sign of the last term is a misprint).

    Examples
    --------
    >>> from skdp.planning import printed_budget
    >>> round(printed_budget(4.0, 1e-8), 4)
    0.3927
    """
    tail = math.log(1 / delta)
    # the same as the difference of the roots, without its cancellation
    root = epsilon / (math.sqrt(epsilon + tail) + math.sqrt(tail))
    return 2 * root**2


def printed_adp_noise(
    relative: ArrayLike,
    clip_norm: float,
    epsilon: float,
    delta: float,
    n_rows: int,
    batch_rows: int,
) -> float:
    """Return the standard deviation that multiplies the relative noise, as it is printed.

    ``sigma**2 = (16 G)**2 B / (n epsilon)**2 * sum_t alpha_t**-2`` on the mean gradient, with
    ``B = log(16 T m / (n delta)) log(1.25 / delta)`` (Wu, Wang, Cristali, Gu, Willett 2021,
    Thm 4.1). It stands on advanced composition; for comparison only.

    Parameters
    ----------
    relative : array of shape (n_steps,)
        alpha_t.
    clip_norm : float
        G.
    epsilon, delta : float
    n_rows, batch_rows : int
        n and m.
    """
    alpha = np.asarray(relative, dtype=np.float64)
    factor = math.log(16 * len(alpha) * batch_rows / (n_rows * delta)) * math.log(1.25 / delta)
    return 16 * clip_norm / (n_rows * epsilon) * math.sqrt(factor * float(np.sum(alpha**-2.0)))
