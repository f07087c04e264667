"""Samplers: what is drawn, and what may not be asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from skdp._oracle import FixedSize, Poisson, Public
from skdp._oracle.sources.memory import MemorySource
from skdp.accounting import (
    Adjacency,
    FixedSizeSampled,
    Gaussian,
    PoissonSampled,
)

N = 103
PUBLIC = Public(
    n_rows=N, n_features=1, n_outputs=1, adjacency=Adjacency.ZERO_OUT, epsilon=1.0, delta=1e-6
)


@pytest.fixture
def rows():
    return MemorySource.of(np.arange(float(N))[:, None], np.zeros((N, 1)))


def drawn(sampler, rows, source):
    return sampler.draw(rows, source).records.X[:, 0].astype(int).tolist()


def test_divisors_are_expected_sizes_and_do_not_depend_on_the_draw():
    assert Poisson(0.25).divisor(PUBLIC) == N / 4
    assert FixedSize(7).divisor(PUBLIC) == 7


def test_samples_are_charged_at_the_rate_at_which_they_are_drawn():
    step = Gaussian(1.0)
    assert Poisson(0.25).event(step, PUBLIC) == PoissonSampled(0.25, step)
    exchanged = replace(PUBLIC, adjacency=Adjacency.REPLACE_ONE)
    assert FixedSize(7).event(step, exchanged) == FixedSizeSampled(7, N, step)


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.1, float("nan")])
def test_bad_rates(bad):
    with pytest.raises(ValueError, match=r"rate must lie in \(0, 1\]"):
        Poisson(bad)
