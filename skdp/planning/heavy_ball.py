"""Compute the heavy ball's rate and error bounds on quadratics, and parameters that minimise them.

The iteration is ``x_next = x - alpha g(x) + beta (x - x_previous)``. On a quadratic the coordinates
along the eigenvectors of the Hessian are independent; for the eigenvalue h

    x_{t+1} = (1 + beta - alpha h) x_t - beta x_{t-1} - alpha noise_t.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from skdp._numbers import Array
from skdp.planning.acceleration import check_conditions
from skdp.steps import cost_power

# Number of curvatures between mu and L among which bounds take the worst, spaced geometrically.
N_CURVATURES = 41


def heavy_ball_rate(
    step: float, momentum: float, smoothness: float, strong_convexity: float
) -> float:
    """Return the rate rho at which iterates without noise shrink on quadratics, as ``t rho**t``.

    This is the largest modulus of the roots of ``z**2 - (1 + beta - alpha h) z + beta`` for h = mu
    and h = L (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, Thm 3.5; as printed, eq. 26 has the roots
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
    """Return the largest modulus of the two roots, elementwise."""
    middle = (1 + np.asarray(momentum) - np.asarray(step) * np.asarray(curvature)).astype(complex)
    root = np.sqrt(middle**2 - 4 * np.asarray(momentum))
    return np.asarray(np.maximum(np.abs(middle + root), np.abs(middle - root)) / 2)


def responses(
    curvatures: Array, step: ArrayLike, momentum: ArrayLike, n_steps: int
) -> tuple[Array, Array]:
    """Return x_t of two runs without noise, each of shape (n_steps, ...).

    The first run starts at x_0 = x_{-1} = 1; its values are x_1, ..., x_n. The second starts at
    x_0 = 1 and x_{-1} = 0, the response to a push; its values are x_0, ..., x_{n-1}.
    """
    middle = 1 + np.asarray(momentum) - np.asarray(step) * curvatures
    momentum = np.broadcast_to(np.asarray(momentum, dtype=np.float64), middle.shape)
    rest, push = np.empty((2, n_steps, *middle.shape))
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
    """Parameters that `tune_heavy_ball` chose, and the bound that they minimise.

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
    composition: str = "laplace",
    sampling_variance: float = 0.0,
) -> Array:
    """Bound the expected excess after T = 1, ..., ``n_steps`` steps with uniform noise.

    These are the bounds of Thm 3.5 of Kuru, Birbil, Gurbuzbalaban, Yildirim (2022) without its
    unspecified constants: the largest remainder of the start over the curvatures between mu and L,
    plus the largest contribution of the noise of T steps. They are exact for the worst quadratic,
    up to the grid of curvatures, and a guide for other objectives.

    Parameters
    ----------
    n_steps : int
        Largest T.
    step, momentum, smoothness, strong_convexity : float
    initial_excess, variance, composition, sampling_variance
        As for `nesterov_bounds`.
    """
    check_conditions("heavy_ball_bounds", smoothness, strong_convexity)
    facts = smoothness, strong_convexity, initial_excess, variance, composition, sampling_variance
    return np.asarray(_bounds(n_steps, np.array([[step]]), momentum, facts)[:, 0])


def _bounds(
    n_steps: int,
    step: Array,
    momentum: ArrayLike,
    facts: tuple[float, float, float, float, str, float],
) -> Array:
    """Return bounds of shape (n_steps, candidates); ``step`` has shape (candidates, 1).

    ``facts`` are L, mu, the initial excess, the variance and the composition of the noise, and the
    variance of a batch.
    """
    smoothness, strong_convexity, initial_excess, variance, composition, sampled = facts
    h = np.geomspace(strong_convexity, smoothness, N_CURVATURES)
    rest, push = responses(h, step, momentum, n_steps)
    counts = np.arange(1, n_steps + 1, dtype=np.float64)[:, None]
    # Noise variance of each of T steps, in units of that of one step with the whole budget.
    factor = counts ** (2 // cost_power(composition))
    with np.errstate(over="ignore", invalid="ignore"):
        remainder = (rest**2).max(axis=-1)
        noise = (h * np.cumsum(push**2, axis=0)).max(axis=-1) * step[:, 0] ** 2 / 2
        bounds = initial_excess * remainder + (variance * factor + sampled) * noise
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
    composition: str = "laplace",
    sampling_variance: float = 0.0,
) -> HeavyBallChoice:
    """Choose (alpha, beta) and the number of steps that minimise the bound of `heavy_ball_bounds`.

    All arguments are public. With noise the optimum is neither the textbook choice
    ``4/(sqrt(mu) + sqrt(L))**2``, ``((sqrt(kappa) - 1)/(sqrt(kappa) + 1))**2`` nor the choice with
    the best rate.

    Parameters
    ----------
    smoothness, strong_convexity, initial_excess, variance, composition, sampling_variance
        As for `nesterov_bounds`.
    most_steps : int, default=1000
        Largest T to consider.
    n_steps : int or None, default=None
        T; None searches for it.
    step : float or None, default=None
        alpha; None tries 1/L and fractions of it.

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
    facts = smoothness, strong_convexity, initial_excess, variance, composition, sampling_variance
    bounds = _bounds(most_steps if n_steps is None else n_steps, steps, betas, facts)
    if n_steps is not None:
        bounds[:-1] = math.inf
    t, chosen = np.unravel_index(int(bounds.argmin()), bounds.shape)
    alpha, beta = float(steps[chosen, 0]), float(betas[chosen, 0])
    rate = heavy_ball_rate(alpha, beta, smoothness, strong_convexity)
    return HeavyBallChoice(alpha, beta, int(t) + 1, float(bounds[t, chosen]), rate)
