"""No number of rows, and no row, shows except through the releases: replay with groups."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from scipy import sparse

import skdp
from grouped import PAIRS, group_neighbours, grouped_data
from replays import ESTIMATORS, in_turn, make_linear
from skdp.accounting import Adjacency
from skdp.fitting import grouping
from skdp.linear_model import base
from skdp.oracle.kernels import clipped_gradients as kernels
from skdp.oracle.releases import gradients, samplers
from skdp.oracle.sources import groups as grouped_sources
from skdp.oracle.sources.memory import MemorySource
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


def test_who_averages(rng):
    able = {name for name in available() if get_solver(name).averages_groups(pure=False)}
    assert able == set(AVERAGE)


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


@both
@pytest.mark.parametrize("rows_per_group", [None, 4])
def test_adaptive_clipping(replay, rng, adjacency, rows_per_group):
    def make():
        return make_linear(
            adjacency=str(adjacency), clip_norm="adaptive", rows_per_group=rows_per_group
        )

    check(replay, rng, make, "linear", adjacency)


# ---------------------------------------------------------------- seeded bugs


def mutant_divided_by_the_number_of_rows(monkeypatch):
    """n is the number of rows, as it was without groups."""
    original = grouping.GroupLabels.__init__

    def made(self, *arguments, **arrays):
        original(self, *arguments, **arrays)
        self.n_groups = len(self.codes)

    monkeypatch.setattr(grouping.GroupLabels, "__init__", made)


def mutant_multiplied_before_clipping(monkeypatch):
    original = gradients.clipped_gradients

    def total(records, *arguments):
        weights = records.multipliers * (1 if records.weights is None else records.weights)
        plain = records.having(weights, records.inverse_norms)
        return original(dataclasses.replace(plain, multipliers=None), *arguments)

    monkeypatch.setattr(gradients, "clipped_gradients", total)


def mutant_not_multiplied(monkeypatch):
    monkeypatch.setattr(kernels.Records, "scaled_by_group", lambda self, parts: parts)


def mutant_batches_of_rows(monkeypatch):
    """Rows are drawn, and the groups of those that were drawn have fewer rows than they had."""

    def draw(self, source, noise_source):
        records = source.records
        drawn = noise_source.bernoulli_subset(records.n_rows, self.rate)
        return MemorySource(dataclasses.replace(records, multipliers=None)[drawn], source.row_bound)

    monkeypatch.setattr(samplers.Poisson, "draw", draw)


def mutant_kept_number_of_rows(monkeypatch):
    original = base.DPLinearModel._fit

    def fit(self, rows, *start):
        X = rows.X
        original(self, rows, *start)
        self.n_seen_ = X.shape[0]
        return self

    monkeypatch.setattr(base.DPLinearModel, "_fit", fit)


def mutant_warning_of_many_rows(monkeypatch):
    original = base.DPLinearModel._fit

    def fit(self, rows, *start):
        X = rows.X
        if X.shape[0] > 80:
            warnings.warn("many rows", UserWarning, stacklevel=2)
        return original(self, rows, *start)

    monkeypatch.setattr(base.DPLinearModel, "_fit", fit)


def mutant_one_group_in_two(monkeypatch):
    """Every other row of a group counts as another group's, as in two blocks of rows."""
    original = grouped_sources.Groups.of.__func__

    def of(cls, codes, n_groups):
        return original(cls, 2 * codes + np.arange(len(codes)) % 2, 2 * n_groups)

    monkeypatch.setattr(grouped_sources.Groups, "of", classmethod(of))
