"""No row shows except through the releases: replay on hostile neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import skdp
from replays import (
    ASKED_BY,
    ESTIMATORS,
    N_ROWS,
    N_STEPS,
    data_for,
    in_turn,
    make_linear,
    neighbours,
    one_kind_each,
    seeded,
    takes,
)
from skdp.accounting import Adjacency
from skdp.oracle.kernels import second_moments
from skdp.solvers import GradientDescent

# Solvers that need a strongly convex penalty, which "linear" has not: they refuse it.
PENALISED = ("heavy_ball", "multistage_nesterov", "nesterov")
# How rows are read has nothing to do with a penalty: "linear" is "ridge" to all but "gd".
PAIRS = [
    (kind, solver)
    for kind in ESTIMATORS
    for solver in sorted(skdp.solvers.available())
    if takes(solver, kind) and (kind != "linear" or solver == "gd")
]


def maker(kind, adjacency, solver, **parameters):
    """Return a function that makes an estimator.

    Fits with scaling before each solver are replayed in tests/stages/scaling.
    """
    given = {"scaling": "none", **ASKED_BY.get(solver, {}), **parameters}
    return lambda: ESTIMATORS[kind](adjacency=str(adjacency), solver=solver, **given)


both = pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)


def make_huber(adjacency, **parameters):
    return skdp.DPHuberRegressor(
        privacy=seeded(adjacency=adjacency), max_iter=N_STEPS, **parameters
    )


@both
@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("kind", ["logistic", "linear", "huber"])
def test_with_compiled_loops(compiled_kernels, replay, rng, kind, delta, adjacency):
    """By default: histograms, scaling, gradients and what comes after them."""
    X, y = data_for(kind, rng)

    def make():
        made = {**ESTIMATORS, "huber": make_huber}[kind]
        return made(solver="gd", delta=delta, adjacency=str(adjacency))

    pairs = neighbours(kind, X, y, adjacency, turn=1)
    pairs = [
        [
            (np.clip(Z, -1e30, 1e30).astype((np.float64, np.float32)[turn % 2]), t, w)
            for Z, t, w in pair
        ]
        for turn, pair in enumerate(pairs, list(Adjacency).index(adjacency))
    ]
    replay.check_each(make, pairs, adjacency)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "solver", "adjacency"), in_turn(PAIRS, turn=1), ids=str)
def test_with_declared_bounds(replay, rng, kind, adjacency, solver):
    X, y = data_for(kind, rng)
    declared = {"scaling": skdp.RowNorm(1.5)}
    if kind in ("linear", "ridge"):
        declared["scaling"].set_params(target=(-1.0, 2.0))
    make = maker(kind, adjacency, solver, **declared)
    replay.check_each(make, neighbours(kind, X, y, adjacency, turn=1), adjacency)


@pytest.mark.parametrize(("kind", "solver", "adjacency"), one_kind_each(PAIRS), ids=str)
def test_sparse_entries_in_parts(either_way, replay, rng, monkeypatch, kind, adjacency, solver):
    """1e30 and -1e30 for one entry: small in a norm, large in a sum of parts."""
    monkeypatch.setattr(second_moments, "MOST_FILLED", 1.0)
    X, y = data_for(kind, rng)
    dense = sparse.csr_array(X)
    make = maker(kind, adjacency, solver)
    pairs = []
    for place, part in ((0, 1e30), (7, 1e17), (30, 1e30)):
        start = dense.indptr[place + 1]
        data = np.insert(dense.data, start, [part, -part])
        indices = np.insert(dense.indices, start, [1, 1])
        indptr = dense.indptr + 2 * (np.arange(N_ROWS + 1) > place)
        hostile = sparse.csr_array((data, indices, indptr), shape=X.shape)
        weights = np.ones(N_ROWS)
        if adjacency is Adjacency.ZERO_OUT:
            weights[place] = 0.0
        pairs.append(((dense, y, weights), (hostile, y, np.ones(N_ROWS))))
    replay.check_each(make, pairs, adjacency)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "solver", "adjacency"), one_kind_each(PAIRS, 1), ids=str)
def test_sparse_float32(either_way, replay, rng, monkeypatch, kind, adjacency, solver):
    monkeypatch.setattr(second_moments, "MOST_FILLED", 1.0)
    X, y = data_for(kind, rng)
    make = maker(kind, adjacency, solver)

    def convert(data):
        Z, t, w = data
        return sparse.csr_array(np.clip(Z, -1e30, 1e30).astype(np.float32)), t, w

    pairs = neighbours(kind, X, y, adjacency, turn=2)
    replay.check_each(make, (map(convert, pair) for pair in pairs), adjacency)


@pytest.mark.parametrize("solver", PENALISED)
def test_what_a_solver_does_not_take_is_refused(rng, solver):
    assert not takes(solver, "linear")
    with pytest.raises(ValueError, match=r"strongly convex.*Nothing was released"):
        make_linear(solver=solver).fit(*data_for("linear", rng))


SAMPLINGS = [
    (sampling, adjacency)
    for sampling in ("poisson", "fixed_size", "shuffled")
    for adjacency in Adjacency
    # Refused, see tests/solvers/test_gd.py.
    if (sampling, adjacency) != ("fixed_size", Adjacency.ZERO_OUT)
]


@pytest.mark.parametrize(("sampling", "adjacency"), SAMPLINGS, ids=str)
@pytest.mark.parametrize("kind", ["logistic", "ridge"])
def test_nothing_but_releases_on_batches(replay, rng, kind, adjacency, sampling):
    """With the coins of the sampler fixed by the seed, batches are the same on both."""
    X, y = data_for(kind, rng)

    def make():
        solver = GradientDescent(max_iter=9, batch_size=15, sampling=sampling)
        estimator = skdp.DPLogisticRegression if kind == "logistic" else skdp.DPRidge
        return estimator(
            solver=solver,
            privacy=skdp.Privacy(adjacency=str(adjacency), noise=skdp.SeededNoise(0)),
            scaling="none",
        )

    replay.check_each(make, neighbours(kind, X, y, adjacency), adjacency)
