"""The laws of the trust boundary, each as an attack that must fail."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest

from skdp._oracle import (
    AllRows,
    BudgetError,
    GaussianNoise,
    GradientSum,
    NoisyStatistic,
    NotAudited,
    Oracle,
    PlanError,
    Poisson,
    Public,
    PublicContext,
    Solution,
    SolverStage,
    make_plan,
    noise_source,
    run,
)
from skdp._oracle.oracle import FollowPlan, Ledger, PrivacyFilter
from skdp._oracle.releases.base import _AUDITED, Checked, _checks, audited
from skdp._oracle.sources.base import STREAMED
from skdp._oracle.sources.memory import MemorySource
from skdp.accounting import Adjacency, Composed, Gaussian, UnknownCost
from skdp.objective import Problem, SquaredError

PUBLIC = Public(50, 3, 1, Adjacency.ZERO_OUT, epsilon=1.0, delta=1e-6, has_intercept=False)
PROBLEM = Problem(SquaredError(), fit_intercept=False)


class CountingSource(MemorySource):
    """Rows that know how often they were passed over."""

    reads = 0

    def total(self, function, *arguments, rows=()):
        self.reads += 1
        return super().total(function, *arguments, rows=rows)

    def per_row(self, function, *arguments):
        self.reads += 1
        return super().per_row(function, *arguments)


class Asks:
    """A solver made of one function."""

    adaptive = False

    def __init__(self, function, adaptive=False):
        self._function = function
        self.adaptive = adaptive

    def solve(self, oracle):
        return Solution(self._function(oracle), 1)


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((50, 3))
    return CountingSource.of(X, X[:, :1].copy(), constant=0.0)


def session(function, rows, adaptive=False, public=PUBLIC):
    stages = (SolverStage(Asks(function, adaptive)),)
    plan = make_plan(stages, public, PROBLEM)
    rng = np.random.default_rng(0)
    return run(plan, stages, public, PROBLEM, rows, noise_source(None), rng)


def gradient_release(point=None, clip_norm=1.0, noise=1.0):
    point = np.zeros((3, 1)) if point is None else point
    return NoisyStatistic(GradientSum(point, clip_norm), GaussianNoise(noise))


def rowless(entries=None):
    """An oracle that answers from one row, guarded by a plan."""
    guard = FollowPlan(entries or ())
    context = PublicContext(PUBLIC, PROBLEM, 1.0)
    rows = CountingSource.of(np.ones((1, 3)), np.ones((1, 1)), constant=0.0)
    return Oracle(context, Ledger(guard), np.random.default_rng(0), rows, noise_source(None)), rows


# Law 1: a sum enforces the bound that it declares.


@pytest.mark.parametrize("clip_norm", [0.0, -1.0, np.inf, np.nan, 1e-320, 1e-120, 1e120])
def test_a_bound_that_is_none_is_refused(clip_norm):
    with pytest.raises(ValueError, match="clip_norm must be positive and finite"):
        GradientSum(np.zeros((3, 1)), clip_norm)


def test_a_number_that_changes_between_reads_is_read_once(rows):
    class Shifty:
        reads = 0

        def __float__(self):
            Shifty.reads += 1
            return 1e9 if Shifty.reads > 1 else 1.0

    chosen = GradientSum(np.zeros((3, 1)), Shifty())
    assert type(chosen.clip_norm) is float
    assert chosen.clip_norm == 1.0


def test_total_keeps_to_the_declared_contribution(rng):
    context = PublicContext(PUBLIC, PROBLEM, 1.0)
    for size, weight in itertools.product((1e-200, 1.0, 1e6, 1e200), (None, 1e6)):
        X = size * rng.standard_normal((1, 3))
        y = np.array([[size * 1e3]])
        weights = None if weight is None else np.array([weight])
        total = GradientSum(np.ones((3, 1)), 0.7).total(
            MemorySource.of(X, y, weights, constant=0.0), context
        )
        bound = GradientSum(np.ones((3, 1)), 0.7).contribution(context, 1).bound
        assert np.linalg.norm(total) <= bound
        assert 0.7 <= bound <= 0.7 * (1 + 1e-12)


def test_bound_of_rounding_grows_with_the_rows():
    def slack(n_rows):
        context = PublicContext(PUBLIC, PROBLEM, 1.0)
        return GradientSum(np.zeros((3, 1)), 1.0).contribution(context, n_rows).bound - 1

    assert 0 < slack(10**3) < slack(10**6) < 1e-4


# Law 2: a solver names points; it passes no code that runs over rows.


def test_a_point_is_copied_and_stripped_of_code():
    class Spy(np.ndarray):
        def __array_ufunc__(self, *args, **kwargs):
            raise AssertionError("code of the solver ran over rows")

    plain = np.zeros((3, 1))
    chosen = GradientSum(plain.view(Spy), 1.0)
    plain[:] = 1e3
    assert type(chosen.point) is np.ndarray
    assert not chosen.point.any()
    with pytest.raises(ValueError, match="read-only"):
        chosen.point[0] = 1.0


BY_NAME = sorted(_AUDITED, key=lambda kind: kind.__name__)
DECLARED = [kind for kind in BY_NAME if issubclass(kind, Checked) and _checks(kind)]


@pytest.mark.parametrize("kind", DECLARED, ids=lambda kind: kind.__name__)
def test_no_class_skips_the_checks_that_its_fields_declare(kind, monkeypatch):
    """One with checks of its own makes those of the declared types first."""
    assert len(DECLARED) > 15
    made = []

    def first(self):
        made.append(type(self))
        raise StopIteration

    monkeypatch.setattr(Checked, "__post_init__", first)
    with pytest.raises(StopIteration):
        object.__new__(kind).__post_init__()
    assert made == [kind]


def test_the_problem_is_not_the_solvers_to_change(rows):
    def swap(oracle):
        oracle.problem = None  # what rows are shown to is the context's problem
        return oracle.request(gradient_release())

    assert session(swap, rows).coef.shape == (3, 1)


# Law 4: only audited releases, made of audited parts, at finite points.


def test_a_sum_written_elsewhere_is_not_answered(rows):
    @dataclass(frozen=True, eq=False)
    class RawSum(GradientSum):
        """Claims the bound of its base and keeps to none."""

        def total(self, rows, context):
            return 1e9 * np.ones((3, 1))

    def steal(oracle):
        return oracle.request(NoisyStatistic(RawSum(np.zeros((3, 1)), 1.0), GaussianNoise()))

    with pytest.raises(NotAudited, match="RawSum is not an audited release"):
        session(steal, rows)
    oracle, spied = rowless()
    with pytest.raises(NotAudited, match="nothing was released"):
        steal(oracle)
    assert spied.reads == 0


@pytest.mark.parametrize("part", ["mechanism", "sampler", "release"])
def test_no_other_part_may_come_from_elsewhere_either(part):
    class Quiet(GaussianNoise):
        def add_noise(self, statistic, contribution, scale, noise_source):
            return statistic

    class Favourites(AllRows):
        pass

    class Loud(NoisyStatistic):
        def answer(self, rows, context, source):
            return rows

    gradient = GradientSum(np.zeros((3, 1)), 1.0)
    release = {
        "mechanism": NoisyStatistic(gradient, Quiet()),
        "sampler": NoisyStatistic(gradient, GaussianNoise(), Favourites()),
        "release": Loud(gradient, GaussianNoise()),
    }[part]
    oracle, rows = rowless()
    with pytest.raises(NotAudited):
        oracle.request(release)
    assert rows.reads == 0


def test_the_mark_is_not_given_elsewhere():
    with pytest.raises(NotAudited, match=r"does not lie in skdp\._oracle\.releases"):

        @audited
        class Mine:
            pass


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_point_that_is_not_finite_is_refused_before_rows_are_read(rows, bad):
    def diverge(oracle):
        return oracle.gradient(np.full((3, 1), bad), 1.0)

    oracle, spied = rowless()
    with pytest.raises(ValueError, match="the point must be finite"):
        diverge(oracle)
    assert spied.reads == 0


def test_a_finite_point_whose_margins_overflow_releases_a_finite_answer():
    """1e308 is finite, but margins are not: inf - inf must not come out as nan."""
    X = np.array([[1e10, -1e10, 1.0], [1.0, 1.0, 1.0]])
    rows = MemorySource.of(X, np.zeros((2, 1)), constant=0.0)
    context = PublicContext(PUBLIC, PROBLEM, 1.0)
    release = gradient_release(point=np.full((3, 1), 1e308))
    answer = release.answer(rows, context, noise_source(None))
    assert np.isfinite(answer).all()


def test_a_point_of_another_shape_is_refused(rows):
    with pytest.raises(ValueError, match="the point must have shape"):
        gradient_release(np.zeros((2, 1))).answer(
            rows, PublicContext(PUBLIC, PROBLEM, 1.0), noise_source(None)
        )


# What the place of the rows cannot do is refused by name, before the debt.


NEEDS = {
    "a full pass": (gradient_release(), "read more than once"),
    "rows by number": (
        NoisyStatistic(GradientSum(np.zeros((3, 1)), 1.0), GaussianNoise(), Poisson(0.5)),
        "taken by number",
    ),
}


@pytest.mark.parametrize("name", NEEDS)
def test_rows_that_are_read_once_are_not_asked_for_more(name):
    release, lacking = NEEDS[name]
    context = PublicContext(replace(PUBLIC, provides=STREAMED), PROBLEM, 1.0)
    source = CountingSource.of(np.ones((1, 3)), np.ones((1, 1)), constant=0.0)
    ledger = Ledger(PrivacyFilter(Adjacency.ZERO_OUT))
    oracle = Oracle(context, ledger, np.random.default_rng(0), source, noise_source(None))
    with pytest.raises(ValueError, match=rf"{release.kind}.*{lacking}.*Nothing was released"):
        oracle.request(release)
    assert source.reads == 0
    assert ledger.entries == ()


# Law 5: the debt comes first, and stands when the answer fails half way.


def test_the_debt_stands_when_the_answer_fails():
    class Failing(MemorySource):
        def total(self, *args, **options):
            raise MemoryError

    ledger = Ledger(PrivacyFilter(Adjacency.ZERO_OUT))
    context = PublicContext(PUBLIC, PROBLEM, 1.0)
    source = Failing.of(np.ones((1, 3)), np.ones((1, 1)), constant=0.0)
    oracle = Oracle(context, ledger, np.random.default_rng(0), source, noise_source(None))
    with pytest.raises(MemoryError):
        oracle.request(gradient_release(noise=1.1))
    assert [entry.count for entry in ledger.entries] == [1]
    with pytest.raises(BudgetError):
        oracle.request(gradient_release(noise=1.1))


# The guards.


def test_more_than_was_rehearsed_is_refused(rows):
    asked = []

    def greedy(oracle):
        answers = [oracle.request(gradient_release())]
        asked.append(1)
        if len(asked) > 1:  # the second time, that is, on the rows
            answers.append(oracle.request(gradient_release()))
        return answers[0]

    with pytest.raises(PlanError, match="after the end of its plan"):
        session(greedy, rows)
    assert rows.reads == 1


def test_less_noise_than_was_rehearsed_is_refused(rows):
    asked = []

    def louder(oracle):
        asked.append(1)
        return oracle.request(gradient_release(noise=1.0 if len(asked) == 1 else 0.5))

    with pytest.raises(PlanError, match="but its plan has"):
        session(louder, rows)
    assert rows.reads == 0


def test_stopping_early_is_allowed_and_costs_the_plan(rows):
    asked = []

    def shy(oracle):
        asked.append(1)
        for _ in range(10 if len(asked) == 1 else 2):
            answer = oracle.request(gradient_release())
        return answer

    session(shy, rows)
    assert rows.reads == 2


def test_a_filter_admits_exactly_the_budget(rows):
    def spend(oracle):
        for noise in (2.0, 2.0, 2.0, 2.0):  # 4 * 1/4
            answer = oracle.request(gradient_release(noise=noise))
        return answer

    session(spend, rows, adaptive=True)
    assert rows.reads == 4


def test_a_filter_refuses_what_is_over_before_it_is_read(rows):
    def overspend(oracle):
        oracle.request(gradient_release(noise=1.1))
        return oracle.request(gradient_release(noise=2.0))

    with pytest.raises(BudgetError, match="is left"):
        session(overspend, rows, adaptive=True)
    assert rows.reads == 1


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_a_filter_costs_what_was_asked_for(adjacency):
    """All of a filter's budget, spent anyhow, is the (epsilon, delta) asked for."""
    from skdp.accounting import price

    public = replace(PUBLIC, adjacency=adjacency)
    plan = make_plan((SolverStage(Asks(None, adaptive=True)),), public, PROBLEM)
    scale = plan.calibration.scale
    noises = [3.0, 5.0, 2.0]
    left = 1 - sum(noise**-2 for noise in noises)
    noises.append(left**-0.5)
    spent = Composed.of(Gaussian(noise).scaled(scale) for noise in noises)
    epsilon = price(spent, 1e-6, adjacency)[0]
    assert 0.999 < epsilon <= 1.0


# What must not be possible at all.


@pytest.mark.parametrize("part", ["source", "records"])
def test_rows_cannot_be_pickled(part):
    source = MemorySource.of(np.ones((2, 2)), np.ones((2, 1)))
    with pytest.raises(TypeError, match="training data"):
        pickle.dumps({"source": source, "records": source.records}[part])


def test_a_budget_that_no_noise_meets_is_refused_before_rows_are_read(rows):
    public = replace(PUBLIC, delta=0.0)
    with pytest.raises(UnknownCost):
        session(lambda oracle: oracle.request(gradient_release()), rows, public=public)
    assert rows.reads == 0
