"""Mirror maps: strong convexity, exact steps, and what their bounds promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.objective import L1Ball, Simplex
from skdp.solvers.papers.wang_2017 import Entropy, PNorm, mirror_map

SETS = [L1Ball(2.5), Simplex(1.3)]


def value(mirror, v):
    """The map itself, at a point of the set."""
    if isinstance(mirror, PNorm):
        return mirror._kappa / 2 * np.sum(np.abs(v) ** mirror._q) ** (2 / mirror._q)
    u = v / mirror.unit_norm
    return np.sum(u * np.log(np.maximum(u, 1e-300)))


def slope_at(mirror, v):
    if isinstance(mirror, PNorm):
        return mirror._gradient(v)
    return (np.log(v / mirror.unit_norm) + 1) / mirror.unit_norm


def norm(constraint, v):
    size = constraint.radius if isinstance(constraint, L1Ball) else constraint.total
    return np.abs(v).sum() / size


def inside(constraint, rng, size):
    point = constraint.project(rng.standard_normal(size) * rng.choice([0.1, 1.0, 5.0]))
    if isinstance(constraint, Simplex):
        point = 0.9 * point + 0.1 * constraint.total / size
    return point


@pytest.mark.parametrize("constraint", SETS, ids=str)
@pytest.mark.parametrize("size", [1, 2, 3, 30])
def test_maps_are_strongly_convex_in_the_norm_of_the_set(constraint, size, rng):
    mirror = mirror_map(constraint, size)
    for _ in range(100):
        a, b = inside(constraint, rng, size), inside(constraint, rng, size)
        bregman = value(mirror, a) - value(mirror, b) - slope_at(mirror, b) @ (a - b)
        assert bregman >= norm(constraint, a - b) ** 2 / 2 - 1e-12


@pytest.mark.parametrize("constraint", SETS, ids=str)
def test_reach_and_spread_are_bounds(constraint, rng):
    mirror = mirror_map(constraint, 20)
    start = mirror.start(20)
    assert constraint.contains(start)
    for _ in range(100):
        a, b = inside(constraint, rng, 20), inside(constraint, rng, 20)
        assert np.linalg.norm(a - b) <= mirror.unit_norm * norm(constraint, a - b) + 1e-12
        bregman = value(mirror, a) - value(mirror, start)
        bregman -= slope_at(mirror, start) @ (a - start)
        assert bregman <= mirror.divergence_bound + 1e-9


@pytest.mark.parametrize("constraint", SETS, ids=str)
@given(seed=st.integers(0, 10**6), size=st.sampled_from([1, 2, 5, 40]))
@settings(max_examples=40, deadline=None)
def test_a_step_is_the_minimiser(constraint, seed, size):
    """Variational inequality: no point of the set lies lower, to first order."""
    rng = np.random.default_rng(seed)
    mirror = mirror_map(constraint, size)
    z = mirror.step(inside(constraint, rng, size), 0.1 * rng.standard_normal(size))
    slope = rng.standard_normal(size) * 10.0 ** rng.integers(-2, 2)
    if isinstance(mirror, Entropy):
        slope = np.clip(slope, -3, 3)
    found = mirror.step(z, slope)
    assert constraint.contains(found)
    gradient = slope_at(mirror, found) - slope_at(mirror, z) + slope
    size_of = np.abs(slope_at(mirror, found)).max() + np.abs(slope).max() + 1
    for _ in range(20):
        other = inside(constraint, rng, size)
        assert gradient @ (other - found) >= -1e-7 * size_of


@pytest.mark.parametrize("constraint", SETS, ids=str)
@pytest.mark.parametrize("slope", [0.0, 1e-300, 1e150, -1e150])
def test_extreme_steps_stay_in_the_set(constraint, slope):
    mirror = mirror_map(constraint, 6)
    z = mirror.start(6)
    for _ in range(3):
        z = mirror.step(z, slope * np.arange(6.0))
        assert np.isfinite(z).all()
        assert constraint.contains(z)


@pytest.mark.parametrize("constraint", SETS, ids=str)
def test_width_bounds_the_dual_norm_of_noise(constraint, rng):
    mirror = mirror_map(constraint, 50)
    noise = rng.standard_normal((4000, 50))
    dual = np.abs(noise).max(axis=1)
    assert mirror.unit_norm * dual.mean() <= mirror.width(50)
    assert mirror.width(50) <= 1.5 * mirror.unit_norm * dual.mean()


@pytest.mark.parametrize("steep", [1e3, 1e12, 1e17, 1e200, 1e300])
@pytest.mark.parametrize("constraint", [L1Ball(2.0), Simplex(2.0)], ids=str)
def test_steep_slopes_lead_to_the_farthest_point(constraint, steep):
    mirror = mirror_map(constraint, 3)
    found = mirror.step(mirror.start(3), steep * np.array([0.0, -1.0, 0.0]))
    np.testing.assert_allclose(found, [0, 2, 0], atol=1e-9)
    assert constraint.contains(found)
