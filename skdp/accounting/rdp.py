"""Renyi accounting: loose by some per cent, but it knows selections and plans of any length."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from skdp.accounting.accountant import Accountant, UnknownCost, register
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events import (
    Event,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    ObjectivePerturbed,
    PoissonSampled,
    Selected,
)
from skdp.accounting.pairs import Array
from skdp.accounting.plan import Sequence, paths, sequence_of, squared_mu
from skdp.accounting.pure import pure_epsilon
from skdp.accounting.renyi import (
    gaussian_renyi,
    laplace_renyi,
    objective_renyi,
    poisson_renyi,
    response_renyi,
    without_replacement_renyi,
)

# Dense where the best order lies for large costs; whole numbers further up, where the sums of the
# sampled mechanisms are exact; sparse beyond, for mechanisms with a closed form.
ORDERS: Array = np.unique(
    np.concatenate(
        [
            1 + np.geomspace(0.02, 9.0, 160),
            np.arange(2.0, 65.0),
            np.round(np.geomspace(65, 2048, 48)),
            np.geomspace(2200, 1e7, 120),
        ]
    )
)


@singledispatch
def renyi(event: Event, adjacency: Adjacency, orders: Array) -> Array:
    """Return Renyi divergences of ``event`` at ``orders``, the dearer of both directions.

    What has an epsilon with delta = 0 costs no more than randomised response with that epsilon.

    Raises
    ------
    UnknownCost
        If no theorem gives them.
    """
    try:
        return response_renyi(orders, pure_epsilon(event, adjacency))
    except UnknownCost as refusal:
        raise UnknownCost(
            f"{type(event).__name__} has no Renyi theorem under {adjacency}: {refusal}"
        ) from None


@renyi.register
def _(event: Gaussian, adjacency: Adjacency, orders: Array) -> Array:
    return gaussian_renyi(orders, event.mu(adjacency))


@renyi.register
def _(event: Laplace, adjacency: Adjacency, orders: Array) -> Array:
    return laplace_renyi(orders, event.pure_epsilon(adjacency))


@renyi.register
def _(event: PoissonSampled, adjacency: Adjacency, orders: Array) -> Array:
    inner = sequence_of(event.event)
    if not all(isinstance(part, Gaussian) for part in inner):
        return response_renyi(orders, pure_epsilon(event, adjacency))
    if adjacency is Adjacency.REPLACE_ONE:
        raise UnknownCost(
            "PoissonSampled of Gaussian has no Renyi theorem under replace_one; ask 'pld'."
        )
    return poisson_renyi(orders, math.sqrt(squared_mu(inner, adjacency)), event.rate)


@renyi.register
def _(event: FixedSizeSampled, adjacency: Adjacency, orders: Array) -> Array:
    inner = sequence_of(event.event)
    if adjacency is Adjacency.ZERO_OUT or not all(isinstance(part, Gaussian) for part in inner):
        return response_renyi(orders, pure_epsilon(event, adjacency))
    return without_replacement_renyi(orders, math.sqrt(squared_mu(inner, adjacency)), event.rate)


@renyi.register
def _(event: ObjectivePerturbed, adjacency: Adjacency, orders: Array) -> Array:
    """Minimiser, then Gaussian noise of its own; without the failure, see `failure_of`."""
    changes = round(event.sensitivity(adjacency))
    if event.output_noise == 0:
        return np.full_like(orders, math.inf)
    exact = objective_renyi(orders, event.noise_multiplier, event.ratio, changes)
    return exact + gaussian_renyi(orders, 1 / event.output_noise)


@renyi.register
def _(event: Selected, adjacency: Adjacency, orders: Array) -> Array:
    """Best of a random number of runs (Papernot and Steinke 2022, arXiv:2110.03620, Thm 2)."""
    runs = sequence_of(event.event)
    if failure_of(runs) > 0:
        raise UnknownCost(
            "Selected of a release that may fail with some probability has no Renyi theorem."
        )
    base = renyi_total(runs, adjacency, orders)
    gamma, eta = event.gamma, event.shape
    once = (1 + eta) * np.min((1 - 1 / orders) * base - math.log(gamma) / orders)
    costs = base + once + math.log(event.mean_runs) / (orders - 1)
    # Divergences grow with the order, so a larger order bounds all smaller ones.
    cheapest: Array = np.minimum.accumulate(costs[::-1])[::-1]
    return cheapest


def renyi_total(sequence: Sequence, adjacency: Adjacency, orders: Array) -> Array:
    """Sum over a sequence (Mironov 2017, Prop. 1)."""
    total = np.zeros_like(orders)
    for event, count in sequence.items():
        total = total + count * renyi(event, adjacency, orders)
    return total


def failure_of(sequence: Sequence) -> float:
    """Probability, at most, that a release of the sequence is another than its divergence is of.

    It is the same on neighbouring data. A run that differs from one which is (epsilon, delta)-DP
    with this probability f at most is ``(epsilon, delta + (1 + exp(epsilon)) f)``-DP.
    """
    return sum(count * getattr(event, "failure", 0.0) for event, count in sequence.items())


def epsilon_from_renyi(orders: Array, costs: Array, delta: float) -> float:
    """Least epsilon over the orders (Canonne, Kamath, Steinke 2020, Prop. 12)."""
    if not costs.any():
        return 0.0
    if delta == 0:
        return math.inf
    if delta**2 + np.expm1(-costs.min()) > 0:
        return 0.0  # total variation is at most sqrt(1 - exp(-KL)) (Bretagnolle and Huber)
    bounds = costs + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    return max(0.0, float(np.min(bounds)))


def delta_from_renyi(orders: Array, costs: Array, epsilon: float) -> float:
    """Least delta over the orders (the same proposition)."""
    finite = np.isfinite(costs)
    if not finite.any():
        return 1.0
    a, cost = orders[finite], costs[finite]
    logs = (a - 1) * (cost - epsilon) - np.log(a - 1) + a * np.log1p(-1 / a)
    return min(1.0, math.exp(float(np.min(logs))))


@register
class RenyiDP(Accountant):
    """Renyi divergences at dense real orders, with the tight conversion; fast but loose."""

    name = "rdp"
    rank = 40

    def examine(self, event: Event, adjacency: Adjacency) -> object:
        few = np.array([2.0])
        return [renyi_total(path, adjacency, few) for path in paths(event, adjacency)]

    def divergences(self, event: Event, orders: Array, adjacency: Adjacency) -> Array:
        """Return the Renyi divergence of ``event`` at each order, over the dearest block each."""
        self.known(event, adjacency)
        totals = [renyi_total(path, adjacency, orders) for path in paths(event, adjacency)]
        dearest: Array = np.max(totals, axis=0)
        return dearest

    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        costs = self.divergences(event, ORDERS, adjacency)
        failure = max(failure_of(path) for path in paths(event, adjacency))
        if failure == 0:
            return epsilon_from_renyi(ORDERS, costs, delta)

        def missing(epsilon: float) -> float:
            left = delta - (1 + math.exp(min(epsilon, 700.0))) * failure
            return math.inf if left <= 0 else epsilon_from_renyi(ORDERS, costs, left) - epsilon

        # What is missing falls until the failure takes all of delta: halve towards the crossing.
        low, high = 0.0, epsilon_from_renyi(ORDERS, costs, delta / 2)
        if not missing(high) <= 0:
            return math.inf
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if missing(middle) <= 0 else (middle, high)
        return high

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        costs = self.divergences(event, ORDERS, adjacency)
        failure = max(failure_of(path) for path in paths(event, adjacency))
        failed = (1 + math.exp(min(epsilon, 700.0))) * failure
        return min(1.0, delta_from_renyi(ORDERS, costs, epsilon) + failed)
