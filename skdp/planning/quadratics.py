"""Noisy gradient descent on quadratics, exactly: influence of the noise, and the excess at the end.

On ``F(w) = 1/2 sum_i h_i w_i**2`` every direction goes its own way: a step of size eta leaves
``(1 - eta h_i)**2`` of its excess and adds ``eta**2 h_i/2`` times the variance of the noise. The
utility bounds put the slowest rate, ``gamma = 1 - 1/kappa``, and the greatest noise in place of
all; what is worked out here is what they bound.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
# What is left where a step goes straight to the minimum: small enough, and has a logarithm.
LEAST_LEFT = 1e-12


def quadratic_influence(
    curvatures: ArrayLike, step: ArrayLike, n_steps: int | None = None
) -> Array:
    """Log q_t of gradient descent on a quadratic: nothing is bounded, the influence is exact.

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
        Needed where ``step`` is one number.

    Returns
    -------
    array of shape (n_steps,)

    Examples
    --------
    The best noise for a quadratic, as a schedule:

    >>> from skdp.planning import quadratic_influence
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
    (1 - eta_u h_i)**2)``: `skdp.planning.utility_bound` is an upper bound on it (times the excess
    at the start) for steps of 1/M, M being the largest curvature and kappa that over the smallest.

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
    >>> from skdp.planning import quadratic_excess
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


def _later(h: Array, sizes: Array) -> Array:
    """Log of what the steps after t leave of each direction: shape (n_steps, n_parameters)."""
    rates = np.log(np.maximum(np.abs(1 - np.outer(sizes, h)), LEAST_LEFT))
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
