"""Constraints: projections against the variational inequality and a generic optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skdp.objective import Box, ElasticNet, L1Ball, L2Ball, Simplex, Unconstrained

pytestmark = pytest.mark.filterwarnings("error")
quick = settings(deadline=None, max_examples=30, database=None)

ordinary = st.floats(-5, 5) | st.sampled_from([0.0, -0.0, 0.5, 1.0, 1.7, -1.0])
hostile = st.sampled_from([0.0, 1.0, -1.0, 1e-310, 1e16, -1e16, 1e300, -1.7e308]) | st.floats(
    allow_nan=False, allow_infinity=False
)


@st.composite
def points(draw, elements=ordinary, n=1):
    """Arrays of one shape: of 1 to 7 entries, in one or two dimensions."""
    shape = draw(st.sampled_from([(1,), (1, 1), (2,), (5,), (3, 2), (7,)]))
    found = [draw(arrays(float, shape, elements=elements)) for _ in range(n)]
    return found if n > 1 else found[0]


def _size(constraint):
    """Largest finite number that the set's definition holds."""
    given = [v for v in vars(constraint).values() if np.isfinite(v)]
    return max([1.0, *map(abs, given)])


def _largest_product(constraint, direction):
    """Supremum of <direction, z> over z in the set."""
    d = direction.ravel()
    if isinstance(constraint, Unconstrained):
        return 0.0 if not d.any() else np.inf
    if isinstance(constraint, L2Ball):
        return constraint.radius * np.linalg.norm(d)
    if isinstance(constraint, L1Ball):
        return constraint.radius * np.abs(d).max()
    if isinstance(constraint, Simplex):
        return constraint.total * d.max()
    d = d[d != 0]
    return np.maximum(constraint.low * d, constraint.high * d).sum()


# ---- the projection


@pytest.mark.parametrize("make", [L2Ball, L1Ball, Simplex, lambda size: Box(-size, size)])
def test_sets_of_any_size(make):
    """Projecting goes along with a change of unit, and what comes out lies in the set."""
    for size in [1e-50, 1e-25, 1e25, 1e50]:
        for scale in [0.0, 1e-300, 1e-150, 1.0, 1e150, 1e300]:
            w, unit = np.array([0.9, -1.0, 0.3, 0.0]), make(1.0)
            found = make(size).project(scale * w)
            assert np.isfinite(found).all()
            assert unit.contains(found / size)
            if 1e-10 < scale / size < 1e10:
                np.testing.assert_allclose(found / size, unit.project(scale / size * w), atol=1e-12)


@pytest.mark.parametrize("make", [L2Ball, L1Ball, Simplex])
@pytest.mark.parametrize("size", [9e-51, 1.1e50])
def test_sets_beyond_precision_are_refused(make, size):
    """Squares of their points, as clipping needs them, would lose precision."""
    with pytest.raises(ValueError, match=r"from 1e-50 to 1e\+50, got"):
        make(size).check()


@quick
@given(w=points(hostile))
def test_the_projection_is_feasible_and_nearest(constraint, w):
    # p is nearest if and only if <w - p, z - p> <= 0 for every z in the set.
    p = constraint.project(w)
    assert constraint.contains(p)
    with np.errstate(over="ignore"):
        scale = np.abs(w).max() / 2 + np.abs(p).max() / 2
        direction = (w / 2 - p / 2) / (scale or 1.0)
    slack = 1e-9 * _size(constraint) * w.size
    if np.abs(direction).max() * (scale or 1.0) <= 1e-13 * _size(constraint):
        return  # inside, up to rounding
    inside = np.sum(direction * p)
    assert _largest_product(constraint, direction) - inside <= slack


@quick
@given(wz=points(n=2))
def test_the_variational_inequality_for_feasible_points(constraint, wz):
    w, z = wz
    p, z = constraint.project(w), constraint.project(z)
    assert np.sum((w - p) * (z - p)) <= 1e-9


@pytest.mark.parametrize("size", [0.2, 1.0, 5.0])
def test_against_a_generic_optimiser(constraint, size, minimise, rng):
    for shape in ((1,), (3,), (2, 2)):
        w = size * rng.standard_normal(shape)
        expected = minimise(ElasticNet(), constraint, w, 1.0)
        np.testing.assert_allclose(constraint.project(w), expected, atol=5e-6)


def test_projections_by_hand():
    assert L2Ball(1.0).project([0.0, -5.0]).tolist() == [0.0, -1.0]
    assert L1Ball(1.0).project([2.0, -1.5, 0.1]).tolist() == [0.75, -0.25, 0.0]
    assert Box(-1.0, 2.0).project([3.0, -4.0, 0.5]).tolist() == [2.0, -1.0, 0.5]
    assert Simplex().project([0.75, 0.5, -3.0]).tolist() == [0.625, 0.375, 0.0]
    assert Unconstrained().project([1e9]).tolist() == [1e9]


def test_huge_entries_do_not_swallow_the_set():
    assert Simplex(1.0).project([1e16, 0.0]).tolist() == [1.0, 0.0]
    assert L1Ball(1.0).project([-1e16, 1e3]).tolist() == [-1.0, 0.0]
    assert Simplex(1.0).project([1e300, 1e300, -1.7e308]).tolist() == [0.5, 0.5, 0.0]
    np.testing.assert_allclose(L2Ball(5.0).project([1.2e308, -1.6e308]), [3.0, -4.0])
    np.testing.assert_allclose(L2Ball(1e-300).project([3e-300, 4e-300]), [6e-301, 8e-301])


def test_no_coefficients(constraint):
    if isinstance(constraint, Simplex):
        with pytest.raises(ValueError, match=r"Simplex.*without coefficients"):
            constraint.project(np.empty((0, 2)))
    else:
        assert constraint.project(np.empty((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("ball", [L1Ball(40.0), Simplex(40.0)])
def test_many_coefficients_against_bisection(ball, rng):
    w = rng.standard_normal(3000)
    sizes = np.abs(w) if isinstance(ball, L1Ball) else w
    low, high = -40.0, sizes.max()
    for _ in range(200):
        level = (low + high) / 2
        low, high = (level, high) if np.maximum(sizes - level, 0).sum() > 40 else (low, level)
    expected = np.maximum(sizes - level, 0) * (np.sign(w) if isinstance(ball, L1Ball) else 1)
    np.testing.assert_allclose(ball.project(w), expected, atol=1e-12)


def test_a_point_that_is_no_number_stays_none(constraint):
    # A divergence must not come back as a plausible point.
    assert np.isnan(constraint.project([np.nan, 1.0])).any()


# ---- membership


@quick
@given(w=points(), push=st.floats(1e-6, 1e3))
def test_points_outside_are_not_contained(proper_set, w, push):
    p = proper_set.project(w)
    assume(np.linalg.norm(w - p) >= 1e-6)
    outside = p + (w - p) / np.linalg.norm(w - p) * push * _size(proper_set)
    assert not proper_set.contains(outside)
    assert not proper_set.contains(outside, tol=0.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nothing_infinite_is_contained(constraint, bad):
    assert not constraint.contains([0.5, bad])


def test_tolerance_is_relative():
    for constraint, edge, outward in (
        (L2Ball(10.0), np.array([6.0, 8.0]), 1),
        (L1Ball(10.0), np.array([6.0, -4.0]), 1),
        (Box(-10.0, 10.0), np.array([10.0, -10.0]), 1),
        (Box(10.0, 20.0), np.array([10.0, 15.0]), -1),
        (Box(10.0, 20.0), np.array([20.0, 15.0]), 1),
        (Box(-20.0, -10.0), np.array([-10.0, -15.0]), -1),
        (Box(-20.0, -10.0), np.array([-20.0, -15.0]), 1),
        (Simplex(10.0), np.array([4.0, 6.0]), 1),
        (Simplex(10.0), np.array([4.0, 6.0]), -1),
    ):
        beyond = edge * (1 + outward * 1e-6)
        assert constraint.contains(edge, tol=0.0)
        assert not constraint.contains(beyond, tol=0.9e-6)
        assert constraint.contains(beyond, tol=1.1e-6)


# ---- arrays


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_are_left_alone_and_types_kept(constraint, dtype, rng):
    for size in (0.1, 4.0):
        w = (size * rng.standard_normal((3, 2))).astype(dtype)
        kept = w.copy()
        p = constraint.project(w)
        assert (p.dtype, p.shape) == (dtype, w.shape)
        assert not np.shares_memory(p, w)
        assert (w == kept).all()
        assert constraint.contains(p, tol=1e-6)
        exact = constraint.project(w.astype(np.float64))
        np.testing.assert_allclose(p, exact, rtol=1e-5, atol=1e-6)


def test_float32_at_its_edges(constraint):
    w = np.array([3e38, -3e38, 0.0], dtype=np.float32)
    p = constraint.project(w)
    assert p.dtype == np.float32
    assert constraint.contains(p, tol=1e-6)
