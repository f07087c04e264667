"""Nothing but charged releases leaves the scaling: replay on hostile neighbours."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

import skdp
from replays import one_kind_each, solvers_for, with_records
from skdp.accounting import Adjacency
from skdp.objective import ElasticNet, Logistic, Problem, SquaredError
from skdp.solvers import get_solver

N_ROWS = 50
HOSTILE = [
    np.zeros(3),
    np.array([-0.0, 0.0, -0.0]),
    np.full(3, 1e308),
    np.array([-1e308, 1e308, 5e-324]),
    np.array([1e-310, -1e-310, 2.0**-1022]),
    np.array([4.0, -4.0, 4.0**20]),
    np.array([1e17, 1.0, -1e-17]),
]
TARGETS = [0.0, -1e300, 1e300, 1e-310, 64.0]


def problem(kind, rng):
    X = rng.standard_normal((N_ROWS, 3)) * [1.0, 100.0, 1e-3] + [0.0, 2000.0, 0.0]
    if kind == "logistic":
        return X, (X[:, 0] > 0).astype(int)
    y = 40.0 * X[:, 0] - 300.0
    return X, (y if kind == "ridge" else np.column_stack([y, -y]))


def make(kind, adjacency, **parameters):
    shared = {
        "privacy": skdp.Privacy(adjacency=str(adjacency), noise=skdp.SeededNoise(0)),
        "scaling": "private",
        **({} if "solver" in parameters else {"max_iter": 6}),
        **parameters,
    }
    if kind == "logistic":
        return skdp.DPLogisticRegression(classes=[0, 1], **shared)
    return skdp.DPRidge(**shared)


def neighbours(kind, X, y, adjacency, convert=lambda X: X):
    targets = itertools.cycle([0, 1] if kind == "logistic" else TARGETS)
    records = zip(HOSTILE, targets, itertools.repeat(1.0), strict=False)
    return with_records(X, y, adjacency, records, np.ones(N_ROWS), convert)


CASES = [
    (kind, solver)
    for kind, loss in (("logistic", Logistic()), ("ridge", SquaredError()))
    for solver in solvers_for(Problem(loss, ElasticNet(0.1)))
]


@pytest.mark.parametrize(("kind", "solver", "adjacency"), one_kind_each(CASES), ids=str)
def test_nothing_but_releases(replay, rng, kind, solver, adjacency):
    """This tests the scaling, so that the steps after it need not be many.

    It is the same before every solver: all records with "gd", every other record with the rest.
    """
    X, y = problem(kind, rng)
    few = {"max_iter": 6} if "max_iter" in get_solver(solver).get_params() else {}
    pairs = list(neighbours(kind, X, y, adjacency))
    replay.check_each(
        lambda: make(kind, adjacency, solver=solver, **few),
        pairs if solver == "gd" else pairs[1::2],
        adjacency,
    )


@pytest.mark.parametrize(
    ("parameters", "adjacency"),
    [
        ({"fit_intercept": False}, Adjacency.ZERO_OUT),
        ({"scaling": skdp.PublicRange(-5.0, [1.0, 3000.0, 2.0])}, Adjacency.REPLACE_ONE),
        ({"scaling": skdp.PublicRange(target=(-500.0, 100.0))}, Adjacency.ZERO_OUT),
        ({"max_iter": 5, "solver": ("auto", {"batch_size": 20})}, Adjacency.REPLACE_ONE),
    ],
    ids=str,
)
def test_other_forms(replay, rng, adjacency, parameters):
    X, y = problem("several", rng)
    replay.check_each(
        lambda: make("several", adjacency, **parameters),
        neighbours("several", X, y, adjacency),
        adjacency,
    )


@pytest.mark.parametrize(
    ("adjacency", "dtype"),
    [(Adjacency.ZERO_OUT, np.float32), (Adjacency.REPLACE_ONE, np.float64)],
)
def test_sparse_rows(replay, rng, adjacency, dtype):
    X, y = problem("ridge", rng)
    X[rng.random(X.shape) < 0.5] = 0.0
    largest = 1e38 if dtype is np.float32 else 1e308

    def convert(X):
        return sparse.csr_array(np.clip(X, -largest, largest).astype(dtype))

    replay.check_each(
        lambda: make("ridge", adjacency, max_iter=9),
        neighbours("ridge", X, y, adjacency, convert),
        adjacency,
    )
