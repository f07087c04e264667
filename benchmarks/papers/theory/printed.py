"""Formulas as papers print them: budgets, noise, step counts and constants, for comparison."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from skdp.accounting import gaussian_mu
from skdp.planning.bounds import LEAST_CONTRACTION, check_bound_arguments, closed_form_steps
from skdp.steps import StepSchedule, step_sizes


def exact_budget(epsilon: float, delta: float) -> float:
    """Sum of ``sigma_t**-2`` that full-batch Gaussian releases may spend: the squared mu.

    Parameters
    ----------
    epsilon, delta : float
        The budget, for neighbours whose sums differ by one contribution ("zero_out").

    Examples
    --------
    >>> from benchmarks.papers.theory import exact_budget, printed_budget
    >>> exact_budget(4.0, 1e-8) > 1.2 * printed_budget(4.0, 1e-8)
    True
    """
    return gaussian_mu(epsilon, delta) ** 2


def printed_budget(epsilon: float, delta: float) -> float:
    """Return that sum by zCDP: ``R = 2 rho`` with ``rho + 2 sqrt(rho log(1/delta)) = epsilon``.

    Solved for rho that is ``(sqrt(epsilon + log(1/delta)) - sqrt(log(1/delta)))**2`` (Hong, Wang,
    Zhou 2022, Lemma C.4, where the sign of the last term is a misprint).

    Examples
    --------
    >>> from benchmarks.papers.theory import printed_budget
    >>> round(printed_budget(4.0, 1e-8), 4)
    0.3927
    """
    tail = math.log(1 / delta)
    # Equal to the difference of the roots, without its cancellation.
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
    """Return the printed standard deviation, by which the relative noise is multiplied.

    ``sigma**2 = (16 G)**2 B / (n epsilon)**2 * sum_t alpha_t**-2`` on the mean gradient, with
    ``B = log(16 T m / (n delta)) log(1.25 / delta)`` (Wu, Wang, Cristali, Gu, Willett 2021,
    Thm 4.1). It rests on advanced composition; for comparison only.

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


def printed_number_of_steps(
    alpha: float,
    kappa: float,
    noise_schedule: str = "dynamic",
    *,
    momentum: float | None = None,
    eta0: float = 1.0,
) -> int:
    """Return the printed closed form of the number of steps.

    ``ceil(kappa' log(1 + 1/(kappa' alpha)))`` for uniform noise and twice that in the argument of
    ceil for dynamic noise, ``kappa' = kappa`` without momentum and ``kappa/eta0`` with it (Hong,
    Wang, Zhou 2022, Thms 4.3, 4.5, 4.7, 4.8). Its derivation drops constants;
    `skdp.planning.number_of_steps` minimises the bound itself.
    """
    check_bound_arguments(alpha, kappa, momentum, eta0)
    slowness = kappa if momentum is None else kappa / eta0
    return closed_form_steps(alpha, slowness, 1 if noise_schedule == "uniform" else 2)


def relaxed_number_of_steps(alpha: float, kappa: float) -> int:
    """Return the number of steps of DP-GD under the condition of Polyak and Lojasiewicz.

    It minimises ``gamma**T + alpha T**2``, the bound of Wang, Ye, Xu (2017, Thm 6.2, eq. 81) on the
    last iterate of uniformly noisy gradient descent with steps of 1/M: about ``kappa
    log(1/alpha)``, for alpha of the order ``D G**2 log(1/delta) / (n epsilon)**2``. That bound adds
    up early noise in full; `skdp.planning.number_of_steps` with uniform noise takes into account
    that later steps contract it, and finds as many steps or more.

    Parameters
    ----------
    alpha : float
        See `skdp.planning.noise_constant`.
    kappa : float
        M over the constant of Polyak and Lojasiewicz; at least 1.

    Examples
    --------
    >>> from skdp.planning import number_of_steps
    >>> from benchmarks.papers.theory import relaxed_number_of_steps
    >>> relaxed_number_of_steps(1e-6, 10), number_of_steps(1e-6, 10, "uniform")
    (64, 88)
    """
    check_bound_arguments(alpha, kappa, None, 1.0)
    rate = -math.log(max(1 - 1 / kappa, LEAST_CONTRACTION))

    def slope(n_steps: float) -> float:
        return 2 * alpha * n_steps - rate * math.exp(-rate * n_steps)

    if slope(1.0) >= 0:  # the slope rises, so the bound has one minimum
        return 1
    best = math.floor(float(brentq(slope, 1.0, rate / (2 * alpha))))

    def bound(n_steps: int) -> float:
        return math.exp(-rate * n_steps) + alpha * n_steps**2

    return min(best, best + 1, key=bound)


def batch_constant(gradient_variance: float, smoothness: float, initial_excess: float) -> float:
    """Excess that the randomness of one batch leaves, relative to the initial excess.

    ``V / (2 M (F(w_1) - F*))``, where V is the expected squared distance of a batch's mean gradient
    from the mean over all rows. A batch of n rows has V of the order 1/n; the paper writes
    ``V = D sigma_g**2 / n**2`` and its ``alpha_g sigma_g**2`` is this constant times kappa, with
    ``n = N sqrt(R)`` put in (Hong, Wang, Zhou 2022, Thm 4.9).

    Parameters
    ----------
    gradient_variance : float
        V, a public guess: gradients of norm at most C have ``V <= C**2 / n`` in batches of n.
    smoothness : float
        M, a public bound.
    initial_excess : float
        A *public* guess of ``F(w_1) - F*``.
    """
    return gradient_variance / (2 * smoothness * initial_excess)


def improvement_ratio(steps: float | StepSchedule | ArrayLike, n_steps: int | None = None) -> float:
    """Factor by which step-matched noise improves the noise term of ADP-SGD's bound.

    ``M_dp / M_adp = T sum_t eta_t**2 / (sum_t eta_t)**2`` (Wu, Wang, Cristali, Gu, Willett 2021,
    Remark 4.1); 1 for constant steps.

    Parameters
    ----------
    steps : float, StepSchedule or array of step sizes
    n_steps : int or None
        Required unless ``steps`` is an array.

    Examples
    --------
    >>> from benchmarks.papers.theory import improvement_ratio
    >>> from skdp.steps import PolynomialStep
    >>> improvement_ratio(0.1, 100)
    1.0
    >>> round(improvement_ratio(PolynomialStep(), 10_000), 2)
    1.69
    """
    sizes = np.asarray(steps, dtype=np.float64) if n_steps is None else step_sizes(steps, n_steps)
    sizes = sizes / sizes.max()
    return float(len(sizes) * np.sum(sizes**2) / np.sum(sizes) ** 2)
