"""Solvers that use second moments: their minima, their defaults, and what they refuse."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss

import skdp
from skdp import audit
from skdp.accounting import Adjacency
from skdp.objective import L1, L2, L2Ball, Logistic, Multinomial, Problem, SquaredError, TweedieLog
from skdp.oracle import Public, ShrunkGradientSum
from skdp.oracle.oracle import Oracle
from skdp.solvers import get_solver
from skdp.solvers.auto import automatic_solver
from skdp.solvers.core import whitened
from skdp.steps.shrinkage import Spectrum

pytestmark = pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")

CLASSIFIERS = ("whitened",)
REGRESSORS = ("boosted_ssp", "whitened")


@pytest.mark.parametrize("solver", CLASSIFIERS)
def test_logistic_minimum_without_noise(solver, classification):
    X, y = classification
    model = skdp.DPLogisticRegression(C=0.1, epsilon=math.inf, solver=solver, scaling="none").fit(
        X, y
    )
    twin = LogisticRegression(C=0.1, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.coef_, twin.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, twin.intercept_, atol=1e-5)


def test_multinomial_minimum_without_noise(classification):
    X, _ = classification
    y = np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])
    model = skdp.DPLogisticRegression(
        C=0.1, epsilon=math.inf, solver="whitened", scaling="none"
    ).fit(X, y)
    twin = LogisticRegression(C=0.1, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), twin.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("solver", REGRESSORS)
def test_several_targets_are_several_problems(solver, regression):
    X, y = regression
    both = np.column_stack([y, X[:, 0] - y])
    model = skdp.DPRidge(3.0, epsilon=math.inf, solver=solver, scaling="none").fit(X, both)
    np.testing.assert_allclose(model.coef_, Ridge(3.0).fit(X, both).coef_, atol=1e-6)


@pytest.mark.parametrize("solver", CLASSIFIERS)
def test_classifiers_come_near_the_twin(solver, rng):
    X = rng.standard_normal((8000, 6))
    y = (X[:, 0] - X[:, 1] + rng.logistic(size=8000) > 0).astype(int)
    model = skdp.DPLogisticRegression(
        classes=[0, 1],
        epsilon=1.0,
        solver=solver,
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
        scaling="none",
    ).fit(X, y)
    assert model.score(X, y) > LogisticRegression().fit(X, y).score(X, y) - 0.01


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_boosting_without_noise_in_any_unit(rounds, regression):
    """Targets in a large unit are not shrunk, nor are rows along with them."""
    X, y = regression
    solver = get_solver("boosted_ssp", rounds=rounds)
    model = skdp.DPRidge(3.0, epsilon=math.inf, solver=solver, scaling="none").fit(X, 1e3 * y)
    np.testing.assert_allclose(model.coef_, Ridge(3.0).fit(X, 1e3 * y).coef_, rtol=1e-6)


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_rounds_of_boosting(rounds, regression):
    X, y = regression
    solver = get_solver("boosted_ssp", rounds=rounds)
    model = skdp.DPRidge(
        20.0,
        epsilon=3.0,
        solver=solver,
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
        scaling="none",
    )
    kinds = [record.kind for record in model.fit(X, y).privacy_.releases]
    assert kinds.count("residual_squares") == max(rounds - 1, 0)
    assert kinds[0] == "gram"


@pytest.mark.parametrize("solver", ["boosted_ssp", "whitened"])
def test_constraints_and_kinks_are_refused(solver, regression):
    X, y = regression
    with pytest.raises(ValueError, match="unconstrained"):
        skdp.DPRidge(solver=solver, constraint=skdp.objective.L2Ball()).fit(X, y)
    with pytest.raises(ValueError, match="smooth_penalty"):
        get_solver(solver).check(Problem(SquaredError(), L1(0.1)))


@pytest.mark.parametrize(
    ("solver", "parameters", "match"),
    [
        ("whitened", {"gram_share": 1.0}, "gram_share"),
        ("whitened", {"max_iter": 0}, "max_iter"),
        ("whitened", {"row_norm": -1.0}, "row_norm"),
        ("boosted_ssp", {"rounds": -1}, "rounds"),
        ("boosted_ssp", {"rounds": 40}, "leave nothing"),
    ],
)
def test_hyperparameters_out_of_range(solver, parameters, match, regression):
    with pytest.raises(ValueError, match=match):
        skdp.DPRidge(solver=get_solver(solver, **parameters)).fit(*regression)


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
        (replace(public(1_500, 20), n_outputs=3), Problem(Multinomial(3)), "gd"),
        (public(100_000, epsilon=0.01), Problem(Logistic()), "gd"),
        (public(100_000, sparse=True), Problem(Logistic()), "whitened"),
        (public(100_000, weighted=True), Problem(Logistic()), "gd"),
        (public(1000, epsilon=math.inf, weighted=True), Problem(Logistic()), "whitened"),
        (public(100_000, 300), Problem(Logistic()), "whitened"),
        (public(18_000, 300), Problem(Logistic()), "whitened"),
        (public(17_000, 300), Problem(Logistic()), "gd"),
        (public(50_000, 600), Problem(SquaredError()), "whitened"),
        (public(49_000, 600), Problem(SquaredError()), "gd"),
        (public(18_000, 300, sparse=True), Problem(Logistic()), "whitened"),
        (public(40_000, 140), Problem(Logistic()), "whitened"),
        (public(200_000, 510), Problem(Logistic()), "whitened"),
        (public(100_000, 300), Problem(SquaredError()), "whitened"),
        (public(10**8, 600), Problem(Logistic()), "whitened"),
        (public(10**8, 1001), Problem(Logistic()), "gd"),
        (public(100_000), Problem(Logistic(), L1(0.1)), "gd"),
        (public(100_000), Problem(Logistic(), L2(0.1), L2Ball(1.0)), "gd"),
        (public(150, 20), Problem(SquaredError()), "gd"),
        (public(150, 20), Problem(SquaredError(), L1(0.1)), "gd"),
        (public(150, 20), Problem(Logistic()), "gd"),
        (public(900, 20), Problem(SquaredError()), "whitened"),
        (public(850, 20), Problem(SquaredError()), "gd"),
        (public(900, 20), Problem(Logistic()), "whitened"),
        (public(850, 20), Problem(Logistic()), "gd"),
        (replace(public(1300, 20), n_outputs=2), Problem(SquaredError()), "whitened"),
        (replace(public(1200, 20), n_outputs=2), Problem(SquaredError()), "gd"),
        (in_groups(850, 20), Problem(SquaredError()), "gd"),
        (in_groups(3400, 20), Problem(SquaredError()), "gd"),
        (in_groups(3600, 20), Problem(SquaredError()), "whitened"),
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


@pytest.mark.parametrize("loss", [Logistic(), Multinomial(3)])
def test_whitened_goes_as_far_and_clips_as_gd(loss):
    """In coordinates that keep their noise, and with the caps of gradients that do not bind."""
    facts = replace(public(20_000, 20), n_outputs=3 if loss.name == "multinomial" else 1)
    problem = Problem(loss)
    gd = get_solver("gd").resolve(facts, problem)
    whitened = get_solver("whitened", hessian_share=0.0).resolve(facts, problem)
    distance = whitened.max_iter * whitened.learning_rate
    std = whitened.row_norm**2 / (facts.gradient_mu * math.sqrt(whitened.gram_share))
    noise = std * math.sqrt(2 * 21) / facts.n_rows
    np.testing.assert_allclose(distance, gd.max_iter * gd.learning_rate * (1 + noise))
    np.testing.assert_allclose(whitened.clip_norm, gd.clip_norm)


def test_momentum_of_log_links_makes_steps_no_longer_than_there_are_more_of_them():
    few, many = (
        get_solver("whitened").resolve(public(100_000, 5, epsilon=epsilon), Problem(TweedieLog()))
        for epsilon in (0.001, 1.0)
    )
    assert few.momentum == 0
    assert 1 / (1 - many.momentum) == many.max_iter / few.max_iter == 2


def test_steps_are_as_few_as_leave_one_over_the_signal_after_half_of_them():
    """Noise of a tenth of the least eigenvalue makes curvatures 10 / 12, up to 2, the rate .215."""
    facts, n_steps = public(100_000, 5), 8000
    values = np.array([10.0, 20.0])
    times, rate = whitened._times(Spectrum(values, np.eye(2), 1.0), facts, n_steps)
    root = math.sqrt(10 / 12 / 2)
    assert rate == pytest.approx((1 - root) / (1 + root))
    left = [facts.signal_to_noise * rate ** (n_steps / 2 / k) for k in (times, times + 1)]
    assert left[0] <= 1 < left[1]


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


@pytest.mark.parametrize("epsilon", [10.0, 50.0])
def test_a_few_steps_are_not_slowed_down_by_momentum(regression, epsilon):
    """A large budget asks for momentum, which three steps are too few to build up."""
    X, y = regression
    model = skdp.DPRidge(solver="whitened", max_iter=3, scaling="none", epsilon=epsilon)
    assert model.fit(X, y).solver_.momentum == 0.0
    assert model.score(X, y) > 0.9


def requests_of(monkeypatch, X, y, **hyperparameters):
    """The sums of gradients that "whitened" requests, and the noise on each in its own unit."""
    requests, noises = [], []
    original = Oracle.with_share

    def recorded(oracle, statistic, share):
        answer = original(oracle, statistic, share)
        if isinstance(statistic, ShrunkGradientSum) and not oracle.is_rehearsal:
            requests.append(statistic)
            noises.append(answer[1] / (statistic.row_norm * statistic.residual_bound))
        return answer

    monkeypatch.setattr(Oracle, "with_share", recorded)
    model = skdp.DPRidge(solver=get_solver("whitened", **hyperparameters), scaling="none")
    return model.fit(X, y), requests, np.array(noises)


def test_whitened_has_the_clipping_norm_and_the_noise_of_its_schedule(regression, monkeypatch):
    """A row of standardised columns is sqrt(p) long, at most row_factor times the expected one."""
    noise = np.array([3.0, 2.0, 2.0, 1.0, 1.0])
    model, requests, noises = requests_of(
        monkeypatch,
        *regression,
        max_iter=5,
        row_factor=1.5,
        clip_norm=4.0,
        noise_schedule=noise,
    )
    caps = [request.residual_bound for request in requests]
    np.testing.assert_allclose(np.multiply(caps, 1.5 * math.sqrt(6)), [4.0] * 5)
    np.testing.assert_allclose(noises / noises[-1], noise)
    assert model.privacy_.epsilon <= 1.0


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


@pytest.mark.parametrize("widens", [False, True])
def test_where_few_steps_suffice_each_has_several_of_the_planned_releases(widens, rng, monkeypatch):
    X = rng.standard_normal((4000, 5))
    y = X @ rng.standard_normal(5) + 0.5 * rng.standard_normal(4000)
    if widens:
        monkeypatch.setattr(Oracle, "checkpoint", lambda oracle, point: not oracle.is_rehearsal)
    model, requests, noises = requests_of(monkeypatch, X, y)
    n_releases, n_points = len(requests), len({id(one) for one in requests})
    assert model.solver_.max_iter == n_releases == model.privacy_.releases[-1].count
    assert model.n_iter_ == n_points
    # Halfway, wider ranges may make rows longer: all other steps have a release each.
    halfway = n_releases // 2
    of_first, of_second = (
        len({id(one) for one in part}) for part in np.split(np.array(requests), [halfway])
    )
    assert of_first < halfway / 2
    assert of_second == (n_releases - halfway if widens else of_first)
    np.testing.assert_allclose(noises, noises[0], rtol=1e-6)
    assert model.score(X, y) > 0.85
    # The closer eigenvalues are to the noise, the more points. Nor are there fewer if steps were
    # given.
    X[:, 4] = X[:, 3] + 0.01 * X[:, 4]
    assert n_points < requests_of(monkeypatch, X, y)[0].n_iter_ <= n_releases
    assert requests_of(monkeypatch, X, y, max_iter=20)[0].n_iter_ == 20


@pytest.mark.parametrize("noise_norm", [0.05, 0.5, 5.0])
def test_points_of_several_releases_leave_as_little_as_their_number_is_for(noise_norm):
    """From any eigenvalue that the noise allows, momentum takes half of a run to the minimum."""
    facts, values = public(20_000), np.array([1.0, 4.0])
    times, rate = whitened._times(Spectrum(values, np.eye(2), noise_norm), facts, 400)
    curvatures = np.concatenate([values / (values + 2 * noise_norm), [1.0, 1.9]])
    point, before = np.ones(4), np.ones(4)
    for _ in range(200 // times):
        ahead = rate**2 * (point - before)
        point, before = point - (1 + rate) ** 2 / 2 * curvatures * point + ahead, point
    assert np.abs(point).max() < 10 / facts.signal_to_noise  # polynomial times the rate


def test_steps_of_several_releases_show_nothing_beyond_these(rng):
    X = rng.standard_normal((600, 2))
    model = skdp.DPRidge(epsilon=5.0, solver="whitened")
    assert model.fit(X, X[:, 0]).n_iter_ < model.solver_.max_iter
    assert audit.replay(skdp.DPRidge(epsilon=5.0, solver="whitened"), X, X[:, 0]).ok


def test_whitened_refuses_a_clip_that_follows_counts(regression):
    with pytest.raises(ValueError, match="solvers 'gd' and 'adp_sgd' do"):
        skdp.DPRidge(solver="whitened", clip_norm="adaptive").fit(*regression)


def test_steps_of_whitened_that_are_too_long_do_not_run_away_in_silence(regression):
    with pytest.raises(FloatingPointError, match="ran away"):
        skdp.DPRidge(solver="whitened", epsilon=math.inf, learning_rate=5.0).fit(*regression)


def test_two_classes_at_a_large_budget_take_a_hessian_and_few_steps(rng):
    X = rng.standard_normal((20_000, 4))
    y = rng.random(20_000) < 1 / (1 + np.exp(-X @ [2.0, 1.0, 0.0, -1.0]))
    privacy = skdp.Privacy(noise=skdp.SeededNoise(0))
    model = skdp.DPLogisticRegression(
        classes=[False, True], epsilon=3.0, scaling="none", solver="whitened", privacy=privacy
    ).fit(X, y)
    counts = [(release.kind, release.count) for release in model.privacy_.releases]
    assert counts[:4] == [("gram", 1), ("gradient", 3), ("hessian", 1), ("gradient", 11)]
    twin = LogisticRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, twin.coef_, atol=0.1)


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


def test_a_hessian_is_for_two_classes():
    facts, three = public(20_000, 4), replace(public(20_000, 4), n_outputs=3)
    assert get_solver("whitened").resolve(facts, Problem(Logistic())).hessian_share == 0.1
    assert get_solver("whitened").resolve(facts, Problem(SquaredError())).hessian_share == 0
    assert get_solver("whitened").resolve(three, Problem(Multinomial(3))).hessian_share == 0
    with pytest.raises(ValueError, match="two classes"):
        get_solver("whitened", hessian_share=0.1).resolve(facts, Problem(SquaredError()))
    with pytest.raises(ValueError, match=r"and hessian_share, .* must add up"):
        get_solver("whitened", gram_share=0.95).resolve(facts, Problem(Logistic()))
    with pytest.raises(ValueError, match="hessian_share"):
        get_solver("whitened", hessian_share="some").resolve(facts, Problem(Logistic()))


@pytest.mark.parametrize("max_iter", [1, 3])
def test_fits_with_a_hessian_are_replayed(max_iter):
    solver = get_solver("whitened", hessian_share=0.1, max_iter=max_iter)
    report = skdp.audit.replay(skdp.DPLogisticRegression(solver=solver, classes=[0, 1]))
    assert report.ok, report
