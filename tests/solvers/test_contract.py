"""What holds for every registered solver."""

from __future__ import annotations

import inspect
import math
import re

import numpy as np
import pytest
from sklearn.base import clone

import skdp
from skdp.accounting import Adjacency, Composed, calibrate, price
from skdp.objective import L2, L1Ball, Logistic, Multinomial, Problem, SquaredError
from skdp.oracle import Public, SolverStage, make_plan
from skdp.solvers import Solver, get_solver

SOLVERS = sorted(skdp.solvers.available())
# How each solver gets to the minimum without noise, where 3000 steps of its defaults do not.
EXACTLY: dict[str, dict] = {
    "adassp": {},
    "boosted_ssp": {},
    "fold_moments": {},
    "newton": {},
    "whitened": {},
    # A later stage has steps so short that it would take far more of them.
    "multistage_nesterov": {"max_iter": 3000, "first_stage": 2800},
    # One pass ends near the minimum; a polish goes on from there.
    "adaptive_shuffled_sgd": {"polish_iter": 3000},
    "shuffled_sgd": {"polish_iter": 3000},
    "svrg": {"max_iter": 2000, "inner_steps": 50},
    "svrg++": {"max_iter": 2540, "inner_steps": 10},
    "accelerated_mirror_descent": {"max_iter": 3000, "smoothness": 20.0},
}
# What they ask of the problem; the set is wide enough to hold the minimum.
OF_THE_PROBLEM: dict[str, dict] = {
    "accelerated_mirror_descent": {"constraint": "l2_ball", "radius": 2.0},
}
# Solvers with a matrix of all pairs of columns, which refuse thousands of them.
FEW_COLUMNS = {
    "adassp",
    "boosted_ssp",
    "fold_moments",
    "newton",
    "objective_perturbation",
    "whitened",
}
# Solvers that end near the minimum only, and how near.
NEARLY: dict[str, float] = {}
PROBLEMS = {
    "ridge": Problem(SquaredError(), L2(0.1)),
    "logistic": Problem(Logistic(), L2(0.1)),
    "multinomial": Problem(Multinomial(3), L2(0.1)),
    "ball": Problem(Logistic(), L2(0.1), L1Ball(2.0)),
}


def public_for(name, adjacency, **facts):
    facts = {"n_rows": 500, "n_features": 6, "epsilon": 1.0, "delta": 1e-6, **facts}
    facts = {"row_bound": 5.0, **facts}  # as estimators have it
    return Public(n_outputs=3 if name == "multinomial" else 1, adjacency=adjacency, **facts)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", SOLVERS)
class TestContract:
    def planned(self, name, problem, adjacency, **facts):
        public = public_for(problem, adjacency, **facts)
        solver = get_solver(name)
        if solver.needs - PROBLEMS[problem].provides:
            pytest.skip(f"{name} does not take this problem, and says so (see its own tests)")
        resolved = solver.resolve(public, PROBLEMS[problem])
        return public, resolved, make_plan((SolverStage(resolved),), public, PROBLEMS[problem])

    @pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 20.0])
    def test_the_plan_costs_the_budget(self, name, problem, adjacency, epsilon):
        public, _, plan = self.planned(name, problem, adjacency, epsilon=epsilon)
        event = Composed(tuple((entry.event, entry.count) for entry in plan.entries))
        spent, _ = price(event.scaled(plan.calibration.scale), public.delta, adjacency)
        assert 0.999 * epsilon <= spent <= epsilon

    def test_a_plan_is_a_function_of_public_facts(self, name, problem, adjacency):
        first = self.planned(name, problem, adjacency)
        second = self.planned(name, problem, adjacency)
        assert first[2] == second[2]
        assert str(first[1].get_params()) == str(second[1].get_params())

    def test_no_auto_is_left(self, name, problem, adjacency):
        _, resolved, _ = self.planned(name, problem, adjacency)
        assert "auto" not in map(str, resolved.get_params().values())

    @pytest.mark.parametrize(
        "facts",
        [
            {"n_rows": 1},
            {"n_rows": 10**9},
            {"n_features": 1},
            {"n_features": 10**4, "n_rows": 20},
            {"has_intercept": False},
            {"data_norm": 1e-3, "row_bound": 1e-3},
            {"data_norm": 1e6, "row_bound": 1e6},
            {"delta": 1e-270},
            {"epsilon": math.inf},
        ],
        ids=str,
    )
    def test_defaults_hold_at_the_edges(self, name, problem, adjacency, facts):
        if name in FEW_COLUMNS and facts.get("n_features", 0) > 2000:
            with pytest.raises(ValueError, match="at most 2000"):
                self.planned(name, problem, adjacency, **facts)
            return
        _, resolved, plan = self.planned(name, problem, adjacency, **facts)
        for value in resolved.get_params().values():
            if isinstance(value, float):
                assert 0 <= value < math.inf
        assert plan.entries


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_is_a_scikit_learn_object(name):
    solver = get_solver(name)
    assert isinstance(solver, Solver)
    copy = clone(solver)
    assert copy.get_params() == solver.get_params()
    assert skdp.solvers.available()[name]


@pytest.mark.parametrize("name", SOLVERS)
def test_every_hyperparameter_is_documented(name):
    solver = get_solver(name)
    text = inspect.cleandoc(type(solver).__doc__)
    parameters = text.split("\nParameters\n----------\n")[1].split("\n\n")[0]
    found = re.findall(r"^(\w+(?:, \w+)*) : ", parameters, flags=re.MULTILINE)
    assert sorted(", ".join(found).split(", ")) == sorted(solver.get_params())


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_reaches_the_minimum_without_noise(name, regression):
    X, y = regression
    if get_solver(name).needs - PROBLEMS["ridge"].provides:
        pytest.skip(f"{name} does not take squared error (tests/solvers/test_gram_solvers.py)")
    solver = get_solver(name, **EXACTLY.get(name, {"max_iter": 3000}))
    with pytest.warns(skdp.PrivacyWarning):
        model = skdp.DPRidge(
            alpha=20.0,
            epsilon=math.inf,
            solver=solver,
            scaling="none",
            **OF_THE_PROBLEM.get(name, {}),
        ).fit(X, y)
    centred = X - X.mean(axis=0)
    exact = np.linalg.solve(centred.T @ centred + 20.0 * np.eye(5), centred.T @ (y - y.mean()))
    np.testing.assert_allclose(model.coef_, exact, atol=NEARLY.get(name, 1e-6))


def test_two_solvers_of_one_name_are_refused():
    with pytest.raises(ValueError, match="registered already"):

        class Twin(Solver):
            name = "gd"


def test_calibration_of_the_same_plan_is_the_same():
    event = Composed(())
    assert calibrate(event, 1.0, 1e-6, Adjacency.ZERO_OUT).epsilon == 0.0
