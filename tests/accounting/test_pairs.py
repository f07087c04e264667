"""Dominating pairs: their profiles against sampling, quadrature and closed forms."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import laplace, norm

from skdp.accounting import (
    Adjacency,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
)
from skdp.accounting.composition import connect_the_dots, epsilon_of
from skdp.accounting.pairs import (
    AntipodalPair,
    GaussianPair,
    LaplacePair,
    ResponsePair,
    SampledPair,
    SymmetricSampledPair,
)
from skdp.accounting.pricing import dominating_pair

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
EPSILONS = np.array([0.0, 0.05, 0.3, 1.0, 2.5])
PAIRS = [
    GaussianPair(0.3),
    GaussianPair(4.0),
    LaplacePair(0.7),
    ResponsePair(0.7, 1e-3),
    SampledPair(GaussianPair(1.0), 0.1),
    SampledPair(LaplacePair(2.0), 0.3),
    SampledPair(ResponsePair(1.0, 1e-3), 0.3),
    SymmetricSampledPair(GaussianPair(2.0), 0.1),
    AntipodalPair(1.0, 0.1),
    AntipodalPair(0.05, 1e-4),
    SampledPair(GaussianPair(2.0), 1e-7),
    SampledPair(GaussianPair(1e-3), 1e-6),
    SymmetricSampledPair(LaplacePair(1e-3), 1e-6),
]


def mixture(law, rate, shift):
    return (1 - rate) * law(GRID) + rate * law(GRID - shift)


GRID = np.linspace(-25, 25, 200_001)


def divergence(p, q, epsilon):
    """The same for densities on the grid, which end in nothing; good to 1e-7."""
    gains = np.maximum(p - math.exp(epsilon) * q, 0.0)
    return float(gains.sum() * (GRID[1] - GRID[0]))


@pytest.mark.parametrize("law", [norm.pdf, laplace.pdf], ids=["gaussian", "laplace"])
@pytest.mark.parametrize(("shift", "rate"), [(1.0, 0.1), (3.0, 0.5), (0.4, 0.9)])
def test_sampled_profiles_by_quadrature(law, shift, rate):
    base = GaussianPair(shift) if law == norm.pdf else LaplacePair(shift)
    pair = SampledPair(base, rate)
    moved, kept = mixture(law, rate, shift), law(GRID)
    for epsilon in EPSILONS:
        here = np.array([epsilon])
        assert pair.forward(here)[0] == pytest.approx(divergence(moved, kept, epsilon), abs=1e-7)
        assert pair.backward(here)[0] == pytest.approx(divergence(kept, moved, epsilon), abs=1e-7)


@pytest.mark.parametrize(("mu", "rate"), [(1.0, 0.1), (2.0, 0.5), (0.3, 0.9)])
def test_antipodal_profile_by_quadrature(mu, rate):
    right, left = mixture(norm.pdf, rate, mu), mixture(norm.pdf, rate, -mu)
    for epsilon in EPSILONS:
        expected = divergence(right, left, epsilon)
        assert AntipodalPair(mu, rate).forward(np.array([epsilon]))[0] == pytest.approx(
            expected, abs=1e-7
        )


@pytest.mark.parametrize(
    ("event", "adjacency", "first", "second"),
    [
        (PoissonSampled(0.2, Gaussian(0.8)), ZERO_OUT, (0.2, 1 / 0.8), (0.0, 0.0)),
        (PoissonSampled(0.2, Gaussian(0.8)), ZERO_OUT, (0.0, 0.0), (0.2, 1 / 0.8)),
        (PoissonSampled(0.2, Gaussian(0.8)), REPLACE_ONE, (0.2, 1 / 0.8), (0.2, -1 / 0.8)),
        (FixedSizeSampled(20, 100, Gaussian(0.8)), REPLACE_ONE, (0.2, 2 / 0.8), (0.0, 0.0)),
    ],
)
def test_profiles_by_monte_carlo(event, adjacency, first, second):
    """One coordinate, 2e6 draws: ``E_P (1 - exp(epsilon - loss))_+`` within five deviations."""
    rng = np.random.default_rng(20260101)
    draws = 2_000_000

    def density(law, x):
        rate, shift = law
        return (1 - rate) * norm.pdf(x) + rate * norm.pdf(x - shift)

    rate, shift = first
    x = rng.standard_normal(draws) + shift * (rng.random(draws) < rate)
    ratio = density(second, x) / density(first, x)
    pair = dominating_pair(event, adjacency)
    reverse = first == (0.0, 0.0)
    for epsilon in (0.0, 0.2, 0.5, 1.0):
        gains = np.maximum(1 - math.exp(epsilon) * ratio, 0.0)
        here = np.array([epsilon])
        profile = float((pair.backward if reverse else pair.forward)(here)[0])
        assert abs(gains.mean() - profile) <= 5 * gains.std() / math.sqrt(draws) + 1e-12


def test_composed_mixtures_by_monte_carlo():
    """Eight different sampled Gaussians, both directions, against 1e6 draws of the summed loss."""
    rng = np.random.default_rng(20260102)
    draws, rate = 1_000_000, 0.1
    sigmas = np.linspace(0.8, 1.5, 8)
    pairs = tuple((SampledPair(GaussianPair(1 / sigma), rate), 1) for sigma in sigmas)
    summed = {"remove": np.zeros(draws), "add": np.zeros(draws)}
    for sigma in sigmas:
        for side, total in summed.items():
            chosen = (rng.random(draws) < rate) & (side == "remove")
            x = rng.standard_normal(draws) + chosen / sigma
            moved = np.log1p(rate * np.expm1(x / sigma - 0.5 / sigma**2))
            total += moved if side == "remove" else -moved
    for epsilon in (0.3, 1.0, 2.0):
        found = [np.maximum(-np.expm1(epsilon - total), 0.0) for total in summed.values()]
        costlier = max(found, key=np.mean)
        delta, error = costlier.mean(), 5 * costlier.std() / math.sqrt(draws)
        assert epsilon_of(pairs, delta + error) <= epsilon <= epsilon_of(pairs, delta - error)


@pytest.mark.parametrize("pair", PAIRS, ids=repr)
def test_connected_dots_lie_above_the_profile_and_hold_all_mass(pair):
    forward, backward = pair.reach(1e-9)
    atoms = connect_the_dots(
        pair, np.linspace(0, forward * 1.01, 40), np.linspace(0, backward * 1.01, 40)
    )
    losses, log_masses = atoms.log_masses()
    masses = np.exp(log_masses)
    assert masses.sum() + atoms.infinity_mass == pytest.approx(1.0, abs=1e-12)
    between = np.linspace(0, forward, 101)
    for epsilon, true in zip(between, pair.forward(between), strict=True):
        above = masses @ np.maximum(-np.expm1(epsilon - losses), 0.0) + atoms.infinity_mass
        assert above >= true - 1e-14


@pytest.mark.parametrize("pair", PAIRS, ids=repr)
def test_reach_is_where_the_profile_ends(pair):
    leak = pair.infinity_mass
    for tail in (1e-3, 1e-9, 1e-15):
        forward, backward = pair.reach(tail)
        assert float(pair.forward(np.array([forward * (1 + 1e-12)]))[0]) <= leak + tail * 1.001
        assert float(pair.backward(np.array([backward * (1 + 1e-12)]))[0]) <= leak + tail * 1.001


@pytest.mark.parametrize("pair", PAIRS, ids=repr)
def test_profiles_are_convex_and_falling(pair):
    forward, _ = pair.reach(1e-9)
    alphas = np.linspace(1.0, math.exp(min(forward, 5.0)), 300)
    for side in (pair.forward, pair.backward):
        values = side(np.log(alphas))
        assert np.all(np.diff(values) <= 1e-15)
        assert np.all(np.diff(values, 2) >= -1e-13)


def test_laplace_noise_on_vectors_is_dominated_by_the_scalar():
    """Two coordinates with L1 distance 1, every split, as compositions of scalar pairs."""
    for total in (0.3, 1.0, 3.0):
        for share in (0.1, 0.25, 0.5):
            split = ((LaplacePair(total * share), 1), (LaplacePair(total * (1 - share)), 1))
            for epsilon in np.linspace(0, total, 7)[:-1]:
                scalar = float(LaplacePair(total).forward(np.array([epsilon]))[0])
                assert epsilon_of(split, scalar * (1 + 1e-4)) <= epsilon + 1e-9


@pytest.mark.parametrize("sigma", [0.7, 2.0])
@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_poisson_under_replace_one_dominates_all_angles(sigma, rate):
    """Contributions of any length and sign on the line cost no more than antipodal ones."""
    pair = dominating_pair(PoissonSampled(rate, Gaussian(sigma)), REPLACE_ONE)
    densities = [mixture(norm.pdf, rate, x / sigma) for x in (-1.0, -0.3, 0.0, 0.5, 1.0)]
    for p, q in itertools.product(densities, repeat=2):
        for epsilon in (0.0, 0.1, 0.6):
            actual = divergence(p, q, epsilon)
            assert actual <= float(pair.forward(np.array([epsilon]))[0]) + 1e-7


@pytest.mark.parametrize(
    "base", [Gaussian(0.8, spread=1.0), Laplace(0.8)], ids=["count", "laplace"]
)
def test_poisson_under_replace_one_of_counts_and_laplace(base):
    rate = 0.3
    pair = dominating_pair(PoissonSampled(rate, base), REPLACE_ONE)
    law = norm.pdf if isinstance(base, Gaussian) else laplace.pdf
    ends = (0.0, 1.0) if isinstance(base, Gaussian) else (-1.0, 1.0)
    densities = [mixture(law, rate, x / 0.8) for x in (*ends, 0.4)]
    for p, q in itertools.product(densities, repeat=2):
        for epsilon in (0.0, 0.1, 0.6):
            actual = divergence(p, q, epsilon)
            assert actual <= float(pair.forward(np.array([epsilon]))[0]) + 1e-7
