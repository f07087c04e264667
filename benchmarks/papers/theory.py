"""Formulas as the papers print them, and the noisy heavy ball on quadratics in closed form.

Tests compare the package with them. On ``F(w) = 1/2 sum_i h_i w_i**2`` the coordinates are
independent.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp._numbers import Array
from skdp.steps import COST_POWERS, influence_to_noise


def printed_budget(epsilon: float, delta: float) -> float:
    """Sum of ``sigma_t**-2`` that zCDP lets full-batch Gaussian releases spend.

    It is ``R = 2 rho`` with ``rho + 2 sqrt(rho log(1/delta)) = epsilon``. Solved for rho that is
    ``(sqrt(epsilon + log(1/delta)) - sqrt(log(1/delta)))**2`` (Hong, Wang, Zhou 2022, Lemma C.4,
    where the sign of the last term is a misprint).

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


def noise_multipliers(
    log_influence: ArrayLike, budget: float, composition: str = "gaussian"
) -> Array:
    """Return the noise that has the least effect and spends exactly the budget.

    That is the sum of ``sigma_t**-2`` for Gaussian, of ``1/b_t`` for Laplace noise.
    """
    relative, power = influence_to_noise(log_influence, composition), COST_POWERS[composition]
    scale = (np.sum(relative ** float(-power)) / budget) ** (1 / power)
    return np.asarray(scale * relative, dtype=np.float64)


def noise_effect(
    log_influence: ArrayLike, noise: ArrayLike, composition: str = "gaussian"
) -> float:
    """Return ``sum_t q_t s_t**2``, the noise s scaled to a budget of 1.

    With Gaussian noise this is ``(sum q s**2) (sum s**-2)``: uniform noise gives ``T sum q``,
    optimal noise ``(sum sqrt(q))**2``.
    """
    relative, power = np.asarray(noise, dtype=np.float64), COST_POWERS[composition]
    spent = np.sum(relative ** float(-power))
    return float(np.sum(np.exp(log_influence) * relative**2) * spent ** (2 / power))


def heavy_ball_noise(
    step: float, momentum: float, curvatures: ArrayLike, noise_std: float = 1.0
) -> float:
    """``m(alpha, beta)``: expected squared distance from the minimum in the stationary state.

    ``sigma**2 sum_i alpha (1 + beta) / ((1 - beta) h_i (2 + 2 beta - alpha h_i))``, the trace of
    the stationary covariance. The expected excess is at most ``L m`` as printed, and indeed at most
    ``L m / 2`` (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, Thm 3.5).

    Parameters
    ----------
    step, momentum : float
        alpha, below ``2 (1 + beta) / h`` for every h, and beta in [0, 1).
    curvatures : array
        Eigenvalues of the Hessian.
    noise_std : float, default=1.0
        Standard deviation of the noise on each coordinate of the gradient, equal in all steps.

    Raises
    ------
    ValueError
        If the iteration does not converge.
    """
    h = np.asarray(curvatures, dtype=np.float64)
    if not (step > 0 and 0 <= momentum < 1 and (h > 0).all()):
        raise ValueError("heavy_ball_noise: needs step > 0, momentum in [0, 1) and curvatures > 0.")
    if not (step * h < 2 * (1 + momentum)).all():
        raise ValueError(
            f"heavy_ball_noise: a step of {step:g} is not below 2 (1 + momentum) / curvature = "
            f"{2 * (1 + momentum) / h.max():g}; the iteration does not converge."
        )
    terms = step * (1 + momentum) / ((1 - momentum) * h * (2 + 2 * momentum - step * h))
    return float(noise_std**2 * terms.sum())


def heavy_ball_excess(
    curvatures: ArrayLike, step: float, momentum: float, noise_std: ArrayLike, start: ArrayLike
) -> float:
    """Return the expected excess of the noisy heavy ball on a quadratic, exactly.

    Parameters
    ----------
    curvatures : array of shape (n_parameters,)
    step, momentum : float
    noise_std : array of shape (n_steps,)
        Standard deviation of the noise on each coordinate of the gradient.
    start : array of shape (n_parameters,)
        First point, and the one before it, the minimum being 0.
    """
    h = np.asarray(curvatures, dtype=np.float64)
    std = np.asarray(noise_std, dtype=np.float64)
    rest, push = [np.asarray(start, dtype=np.float64)] * 2, [0 * h, 1 + 0 * h]
    for path in (rest, push):
        for _ in std:
            path.append((1 + momentum - step * h) * path[-1] - momentum * path[-2])
    noise = (np.square(push[-2:0:-1]) * std[:, None] ** 2).sum(axis=0)
    return float(h @ (rest[-1] ** 2 + step**2 * noise) / 2)
