"""Laplace noise: pure epsilon, audited analytically; L1 clipping; rounding."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp._oracle import (
    FixedSize,
    GaussianNoise,
    GradientSum,
    LaplaceNoise,
    NoisyStatistic,
    Public,
)
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.releases.mechanisms import Contribution
from skdp.accounting import Adjacency, Composed, Laplace, calibrate, price
from skdp.objective import Logistic, Multinomial, Problem


def context_for(adjacency=Adjacency.ZERO_OUT, n_rows=50, n_features=3, n_outputs=1, **facts):
    facts = {"epsilon": 1.0, "delta": 0.0, "row_bound": 2.0, **facts}
    public = Public(n_rows, n_features, n_outputs, adjacency, **facts)
    loss = Logistic() if n_outputs == 1 else Multinomial(n_outputs)
    return PublicContext(public, Problem(loss), scale=facts["epsilon"])


# ---------------------------------------------------------------- the audit in one dimension


def log_cell_probability(k, centre, scale):
    """Log-probability that round(centre + scale * L) is k, exactly, tails included."""
    low, high = (k - 0.5 - centre) / scale, (k + 0.5 - centre) / scale
    near = np.minimum(np.abs(low), np.abs(high))
    width = 1 / scale
    same_side = np.log(0.5) - near + np.log(-np.expm1(-width))
    with np.errstate(divide="ignore", invalid="ignore"):
        across = np.log(-0.5 * np.expm1(-np.abs(low)) - 0.5 * np.expm1(-np.abs(high)))
    return np.where(low * high < 0, across, same_side)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("multiplier", [0.05, 0.5, 1.0, 7.3, 100.0])
def test_worst_log_ratio_never_exceeds_epsilon(adjacency, multiplier):
    """Of densities, and of probabilities of the grid points that are really released."""
    for bound in [1e-3, 1.0, 3.7]:
        for total in [1.0, 1e6, 2.0**45]:  # with coarse grids, too
            noise = LaplaceNoise(1.0)
            epsilon = noise.event(2.0).scaled(multiplier).pure_epsilon(adjacency)
            reach = bound * (1 if adjacency is Adjacency.ZERO_OUT else 2)
            contribution = Contribution(bound, 2.0, size=1, total=total * bound, order=1)
            scale = noise.scale_of_noise(contribution, multiplier)
            grid = noise._grid(contribution, multiplier)
            # 1. Densities: the ratio is exp(|s - s'| / b) at the worst point.
            assert reach / scale <= epsilon
            # 2. What is released. Rounded sums are that many whole grid units apart, at most.
            apart = math.floor(reach / grid) + 1
            k = np.unique(np.concatenate([np.arange(-40, 41), apart + np.arange(-40, 41)])).astype(
                float
            )
            one = log_cell_probability(k, 0.0, scale / grid)
            other = log_cell_probability(k, float(apart), scale / grid)
            worst = np.abs(one - other).max()
            assert worst <= epsilon * (1 + 1e-9)
            # the audit has teeth: noise sqrt(2) too small, the published slip, is caught
            slip = scale / math.sqrt(2)
            assert reach / slip > epsilon


@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
def test_worst_log_ratio_on_samples(rate):
    """One dimension, all records at the two ends: the mixture's density ratio is within epsilon."""
    n, m = 100, round(100 * rate)
    release = FixedSize(m).event(Laplace(0.7), context_for(n_rows=n).public)
    epsilon, _ = price(Composed(((release, 1),)), 0.0, Adjacency.REPLACE_ONE)
    y = np.linspace(-30, 30, 4001)

    def density(centre):
        return np.exp(-np.abs(y - centre) / 0.7)

    # the changed record is at +1 or at -1, the others' sum is 0
    one = (1 - rate) * density(1.0) + rate * density(1.0)
    other = (1 - rate) * density(1.0) + rate * density(-1.0)
    assert np.abs(np.log(one / other)).max() <= epsilon * (1 + 1e-12)
    assert np.abs(np.log(one / other)).max() > 0.99 * epsilon


def test_plans_cost_what_the_paper_says():
    """eps_0 = log(1 + (exp(eps/T) - 1) n/m), b = S_1/(m eps_0), S_1 = 2 C under replace-one."""
    n, m, n_steps, epsilon = 1000, 100, 40, 1.0
    public = context_for(Adjacency.REPLACE_ONE, n_rows=n).public
    event = Composed(((FixedSize(m).event(Laplace(1.0), public), n_steps),))
    found = calibrate(event, epsilon, 0.0, Adjacency.REPLACE_ONE)
    inner = math.log1p(math.expm1(epsilon / n_steps) * n / m)
    assert found.scale == pytest.approx(2 / inner, rel=1e-4)
    assert found.scale >= 2 / inner * (1 - 1e-9)
    full = calibrate(Composed(((Laplace(1.0), n_steps),)), epsilon, 0.0, Adjacency.ZERO_OUT)
    assert full.scale == pytest.approx(n_steps / epsilon, rel=1e-6)


@given(
    size=st.integers(1, 40),
    bound=st.floats(1e-6, 1e6),
    multiplier=st.floats(1e-2, 1e3),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=60)
def test_rounding_is_within_what_is_paid(size, bound, multiplier, seed):
    """Rounded sums differ in L1 norm by no more than the scale is for."""
    rng = np.random.default_rng(seed)
    noise = LaplaceNoise()
    contribution = Contribution(bound, 2.0, size=size, total=100 * bound, order=1)
    grid = noise._grid(contribution, multiplier)
    scale = noise.scale_of_noise(contribution, multiplier)
    base = 50 * bound * rng.standard_normal(size)
    move = rng.standard_normal(size)
    move *= bound / np.abs(move).sum()
    moved = grid * np.abs(np.rint((base + move) / grid) - np.rint(base / grid)).sum()
    assert moved <= scale / multiplier


def test_gradients_go_by_the_norm_of_their_noise():
    with pytest.raises(ValueError, match="order must be 1, 2 or inf"):
        GradientSum(np.zeros((4, 1)), 1.0, 3)
    context = context_for()
    for order, noise in ((2, LaplaceNoise()), (1, GaussianNoise())):
        release = NoisyStatistic(GradientSum(np.zeros((4, 1)), 1.0, order), noise)
        with pytest.raises(ValueError, match="is for statistics whose records are bounded"):
            release.std(context)


def test_a_mechanism_refuses_the_other_norm():
    for order, noise in ((2, LaplaceNoise()), (1, GaussianNoise())):
        contribution = Contribution(1.0, 2.0, size=3, total=10.0, order=order)
        for scale in (0.0, 1.0):
            with pytest.raises(ValueError, match=f"bounded in the L{order} norm"):
                noise.std(contribution, scale)
            with pytest.raises(ValueError, match="Nothing was released"):
                noise.add_noise(np.zeros(3), contribution, scale, None)
