"""Noisy descent on quadratics, in closed form: the influence of the noise and the final excess.

On ``F(w) = 1/2 sum_i h_i w_i**2`` the coordinates are independent: a step of gradient descent of
size eta leaves ``(1 - eta h_i)**2`` of the excess in coordinate i and adds ``eta**2 h_i/2`` times
the variance of the noise. Utility bounds assume the slowest rate, ``gamma = 1 - 1/kappa``, and the
greatest noise for all coordinates; the functions here compute the quantities that they bound.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp._numbers import Array
from skdp.planning.acceleration import responses
from skdp.planning.bounds import LEAST_CONTRACTION


def quadratic_influence(
    curvatures: ArrayLike, step: ArrayLike, n_steps: int | None = None
) -> Array:
    """Return the exact log q_t of gradient descent on a quadratic.

    Noise of standard deviation s on each coordinate of the gradient of
    ``1/2 sum_i h_i w_i**2`` at step t adds ``q_t s**2`` to the expected excess at the end,
    ``q_t = eta_t**2/2 sum_i h_i prod_{s > t} (1 - eta_s h_i)**2``.

    Parameters
    ----------
    curvatures : array of shape (n_parameters,)
        h, the eigenvalues of the Hessian; positive, or 0 where the loss is flat.
    step : float or array of shape (n_steps,)
        Step sizes eta_t.
    n_steps : int or None, default=None
        Required if ``step`` is one number.

    Returns
    -------
    array of shape (n_steps,)

    Examples
    --------
    The optimal noise for a quadratic, as a schedule:

    >>> from benchmarks.papers.theory import quadratic_influence
    >>> from skdp.steps import CustomNoise
    >>> log_influence = quadratic_influence([1.0, 0.1], 0.5, n_steps=20)
    >>> schedule = CustomNoise(log_influence, logarithmic=True)
    """
    h, sizes = _curvatures(curvatures), _sizes(step, n_steps)
    weights = np.log(h[h > 0])
    later = _later(h[h > 0], sizes)
    return np.asarray(
        np.logaddexp.reduce(2 * later + weights, axis=1) + 2 * np.log(sizes) - math.log(2)
    )


def quadratic_excess(
    curvatures: ArrayLike, step: ArrayLike, noise_std: ArrayLike, start: ArrayLike
) -> float:
    """Return the expected excess of noisy gradient descent on a quadratic, exactly.

    ``1/2 sum_i h_i (w_i**2 prod_t (1 - eta_t h_i)**2 + sum_t s_t**2 eta_t**2 prod_{u > t}
    (1 - eta_u h_i)**2)``. For steps of 1/M it is at most `skdp.planning.utility_bound` times the
    excess at the start, with M the largest curvature and kappa the ratio of M to the smallest.

    Parameters
    ----------
    curvatures : array of shape (n_parameters,)
        h, the eigenvalues of the Hessian; not negative.
    step : float or array of shape (n_steps,)
        Step sizes eta_t.
    noise_std : array of shape (n_steps,)
        Standard deviation of the noise on each coordinate of the gradient:
        ``clip_norm * noise_multiplier / n_rows``.
    start : array of shape (n_parameters,)
        First point in the directions of the curvatures, the minimum being 0.

    Returns
    -------
    float

    Examples
    --------
    Two schedules that cost the same, on curvatures from 1 to 10:

    >>> import numpy as np
    >>> from benchmarks.papers.theory import quadratic_excess
    >>> from skdp.steps import ExponentialNoise, UniformNoise, noise_multipliers
    >>> h = np.geomspace(1, 10, 20)
    >>> for schedule in (UniformNoise(), ExponentialNoise(0.9)):
    ...     noise = 0.01 * noise_multipliers(schedule.log_influence(60), budget=0.5)
    ...     print(round(quadratic_excess(h, 1 / 10, noise, np.ones(20)), 3))
    0.008
    0.003
    """
    h, std = _curvatures(curvatures), np.asarray(noise_std, dtype=np.float64)
    sizes = _sizes(step, len(std))
    left = np.prod((1 - np.outer(sizes, h)) ** 2, axis=0)
    distance = left * np.asarray(start, dtype=np.float64) ** 2
    noise = np.exp(2 * _later(h, sizes)) @ h / 2 * sizes**2
    return float(h @ distance / 2 + noise @ std**2)


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
    rest, response = responses(h, step, momentum, len(std))
    kept = rest[-1] ** 2 * np.asarray(start, dtype=np.float64) ** 2
    noise = (response[::-1] ** 2 * std[:, None] ** 2).sum(axis=0)
    return float(h @ (kept + step**2 * noise) / 2)


def _later(h: Array, sizes: Array) -> Array:
    """Log of the factor by which the steps after t shrink each coordinate: (n_steps, d)."""
    rates = np.log(np.maximum(np.abs(1 - np.outer(sizes, h)), LEAST_CONTRACTION))
    return np.asarray(np.cumsum(rates[::-1], axis=0)[::-1] - rates)


def _curvatures(curvatures: ArrayLike) -> Array:
    h = np.asarray(curvatures, dtype=np.float64)
    if h.ndim != 1 or not ((h >= 0) & np.isfinite(h)).all() or not (h > 0).any():
        raise ValueError(
            f"curvatures must be finite numbers, not negative and not all 0; got {curvatures!r}."
        )
    return h


def _sizes(step: ArrayLike, n_steps: int | None) -> Array:
    sizes = np.asarray(step, dtype=np.float64)
    if sizes.ndim == 0 and n_steps is not None:
        sizes = np.full(n_steps, float(sizes))
    if sizes.ndim != 1 or (n_steps is not None and len(sizes) != n_steps):
        raise ValueError(f"step must be one number or one for each of n_steps={n_steps!r} steps.")
    if not ((sizes > 0) & np.isfinite(sizes)).all():
        raise ValueError(f"step must be positive and finite; got {step!r}.")
    return sizes
