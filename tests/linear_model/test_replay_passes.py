"""Replay over passes and mirror descent, on small batches."""

from __future__ import annotations

import pytest
from sklearn.base import clone

import skdp
from replays import data_for, neighbours
from skdp.accounting import Adjacency
from skdp.oracle.releases import gradients
from skdp.solvers import SVRG, SVRGPlusPlus

SOLVERS = {
    "one by one": SVRG(max_iter=12, inner_steps=6, batch_size=1),
    "small": SVRG(max_iter=9, inner_steps=5, batch_size=9),
    "doubling": SVRGPlusPlus(max_iter=12, inner_steps=2, batch_size=20),
    "fixed size": SVRG(max_iter=8, inner_steps=4, batch_size=3, sampling="fixed_size"),
    "blocks": SVRG(max_iter=8, inner_steps=4, batch_size=15, sampling="shuffled"),
    "bb": SVRG(max_iter=9, inner_steps=3, batch_size=9, learning_rate="bb"),
}


def make(kind, solver, adjacency):
    estimator = skdp.DPLogisticRegression if kind == "logistic" else skdp.DPRidge
    return estimator(
        solver=solver,
        privacy=skdp.Privacy(adjacency=str(adjacency), noise=skdp.SeededNoise(0)),
        scaling="none",
    )


CASES = [
    (name, adjacency)
    for name, solver in SOLVERS.items()
    for adjacency in Adjacency
    if (solver.sampling, adjacency) != ("fixed_size", Adjacency.ZERO_OUT)  # refused
]


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize(("name", "adjacency"), CASES, ids=str)
@pytest.mark.parametrize("kind", ["logistic", "ridge"])
def test_nothing_but_releases(replay, rng, kind, name, adjacency):
    X, y = data_for(kind, rng)
    replay.check_each(
        lambda: make(kind, SOLVERS[name], adjacency), neighbours(kind, X, y, adjacency), adjacency
    )


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("name", ["one by one", "small", "doubling"])
@pytest.mark.parametrize("kind", ["logistic", "ridge"])
def test_bounds_that_shrink_near_the_snapshot_hold(replay, rng, monkeypatch, kind, name, adjacency):
    """Without weights, where the bound follows the distance; a null row adds nothing."""
    X, y = data_for(kind, rng)
    bounds = []
    original = gradients.difference_bound

    def difference_bound(clip_norm, smoothness, distance):
        bounds.append(original(clip_norm, smoothness, distance) / clip_norm)
        return bounds[-1] * clip_norm

    monkeypatch.setattr(gradients, "difference_bound", difference_bound)
    model = make(kind, SOLVERS[name], adjacency).set_params(fit_intercept=False)
    pairs = neighbours(kind, X, y, adjacency)
    replay.check_each(
        lambda: clone(model), ([one[:2] for one in pair] for pair in pairs), adjacency
    )
    assert min(bounds) < 1e-9  # the first step of an epoch starts at its snapshot
