"""No number of rows, and no row, shows except through the releases: replay with groups."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import skdp
from grouped import PAIRS, group_neighbours, grouped_data
from replays import ESTIMATORS, in_turn
from skdp.accounting import Adjacency
from skdp.solvers import GradientDescent, available, get_solver

both = pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)


def check(replay, rng, make, kind, adjacency, change=lambda data: data, numbers=(2, 40)):
    data = grouped_data(kind, rng)
    for there, other in group_neighbours(kind, data, adjacency, rng, numbers):
        replay.check(make, change(there), change(other), adjacency)


AVERAGE = ["adp_sgd", "gd", "heavy_ball", "multistage_nesterov", "nesterov", "residual_budget"]


@pytest.mark.parametrize(
    ("kind", "solver", "adjacency"),
    in_turn([pair for pair in PAIRS if pair[1] in AVERAGE], turn=1),
    ids=str,
)
def test_average_then_clip(replay, rng, kind, adjacency, solver):
    given = {
        "privacy": skdp.Privacy(adjacency=str(adjacency), rows_per_group=4),
        "solver": solver,
        "scaling": "auto" if solver == "gd" else "none",
    }
    check(replay, rng, lambda: ESTIMATORS[kind](**given), kind, adjacency)


@pytest.mark.parametrize("rows_per_group", [None, 4])
@pytest.mark.parametrize("form", ["sparse", "float32", "columns first"])
@pytest.mark.parametrize(
    ("kind", "adjacency"),
    [("multinomial", Adjacency.ZERO_OUT), ("ridge", Adjacency.REPLACE_ONE)],
    ids=str,
)
def test_forms_of_rows(either_way, replay, rng, kind, adjacency, form, rows_per_group):
    def change(data):
        X, *rest = data
        if form == "columns first":
            return np.asfortranarray(X), *rest
        X = np.clip(X, -1e30, 1e30).astype(np.float32) if form == "float32" else X
        return sparse.csr_array(X) if form == "sparse" else X, *rest

    given = {"adjacency": str(adjacency), "rows_per_group": rows_per_group}
    check(replay, rng, lambda: ESTIMATORS[kind](**given), kind, adjacency, change)


@both
@pytest.mark.parametrize("rows_per_group", [None, 4])
@pytest.mark.parametrize("sampling", ["poisson", "shuffled"])
def test_batches_hold_whole_groups(replay, rng, adjacency, sampling, rows_per_group):
    def make():
        solver = GradientDescent(max_iter=9, batch_size=6, sampling=sampling)
        return skdp.DPRidge(
            solver=solver,
            privacy=skdp.Privacy(
                adjacency=str(adjacency), rows_per_group=rows_per_group, noise=skdp.SeededNoise(0)
            ),
        )

    check(replay, rng, make, "ridge", adjacency)


def test_who_averages(rng):
    able = {name for name in available() if get_solver(name).averages_groups(pure=False)}
    assert able == set(AVERAGE)
