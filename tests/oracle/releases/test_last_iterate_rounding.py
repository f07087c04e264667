"""Rounding of the hidden run: charged for, and within its bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hidden_runs import (
    CLIP,
    N_ROWS,
    PROBLEMS,
    ROW_BOUND,
    context_for,
    data_for,
    image,
    problem_for,
    public_for,
    rows_for,
)
from skdp.objective import L2, Logistic
from skdp.oracle import GradientSum, LastIterate, noise_source
from skdp.oracle.releases.base import PublicContext
from skdp.oracle.sources.memory import MemorySource


@pytest.fixture
def data(rng):
    return data_for(rng)


def test_both_roundings_are_charged():
    """That of the sum by the mechanism; that of the noise, for the steps that stay hidden, here."""
    context = context_for(scale=5.0)
    release = LastIterate(30, 0.3, CLIP)
    contribution = release._contribution(context)
    plain = GradientSum(np.zeros((3, 1)), CLIP).contribution(context, N_ROWS)
    grid = release.mechanism._grid(contribution, context.scale)
    rounding = release._rounding(context, release._ball(context).radius)
    assert contribution.bound >= plain.bound + grid * math.sqrt(3) + rounding
    assert contribution.bound <= CLIP * (1 + 1e-6)
    rate = 0.3 / N_ROWS
    assert release.std(context) / rate >= 5.0 * (CLIP + 2 * grid * math.sqrt(3))


@pytest.mark.parametrize(("row_bound", "scale"), [(ROW_BOUND, 5.0), (1e-6, 1e4)])
def test_rounding_of_the_map_is_within_its_bound(monkeypatch, rng, row_bound, scale):
    """Against eighty-bit numbers, at points as far out as there can be.

    First margins make for most of it, then the points themselves.
    """
    if np.finfo(np.longdouble).nmant < 60:
        pytest.skip("no extended precision here")
    n_rows, step = 3000, 0.2
    X, y = rng.standard_normal((n_rows, 3)) / 2, rng.standard_normal(n_rows)
    problem = problem_for(loss=Logistic())
    context = PublicContext(public_for(n_rows=n_rows, row_bound=row_bound), problem, scale)
    release = LastIterate(2, step, CLIP)
    longest = release._ball(context).radius
    rows = MemorySource.of(X, y.reshape(-1, 1), None, row_bound, 0.0)
    worst = 0.0
    for _ in range(50):
        w = rng.standard_normal((3, 1))
        w *= 0.9 * longest / np.linalg.norm(w)
        first = -w * n_rows / step
        computed = image(monkeypatch, release, rows, context, first)
        start = first.astype(np.longdouble)
        rate = np.longdouble(step / n_rows)
        point = -rate * start / (1 + np.longdouble(step) * np.longdouble(0.5))
        long = X.astype(np.longdouble)
        norms = np.sqrt((long**2).sum(axis=1, keepdims=True))
        shrunk = long * np.minimum(1, row_bound / norms)
        residuals = 1 / (1 + np.exp(-(shrunk @ point))) - y.astype(np.longdouble)[:, None]
        limits = CLIP / np.minimum(norms, row_bound)
        exact = shrunk.T @ np.clip(residuals, -limits, limits) - point / rate
        worst = max(worst, float(np.linalg.norm((computed - exact).astype(float))))
    plain = GradientSum(np.zeros((3, 1)), CLIP).contribution(context, n_rows)
    charged = release._rounding(context, longest) + plain.bound - CLIP
    assert 0 < worst < charged / 2


def test_rounding_of_points_alone_is_within_its_bound(monkeypatch, rng):
    """Null rows and a tiny bound on them: what is left is the rounding of points."""
    if np.finfo(np.longdouble).nmant < 60:
        pytest.skip("no extended precision here")
    context = context_for(scale=1e4, row_bound=1e-6)
    release = LastIterate(2, 0.3, CLIP)
    rows = MemorySource.of(np.zeros((N_ROWS, 3)), np.zeros((N_ROWS, 1)), None, 1e-6, 0.0)
    longest = release._ball(context).radius
    worst = 0.0
    for _ in range(50):
        first = rng.standard_normal((3, 1))
        first *= 0.9 * longest * N_ROWS / 0.3 / np.linalg.norm(first)
        exact = first.astype(np.longdouble) / (1 + np.longdouble(0.3) * np.longdouble(0.5))
        error = image(monkeypatch, release, rows, context, first) - exact
        worst = max(worst, float(np.linalg.norm(error.astype(float))))
    assert 0 < worst < release._rounding(context, longest) / 2


def test_rounding_of_margins_grows_with_the_rows():
    """A margin is a sum of d products: off by d units at most, for each row, times the row."""
    release = LastIterate(2, 1e-12, CLIP)
    for n_rows in (40, 4000):
        context = PublicContext(public_for(n_rows=n_rows, row_bound=1e6), problem_for(), 1.0)
        without = PublicContext(public_for(n_rows=n_rows, row_bound=1e-6), problem_for(), 1.0)
        found = release._rounding(context, 1e20) - release._rounding(without, 1e20)
        # of two runs; unit roundoff, rows, curvature 1, squared norm, distance
        assert found >= 2 * 3 * 2.0**-53 * n_rows * 1e12 * 1e20


def test_points_lie_on_the_grid_of_the_noise(data):
    """Noise on the gradient alone would leave the low bits of the point before, which tell it."""
    context = context_for(scale=5.0)
    release = LastIterate(4, 0.25, CLIP)
    grid = release.mechanism._grid(release._contribution(context), context.scale)
    for seed in range(5):
        point = release.answer(rows_for(*data), context, noise_source(seed))
        steps = point * (1 + 0.25 * 0.5) / (0.25 / N_ROWS) / grid
        assert np.abs(steps).max() > 1e6
        np.testing.assert_allclose(steps, np.rint(steps), rtol=0, atol=1e-4)


def test_ball_is_out_of_reach(data):
    for problem in (problem_for(), problem_for(L2(1e-9)), PROBLEMS["simplex"]):
        context = context_for(problem, scale=50.0)
        release = LastIterate(50, 0.3, CLIP)
        radius = release._ball(context).radius
        point = release.answer(rows_for(*data), context, noise_source(3))
        assert np.linalg.norm(point) < radius / 2


def test_so_much_noise_that_its_rounding_counts_is_refused():
    with pytest.raises(ValueError, match="needs less noise than"):
        LastIterate(5, 0.3, CLIP).std(context_for(scale=1e10))
