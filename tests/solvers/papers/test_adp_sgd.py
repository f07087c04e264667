"""ADP-SGD against a plain loop, its noise, and what its step sizes may depend on."""

from __future__ import annotations

import math

import numpy as np
import pytest

import skdp
from replays import differing
from skdp._oracle import Public, SolverStage, make_plan
from skdp._oracle.oracle import Oracle
from skdp.accounting import Adjacency
from skdp.objective import Logistic, Multinomial, Problem, SquaredError
from skdp.solvers import get_solver
from skdp.solvers.papers.wu_2021 import AdaptiveNoiseSGD
from skdp.steps import step_sizes

PROBLEM = Problem(SquaredError())


def facts(**known):
    known = {"n_rows": 400, "n_features": 5, "epsilon": 1.0, "delta": 1e-6, **known}
    return Public(n_outputs=1, adjacency=known.pop("adjacency", Adjacency.ZERO_OUT), **known)


def noise_levels(solver, public, problem=PROBLEM):
    plan = make_plan((SolverStage(solver.resolve(public, problem)),), public, problem)
    levels = []
    for entry in plan.entries:
        event = entry.event
        while hasattr(event, "event"):
            event = event.event
        levels += [event.noise_multiplier * plan.calibration.scale] * entry.count
    return np.array(levels)


RULES = [
    ("polynomial", {"initial": 2.0, "a": 20.0, "c": 3.0}),
    ("square_root_decay", {"initial": 0.4}),
    ("adaptive", {"initial": 0.5, "first": 2.0, "least": 0.01}),
]


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_iterates_are_those_of_a_plain_loop(rule, regression):
    X, y = regression
    solver = AdaptiveNoiseSGD(max_iter=25, learning_rate=rule, clip_norm=1e9, averaging="last")
    model = skdp.DPLinearRegression(
        epsilon=math.inf, solver=solver, scaling="none", fit_intercept=False,
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)), ).fit(X, y)  # fmt: skip
    w, squared = np.zeros(5), 4.0
    for t in range(1, 26):
        gradient = X.T @ (X @ w - y) / len(y)
        if rule[0] == "polynomial":
            eta = 2.0 / math.sqrt(20 + 3 * t)
        elif rule[0] == "square_root_decay":
            eta = 0.4 - (0.4 - 1e-10) * math.sqrt(t / 25)
        else:
            squared += max(gradient @ gradient, 0.01)
            eta = 0.5 / math.sqrt(squared)
        w = w - eta * gradient
    np.testing.assert_allclose(model.coef_, w, atol=1e-10)


def test_the_last_step_of_the_square_root_decay_is_exact():
    sizes = step_sizes("square_root_decay", 11760)
    assert sizes[-1] == 1e-10
    assert (np.diff(sizes) < 0).all()
    assert sizes[0] == pytest.approx(0.1 - 0.1 / math.sqrt(11760), rel=1e-6)


@pytest.mark.parametrize("batch_size", [None, 50])
def test_noise_is_matched_to_the_steps(batch_size):
    rule = "polynomial", {"initial": 0.3}
    solver = AdaptiveNoiseSGD(max_iter=40, learning_rate=rule, batch_size=batch_size)
    levels = noise_levels(solver, facts())
    b = np.sqrt(20 + np.arange(1, 41))
    np.testing.assert_allclose(levels**2 / levels[0] ** 2, b / b[0], rtol=1e-9)


def test_noise_of_an_adaptive_step_is_the_preset():
    """alpha_t = (b_0**2 + t c)**(1/4), fixed before the run."""
    rule = "adaptive", {"first": 3.0, "growth": 0.5}
    levels = noise_levels(AdaptiveNoiseSGD(max_iter=30, learning_rate=rule), facts())
    alpha = (9.0 + 0.5 * np.arange(1, 31)) ** 0.25
    np.testing.assert_allclose(levels / levels[0], alpha / alpha[0], rtol=1e-9)


@pytest.mark.parametrize("how", [{"noise_schedule": "uniform"}, {"learning_rate": 0.1}])
def test_uniform_noise_or_constant_steps_are_dp_sgd(how):
    levels = noise_levels(AdaptiveNoiseSGD(max_iter=30, **how), facts())
    np.testing.assert_allclose(levels, levels[0])


def test_adaptive_steps_use_the_noisy_gradient_and_take_the_noise_off(monkeypatch, regression):
    """The sizes come from the answers of the oracle and from the public size of their noise."""
    answers, stds = [], []
    gradient, std = Oracle.gradient, Oracle.gradient_std

    def note_gradient(self, *asked):
        answers.append(gradient(self, *asked))
        return answers[-1]

    def note_std(self, *asked):
        stds.append(std(self, *asked))
        return stds[-1]

    rule = "adaptive", {"initial": 0.5, "least": 1e-4}
    solver = AdaptiveNoiseSGD(max_iter=15, learning_rate=rule, averaging="last")
    model = skdp.DPLinearRegression(
        solver=solver,
        fit_intercept=False,
        scaling="none",
        privacy=skdp.Privacy(noise=skdp.SeededNoise(3)),
    )
    monkeypatch.setattr(Oracle, "gradient", note_gradient)
    monkeypatch.setattr(Oracle, "gradient_std", note_std)
    model.fit(*regression)
    w, squared = np.zeros((5, 1)), 1.0
    assert min(stds[-15:]) > 0
    for answer, size in zip(answers[-15:], stds[-15:], strict=True):
        squared += max(np.sum(answer**2) - 5 * size**2, 1e-4)
        w = w - 0.5 / math.sqrt(squared) * answer
    np.testing.assert_allclose(model.coef_, w[:, 0], rtol=1e-12)


@pytest.mark.parametrize("row_bound", [0.1, 1.0, 20.0, 1e3])
@pytest.mark.parametrize("epsilon", [0.1, 10.0, 1e4])
@pytest.mark.parametrize("max_iter", ["auto", 1, 50, 10_000])
def test_default_steps_are_stable_for_any_rows(row_bound, epsilon, max_iter):
    public = facts(data_norm=row_bound, row_bound=row_bound, epsilon=epsilon)
    solver = AdaptiveNoiseSGD(max_iter=max_iter).resolve(public, PROBLEM)
    sizes = step_sizes(solver.learning_rate, solver.max_iter)
    assert sizes.max() * public.row_norm**2 < 2


@pytest.mark.parametrize("loss", [Logistic(), Multinomial(4), SquaredError()], ids=str)
def test_defaults_travel_no_further_than_gradient_descent(loss):
    public = Public(2000, 6, 4 if isinstance(loss, Multinomial) else 1, Adjacency.ZERO_OUT, 1, 1e-6)
    problem = Problem(loss)
    ours = AdaptiveNoiseSGD().resolve(public, problem)
    theirs = get_solver("gd").resolve(public, problem)
    distance = step_sizes(ours.learning_rate, ours.max_iter).sum()
    assert distance <= theirs.max_iter * theirs.learning_rate * (1 + 1e-9)
    assert ours.clip_norm == theirs.clip_norm


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"learning_rate": ("polynomial", {"a": -1})}, "a must not be negative"),
        ({"learning_rate": ("adaptive", {"least": 0})}, "least must be positive"),
        ({"learning_rate": ("adaptive", {"growth": -1})}, "growth must be positive"),
        ({"batch_size": 401}, "batch_size must be None"),
    ],
    ids=str,
)
def test_bad_hyperparameters_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        AdaptiveNoiseSGD(**bad).resolve(facts(), PROBLEM)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_nothing_but_releases_with_adaptive_steps(replay, classification, adjacency):
    X, y = classification[0][:60], classification[1][:60]
    solver = AdaptiveNoiseSGD(max_iter=9, learning_rate="adaptive")

    def make():
        return skdp.DPLogisticRegression(
            solver=solver,
            classes=[0, 1],
            privacy=skdp.Privacy(adjacency=str(adjacency), noise=skdp.SeededNoise(0)),
        )

    replay.check(make, *differing(X, y, adjacency, 3, 1e300, y[3]), adjacency)
