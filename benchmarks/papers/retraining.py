"""Measure the influence of each step's noise by retraining on public or synthetic data.

This uses no private rows and costs no privacy: train on data of the same shape, once with the
planned noise and once with more noise in a few steps, and compare the final losses (Hong, Wang,
Zhou 2022, sec. 5).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares
from sklearn.base import clone

from skdp import Privacy, SeededNoise
from skdp._numbers import Array
from skdp.accounting import gaussian_epsilon, gaussian_mu

# Trains with the given factors on the noise of the steps, and a seed; returns the final loss.
Trainer = Callable[[Array, int], float]


@dataclass(frozen=True)
class RetrainedInfluence:
    """Measured influence, and the line ``log q_t = intercept + slope t`` fitted to it.

    Attributes
    ----------
    steps : array of shape (n_probes,)
        Middle of each probed block of steps.
    influence : array of shape (n_probes,)
        Change of the final loss per step and per unit of added noise variance, in units of the
        variance of the unchanged step.
    standard_error : array of shape (n_probes,)
        Standard error of ``influence``.
    n_steps : int
    intercept, slope : float
    """

    steps: Array
    influence: Array
    standard_error: Array
    n_steps: int
    intercept: float
    slope: float


def influence_by_retraining(
    train: Trainer,
    n_steps: int,
    *,
    n_probes: int = 8,
    factor: float = 2.0,
    runs: int = 10,
    random_state: int = 0,
) -> RetrainedInfluence:
    """Measure the influence of the steps' noise and fit an exponential to it.

    Parameters
    ----------
    train : callable (factors, seed) -> float
        Trains on public data with the noise of step t multiplied by ``factors[t-1]``, everything
        else being equal, and returns the final loss. Equal seeds should draw equal noise, or the
        differences are lost in it. `estimator_trainer` makes such a function.
    n_steps : int
    n_probes : int, default=8
        Number of blocks of steps, of about equal length, that are probed.
    factor : float, default=2.0
        Factor on the noise of the probed steps; above 1.
    runs : int, default=10
        Number of seeds over which each probe is averaged; at least 2.
    random_state : int, default=0
        The first seed.

    Returns
    -------
    RetrainedInfluence
    """
    if not (1 <= n_probes <= n_steps and factor > 1 and runs >= 2):
        raise ValueError(
            "influence_by_retraining: n_probes must lie in [1, n_steps], factor be above 1 and "
            f"runs at least 2; got n_probes={n_probes!r}, factor={factor!r}, runs={runs!r}."
        )
    seeds = range(random_state, random_state + runs)
    plain = np.array([train(np.ones(n_steps), seed) for seed in seeds])
    blocks = np.array_split(np.arange(n_steps), n_probes)
    means, errors = np.empty(n_probes), np.empty(n_probes)
    for place, block in enumerate(blocks):
        factors = np.ones(n_steps)
        factors[block] = factor
        changes = np.array([train(factors, seed) for seed in seeds]) - plain
        unit = len(block) * (factor**2 - 1)
        means[place] = changes.mean() / unit
        errors[place] = changes.std(ddof=1) / math.sqrt(runs) / unit
    if not (means > 0).any():
        raise ValueError(
            "influence_by_retraining: more noise made the final loss no worse at any step; take "
            "more runs, a larger factor, or a smaller budget."
        )
    intercept, slope = _fit(blocks, means, errors)
    middles = np.array([block.mean() + 1 for block in blocks])
    return RetrainedInfluence(middles, means, errors, n_steps, intercept, slope)


def _fit(blocks: list[NDArray[np.intp]], means: Array, errors: Array) -> tuple[float, float]:
    """Fit the line to the blocks' mean influence by least squares, weighted by their errors."""
    if len(blocks) == 1:
        return float(np.log(means[0])), 0.0
    top = means.max()
    weights = 1 / np.maximum(errors / top, 1e-3)
    last = blocks[-1][-1]

    def misfit(parameters: Array) -> Array:
        height, slope = parameters
        fitted = [np.exp(height + slope * (block - last)).mean() for block in blocks]
        return np.asarray(weights * (np.array(fitted) - means / top))

    length = last + 1
    found = min(
        (
            least_squares(
                misfit,
                [0.0, start / length],
                bounds=([-20, -20 / length], [20, 20 * len(blocks) / length]),
            )
            for start in (-2.0, 0.0, 2.0, 8.0)
        ),
        key=lambda result: float(result.cost),
    )
    height, slope = found.x
    return float(height + math.log(top) - slope * (last + 1)), float(slope)


def estimator_trainer(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    n_steps: int,
    loss: Callable[[Any, Any, Any], float],
    noise: ArrayLike | None = None,
) -> Trainer:
    """Return a function that trains an estimator, for `influence_by_retraining`.

    The rows must be public or synthetic, as no accountant covers the trained models together.
    Changing the noise of some steps changes their cost, so each training gets the epsilon that
    leaves the noise of the other steps unchanged.

    Parameters
    ----------
    estimator : estimator of this library
        An estimator with full batches and Gaussian noise. ``max_iter`` and ``noise_schedule`` are
        set on its ``solver`` if that is an object, else on the estimator.
    X, y : arrays
        Public or synthetic rows.
    n_steps : int
    loss : callable (fitted estimator, X, y) -> float
    noise : array of shape (n_steps,) or None, default=None
        Relative noise to start from; None is uniform.
    """
    base = np.ones(n_steps) if noise is None else np.asarray(noise, dtype=np.float64)
    place = "" if isinstance(estimator.get_params()["solver"], str) else "solver__"
    mu = gaussian_mu(estimator.epsilon, estimator.delta)
    privacy = Privacy() if estimator.privacy is None else estimator.privacy

    def train(factors: Array, seed: int) -> float:
        changed = base * factors
        share = float(np.sum(changed**-2.0) / np.sum(base**-2.0))
        model = clone(estimator).set_params(
            **{
                "epsilon": gaussian_epsilon(mu * math.sqrt(share), estimator.delta),
                "privacy": clone(privacy).set_params(noise=SeededNoise(seed)),
                place + "max_iter": n_steps,
                place + "noise_schedule": changed,
            }
        )
        return float(loss(model.fit(X, y), X, y))

    return train
