"""Solvers that use second moments: their minima, their defaults, and what they refuse."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss

import skdp
from skdp._oracle import Public, ShrunkGradientSum
from skdp._oracle.oracle import Oracle
from skdp.accounting import Adjacency
from skdp.objective import ElasticNet, L2Ball, Logistic, Multinomial, Problem, SquaredError
from skdp.solvers import get_solver
from skdp.solvers.auto import automatic_solver
from skdp.solvers.core import whitened

pytestmark = pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")

WITH_SHARE = Oracle.with_share


@pytest.mark.parametrize("solver", ["boosted_ssp", "whitened"])
def test_several_targets_are_several_problems(solver, regression):
    X, y = regression
    both = np.column_stack([y, X[:, 0] - y])
    model = skdp.DPRidge(3.0, epsilon=math.inf, solver=solver, scaling="none").fit(X, both)
    np.testing.assert_allclose(model.coef_, Ridge(3.0).fit(X, both).coef_, atol=1e-6)


def test_classifiers_come_near_the_twin(rng):
    X = rng.standard_normal((8000, 6))
    y = (X[:, 0] - X[:, 1] + rng.logistic(size=8000) > 0).astype(int)
    model = skdp.DPLogisticRegression(
        classes=[0, 1],
        epsilon=1.0,
        solver="whitened",
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
        scaling="none",
    ).fit(X, y)
    assert model.score(X, y) > LogisticRegression().fit(X, y).score(X, y) - 0.01


@pytest.mark.parametrize("rounds", [1, 3])
def test_boosting_without_noise_in_any_unit(rounds, regression):
    """Targets in a large unit are not shrunk, nor are rows along with them."""
    X, y = regression
    solver = get_solver("boosted_ssp", rounds=rounds)
    model = skdp.DPRidge(3.0, epsilon=math.inf, solver=solver, scaling="none").fit(X, 1e3 * y)
    np.testing.assert_allclose(model.coef_, Ridge(3.0).fit(X, 1e3 * y).coef_, rtol=1e-6)


@pytest.mark.parametrize("solver", ["boosted_ssp", "whitened"])
def test_constraints_and_kinks_are_refused(solver, regression):
    X, y = regression
    with pytest.raises(ValueError, match="unconstrained"):
        skdp.DPRidge(solver=solver, constraint=skdp.objective.L2Ball()).fit(X, y)
    with pytest.raises(ValueError, match="smooth_penalty"):
        get_solver(solver).check(Problem(SquaredError(), ElasticNet(0.1, 1.0)))


def test_rounds_that_leave_nothing_are_refused(regression):
    with pytest.raises(ValueError, match="leave nothing"):
        skdp.DPRidge(solver=get_solver("boosted_ssp", rounds=40)).fit(*regression)


# ------------------------------------------------------------------ what "auto" stands for


def public(n_rows, n_features=50, **facts):
    facts = {"epsilon": 1.0, "delta": 1e-6, "adjacency": Adjacency.ZERO_OUT, **facts}
    return Public(n_rows=n_rows, n_features=n_features, n_outputs=1, **facts)


def in_groups(n_groups, n_features):
    return public(n_groups, n_features, unit="group", rows_per_group=5)


@pytest.mark.parametrize(
    ("facts", "problem", "expected"),
    [
        (public(100_000), Problem(Logistic()), "whitened"),
        (public(100_000), Problem(SquaredError()), "whitened"),
        (replace(public(1_000_000), n_outputs=3), Problem(SquaredError()), "whitened"),
        (replace(public(100_000), n_outputs=3), Problem(Multinomial(3)), "whitened"),
        (replace(public(20_000, 20), n_outputs=100), Problem(Multinomial(100)), "whitened"),
        (replace(public(20_000, 20), n_outputs=3), Problem(Multinomial(3)), "whitened"),
        (replace(public(1_000, 20), n_outputs=3), Problem(Multinomial(3)), "gd"),
        (public(100_000, epsilon=0.01), Problem(Logistic()), "gd"),
        (public(100_000, sparse=True), Problem(Logistic()), "whitened"),
        (public(100_000, weighted=True), Problem(Logistic()), "gd"),
        (public(1000, epsilon=math.inf, weighted=True), Problem(Logistic()), "whitened"),
        (public(100_000, 300), Problem(Logistic()), "whitened"),
        (public(36_000, 300), Problem(Logistic()), "whitened"),
        (public(32_000, 300), Problem(Logistic()), "gd"),
        (public(36_000, 300, sparse=True), Problem(Logistic()), "whitened"),
        (public(40_000, 140), Problem(Logistic()), "whitened"),
        (public(200_000, 510), Problem(Logistic()), "whitened"),
        (public(100_000, 300), Problem(SquaredError()), "whitened"),
        (public(10**8, 600), Problem(Logistic()), "whitened"),
        (public(10**8, 1001), Problem(Logistic()), "gd"),
        (public(100_000), Problem(Logistic(), ElasticNet(0.1, 1.0)), "gd"),
        (public(100_000), Problem(Logistic(), ElasticNet(0.1), L2Ball(1.0)), "gd"),
        (public(150, 20), Problem(SquaredError()), "gd"),
        (public(150, 20), Problem(SquaredError(), ElasticNet(0.1, 1.0)), "gd"),
        (public(150, 20), Problem(Logistic()), "gd"),
        (public(620, 20), Problem(SquaredError()), "whitened"),
        (public(600, 20), Problem(SquaredError()), "gd"),
        (replace(public(880, 20), n_outputs=2), Problem(SquaredError()), "whitened"),
        (replace(public(850, 20), n_outputs=2), Problem(SquaredError()), "gd"),
        (in_groups(3600, 20), Problem(SquaredError()), "gd"),
        (in_groups(900, 20), Problem(Logistic()), "whitened"),
    ],
)
def test_the_automatic_solver(facts, problem, expected):
    assert automatic_solver(facts, problem) == expected


def test_hyperparameters_choose_a_solver_that_has_them():
    facts, problem = public(100_000), Problem(Logistic())
    assert automatic_solver(facts, problem, {"max_iter": 9}) == "whitened"
    assert automatic_solver(facts, problem, {"learning_rate": 0.1}) == "whitened"
    assert automatic_solver(facts, problem, {"clip_norm": 2.0}) == "whitened"
    assert automatic_solver(facts, problem, {"batch_size": 0.1}) == "gd"
    assert automatic_solver(facts, problem, {"clip_norm": "adaptive"}) == "gd"
    assert automatic_solver(facts, problem, {"learning_rate": "adaptive"}) == "adp_sgd"
    assert automatic_solver(facts, problem, {"learning_rate": -1.0}) == "gd"  # which refuses it


def test_auto_reaches_the_estimators(rng):
    X = rng.standard_normal((9000, 4))
    model = skdp.DPLogisticRegression(
        classes=[0, 1], privacy=skdp.Privacy(noise=skdp.SeededNoise(0)), scaling="none"
    ).fit(X, X[:, 0] > 0)
    assert model.solver_.name == "whitened"
    model = skdp.DPLogisticRegression(
        classes=[0, 1],
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
        solver=("auto", {"batch_size": 0.1}),
        scaling="none",
    )
    assert model.fit(X, X[:, 0] > 0).solver_.name == "gd"


def requests_of(monkeypatch, X, y, seed=None, **hyperparameters):
    """The sums of gradients that "whitened" requests, and the noise on each in its own unit."""
    requests, noises = [], []

    def recorded(oracle, statistic, *more):
        answer = WITH_SHARE(oracle, statistic, *more)
        if isinstance(statistic, ShrunkGradientSum) and not oracle.is_rehearsal:
            requests.append(statistic)
            noises.append(answer[1] / (statistic.row_norm * statistic.residual_bound))
        return answer

    monkeypatch.setattr(Oracle, "with_share", recorded)
    noise = "system" if seed is None else skdp.SeededNoise(seed)
    solver, privacy = get_solver("whitened", **hyperparameters), skdp.Privacy(noise=noise)
    model = skdp.DPRidge(0.0, solver=solver, scaling="none", privacy=privacy)
    return model.fit(X, y), requests, np.array(noises)


def test_whitened_has_the_clipping_norm_and_the_noise_of_its_schedule(regression, monkeypatch):
    """A row of standardised columns is sqrt(p) long, at most 0.9 times the expected one."""
    noise = np.array([3.0, 2.0, 2.0, 1.0, 1.0])
    model, requests, noises = requests_of(
        monkeypatch,
        *regression,
        max_iter=5,
        clip_norm=4.0,
        noise_schedule=noise,
    )
    caps = [request.residual_bound for request in requests]
    np.testing.assert_allclose(np.multiply(caps, 0.9 * math.sqrt(6)), [4.0] * 5)
    np.testing.assert_allclose(noises / noises[-1], noise)
    assert model.privacy_.epsilon <= 1.0


def test_the_noise_of_the_second_half_of_the_steps_is_averaged(rng, monkeypatch):
    """Of squared error, with Newton steps, that is all noise that is left of the steps."""
    X = rng.standard_normal((4000, 5))
    y = X @ [0.3, -0.3, 0.1, 0.0, 0.0] + 0.3 * rng.standard_normal(4000)
    exact, errors = np.linalg.lstsq(X, y)[0], []
    monkeypatch.setattr(whitened, "ROW_FACTOR", 9.0)
    for seed in range(30):
        model, requests, noises = requests_of(monkeypatch, X, y, seed)
        errors.append(model.coef_ - exact)
    one = noises[-1] * requests[-1].row_norm * requests[-1].residual_bound
    expected = one / math.sqrt(len(requests) / 2) / math.sqrt(4000)
    assert np.std(errors) == pytest.approx(expected, rel=0.2)


def test_whitened_steps_are_those_of_a_plain_loop(regression):
    """No noise: the Gram matrix, the first gradient, averaged momentum, a schedule; by hand."""
    X, y = regression
    step, beta = 0.5, 0.6
    model = skdp.DPRidge(
        0.0,
        epsilon=math.inf,
        fit_intercept=False,
        scaling="none",
        solver=get_solver(
            "whitened", max_iter=4, learning_rate=step, momentum=("averaged", {"beta": beta})
        ),
    ).fit(X, y)
    inverse, w, average = np.linalg.inv(X.T @ X), np.zeros(5), np.zeros(5)
    for t in range(1, 5):
        average = beta * average + (1 - beta) * (X.T @ (X @ w - y))
        w = w - 0.5 * inverse @ average / (1 - beta**t)
    np.testing.assert_allclose(model.coef_, w, rtol=1e-6)


def test_steps_of_whitened_that_are_too_long_do_not_run_away_in_silence(regression):
    with pytest.raises(FloatingPointError, match="the solver diverged"):
        skdp.DPRidge(solver="whitened", epsilon=math.inf, learning_rate=5.0).fit(*regression)


def test_two_classes_take_a_hessian_after_the_first_step(rng):
    X = rng.standard_normal((20_000, 4))
    y = rng.random(20_000) < 1 / (1 + np.exp(-X @ [2.0, 1.0, 0.0, -1.0]))
    privacy = skdp.Privacy(noise=skdp.SeededNoise(0))
    model = skdp.DPLogisticRegression(
        classes=[False, True], epsilon=3.0, scaling="none", solver="whitened", privacy=privacy
    ).fit(X, y)
    counts = [(release.kind, release.count) for release in model.privacy_.releases]
    assert counts[:4] == [("gram", 1), ("gradient", 1), ("hessian", 1), ("gradient", 15)]
    twin = LogisticRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, twin.coef_, atol=0.1)


@pytest.mark.parametrize("share", [0.005, 0.02, 0.98])
def test_slopes_of_rare_classes_arrive(share):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(20, 90, 30_000), rng.integers(0, 2, 30_000)])
    margins = math.log(share / (1 - share)) + X @ [0.03, 0.8] - 2.05
    y = (rng.random(len(X)) < 1 / (1 + np.exp(-margins))).astype(int)
    twin = LogisticRegression(C=np.inf, max_iter=1000).fit(X, y)
    privacy = skdp.Privacy(noise=skdp.SeededNoise(0))
    model = skdp.DPLogisticRegression(classes=[0, 1], epsilon=100, privacy=privacy).fit(X, y)
    np.testing.assert_allclose(model.coef_, twin.coef_, rtol=0.15)


def test_offsets_are_not_taken_for_a_rare_class():
    """At zero the offset predicts .95, a mean of .25 is .7 less, and no class is rare."""
    rng, coef = np.random.default_rng(0), np.array([0.8, -0.5, 0.3])
    X, offset = rng.standard_normal((12_000, 3)), np.full(12_000, 3.0)
    y = (rng.random(len(X)) < 1 / (1 + np.exp(4.3 - X @ coef - offset))).astype(int)
    privacy = skdp.Privacy(noise=skdp.SeededNoise(0))
    model = skdp.DPLogisticRegression(classes=[0, 1], epsilon=1000, privacy=privacy)
    np.testing.assert_allclose(model.fit(X, y, offset=offset).coef_[0], coef, atol=0.1)
    assert model.intercept_[0] == pytest.approx(-4.3, abs=0.1)


def test_rare_categories_have_the_curvature_of_their_gradients():
    """Where the Hessian shrank rows more than gradients did, more budget raised the loss."""
    rng, losses = np.random.default_rng(0), []
    X = (rng.random((40_000, 10)) < np.geomspace(0.3, 0.001, 10)).astype(float)
    y = rng.random(len(X)) < 1 / (1 + np.exp(-X @ np.linspace(-2, 3, 10)))
    for epsilon in (2.0, 50.0):
        privacy = skdp.Privacy(noise=skdp.SeededNoise(0))
        model = skdp.DPLogisticRegression(classes=[False, True], epsilon=epsilon, privacy=privacy)
        losses.append(log_loss(y, model.fit(X, y).predict_proba(X)))
    assert losses[1] < losses[0] + 5e-4, losses


@pytest.mark.parametrize("max_iter", [1, 3])
def test_fits_with_a_hessian_are_replayed(max_iter):
    solver = get_solver("whitened", max_iter=max_iter)
    report = skdp.audit.replay(skdp.DPLogisticRegression(solver=solver, classes=[0, 1]))
    assert report.ok, report
