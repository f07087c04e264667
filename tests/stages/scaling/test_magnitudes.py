"""Columns and targets far from 1 are scaled as the same ones in another unit."""

from __future__ import annotations

import numpy as np
import pytest

import skdp
from skdp._oracle import MagnitudeCounts, Public, PublicContext
from skdp._oracle.releases.histograms import N_MAGNITUDES, N_NEAR, SIDE
from skdp._oracle.sources.memory import MemorySource
from skdp._stages.scaling.distributions import magnitude_bounds
from skdp._stages.scaling.estimates import in_own_units
from skdp.accounting import Adjacency
from skdp.objective import Problem, SquaredError

N_ROWS, SLOPES = 5000, np.array([2.0, -1.0, 0.5])


def counts_of(values):
    public = Public(len(values), 1, 1, Adjacency.ZERO_OUT, 1.0, 1e-6)
    rows = MemorySource.of(values[:, None], np.zeros((len(values), 1)))
    return MagnitudeCounts(True, False).total(
        rows, PublicContext(public, Problem(SquaredError()), 1)
    )


def own_units_of(values, rng, std=0.0):
    counts = counts_of(values)
    return in_own_units(counts + std * rng.standard_normal(counts.shape), len(values), std)


@pytest.fixture
def columns(rng):
    X = rng.standard_normal((N_ROWS, 3))
    return X, X @ SLOPES + rng.standard_normal(N_ROWS)


def fitted(seed, X, y, model=skdp.DPRidge, **parameters):
    privacy = skdp.Privacy(noise=skdp.SeededNoise(seed))
    return model(epsilon=3.0, privacy=privacy, **parameters).fit(X, y)


@pytest.mark.parametrize("std", [0.0, 20.0])
@pytest.mark.parametrize("step", [-480, -100, -45, -26, 26, 39, 40, 60, 100, 470])
def test_counts_of_far_values_are_those_of_near_ones_in_their_unit(rng, step, std):
    values = rng.standard_normal(N_ROWS)
    values[: N_ROWS // 10] = 0.0
    near, noise, units = own_units_of(values * 4.0**step, rng, std)
    expected = counts_of(values * 4.0**step / units)[0, :N_NEAR]
    assert expected.sum() > 0.9999 * N_ROWS
    assert np.abs(near[0] - expected).max() <= 6 * noise[0] + 1e-6


@pytest.mark.parametrize(
    ("common", "rare", "share"),
    [(1.0, 1e15, 0.03), (1.0, -1e300, 0.01), (1e-17, 1.0, 0.05), (1e-6, 1e-200, 0.9)],
)
def test_codes_and_rounding_errors_do_not_decide_the_unit(rng, common, rare, share):
    """Values beyond the magnitudes are counted at their ends, and smaller ones as zeros."""
    is_rare = rng.random(N_ROWS) < share
    values = np.where(is_rare, rare, common * rng.uniform(1, 2, N_ROWS))
    near, noise, units = own_units_of(values, rng, 0.002 * N_ROWS)
    assert units == 1
    place = {1e15: -1, -1e300: 0, 1.0: SIDE, 1e-200: SIDE}[rare]
    wanted = (~is_rare).sum() if rare == 1.0 else is_rare.sum()
    assert abs(near[0, place] - wanted) < 6 * noise[0] / 0.707


def test_a_tail_beyond_the_near_magnitudes_is_seen_with_the_rest(rng):
    """A tenth lies beyond; all of it is in one window."""
    values = 2e11 * np.exp(1.3 * rng.standard_normal(N_ROWS))
    near, noise, units = own_units_of(values, rng, 2.0)
    low, _ = magnitude_bounds()
    expected = counts_of(values / units)[0, :N_NEAR]
    assert units > 1
    assert np.abs(near[0] - expected).max() <= 6 * noise[0]
    assert near[0, low > 0].sum() == pytest.approx(N_ROWS, rel=0.05)


@pytest.mark.parametrize("unit", [1e-13, 1e-15, 1e13, 1e15])
def test_noise_hardly_ever_decides_the_unit_of_far_values(rng, unit):
    """A unit that is off by more than 5 steps of 4 loses values, or all of them."""
    counts, std = counts_of(unit * rng.standard_normal(N_ROWS)), 30.0
    noise = std * rng.standard_normal((3_000, 1, N_MAGNITUDES))
    units = np.array([in_own_units(counts + one, N_ROWS, std)[2][0] for one in noise])
    assert np.sum(np.abs(np.log(units / np.median(units))) > 5 * np.log(4)) <= 3


def test_noise_hardly_ever_moves_a_unit(rng):
    """Of 4000 noisy tables of 10 columns; of columns that are noise alone as well."""
    values, moved = rng.standard_normal(N_ROWS), 0
    counts = np.tile(counts_of(values), (10, 1))
    for std in (0.002, 0.02, 0.1, 0.2):
        for _ in range(1000):
            noisy = counts + std * N_ROWS * rng.standard_normal((10, N_MAGNITUDES))
            moved += np.any(in_own_units(noisy, N_ROWS, std * N_ROWS)[2] != 1)
    assert moved < 20


@pytest.mark.parametrize(
    "far",
    [
        lambda rng: rng.integers(10**12, 10**13, N_ROWS).astype(float),  # EAN
        lambda rng: rng.integers(0, 2**62, N_ROWS).astype(float),  # hashes
        lambda rng: 1.6e18 + 1e16 * rng.uniform(-1, 1, N_ROWS),  # time in ns
        lambda rng: 1e150 * rng.standard_normal(N_ROWS),
        lambda rng: 1e-250 * rng.standard_normal(N_ROWS),
    ],
)
def test_a_far_column_leaves_the_coefficients_of_the_others(columns, rng, far):
    X, y = columns
    coef = [fitted(seed, np.column_stack([X, far(rng)]), y).coef_[:3] for seed in range(3)]
    assert np.abs(np.mean(coef, axis=0) - SLOPES).max() < 0.1


@pytest.mark.parametrize("unit", [1e-250, 1e-15, 1e15, 1e150])
def test_targets_and_columns_that_matter_are_scaled_in_any_unit(columns, unit):
    X, y = columns
    rows = np.column_stack([unit * X[:, 0], X[:, 1:]])
    for model, found in (
        (of_targets := fitted(0, X, unit * y), of_targets.predict(X) / unit),
        (of_columns := fitted(0, rows, y), of_columns.predict(rows)),
    ):
        assert np.var(y - found) < 0.2 * np.var(y)  # 0.16 without privacy
        assert np.isfinite(model.coef_).all()


def test_times_in_nanoseconds_that_matter_are_learnt_from(columns, rng):
    X, y = columns
    days = rng.uniform(0, 365, N_ROWS)
    rows = np.column_stack([X, 1.6e18 + 86400e9 * days])
    target = y + 0.03 * days
    assert fitted(0, rows, target).score(rows, target) > 0.9  # 0.94 without privacy


@pytest.mark.parametrize("centre", [1.6e12, 1.6e18, -1e150, 3e-15])
def test_the_scaler_is_right_far_from_1(rng, centre):
    x = centre * (1 + 0.1 * rng.uniform(-1, 1, (20_000, 1)))
    privacy = skdp.Privacy(noise=skdp.SeededNoise(0))
    scaled = skdp.DPStandardScaler(epsilon=5.0, privacy=privacy).fit_transform(x)
    assert abs(scaled.mean()) < 0.1
    assert scaled.std() == pytest.approx(1.0, rel=0.1)
