"""Solvers start where they are told, in the user's units; a start is public and costs nothing."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import skdp
from replays import data_for, make_logistic, make_ridge, neighbours
from skdp._oracle import compiled
from skdp.accounting import Adjacency
from skdp.solvers import get_solver

N_ROWS = 400
SIZES, CENTRES = np.array([1.0, 60.0, 0.02]), np.array([0.0, 500.0, -3.0])
COEF, INTERCEPT = np.array([2.0, -0.03, 40.0]), 7.0
FEW = {"max_iter": 3}
# Batches of these are of some rows only, so that only an exact fit is a fixed point of theirs.
ON_BATCHES = {"svrg", "svrg++", "shuffled_sgd", "adaptive_shuffled_sgd"}
PENALISED = {"heavy_ball", "nesterov", "multistage_nesterov"}
# Their solution does not depend on a start.
WITHOUT_START = {"frank_wolfe"}
BALL = {"constraint": skdp.objective.L1Ball(50.0)}


def rows(rng):
    X = CENTRES + SIZES * rng.standard_normal((N_ROWS, 3))
    return X, X @ COEF + INTERCEPT


def few_steps(solver):
    return FEW if "max_iter" in get_solver(solver).get_params() else {}


def regression_solvers():
    return sorted(set(skdp.solvers.available()) - PENALISED - WITHOUT_START)


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize("solver", regression_solvers())
def test_a_solver_stays_at_an_exact_fit(solver, rng):
    """Whatever stages put between: without noise every residual there is zero.

    To the last bit in numpy, which computes margins here as the targets were computed.
    """
    X, y = rows(rng)
    asked = {"solver": solver, **few_steps(solver)}
    if solver == "accelerated_mirror_descent":
        asked |= BALL
    else:
        assert get_solver(solver).takes_start
        asked["scaling"] = "private"
        if solver in ON_BATCHES & {"shuffled_sgd", "adaptive_shuffled_sgd"}:
            asked["max_iter"] = 8
    model = skdp.DPLinearRegression(epsilon=np.inf, **asked)
    with compiled.switched(False):
        model.fit(X, y, coef_init=COEF, intercept_init=INTERCEPT)
    # The map of an L1 ball takes powers of coefficients.
    error = 1e-7 if solver == "accelerated_mirror_descent" else 0.0
    assert model.coef_ == pytest.approx(COEF, rel=1e-8, abs=error * np.abs(COEF).max())
    assert model.intercept_ == pytest.approx(INTERCEPT, rel=1e-6)


def test_one_step_from_a_start_is_what_it_should_be(rng):
    """A single noisy step from w is that step from 0 plus w, where the gradients are clipped."""
    X, y = data_for("ridge", rng)
    options = {"scaling": "none", "solver": "gd", "max_iter": 1, "momentum": 0.0}
    options |= {"clip_norm": 1e-9, "learning_rate": 1.0, "fit_intercept": False}
    first = make_ridge(**options).fit(X, y)
    start = np.array([5.0, -1.0, 0.0, 2.0])
    second = make_ridge(**options).fit(X, y, coef_init=start)
    shrunk = start / (1 + 2.0 / len(X))  # by the penalty's prox
    assert second.coef_ - shrunk == pytest.approx(first.coef_, abs=1e-7)


@pytest.mark.parametrize("constraint", ["simplex", "l1_ball"])
def test_mirror_descent_starts_near_the_start(constraint, rng):
    X = rng.standard_normal((N_ROWS, 3))
    solver = skdp.solvers.AcceleratedMirrorDescent(max_iter=1, curvature=1e12)
    start = np.array([0.0, 0.25, 0.75])
    model = skdp.DPLinearRegression(constraint=constraint, solver=solver)
    model.fit(X, X @ start, coef_init=start)
    assert model.coef_ == pytest.approx(start, abs=0.01)


def test_the_start_costs_nothing_and_is_listed(rng):
    X, y = data_for("logistic", rng)
    plain = make_logistic().fit(X, y).privacy_
    started = make_logistic().fit(X, y, coef_init=np.ones((1, 4))).privacy_
    assert started.releases == plain.releases
    assert started.epsilon == plain.epsilon
    added = set(started.assumptions) - set(plain.assumptions)
    assert ["coef_init and intercept_init, is public" in text for text in added] == [True]


class Started(skdp.DPRidge):
    """A ridge regression that starts elsewhere."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight, coef_init=np.ones(4), intercept_init=2.0)


@pytest.mark.parametrize("solver", ["gd", "whitened", "svrg", "shuffled_sgd"])
def test_nothing_but_releases_from_a_start(replay, rng, solver):
    X, y = data_for("ridge", rng)
    given = {"max_iter": 12} if few_steps(solver) else {}
    given["scaling"] = "auto" if solver == "gd" else "none"  # a start is scaled before any solver

    def make():
        return Started(solver=solver, privacy=skdp.Privacy(noise=skdp.SeededNoise(0)), **given)

    replay.check_each(make, neighbours("ridge", X, y, Adjacency.ZERO_OUT), Adjacency.ZERO_OUT)


REFUSED = {
    "shape": ({}, {"coef_init": np.ones(3)}, "shape"),
    "text": ({}, {"coef_init": "zero"}, "finite numbers"),
    "nan": ({}, {"coef_init": np.full(4, np.nan)}, "finite numbers"),
    "intercept": ({"fit_intercept": False}, {"intercept_init": 1.0}, "fit_intercept=False"),
    "outside": (BALL, {"coef_init": np.full(4, 1e3)}, "must lie in the constraint"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_start_that_cannot_be_is_refused(case, asked, rng):
    parameters, start, message = REFUSED[case]
    X, y = data_for("ridge", rng)
    budget = skdp.PrivacyBudget(epsilon=1.0, delta=1e-6, allow_seeded_noise=True)
    with pytest.raises(ValueError, match=message):
        make_ridge(budget=budget, **parameters).fit(X, y, **start)
    assert not asked
    assert budget.n_fits == 0


def test_searches_and_pipelines_hand_it_on(rng):
    X, y = data_for("ridge", rng)
    start = {"ridge__coef_init": np.ones(4)}
    pipeline = make_pipeline(make_ridge())
    pipeline.steps[0] = ("ridge", pipeline.steps[0][1])
    search = GridSearchCV(pipeline, {"ridge__max_iter": [2, 3]}, cv=2).fit(X, y, **start)
    assert "coef_init" in " ".join(search.best_estimator_[-1].privacy_.assumptions)
