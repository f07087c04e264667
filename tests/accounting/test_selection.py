"""Private selection: the bound against exact densities, pure and sampled runs."""

import math

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import norm

from skdp.accounting import (
    Adjacency,
    Composed,
    Gaussian,
    Laplace,
    PLDAccountant,
    PoissonSampled,
    PureDPAccountant,
    RDPAccountant,
    Selected,
    price,
    selection_delta,
    selection_epsilon,
)
from skdp.accounting.rdp import renyi
from skdp.accounting.selection import selection_shift

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
G = Gaussian(1.5)


def test_selection_inverts():
    for mu in (0.1, 0.5, 2.0):
        epsilon = selection_epsilon(mu, 8, 1e-6)
        assert selection_delta(mu, 8, epsilon) == pytest.approx(1e-6, rel=1e-6)
    assert selection_epsilon(0.0, 8, 1e-6) == 0.0
    assert selection_epsilon(math.inf, 8, 1e-6) == math.inf
    assert selection_delta(math.inf, 8, 3.0) == 1.0


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("mu", [0.2, 1.0])
def test_selection_bound_lies_above_the_best_of_gaussian_scores(mu, shape):
    """The score is the answer: density of the winner in closed form, integrated on a grid."""
    mean = 10
    gamma = Selected(G, mean, shape).gamma
    y = np.linspace(-12, 12 + mu, 200_001)

    def winner(shift):
        x = norm.cdf(y, loc=shift)
        rise = (1 - (1 - gamma) * x) ** -(shape + 1)
        density = norm.pdf(y, loc=shift) * rise
        return density / density.sum()

    for first, second in ((winner(mu), winner(0.0)), (winner(0.0), winner(mu))):
        for epsilon in (0.1, 0.5, 2.0):
            actual = float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())
            assert actual <= selection_delta(mu, mean, epsilon, shape) + 1e-12


def law_of_runs(gamma, shape, most=4000):
    """Probabilities of 1, 2, ... runs by the definition (Papernot and Steinke 2022, Def. 1)."""
    k = np.arange(1, most + 1)
    logs = gammaln(k + shape) - gammaln(k + 1) + k * np.log1p(-gamma)
    weights = np.exp(logs - logs.max())
    return k, weights / weights.sum()


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("mean", [2.0, 10.0, 40.0])
def test_the_mean_of_runs_is_what_is_asked_for(mean, shape):
    k, law = law_of_runs(Selected(Composed(), mean, shape).gamma, shape)
    assert k @ law == pytest.approx(mean, rel=1e-6)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("mu", [0.3, 4.0])
def test_the_price_is_that_of_its_proof(mu, shape):
    """With f the generating function of the number of runs, summed up term by term.

    The best run has the density Q(y) f'(x), x being the share of runs below y; between neighbours
    1 - x changes by the trade-off curve at most, and f'(x) never exceeds the mean, f'(1).
    """
    mean = 10.0
    gamma = Selected(Composed(), mean, shape).gamma
    k, law = law_of_runs(gamma, shape)

    def slope(above):
        return np.exp((k - 1)[:, None] * np.log1p(-above)).T @ (k * law)

    z = np.linspace(-12, 8 + mu, 2001)
    above, more = norm.cdf(z), norm.cdf(z + mu)
    above, more = (np.minimum(one, 1 - 1e-12) for one in (above, more))
    largest = np.log(slope(above) / slope(more)).max()
    shift = selection_shift(mu, gamma, shape)
    assert largest <= shift <= largest * (1 + 1e-4)
    for epsilon in (0.1, 1.0, 5.0):
        sf = norm.sf
        one = sf(epsilon / mu - mu / 2) - np.exp(epsilon) * sf(epsilon / mu + mu / 2)
        found = selection_delta(mu, mean, shift + epsilon, shape)
        assert found == pytest.approx(min(1.0, mean * one), rel=1e-6)


def test_selection_of_pure_runs_is_pure():
    event = Selected(Laplace(10.0), 12, shape=1.0)
    assert PureDPAccountant().epsilon(event, 0.0, ZERO_OUT) == pytest.approx(0.3)
    assert price(event, 0.0, ZERO_OUT)[0] == pytest.approx(0.3)
    assert PLDAccountant().epsilon(event, 1e-6, ZERO_OUT) <= 0.3 * (1 + 1e-6)


def test_selection_of_sampled_runs_goes_by_renyi():
    event = Selected(Composed(((PoissonSampled(0.01, Gaussian(2.0)), 100),)), 10)
    found, name = price(event, 1e-5, ZERO_OUT)
    assert name == "rdp"
    assert RDPAccountant().epsilon(event.event, 1e-5, ZERO_OUT) < found < 3


@pytest.mark.parametrize("shape", [0.0, 1.0, 3.0])
def test_the_renyi_price_is_that_of_the_theorem(shape):
    """Papernot and Steinke 2022, Thm 2, for Gaussian runs, whose divergence is order / (2 s^2)."""
    mean, s, orders = 10.0, 3.0, np.array([1.5, 2.0, 5.0, 20.0])
    gamma = Selected(Composed(), mean, shape).gamma
    second = np.geomspace(1.01, 1e4, 200_001)
    once = ((1 - 1 / second) * second / (2 * s**2) + np.log(1 / gamma) / second).min()
    exact = orders / (2 * s**2) + (1 + shape) * once + np.log(mean) / (orders - 1)
    grid = np.unique(np.concatenate([orders, np.geomspace(1.05, 500, 400)]))
    found = renyi(Selected(Gaussian(s), mean, shape), ZERO_OUT, grid)
    least = np.minimum.accumulate(
        (grid / (2 * s**2) + (1 + shape) * once + np.log(mean) / (grid - 1))[::-1]
    )[::-1]
    places = np.searchsorted(grid, orders)
    assert found[places] == pytest.approx(least[places], rel=1e-3)
    assert (found[places] >= least[places] * (1 - 1e-9)).all()
    assert (least[places] <= exact + 1e-12).all()
