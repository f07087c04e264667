"""Laplace noise: nothing but releases leaves, by L1 sensitivity."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import skdp
from replays import (
    ESTIMATORS,
    data_for,
    neighbours,
)
from skdp.accounting import Adjacency
from skdp.oracle.releases.mechanisms import Contribution, LaplaceNoise
from skdp.solvers import GradientDescent


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("kind", ESTIMATORS)
class TestReplay:
    def check(self, replay, rng, kind, adjacency, convert=lambda data: data, **parameters):
        X, y = data_for(kind, rng)

        def make():
            return ESTIMATORS[kind](adjacency=str(adjacency), delta=0.0, **parameters)

        pairs = neighbours(kind, X, y, adjacency)
        replay.check_each(make, (map(convert, pair) for pair in pairs), adjacency)

    def test_nothing_but_releases(self, replay, rng, kind, adjacency):
        self.check(replay, rng, kind, adjacency)

    def test_with_declared_bounds(self, replay, rng, kind, adjacency):
        self.check(replay, rng, kind, adjacency, scaling=skdp.RowNorm(1.5), fit_intercept=False)

    def test_sparse_float32(self, replay, rng, kind, adjacency):
        def convert(data):
            Z, t, w = data
            return sparse.csr_array(np.clip(Z, -1e30, 1e30).astype(np.float32)), t, w

        self.check(replay, rng, kind, adjacency, convert)


@pytest.mark.parametrize("sampling", ["poisson", "fixed_size", "shuffled"])
def test_nothing_but_releases_on_batches(replay, rng, sampling):
    X, y = data_for("logistic", rng)

    def make():
        solver = GradientDescent(max_iter=9, batch_size=15, sampling=sampling)
        return skdp.DPLogisticRegression(
            classes=[0, 1],
            solver=solver,
            privacy=skdp.Privacy(adjacency="replace_one", noise=skdp.SeededNoise(0)),
            delta=0.0,
        )

    pairs = neighbours("logistic", X, y, Adjacency.REPLACE_ONE)
    replay.check_each(make, pairs, Adjacency.REPLACE_ONE)


# Each of these breaks the privacy of Laplace noise, and must be caught.


def test_a_mechanism_refuses_the_other_norm():
    for order, noise in ((2, LaplaceNoise()), (1, skdp.oracle.GaussianNoise())):
        contribution = Contribution(1.0, 2.0, size=3, total=10.0, order=order)
        for scale in (0.0, 1.0):
            with pytest.raises(ValueError, match=f"bounded in the L{order} norm"):
                noise.std(contribution, scale)
            with pytest.raises(ValueError, match="Nothing was released"):
                noise.add_noise(np.zeros(3), contribution, scale, None)
