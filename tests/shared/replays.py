"""What replays have in common: estimators, data, and neighbours with a hostile record."""

from __future__ import annotations

import numpy as np

import skdp
from skdp._fitting.parameters import constraint_set
from skdp.accounting import Adjacency
from skdp.objective import ElasticNet, Logistic, Multinomial, Problem, SquaredError
from skdp.solvers import available, get_solver

N_ROWS, N_STEPS = 60, 6
LABELS = {"logistic": [0, 1], "multinomial": [0, 1, 2]}
_ones = np.ones(4)
# Records that have broken something somewhere.
HOSTILE_ROWS = [
    0 * _ones,
    -0.0 * _ones,
    1e5 * _ones,
    -1e5 * _ones,
    1e300 * _ones,
    np.array([1e308, -1e308, 1e308, 1e308]),
    1e-170 * _ones,
    5e-324 * _ones,
    np.array([1e200, 1e-200, 0.0, 1.0]),
]
HOSTILE_TARGETS = [-1e300, -3.0, 0.0, 1e-310, 1e12]
TARGETS = LABELS | {"poisson": [abs(target) for target in HOSTILE_TARGETS]}


def seeded(seed=0, **terms):
    """Terms of privacy with noise that follows from a seed."""
    return skdp.Privacy(noise=skdp.SeededNoise(seed), **terms)


TERMS = {"adjacency", "budget", "rows_per_group"}


def _with_terms(parameters):
    """The parameters with terms of privacy in their object, and few steps if solvers count them."""
    terms = {name: parameters[name] for name in TERMS & set(parameters)}
    others = {name: value for name, value in parameters.items() if name not in terms}
    solver = others.get("solver", "gd")
    if isinstance(solver, str) and "max_iter" in get_solver(solver).get_params():
        others = {"max_iter": N_STEPS, **others}
    return {"privacy": seeded(**terms), **others}


def solvers_for(problem):
    """Names of the solvers that can do a problem; others refuse it, in their own tests."""
    return [name for name in sorted(available()) if get_solver(name).needs <= problem.provides]


def make_logistic(**parameters):
    return skdp.DPLogisticRegression(classes=[0, 1], **_with_terms(parameters))


def make_multinomial(**parameters):
    return skdp.DPLogisticRegression(classes=[0, 1, 2], **_with_terms(parameters))


def make_linear(**parameters):
    return skdp.DPLinearRegression(**_with_terms(parameters))


def make_ridge(**parameters):
    return skdp.DPRidge(alpha=2.0, **_with_terms(parameters))


ESTIMATORS = {
    "logistic": make_logistic,
    "multinomial": make_multinomial,
    "linear": make_linear,
    "ridge": make_ridge,
}

# What a solver needs of a problem that the estimators do not have by themselves.
ASKED_BY = {
    "accelerated_mirror_descent": {"constraint": skdp.objective.L1Ball(2.0)},
    "frank_wolfe": {"constraint": skdp.objective.L1Ball(2.0), "fit_intercept": False},
}
PROBLEMS = {
    "logistic": (Logistic(), ElasticNet(0.1)),
    "multinomial": (Multinomial(3), ElasticNet(0.1)),
    "linear": (SquaredError(), ElasticNet()),
    "ridge": (SquaredError(), ElasticNet(0.1)),
}


def takes(solver, kind):
    """Whether a solver can do an estimator's problem; where not it says so, in its own tests."""
    asked = ASKED_BY.get(solver, {})
    wanted = constraint_set(asked.get("constraint"))
    intercept = asked.get("fit_intercept", True)
    return get_solver(solver).needs <= Problem(*PROBLEMS[kind], wanted, intercept).provides


def in_turn(pairs, turn=0):
    """Return kinds, solvers and adjacencies: every pair of a kind and a solver once.

    Adjacencies alternate over the kinds of a solver, so that it is replayed under both: no solver
    treats one kind of problem differently under one adjacency. "gd", whose steps the others
    share, is replayed in every combination.
    """
    relations = list(Adjacency)
    cases = []
    for kind, solver in pairs:
        kinds = [one for one, name in pairs if name == solver]
        if solver == "gd" or len(kinds) == 1:
            cases += [(kind, solver, relation) for relation in relations]
        else:
            relation = relations[(kinds.index(kind) + turn) % len(relations)]
            cases.append((kind, solver, relation))
    return cases


def data_for(kind, rng):
    X = rng.standard_normal((N_ROWS, 4))
    if kind == "logistic":
        return X, (X[:, 0] > 0).astype(int)
    if kind == "multinomial":
        return X, np.arange(N_ROWS) % 3
    y = X @ np.array([1.0, -1.0, 0.5, 0.0]) + 0.1 * rng.standard_normal(N_ROWS)
    return X, np.abs(y) if kind == "poisson" else y


def differing(X, y, adjacency, place, row, target, weight=1.0):
    """Two triples (X, y, sample_weight): with this record, and with a null or the old one."""
    there, other = ((X.copy(), y.copy(), np.ones(len(y))) for _ in range(2))
    there[0][place], there[1][place], there[2][place] = row, target, weight
    if adjacency is Adjacency.ZERO_OUT:
        other[0][place], other[1][place], other[2][place] = 0.0, 0, 0.0
    return there, other


def neighbours(kind, X, y, adjacency, records=None, turn=0):
    """Pairs of data sets; the second has one hostile record, every other one of a great weight."""
    for place, row, target in records or each_row_once(kind, turn):
        weight = 1e6 if place % 2 else 1.0
        if adjacency is Adjacency.ZERO_OUT:
            place %= 2  # so that few data sets with a null record have to be fitted
        there, other = differing(X, y, adjacency, place, row, target, weight)
        yield other, there


def each_row_once(kind, turn=0):
    """Places, rows and targets: every row, with targets in turn."""
    targets = TARGETS.get(kind, HOSTILE_TARGETS)
    return [
        (place, row, targets[(place + turn) % len(targets)])
        for place, row in enumerate(HOSTILE_ROWS)
    ]
