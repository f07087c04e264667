"""Gradient descent against a plain implementation, and its defaults."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import log_loss

import skdp
from skdp._oracle import Public
from skdp.accounting import Adjacency
from skdp.objective import Logistic, Problem, SquaredError
from skdp.solvers import GradientDescent
from skdp.solvers.defaults import descent_defaults, stable_step, travelled_distance

pytestmark = pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")


def test_iterates_are_those_of_a_plain_loop(regression):
    """No noise, no clipping: 30 steps by hand."""
    X, y = regression
    alpha, eta, beta = 5.0, 0.3, 0.6
    solver = GradientDescent(
        max_iter=30,
        learning_rate=eta,
        momentum=("averaged", {"beta": beta}),
        clip_norm=1e9,
        averaging="last",
    )
    model = skdp.DPRidge(alpha, epsilon=math.inf, solver=solver, fit_intercept=False).fit(X, y)
    w, average = np.zeros(5), np.zeros(5)
    for t in range(1, 31):
        gradient = X.T @ (X @ w - y) / len(y)
        average = beta * average + (1 - beta) * gradient
        w = (w - eta * average / (1 - beta**t)) / (1 + eta * alpha / len(y))
    np.testing.assert_allclose(model.coef_, w, atol=1e-12)


def test_clipped_steps_by_hand(classification):
    X, y = classification
    clip_norm = 0.2
    solver = GradientDescent(
        max_iter=5, learning_rate=2.0, momentum=0.0, clip_norm=clip_norm, averaging="last"
    )
    model = skdp.DPLogisticRegression(
        C=math.inf, epsilon=math.inf, solver=solver, fit_intercept=False
    ).fit(X, y)
    w = np.zeros(5)
    for _ in range(5):
        gradients = X * (1 / (1 + np.exp(-X @ w)) - y)[:, None]
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        w = w - 2.0 * (gradients * np.minimum(1, clip_norm / norms)).mean(axis=0)
    np.testing.assert_allclose(model.coef_[0], w, atol=1e-12)


def test_a_fit_without_noise_does_not_run_away_in_silence(regression):
    X, y = regression
    with pytest.raises(FloatingPointError, match=r"diverged.*Lower learning_rate"):
        skdp.DPLinearRegression(epsilon=math.inf, learning_rate=40.0, max_iter=50).fit(3 * X, y)


def public_facts(**facts):
    known = {"n_rows": 32561, "n_features": 107, "epsilon": 1.0, "delta": 1e-6, **facts}
    return Public(n_outputs=1, adjacency=Adjacency.ZERO_OUT, **known)


def test_defaults_have_the_documented_values():
    """Worked by hand from the formulas at the head of skdp/solvers/defaults.py."""
    values = descent_defaults(public_facts(row_bound=2 * math.sqrt(108)), Problem(Logistic()))
    a = 0.2367044 * 32561 / 108
    assert values["clip_norm"] == pytest.approx(0.2 * a ** (1 / 3) * math.sqrt(108), rel=1e-5)
    travel = 7.0 * a**0.75
    assert values["max_iter"] == math.ceil(travel / (20.0 / (0.25 * 108)))
    assert values["learning_rate"] * values["max_iter"] == pytest.approx(travel, rel=1e-5)
    assert values["momentum"] == 0.9
    assert values["averaging"] == "tail"


def test_steps_given_by_the_user_keep_the_distance():
    problem = Problem(Logistic())
    automatic = descent_defaults(public_facts(), problem)
    travel = automatic["max_iter"] * automatic["learning_rate"]
    longer = descent_defaults(public_facts(), problem, max_iter=5000)
    assert longer["learning_rate"] * 5000 == pytest.approx(travel)
    smaller = descent_defaults(
        public_facts(), problem, learning_rate=automatic["learning_rate"] / 1.5
    )
    assert smaller["max_iter"] == pytest.approx(1.5 * automatic["max_iter"], abs=2)


def test_defaults_follow_the_declared_scales():
    base = descent_defaults(public_facts(), Problem(Logistic()))
    small = descent_defaults(public_facts(data_norm=1.0, row_bound=1.0), Problem(Logistic()))
    ratio = math.sqrt(108)
    assert small["learning_rate"] == pytest.approx(base["learning_rate"] * ratio**2)
    base = descent_defaults(public_facts(), Problem(SquaredError()))
    small = descent_defaults(public_facts(data_norm=1.0, row_bound=1.0), Problem(SquaredError()))
    assert small["clip_norm"] == pytest.approx(base["clip_norm"] / ratio)
    scaled = descent_defaults(public_facts(target_bound=4000.0), Problem(SquaredError()))
    assert scaled["clip_norm"] == pytest.approx(1000 * base["clip_norm"])


@pytest.mark.parametrize("row_bound", [0.1, 1.0, 20.0, 1e3])
@pytest.mark.parametrize("epsilon", [0.1, 10.0, 1e4])
def test_default_steps_are_stable_for_any_rows(row_bound, epsilon):
    """The heavy ball bears 2 (1 + beta) / (1 - beta) over the curvature, a squared row norm."""
    for declared in (None, row_bound):
        facts = public_facts(data_norm=declared, row_bound=row_bound, epsilon=epsilon)
        values = descent_defaults(facts, Problem(SquaredError()))
        assert values["learning_rate"] * facts.row_norm**2 < stable_step(values["momentum"])


def test_a_short_distance_takes_few_steps_with_less_momentum():
    problem, counts = Problem(SquaredError()), []
    for n_rows in (100, 500, 2000, 10_000):
        facts = Public(n_rows, 10, 1, Adjacency.ZERO_OUT, 1.0, 1e-6, row_bound=2 * math.sqrt(11))
        values = descent_defaults(facts, problem)
        counts.append(values["max_iter"])
        travel = values["learning_rate"] * values["max_iter"]
        assert travel == pytest.approx(travelled_distance(facts, problem))
        assert 1 / (1 - values["momentum"]) <= 0.11 * values["max_iter"]
    assert counts[:2] == [40, 40] < counts[2:3] < [100] < counts[3:]


def test_columns_far_from_zero_do_not_diverge(rng):
    X = rng.standard_normal((20_000, 8)) + 3.0
    y = (X - 3.0) @ rng.standard_normal(8) / 3 + 0.1 * rng.standard_normal(20_000)
    for epsilon in (0.3, 1.0, 10.0):
        model = skdp.DPLinearRegression(
            epsilon=epsilon,
            privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
        ).fit(X, y)
        assert model.score(X, y) > 0.7


@pytest.mark.parametrize(("n_classes", "constraint"), [(3, "l2_ball"), (6, None)])
def test_default_steps_do_not_swing_where_two_of_several_classes_compete(n_classes, constraint):
    """There the curvature is 1/2, however many classes there are."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((5000, 3))
    y = (X @ rng.standard_normal((3, n_classes)) + rng.gumbel(size=(5000, n_classes))).argmax(1)
    losses = []
    for epsilon in (3.0, 100.0):
        model = skdp.DPLogisticRegression(
            classes=range(n_classes),
            epsilon=epsilon,
            solver="gd",
            constraint=constraint,
            privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
        )
        losses.append(log_loss(y, model.fit(X, y).predict_proba(X)))
    assert losses[1] <= losses[0] + 0.005


SAMPLINGS = ["poisson", "fixed_size"]


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_batches_without_noise_are_unbiased(sampling, regression):
    """Small steps on batches end where steps on all rows end."""
    X, y = regression
    solver = GradientDescent(
        max_iter=600, learning_rate=0.05, batch_size=50, sampling=sampling, clip_norm=1e9
    )
    model = skdp.DPLinearRegression(
        epsilon=math.inf,
        solver=solver,
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
    ).fit(X, y)
    exact = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_, exact[:5], atol=0.03)


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("batch_size", [40, 0.1])
def test_batches_cost_the_budget(sampling, adjacency, batch_size, regression):
    X, y = regression
    solver = GradientDescent(max_iter=23, batch_size=batch_size, sampling=sampling)
    model = skdp.DPRidge(
        solver=solver, privacy=skdp.Privacy(adjacency=adjacency), delta=1e-5, scaling="none"
    )
    if sampling == "fixed_size" and adjacency == "zero_out":
        with pytest.raises(ValueError, match="FixedSizeSampled"):
            model.fit(X, y)
        return
    statement = model.fit(X, y).privacy_
    assert 0.999 <= statement.epsilon <= 1.0
    assert sum(record.count for record in statement.releases) == 23


def test_sampling_needs_less_noise_than_it_would_without(regression):
    X, y = regression
    noise = {}
    for batch_size in (None, 40):
        solver = GradientDescent(max_iter=50, batch_size=batch_size)
        ridge = skdp.DPRidge(solver=solver, scaling="none")
        model = ridge.fit(X, y)
        noise[batch_size] = model.privacy_.releases[0].noise_multiplier
    assert noise[40] < noise[None] / 3


@pytest.mark.parametrize("bad", [0, -3, 1.5, 401, "all", True])
def test_bad_batch_sizes(bad, regression):
    with pytest.raises(ValueError, match="batch_size must be None, an integer in"):
        skdp.DPRidge(solver=("auto", {"batch_size": bad})).fit(*regression)


def test_a_random_iterate_is_one_of_all_equally_often(regression):
    """As theory asks for where the problem is not convex."""
    X, y = regression

    def fit(seed, **parameters):
        solver = GradientDescent(learning_rate=0.05, momentum=0.5, **parameters)
        model = skdp.DPRidge(
            epsilon=math.inf,
            solver=solver,
            scaling="none",
            privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
        )
        with pytest.warns(skdp.PrivacyWarning):
            return model.fit(X, y).coef_

    # Those at which gradients were taken: the start, and all but the last.
    later = [fit(0, max_iter=t, averaging="last") for t in range(1, 5)]
    iterates = np.array([np.zeros(X.shape[1]), *later])
    found = [
        int(np.flatnonzero((fit(seed, max_iter=5, averaging="random") == iterates).all(axis=1))[0])
        for seed in range(150)
    ]
    counts = np.bincount(found, minlength=5)
    assert ((counts - 30) ** 2 / 30).sum() < 18.5  # chi-squared, 4 degrees of freedom, 1e-3


@pytest.mark.parametrize("solver", ["gd", "residual_budget"])
@pytest.mark.parametrize("momentum", [0.0, 0.5, ("averaged", {"beta": 0.5})])
def test_default_steps_are_stable_with_the_given_momentum(solver, momentum):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(20, 90, 2000), rng.integers(0, 2, 2000)])
    y = 0.1 * X[:, 0] + X[:, 1] + rng.standard_normal(2000)
    seeded = skdp.Privacy(noise=skdp.SeededNoise(0))
    for epsilon in (50.0, *[math.inf] * (solver == "gd")):
        fit = {"epsilon": epsilon, "solver": solver, "momentum": momentum, "privacy": seeded}
        for model in (skdp.DPRidge(**fit), skdp.DPHuberRegressor(**fit)):
            assert model.fit(X, y).score(X, y) > 0.75
    pure = skdp.DPRidge(epsilon=50, delta=0, solver="gd", momentum=momentum, privacy=seeded)
    assert pure.fit(X, y).score(X, y) > 0.75
