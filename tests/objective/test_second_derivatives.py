"""Second derivatives along a line of margins: finite differences, formulas, and the extremes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skdp.objective import (
    Huber,
    Logistic,
    Multinomial,
    SmoothedHinge,
    SmoothedPinball,
    SquaredError,
    TweedieLog,
)

pytestmark = pytest.mark.filterwarnings("error")

SMOOTH = [
    SquaredError(),
    Logistic(),
    Multinomial(2),
    Multinomial(5),
    SmoothedHinge(3, 0.5),
    SmoothedPinball((0.1, 0.5, 0.9), 0.5),
    TweedieLog(),
    TweedieLog(1.5, unit=0.5, base=1.0),
    TweedieLog(2.0),
]
smooth = pytest.mark.parametrize("smooth_loss", SMOOTH, ids=repr)


def lines(loss, n, rng, size=3.0):
    """Margins, and directions of the same shape."""
    shape = n, loss.n_outputs or 3
    return size * rng.standard_normal(shape), rng.standard_normal(shape)


def targets(loss, n, rng):
    if isinstance(loss, Multinomial):
        return np.arange(n) % loss.n_classes
    return (rng.random((n, loss.n_outputs or 3)) > 0.5).astype(float) + (loss.link == "log")


@smooth
@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_it_is_the_derivative_of_the_residual_along_the_line(smooth_loss, rng, size):
    m, along = lines(smooth_loss, 60, rng, size)
    y, h = targets(smooth_loss, 60, rng), 1e-5
    ahead, behind = (smooth_loss.residual(m + s * h * along, y) for s in (1, -1))
    numeric = np.sum((ahead - behind) * along, axis=1) / (2 * h)
    found = smooth_loss.second_derivative_along(m, along, y)
    np.testing.assert_allclose(found, numeric, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("separable", [loss for loss in SMOOTH if loss.separable], ids=repr)
def test_outputs_of_a_separable_loss_add_up(separable, rng):
    m, along = lines(separable, 40, rng)
    y = targets(separable, 40, rng)
    expected = (separable.second_derivative(m, y) * along**2).sum(axis=1)
    np.testing.assert_allclose(separable.second_derivative_along(m, along, y), expected, rtol=1e-13)


def test_the_multinomial_one_is_that_of_its_hessian(rng):
    loss = Multinomial(5)
    m, along = lines(loss, 40, rng)
    y = targets(loss, 40, rng)
    p = loss.residual(m, np.zeros(40, dtype=int)) + np.eye(5)[0]
    hessians = np.einsum("ij,jk->ijk", p, np.eye(5)) - np.einsum("ij,ik->ijk", p, p)
    expected = np.einsum("ij,ijk,ik->i", along, hessians, along)
    np.testing.assert_allclose(loss.second_derivative_along(m, along, y), expected, atol=1e-14)


@smooth
def test_float32_stays_float32_and_arguments_stay_what_they_are(smooth_loss, rng):
    m, along = lines(smooth_loss, 60, rng)
    y = targets(smooth_loss, 60, rng)
    m32, along32 = m.astype(np.float32), along.astype(np.float32)
    kept = m32.copy(), along32.copy()
    found = smooth_loss.second_derivative_along(m32, along32, y)
    assert found.dtype == np.float32
    exact = smooth_loss.second_derivative_along(m32.astype(float), along32.astype(float), y)
    np.testing.assert_allclose(found, exact, rtol=2e-5, atol=2e-6)
    assert (m32 == kept[0]).all()
    assert (along32 == kept[1]).all()


EDGES = [0.0, 1.0, 40.0, 745.2, 1e30, 1e154, 1.7e308]
huge = st.sampled_from(EDGES + [-edge for edge in EDGES]) | st.floats(-1e300, 1e300)


@smooth
@settings(deadline=None, max_examples=30, database=None)
@given(data=st.data())
def test_it_is_between_0_and_the_curvature_at_any_margin(smooth_loss, data):
    shape = 6, smooth_loss.n_outputs or 3
    m = data.draw(arrays(float, shape, elements=huge))
    along = data.draw(arrays(float, shape, elements=st.floats(-1e3, 1e3)))
    y = targets(smooth_loss, 6, np.random.default_rng(0))
    found = smooth_loss.second_derivative_along(m, along, y)
    assert (found >= 0).all()
    most = smooth_loss.curvature * np.sum(along**2, axis=1)
    assert (found <= most * (1 + 1e-12) + 1e-300).all()
    # Far along the line a square may overflow, silently.
    smooth_loss.second_derivative_along(m, 1e300 * np.sign(along), y)


def test_a_kinked_loss_has_none():
    with pytest.raises(ValueError, match="huber"):
        Huber().second_derivative_along(np.zeros((2, 1)), np.ones((2, 1)), np.ones((2, 1)))
