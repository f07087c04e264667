"""Private selection: the price of the best of a random number of runs."""

import math
from collections.abc import Callable
from functools import lru_cache

from scipy.optimize import brentq

from skdp.accounting.dominating import profile
from skdp.accounting.events.base import Adjacency, Parts
from skdp.accounting.events.wrappers import Selected
from skdp.accounting.plan import paths

# Relative width to which the search for the shift narrows it down.
WIDTH = 1e-12


def selection_epsilon(event: Selected, delta: float, adjacency: Adjacency) -> float:
    """Epsilon of the best of a random number of runs that have a privacy profile.

    Let Q be the distribution of a run and Q' that of a run on neighbouring data, both in the order
    of their scores with ties broken by coins, and let ``delta(epsilon)`` bound the hockey-stick
    divergences between Q and Q' in both directions. For every ``e_1`` with

        ``(1 - gamma) delta(e_1) <= gamma (exp(e_1) - 1)``                                      (1)

    and every ``e_2 >= 0``, the best run is
    ``((shape + 1) e_1 + e_2, mean_runs * delta(e_2))``-DP.

    Proof. Let f be the generating function of the number of runs, truncated negative binomial with
    parameters ``gamma`` and ``shape``. The best run has the density ``Q(y) f'(1 - a(y))``, where
    ``a(y)`` is the probability under Q of a result that is at least y. On neighbouring data it has
    ``Q'(y) f'(1 - a'(y))``. By the definition of delta, applied to the set of results that are at
    least y, ``a' <= exp(e_1) a + delta(e_1)``. So (1) implies

        ``gamma + (1-gamma) a' <= exp(e_1) (gamma + (1-gamma) a)``.

    ``f'(1 - a)`` is proportional to ``(gamma + (1-gamma) a)**-(shape+1)`` (Papernot and Steinke
    2022, arXiv:2110.03620, Def. 1). Hence with ``u = f'(1 - a)`` and ``u' = f'(1 - a')``, ``u <=
    exp((shape + 1) e_1) u'``. For every set, the probability of the best run minus ``exp((shape +
    1) e_1 + e_2)`` times that on neighbouring data is therefore at most the integral of ``u (Q -
    exp(e_2) Q')``. As ``0 <= u <= f'(1) = mean_runs``, it is at most ``mean_runs * delta(e_2)``.

    No smaller factor bounds ``u / u'`` for all runs with this profile, if ``e_1`` is the least
    solution of (1): some set then attains ``a' = exp(e_1) a + delta(e_1)``. The idea of a bound by
    profiles is that of Koskela, Redberg, Wang 2024 (arXiv:2402.06701).

    Parameters
    ----------
    event : Selected
    delta : float
        In [0, 1).
    adjacency : Adjacency

    Returns
    -------
    float
        inf if no finite epsilon holds.

    Raises
    ------
    UnknownCost
        If a run has no privacy profile.
    """
    costs = []
    for path in paths(event.event, adjacency):
        _, epsilon_of_run = profile(path, adjacency)
        beyond = epsilon_of_run(delta / event.mean_runs)
        shift = 0.0
        if not math.isinf(beyond):
            shift = _shift_of_path(tuple(path.items()), event.gamma, adjacency)
        costs.append((event.shape + 1) * shift + beyond)
    return max(costs)


@lru_cache(maxsize=256)
def _shift_of_path(path: Parts, gamma: float, adjacency: Adjacency) -> float:
    delta_of_run, epsilon_of_run = profile(dict(path), adjacency)
    return selection_shift(delta_of_run, gamma, epsilon_of_run(min(gamma, 0.5)))


def selection_shift(
    delta_of_run: Callable[[float], float], gamma: float, guess: float = 1.0
) -> float:
    """Return nearly the least ``e_1`` that satisfies (1) of `selection_epsilon`.

    Parameters
    ----------
    delta_of_run : callable (float) -> float
        Upper bound on the privacy profile of a run.
    gamma : float
        In (0, 1).
    guess : float, default=1.0
        At which the search begins.

    Returns
    -------
    float
    """

    def excess(log_epsilon: float) -> float:
        epsilon = math.exp(log_epsilon)
        bound = max((1 - gamma) * delta_of_run(epsilon), 1e-320)
        return math.log(bound) - math.log(gamma * math.expm1(epsilon))

    largest = -math.log(gamma) * (1 + 1e-9)  # as delta is at most 1
    high = math.log(min(guess or largest, largest))
    if excess(high) > 0:
        high = math.log(largest)
    low = high - 1
    while excess(low) <= 0:
        if low < -600:
            return 0.0
        high, low = low, 2 * low - high
    root = float(brentq(excess, low, high, xtol=WIDTH))
    while excess(root) > 0:
        root += WIDTH
    return math.exp(root + WIDTH)  # beyond what rounding may hide
