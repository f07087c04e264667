"""Private selection, the best of a random number of runs: its theorems and its accountant."""

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from skdp._numbers import Array
from skdp.accounting.accountant import Accountant
from skdp.accounting.additive import GDPAccountant, gaussian_delta, gaussian_epsilon
from skdp.accounting.events import Adjacency, Composed, Event, Selected
from skdp.accounting.plan import only_event, paths


def selection_shift(mu: float, gamma: float, shape: float) -> float:
    """Return the c that selection adds to epsilon, while delta is divided by the mean of K.

    The best of K runs has density Q(y) f'(Q(< y)), where f is the generating function of K and
    ``f'(x)`` is proportional to ``(1 - (1-gamma) x)**-(shape+1)``. Between neighbours the change of
    ``1 - Q(< y)`` is bounded by the Gaussian trade-off curve, so f' changes by a factor of at most
    exp(c),

        ``c = (shape + 1) max_z log (gamma + (1-gamma) Phi(z+mu)) / (gamma + (1-gamma) Phi(z))``,

    and f' is at most the mean.
    """

    def gain(z: Array) -> Array:
        growth: Array = (ndtr(z + mu) - ndtr(z)) / (gamma + (1 - gamma) * ndtr(z))
        return np.log1p((1 - gamma) * growth)

    grid: Array = np.linspace(-mu - 40, 40, 8001)
    values = gain(grid)
    best = int(np.argmax(values))
    around = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    refined = minimize_scalar(
        lambda z: -float(gain(np.asarray(z))),
        bounds=around,
        method="bounded",
        options={"xatol": 1e-12},
    )
    return (shape + 1) * max(-float(refined.fun), float(values[best])) * (1 + 1e-10)


def selection_epsilon(mu: float, mean_runs: float, delta: float, shape: float = 1.0) -> float:
    """Epsilon of the best of a random number of mu-Gaussian-DP runs.

    ``delta_selected(c + epsilon) <= mean_runs * delta_mu(epsilon)`` with c from `selection_shift`,
    in the spirit of Koskela, Redberg, Wang 2024 (arXiv:2402.06701).

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter of one run, including its score.
    mean_runs : float
        Expected number of runs, greater than 1.
    delta : float
        In [0, 1).
    shape : float, default=1.0
        See `Selected`.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the mean is not above 1, or the shape negative.

    Examples
    --------
    >>> from skdp.accounting import gaussian_mu, selection_epsilon
    >>> round(selection_epsilon(gaussian_mu(1.0, 1e-5), mean_runs=10, delta=1e-5), 4)
    1.6254
    """
    if mu == 0:
        return 0.0
    if math.isinf(mu):
        return math.inf
    shift = selection_shift(mu, Selected(Composed(), mean_runs, shape).gamma, shape)
    return shift + gaussian_epsilon(mu, delta / mean_runs)


def selection_delta(mu: float, mean_runs: float, epsilon: float, shape: float = 1.0) -> float:
    """Delta of the best of a random number of mu-Gaussian-DP runs; see `selection_epsilon`.

    Parameters
    ----------
    mu, mean_runs : float
        As there.
    epsilon : float
        At least 0.
    shape : float, default=1.0
        As there.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the mean is not above 1, or the shape negative.

    Examples
    --------
    >>> from skdp.accounting import gaussian_mu, selection_delta
    >>> 0 < selection_delta(gaussian_mu(1.0, 1e-5), mean_runs=10, epsilon=1.6254) < 1.001e-5
    True
    """
    if mu == 0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    shift = selection_shift(mu, Selected(Composed(), mean_runs, shape).gamma, shape)
    return 1.0 if epsilon < shift else min(1.0, mean_runs * gaussian_delta(mu, epsilon - shift))


class SelectionAccountant(Accountant):
    """Profile bound for the best of a random number of Gaussian-DP runs; tighter than "rdp"."""

    name = "selection"
    rank = 25
    special = (Selected,)

    def examine(self, event: Event, adjacency: Adjacency) -> list[tuple[Selected, float]]:
        met = paths(event, adjacency)  # a selection among runs on one part of the rows, too
        event = Composed(tuple(met[0].items())) if len(met) == 1 else event
        part = only_event(event, Selected, "selection")
        return [(part, mu) for mu in GDPAccountant().examine(part.event, adjacency)]

    def path_epsilon(self, facts: tuple[Selected, float], delta: float) -> float:
        part, mu = facts
        return selection_epsilon(mu, part.mean_runs, delta, part.shape)

    def path_delta(self, facts: tuple[Selected, float], epsilon: float) -> float:
        part, mu = facts
        return selection_delta(mu, part.mean_runs, epsilon, part.shape)
