"""Momentum and averaging against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdp.steps import MOMENTA, IterateAverage, Momentum


def test_averaged_gradient_is_the_bias_corrected_mean(rng):
    gradients = rng.standard_normal((6, 3))
    direction = Momentum("averaged", 0.7).start()
    for t, gradient in enumerate(gradients, start=1):
        weights = 0.3 * 0.7 ** np.arange(t - 1, -1, -1)
        expected = weights @ gradients[:t] / (1 - 0.7**t)
        np.testing.assert_allclose(direction(gradient), expected)


def test_heavy_ball_is_polyaks(rng):
    """w_next = w - a g + beta (w - w_previous), with a = (1 - beta) eta."""
    gradients, beta, eta = rng.standard_normal((6, 2)), 0.8, 0.5
    direction = Momentum("heavy_ball", beta).start()
    ours = np.zeros(2)
    before, now = np.zeros(2), np.zeros(2)
    for gradient in gradients:
        ours = ours - eta * direction(gradient)
        before, now = now, now - (1 - beta) * eta * gradient + beta * (now - before)
        np.testing.assert_allclose(ours, now)


@pytest.mark.parametrize("kind", MOMENTA)
def test_a_run_starts_without_the_past_of_another(kind, rng):
    momentum, (first, second) = Momentum.of((kind, {"beta": 0.8})), rng.standard_normal((2, 4))
    momentum.start()(first)
    expected = Momentum(kind, 0.8).start()(second)
    np.testing.assert_array_equal(momentum.start()(second), expected)


def test_momentum_is_checked_when_it_is_used():
    for given in (1.0, -0.1, ("heavy_ball", {"beta": 1.0}), math.nan):
        with pytest.raises(ValueError, match="momentum must"):
            Momentum.of(given)
    for given in (None, True, "fast", [0.5], np.array([0.5])):
        with pytest.raises(ValueError, match="momentum must be 'auto', a number"):
            Momentum.of(given)
    with pytest.raises(ValueError, match="momentum: beta must be a number, got 'much'"):
        Momentum.of(("averaged", {"beta": "much"}))
    with pytest.raises(ValueError, match="'averaged' takes beta, got 'gamma'"):
        Momentum.of(("averaged", {"gamma": 0.5}))


@pytest.mark.parametrize("n_steps", [1, 2, 7, 10])
def test_averages(n_steps, rng):
    start, *iterates = rng.standard_normal((n_steps + 1, 2))

    def result(kind, **parameters):
        average = IterateAverage(kind, n_steps, np.random.default_rng(0), **parameters)
        for iterate in (start, *iterates):
            average.add(iterate)
        return average.result()

    np.testing.assert_array_equal(result("last"), iterates[-1])
    np.testing.assert_allclose(result("tail"), np.mean(iterates[n_steps // 2 :], axis=0))
    np.testing.assert_allclose(result("tail", fraction=1.0), np.mean(iterates, axis=0))
    assert any((result("random") == point).all() for point in (start, *iterates[:-1]))


def test_random_is_uniform():
    counts = np.zeros(4)
    coins = np.random.default_rng(0)
    for _ in range(4000):
        average = IterateAverage("random", 4, coins)
        for t in range(4):
            average.add(np.array([t]))
        counts[average.result()[0]] += 1
    assert np.abs(counts - 1000).max() < 6 * np.sqrt(750)
