"""Solver "gd" with release="last": parameters, defaults, estimators, replay."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import skdp
from replays import differing
from skdp.accounting import Adjacency, GDPAccountant
from skdp.accounting.events.last_iterate import last_iterate_factor
from skdp.objective import L2, Logistic, Problem, SquaredError
from skdp.oracle import LastIterate, Public, SolverStage, make_plan, smoothness
from skdp.oracle.kernels import clipped_gradients as kernel
from skdp.solvers import GradientDescent
from skdp.steps import ConstantStep, GeometricClipping, LinearDecayStep

ALPHA = 400.0  # a penalty of 1 on the mean loss of 400 rows


def last(**parameters):
    return GradientDescent(release="last", **parameters)


def ridge(solver, **parameters):
    parameters = {
        "alpha": ALPHA,
        "fit_intercept": False,
        "scaling": "none",
        "privacy": skdp.Privacy(noise=skdp.SeededNoise(0)),
        **parameters,
    }
    return skdp.DPRidge(solver=solver, **parameters)


# What it buys.


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_hidden_steps_need_less_noise(regression, adjacency):
    steps = {"max_iter": 500, "learning_rate": 0.09}
    terms = {"privacy": skdp.Privacy(adjacency=adjacency)}
    hidden = ridge(last(**steps), **terms).fit(*regression).privacy_
    shown = ridge(GradientDescent(**steps), **terms).fit(*regression).privacy_
    (record,) = hidden.releases
    assert (record.kind, record.count, record.event.n_steps) == ("last_iterate", 1, 500)
    assert 0.999 < hidden.epsilon <= 1.0
    assert hidden.epsilon_at(1e-6) <= 1.0
    factor = last_iterate_factor(500, 1 / (1 + 0.09 * 1.0))
    saved = record.noise_multiplier / shown.releases[0].noise_multiplier
    assert saved == pytest.approx(factor / math.sqrt(500), rel=1e-6)
    assert saved < 0.25


def test_more_steps_cost_no_more_noise_once_the_first_are_forgotten(regression):
    noise = [
        ridge(last(max_iter=n, learning_rate=0.09))
        .fit(*regression)
        .privacy_.releases[0]
        .noise_multiplier
        for n in (10, 100, 1000, 4000)
    ]
    assert noise[0] < noise[1] < noise[2]
    assert noise[3] == pytest.approx(noise[2], rel=1e-9)


def test_a_penalty_too_weak_saves_nothing(regression):
    model = ridge(last(max_iter=50, learning_rate=0.01), alpha=1e-6).fit(*regression)
    event = model.privacy_.releases[0].event
    factor = GDPAccountant().mu(event, Adjacency.ZERO_OUT) * event.event.noise_multiplier
    assert factor == pytest.approx(math.sqrt(50), rel=1e-6)
    assert factor <= math.sqrt(50) * (1 + 1e-12)


def test_plan_is_the_fit(regression):
    model = ridge(last())
    assert replace(model.plan(400, 5), notes=()) == model.fit(*regression).privacy_


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize("scaling", ["none", skdp.RowNorm(1.0)])
def test_without_noise_it_is_the_other_release(regression, scaling):
    steps = {"max_iter": 80, "learning_rate": 0.05, "momentum": 0.0, "averaging": "last"}
    hidden, shown = (
        ridge(GradientDescent(release=what, **steps), epsilon=math.inf, scaling=scaling).fit(
            *regression
        )
        for what in ("last", "all")
    )
    np.testing.assert_allclose(hidden.coef_, shown.coef_, rtol=1e-10)
    assert hidden.privacy_.noise_source == "none"


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
def test_without_noise_its_defaults_reach_the_minimum(regression):
    X, y = regression
    model = ridge(last(max_iter=2000), epsilon=math.inf).fit(X, y)
    exact = np.linalg.solve(X.T @ X + ALPHA * np.eye(5), X.T @ y)
    np.testing.assert_allclose(model.coef_, exact, atol=1e-9)


def test_logistic_regression_fits(classification):
    X, y = classification
    model = skdp.DPLogisticRegression(
        classes=[0, 1],
        C=0.01,
        epsilon=50.0,
        fit_intercept=False,
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
        solver=last(),
    ).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.privacy_.epsilon <= 50.0


def test_nothing_more_is_kept_than_with_the_other_release(regression):
    hidden = ridge(last()).fit(*regression)
    shown = ridge(GradientDescent()).fit(*regression)
    assert set(vars(hidden)) == set(vars(shown))
    assert set(vars(hidden.solver_)) == set(vars(shown.solver_))
    for name, value in vars(hidden).items():
        if isinstance(value, np.ndarray):
            assert value.size <= 5, name


# Parameters and defaults.


def test_auto_stands_for_plain_steps(regression):
    solver = ridge(last()).fit(*regression).solver_
    assert (solver.momentum, solver.averaging, solver.noise_schedule) == (0.0, "last", "uniform")
    assert "auto" not in map(str, solver.get_params().values())


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 100.0, math.inf])
@pytest.mark.parametrize("loss", [SquaredError(), Logistic()], ids=str)
def test_defaults_meet_the_conditions(epsilon, loss):
    for n_rows in [1, 1000, 10**9]:
        for row_bound in [None, 1e-3, 1e6]:
            if row_bound is None and epsilon < math.inf:
                continue  # estimators set one then
            public = Public(
                n_rows=n_rows,
                n_features=6,
                n_outputs=1,
                adjacency=Adjacency.ZERO_OUT,
                epsilon=epsilon,
                delta=1e-6,
                has_intercept=False,
                row_bound=row_bound,
                data_norm=row_bound,
            )
            problem = Problem(loss, L2(0.1), fit_intercept=False)
            solver = last().resolve(public, problem)
            assert 100 <= solver.max_iter <= 2000
            assert 0 < solver.learning_rate < math.inf
            if row_bound is not None:
                assert solver.learning_rate * smoothness(public, problem) < 2
            assert make_plan((SolverStage(solver),), public, problem).entries


def test_steps_given_by_the_user_are_kept(regression):
    solver = ridge(last(max_iter=321)).fit(*regression).solver_
    assert solver.max_iter == 321
    solver = ridge(last(learning_rate=0.01)).fit(*regression).solver_
    assert solver.learning_rate == 0.01


def test_constant_schedules_are_numbers(regression):
    one = ridge(last(max_iter=20, learning_rate=ConstantStep(0.05))).fit(*regression)
    two = ridge(last(max_iter=20, learning_rate=0.05)).fit(*regression)
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize(
    "parameters",
    [
        {"momentum": 0.5},
        {"averaging": "tail"},
        {"averaging": "random"},
        {"batch_size": 50},
        {"learning_rate": LinearDecayStep(0.05, 0.01)},
        {"clip_norm": GeometricClipping(2.0, 1.0)},
        {"noise_schedule": np.linspace(1, 2, 30)},
    ],
    ids=lambda parameters: " ".join(parameters),
)
def test_steps_that_are_not_plain_are_refused(parameters, regression):
    (name,) = parameters
    with pytest.raises(
        ValueError, match=rf"(?s)'last' takes plain steps: .* got {name}=.*Nothing was released"
    ):
        ridge(last(**{"max_iter": 30, **parameters})).fit(*regression)


def test_unknown_release(regression):
    with pytest.raises(ValueError, match="release must be one of 'all', 'last'; got 'first'"):
        ridge(GradientDescent(release="first")).fit(*regression)


def test_refusals_of_the_estimators(regression, classification):
    X, y = regression
    with pytest.raises(ValueError, match="needs fit_intercept=False"):
        ridge(last(), fit_intercept=True).fit(X, y)
    with pytest.raises(ValueError, match="needs rows without sample_weight"):
        ridge(last()).fit(X, y, sample_weight=np.ones(400))
    with pytest.raises(ValueError, match="needs one output"):
        ridge(last()).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="needs learning_rate <="):
        ridge(last(learning_rate=1.0)).fit(X, y)
    with pytest.raises(ValueError, match="needs a strongly convex penalty"):
        skdp.DPLinearRegression(fit_intercept=False, solver=last()).fit(X, y)
    logistic = {"fit_intercept": False, "solver": last()}
    weighted = skdp.DPLogisticRegression(class_weight={0: 1.0, 1: 2.0}, **logistic)
    with pytest.raises(ValueError, match="needs rows without sample_weight and class_weight"):
        weighted.fit(*classification)
    with pytest.raises(ValueError, match="needs rows without sample_weight and class_weight"):
        weighted.plan(400, 5)
    with pytest.raises(ValueError, match="the loss is 'multinomial' with 3 output"):
        skdp.DPLogisticRegression(**logistic).fit(X, np.arange(400) % 3)


# Replay: no row shows except through the hidden answers, and each of these is in the statement.


def pairs(rng, adjacency, kind):
    """Data and neighbour; without weights a null record is a row of zeros."""
    X = rng.standard_normal((60, 4))
    y = (X[:, 0] > 0).astype(int) if kind == "logistic" else X[:, 0] - X[:, 1]
    ones = np.ones(4)
    for place, row in enumerate([1e5 * ones, -1e300 * ones, 1e-170 * ones, 3 * ones]):
        for target in (0, 1) if kind == "logistic" else (-1e300, 0.0, 1e12):
            there, other = differing(X, y, adjacency, place, row, target)
            yield other[:2], there[:2]


def make(kind, adjacency):
    solver = last(max_iter=12, clip_norm=0.3)
    common = {
        "privacy": skdp.Privacy(adjacency=str(adjacency), noise=skdp.SeededNoise(0)),
        "fit_intercept": False,
    }
    common["scaling"] = "none"  # rows of zeros stand for null records here; a histogram counts them
    if kind == "logistic":
        return skdp.DPLogisticRegression(classes=[0, 1], C=0.1, solver=solver, **common)
    return skdp.DPRidge(alpha=30.0, solver=solver, **common)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("kind", ["logistic", "ridge"])
def test_replay(replay, rng, kind, adjacency):
    replay.check_each(lambda: make(kind, adjacency), pairs(rng, adjacency, kind), adjacency)


def mutant_no_clipping(monkeypatch):
    monkeypatch.setattr(kernel, "clip_l2", lambda residuals, clip_norm, inverse_norms: None)


def mutant_one_answer_declared_less(monkeypatch):
    event = LastIterate.event

    def fewer(self, context):
        full = event(self, context)
        return type(full)(full.event, full.n_steps - 1, full.contraction, full.reach)

    monkeypatch.setattr(LastIterate, "event", fewer)


def mutant_half_the_noise(monkeypatch):
    from skdp.oracle.releases.mechanisms import GaussianNoise

    original = GaussianNoise.scale_of_noise
    monkeypatch.setattr(GaussianNoise, "scale_of_noise", lambda *given: original(*given) / 2)


def mutant_stopping_by_the_rows(monkeypatch):
    answer = LastIterate.answer

    def early(self, source, context, noise_source):
        if source.records.X.max() > 100:
            self = LastIterate(self.n_steps - 1, self.step_size, self.clip_norm, self.mechanism)
        return answer(self, source, context, noise_source)

    monkeypatch.setattr(LastIterate, "answer", early)


def mutant_polished_at_the_end(monkeypatch):
    answer = LastIterate.answer

    def polished(self, source, context, noise_source):
        point = answer(self, source, context, noise_source)
        given = context.problem.loss, point, self.clip_norm
        return point - 1e-6 * source.total(kernel.clipped_gradients, *given)

    monkeypatch.setattr(LastIterate, "answer", polished)


MUTANTS = {name: value for name, value in globals().items() if name.startswith("mutant_")}


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_replay_catches_mutants(replay, rng, monkeypatch, mutant, adjacency):
    MUTANTS[mutant](monkeypatch)
    found = pairs(rng, adjacency, "logistic")
    assert replay.finds_a_leak(lambda: make("logistic", adjacency), found, adjacency)
