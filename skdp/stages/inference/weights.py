"""Means of working weights for normal margins."""

import math
from typing import NamedTuple, Self

import numpy as np

from skdp._numbers import Array
from skdp.objective import Loss
from skdp.oracle import Public
from skdp.solvers.defaults import ROUNDING


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


class MeanWeight(NamedTuple):
    """Mean of the working weights at a parameter, its derivative there if margins are normal.

    The variances are those of the mean at a parameter that is given: due to noise, and in total.
    """

    value: float
    slope: Array
    privacy_variance: float
    variance: float

    @classmethod
    def of(
        cls,
        public: Public,
        loss: Loss,
        gram: Array,
        step: tuple[Array, Array],
        sums: Array,
        std: float,
    ) -> Self:
        """Return the mean at the end of a short step from a noisy sum at its start.

        The variance over rows of a number from 0 to W with the mean m is at most ``m (W - m)``
        (Bhatia, Davis 2000).
        """
        (start, end), most = step, loss.weight_bound or 0.0
        means, along, centre, size = _normal_margins(gram, end, public.has_intercept)

        def average(centre: float, size: float) -> float:
            return float(_working_weights(loss, centre, size)[0].sum())

        h = 1e-4
        slope = (average(centre + h, size) - average(centre - h, size)) / (2 * h) * means
        slope += (average(centre, size + h) - average(centre, size - h)) / (2 * h) * along
        value = float(sums[1]) * most / public.n_rows + float(slope @ (end - start))
        value = min(max(value, 0.0), most)
        noise = (std * most / public.n_rows) ** 2
        return cls(value, slope, noise, noise + value * (most - value) / public.n_rows)
