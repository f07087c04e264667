"""Amplification by shuffling: the sum over clones, and the price that follows from it."""

import math

import pytest

from costs import by_pairs, cost
from skdp.accounting import (
    Adjacency,
    ApproximateDP,
    Composed,
    Gaussian,
    Laplace,
    PoissonSampled,
    Shuffled,
    price,
)
from skdp.accounting.papers import clone_delta

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE


def brute_clone_delta(n, local, epsilon):
    """All numbers of clones and all counts, written out."""
    rate, truth = math.exp(-local), 1 / (1 + math.exp(-local))
    binomial = lambda n, k, p: math.comb(n, k) * p**k * (1 - p) ** (n - k) if 0 <= k <= n else 0.0  # noqa: E731
    total = 0.0
    for clones in range(n):
        for count in range(clones + 2):
            with_it, without = binomial(clones, count - 1, 0.5), binomial(clones, count, 0.5)
            first = truth * with_it + (1 - truth) * without
            second = (1 - truth) * with_it + truth * without
            gain = max(first - math.exp(epsilon) * second, 0.0)
            total += binomial(n - 1, clones, rate) * gain
    return total


@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize("local", [0.3, 2.0])
def test_clones_against_the_sum_written_out(n, local):
    for epsilon in (0.0, 0.1, 0.25):
        expected = brute_clone_delta(n, local, epsilon)
        assert clone_delta(n, local, epsilon) == pytest.approx(expected, rel=1e-7, abs=1e-15)


def test_shuffling_prices_randomisers_between_any_two_records():
    """Amplification uses the replace-one guarantee, also for the zero-out relation."""
    local = 2 / 1.0
    event = Shuffled(10_000, Laplace(1.0))
    for adjacency in Adjacency:
        found = cost(event, 1e-6, adjacency)
        assert clone_delta(10_000, local, found) == pytest.approx(1e-6, rel=1e-4)


def test_a_shuffled_pass_and_a_polish():
    plan = Composed(((Shuffled(5000, Gaussian(6.0)), 1), (PoissonSampled(0.01, Gaussian(2.0)), 20)))
    found, name = price(plan, 1e-6, ZERO_OUT)
    assert name == "mixed"
    assert found < by_pairs(plan, 1e-6, ZERO_OUT)
    hopeless = Shuffled(1000, ApproximateDP(1.0, 1e-5))
    assert cost(hopeless, 1e-6, ZERO_OUT) == math.inf
