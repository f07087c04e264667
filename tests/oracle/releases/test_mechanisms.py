"""Noise is as large as it says, lies on a grid, and is refused where float64 cannot hold it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from skdp._oracle import (
    GaussianNoise,
    GradientSum,
    LaplaceNoise,
    NoisyStatistic,
    Public,
    PublicContext,
    noise_source,
)
from skdp._oracle.noise import SeededSource
from skdp._oracle.releases.mechanisms import Contribution
from skdp._oracle.sources.memory import MemorySource
from skdp.accounting import Adjacency
from skdp.objective import Problem, SquaredError

PUBLIC = Public(50, 3, 1, Adjacency.ZERO_OUT, epsilon=1.0, delta=1e-6, has_intercept=False)
PROBLEM = Problem(SquaredError(), fit_intercept=False)


def gradient_release(clip_norm=1.0):
    return NoisyStatistic(GradientSum(np.zeros((3, 1)), clip_norm), GaussianNoise())


def test_noise_that_cannot_be_told_from_rounding_is_refused():
    with pytest.raises(ValueError, match="too fine to distinguish"):
        gradient_release().std(PublicContext(PUBLIC, PROBLEM, 1e-18))


@pytest.mark.parametrize("mechanism", [GaussianNoise(), LaplaceNoise()])
@pytest.mark.parametrize("bound", [0.0, 5e-324, 1e-300, 1e300, np.inf])
def test_noise_on_a_grid_beyond_float64_is_refused(mechanism, bound):
    """The grid's width would be 0, subnormal or infinite, and noise no longer what is charged."""
    contribution = Contribution(bound, 2.0, size=3, total=bound, order=mechanism.order)
    with pytest.raises(ValueError, match="numbers keep their precision"):
        mechanism.std(contribution, 1.0)


@pytest.mark.parametrize("clip_norm", [1e-100, 1e100])
def test_noise_at_the_limits_of_the_clip_is_as_large_as_it_says(clip_norm, rng):
    X = rng.standard_normal((50, 3))
    rows = MemorySource.of(X, X[:, :1].copy(), constant=0.0)
    context = PublicContext(PUBLIC, PROBLEM, 2.0)
    release = gradient_release(clip_norm)
    answers = [release.answer(rows, context, SeededSource(seed)) for seed in range(200)]
    assert np.std(answers, axis=0) / clip_norm == pytest.approx(2.0, rel=0.2)


def test_noise_on_a_zero_sum_has_the_promised_size():
    """Half the noise, or its variance where the deviation was meant, would fail this."""
    n_coordinates = 20_000
    public = replace(PUBLIC, n_rows=10, n_features=n_coordinates)
    rows = MemorySource.of(np.zeros((10, n_coordinates)), np.zeros((10, 1)), constant=0.0)
    context = PublicContext(public, PROBLEM, 3.0)
    release = NoisyStatistic(GradientSum(np.zeros((n_coordinates, 1)), 2.0), GaussianNoise(1.5))
    answer = release.answer(rows, context, noise_source(None))
    assert release.std(context) == pytest.approx(2.0 * 1.5 * 3.0, rel=1e-5)
    assert release.std(context) >= 2.0 * 1.5 * 3.0
    # a relative error of the deviation has std 1/sqrt(2 * 20000) = 0.005: 8 of these
    assert answer.std() == pytest.approx(release.std(context), rel=0.04)
    assert abs(answer.mean()) < 6 * release.std(context) / n_coordinates**0.5


def test_answers_lie_on_the_grid():
    context = PublicContext(PUBLIC, PROBLEM, 3.0)
    release = gradient_release()
    contribution = release.statistic.contribution(context, PUBLIC.n_rows)
    grid = release.mechanism._grid(contribution, context.scale)
    assert np.log2(grid) == int(np.log2(grid))
    rows = MemorySource.of(np.pi * np.ones((5, 3)), np.ones((5, 1)), constant=0.0)
    answer = release.answer(rows, context, noise_source(None)) / grid
    assert (answer == np.rint(answer)).all()
    # the rounding is paid for: the noise is measured against more than the clipping norm
    assert release.std(context) >= 3.0 * (1.0 + grid * np.sqrt(3))
