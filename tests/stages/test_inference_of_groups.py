"""Intervals where a group of rows is the unit: sandwiches by group, replayed, with seeded bugs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import skdp
from grouped import group_neighbours, grouped_data
from replays import WITH_INFERENCE, make_with_inference
from skdp.accounting import Adjacency
from skdp.oracle.releases import moments
from skdp.oracle.sources.records import Records
from skdp.stages.inference import stage

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


# ---------------------------------------------------------------- seeded bugs


def mutant_not_multiplied(monkeypatch):
    monkeypatch.setattr(Records, "scaled_by_group", lambda self, parts: parts)


def mutant_hessian_of_rows(monkeypatch):
    original = moments.step_squares

    def squares(records, *arguments):
        return original(replace(records, multipliers=None), *arguments)

    monkeypatch.setattr(moments, "step_squares", squares)


def mutant_terms_are_sums(monkeypatch):
    """A group's term is the sum over its rows, not the mean, and is not cut."""
    original = moments.score_factors

    def factors(records, *arguments):
        return original(records, *arguments) / records.multipliers[:, None]

    squares = moments.mean_score_squares
    monkeypatch.setattr(moments, "score_factors", factors)
    monkeypatch.setattr(
        moments, "mean_score_squares", lambda *arguments: squares(*arguments[:-1], 1e300)
    )


def mutant_margins_depend_on_places(monkeypatch):
    """The products of rows with the coordinates follow from the place of a row."""
    original = Records.margins

    def margins(self, point):
        return original(self, point) * (1.0 + np.arange(self.n_rows) % 2)[:, None]

    monkeypatch.setattr(Records, "margins", margins)


def mutant_number_of_rows_in_the_error(monkeypatch):
    """Rows are told where groups should be."""
    original = stage.InferenceStage._step

    def step(self, oracle, *arguments):
        found = original(self, oracle, *arguments)
        if oracle.is_rehearsal:
            return found
        return replace(found, n_rows=len(oracle._source.groups.order))

    monkeypatch.setattr(stage.InferenceStage, "_step", step)
