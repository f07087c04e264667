"""The solver "accelerated_mirror_descent": rate, agreement, high dimension."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

import skdp
from skdp._oracle import Public
from skdp.accounting import Adjacency
from skdp.objective import ElasticNet, L1Ball, Problem, Simplex, SquaredError
from skdp.solvers import AcceleratedMirrorDescent
from skdp.solvers.papers.wang_2017 import mirror_map

NO_NOISE = pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
SETS = {"l1_ball": L1Ball, "simplex": Simplex}


def without_noise(model, X, y, **parameters):
    return model(
        epsilon=math.inf,
        scaling="none",
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
        **parameters,
    ).fit(X, y)


@NO_NOISE
@pytest.mark.parametrize("name", SETS)
def test_it_converges_at_one_over_t_squared(name, rng):
    """On a quadratic of falling curvatures whose minimum lies in the set; and below the bound.

    The minimum is far from the start: where the first steps get nearly there, the rest comes more
    slowly, until the bound bites.
    """
    d, n = 60, 300
    Q = np.linalg.qr(rng.standard_normal((n, d)))[0] * math.sqrt(n)
    X = Q * np.arange(1, d + 1) ** -1.0
    w = np.zeros(d)
    w[[1, 5]] = 0.4 if name == "l1_ball" else 0.5
    y = X @ w
    # In the set's norm: the largest curvature of a vertex, or the largest eigenvalue.
    mirror = mirror_map(SETS[name](1.0), d)
    gaps, steps = [], [10, 20, 40, 80, 160]
    for n_steps in steps:
        solver = AcceleratedMirrorDescent(max_iter=n_steps, curvature=1.0)
        model = without_noise(
            skdp.DPLinearRegression,
            X,
            y,
            solver=solver,
            constraint=SETS[name](1.0),
            fit_intercept=False,
        )
        gaps.append(np.mean((X @ model.coef_ - y) ** 2) / 2)
        assert gaps[-1] <= 8 * mirror.divergence_bound / (n_steps + 1) ** 2
    assert np.polyfit(np.log(steps), np.log(gaps), 1)[0] <= -1.9


@NO_NOISE
@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "linear") for name in SETS), ("l1_ball", "logistic")]
)
def test_it_agrees_with_scipy(name, kind, regression, classification):
    X, y = regression if kind == "linear" else classification
    radius = 0.5
    estimator = skdp.DPLinearRegression if kind == "linear" else skdp.DPLogisticRegression
    extra = {} if kind == "linear" else {"C": math.inf}
    n_steps = 800 if kind == "linear" else 1500
    solver = AcceleratedMirrorDescent(max_iter=n_steps, curvature=1.0)
    model = without_noise(estimator, X, y, solver=solver, constraint=SETS[name](radius), **extra)

    def loss(v):
        margins = X @ (v[:5] - v[5:10]) + v[10]
        if kind == "linear":
            return np.mean((margins - y) ** 2) / 2
        return np.mean(np.logaddexp(0, margins) - y * margins)

    ones = np.concatenate([np.ones(10), [0.0]])
    high = 0.0 if name == "simplex" else np.inf
    limits = [(0, None)] * 5 + [(0, high)] * 5
    wanted = [{"type": "ineq", "fun": lambda v: radius - ones @ v}]
    if name == "simplex":
        wanted = [{"type": "eq", "fun": lambda v: radius - ones @ v}]
    start = np.concatenate([np.full(5, radius / 10), np.zeros(6)])
    found = minimize(
        loss,
        start,
        bounds=[*limits, (None, None)],
        constraints=wanted,
        method="SLSQP",
        tol=1e-13,
        options={"maxiter": 1000},
    )
    ours = model.coef_.ravel()
    at = np.concatenate([np.maximum(ours, 0), np.maximum(-ours, 0), np.ravel(model.intercept_)])
    assert loss(at) <= found.fun + 1e-5
    np.testing.assert_allclose(ours, found.x[:5] - found.x[5:10], atol=1e-2)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_ten_thousand_columns_and_500_rows(kind, as_sparse, rng):
    X = rng.standard_normal((500, 10_000))
    if as_sparse:
        X = sparse.csr_array(sparse.random(500, 10_000, density=0.01, random_state=rng))
    column = X[:, [3]].toarray()[:, 0] if as_sparse else X[:, 3]
    logistic = functools.partial(skdp.DPLogisticRegression, classes=[0, 1])
    estimator = skdp.DPLinearRegression if kind == "linear" else logistic
    model = estimator(
        solver="accelerated_mirror_descent",
        constraint=L1Ball(2.0),
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
        scaling="none",
    ).fit(X, column if kind == "linear" else (column > 0.1).astype(int))
    assert np.abs(model.coef_).sum() <= 2.0 * (1 + 1e-9)
    assert np.isfinite(model.predict(X)).all()
    assert model.privacy_.epsilon <= 1.0


def test_noise_in_many_columns_hurts_little(rng):
    """Rows of norm 1 with a few strong columns: 25 times the columns, and no such loss."""
    errors = []
    for p in (40, 1000):
        X = rng.standard_normal((1500, p)) * np.concatenate([np.ones(3), np.full(p - 3, p**-0.5)])
        X /= np.linalg.norm(X, axis=1).max()
        y = X[:, 0] - X[:, 1]
        fits = [
            skdp.DPLinearRegression(
                solver="accelerated_mirror_descent",
                constraint=L1Ball(2.0),
                scaling=skdp.RowNorm(1.0),
                fit_intercept=False,
                epsilon=4.0,
                privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
            ).fit(X, y)
            for seed in range(2)
        ]
        errors.append(np.mean([np.mean((X @ fit.coef_ - y) ** 2) / y.var() for fit in fits]))
    assert errors[1] < 0.6
    assert errors[1] < 5 * errors[0] + 0.2


def test_noise_is_matched_to_the_steps():
    solver = AcceleratedMirrorDescent(max_iter=30, curvature=1.0, noise_schedule="auto")
    public = Public(100, 5, 1, Adjacency.ZERO_OUT, 1.0, 1e-6)
    resolved = solver.resolve(public, Problem(SquaredError(), ElasticNet(0.1), L1Ball(1.0)))
    ratio = resolved._noises() * np.sqrt(resolved._sizes())
    np.testing.assert_allclose(ratio, ratio[0])


@pytest.mark.parametrize("constraint", [L1Ball(1e-6), Simplex(3.0)])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("n_features", [1, 2, 50])
def test_defaults_hold_for_every_set(constraint, n_outputs, n_features):
    public = Public(50, n_features, n_outputs, Adjacency.REPLACE_ONE, 0.1, 1e-6)
    problem = Problem(SquaredError(), ElasticNet(0.1), constraint)
    resolved = AcceleratedMirrorDescent().resolve(public, problem)
    assert 0 < resolved.curvature < math.inf
    assert resolved.max_iter >= 30


def test_default_steps_get_there_on_short_rows():
    """Three columns tell, 27 are noise; a run that is too short keeps a third of the variance."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 30)) * np.r_[np.ones(3), np.full(27, 30**-0.5)]
    X /= np.linalg.norm(X, axis=1).max()
    y = X[:, 0] - X[:, 1]
    model = skdp.DPLinearRegression(
        solver="accelerated_mirror_descent",
        constraint=L1Ball(2.0),
        scaling=skdp.RowNorm(1.0),
        fit_intercept=False,
        epsilon=2.0,
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
    ).fit(X, y)
    assert np.mean((X @ model.coef_ - y) ** 2) < 0.05 * y.var()
