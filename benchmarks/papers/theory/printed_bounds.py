"""Error bounds as papers print them: of adaptive noise, of the true risk, of a random iterate."""

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp.steps import StepSchedule, step_sizes


def random_iterate_steps(alpha: float) -> int:
    """Return the number of steps of DP-GD whose random iterate has the least expected gradient.

    With steps of 1/M the mean squared gradient over x_0..x_{T-1} is at most
    ``2 M gap / T + T D G**2 / (n**2 R)``, which ``T = 1 / sqrt(alpha)`` minimises: the
    ``O(sqrt(L) n epsilon / (sqrt(p log(1/delta)) G))`` of Wang, Ye, Xu (2017, Thm 6.3), with its
    constant. No convexity is needed.

    Parameters
    ----------
    alpha : float
        ``D G**2 / (2 R M n**2 gap)``, see `skdp.planning.noise_constant`.

    Examples
    --------
    >>> from benchmarks.papers.theory import random_iterate_steps
    >>> random_iterate_steps(1e-4)
    100
    """
    if not 0 < alpha < math.inf:
        raise ValueError(f"random_iterate_steps: alpha must be positive; got {alpha!r}.")
    return max(1, round(math.sqrt(1 / alpha)))


def printed_adp_bound(
    sizes: float | StepSchedule | ArrayLike,
    relative: ArrayLike,
    *,
    initial_gap: float,
    smoothness: float,
    gradient_norm: float,
    noise_effect: float,
) -> float:
    """Bound on the least expected squared gradient of ADP-SGD, as printed.

    ``(W + noise_effect / 2 * sum(alpha_t**2 eta_t**2) sum(alpha_t**-2)) / sum(eta_t)``, where
    ``W = D_F + L G**2 / 2 sum(eta_t**2)`` (Wu, Wang, Cristali, Gu, Willett 2021, Thm 4.2, with
    steps ``eta_t = eta / b_t``; in the second term the theorem's ``b_t`` are ours over eta, and the
    L that its proof has and its statement lacks is here).

    Parameters
    ----------
    sizes : array of shape (n_steps,), or what makes one of ``relative``'s length
        eta_t.
    relative : array of shape (n_steps,)
        alpha_t, the relative noise.
    initial_gap : float
        D_F, a *public* guess of ``F(w_0) - F*``.
    smoothness, gradient_norm : float
        L and G, the clipping norm.
    noise_effect : float
        ``L`` times the expected squared length of the noise on a mean gradient if one step took
        the whole budget: ``L d (16 G)**2 B / (n epsilon)**2`` as printed, or
        ``L d (G / (n mu))**2`` with exact accounting.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.papers.theory import printed_adp_bound
    >>> from skdp.steps import PolynomialStep
    >>> eta = PolynomialStep().sizes(10_000)
    >>> facts = {"initial_gap": 1.0, "smoothness": 1.0, "gradient_norm": 1.0, "noise_effect": 0.1}
    >>> matched = printed_adp_bound(eta, eta**-0.5, **facts)
    >>> bool(matched < printed_adp_bound(eta, np.ones(10_000), **facts))
    True
    """
    alpha = np.asarray(relative, dtype=np.float64)
    if isinstance(sizes, StepSchedule | float | int):
        sizes = step_sizes(sizes, len(alpha))
    eta = np.asarray(sizes, dtype=np.float64)
    start = initial_gap + smoothness * gradient_norm**2 / 2 * float(np.sum(eta**2))
    noise = noise_effect / 2 * float(np.sum((alpha * eta) ** 2) * np.sum(alpha**-2.0))
    return (start + noise) / float(np.sum(eta))


def printed_polynomial_bounds(
    n_steps: int,
    *,
    initial: float,
    a: float,
    c: float,
    initial_gap: float,
    smoothness: float,
    gradient_norm: float,
    noise_effect: float,
) -> tuple[float, float]:
    """Bounds on the least squared gradient of ADP-SGD and of DP-SGD with steps in ``t**-0.5``.

    Wu, Wang, Cristali, Gu, Willett 2021, Prop. 5.1 (eq. 9 and 10), for ``eta_t = initial /
    sqrt(a + c t)``; the second exceeds the first by a factor of the order log T in its last term.
    That of the first is twice as large here as in eq. (9), which drops a factor: it is what Thm 4.2
    gives.

    Parameters
    ----------
    n_steps : int
        T, at least ``5 + 4 a / c``.
    initial, a, c : float
        Of the steps, as in `skdp.steps.PolynomialStep`.
    initial_gap, smoothness, gradient_norm, noise_effect
        As for `printed_adp_bound`.

    Returns
    -------
    matched, uniform : float
    """
    if n_steps < 5 + 4 * a / c:
        raise ValueError(
            f"printed_polynomial_bounds: n_steps must be at least {5 + 4 * a / c:g}; got {n_steps}."
        )
    growth = math.log1p(n_steps * c / a)
    start = initial_gap / initial
    start += initial * gradient_norm**2 * smoothness * growth / (2 * c)
    start *= math.sqrt(c / (n_steps - 1))
    noise = initial * noise_effect * math.sqrt(n_steps / c)
    return start + noise, start + noise * growth


def printed_adaptive_bounds(
    n_steps: int,
    *,
    initial: float,
    first: float,
    least: float,
    initial_gap: float,
    smoothness: float,
    gradient_norm: float,
    noise_effect: float,
) -> tuple[float, float]:
    """Bounds on the squared gradient of ADP-SGD and of DP-SGD with adaptive steps.

    Wu, Wang, Cristali, Gu, Willett 2021, Prop. 5.2, for ``b_t**2 = b_{t-1}**2 + max(|g|**2, nu)``;
    worst cases over gradients, and blind to the guess of their growth.

    Parameters
    ----------
    n_steps : int
    initial, first, least : float
        eta, b_0 and nu, as in `skdp.steps.AdaptiveStep`.
    initial_gap, smoothness, gradient_norm, noise_effect
        As for `printed_adp_bound`.

    Returns
    -------
    matched, uniform : float
    """
    G = gradient_norm
    growth = 1 + math.log(n_steps * (G**2 + least**2) / first**2 + 1)
    start = 2 * G * (2 * G + initial * smoothness / 2) * growth + 2 * G * initial_gap / initial
    start /= math.sqrt(n_steps - 1)
    # 128 G**3 = (16 G)**2 G / 2, and 32 G**3 = (16 G)**2 G / 8.
    noise = G * initial * noise_effect * math.sqrt(n_steps) / least
    return start + noise / 2, start + noise / 8 * math.log1p(n_steps * least / first**2)


def true_risk_in_probability(
    excess: float, gradient_norm: float, strong_convexity: float, n_rows: int, probability: float
) -> float:
    """Bound on the excess of the true risk that fails with at most this probability.

    ``sqrt(2 G**2 excess / (mu n)) + 4 G**2 / (p mu n)`` (Hong, Wang, Zhou 2022, Thm 4.11, after
    Shalev-Shwartz et al. 2009), for rows drawn independently and a strongly convex loss. An excess
    in expectation becomes one in probability by `repetitions` runs with as many shares of the
    budget; choosing the best of them takes a private choice, which the paper does not charge.

    Parameters
    ----------
    excess : float
        Excess of the mean loss over the rows.
    gradient_norm, strong_convexity : float
        G and mu.
    n_rows : int
    probability : float
        In (0, 1).

    Examples
    --------
    >>> from benchmarks.papers.theory import true_risk_in_probability
    >>> round(true_risk_in_probability(1e-4, 1.0, 0.1, 10_000, 0.05), 5)
    0.08045
    """
    share = gradient_norm**2 / (strong_convexity * n_rows)
    return math.sqrt(2 * share * excess) + 4 * share / probability


def repetitions(probability: float) -> int:
    """Return how many runs have one as good as expected but for this probability: log2(1/p)."""
    return max(1, math.ceil(math.log2(1 / probability)))


def true_risk_by_stability(
    excess: float, gradient_norm: float, learning_rate: float, n_steps: int, n_rows: int
) -> float:
    """Bound on the expected excess of the true risk: ``excess + G**2 eta T / n``.

    Gradient descent with steps below 2/M is uniformly stable (Hong, Wang, Zhou 2022, Thms 4.13 and
    4.14, after Bassily et al. 2019). No strong convexity is needed.

    Examples
    --------
    >>> from benchmarks.papers.theory import true_risk_by_stability
    >>> true_risk_by_stability(0.01, 1.0, 0.1, 100, 1000)
    0.02
    """
    return excess + gradient_norm**2 * learning_rate * n_steps / n_rows
