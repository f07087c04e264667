"""Private selection: the bound against exact densities and other theorems."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from costs import cost
from skdp.accounting import (
    Adjacency,
    Composed,
    Gaussian,
    Selected,
    delta_at,
    gaussian_epsilon,
    price,
)
from skdp.accounting.pricing import selection_shift

ZERO_OUT = Adjacency.ZERO_OUT


def test_delta_and_epsilon_are_inverse():
    for mu in (0.1, 0.5, 2.0):
        event = Selected(Gaussian(1 / mu), 8)
        epsilon = cost(event, 1e-6, ZERO_OUT)
        assert delta_at(event, epsilon, ZERO_OUT) == pytest.approx(1e-6, rel=2e-4)
    for mu, mean in ((1e-9, 2.0), (1e4, 8.0), (1e9, 1e6)):
        assert 0 <= cost(Selected(Gaussian(1 / mu), mean), 1e-6, ZERO_OUT) < math.inf
    assert cost(Selected(Gaussian(0.0), 8), 1e-6, ZERO_OUT) == math.inf
    assert delta_at(Selected(Gaussian(0.0), 8), 3.0, ZERO_OUT) == 1.0


# Runs as cells with probabilities under both data sets, in no order, and their event.


def cells_of(*densities):
    """Outer products of probabilities on grids: one for each of several answers."""
    first, second = (np.array([1.0]), np.array([1.0]))
    for one, other in densities:
        first = np.outer(first, one / one.sum()).ravel()
        second = np.outer(second, other / other.sum()).ravel()
    return first, second


FINE, COARSE = np.linspace(-14, 15, 60_001), np.linspace(-9, 10, 400)
RUN = Gaussian(1.25), cells_of((norm.pdf(FINE, 0.8), norm.pdf(FINE)))


def best_of(probabilities, order, gamma):
    """Probabilities of the best cell in this order; equal scores are ordered by it at random."""
    below = np.cumsum(probabilities[order])
    edges = np.concatenate(([0.0], below / below[-1]))
    values = gamma * edges / (1 - (1 - gamma) * edges)  # generating function of their number
    best = np.empty_like(probabilities)
    best[order] = np.diff(values)
    return best


def largest_excess(mean):
    """Largest of exact delta minus its bound, over orders of the scores and epsilons."""
    event, (first, second) = RUN
    chosen = Selected(event, mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.nan_to_num(np.log(first) - np.log(second))
    orders = np.argsort(loss), np.argsort(-loss), np.random.default_rng(0).permutation(len(loss))
    excess = -math.inf
    for order in orders:
        bests = [best_of(one, order, chosen.gamma) for one in (first, second)]
        for one, other in (bests, bests[::-1]):
            for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
                actual = float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())
                excess = max(excess, actual - bound(chosen, epsilon))
    return excess


def bound(chosen, epsilon):
    return delta_at(chosen, epsilon, ZERO_OUT)


def test_the_bound_lies_above_the_best_of_all_orders_of_scores():
    assert largest_excess(10.0) <= 1e-7


@pytest.mark.parametrize("mu", [0.3, 4.0])
def test_the_shift_is_the_least(mu):
    """With f the generating function of the number of runs, summed up term by term.

    Between Gaussian neighbours the share of better runs changes from a to a' on the trade-off
    curve, and the density of the best run by f'(1-a) / f'(1-a').
    """
    gamma, k = 0.1, np.arange(1, 4001)
    law = gamma * (1 - gamma) ** (k - 1)

    def slope(above):
        return np.exp((k - 1)[:, None] * np.log1p(-above)).T @ (k * law)

    z = np.linspace(-12, 8 + mu, 2001)
    above, more = norm.cdf(z), norm.cdf(z + mu)
    above, more = (np.minimum(one, 1 - 1e-12) for one in (above, more))
    largest = np.log(slope(above) / slope(more)).max()
    shift = 2 * selection_shift(lambda delta: gaussian_epsilon(mu, delta), gamma)
    assert largest <= shift <= largest * (1 + 1e-4)


def test_the_shift_errs_on_the_private_side():
    """Runs that show nothing, that show all with probability 0.2, and with a curve between."""
    for delta_of_run, epsilon_of_run in (
        (lambda epsilon: 0.0, lambda delta: 0.0),
        (lambda epsilon: 0.2, lambda delta: math.inf if delta < 0.2 else 0.0),
        (lambda epsilon: math.exp(-9 * epsilon), lambda delta: -math.log(delta) / 9),
    ):
        for gamma in (1e-9, 0.1, 0.999999):
            shift = selection_shift(epsilon_of_run, gamma)
            assert (1 - gamma) * delta_of_run(shift) <= gamma * math.expm1(shift)
    assert selection_shift(lambda delta: 0.0, 0.1) < 1e-120


# A selection of Gaussian runs in a composition.


@pytest.mark.parametrize("mu", [0.3, 1.2])
def test_composed_selections_cost_no_less_than_the_exact_ones(mu):
    """The best of runs whose score is the answer, twice, and once beside a Gaussian release."""
    cells = cells_of((norm.pdf(COARSE, mu), norm.pdf(COARSE)))
    chosen = Selected(Gaussian(1 / mu), 10)
    order = np.arange(len(COARSE))
    once = tuple(best_of(one, order, chosen.gamma) for one in cells)
    for parts, factors in (
        (((chosen, 2),), (once, once)),
        (((chosen, 1), (Gaussian(1 / mu), 1)), (once, cells)),
    ):
        first, second = cells_of(*factors)
        for one, other in ((first, second), (second, first)):
            for epsilon in (0.0, 0.2, 1.0, 3.0):
                actual = np.maximum(one - math.exp(epsilon) * other, 0.0).sum()
                assert actual <= delta_at(Composed(parts), epsilon, ZERO_OUT) + 1e-9


@pytest.mark.parametrize(
    ("parts", "delta", "by_renyi"),
    [
        (((Selected(Gaussian(6.0), 10), 1), (Gaussian(5.0), 1)), 1e-9, 2.31927),
        (((Selected(Gaussian(3.0), 10), 1), (Gaussian(1.5), 1)), 1e-6, 5.41337),
        (((Selected(Gaussian(30.0), 10), 1), (Gaussian(3.0), 1)), 1e-6, 1.77177),
        (((Selected(Gaussian(6.0), 10), 10),), 1e-9, 11.7221),
        (((Selected(Gaussian(20.0), 10), 30),), 1e-6, 9.82223),
        (((Selected(Gaussian(2.0), 50), 1), (Gaussian(1.0), 1)), 1e-9, 10.5499),
    ],
)
def test_selections_beside_other_events_cost_less_than_by_renyi_divergences(parts, delta, by_renyi):
    """Figures of an accountant of Renyi divergences, which composes selections."""
    found, theorem = price(Composed(parts), delta, ZERO_OUT)
    assert theorem == "pld"
    assert found < by_renyi
