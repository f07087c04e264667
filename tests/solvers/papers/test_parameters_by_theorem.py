"""Parameters that theorems of the papers ask for, and names of schedules with arguments."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import skdp
from skdp._oracle import Public
from skdp.accounting import Adjacency
from skdp.objective import ElasticNet, Logistic, Problem
from skdp.solvers import GradientDescent, get_solver
from skdp.solvers.papers.kuru_2022 import RunFacts, nesterov_bounds, sampling_variance

PROBLEM = Problem(Logistic(), ElasticNet(0.02))
AVERAGED = "averaged", {"beta": 0.5}


def public_for(**facts):
    facts = {"n_rows": 5000, "n_features": 6, "epsilon": 1.0, "delta": 1e-6, **facts}
    return Public(n_outputs=1, adjacency=Adjacency.ZERO_OUT, row_bound=5.0, **facts)


def test_a_random_iterate_is_one_whose_gradient_was_taken(rng):
    """x_0, ..., x_{T-1}: with one step it is the start."""
    X = rng.standard_normal((100, 2))
    solver = GradientDescent(max_iter=1, averaging="random")
    model = skdp.DPLinearRegression(solver=solver, scaling="none")
    assert model.fit(X, X[:, 0], coef_init=[3.0, 4.0]).coef_.tolist() == [3.0, 4.0]


# ---------------------------------------------------------------- Hong, Wang, Zhou 2022


def test_estimators_hand_on_momentum(rng):
    X = rng.standard_normal((100, 2))
    model = skdp.DPRidge(solver="gd", momentum=AVERAGED, max_iter=5)
    assert model.fit(X, X[:, 0]).solver_.momentum == AVERAGED
    with pytest.raises(ValueError, match=r"'svrg' has no momentum\. Solvers that have it: gd, "):
        skdp.DPRidge(solver="svrg", momentum=AVERAGED).plan(100, 2)


# ---------------------------------------------------------------- Kuru et al. 2022


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize("name", ["heavy_ball", "nesterov", "multistage_nesterov"])
def test_declared_strong_convexity_solves_what_has_no_penalty(name, rng):
    X = rng.standard_normal((2000, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3 + 0.1 * rng.standard_normal(2000)
    extra = {"first_stage": 350} if name == "multistage_nesterov" else {}
    solver = get_solver(name, strong_convexity=0.8, max_iter=400, **extra)
    model = skdp.DPLinearRegression(solver=solver, epsilon=np.inf, scaling="none").fit(X, y)
    ones = np.c_[X, np.ones(len(X))]
    right = np.linalg.lstsq(ones, y, rcond=None)[0]
    assert [*model.coef_, model.intercept_] == pytest.approx(right, abs=1e-6)
    labels = (y > 0).astype(int)
    free = skdp.DPLogisticRegression(C=np.inf, solver=get_solver(name, strong_convexity=0.01))
    assert free.plan(2000, 3).epsilon <= 1.0
    with pytest.raises(ValueError, match="declare the objective's strong convexity"):
        skdp.DPLinearRegression(solver=name).fit(X, y)
    too_large = get_solver(name, strong_convexity=1e9)
    with pytest.raises(ValueError, match="at most the curvature"):
        skdp.DPLogisticRegression(solver=too_large).fit(X, labels)


def test_bounds_know_the_noise_of_sampling(rng):
    """Prop. 3.3 bounds the variance of a batch mean, and bounds grow by its response."""
    n_rows, size = 50, 8
    gradients = rng.standard_normal((n_rows, 4))
    gradients /= np.abs(gradients).sum(axis=1, keepdims=True)  # L1 norm 1
    means = [gradients[rng.choice(n_rows, size, replace=False)].mean(axis=0) for _ in range(4000)]
    found = np.mean(np.sum((means - gradients.mean(axis=0)) ** 2, axis=1))
    bound = sampling_variance(1.0, size, n_rows)
    assert 0.1 * bound < found < bound
    apart = np.eye(4)[np.arange(n_rows) % 4] * np.where(np.arange(n_rows) < 25, 1, -1)[:, None]
    spread = np.sum((apart - apart.mean(axis=0)) ** 2) / (n_rows - 1)  # extreme: nearly the bound
    assert spread / size * (1 - size / n_rows) == pytest.approx(bound, rel=0.02)
    facts, exact = (RunFacts(1.0, 0.05, 1.0, variance) for variance in (1e-3, 0.0))
    for stages in (None, (20, 1.0)):
        bounds = functools.partial(nesterov_bounds, stages=stages)
        more = bounds(60, facts._replace(sampling_variance=0.2)) - bounds(60, facts)
        alone = bounds(60, exact._replace(sampling_variance=0.2), is_optimal=False)
        assert more == pytest.approx(alone - bounds(60, exact))
        assert (more > 0).all()
    few = public_for(n_rows=500)
    steps_all = get_solver("nesterov").resolve(few, PROBLEM).max_iter
    steps_few = get_solver("nesterov", batch_size=2).resolve(few, PROBLEM).max_iter
    assert steps_few < steps_all


# ---------------------------------------------------------------- Wu et al. 2021


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("polynomal", "a positive number or one of 'polynomial'"),
        (("polynomial", {"b": 1.0}), "'polynomial' takes initial, a, c, got 'b'"),
    ],
)
def test_unknown_names_and_arguments_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        skdp.DPRidge(learning_rate=given, solver="gd").plan(100, 3)
