"""What a hidden run refuses, and how it stands at the boundary."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from hidden_runs import CLIP, N_ROWS, ROW_BOUND, context_for, data_for, problem_for, rows_for
from skdp.objective import L1, L2, Box, Multinomial, NoPenalty, Problem, SquaredError
from skdp.oracle import GaussianNoise, LastIterate, NotAudited, Oracle, noise_source, smoothness
from skdp.oracle.ledger import AdmitAll, FollowPlan, Ledger
from skdp.oracle.sources.memory import MemorySource


@pytest.fixture
def data(rng):
    return data_for(rng)


# The conditions: who, what, what was allowed; before anything is charged.

REFUSALS = {
    "intercept": (
        {"problem": Problem(SquaredError(), L2(0.5)), "has_intercept": True},
        r"needs fit_intercept=False: .* would save nothing",
    ),
    "intercept of the problem alone": (
        {"problem": Problem(SquaredError(), L2(0.5))},
        "needs fit_intercept=False",
    ),
    "multinomial": (
        {"problem": problem_for(loss=Multinomial(3)), "n_outputs": 3},
        r"needs one output, .* the loss is 'multinomial' with 3 output",
    ),
    "two targets": ({"n_outputs": 2}, "needs one output, .* 'squared_error' with 2 output"),
    "weights": ({"weighted": True}, "needs rows without sample_weight and class_weight"),
    "no bound on rows": ({"row_bound": None}, "needs a bound on the norm of rows; set scaling=RowNorm"),
    "nothing that contracts": (
        {"problem": problem_for(NoPenalty())},
        r"needs a strongly convex penalty.*NoPenalty.*Unconstrained",
    ),
    "L1 in a half-space": (
        {"problem": problem_for(L1(0.2), constraint=Box(0, math.inf))},
        "needs a strongly convex penalty",
    ),
    "long steps": ({"row_bound": 3.0}, r"needs learning_rate <= 2 / .* = 0.222222.*got 0.3"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case, data):
    facts, message = REFUSALS[case]
    facts = dict(facts)
    context = context_for(facts.pop("problem", None), **facts)
    ledger = Ledger(AdmitAll())
    oracle = Oracle(context, ledger, np.random.default_rng(0), rows_for(*data), noise_source(0))
    with pytest.raises(ValueError, match=rf"(?s)release='last' {message}.*Nothing was released\."):
        oracle.request(LastIterate(20, 0.3, CLIP))
    assert ledger.entries == ()


def test_a_loss_without_a_bound_on_its_curvature_is_refused():
    @dataclasses.dataclass(frozen=True)
    class KinkedError(SquaredError):
        curvature = math.inf

    with pytest.raises(ValueError, match="a loss of finite curvature"):
        LastIterate(20, 0.3, CLIP).event(context_for(problem_for(loss=KinkedError())))


def test_largest_step_that_is_allowed():
    context = context_for()
    largest = 2 / smoothness(context.public, context.problem)
    LastIterate(20, largest, CLIP).event(context)
    with pytest.raises(ValueError, match="needs learning_rate <="):
        LastIterate(20, largest * (1 + 1e-12), CLIP).event(context)


def test_infinite_epsilon_needs_no_bound_on_rows(data):
    X, y = data
    context = context_for(scale=0.0, epsilon=math.inf, row_bound=None)
    rows = MemorySource.of(X, y.reshape(-1, 1), None, None, 0.0)
    assert np.isfinite(LastIterate(20, 0.3, CLIP).answer(rows, context, noise_source(0))).all()


@pytest.mark.parametrize("change", ["weights", "bound", "number"])
def test_rows_that_are_not_as_announced_are_refused(data, change):
    X, y = data
    weights = np.ones(N_ROWS) if change == "weights" else None
    bound = 3.0 if change == "bound" else ROW_BOUND
    rows = MemorySource.of(X, y.reshape(-1, 1), weights, bound, 0.0)
    if change == "number":
        rows = rows.take(np.arange(5))
    with pytest.raises(ValueError, match="needs the public number of rows"):
        LastIterate(5, 0.3, CLIP).answer(rows, context_for(), noise_source(0))


@pytest.mark.parametrize(
    "bad", [(0, 0.3, CLIP), (5, 0.0, CLIP), (5, math.nan, CLIP), (5, 0.3, math.inf)]
)
def test_numbers_out_of_range(bad):
    with pytest.raises(ValueError, match=r"LastIterate: .* must be"):
        LastIterate(*bad)


# The boundary.


def test_only_audited_noise(data):
    class Quiet(GaussianNoise):
        def add_noise(self, statistic, contribution, scale, noise_source):
            return statistic

    oracle = Oracle(
        context_for(),
        Ledger(AdmitAll()),
        np.random.default_rng(0),
        rows_for(*data),
        noise_source(0),
    )
    with pytest.raises(NotAudited):
        oracle.request(LastIterate(5, 0.3, CLIP, Quiet()))


def test_one_debt_and_nothing_kept(data):
    context = context_for()
    release = LastIterate(5, 0.3, CLIP)
    before = dict(vars(release))
    rehearsed = Ledger(AdmitAll())
    placeholder = Oracle(context, rehearsed, np.random.default_rng(0)).request(release)
    ledger = Ledger(FollowPlan(rehearsed.entries))
    oracle = Oracle(context, ledger, np.random.default_rng(0), rows_for(*data), noise_source(0))
    answer = oracle.request(release)
    assert answer.shape == placeholder.shape == (3, 1)
    assert [(entry.kind, entry.count) for entry in ledger.entries] == [("last_iterate", 1)]
    assert vars(release) == before
    with pytest.raises(Exception, match="after the end of its plan"):
        oracle.request(release)
