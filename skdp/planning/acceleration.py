"""Bound the error of accelerated methods: Nesterov's, plain and in stages, and the heavy ball.

The heavy ball's iteration is ``x_next = x - alpha g(x) + beta (x - x_previous)``. On a quadratic
the coordinates along the eigenvectors of the Hessian are independent, for the eigenvalue h

    x_{t+1} = (1 + beta - alpha h) x_t - beta x_{t-1} - alpha noise_t.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp import steps
from skdp._numbers import AnyArray, Array
from skdp.planning.bounds import LEAST_CONTRACTION


def check_conditions(who: str, smoothness: float, strong_convexity: float) -> None:
    """Raise ValueError unless 0 < ``strong_convexity`` <= ``smoothness`` < inf."""
    if not 0 < strong_convexity <= smoothness < math.inf:
        raise ValueError(
            f"{who}: needs 0 < strong_convexity <= smoothness, got {strong_convexity!r} and "
            f"{smoothness!r}."
        )


def sampling_variance(clip_norm: float, batch_size: int, n_rows: int) -> float:
    """Bound the squared length by which the mean over a random batch misses that over all rows.

    ``S**2 / (4 m) (n - m) / (n - 1)`` with ``S = 2 clip_norm`` for a batch of m out of n rows
    without replacement (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, Prop. 3.3). Independent
    draws with rate ``m / n`` have at most ``clip_norm**2 (1 - m / n) / m``, which is less.

    Parameters
    ----------
    clip_norm : float
        Bound of one record's gradient, in L1 or L2 norm.
    batch_size, n_rows : int
        m and n.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        Unless 1 <= ``batch_size`` <= ``n_rows``.

    Examples
    --------
    >>> from skdp.planning import sampling_variance
    >>> sampling_variance(1.0, 50, 101), sampling_variance(1.0, 101, 101)
    (0.0102, 0.0)
    """
    if not 1 <= batch_size <= n_rows:
        raise ValueError(
            f"sampling_variance: needs 1 <= batch_size <= n_rows, got {batch_size!r}, {n_rows!r}."
        )
    if batch_size == n_rows:
        return 0.0
    return clip_norm**2 / batch_size * (n_rows - batch_size) / (n_rows - 1)


def nesterov_bounds(
    n_steps: int,
    smoothness: float,
    strong_convexity: float,
    initial_excess: float,
    variance: float,
    *,
    step: float = 1.0,
    stages: tuple[int, float] | None = None,
    noise_schedule: str = "optimal",
    composition: str = "laplace",
    sampling_variance: float = 0.0,
) -> Array:
    """Bound the expected excess after T = 1, ..., ``n_steps`` steps, each with noise for its T.

    ``a_{T,0} E_0 + (variance/2) sum_t a_{T,t} s_t**2``, with noise s_t that is scaled to the budget
    and either minimises the bound or is uniform. Laplace noise with delta = 0 gives ``(d S**2 / (n
    epsilon)**2) (sum_t a_{T,t}**(1/3))**3`` for the second term (Kuru, Birbil, Gurbuzbalaban,
    Yildirim 2022, eq. 29 and 32, in stages eq. 34).

    Parameters
    ----------
    n_steps : int
        Largest T.
    smoothness, strong_convexity : float
        L and mu.
    initial_excess : float
        E_0, a *public* guess. The recursion behind the bound is about ``F(x_t) - F*`` plus ``mu/2``
        times a squared distance, so E_0 is the initial excess plus ``mu/2 |x_0 - x*|**2``, which is
        at most twice the excess. The paper prints the excess.
    variance : float
        Expected squared length of the noise on the mean gradient if a single step used the whole
        budget: ``2 d S**2 / (n epsilon)**2`` for Laplace, ``d S**2 / (n mu_G)**2`` for Gaussian
        noise, S being the sensitivity.
    step : float, default=1.0
        Step size in units of 1/L, in (0, 1].
    stages : tuple (first_stage, p) or None, default=None
        Steps of the first stage, and the length of the later ones, as in
        `skdp.solvers.MultistageNesterov`. None is a single stage.
    noise_schedule : {"optimal", "uniform"}
    composition : {"laplace", "gaussian"}
        Rule by which costs add up: epsilons for "laplace", squares of mu for "gaussian".
    sampling_variance : float, default=0.0
        Expected squared length of the sampling error of a batch in every step. See
        `sampling_variance`.

    Returns
    -------
    array of shape (n_steps,)

    Raises
    ------
    ValueError
        Unless 0 < ``strong_convexity`` <= ``smoothness``, or if a word is unknown.

    Examples
    --------
    >>> from skdp.planning import nesterov_bounds
    >>> best = nesterov_bounds(1000, 1.0, 0.01, initial_excess=1.0, variance=1e-6)
    >>> uniform = nesterov_bounds(1000, 1.0, 0.01, 1.0, 1e-6, noise_schedule="uniform")
    >>> int(best.argmin()) + 1, int(uniform.argmin()) + 1
    (57, 45)
    >>> bool(best.min() < uniform.min())
    True
    """
    check_conditions("nesterov_bounds", smoothness, strong_convexity)
    if noise_schedule not in ("optimal", "uniform"):
        raise ValueError(f"noise_schedule must be 'optimal' or 'uniform', got {noise_schedule!r}.")
    facts = smoothness, strong_convexity, step, stages
    start, weights = nesterov_influence(n_steps, *facts)
    # T steps of equal cost have T**(2/p) times the variance of one, costs being 1/noise**p. The
    # effect of optimal noise is (sum of influence**(1/power))**power.
    p = steps.cost_power(composition)
    steps_power, power = 2 // p, (2 + p) // p
    equally = np.logaddexp.accumulate(weights)
    if noise_schedule == "optimal":
        effect = power * np.logaddexp.accumulate(weights / power)
    else:
        effect = equally + steps_power * np.log(np.arange(1, n_steps + 1))
    with np.errstate(over="ignore"):
        bounds = np.exp(start) * initial_excess + variance / 2 * np.exp(start + effect)
        if sampling_variance > 0:
            bounds = bounds + sampling_variance / 2 * np.exp(start + equally)
    return np.asarray(bounds)


def nesterov_influence(
    n_steps: int,
    smoothness: float,
    strong_convexity: float,
    step: float = 1.0,
    stages: tuple[int, float] | None = None,
) -> tuple[Array, Array]:
    """Return the logarithms of the contributions of the start and of each step's noise at the end.

    Parameters are as for `nesterov_bounds`.

    Returns
    -------
    two arrays of shape (n_steps,)
        log a_{T,0} for each number T of steps, and ``log a_{T,t} - log a_{T,0}`` for each step t,
        which is the same for all T (Kuru et al. 2022, eqs. 29 and 34).
    """
    stage = np.ones(n_steps)
    if stages is not None:
        stage = steps.stages(n_steps, smoothness / strong_convexity, *stages).astype(np.float64)
    sizes = step / smoothness * sizes_of_stages(stage)
    shrink = 1 - np.sqrt(np.minimum(sizes * strong_convexity, 1.0))
    start = np.cumsum(np.log(np.maximum(shrink, LEAST_CONTRACTION)))
    start = start + (stage - stage[0]) * math.log(2)
    return start, np.log(sizes) + np.log1p(sizes * smoothness) - start


def sizes_of_stages(stage: AnyArray) -> AnyArray:
    """Return the sizes of steps by their stage, in units of the first: ``4**-k`` for k >= 2."""
    return np.where(stage == 1, 1.0, 4.0**-stage)


# ---------------------------------------------------------------- the heavy ball

# Number of curvatures between mu and L among which bounds take the worst, spaced geometrically.
N_CURVATURES = 41


def heavy_ball_rate(
    step: float, momentum: float, smoothness: float, strong_convexity: float
) -> float:
    """Return the rate rho at which iterates without noise shrink on quadratics, as ``t rho**t``.

    This is the largest modulus of the roots of ``z**2 - (1 + beta - alpha h) z + beta`` for h = mu
    and h = L (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, Thm 3.5, as printed, eq. 26 has the roots
    of Nesterov's method, while the proof has these).

    Parameters
    ----------
    step, momentum : float
        alpha > 0 and beta in [0, 1).
    smoothness, strong_convexity : float
        L and mu.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        Unless 0 < ``strong_convexity`` <= ``smoothness``.

    Examples
    --------
    >>> from skdp.planning import heavy_ball_rate
    >>> root = 100**0.5
    >>> step, beta = 4 / (1 + root) ** 2, ((root - 1) / (root + 1)) ** 2
    >>> bool(abs(heavy_ball_rate(step, beta, 100.0, 1.0) - (root - 1) / (root + 1)) < 1e-7)
    True
    """
    check_conditions("heavy_ball_rate", smoothness, strong_convexity)
    middle = 1 + momentum - step * np.array([strong_convexity, smoothness], dtype=complex)
    root = np.sqrt(middle**2 - 4 * momentum)
    return float(np.maximum(np.abs(middle + root), np.abs(middle - root)).max() / 2)


def responses(
    curvatures: Array, step: float, momentum: ArrayLike, n_steps: int
) -> tuple[Array, Array]:
    """Return x_t of two runs without noise, each of shape (n_steps, ...).

    The first run starts at x_0 = x_{-1} = 1. Its values are x_1, ..., x_n. The second starts at x_0
    = 1 and x_{-1} = 0, the response to a push. Its values are x_0, ..., x_{n-1}.
    """
    middle = 1 + np.asarray(momentum) - step * curvatures
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


def heavy_ball_bounds(
    n_steps: int,
    step: float,
    momentum: ArrayLike,
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
    up to the grid of curvatures, and a guide for other objectives. With noise the least of them is
    at neither the textbook's choice of momentum nor the one of the best rate.

    Parameters
    ----------
    n_steps : int
        Largest T.
    step : float
    momentum : float or array
    smoothness, strong_convexity : float
    initial_excess, variance, composition, sampling_variance
        As for `nesterov_bounds`.

    Returns
    -------
    array of shape (n_steps, ...), the latter as ``momentum``

    Raises
    ------
    ValueError
        Unless 0 < ``strong_convexity`` <= ``smoothness``.
    """
    check_conditions("heavy_ball_bounds", smoothness, strong_convexity)
    h = np.geomspace(strong_convexity, smoothness, N_CURVATURES)
    rest, push = responses(h, step, np.asarray(momentum)[..., None], n_steps)
    # Noise variance of each of T steps, in units of that of one step with the whole budget.
    counts = np.arange(1, n_steps + 1, dtype=np.float64).reshape(-1, *[1] * np.ndim(momentum))
    factor = counts ** (2 // steps.cost_power(composition))
    with np.errstate(over="ignore", invalid="ignore"):
        remainder = (rest**2).max(axis=-1)
        noise = (h * np.cumsum(push**2, axis=0)).max(axis=-1) * step**2 / 2
        bounds = initial_excess * remainder + (variance * factor + sampling_variance) * noise
    return np.where(np.isfinite(bounds), bounds, math.inf)
