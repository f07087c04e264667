"""Nothing but releases leaves an inference: replay on hostile neighbours, and mutants."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import skdp
from replays import LABELS, WITH_INFERENCE, make_with_inference, with_records
from skdp.accounting import Adjacency
from skdp.oracle.releases import moments

N_ROWS = 60
HOSTILE = [
    np.zeros(4),
    np.full(4, 1e5),
    np.full(4, -1e300),
    np.array([1e308, -1e308, 1e308, 1e308]),
    np.full(4, 5e-324),
    np.array([1e200, 1e-200, 0.0, 1.0]),
    np.array([3.0, -4.0, 1.0, 9.0]),
    np.array([6.0, -6.0, 3.0, 0.0]),  # a mean beyond the largest weight, and a target near it
]
TARGETS = [-1e300, 1e12, -3.0, 1e308, 0.0, 1e-310, 7.0, 30.0]
# So few rows can afford them, and columns that are made shorter, only with such a budget.
STEPS_AHEAD = {
    "scaling": "private",
    "inference": skdp.CoefficientInference(0.9),
    "epsilon": 500.0,
}
both = pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
pytestmark = pytest.mark.usefixtures("weights_are_taken")


def data_for(kind, rng):
    X = rng.standard_normal((N_ROWS, 4))
    if kind in LABELS:
        return X, np.arange(N_ROWS) % len(LABELS[kind])
    y = X @ np.array([1.0, -1.0, 0.5, 0.0]) + 0.1 * rng.standard_normal(N_ROWS)
    return X, np.exp(0.5 * y) if kind == "poisson" else y


def neighbours(kind, X, y, adjacency, convert=lambda X: X):
    targets = np.abs(TARGETS) if kind == "poisson" else TARGETS
    if kind in LABELS:
        targets = itertools.cycle(LABELS[kind])
    records = zip(HOSTILE, targets, itertools.cycle([1.0, 1e6, 0.5]), strict=False)
    return with_records(X, y, adjacency, records, np.ones(N_ROWS), convert)


SETTINGS = [
    {},
    {"scaling": "private", "fit_intercept": False},
    {"scaling": "none", "solver": "gd", "max_iter": 6},
    {"scaling": skdp.RowNorm(1.5), "epsilon": 20.0},
    {"scaling": skdp.PublicRange(-3.0, 3.0), "inference": skdp.CoefficientInference(0.9)},
    STEPS_AHEAD,
]


# Every kind with every setting, and either of them with both adjacencies.
@pytest.mark.parametrize(
    ("kind", "adjacency", "parameters"),
    [
        (kind, list(Adjacency)[(i + j) % 2], parameters)
        for i, kind in enumerate(WITH_INFERENCE)
        for j, parameters in enumerate(SETTINGS)
        if (i + j // 2) % 2
    ],
    ids=str,
)
def test_nothing_but_releases(replay, rng, kind, adjacency, parameters):
    X, y = data_for(kind, rng)
    replay.check_each(
        lambda: make_with_inference(kind, adjacency, **parameters),
        neighbours(kind, X, y, adjacency),
        adjacency,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "adjacency", "dtype"),
    [
        ("linear", Adjacency.REPLACE_ONE, np.float32),
        ("ridge", Adjacency.ZERO_OUT, np.float64),
        ("logistic", Adjacency.ZERO_OUT, np.float32),
        ("logistic", Adjacency.REPLACE_ONE, np.float64),
    ],
)
def test_sparse_rows(replay, rng, kind, adjacency, dtype):
    X, y = data_for(kind, rng)
    X[rng.random(X.shape) < 0.5] = 0.0
    largest = 1e38 if dtype is np.float32 else 1e308

    def convert(X):
        return sparse.csr_array(np.clip(X, -largest, largest).astype(dtype))

    replay.check_each(
        lambda: make_with_inference(kind, adjacency),
        neighbours(kind, X, y, adjacency, convert=convert),
        adjacency,
    )


# ---------------------------------------------------------------- mutants


def mutant_bound_of_two_classes(patch):
    patch.setattr(moments, "gradient_weight", lambda loss: moments.GRADIENT_WEIGHT)
    original = moments.LogisticStep.contribution

    def contribution(self, context, n_rows):
        found = original(self, context, n_rows)
        return replace(found, bound=found.bound / context.problem.loss.residual_bound)

    patch.setattr(moments.LogisticStep, "contribution", contribution)


# Under replace-one no record is null, and these replaced ones are not opposites.
ZERO_OUT = ["mutant_bound_of_two_classes"]


@both
def test_shares_add_up_to_that_of_the_stage(adjacency):
    """In mu squared, next to what scaling leaves; the solver has the rest."""
    for kind in set(WITH_INFERENCE) - {"poisson"}:  # which needs a scaling
        for share, n_rows in ((1 / 3, 1000), (0.1, 1000), (1 / 3, 100_000)):
            inference = skdp.CoefficientInference(share)
            parameters = {"scaling": "none", "inference": inference, "epsilon": 2.0}
            statement = make_with_inference(kind, adjacency, **parameters).plan(n_rows, 4)
            squares = [
                record.count * record.event.mu(adjacency) ** 2 for record in statement.releases
            ]
            names = [record.kind for record in statement.releases]
            first = len(names) - names[::-1].index("gram") - 1
            assert sum(squares[first:]) == pytest.approx(share * sum(squares), rel=1e-6)
