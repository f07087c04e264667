"""Penalties: their values, their proximal maps against a generic optimiser, their declarations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skdp.objective import ElasticNet, Unconstrained

pytestmark = pytest.mark.filterwarnings("error")
quick = settings(deadline=None, max_examples=25, database=None)

vectors = arrays(float, 4, elements=st.floats(-5, 5) | st.sampled_from([0.0, 0.7, 1.0]))
steps = st.floats(1e-3, 10)


def test_value_is_the_formula(penalty, strengths, rng):
    w = rng.standard_normal((3, 2))
    l1, l2 = strengths(penalty)
    expected = l1 * np.abs(w).sum() + l2 / 2 * (w**2).sum()
    assert penalty.value(w) == pytest.approx(expected, rel=1e-13)
    assert type(penalty.value(w)) is float
    assert penalty.value(np.zeros(3)) == 0.0


def test_an_elastic_net_joins_the_two():
    w = np.array([3.0, -4.0])
    assert ElasticNet(2.0, 0.25).value(w) == 0.5 * 7 + 1.5 / 2 * 25
    for ratio, same in ((0.0, ElasticNet(2.0)), (1.0, ElasticNet(2.0, 1.0))):
        net = ElasticNet(2.0, ratio)
        assert net.value(w) == same.value(w)
        assert (net.prox(w, 0.3) == same.prox(w, 0.3)).all()
        assert net.strong_convexity == same.strong_convexity
        assert net.smooth == same.smooth


def test_prox_by_hand():
    assert ElasticNet(2.0).prox([3.0, -6.0], 1.0).tolist() == [1.0, -2.0]
    assert ElasticNet(2.0, 1.0).prox([3.0, -6.0, 0.5, -1.0], 0.5).tolist() == [2.0, -5.0, 0.0, 0.0]
    assert ElasticNet(2.0, 0.5).prox([3.0, -0.5], 1.0).tolist() == [1.0, 0.0]
    assert ElasticNet().prox([3.0, -0.5], 1.0).tolist() == [3.0, -0.5]


@pytest.mark.parametrize("step", [0.1, 1.0, 3.0])
def test_prox_against_a_generic_optimiser(penalty, step, minimise, rng):
    for size in (0.3, 1.0, 4.0):
        w = size * rng.standard_normal((2, 2))
        expected = minimise(penalty, Unconstrained(), w, step)
        np.testing.assert_allclose(penalty.prox(w, step), expected, atol=2e-6)


@quick
@given(w=vectors, z=vectors, step=steps)
def test_no_point_beats_the_prox(penalty, w, z, step):
    best = penalty.prox(w, step)

    def objective(point):
        return penalty.value(point) + np.sum((point - w) ** 2) / (2 * step)

    # Strong convexity makes the gap quadratic in the distance from the minimiser.
    growth = (1 / step + penalty.strong_convexity) / 2 * np.sum((z - best) ** 2)
    assert objective(best) + growth <= objective(z) + 1e-9 * (1 + objective(z))


@quick
@given(w=vectors, z=vectors, step=steps)
def test_prox_contracts(penalty, w, z, step):
    gap = np.linalg.norm(penalty.prox(w, step) - penalty.prox(z, step))
    factor = 1 / (1 + penalty.strong_convexity * step)
    assert gap <= factor * np.linalg.norm(w - z) + 1e-12


@quick
@given(a=vectors, b=vectors, t=st.floats(0, 1))
def test_strong_convexity_holds(penalty, a, b, t):
    chord = t * penalty.value(a) + (1 - t) * penalty.value(b)
    dip = penalty.strong_convexity / 2 * t * (1 - t) * np.sum((a - b) ** 2)
    assert penalty.value(t * a + (1 - t) * b) <= chord - dip + 1e-9


def test_strong_convexity_is_the_largest(penalty):
    a, b = np.array([1.0, 2.0]), np.array([3.0, 0.5])  # no change of sign, where |.|_1 is linear
    dip = (penalty.value(a) + penalty.value(b)) / 2 - penalty.value((a + b) / 2)
    assert penalty.strong_convexity == pytest.approx(8 * dip / np.sum((a - b) ** 2), abs=1e-12)


def test_smooth_means_no_kink_at_zero(penalty):
    h = np.array([1e-7, 0.0])
    kink = (penalty.value(h) + penalty.value(-h)) / 1e-7
    assert (kink < 1e-3) == penalty.smooth


def test_gradient_or_a_reason(penalty, rng):
    w, h = rng.standard_normal((3, 2)), 1e-6
    if not penalty.smooth:
        with pytest.raises(ValueError, match=rf"{type(penalty).__name__}\(.*no gradient.*prox"):
            penalty.gradient(w)
        return
    gradient = penalty.gradient(w)
    assert gradient.shape == w.shape
    for i in np.ndindex(w.shape):
        step = np.zeros_like(w)
        step[i] = h
        numeric = (penalty.value(w + step) - penalty.value(w - step)) / (2 * h)
        assert gradient[i] == pytest.approx(numeric, abs=1e-8)


def test_what_the_prox_is_made_of(penalty, strengths):
    l1, _ = strengths(penalty)
    w, step = np.array([3.0, 1.0, -0.2]), 0.5
    out = penalty.prox(w, step)
    parallel = np.allclose(out * w[0], out[0] * w)
    assert parallel == penalty.smooth
    soft = np.sign(w) * np.maximum(np.abs(w) - l1 * step, 0)
    composed = np.allclose(out * soft[0], out[0] * soft)
    assert composed


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_are_left_alone_and_types_kept(penalty, dtype, rng):
    w = rng.standard_normal((3, 2)).astype(dtype)
    kept = w.copy()
    for step in (0.0, 0.4):
        out = penalty.prox(w, step)
        assert (out.dtype, out.shape) == (dtype, w.shape)
        assert not np.shares_memory(out, w)
        exact = penalty.prox(w.astype(np.float64), step)
        np.testing.assert_allclose(out, exact, rtol=1e-6, atol=1e-7)
    assert (penalty.prox(w, 0.0) == w).all()
    if penalty.smooth:
        assert penalty.gradient(w).dtype == dtype
    assert (w == kept).all()


def test_lists_and_integers_become_float64(penalty):
    assert penalty.prox([3, -1], 0.1).dtype == np.float64
    assert penalty.prox(np.array([3, -1]), 0.1).dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extremes(penalty, dtype):
    top = np.finfo(dtype).max
    w = np.array([top, -top, 0.0, 1e-30], dtype=dtype)
    assert np.isfinite(penalty.prox(w, 1.0)).all()
    for step in (1e-300, 1e300):
        out = penalty.prox(w, step)
        assert np.isfinite(out).all()
        assert (np.abs(out) <= np.abs(w)).all()
    value = penalty.value(w.astype(np.float64))
    assert value >= 0  # inf is honest here, nan is not
    assert type(penalty).prox is ElasticNet.prox or penalty.prox(w, 0.0)[0] == top


def test_strengths_of_every_size():
    assert ElasticNet(1e308, 1.0).prox(np.float32([1.0, -2.0]), 10.0).tolist() == [0.0, 0.0]
    assert ElasticNet(1e308).prox([1.0, -2.0], 10.0).tolist() == [0.0, -0.0]
    assert ElasticNet(0.0).value([1e200]) == 0.0
    assert ElasticNet(1e-320, 1.0).prox([1.0], 1.0).tolist() == [1.0]


@pytest.mark.parametrize("step", [-1.0, np.nan, np.inf])
def test_a_bad_step_is_refused(penalty, step):
    with pytest.raises(ValueError, match=rf"{type(penalty).__name__}\(.*step must be finite"):
        penalty.prox([1.0], step)
