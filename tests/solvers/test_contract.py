"""What holds for every registered solver; a new one is held to it by being registered."""

from __future__ import annotations

import inspect
import math
import re

import pytest
from sklearn.base import clone

import skdp
import solver_contract as contract
from replays import in_turn
from skdp.accounting import Adjacency, Composed, calibrate
from skdp.solvers import Solver, base, get_solver

SOLVERS = sorted(skdp.solvers.available())
PAIRS = [(name, kind) for name in SOLVERS for kind in contract.PROBLEMS]
TAKEN = [(name, kind) for name, kind in PAIRS if contract.takes(get_solver(name), kind)]
TAKEN_KINDS = [(kind, name) for name, kind in TAKEN]
REFUSED = [pair for pair in PAIRS if pair not in TAKEN]

# Every solver under both adjacencies and at every edge, in turn over its problems; "gd" in all
# combinations.
RELATED = [(name, kind, relation) for kind, name, relation in in_turn(TAKEN_KINDS)]
EDGES = [
    (name, kind, facts)
    for name, kind in TAKEN
    for kinds in [[one for solver, one in TAKEN if solver == name]]
    for place, facts in enumerate(contract.EDGES)
    if name == "gd" or place % len(kinds) == kinds.index(kind)
]

every_solver = pytest.mark.parametrize("name", SOLVERS)
related = pytest.mark.parametrize(("name", "problem", "adjacency"), RELATED, ids=str)


@related
def test_the_plan_costs_the_budget(name, problem, adjacency):
    # Half of them each; a solver has problems enough for all.
    turn = RELATED.index((name, problem, adjacency)) % 2
    contract.check_the_plan_costs_the_budget(
        get_solver(name), problem, adjacency, contract.EPSILONS[turn::2]
    )


@related
def test_the_plan_follows_from_public_facts(name, problem, adjacency):
    solver = get_solver(name)
    first, second = (contract.planned(clone(solver), problem, adjacency) for _ in range(2))
    assert first[2] == second[2]
    assert str(first[1].get_params()) == str(second[1].get_params())
    assert "auto" not in map(str, first[1].get_params().values())


@pytest.mark.parametrize(("name", "problem", "facts"), EDGES, ids=str)
def test_defaults_hold_at_the_edges(name, problem, facts):
    """Under the relation that asks for the larger noise."""
    solver = get_solver(name)
    adjacency = Adjacency.REPLACE_ONE
    if solver.max_columns is not None and facts.get("n_features", 0) > solver.max_columns:
        with pytest.raises(ValueError, match=f"at most {solver.max_columns}"):
            contract.planned(solver, problem, adjacency, **facts)
    else:
        _, resolved, plan = contract.planned(solver, problem, adjacency, **facts)
        numbers = [value for value in resolved.get_params().values() if isinstance(value, float)]
        assert all(0 <= value < math.inf for value in numbers)
        assert plan.entries


@pytest.mark.parametrize(("name", "problem"), REFUSED)
def test_problems_that_lack_something_are_refused(name, problem):
    solver = get_solver(name)
    needed = sorted(solver.needs - contract.PROBLEMS[problem].provides)
    with pytest.raises(ValueError, match=rf"solver '{re.escape(solver.name)}' needs {needed[0]}"):
        solver.check(contract.PROBLEMS[problem])


@every_solver
def test_every_solver_is_a_scikit_learn_object_with_a_purpose(name):
    contract.check_a_scikit_learn_object_with_a_purpose(get_solver(name))


@every_solver
def test_every_hyperparameter_is_documented(name):
    solver = get_solver(name)
    text = inspect.cleandoc(type(solver).__doc__)
    parameters = text.split("\nParameters\n----------\n")[1].split("\n\n")[0]
    found = re.findall(r"^(\w+(?:, \w+)*) : ", parameters, flags=re.MULTILINE)
    assert sorted(", ".join(found).split(", ")) == sorted(solver.get_params())


@every_solver
def test_values_that_no_hyperparameter_has_are_refused_by_name(name):
    problem = next(kind for kind in contract.PROBLEMS if contract.takes(get_solver(name), kind))
    for hyperparameter in get_solver(name).get_params():
        for bad in (-1.5, "no such", math.nan, []):
            solver = clone(get_solver(name)).set_params(**{hyperparameter: bad})
            with pytest.raises(ValueError, match=rf"\b{hyperparameter}\b"):
                contract.planned(solver, problem, Adjacency.REPLACE_ONE)


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in SOLVERS
        if get_solver(n).needs <= {"vertices", *contract.PROBLEMS["ridge"].provides}
    ],
)
def test_every_solver_reaches_the_minimum_without_noise(name):
    contract.check_the_minimum_without_noise(get_solver(name))


def test_two_solvers_of_one_name_are_refused():
    with pytest.raises(ValueError, match="registered already"):

        class Twin(Solver):
            name = "gd"


def test_annotated_attributes_are_hyperparameters_and_others_are_not():
    @base.hyperparameters
    class Example(Solver):
        size: base.Resolved[float] = base.AUTO
        has_checkpoint = True

    @base.hyperparameters
    class Longer(Example):
        count: int = 3

        def __init__(self, *, count=4):
            super().__init__(size=count)
            self.count = count

    example = Example(size=2.0)
    assert clone(example).get_params() == {"size": 2.0}
    assert Example().size == "auto"
    assert Example(size=2.0) != example  # no two solvers are equal, as of any estimator
    assert vars(Longer()) == {"size": 4, "count": 4}  # an __init__ by hand stays
    with pytest.raises(TypeError, match="positional"):
        Example(2.0)


def test_calibration_of_an_empty_plan_costs_nothing():
    assert calibrate(Composed(()), 1.0, 1e-6, Adjacency.ZERO_OUT).epsilon == 0.0
