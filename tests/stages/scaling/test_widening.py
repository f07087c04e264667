"""Ranges that become wider halfway: where that helps, what it costs, and what leaves."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import replays
import skdp
from replays import data_for, seeded, solvers_for
from skdp._fitting import estimator as fits
from skdp._oracle import (
    Columns,
    Oracle,
    Public,
    Scaling,
    Solution,
    noise_source,
)
from skdp._oracle.oracle import AdmitAll, Ledger
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.releases.record_sums import TailSum
from skdp._oracle.session import rehearse
from skdp._oracle.sources.memory import MemorySource
from skdp._stages.scaling import stage
from skdp._stages.scaling.stage import EXPANSION_FACTOR, SHARE, Widening
from skdp.accounting import Adjacency
from skdp.objective import ElasticNet, Problem, SquaredError
from skdp.solvers import get_solver

PROBLEM = Problem(SquaredError(), ElasticNet(0.1))
REGRESSORS = [skdp.DPLinearRegression, skdp.DPRidge]


def fitted(X, y, seed=0, **parameters):
    model = skdp.DPLinearRegression(
        privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)), **parameters
    )
    return model.fit(X, y)


def is_wider(model):
    """Whether the bound on rows is more than the usual one, twice the root of the parameters."""
    return model.row_bound_ > 2.1 * np.sqrt(len(np.ravel(model.coef_)) + 1)


def long_tails(rng, n=12_000):
    return 1e4 * rng.pareto(3.0, (n, 6))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 10.0])
def test_tails_that_count_are_kept(rng, monkeypatch, epsilon):
    """Without privacy R2 is .82."""
    X = long_tails(rng)
    y = (X - X.mean(axis=0)) @ np.full(6, 1e-4) + rng.standard_normal(len(X))
    model = fitted(X, y, epsilon=epsilon)
    assert is_wider(model)
    assert model.score(X, y) > 0.72
    assert_allclose(model.coef_, 1e-4, rtol=0.25)
    monkeypatch.setattr(Widening, "applies", classmethod(lambda *given: "not in this test"))
    monkeypatch.setattr(fits, "_plans", {})
    narrow = fitted(X, y, epsilon=epsilon)
    assert narrow.score(X, y) < model.score(X, y) - 0.1


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("shape", ["logarithm", "limit", "sentinel"])
def test_tails_that_mislead_are_not(rng, epsilon, shape):
    """What the target depends on ends before the tail does, or rows have a number for "none"."""
    Z = rng.standard_normal((12_000, 6))
    X = {"logarithm": np.exp(2 * Z), "limit": long_tails(rng), "sentinel": Z.copy()}[shape]
    signal = {"logarithm": Z, "limit": np.minimum(X, 1e4) / 1e4, "sentinel": Z}[shape]
    X[rng.random(X.shape) < (0.004 if shape == "sentinel" else 0)] = 999_999
    y = signal @ np.ones(6) + rng.standard_normal(len(X))
    assert not is_wider(fitted(X, y, epsilon=epsilon))


@pytest.mark.parametrize(("spread", "epsilon"), [(2, 3.0), (3, 3.0), (3, 10.0)])
def test_a_long_tail_that_does_not_matter_does_no_harm(spread, epsilon):
    """Rows are many times as long then as the Gram matrix knows; without privacy R2 is .95."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        Z = rng.standard_normal((20_000, 6))
        X = np.column_stack([Z[:, :5], np.exp(spread * Z[:, 5])])
        y = 2 * Z[:, :5].sum(axis=1) + rng.standard_normal(len(Z))
        assert fitted(X, y, seed, epsilon=epsilon).score(X, y) > 0.92


# ------------------------------------------------- the rule, on records that are known


def looked_at(slope, scale, rng, unbounded=False):
    """An oracle of one column with another slope beyond 1, after Widening looked at it."""
    n = 4000
    x = rng.uniform(-1, 3, (n, 1))
    y = np.minimum(x, 1.0) + slope * np.maximum(x - 1.0, 0.0)
    public = Public(n, 1, 1, Adjacency.ZERO_OUT, 1.0, 1e-6, has_intercept=False, row_bound=None)
    context = PublicContext(public, Problem(SquaredError(), ElasticNet(0.0)), scale)
    source = MemorySource.of(x, y, None, None, 0.0)
    rng, ledger = np.random.default_rng(0), Ledger(AdmitAll())
    oracle = Oracle(context, ledger, rng, source, noise_source(0))
    one = np.ones(1)
    columns, targets = Columns(-one, one, 0 * one, one), Columns(-4 * one, 4 * one, 0 * one, one)
    oracle.standardise(Scaling(columns, targets))
    Widening(SHARE, not unbounded).run(oracle, Solution(np.ones((1, 1)), 0))
    return oracle, ledger


@pytest.mark.parametrize("slope", [-1.0, 0.0, 0.02, 0.15, 1.0])
def test_a_slope_in_the_tail_decides(rng, slope):
    oracle, ledger = looked_at(slope, 1e-6, rng)
    wide = slope > 0.1
    times = EXPANSION_FACTOR if wide else 1.0
    assert oracle.scaling.columns.high == pytest.approx(times)
    assert oracle.scaling.targets.high == pytest.approx(4 * times)
    assert oracle.public.row_bound == pytest.approx(times * 2.0)
    # Later answers are about the records of these ranges.
    assert np.abs(oracle._source.records.X).max() == pytest.approx(3.0 if wide else 1.0, abs=0.01)
    assert [(entry.kind, entry.count) for entry in ledger.entries] == [("tails", 1)]


def test_what_noise_may_have_done_changes_nothing(rng):
    oracle, _ = looked_at(1.0, 1e4, rng)
    assert oracle.scaling.columns.high == 1.0
    assert oracle.public.row_bound == pytest.approx(2.0)


def test_declared_ranges_of_targets_stay(rng):
    oracle, _ = looked_at(1.0, 1e-6, rng, unbounded=True)
    assert oracle.scaling.columns.high == EXPANSION_FACTOR
    assert oracle.scaling.targets.high == 4.0


def test_ranges_become_wider_around_their_centres(rng):
    columns = Columns([99.0, -1e308], [103.0, 1e308], [100.0, 0.0], [1.0, 1.0])
    wide = stage._scaled(columns, EXPANSION_FACTOR)
    assert_allclose(wide.low, [100 - EXPANSION_FACTOR, -np.finfo(float).max])
    assert_allclose(wide.high, [100 + 3 * EXPANSION_FACTOR, np.finfo(float).max])
    assert_allclose(wide.centre, columns.centre)


def test_other_centres_or_sizes_are_refused(rng):
    oracle, _ = looked_at(1.0, 1e-6, rng)
    one = np.ones(1)
    targets = oracle.scaling.targets
    for columns in (Columns(-one, one, 0.5 * one, one), Columns(-one, one, 0 * one, 2 * one), None):
        with pytest.raises(ValueError, match=r"centres and scales that rows have.*Nothing"):
            oracle.change_ranges(Scaling(columns, targets), 2.0)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_ranges_of_a_block_end_with_it(rng, form):
    """Rows that the present ranges leave as they are have no part, unless rows are sparse."""
    X = rng.standard_normal((3000, 3)) * 10.0 ** rng.uniform(-1, 1, (3000, 1))
    X[rng.random(X.shape) < 0.5] = 0.0
    y, three = X[:, :1].copy(), np.full(3, 3.0)
    public = Public(3000, 3, 1, Adjacency.ZERO_OUT, 1.0, 1e-6, row_bound=4.0)
    context = PublicContext(public, Problem(SquaredError()), 1e-9)
    source = MemorySource.of(form(X), y, rng.random(3000), 4.0, public.intercept_size)
    oracle = Oracle(context, Ledger(AdmitAll()), rng, source, noise_source(0))
    oracle.standardise(Scaling(Columns(-three, three, 0.2 * three, three / 3)))
    request = TailSum(np.ones((4, 1)), -three - 0.6, three - 0.6, oracle.public.row_bound, 50.0)
    wide = replace(oracle.scaling, columns=stage._scaled(oracle.scaling.columns, 2.0))
    before = request.total(oracle._source, context)
    with oracle.with_ranges(wide, 8.0):
        assert (oracle._source.n_rows < 3000) == (form is np.asarray)
        inside = request.total(oracle._source, context)
    assert_allclose(before, request.total(oracle._source, context), rtol=0)
    oracle.change_ranges(wide, 8.0)
    assert_allclose(inside, request.total(oracle._source, context), rtol=1e-12)
    assert abs(inside - before).max() > 1


def test_the_rows_that_were_given_are_not_written_over(rng):
    X = rng.standard_normal((50, 2))
    before, rows = X.copy(), MemorySource.of(X, np.zeros((50, 1)), None, None, 1.0)
    two = np.full(2, 2.0)
    rows.transformed(Scaling(Columns(-two, two, two, two)), 5.0)
    assert (before == X).all()


# ------------------------------------------------- where it is had, and what it costs


def kinds(model, n=2000, **shape):
    return [release.kind for release in model.plan(n, 6, **shape).releases]


@pytest.mark.parametrize("estimator", REGRESSORS)
def test_where_it_is_had(estimator):
    replace_one = skdp.Privacy(adjacency="replace_one")
    for parameters in (
        {}, {"privacy": replace_one}, {"scaling": skdp.PublicRange(target=9.0)}, {"epsilon": 0.1},
        {"solver": "gd"}, {"max_iter": 30},
    ):  # fmt: skip
        assert "tails" in kinds(estimator(**parameters))
    for parameters in (
        {"solver": "boosted_ssp"}, {"scaling": "none"}, {"scaling": skdp.PublicRange(0, 1)},
        {"scaling": skdp.RowNorm(1.0)}, {"inference": "coefficients"}, {"epsilon": np.inf},
        {"delta": 0.0},
    ):  # fmt: skip
        assert "tails" not in kinds(estimator(**parameters))
    assert "tails" not in kinds(estimator(), n_outputs=2)
    assert "tails" not in kinds(skdp.DPLogisticRegression(classes=[0, 1]))


@pytest.mark.parametrize("n_rows", [1500, 200_000])
def test_its_share_of_the_budget(n_rows):
    """Steps by gd and by "whitened" count their noise in units of their own."""
    releases = skdp.DPRidge(epsilon=1.0).plan(n_rows, 40).releases
    spent: dict[str, float] = {}
    for one in releases:  # steps before and after it are releases of their own
        spent[one.kind] = spent.get(one.kind, 0.0) + one.count / one.noise_multiplier**2
    assert ("gram" in spent) == (n_rows > 1500)
    of_solver = spent["gradient"] + spent.get("gram", 0.0)
    assert spent["tails"] / of_solver == pytest.approx(SHARE, rel=0.02)


@pytest.mark.parametrize(
    "given",
    [
        {"solver": "gd", "max_iter": 1},
        {"solver": "whitened", "max_iter": 1},
    ],
)
def test_a_run_without_a_checkpoint_states_none(given):
    plan = skdp.DPRidge(alpha=3000.0, fit_intercept=False, **given).plan(3000, 4)
    assert "tails" not in [release.kind for release in plan.releases]
    assert not any("tails" in text for text in plan.assumptions)


@pytest.mark.parametrize("name", solvers_for(PROBLEM))
def test_solvers_have_one_checkpoint_if_they_say_so(name):
    public = Public(500, 4, 1, Adjacency.ZERO_OUT, 1.0, 1e-6, row_bound=3.0)
    solver, seen = get_solver(name).resolve(public, PROBLEM), []

    def run(oracle, _):
        oracle.checkpoint = lambda *arguments: seen.append(arguments)
        solver.solve(oracle)

    rehearse(SimpleNamespace(run=run), public, PROBLEM)
    assert len(seen) == solver.has_checkpoint
    assert all(point.shape == public.shape for point, _ in seen)


def test_the_statement_names_it():
    model = skdp.DPRidge()
    assert any("release 'tails'" in text for text in model.plan(2000, 6).assumptions)
    model.set_params(solver="boosted_ssp")
    assert not any("tails" in text for text in model.plan(2000, 6).assumptions)


# ------------------------------------------------- what leaves


def make(**parameters):
    privacy = seeded(adjacency="replace_one")
    return skdp.DPRidge(alpha=2.0, epsilon=20.0, privacy=privacy, **parameters)


def neighbours(rng):
    for pair in replays.neighbours("linear", *data_for("linear", rng), Adjacency.REPLACE_ONE):
        yield tuple((*one[:2], None) for one in pair)


@pytest.mark.parametrize("parameters", [{}, {"fit_intercept": False}], ids=str)
def test_nothing_but_releases(replay, rng, monkeypatch, parameters):
    monkeypatch.setattr(fits, "_plans", {})
    replay.check_each(lambda: make(**parameters), neighbours(rng), Adjacency.REPLACE_ONE)
