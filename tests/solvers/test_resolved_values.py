"""Resolved hyperparameters, given explicitly, change nothing: alone, in pairs, and all at once."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from sklearn.base import clone

import skdp
from skdp.accounting import Adjacency
from skdp.objective import L1, L2, L1Ball, Logistic, Multinomial, Problem, SquaredError
from skdp.oracle import Public
from skdp.solvers import get_solver
from skdp.steps import AveragedGradient, HeavyBall

RIDGE, LOGISTIC = Problem(SquaredError(), L2(0.1)), Problem(Logistic(), L2(0.1))
# Problems with the facts that rules for "auto" look at: few rows and many, both noise mechanisms,
# no noise, several outputs, declared bounds, a set.
SHAPES = {
    "ridge": (RIDGE, {}),
    "ridge, many rows": (RIDGE, {"n_rows": 300_000}),
    "ridge, delta 0": (RIDGE, {"delta": 0.0, "epsilon": 20.0}),
    "ridge, no noise": (RIDGE, {"epsilon": math.inf}),
    "ridge, three targets": (RIDGE, {"n_outputs": 3, "target_bound": 2.0, "n_rows": 20_000}),
    "logistic, small budget": (LOGISTIC, {"epsilon": 0.01, "data_norm": 1.0, "row_bound": 1.0}),
    "logistic, many rows": (LOGISTIC, {"n_rows": 300_000, "epsilon": 3.0}),
    "logistic, delta 0": (LOGISTIC, {"delta": 0.0}),
    "multinomial": (Problem(Multinomial(3), L2(0.1)), {"n_outputs": 3, "n_rows": 5000}),
    "lasso": (Problem(SquaredError(), L1(0.1)), {}),
    "ball": (Problem(Logistic(), L2(0.1), L1Ball(2.0)), {"n_features": 300}),
}
# Settings that switch on other rules for "auto".
SETTINGS = {
    "gd": [
        {"mechanism": "laplace"},
        {"release": "last", "momentum": 0.0},
        {"momentum": 0.0},
        {"noise_schedule": "exponential"},
        {"condition_number": 20.0, "initial_gap": 0.5},
        {"condition_number": 20.0, "initial_gap": 0.5, "momentum": AveragedGradient(0.4)},
        {"initial_gap": 0.5, "averaging": "random"},
    ],
    "residual_budget": [{"condition_number": 20.0, "initial_gap": 0.5}],
    "whitened": [
        {"momentum": HeavyBall(0.7)},
        {"momentum": "averaged"},
        {"max_iter": 3},
        {"clip_norm": 2.0},
        {"row_factor": 2.0, "noise_schedule": "momentum"},
    ],
    "svrg": [{"condition_number": 20.0, "initial_gap": 0.5}, {"clip_norm": 2.0}],
    "svrg++": [{"condition_number": 20.0, "initial_gap": 0.5}, {"learning_rate": "bb"}],
    "shuffled_sgd": [{"batch_size": 1}, {"batch_size": 30}, {"batch_size": 0.01}],
    "adaptive_shuffled_sgd": [{"row_norm": "private"}, {"search": "doubling"}],
    "adp_sgd": [{"learning_rate": 0.1}, {"learning_rate": "adaptive"}],
    "newton": [{"row_norm": 3.0}],
    "boosted_ssp": [{"rounds": 3}],
    "objective_perturbation": [{"row_norm": 3.0}],
    "nesterov": [{"noise_schedule": "uniform"}, {"batch_size": 50}],
    "multistage_nesterov": [{"first_stage": "published"}, {"max_iter": 30}],
    "heavy_ball": [{"max_iter": 30}, {"momentum": 0.3}],
}


def public_of(facts):
    facts = {"n_rows": 500, "n_features": 6, "n_outputs": 1, "epsilon": 1.0, "delta": 1e-6} | facts
    return Public(adjacency=Adjacency.ZERO_OUT, **{"row_bound": 5.0} | facts)


def cases():
    for name in skdp.solvers.available():
        for given in [{}, *SETTINGS.get(name, [])]:
            yield name, given


def comparable(solver):
    """Values by name, objects as their own text."""
    values = solver.get_params(deep=False)
    return {
        name: repr(value) if hasattr(value, "get_params") else value
        for name, value in values.items()
    }


@pytest.mark.filterwarnings("ignore:.*the bounds with momentum")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "given"), cases(), ids=str)
def test_resolved_values_given_explicitly_change_nothing(name, given, shape):
    problem, public = SHAPES[shape][0], public_of(SHAPES[shape][1])
    solver = get_solver(name, **given)
    try:
        solver.check(problem)
        resolved = solver.resolve(public, problem)
    except ValueError:
        return  # refused where nothing is resolved
    expected, before = comparable(resolved), comparable(solver)
    chosen = [
        one for one, value in expected.items() if value is not before[one] and value != before[one]
    ]
    wrong = {}
    for names in [
        *((one,) for one in chosen),
        *combinations(chosen, 2),
        tuple(chosen),
        tuple(expected),
    ]:
        values = {one: getattr(resolved, one) for one in names}
        again = clone(solver).set_params(**values)
        found = comparable(again.resolve(public, problem))
        differ = {k: (expected[k], v) for k, v in found.items() if v != expected[k]}
        if differ:
            wrong[names] = differ
    assert not wrong, "\n".join(f"{k}: {v}" for k, v in list(wrong.items())[:4])
