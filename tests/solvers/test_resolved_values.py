"""Resolved hyperparameters, given explicitly, change nothing: alone, in pairs, and all at once."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from sklearn.base import clone

import skdp
from skdp._oracle import Public
from skdp.accounting import Adjacency
from skdp.objective import ElasticNet, L1Ball, Logistic, Multinomial, Problem, SquaredError
from skdp.solvers import get_solver

RIDGE, LOGISTIC = Problem(SquaredError(), ElasticNet(0.1)), Problem(Logistic(), ElasticNet(0.1))
# Problems with the facts that rules for "auto" look at: few rows and many, both mechanisms, no
# noise, several outputs, declared bounds, a set.
SHAPES = {
    "ridge": (RIDGE, {}),
    "logistic, many rows": (LOGISTIC, {"n_rows": 300_000, "epsilon": 3.0}),
    "ridge, delta 0": (RIDGE, {"delta": 0.0, "epsilon": 20.0}),
    "ridge, no noise": (RIDGE, {"epsilon": math.inf}),
    "ridge, three targets": (RIDGE, {"n_outputs": 3, "target_bound": 2.0, "n_rows": 20_000}),
    "logistic, small budget": (LOGISTIC, {"epsilon": 0.01, "data_norm": 1.0, "row_bound": 1.0}),
    "ridge, many rows": (RIDGE, {"n_rows": 300_000}),
    "logistic, delta 0": (LOGISTIC, {"delta": 0.0}),
    "multinomial": (Problem(Multinomial(3), ElasticNet(0.1)), {"n_outputs": 3, "n_rows": 5000}),
    "lasso": (Problem(SquaredError(), ElasticNet(0.1, 1.0)), {}),
    "ball": (
        Problem(Logistic(), ElasticNet(0.1), L1Ball(2.0), fit_intercept=False),
        {"n_features": 300, "has_intercept": False},
    ),
}
IN_PAIRS = {"ridge", "logistic, many rows"}
# Settings that switch on other rules for "auto", for the first two shapes.
SETTINGS = {
    "gd": [
        {"mechanism": "laplace"},
        {"noise_schedule": "exponential"},
    ],
    "whitened": [
        {"momentum": ("heavy_ball", {"beta": 0.7})},
        {"momentum": "averaged"},
        {"max_iter": 3},
        {"clip_norm": 2.0},
        {"noise_schedule": "momentum"},
    ],
    "svrg": [{"clip_norm": 2.0}],
    "shuffled_sgd": [{"batch_size": 30}, {"batch_size": 0.01}],
    "adp_sgd": [{"learning_rate": 0.1}, {"learning_rate": "adaptive"}],
    "nesterov": [{"noise_schedule": "uniform"}, {"batch_size": 50}],
    "multistage_nesterov": [{"max_iter": 30}],
    "heavy_ball": [{"max_iter": 30}, {"momentum": 0.3}],
}


def public_of(facts):
    facts = {"n_rows": 500, "n_features": 6, "n_outputs": 1, "epsilon": 1.0, "delta": 1e-6} | facts
    return Public(adjacency=Adjacency.ZERO_OUT, **{"row_bound": 5.0} | facts)


def is_taken(solver, problem, public):
    return solver.needs <= problem.provides and not (public.is_pure and not solver.pure_dp)


CASES = [
    (name, given, shape)
    for name in skdp.solvers.available()
    for given in [{}, *SETTINGS.get(name, [])]
    for shape in (SHAPES if not given else list(SHAPES)[:2])
    if is_taken(get_solver(name, **given), SHAPES[shape][0], public_of(SHAPES[shape][1]))
    and "auto" in get_solver(name).get_params().values()  # boosted_ssp has none
]


def values_of(solver):
    """Hyperparameters; objects by what they show, as they have no equality."""
    values = solver.get_params(deep=False)
    return {key: repr(one) if hasattr(one, "get_params") else one for key, one in values.items()}


def check_resolved_values(solver, public, problem, in_pairs=True):
    resolved = solver.resolve(public, problem)
    expected, given = values_of(resolved), values_of(solver)
    chosen = [name for name in expected if str(expected[name]) != str(given[name])]
    assert chosen or solver.name == "boosted_ssp"  # which has nothing to resolve
    pairs = combinations(chosen, 2) if in_pairs else ()
    subsets = [*((name,) for name in chosen), *pairs, tuple(chosen), tuple(expected)]
    for names in dict.fromkeys(subsets):
        again = clone(solver).set_params(**{name: getattr(resolved, name) for name in names})
        assert values_of(again.resolve(public, problem)) == expected, names


@pytest.mark.parametrize(("name", "given", "shape"), CASES, ids=str)
def test_resolved_values_given_explicitly_change_nothing(name, given, shape):
    problem, public = SHAPES[shape][0], public_of(SHAPES[shape][1])
    check_resolved_values(get_solver(name, **given), public, problem, shape in IN_PAIRS)


@pytest.mark.parametrize("name", ["gd", "whitened", "nesterov", "adp_sgd", "shuffled_sgd"])
def test_the_solver_of_a_fit_gives_the_same_fit(name, rng):
    X = rng.standard_normal((400, 3))
    seeded = {"privacy": skdp.Privacy(noise=skdp.SeededNoise(0)), "scaling": "none"}
    first = skdp.DPRidge(10.0, solver=name, **seeded).fit(X, X[:, 0])
    second = skdp.DPRidge(10.0, solver=first.solver_, **seeded).fit(X, X[:, 0])
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert first.privacy_ == second.privacy_


# ---------------------------------------------------------------- objects, names, arguments

FORMS = {
    "momentum": (("heavy_ball", {"beta": 0.3}), 0.3),
    "learning_rate": (("polynomial", {}), "polynomial"),
    "noise_schedule": (("uniform", {}), "uniform"),
}
# Solvers whose sizes may differ from step to step.
VARYING = {
    "learning_rate": ["gd", "whitened", "residual_budget", "adp_sgd"],
}
TAKERS = [
    (parameter, name)
    for parameter in FORMS
    for name in VARYING.get(parameter, skdp.solvers.available())
    if parameter in get_solver(name).get_params(deep=False)
]


@pytest.mark.parametrize(("parameter", "name"), TAKERS)
def test_names_and_numbers_make_the_same_fit(parameter, name, rng):
    X = rng.standard_normal((60, 2))
    seeded = {"privacy": skdp.Privacy(noise=skdp.SeededNoise(0)), "scaling": "none"}
    ball = {"constraint": skdp.objective.L1Ball()} if name == "accelerated_mirror_descent" else {}
    fits = [
        skdp.DPRidge(10.0, solver=(get_solver(name, **{parameter: form})), **seeded, **ball)
        .fit(X, X[:, 0])
        .coef_
        for form in FORMS[parameter]
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0], other)


def test_all_descents_have_the_names_that_their_theory_allows():
    """Left out on purpose: see the docstrings of the solvers."""
    names = {"max_iter", "learning_rate", "momentum", "noise_schedule", "clip_norm", "batch_size"}
    missing = {
        name: sorted(names - get_solver(name).get_params(deep=False).keys())
        for name in skdp.solvers.available()
    }
    of_moments = {"boosted_ssp", "laplace_newton"}
    assert {name: found for name, found in missing.items() if name not in of_moments} == {
        "gd": [],
        "whitened": ["batch_size"],
        "heavy_ball": [],
        "nesterov": ["momentum"],
        "multistage_nesterov": ["momentum"],
        "residual_budget": ["batch_size"],
        "adp_sgd": ["momentum"],
        "svrg": ["momentum", "noise_schedule"],
        "svrg++": ["momentum", "noise_schedule"],
        "shuffled_sgd": ["momentum", "noise_schedule"],
        "adaptive_shuffled_sgd": ["batch_size", "clip_norm", "momentum", "noise_schedule"],
        "accelerated_mirror_descent": ["batch_size", "learning_rate", "momentum"],
        "frank_wolfe": ["batch_size", "learning_rate", "momentum", "noise_schedule"],
    }


@pytest.mark.parametrize("name", ["gd", "residual_budget"])
@pytest.mark.parametrize("norm", [1e-50, 1.0])
def test_steps_that_underflow_are_as_many_as_allowed(name, norm):
    """A step size far below the unit of short rows is no division by zero."""
    model = skdp.DPRidge(solver=name, scaling=skdp.RowNorm(norm), learning_rate=5e-324)
    assert sum(release.count for release in model.plan(100, 3).releases) <= 500
