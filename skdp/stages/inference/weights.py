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


def _normal_margins(gram: Array, coef: Array, constant: bool) -> tuple[Array, Array, float, float]:
    """Return means of entries, their covariances with margins in sizes of these, and mean and size.

    The last entry of rows is 1 if it is a constant; without one means are taken for 0.
    """
    means = np.append(gram[-1, :-1], 1.0) if constant else np.zeros(len(coef))
    centre = float(means @ coef)
    along = gram @ coef - means * centre
    if constant:
        along[-1] = 0.0
    size = math.sqrt(max(float(coef @ along), 0.0))
    # The noise of the matrix may leave no variance at all.
    return means, along / size if size > ROUNDING else 0.0 * along, centre, size


def _working_weights(loss: Loss, centre: float, size: float) -> tuple[Array, Array]:
    """Return working weights at nodes of normal margins, times the nodes' shares, and the nodes."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(32)
    margins = (centre + size * nodes)[:, None]
    weights = loss.working_weight(margins, np.zeros_like(margins))[:, 0]
    return np.maximum(weights, ROUNDING) * shares / shares.sum(), nodes


def mean_hessian(loss: Loss, gram: Array, coef: Array, has_intercept: bool) -> Array:
    """Return the Gram matrix of rows with their working weights, over the mean weight.

    Weights of a log link depend on the margins alone, taken for normal ones: they change variances
    and means along the coefficients. For other links it is the Gram matrix as it is.
    """
    if loss.link != "log":
        return gram
    means, along, centre, size = _normal_margins(gram, coef, has_intercept)
    weights, nodes = _working_weights(loss, centre, size)
    first, second = (float(weights @ nodes**power / weights.sum()) for power in (1, 2))
    moved = first * np.outer(along, means)
    return np.asarray(gram + moved + moved.T + (second - 1) * np.outer(along, along))


def weighted_means(loss: Loss, gram: Array, coef: Array) -> tuple[float, Array]:
    """Return the mean working weight, and the columns' means with these weights.

    Where the weights depend on the margins, for normal ones.
    """
    if loss.quadratic:
        return 1.0, gram[-1, :-1]
    means, along, centre, size = _normal_margins(gram, coef, True)
    weights, nodes = _working_weights(loss, centre, size)
    weight = float(weights.sum())
    return weight, (means + float(weights @ nodes) / weight * along)[:-1]


def mean_weight_at(
    oracle: Oracle, gram: Array, point: Array, coef: Array, answer: float, std: float
) -> MeanWeight:
    """Return the mean weight at ``coef`` by an answer about ``point``, which is not far from it.

    Its derivative leads from one to the other, and gives the share of the coefficients' error in
    its own: both are small, so that normal margins will do for it. The variance over rows of a
    number from 0 to W with the mean m is at most ``m (W - m)`` (Bhatia, Davis 2000).
    """
    n_rows, loss = oracle.public.n_rows, oracle.problem.loss
    most = loss.weight_bound or 0.0
    means, along, centre, size = _normal_margins(gram, coef, oracle.public.has_intercept)

    def average(centre: float, size: float) -> float:
        return float(_working_weights(loss, centre, size)[0].sum())

    step = 1e-4
    by_centre = (average(centre + step, size) - average(centre - step, size)) / (2 * step)
    by_size = (average(centre, size + step) - average(centre, size - step)) / (2 * step)
    slope = by_centre * means + by_size * along
    value = answer * most / n_rows + float(slope @ (coef - point))
    value = min(max(value, 0.0), most)
    noise = (std * most / n_rows) ** 2
    return MeanWeight(value, slope, noise, noise + value * (most - value) / n_rows)
