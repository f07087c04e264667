"""Replay over passes and mirror descent, on small batches, and mutants of theirs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import skdp
from replays import data_for, neighbours
from skdp.accounting import Adjacency
from skdp.oracle.kernels import difference_steps
from skdp.oracle.kernels.clipped_gradients import clipped_gradients
from skdp.oracle.releases import svrg_pass
from skdp.oracle.releases.step_noise import VaryingNoise
from skdp.oracle.sources.memory import MemorySource
from skdp.solvers import SVRG, SVRGPlusPlus

SOLVERS = {
    "one by one": SVRG(max_iter=12, inner_steps=6, batch_size=1),
    "small": SVRG(max_iter=9, inner_steps=5, batch_size=9),
    "doubling": SVRGPlusPlus(max_iter=12, inner_steps=2, batch_size=20),
    "fixed size": SVRG(max_iter=8, inner_steps=4, batch_size=3, sampling="fixed_size"),
    "blocks": SVRG(max_iter=8, inner_steps=4, batch_size=15, sampling="shuffled"),
    "fresh": SVRG(max_iter=6, inner_steps=3, batch_size=9, snapshot_noise="fresh"),
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
@pytest.mark.parametrize("name", ["one by one", "small", "doubling", "fresh"])
@pytest.mark.parametrize("kind", ["logistic", "ridge"])
def test_bounds_that_shrink_near_the_snapshot_hold(replay, rng, monkeypatch, kind, name, adjacency):
    """Without weights, where the bound follows the distance; a null row adds nothing."""
    X, y = data_for(kind, rng)
    bounds = []
    original = svrg_pass.gradients.difference_bound

    def difference_bound(clip_norm, smoothness, distance):
        bounds.append(original(clip_norm, smoothness, distance) / clip_norm)
        return bounds[-1] * clip_norm

    monkeypatch.setattr(svrg_pass.gradients, "difference_bound", difference_bound)
    model = make(kind, SOLVERS[name], adjacency).set_params(fit_intercept=False)
    pairs = neighbours(kind, X, y, adjacency)
    replay.check_each(
        lambda: clone(model), ([one[:2] for one in pair] for pair in pairs), adjacency
    )
    assert min(bounds) < 1e-9  # the first step of an epoch starts at its snapshot


# Each mutant breaks one step of the proof.


def mutant_difference_not_clipped(monkeypatch):
    original = difference_steps._side_by_side

    def side_by_side(source, *arguments):
        records = source.records
        unbounded = records.having(records.weights, np.full(source.n_rows, 1e280))
        return original(MemorySource(unbounded), *arguments)

    monkeypatch.setattr(difference_steps, "_side_by_side", side_by_side)


def mutant_bound_too_small(monkeypatch):
    original = difference_steps._side_by_side

    def side_by_side(*args):
        sum_up = original(*args)

        def wide(first, stop, away, bound, factor, out):
            sum_up(first, stop, away, 3 * bound, factor, out)

        return wide

    monkeypatch.setattr(difference_steps, "_side_by_side", side_by_side)


def mutant_reused_snapshot_not_charged(monkeypatch):
    """The exact gradient at the anchor, as if its noisy copy had not to be paid for."""

    def copies(self, rows, context, noise_source):
        loss = context.problem.loss
        exact = rows.total(clipped_gradients, loss, self.anchor, self.clip_norm)
        while True:
            yield exact / context.public.n_rows

    monkeypatch.setattr(svrg_pass.SVRGPass, "_copies", copies)


def mutant_less_noise_in_later_steps(monkeypatch):
    original = VaryingNoise.__init__

    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self.std /= 2

    monkeypatch.setattr(VaryingNoise, "__init__", init)


def mutant_divided_by_the_batch_that_came_out(monkeypatch):
    original = svrg_pass.batches_in_blocks

    def steps(samplers, n_steps, rows, *args):
        for indices, edges, divisors in original(samplers, n_steps, rows, *args):
            positive = 1 + int((np.abs(rows.records.X) > 50).any())
            yield indices, edges, [positive * divisor for divisor in divisors]

    monkeypatch.setattr(svrg_pass, "batches_in_blocks", steps)


def mutant_bound_from_the_rows(monkeypatch):
    original = svrg_pass.batches_in_blocks
    found = {}

    def steps(samplers, n_steps, rows, *args):
        found["longest"] = 1 / rows.records.inverse_norms.min()
        return original(samplers, n_steps, rows, *args)

    monkeypatch.setattr(svrg_pass, "batches_in_blocks", steps)
    monkeypatch.setattr(
        svrg_pass.gradients,
        "difference_smoothness",
        lambda context: 0.25 * found.get("longest", 1.0) ** 2,
    )
