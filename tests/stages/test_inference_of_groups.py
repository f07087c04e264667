"""Intervals where a group of rows is the unit: sandwiches by group, replayed."""

from __future__ import annotations

import pytest
from scipy import sparse

import skdp
from grouped import group_neighbours, grouped_data
from replays import WITH_INFERENCE, make_with_inference
from skdp.accounting import Adjacency

both = pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
pytestmark = pytest.mark.usefixtures("weights_are_taken")


def check(replay, rng, kind, adjacency, change=lambda X: X, numbers=(1, 9, 40), **parameters):
    data = grouped_data(kind, rng)
    for there, other in group_neighbours(kind, data, adjacency, rng, numbers):
        there, other = ((change(X), *rest) for X, *rest in (there, other))
        replay.check(
            lambda: make_with_inference(kind, adjacency, **parameters), there, other, adjacency
        )


SETTINGS = [
    {},
    {"scaling": "private", "fit_intercept": False},
    {"scaling": "none", "solver": "gd", "max_iter": 6, "rows_per_group": 4},
    {"scaling": skdp.RowNorm(1.5), "epsilon": 20.0},
]


# Every kind with every setting, and either of them with both adjacencies.
@pytest.mark.parametrize(
    ("kind", "adjacency", "parameters"),
    [
        (kind, list(Adjacency)[(i + j) % 2], parameters)
        for i, kind in enumerate(WITH_INFERENCE)
        for j, parameters in enumerate(SETTINGS)
    ],
    ids=str,
)
def test_nothing_but_releases(replay, rng, kind, adjacency, parameters):
    check(replay, rng, kind, adjacency, **parameters)


@both
@pytest.mark.parametrize("kind", list(WITH_INFERENCE)[::2])
def test_sparse_rows(replay, rng, kind, adjacency):
    """Rows of all kinds of model are read alike; and dense ones are replayed for each."""
    given = {"scaling": "none", "epsilon": 20.0}
    check(replay, rng, kind, adjacency, sparse.csr_array, (9, 40), **given)


def test_a_plan_speaks_of_groups():
    model = skdp.DPLinearRegression(inference="coefficients")
    with pytest.warns(UserWarning, match=r"About \d+ groups or an epsilon"):
        model.plan(None, 10, n_groups=300)
    rows, groups = model.plan(90_000, 10), model.plan(None, 10, n_groups=90_000)
    assert rows.releases == groups.releases


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
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
