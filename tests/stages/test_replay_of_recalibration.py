"""Nothing but releases leaves a recalibration: replay on hostile neighbours."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

import skdp
from replays import solvers_for, with_records
from skdp.accounting import Adjacency
from skdp.objective import ElasticNet, Logistic, Problem
from skdp.solvers import get_solver

N_ROWS = 60
HOSTILE = [
    np.zeros(4),
    np.full(4, 1e5),
    np.full(4, -1e300),
    np.array([1e308, -1e308, 1e308, 1e308]),
    np.full(4, 5e-324),
    np.array([1e200, 1e-200, 0.0, 1.0]),
    np.array([3.0, -4.0, 1.0, 9.0]),
]
WEIGHTS = [1.0, 1e12, 0.5, 1e300, 3.0]


def make(n_classes, adjacency, **parameters):
    return skdp.DPLogisticRegression(
        classes=range(n_classes),
        privacy=skdp.Privacy(adjacency=str(adjacency), noise=skdp.SeededNoise(0)),
        **({} if "solver" in parameters else {"max_iter": 6}),
        **parameters,
    )


def data_for(n_classes, rng):
    X = rng.standard_normal((N_ROWS, 4))
    return X, np.arange(N_ROWS) % n_classes


def neighbours(n_classes, X, y, adjacency, weighted=True, convert=lambda X: X):
    weights = np.linspace(0.5, 2.0, N_ROWS) if weighted else np.ones(N_ROWS)
    of_records = itertools.cycle(WEIGHTS if weighted else [1.0])
    records = zip(HOSTILE, itertools.cycle(range(n_classes)), of_records, strict=False)
    return with_records(X, y, adjacency, records, weights, convert)


classes = pytest.mark.parametrize("n_classes", [2, 3])


BOUNDS = skdp.PublicRange(-4.0, 4.0)  # whose fits have no releases for scaling
SETTINGS = [
    {},
    {"scaling": "private"},
    {"fit_intercept": False},
    {"C": np.inf, "scaling": BOUNDS},
    {"scaling": skdp.PublicRange(-1.5, 1.5), "epsilon": 20.0},
    {"class_weight": {0: 5.0}},
]


# Either number of classes with the defaults; every setting with one of them, adjacencies in turn.
@pytest.mark.parametrize(
    ("n_classes", "adjacency", "parameters"),
    [
        (n_classes, list(Adjacency)[(i + j) % 2], parameters)
        for i, n_classes in enumerate([2, 3])
        for j, parameters in enumerate(SETTINGS)
        if j == 0 or (i + j // 2) % 2
    ],
    ids=str,
)
def test_nothing_but_releases(replay, rng, n_classes, adjacency, parameters):
    X, y = data_for(n_classes, rng)

    def model():
        return make(n_classes, adjacency, **parameters)

    kinds = [record.kind for record in model().plan(N_ROWS, 4).releases]
    assert kinds[-1] == "calibration"
    replay.check_each(model, neighbours(n_classes, X, y, adjacency), adjacency)


@pytest.mark.parametrize(
    ("adjacency", "dtype"),
    [(Adjacency.ZERO_OUT, np.float32), (Adjacency.REPLACE_ONE, np.float64)],
)
def test_sparse_rows(replay, rng, adjacency, dtype):
    X, y = data_for(2, rng)
    X[rng.random(X.shape) < 0.5] = 0.0
    largest = 1e38 if dtype is np.float32 else 1e308

    def convert(X):
        return sparse.csr_array(np.clip(X, -largest, largest).astype(dtype))

    replay.check_each(
        lambda: make(2, adjacency), neighbours(2, X, y, adjacency, convert=convert), adjacency
    )


# Those that plan their noise beforehand.
SOLVERS = [
    name
    for name in solvers_for(Problem(Logistic(), ElasticNet(0.1)))
    if not get_solver(name).adaptive
]


@pytest.mark.parametrize(
    ("solver", "adjacency"),
    [(solver, list(Adjacency)[place % 2]) for place, solver in enumerate(SOLVERS)],
    ids=str,
)
def test_after_any_solver(replay, rng, solver, adjacency):
    X, y = data_for(2, rng)
    few = {"max_iter": 6} if "max_iter" in get_solver(solver).get_params() else {}
    pairs = list(neighbours(2, X, y, adjacency, weighted=solver == "gd"))
    replay.check_each(
        lambda: make(2, adjacency, solver=solver, **few),
        pairs[1::2],
        adjacency,
    )
