"""What every solver has to keep, as functions of the solver and a problem."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import clone

import skdp
from skdp._oracle import Public, SolverStage, make_plan
from skdp.accounting import Composed, price
from skdp.objective import ElasticNet, L1Ball, Logistic, Multinomial, Problem, SquaredError

PROBLEMS = {
    "ridge": Problem(SquaredError(), ElasticNet(0.1)),
    "logistic": Problem(Logistic(), ElasticNet(0.1)),
    "multinomial": Problem(Multinomial(3), ElasticNet(0.1)),
    "ball": Problem(Logistic(), ElasticNet(0.1), L1Ball(2.0), fit_intercept=False),
}
EPSILONS = [1e-3, 0.1, 1.0, 20.0]
EDGES = [
    {"n_rows": 1},
    {"n_rows": 10**9},
    {"n_features": 1},
    {"n_features": 10**4, "n_rows": 20},
    {"has_intercept": False},
    {"data_norm": 1e-3, "row_bound": 1e-3},
    {"data_norm": 1e6, "row_bound": 1e6},
    {"delta": 1e-270},
    {"epsilon": math.inf},
]


def takes(solver, problem):
    """Whether a problem provides what a solver needs."""
    return solver.needs <= PROBLEMS[problem].provides


def planned(solver, problem, adjacency, **facts):
    """Public facts, the solver without "auto", and the plan of its run."""
    facts = {"n_rows": 500, "n_features": 6, "epsilon": 1.0, "delta": 1e-6, **facts}
    intercept = PROBLEMS[problem].fit_intercept
    facts = {"row_bound": 5.0, "has_intercept": intercept, **facts}  # as estimators have it
    n_outputs = 3 if problem == "multinomial" else 1
    public = Public(n_outputs=n_outputs, adjacency=adjacency, **facts)
    resolved = solver.resolve(public, PROBLEMS[problem])
    return public, resolved, make_plan((SolverStage(resolved),), public, PROBLEMS[problem])


def check_the_plan_costs_the_budget(solver, problem, adjacency, epsilons=EPSILONS):
    for epsilon in epsilons:
        public, _, plan = planned(solver, problem, adjacency, epsilon=epsilon)
        event = Composed(tuple((entry.event, entry.count) for entry in plan.entries))
        spent, _ = price(event.scaled(plan.calibration.scale), public.delta, adjacency)
        assert 0.999 * epsilon <= spent <= epsilon, epsilon


def check_a_scikit_learn_object_with_a_purpose(solver):
    assert clone(solver).get_params() == solver.get_params()
    assert skdp.solvers.available()[solver.name].endswith(solver.purpose)
    assert 20 <= len(solver.purpose) <= 100


# Hyperparameters that reach the minimum of a small problem without noise.
EXACT_OPTIONS = {
    "accelerated_mirror_descent": {"max_iter": 3000, "curvature": 20.0},
    "adaptive_shuffled_sgd": {},
    # The steps of later stages are so short that many more of them would be needed.
    "multistage_nesterov": {"max_iter": 3000, "first_stage": 2800},
    "shuffled_sgd": {},
    "svrg": {"max_iter": 2000, "inner_steps": 50},
    "svrg++": {"max_iter": 2540, "inner_steps": 10},
    "whitened": {},
}
NEAR = {"adaptive_shuffled_sgd": 0.1, "shuffled_sgd": 0.1}  # one pass ends near the minimum


def check_the_minimum_without_noise(solver):
    """A solver that takes squared error reaches the minimum of a ridge problem."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    y = X @ np.array([1.0, -0.5, 0.25, 0.0, 0.5]) + 0.1 * rng.standard_normal(300) + 0.3
    # A set that is wide enough to hold the minimum.
    ball = {"constraint": skdp.objective.L1Ball(4.0)} if "vertices" in solver.needs else {}
    default = {"max_iter": 600} if "max_iter" in solver.get_params() else {}
    asked = clone(solver).set_params(**EXACT_OPTIONS.get(solver.name, default))
    model = skdp.DPRidge(alpha=20.0, epsilon=math.inf, solver=asked, scaling="none", **ball)
    with pytest.warns(skdp.PrivacyWarning):
        model.fit(X, y)
    centred = X - X.mean(axis=0)
    exact = np.linalg.solve(centred.T @ centred + 20.0 * np.eye(5), centred.T @ (y - y.mean()))
    np.testing.assert_allclose(model.coef_, exact, atol=NEAR.get(solver.name, 1e-6))
