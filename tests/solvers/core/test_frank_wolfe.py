"""The solver "frank_wolfe", and the private selection of a vertex that it requests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

import skdp
from skdp._oracle import GaussianNoise, NoisyStatistic, NotAudited, Public, VertexSelection
from skdp._oracle.noise import SystemSource
from skdp._oracle.releases import base, gradients
from skdp._oracle.releases.gradients import GradientSum
from skdp._oracle.sources.memory import MemorySource
from skdp.accounting import Adjacency, ApproximateDP, Composed, Laplace, NoisyMaximum, price
from skdp.objective import ElasticNet, L1Ball, Problem, SquaredError

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE


def context_for(scale, n_features=3, penalty=None):
    public = Public(20, n_features, 1, ZERO_OUT, 1.0, 0.0, has_intercept=False, row_bound=20.0)
    problem = Problem(SquaredError(), penalty or ElasticNet(0.1), L1Ball(), fit_intercept=False)
    return base.PublicContext(public, problem, scale)


def source_of(X, y):
    return MemorySource.of(X, np.asarray(y, float).reshape(-1, 1), row_bound=20.0, constant=0.0)


def answers(X, y, context, n_draws, clip_norm=0.5):
    source, noise = source_of(X, y), SystemSource()
    release = VertexSelection(np.zeros((X.shape[1], 1)), clip_norm)
    return np.array([release.answer(source, context, noise).ravel() for _ in range(n_draws)])


def test_a_winner_with_more_noise_wins_on_every_neighbour(rng):
    """The step of the proof: twice the sensitivity more is enough, with ties; once is not."""
    fails = 0
    for _ in range(3000):
        k, r = rng.integers(-3, 4, 4), rng.integers(-3, 4, 4)
        neighbour = k + rng.integers(-2, 3, 4)
        won = gradients._vertex(k + r)
        more = gradients._vertex(neighbour + r + 4 * won)
        np.testing.assert_array_equal(more, won)
        fails += (gradients._vertex(neighbour + r + 2 * won) != won).any()
    assert fails > 100


def test_probabilities_of_answers_change_by_no_more_than_epsilon():
    """And by nearly as much: the record moves one entry down and those that lead up."""
    X, y = np.tile([0.0, -0.075, -0.075], (20, 1)), np.ones(20)
    there, other = X.copy(), X.copy()
    there[0], other[0] = [9.0, -9.0, -9.0], 0.0  # clipped to 0.5 in every entry
    scale, n = 2.0, 6000
    assert NoisyMaximum(scale).pure_epsilon(ZERO_OUT) == 1.0
    found = []
    for data in (there, other):
        drawn = answers(data, y, context_for(scale), n)
        assert (np.abs(drawn).sum(axis=1) == 1).all()
        found.append(np.concatenate([(drawn == 1).mean(axis=0), (drawn == -1).mean(axis=0)]))
    ratios = np.abs(np.log(found[0] / found[1]))
    error = 5 * np.sqrt((1 / found[0] + 1 / found[1]) / n)
    assert (ratios <= 1.0 + error).all()
    assert ratios.max() > 0.7


def test_without_noise_it_is_the_steepest_entry_of_the_objective(rng):
    X, y = rng.standard_normal((20, 3)), rng.standard_normal(20)
    source, point = source_of(X, y), np.array([[0.5], [0.0], [-30.0]])
    release = VertexSelection(point, 1e9)
    gradient = X.T @ (X @ point.ravel() - y) + 20 * 0.1 * point.ravel()
    expected = np.zeros(3)
    steepest = np.argmax(np.abs(gradient))
    expected[steepest] = np.sign(gradient[steepest])
    answer = release.answer(source, context_for(0.0), SystemSource())
    np.testing.assert_array_equal(answer.ravel(), expected)


def test_no_record_moves_an_entry_by_more_than_the_bound(rng):
    """By all of it, if its residual is large, and by what its gradient is, if that is small."""
    context, zeros = context_for(1.0), np.zeros((3, 1))
    for row, target in [([3.0, -1.0, 0.5], 1e6), ([1e-3, 0.0, -9.0], -4.0), ([0.2, 0.1, 0], 0.3)]:
        statistic = GradientSum(zeros, 0.5, math.inf)
        rows = source_of(np.array([row]), [target])
        gradient = -target * np.array(row)
        gradient *= min(1.0, 0.5 / np.abs(gradient).max())
        total = statistic.total(rows, context).ravel()
        np.testing.assert_allclose(total, gradient, rtol=1e-14)
        assert np.abs(total).max() <= statistic.contribution(context, 1).bound


def test_sums_themselves_are_never_answered():
    """Neither with the noise of a selection, which is charged for a place only, nor with other."""
    statistic, hidden = GradientSum(np.zeros((3, 1)), 0.5, math.inf), gradients._HiddenNoise()
    for part in NoisyStatistic(statistic, hidden).parts()[1:2]:
        with pytest.raises(NotAudited):
            base.require_audited(part)

    class Changing(int):
        """It could be 1 where the noise is drawn, and 2 where gradients are clipped."""

    with pytest.raises(ValueError, match="order must be"):
        GradientSum(np.zeros((3, 1)), 0.5, Changing(1))
    with pytest.raises(ValueError, match="bounded in the Linf norm"):
        NoisyStatistic(statistic, GaussianNoise()).std(context_for(1.0))


def test_no_accountant_takes_a_selection_for_laplace_noise():
    """Randomised response of the same epsilon is the costliest of all pure mechanisms."""
    for adjacency, multiplier in [(ZERO_OUT, 40.0), (REPLACE_ONE, 80.0)]:
        plan = Composed(((NoisyMaximum(multiplier), 50),))
        assert price(plan, 0.0, adjacency) == (pytest.approx(2.5), "pure")
        laplace = Composed(((Laplace(multiplier / 2), 50),))
        response = Composed(((ApproximateDP(2.5 / 50), 50),))
        cost = price(plan, 1e-6, adjacency)[0]
        assert cost == price(response, 1e-6, adjacency)[0]
        assert cost > price(laplace, 1e-6, adjacency)[0] * (1 + 1e-3)


def test_without_noise_it_approaches_the_minimum_on_the_ball(rng):
    X = rng.standard_normal((300, 5))
    y = X @ np.array([1.0, -0.5, 0.25, 0.0, 0.5]) + 0.1 * rng.standard_normal(300)
    asked = {"constraint": skdp.objective.L1Ball(1.0), "fit_intercept": False, "scaling": "none"}
    with pytest.warns(skdp.PrivacyWarning):
        model = skdp.DPRidge(alpha=30.0, epsilon=math.inf, solver="frank_wolfe", **asked).fit(X, y)

    def objective(w):
        return np.sum((X @ w - y) ** 2) / 2 + 15.0 * w @ w

    split = minimize(
        lambda v: objective(v[:5] - v[5:]),
        np.full(10, 0.1),
        bounds=[(0, 1)] * 10,
        constraints={"type": "ineq", "fun": lambda v: 1 - v.sum()},
    )
    steps = model.n_iter_
    curve = 4 * np.linalg.eigvalsh(X.T @ X + 30 * np.eye(5))[-1]
    excess = objective(model.coef_) - split.fun
    assert -1e-6 * split.fun <= excess <= 2 * curve / (steps + 2)  # Jaggi 2013, Thm 1


def test_with_delta_0_it_finds_few_of_many_columns(rng):
    """Where Laplace noise on every entry of a gradient leaves nothing."""
    X = rng.standard_normal((5000, 300))
    y = 0.8 * X[:, 7] - 0.4 * X[:, 40] + 0.3 * rng.standard_normal(5000)
    scores = {}
    for solver in ("frank_wolfe", "gd"):
        model = skdp.DPLinearRegression(
            epsilon=3.0,
            delta=0.0,
            solver=solver,
            constraint=skdp.objective.L1Ball(1.2),
            fit_intercept=False,
            scaling="none",
            privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
        ).fit(X, y)
        scores[solver] = model.score(X, y)
    assert scores["frank_wolfe"] > 0.6
    assert scores["gd"] < 0.2
