"""Step sizes, clipping rules and noise schedules: shapes, closed forms and an optimiser."""

from __future__ import annotations

import numpy as np
import pytest

from skdp.steps import LocalSizes, constant_clip, relative_noise, step_sizes


def test_step_sizes_in_closed_form():
    np.testing.assert_allclose(step_sizes(0.3, 2), [0.3] * 2)
    expected = [0.5 / np.sqrt(3), 0.5 / np.sqrt(4), 0.5 / np.sqrt(5)]
    polynomial = "polynomial", {"initial": 0.5, "a": 2.0}
    np.testing.assert_allclose(step_sizes(polynomial, 3), expected)
    falling = "square_root_decay", {"initial": 0.4, "final": 0.2}
    np.testing.assert_allclose(step_sizes(falling, 4)[[0, -1]], [0.3, 0.2])


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_bad_numbers_are_refused(bad):
    with pytest.raises(ValueError, match=r"learning_rate must .* positive"):
        step_sizes(bad, 3)
    with pytest.raises(ValueError, match=r"clip_norm must .* positive"):
        constant_clip(bad)
    with pytest.raises(ValueError, match="positive, finite"):
        relative_noise([1.0, bad], np.ones(2))
    with pytest.raises(ValueError, match=r"gamma must (lie in \(0, 1\]|be a number)"):
        relative_noise(("exponential", {"gamma": bad}), np.ones(2))


@pytest.mark.parametrize("first", [1e-6, 1.0, 100.0])
def test_local_sizes_find_a_minimum_whose_curvature_is_not_known(first):
    """Of ``exp(x) - 1000 x``, whose curvature is 1 at the start and 1000 at the minimum."""
    point, sizes = np.zeros(1), LocalSizes(first)
    for _ in range(200):
        with np.errstate(over="ignore"):
            gradient = np.exp(np.minimum(point, 20.0)) - 1000.0
        point = point - sizes.next(point, gradient) * gradient
    assert point[0] == pytest.approx(np.log(1000.0), abs=1e-9)


def test_local_sizes_stay_where_points_do():
    sizes = LocalSizes(0.5)
    assert {sizes.next(np.zeros(2), np.zeros(2)) for _ in range(5000)} == {0.5}
