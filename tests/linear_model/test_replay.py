"""No row shows except through the releases: replay on hostile neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import skdp
from replays import (
    ESTIMATORS,
    N_ROWS,
    data_for,
    each_row_once,
    hostile_records,
    make_linear,
    neighbours,
)
from skdp.accounting import Adjacency
from skdp.linear_model.parameters import constraint_set
from skdp.objective import L2, Logistic, Multinomial, Problem, SquaredError
from skdp.solvers import GradientDescent, get_solver

# Solvers that need a strongly convex penalty, which "linear" has not: they refuse it.
PENALISED = ("heavy_ball", "multistage_nesterov", "nesterov")
# What a solver needs of a problem that the estimators do not have by themselves.
ASKED_BY = {"accelerated_mirror_descent": {"constraint": "l1_ball", "radius": 2.0}}


def asked_by(solver):
    return ASKED_BY.get(solver, {})


LOSSES = {"logistic": Logistic(), "multinomial": Multinomial(3)}


def takes(solver, kind):
    """Whether a solver can do an estimator's problem; where not it says so, in its own tests."""
    asked = asked_by(solver)
    wanted = constraint_set(asked.get("constraint"), asked.get("radius", 1.0))
    problem = Problem(LOSSES.get(kind, SquaredError()), L2(0.1), wanted)
    return not get_solver(solver).needs - problem.provides


SOLVERS = sorted(skdp.solvers.available())
PAIRS = [(kind, solver) for kind in ESTIMATORS for solver in SOLVERS if takes(solver, kind)]


def records_for(kind, solver, turn):
    """All hostile records for "gd"; for other solvers every row once, with targets in turn.

    Solvers differ in what they ask; what is summed up, and how it is bounded, is the same code.
    """
    if solver == "gd":
        return hostile_records(kind)
    return each_row_once(kind, turn)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize(("kind", "solver"), PAIRS)
class TestReplay:
    @pytest.fixture(autouse=True)
    def refusal(self, kind, solver, rng):
        """What a solver does not take it refuses before any row is read; that is all to see."""
        if kind == "linear" and solver in PENALISED:
            with pytest.raises(ValueError, match=r"strongly convex.*Nothing was released"):
                make_linear(solver=solver).fit(*data_for(kind, rng))
            pytest.skip("refused, as it should be")

    def test_nothing_but_releases(self, replay, rng, kind, adjacency, solver):
        X, y = data_for(kind, rng)

        def make():
            return ESTIMATORS[kind](adjacency=str(adjacency), solver=solver, **asked_by(solver))

        records = records_for(kind, solver, turn=0)
        for data, neighbour in neighbours(kind, X, y, adjacency, records):
            replay.check(make, data, neighbour, adjacency)

    def test_with_declared_bounds(self, replay, rng, kind, adjacency, solver):
        X, y = data_for(kind, rng)
        declared = {"data_norm": 1.5, **asked_by(solver)}
        if kind in ("linear", "ridge"):
            declared["target_bound"] = 2.0

        def make():
            return ESTIMATORS[kind](adjacency=str(adjacency), solver=solver, **declared)

        records = records_for(kind, solver, turn=1)
        for data, neighbour in neighbours(kind, X, y, adjacency, records):
            replay.check(make, data, neighbour, adjacency)

    def test_sparse_entries_in_parts(self, replay, rng, kind, adjacency, solver):
        """1e30 and -1e30 for one entry: small in a norm, large in a sum of parts."""
        X, y = data_for(kind, rng)
        dense = sparse.csr_array(X)
        for place in (0, 7, 30):
            for part in (1e17, 1e30):
                start = dense.indptr[place + 1]
                data = np.insert(dense.data, start, [part, -part])
                indices = np.insert(dense.indices, start, [1, 1])
                indptr = dense.indptr + 2 * (np.arange(N_ROWS + 1) > place)
                hostile = sparse.csr_array((data, indices, indptr), shape=X.shape)
                weights = np.ones(N_ROWS)
                if adjacency is Adjacency.ZERO_OUT:
                    weights[place] = 0.0
                replay.check(
                    lambda: ESTIMATORS[kind](
                        adjacency=str(adjacency), solver=solver, **asked_by(solver)
                    ),
                    (hostile, y, np.ones(N_ROWS)),
                    (dense, y, weights),
                    adjacency,
                )

    def test_sparse_float32(self, replay, rng, kind, adjacency, solver):
        X, y = data_for(kind, rng)

        def make():
            return ESTIMATORS[kind](adjacency=str(adjacency), solver=solver, **asked_by(solver))

        def convert(data):
            Z, t, w = data
            return sparse.csr_array(np.clip(Z, -1e30, 1e30).astype(np.float32)), t, w

        for data, neighbour in list(neighbours(kind, X, y, adjacency))[::4]:
            replay.check(make, convert(data), convert(neighbour), adjacency)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("sampling", ["poisson", "fixed_size", "shuffled", "balls_and_bins"])
@pytest.mark.parametrize("kind", ["logistic", "ridge"])
def test_nothing_but_releases_on_batches(replay, rng, kind, adjacency, sampling):
    """With the coins of the sampler fixed by the seed, batches are the same on both."""
    if sampling == "fixed_size" and adjacency is Adjacency.ZERO_OUT:
        return  # refused, see tests/solvers/test_gd.py
    X, y = data_for(kind, rng)

    def make():
        solver = GradientDescent(max_iter=9, batch_size=15, sampling=sampling)
        estimator = skdp.DPLogisticRegression if kind == "logistic" else skdp.DPRidge
        return estimator(
            solver=solver, adjacency=str(adjacency), noise_source="seeded", random_state=0
        )

    for data, neighbour in list(neighbours(kind, X, y, adjacency))[::3]:
        replay.check(make, data, neighbour, adjacency)
