"""Which solvers fit an estimator, how they are reached, and searches over them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import skdp
from skdp.objective import ElasticNet, Logistic, Problem, SquaredError
from skdp.solvers import available, get_solver

ALL = set(available())
CASES = {
    "lasso with momentum": skdp.DPLasso(alpha=0.1, momentum=0.5, scaling="none"),
    "linear on batches": skdp.DPLinearRegression(
        solver=("auto", {"batch_size": 0.5}), scaling="none"
    ),
    "ridge, pure": skdp.DPRidge(delta=0.0),
    "schedule": skdp.DPRidge(noise_schedule="optimal", scaling="none"),
    "huber in a ball": skdp.DPHuberRegressor(constraint=skdp.objective.L2Ball(), scaling="none"),
    "logistic": skdp.DPLogisticRegression(learning_rate=0.1, classes=[0, 1]),
}


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("case", CASES)
def test_a_search_over_those_that_fit_never_ends_in_nan(case, rng):
    model = clone(CASES[case]).set_params(privacy=skdp.Privacy(noise=skdp.SeededNoise(0)))
    X = rng.standard_normal((80, 3))
    y = X[:, 0] + 0.1 * rng.standard_normal(80)
    if case == "logistic":
        y = (y > 0).astype(int)
    fitting = available(model, n_samples=40, n_features=3)
    assert set(fitting) | set(fitting.others) == ALL
    assert not set(fitting) & set(fitting.others)
    assert fitting
    search = GridSearchCV(model, {"solver": list(fitting)}, cv=2).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    for name, why in fitting.others.items():
        with pytest.raises(ValueError, match=r"\w") as refusal:
            model.__sklearn_clone__().set_params(solver=name).fit(X, y)
        assert str(refusal.value)[:40] == why[:40]


def test_solvers_of_a_problem():
    assert set(available(Problem(SquaredError(), ElasticNet(0.1)))) >= {
        "gd",
        "nesterov",
        "boosted_ssp",
    }
    sparse = available(Problem(Logistic(), ElasticNet(0.1, 1.0)))
    assert {"boosted_ssp", "nesterov"} <= set(sparse.others)
    assert "not nesterov: solver 'nesterov' needs a penalty" in str(sparse)


# ---------------------------------------------------------------- every solver, every estimator

ESTIMATORS = {
    "linear": skdp.DPLinearRegression,
    "ridge": skdp.DPRidge,
    "logistic": skdp.DPLogisticRegression,
}
# Pairs that are refused with their defaults: what to declare, or what they say.
NEEDS_A_SET = {
    "accelerated_mirror_descent": {"constraint": skdp.objective.L1Ball()},
    "frank_wolfe": {"constraint": skdp.objective.L1Ball(), "fit_intercept": False},
}
DECLARED = {
    (name, "linear"): {"strong_convexity": 0.5}
    for name in ("heavy_ball", "nesterov", "multistage_nesterov")
}
LEAST_SQUARES = {"boosted_ssp", "laplace_newton"}
REASONS = {(name, "logistic"): "needs quadratic_loss" for name in LEAST_SQUARES}


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("name", sorted(ALL))
def test_every_solver_is_reached_by_every_way(name, kind, rng):
    """By name, as an object, cloned, pickled, in a grid search, inside of a pipeline."""
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + 0.1 * rng.standard_normal(60)
    y = (y > 0).astype(int) if kind == "logistic" else y
    common = {"privacy": skdp.Privacy(noise=skdp.SeededNoise(0)), "scaling": "none"}
    common |= NEEDS_A_SET.get(name, {}) | ({"classes": [0, 1]} if kind == "logistic" else {})
    model = ESTIMATORS[kind](solver=name, **common)
    reason = REASONS.get((name, kind))
    if reason is not None:
        with pytest.raises(ValueError, match=reason):
            model.fit(X, y)
        assert name in available(model, n_samples=60, n_features=3).others
        return
    declared = DECLARED.get((name, kind), {})
    if declared:
        with pytest.raises(ValueError, match=f"declare .*{next(iter(declared))}"):
            model.fit(X, y)
        model.set_params(**{f"solver__{key}": value for key, value in declared.items()})
    coef = model.fit(X, y).coef_
    if kind != ("logistic" if (name, "ridge") in REASONS else "ridge"):
        return  # the ways are the same for every estimator
    by_object = ESTIMATORS[kind](solver=get_solver(name, **declared), **common)
    for other in (by_object, clone(model), clone(by_object), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.fit(X, y).coef_, coef)
    fitted = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(fitted.predict(X), model.predict(X))
    # A hyperparameter of the solver's own, by its nested name, alone and inside of a pipeline.
    own = sorted(set(by_object.solver.get_params()) & {"max_iter", "rounds"})
    grid = {"solver": [model.solver, by_object.solver]}
    if own:
        grid = {f"solver__{own[0]}": [3, 5]}
    step = type(model).__name__.lower()
    in_pipeline = {f"{step}__{key}": values for key, values in grid.items()}
    for searched, names in ((by_object, grid), (make_pipeline(by_object), in_pipeline)):
        search = GridSearchCV(searched, names, cv=2, refit=False).fit(X, y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_hyperparameter_selects_the_best_solver_that_has_it():
    model, many = skdp.DPRidge(), (20_000, 6)
    assert model._prepare(*many).solver.name == "whitened"
    assert model.plan(*many).notes[0] == "solver='auto' is 'whitened' here."
    model.set_params(solver=("auto", {"batch_size": 100}))
    assert model._prepare(*many).solver.name == "gd"
    assert "does not take batch_size=100" in model.plan(*many).notes[0]
