"""The solvers "svrg" and "svrg++": rates, agreement with other solvers, options."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import skdp
from skdp._oracle import Public, SolverStage, make_plan
from skdp.accounting import Adjacency, Composed, Gaussian, PoissonSampled
from skdp.objective import Box, ElasticNet, L1Ball, L2Ball, Logistic, Problem, Simplex
from skdp.solvers import SVRG, SVRGPlusPlus, get_solver
from skdp.solvers.papers.wang_2017 import SNAPSHOT_SHARE

NO_NOISE = pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")


def without_noise(model, X, y, adjacency="zero_out", **parameters):
    """A fit whose batches follow from a seed."""
    privacy = skdp.Privacy(adjacency=adjacency, noise=skdp.SeededNoise(0))
    return model(epsilon=math.inf, scaling="none", privacy=privacy, **parameters).fit(X, y)


def quadratic(spectrum, rng, n_rows=400):
    """Rows with this spectrum of second moments, targets with no noise, and the gap of a fit."""
    d = len(spectrum)
    Q = np.linalg.qr(rng.standard_normal((n_rows, d)))[0] * math.sqrt(n_rows)
    X = Q * np.sqrt(spectrum)
    y = X @ (rng.standard_normal(d) / np.sqrt(d))
    return X, y


# ---------------------------------------------------------------------- rates without noise


@NO_NOISE
def test_svrg_converges_linearly_on_a_strongly_convex_problem(rng):
    """Equal factors per epoch, small batches notwithstanding: no noise of sampling is left."""
    X, y = quadratic(np.geomspace(1.0, 0.1, 5), rng)
    alpha = 20.0
    exact = np.linalg.solve(X.T @ X + alpha * np.eye(5), X.T @ y)

    def loss(w):
        return np.sum((X @ w - y) ** 2) + alpha * w @ w

    epochs = np.arange(2, 15, 2)
    gaps = []
    for n_epochs in epochs:
        solver = SVRG(
            max_iter=int(40 * n_epochs), inner_steps=40, batch_size=20, learning_rate=0.15
        )
        model = without_noise(skdp.DPRidge, X, y, alpha=alpha, solver=solver, fit_intercept=False)
        gaps.append(loss(model.coef_) - loss(exact))
    logs = np.log(np.array(gaps))
    slope, start = np.polyfit(epochs, logs, 1)
    assert slope < -0.5  # at least a factor 1.6 an epoch
    residual = logs - slope * epochs - start
    assert 1 - residual.var() / logs.var() > 0.97


@NO_NOISE
@pytest.mark.parametrize("solver", [SVRGPlusPlus], ids=lambda cls: cls.name)
def test_svrg_plus_plus_converges_at_its_rate_on_a_convex_problem(rng, solver):
    """1 over the number of steps, where curvatures fall off such that no linear rate is in sight.

    The theorem's first term is O(1 / (m 2^T eta)), and m 2^T is half the number of steps.
    """
    X, y = quadratic(np.arange(1, 41) ** -2.0, rng)
    steps, gaps = [], []
    for n_epochs in range(3, 9):
        made = solver(
            inner_steps=8, max_iter=8 * (2 ** (n_epochs + 1) - 2), batch_size=40, learning_rate=0.5
        )
        model = without_noise(skdp.DPLinearRegression, X, y, solver=made, fit_intercept=False)
        steps.append(made.max_iter)
        gaps.append(np.mean((X @ model.coef_ - y) ** 2) / 2)
    slope = np.polyfit(np.log(steps), np.log(gaps), 1)[0]
    assert slope <= -0.95
    assert gaps[-1] < 0.02 * gaps[0]


# ---------------------------------------------------------------------- agreement


@NO_NOISE
@pytest.mark.parametrize("name", ["svrg", "svrg++"])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
def test_logistic_regression_agrees_with_scikit_learn(name, l1_ratio, classification):
    X, y = classification
    solver = get_solver(name, max_iter=3000, inner_steps=25, batch_size=100, learning_rate=0.3)
    model = without_noise(skdp.DPLogisticRegression, X, y, C=0.05, l1_ratio=l1_ratio, solver=solver)
    penalty = {0.0: "l2", 0.5: "elasticnet", 1.0: "l1"}[l1_ratio]
    with warnings.catch_warnings():  # from 1.8 on the penalty is given by l1_ratio alone
        warnings.simplefilter("ignore", FutureWarning)
        reference = LogisticRegression(
            C=0.05, penalty=penalty, l1_ratio=l1_ratio, solver="saga", tol=1e-12, max_iter=20_000
        ).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, atol=1e-5)


@NO_NOISE
@pytest.mark.parametrize("sampling", ["poisson", "fixed_size"])
def test_every_sampling_agrees(sampling, regression):
    X, y = regression
    solver = SVRG(max_iter=2000, inner_steps=40, batch_size=80, sampling=sampling)
    model = without_noise(skdp.DPRidge, X, y, "replace_one", alpha=20.0, solver=solver)
    centred = X - X.mean(axis=0)
    exact = np.linalg.solve(centred.T @ centred + 20.0 * np.eye(5), centred.T @ (y - y.mean()))
    np.testing.assert_allclose(model.coef_, exact, atol=1e-5)


@NO_NOISE
@pytest.mark.parametrize(
    "constraint",
    [
        L2Ball(0.6),
        L1Ball(0.6),
        Box(-0.6, 0.6),
        Simplex(0.6),
    ],
    ids=str,
)
def test_it_projects(constraint, regression):
    X, y = regression
    solver = SVRG(max_iter=900, inner_steps=30, batch_size=100)
    model = without_noise(skdp.DPLinearRegression, X, y, solver=solver, constraint=constraint)
    reference = without_noise(skdp.DPLinearRegression, X, y, max_iter=1000, constraint=constraint)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-5)


# ---------------------------------------------------------------------- options and plans


@pytest.mark.parametrize("name", ["svrg", "svrg++"])
def test_the_plan_lists_snapshots_and_passes(name):
    solver = get_solver(name, max_iter=60, inner_steps=10, batch_size=50)
    statement = skdp.DPLogisticRegression(solver=solver, scaling="none").plan(1000, 5)
    events = [
        (event, count)
        for record in statement.releases
        for event, count in Composed(((record.event, record.count),)).flattened()
    ]
    snapshots = sum(count for event, count in events if isinstance(event, Gaussian))
    steps = sum(count for event, count in events if isinstance(event, PoissonSampled))
    assert steps == 60
    epochs = {"svrg": 6, "svrg++": 2}[name]  # 20 + 40
    assert snapshots == epochs
    assert all(math.isfinite(record.noise_multiplier) for record in statement.releases)


def test_shares_of_the_budget():
    """Large batches leave the square of the budget divided as asked."""
    public = Public(10_000, 5, 1, Adjacency.ZERO_OUT, 1.0, 1e-6)
    problem = Problem(Logistic(), ElasticNet(0.01))
    solver = SVRG(max_iter=60, inner_steps=10, batch_size=5000)
    plan = make_plan((SolverStage(solver.resolve(public, problem)),), public, problem)
    scale, told = plan.calibration.scale, {"gradient": 0.0, "gradient_difference": 0.0}
    for entry in plan.entries:
        for event, count in Composed(((entry.event, entry.count),)).flattened():
            rate = getattr(event, "rate", 1.0)
            noise = getattr(event, "event", event).noise_multiplier * scale
            told[entry.kind] += count * (rate / noise) ** 2
    assert told["gradient"] / sum(told.values()) == pytest.approx(SNAPSHOT_SHARE)


@NO_NOISE
@pytest.mark.parametrize("name", ["svrg", "svrg++"])
def test_heavy_records_do_not_make_it_overshoot(name, regression):
    """Cut as if of weight 1, their gradients seem to change too little, and snapshots diverge."""
    X, y = regression
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    weights = np.where(np.arange(len(y)) % 20 == 0, 30.0, 1.0)
    solver = get_solver(name, max_iter=4000, inner_steps=40, batch_size=None, learning_rate=0.3)
    model = skdp.DPRidge(
        alpha=1.0,
        solver=solver,
        epsilon=math.inf,
        scaling=skdp.RowNorm(1.0),
        fit_intercept=False,
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
    ).fit(X, y, sample_weight=weights)
    weighted = X.T * weights
    exact = np.linalg.solve(weighted @ X + weights.mean() * np.eye(5), weighted @ y)
    np.testing.assert_allclose(model.coef_, exact, atol=1e-5)


def test_the_statement_gives_the_noise_of_steps():
    """Steps on different blocks have one noise multiplier, which is what a reader wants to see."""
    solver = SVRG(max_iter=20, inner_steps=10, batch_size=100)
    statement = skdp.DPLogisticRegression(solver=solver, scaling="none").plan(1000, 5)
    assert "nan" not in str(statement)
    assert all(record.noise_multiplier > 0 for record in statement.releases)
