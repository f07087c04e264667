"""Accounting for private selection: the best of a random number of runs."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from skdp.accounting.accountant import Accountant, register
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events import Composed, Event, Selected
from skdp.accounting.gaussian_tradeoff import gaussian_delta, gaussian_epsilon
from skdp.accounting.gdp import GaussianDP
from skdp.accounting.pairs import Array
from skdp.accounting.plan import only_event


def selection_shift(mu: float, gamma: float, shape: float) -> float:
    """Return what selecting adds to epsilon, besides dividing delta by the mean number of runs.

    The winner of K runs has density Q(y) f'(Q(< y)), f the generating function of K and
    ``f'(x)`` proportional to ``(1 - (1-gamma) x)**-(shape+1)``. Between neighbours ``1 - Q(< y)``
    moves along the Gaussian trade-off curve at most, so f' changes by the factor exp(c) at most,

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
    """Delta of the best of a random number of mu-Gaussian-DP runs; see `selection_epsilon`."""
    if mu == 0:
        return 0.0
    shift = (
        math.inf
        if math.isinf(mu)
        else selection_shift(mu, Selected(Composed(), mean_runs, shape).gamma, shape)
    )
    if epsilon < shift:
        return 1.0
    return min(1.0, mean_runs * gaussian_delta(mu, epsilon - shift))


@register
class SelectionModel(Accountant):
    """Profile bound for the best of a random number of Gaussian-DP runs; tighter than "rdp"."""

    name = "selection"
    rank = 25
    special = (Selected,)

    def examine(self, event: Event, adjacency: Adjacency) -> Selected:
        part = only_event(event, Selected, "selection")
        GaussianDP().examine(part.event, adjacency)
        return part

    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        part = self.known(event, adjacency)
        mu = GaussianDP().mu(part.event, adjacency)
        return selection_epsilon(mu, part.mean_runs, delta, part.shape)

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        part = self.known(event, adjacency)
        mu = GaussianDP().mu(part.event, adjacency)
        return selection_delta(mu, part.mean_runs, epsilon, part.shape)
