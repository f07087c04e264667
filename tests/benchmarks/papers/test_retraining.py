"""Influence by retraining: against a recursion whose influence is known, and on estimators."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss

import skdp
from benchmarks.papers.theory import (
    estimator_trainer,
    influence_by_retraining,
    quadratic_influence,
)
from skdp.solvers import GradientDescent
from skdp.steps import CustomNoise, ExponentialNoise, relative_noise


def descent(rate, sizes):
    """Return a trainer of 30 coordinates of curvature ``rate``, with the given step sizes."""

    def train(factors, seed):
        rng = np.random.default_rng(seed)
        points = np.ones(30)
        for size, factor in zip(sizes, factors, strict=True):
            points = points - size * (rate * points + 0.1 * factor * rng.standard_normal(30))
        return float(rate * points @ points / 2)

    return train


def test_the_exponential_of_a_quadratic_is_found():
    found = influence_by_retraining(descent(0.1, [1.0] * 40), 40, runs=200, factor=3.0)
    exact = quadratic_influence(np.full(30, 0.1), 1.0, 40)
    assert found.slope == pytest.approx(-2 * np.log(0.9), rel=0.15)
    middle = np.exp(exact) * 0.01
    blocks = np.array_split(middle, len(found.influence))
    for mean, error, block in zip(found.influence, found.standard_error, blocks, strict=True):
        assert mean == pytest.approx(block.mean(), abs=5 * error)
    schedule = found.schedule()
    assert isinstance(schedule, ExponentialNoise)
    assert schedule.gamma == pytest.approx(np.exp(-found.slope))


def test_falling_influence_gives_rising_noise():
    sizes = 1 / np.sqrt(np.arange(1, 41))
    found = influence_by_retraining(descent(1e-6, sizes), 40, runs=50, factor=3.0)
    assert found.slope < 0
    assert isinstance(found.schedule(), CustomNoise)
    assert (np.diff(relative_noise(found.schedule(), 40)) > 0).all()


def test_estimators_can_be_retrained(rng):
    """On synthetic rows of the same shape; other steps keep their noise."""
    X = rng.standard_normal((300, 4))
    y = (X[:, 0] + 0.5 * rng.standard_normal(300) > 0).astype(int)
    seen = []

    def loss(model, rows, labels):
        seen.append([record.noise_multiplier for record in model.privacy_.releases])
        return log_loss(labels, model.predict_proba(rows))

    solver = GradientDescent(learning_rate=2.0, momentum=0.0, averaging="last", clip_norm=1.0)
    model = skdp.DPLogisticRegression(classes=[0, 1], solver=solver, epsilon=2.0, scaling="none")
    found = influence_by_retraining(
        estimator_trainer(model, X, y, 12, loss), 12, n_probes=3, runs=8, factor=4.0
    )
    plain = seen[0][0]
    assert len(seen[0]) == 1  # twelve equal releases
    first_block = seen[8]
    np.testing.assert_allclose(first_block, [4 * plain, plain], rtol=1e-3)
    assert found.influence[-1] > found.influence[0]
    assert found.schedule().relative(12).shape == (12,)


@pytest.mark.parametrize("bad", [{"n_probes": 0}, {"n_probes": 9}, {"factor": 1.0}, {"runs": 1}])
def test_bad_designs_are_refused(bad):
    with pytest.raises(ValueError, match="influence_by_retraining"):
        influence_by_retraining(lambda factors, seed: 0.0, 8, **bad)


def test_no_influence_at_all_is_an_error():
    with pytest.raises(ValueError, match="no worse at any step"):
        influence_by_retraining(lambda factors, seed: 1.0, 8)
