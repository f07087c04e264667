"""Means of working weights, of normal margins where nothing was released about others."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._numbers import Array
from skdp.objective import Loss
from skdp.oracle import Oracle
from skdp.solvers.defaults import ROUNDING


@dataclass(frozen=True, eq=False)
class MeanWeight:
    """Mean over the rows of the derivative of a mean in its margin, at the debiased parameter.

    Attributes
    ----------
    value : float
    slope : array of shape (n_parameters,)
        Its derivative in the parameter, as if margins were normal.
    privacy_variance, variance : float
        At a parameter that is given: due to noise, and over rows, too.
    """

    value: float
    slope: Array
    privacy_variance: float
    variance: float


def weighted_means(loss: Loss, gram: Array, coef: Array) -> tuple[float, Array]:
    """Return the mean working weight, and the columns' means with these weights.

    Where the weights depend on the margins, for normal ones.
    """
    means, slopes = gram[-1, :-1], coef[:-1]
    if loss.quadratic:
        return 1.0, means
    along = gram[:-1, :-1] @ slopes - means * (means @ slopes)
    size = math.sqrt(max(float(slopes @ along), 0.0))
    nodes, shares = np.polynomial.hermite_e.hermegauss(32)
    margins = (coef[-1] + means @ slopes + size * nodes)[:, None]
    weights = np.maximum(loss.working_weight(margins, np.zeros_like(margins))[:, 0], ROUNDING)
    weights *= shares / shares.sum()
    weight = float(weights.sum())
    # The noise of the matrix may leave no variance at all.
    moved = float(weights @ nodes) / (weight * size) if size > ROUNDING else 0.0
    return weight, means + moved * along


def mean_weight_at(
    oracle: Oracle, gram: Array, point: Array, coef: Array, answer: float, std: float
) -> MeanWeight:
    """Return the mean weight at ``coef`` by an answer about ``point``, which is not far from it.

    Its derivative leads from one to the other, and gives the share of the coefficients' error in
    its own: both are small, so that normal margins will do for it. The variance over rows of a
    number from 0 to W with the mean m is at most ``m (W - m)`` (Bhatia, Davis 2000).
    """
    n_rows, loss = oracle.public.n_rows, oracle.problem.loss
    n_features, most = oracle.public.n_features, loss.weight_bound or 0.0
    means = gram[-1, :-1] if oracle.public.has_intercept else np.zeros(n_features)
    slopes = coef[:n_features]
    along = gram[:n_features, :n_features] @ slopes - means * (means @ slopes)
    size = math.sqrt(max(float(slopes @ along), 0.0))
    centre = float(means @ slopes) + (coef[-1] if oracle.public.has_intercept else 0.0)
    nodes, shares = np.polynomial.hermite_e.hermegauss(32)

    def average(centre: float, size: float) -> float:
        margins = (centre + size * nodes)[:, None]
        return float(loss.working_weight(margins, margins)[:, 0] @ shares / shares.sum())

    step = 1e-4
    by_centre = (average(centre + step, size) - average(centre - step, size)) / (2 * step)
    by_size = (average(centre, size + step) - average(centre, size - step)) / (2 * step)
    slope = by_centre * means + (by_size * along / size if size > ROUNDING else 0.0)
    if oracle.public.has_intercept:
        slope = np.append(slope, by_centre)
    value = answer * most / n_rows + float(slope @ (coef - point))
    value = min(max(value, 0.0), most)
    noise = (std * most / n_rows) ** 2
    return MeanWeight(value, slope, noise, noise + value * (most - value) / n_rows)
