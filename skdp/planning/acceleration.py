"""Bound the error of Nesterov's method, plain and in stages, after a number of steps."""

import math

import numpy as np

from skdp._numbers import Array
from skdp.planning.bounds import LEAST_CONTRACTION
from skdp.steps import cost_power, stages


def check_conditions(who: str, smoothness: float, strong_convexity: float) -> None:
    """Raise ValueError unless 0 < ``strong_convexity`` <= ``smoothness`` < inf."""
    if not 0 < strong_convexity <= smoothness < math.inf:
        raise ValueError(
            f"{who}: needs 0 < strong_convexity <= smoothness; got {strong_convexity!r} and "
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

    Examples
    --------
    >>> from skdp.planning import sampling_variance
    >>> sampling_variance(1.0, 50, 101), sampling_variance(1.0, 101, 101)
    (0.0102, 0.0)
    """
    if not 1 <= batch_size <= n_rows:
        raise ValueError(
            f"sampling_variance: needs 1 <= batch_size <= n_rows; got {batch_size!r}, {n_rows!r}."
        )
    if batch_size == n_rows:
        return 0.0
    return clip_norm**2 / batch_size * (n_rows - batch_size) / (n_rows - 1)


def accelerated_bounds(
    sizes: Array,
    stage: Array,
    smoothness: float,
    strong_convexity: float,
    initial_excess: float,
    variance: float,
    noise_schedule: str = "optimal",
    composition: str = "laplace",
    sampling_variance: float = 0.0,
) -> Array:
    """Bound the excess after 1, ..., n steps of the given sizes; see `nesterov_bounds`."""
    if noise_schedule not in ("optimal", "uniform"):
        raise ValueError(f"noise_schedule must be 'optimal' or 'uniform'; got {noise_schedule!r}.")
    # T steps of equal cost have T**(2/p) times the variance of one, costs being 1/noise**p; the
    # effect of optimal noise is (sum of influence**(1/power))**power.
    p = cost_power(composition)
    steps_power, power = 2 // p, (2 + p) // p
    shrink = 1 - np.sqrt(np.minimum(sizes * strong_convexity, 1.0))
    # log a_{T,0}, and log a_{T,t} - log a_{T,0}
    start = np.cumsum(np.log(np.maximum(shrink, LEAST_CONTRACTION)))
    start = start + (stage - stage[0]) * math.log(2)
    weights = np.log(sizes) + np.log1p(sizes * smoothness) - start
    if noise_schedule == "optimal":
        effect = power * np.logaddexp.accumulate(weights / power)
    else:
        counts = np.arange(1, len(sizes) + 1)
        effect = np.logaddexp.accumulate(weights) + steps_power * np.log(counts)
    with np.errstate(over="ignore"):
        bounds = np.exp(start) * initial_excess + variance / 2 * np.exp(start + effect)
        if sampling_variance > 0:
            equally = np.exp(start + np.logaddexp.accumulate(weights))
            bounds = bounds + sampling_variance / 2 * equally
    return np.asarray(bounds)


def nesterov_bounds(
    n_steps: int,
    smoothness: float,
    strong_convexity: float,
    initial_excess: float,
    variance: float,
    *,
    step: float = 1.0,
    noise_schedule: str = "optimal",
    composition: str = "laplace",
    sampling_variance: float = 0.0,
) -> Array:
    """Bound the expected excess after T = 1, ..., ``n_steps`` steps, each with noise for its T.

    ``a_{T,0} E_0 + (variance/2) sum_t a_{T,t} s_t**2``, with noise s_t that is scaled to the
    budget and either minimises the bound or is uniform; Laplace noise with delta = 0 gives
    ``(d S**2 / (n epsilon)**2) (sum_t a_{T,t}**(1/3))**3`` for the second term (Kuru, Birbil,
    Gurbuzbalaban, Yildirim 2022, eq. 29 and 32).

    Parameters
    ----------
    n_steps : int
        Largest T.
    smoothness, strong_convexity : float
        L and mu.
    initial_excess : float
        E_0, a *public* guess. The recursion behind the bound is about ``F(x_t) - F*`` plus
        ``mu/2`` times a squared distance, so E_0 is the initial excess plus
        ``mu/2 |x_0 - x*|**2``, which is at most twice the excess; the paper prints the excess.
    variance : float
        Expected squared length of the noise on the mean gradient if a single step took the whole
        budget: ``2 d S**2 / (n epsilon)**2`` for Laplace, ``d S**2 / (n mu_G)**2`` for Gaussian
        noise, S being the sensitivity.
    step : float, default=1.0
        Step size in units of 1/L, in (0, 1].
    noise_schedule : {"optimal", "uniform"}
    composition : {"laplace", "gaussian"}
        Rule by which costs add up: epsilons for "laplace", squares of mu for "gaussian".
    sampling_variance : float, default=0.0
        Expected squared length of the sampling error of a batch in every step; see
        `sampling_variance`.

    Returns
    -------
    array of shape (n_steps,)

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
    facts = smoothness, strong_convexity, initial_excess, variance, noise_schedule, composition
    sizes = np.full(n_steps, step / smoothness)
    return accelerated_bounds(sizes, np.ones(n_steps), *facts, sampling_variance)


def multistage_sizes(
    n_steps: int, smoothness: float, kappa: float, step: float, first_stage: int, p: float
) -> Array:
    """Return the step sizes of multistage acceleration.

    They are ``step/L`` in the first stage, and ``step/(4**k L)`` in stage k >= 2.
    """
    stage = stages(n_steps, kappa, first_stage, p)
    return np.asarray(step / smoothness * np.where(stage == 1, 1.0, 4.0**-stage))


def multistage_bounds(
    n_steps: int,
    smoothness: float,
    strong_convexity: float,
    initial_excess: float,
    variance: float,
    *,
    step: float = 1.0,
    first_stage: int = 20,
    p: float = 1.0,
    noise_schedule: str = "optimal",
    composition: str = "laplace",
    sampling_variance: float = 0.0,
) -> Array:
    """Bound the excess of multistage acceleration (Kuru et al. 2022, eq. 34).

    Parameters
    ----------
    n_steps, smoothness, strong_convexity, initial_excess, variance, step, noise_schedule, \
composition, sampling_variance
        As for `nesterov_bounds`.
    first_stage : int, default=20
        Steps of the first stage.
    p : float, default=1.0
        Length of the later stages; see `skdp.steps.MultistageNoise`.
    """
    check_conditions("multistage_bounds", smoothness, strong_convexity)
    kappa = smoothness / strong_convexity
    sizes = multistage_sizes(n_steps, smoothness, kappa, step, first_stage, p)
    stage = stages(n_steps, kappa, first_stage, p).astype(np.float64)
    facts = smoothness, strong_convexity, initial_excess, variance, noise_schedule, composition
    return accelerated_bounds(sizes, stage, *facts, sampling_variance)
