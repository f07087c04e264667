"""The heavy ball on quadratics: its rate, what noise leaves of it, and (alpha, beta) by a bound.

The iteration is ``x_next = x - alpha g(x) + beta (x - x_previous)``. On a quadratic every
eigenvector of the Hessian, with eigenvalue h, goes its own way:

    x_{t+1} = (1 + beta - alpha h) x_t - beta x_{t-1} - alpha noise_t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.planning.acceleration import check_conditions

Array = NDArray[np.float64]
CURVATURES = 41  # between mu and L, on which the worst case over spectra is sought


def heavy_ball_rate(
    step: float, momentum: float, smoothness: float, strong_convexity: float
) -> float:
    """Rate rho of convergence on quadratics, noise apart: iterates shrink as ``t rho**t``.

    The largest modulus of the roots of ``z**2 - (1 + beta - alpha h) z + beta`` for h = mu and
    h = L (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, Thm 3.5; as printed, eq. 26 has the roots
    of Nesterov's method, while the proof has these).

    Parameters
    ----------
    step, momentum : float
        alpha > 0 and beta in [0, 1).
    smoothness, strong_convexity : float
        L and mu.

    Examples
    --------
    >>> from skdp.planning import heavy_ball_rate
    >>> root = 100**0.5
    >>> step, beta = 4 / (1 + root) ** 2, ((root - 1) / (root + 1)) ** 2
    >>> bool(abs(heavy_ball_rate(step, beta, 100.0, 1.0) - (root - 1) / (root + 1)) < 1e-7)
    True
    """
    check_conditions("heavy_ball_rate", smoothness, strong_convexity)
    return float(_roots(step, momentum, np.array([strong_convexity, smoothness])).max())


def _roots(step: ArrayLike, momentum: ArrayLike, curvature: ArrayLike) -> Array:
    """Largest modulus of the two roots, elementwise."""
    middle = (1 + np.asarray(momentum) - np.asarray(step) * np.asarray(curvature)).astype(complex)
    root = np.sqrt(middle**2 - 4 * np.asarray(momentum))
    return np.asarray(np.maximum(np.abs(middle + root), np.abs(middle - root)) / 2)


def heavy_ball_noise(
    step: float, momentum: float, curvatures: ArrayLike, noise_std: float = 1.0
) -> float:
    """``m(alpha, beta)``: expected squared distance from the minimum that noise keeps up.

    ``sigma**2 sum_i alpha (1 + beta) / ((1 - beta) h_i (2 + 2 beta - alpha h_i))``, the trace of
    the stationary covariance; the excess that it makes is at most ``L m``, as printed, and in truth
    at most ``L m / 2`` (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, Thm 3.5).

    Parameters
    ----------
    step, momentum : float
        alpha, below ``2 (1 + beta) / h`` for every h, and beta in [0, 1).
    curvatures : array
        Eigenvalues of the Hessian.
    noise_std : float, default=1.0
        Of the noise on each coordinate of the gradient, the same at every step.

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
        Of the noise on each coordinate of the gradient.
    start : array of shape (n_parameters,)
        First point, and the one before it, the minimum being 0.
    """
    h = np.asarray(curvatures, dtype=np.float64)
    std = np.asarray(noise_std, dtype=np.float64)
    rest, response = _responses(h, step, momentum, len(std))
    kept = rest[-1] ** 2 * np.asarray(start, dtype=np.float64) ** 2
    noise = (response[::-1] ** 2 * std[:, None] ** 2).sum(axis=0)
    return float(h @ (kept + step**2 * noise) / 2)


def _responses(
    curvatures: Array, step: ArrayLike, momentum: ArrayLike, n_steps: int
) -> tuple[Array, Array]:
    """Return what is left of a start at (1, 1) after 1..n steps, of a push after 0..n-1."""
    middle = 1 + np.asarray(momentum) - np.asarray(step) * curvatures
    momentum = np.broadcast_to(np.asarray(momentum, dtype=np.float64), middle.shape)
    rest = np.empty((n_steps, *middle.shape))
    push = np.empty_like(rest)
    before = now = np.ones(middle.shape)
    earlier, pushed = np.zeros(middle.shape), np.ones(middle.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(n_steps):
            before, now = now, middle * now - momentum * before
            rest[t], push[t] = now, pushed
            earlier, pushed = pushed, middle * pushed - momentum * earlier
    return rest, push


@dataclass(frozen=True)
class HeavyBallChoice:
    """What `tune_heavy_ball` found.

    Attributes
    ----------
    step, momentum : float
        alpha and beta.
    n_steps : int
        T.
    bound : float
        Bound on the expected excess.
    rate : float
        rho of `heavy_ball_rate`.
    """

    step: float
    momentum: float
    n_steps: int
    bound: float
    rate: float


def heavy_ball_bounds(
    n_steps: int,
    step: float,
    momentum: float,
    smoothness: float,
    strong_convexity: float,
    initial_excess: float,
    variance: float,
    law: str = "laplace",
) -> Array:
    """Bounds on the expected excess after T = 1, ..., ``n_steps`` steps with uniform noise.

    Those of Thm 3.5 of Kuru, Birbil, Gurbuzbalaban, Yildirim (2022) without its unspecified
    constants: the worst over curvatures between mu and L of what is left of the start, plus the
    worst of what noise adds in T steps. Exact for the worst quadratic, up to the grid on which it
    is sought; a guide for other objectives.

    Parameters
    ----------
    n_steps : int
        Largest T.
    step, momentum, smoothness, strong_convexity : float
    initial_excess, variance, law
        As for `nesterov_bounds`.
    """
    check_conditions("heavy_ball_bounds", smoothness, strong_convexity)
    steps = np.array([[step]])
    bounds = _bounds(
        n_steps, steps, momentum, smoothness, strong_convexity, initial_excess, variance, law
    )
    return np.asarray(bounds[:, 0])


def _bounds(
    n_steps: int,
    step: Array,
    momentum: ArrayLike,
    smoothness: float,
    strong_convexity: float,
    initial_excess: float,
    variance: float,
    law: str,
) -> Array:
    """Bounds of shape (n_steps, candidates); ``step`` has shape (candidates, 1)."""
    h = np.geomspace(strong_convexity, smoothness, CURVATURES)
    rest, push = _responses(h, step, momentum, n_steps)
    counts = np.arange(1, n_steps + 1, dtype=np.float64)[:, None]
    price = counts**2 if law == "laplace" else counts
    with np.errstate(over="ignore", invalid="ignore"):
        kept = (rest**2).max(axis=-1)
        noise = (h * np.cumsum(push**2, axis=0)).max(axis=-1) * step[:, 0] ** 2 / 2
        bounds = initial_excess * kept + variance * price * noise
    return np.where(np.isfinite(bounds), bounds, math.inf)


def tune_heavy_ball(
    smoothness: float,
    strong_convexity: float,
    initial_excess: float,
    variance: float,
    *,
    most_steps: int = 1000,
    n_steps: int | None = None,
    step: float | None = None,
    law: str = "laplace",
) -> HeavyBallChoice:
    """Pick (alpha, beta), and the number of steps, by the bound of `heavy_ball_bounds`.

    No data are touched: what goes in is public. With noise the best is neither the textbook choice
    ``4/(sqrt(mu) + sqrt(L))**2``, ``((sqrt(kappa) - 1)/(sqrt(kappa) + 1))**2`` nor the one of the
    best rate.

    Parameters
    ----------
    smoothness, strong_convexity, initial_excess, variance, law
        As for `nesterov_bounds`.
    most_steps : int, default=1000
        Largest T to consider.
    n_steps : int or None, default=None
        T, if it is fixed.
    step : float or None, default=None
        alpha, if it is fixed; else 1/L and fractions of it are tried.

    Examples
    --------
    >>> from skdp.planning import tune_heavy_ball
    >>> quiet = tune_heavy_ball(1.0, 0.01, initial_excess=1.0, variance=1e-8)
    >>> noisy = tune_heavy_ball(1.0, 0.01, initial_excess=1.0, variance=1e-4)
    >>> quiet.n_steps > noisy.n_steps
    True
    """
    check_conditions("tune_heavy_ball", smoothness, strong_convexity)
    fractions = 2.0 ** -np.arange(0, 6) / smoothness if step is None else np.array([step])
    momenta = 1 - np.geomspace(1.0, 0.01, 21)
    steps, betas = (grid.ravel()[:, None] for grid in np.meshgrid(fractions, momenta))
    most = most_steps if n_steps is None else n_steps
    bounds = _bounds(
        most, steps, betas, smoothness, strong_convexity, initial_excess, variance, law
    )
    if n_steps is not None:
        bounds[:-1] = math.inf
    t, chosen = np.unravel_index(int(bounds.argmin()), bounds.shape)
    alpha, beta = float(steps[chosen, 0]), float(betas[chosen, 0])
    rate = heavy_ball_rate(alpha, beta, smoothness, strong_convexity)
    return HeavyBallChoice(alpha, beta, int(t) + 1, float(bounds[t, chosen]), rate)
