"""The hidden run: what it computes, what it costs, and that both fit together."""

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
    run,
    silence,
)
from skdp.accounting import Adjacency, GDPAccountant
from skdp.objective import L2, ElasticNet, L2Ball, NoPenalty
from skdp.oracle import (
    GaussianNoise,
    GradientSum,
    LastIterate,
    NoisyStatistic,
    noise_source,
    smoothness,
)
from skdp.oracle.releases.base import PublicContext


@pytest.fixture
def data(rng):
    return data_for(rng)


# The run is gradient descent.


def test_without_noise_it_is_proximal_gradient_descent(data):
    X, y = data
    release = LastIterate(30, 0.3, CLIP)
    point = release.answer(rows_for(X, y), context_for(scale=0.0), noise_source(0))
    short = X * np.minimum(1, ROW_BOUND / np.linalg.norm(X, axis=1))[:, None]
    w = np.zeros(3)
    for _ in range(30):
        gradients = short * (short @ w - y)[:, None]
        lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
        w = w - 0.3 * (gradients * np.minimum(1, CLIP / lengths)).mean(axis=0)
        w = w / (1 + 0.3 * 0.5)
    np.testing.assert_allclose(point[:, 0], w, atol=1e-12)


def test_with_noise_it_is_the_run_whose_gradients_are_shown(data):
    """Same seed, same noise: up to the grids, which are 2**-30 of the noise."""
    context = context_for(scale=5.0)
    rows = rows_for(*data)
    noise = GaussianNoise(1.5)
    hidden = LastIterate(20, 0.3, CLIP, noise).answer(rows, context, noise_source(1))
    source, w = noise_source(1), np.zeros((3, 1))
    for _ in range(20):
        answer = NoisyStatistic(GradientSum(w, CLIP), noise).answer(rows, context, source)
        w = context.problem.prox(w - 0.3 * answer / N_ROWS, 0.3)
    np.testing.assert_allclose(hidden, w, rtol=1e-6)


def test_single_precision_rows_are_taken_in_double_precision(data):
    X, y = (part.astype(np.float32) for part in data)
    release, context = LastIterate(30, 0.3, CLIP), context_for(scale=0.0)
    single = release.answer(rows_for(X, y, np.float32), context, noise_source(0))
    double = release.answer(rows_for(X, y), context, noise_source(0))
    np.testing.assert_allclose(single, double, rtol=1e-13)


# The map is what the event says it is.


@pytest.mark.parametrize("kind", PROBLEMS)
def test_steps_do_not_move_points_further_apart_than_announced(kind, rng, monkeypatch):
    """Over hostile rows, from pairs of points: the Lipschitz constant and the way to it."""
    problem = PROBLEMS[kind]
    context = context_for(problem)
    step = 2 / smoothness(context.public, problem)
    release = LastIterate(2, step, CLIP)
    event = release.event(context)
    X = rng.standard_normal((N_ROWS, 3)) * np.exp(3 * rng.standard_normal((N_ROWS, 1)))
    X[:4] = [[1e300, -1e300, 1.0], [1e-300, 0, 0], [0, 0, 0], [1e200, 1e-200, 1e100]]
    y = rng.integers(0, 2, N_ROWS).astype(float)
    rows = rows_for(X, y)
    scale = N_ROWS / step
    for _ in range(100):
        apart = np.exp(rng.uniform(-12, 3)) * rng.standard_normal((3, 1))
        start = np.exp(rng.uniform(-5, 3)) * rng.standard_normal((3, 1))
        one = image(monkeypatch, release, rows, context, scale * start)
        other = image(monkeypatch, release, rows, context, scale * (start + apart))
        moved = np.linalg.norm(one - other)
        assert moved <= event.contraction * scale * np.linalg.norm(apart) + 1e-9 * scale


@pytest.mark.parametrize(
    ("penalty", "strength"), [(L2(0.5), 0.5), (ElasticNet(0.8, 0.25), 0.6), (L2(30.0), 30.0)]
)
def test_contraction_is_that_of_the_prox(penalty, strength):
    event = LastIterate(9, 0.25, CLIP).event(context_for(problem_for(penalty)))
    assert event.contraction == pytest.approx(1 / (1 + 0.25 * strength), rel=1e-9)
    assert event.contraction >= 1 / (1 + 0.25 * strength)
    assert (event.n_steps, event.reach) == (9, math.inf)


def test_reach_is_the_diameter_in_units_of_one_records_push():
    problem = problem_for(NoPenalty(), constraint=L2Ball(0.5))
    context = PublicContext(public_for(n_rows=10), problem, 1.0)
    event = LastIterate(1000, 0.1, 5.0, GaussianNoise(16.0)).event(context)
    assert event.contraction == 1.0
    assert event.reach == pytest.approx(1.0 * 10 / (0.1 * 5.0))
    # sensitivity of the mean gradient 0.5, noise 8: the published figure
    assert GDPAccountant().mu(event, Adjacency.ZERO_OUT) == pytest.approx(0.5590169943749475)


def mu_of_the_code(monkeypatch, release, context, first, second):
    """Exact Gaussian-DP parameter of a run that is linear, found by running it.

    Where the map is affine the last point is Gaussian. The distance of its means comes from two
    runs without noise, its variance from one run for every step that is nudged.
    """
    quiet, _ = run(monkeypatch, release, first, context, silence)
    moved = run(monkeypatch, release, second, context, silence)[0] - quiet
    nudge = 1e-3
    responses = [
        run(
            monkeypatch,
            release,
            first,
            context,
            lambda t, shape, at=at: nudge * np.ones(shape) * (t == at),
        )[0]
        - quiet
        for at in range(release.n_steps)
    ]
    step_std = release.std(context) / (release.step_size / N_ROWS)
    deviation = step_std * math.sqrt(sum(float(item[0, 0] / nudge) ** 2 for item in responses))
    return abs(float(moved[0, 0])) / deviation


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize(("strength", "step"), [(0.5, 0.3), (3.0, 0.49), (0.05, 0.05)])
def test_cost_is_exact_where_the_run_is_linear(monkeypatch, adjacency, strength, step):
    """Null rows but for one record whose residual is always clipped: the worst case there is."""
    context = context_for(problem_for(L2(strength)), scale=4.0, n_features=1, adjacency=adjacency)
    X, y = np.zeros((N_ROWS, 1)), np.zeros(N_ROWS)
    there, other = X.copy(), X.copy()
    there[0] = 1.0
    target = y.copy()
    target[0] = 1e9
    other[0] = -1.0 if adjacency is Adjacency.REPLACE_ONE else 0.0
    release = LastIterate(40, step, CLIP)
    found = mu_of_the_code(
        monkeypatch, release, context, rows_for(there, target), rows_for(other, target)
    )
    promised = GDPAccountant().mu(release.event(context).scaled(context.scale), adjacency)
    assert found <= promised
    assert found == pytest.approx(promised, rel=1e-6)


def test_cost_covers_rows_that_add_curvature(monkeypatch, rng):
    """With rows the same record costs less, as the loss contracts, too."""
    context = context_for(problem_for(L2(0.05)), scale=4.0, n_features=1)
    X, y = rng.uniform(-2, 2, (N_ROWS, 1)), np.zeros(N_ROWS)
    other = X.copy()
    X[0], y[0], other[0] = 1.0, 1e9, 0.0
    release = LastIterate(40, 2 / smoothness(context.public, context.problem), 100.0)
    found = mu_of_the_code(monkeypatch, release, context, rows_for(X, y), rows_for(other, y))
    promised = GDPAccountant().mu(release.event(context).scaled(context.scale), Adjacency.ZERO_OUT)
    assert 0 < found < promised


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("kind", PROBLEMS)
def test_neighbouring_runs_stay_as_close_as_the_recursion_says(kind, adjacency, monkeypatch, rng):
    problem = PROBLEMS[kind]
    context = context_for(problem, adjacency=adjacency)
    release = LastIterate(25, 2 / smoothness(context.public, problem), CLIP)
    event = release.event(context)
    X, y = rng.standard_normal((N_ROWS, 3)), rng.integers(0, 2, N_ROWS).astype(float)
    Z, t = X.copy(), y.copy()
    X[0], y[0] = 1e5, 1.0
    Z[0], t[0] = (0.0, 0.0) if adjacency is Adjacency.ZERO_OUT else (-1e5, 1.0)
    draws = 10 * rng.standard_normal((25, 3, 1))
    hidden = [
        run(monkeypatch, release, rows_for(*side), context, lambda step, shape: draws[step])[1]
        for side in ((X, y), (Z, t))
    ]
    sensitivity = release._contribution(context).bound * event.sensitivity(adjacency)
    bound = 0.0
    for one, other in zip(*hidden, strict=True):
        bound = event.contraction * bound + sensitivity
        assert np.linalg.norm(one - other) <= bound
    assert np.linalg.norm(hidden[0][0] - hidden[1][0]) > 0.5 * CLIP  # the record is felt
