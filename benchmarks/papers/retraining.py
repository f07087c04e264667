"""Measure the influence of each step's noise by retraining on public or synthetic data.

This uses no private rows and costs no privacy: train on data of the same shape, once with the
planned noise and once with more noise in a few steps, and compare the final losses (Hong, Wang,
Zhou 2022, sec. 5).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from skdp._numbers import Array

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
        differences are lost in it.
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
