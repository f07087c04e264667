"""Heavy ball, Nesterov and multistage Nesterov: iterates, noise, curvature, refusals."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import skdp
from skdp._oracle import Public, SolverStage, make_plan
from skdp.accounting import Adjacency, Composed, Laplace, price
from skdp.objective import ElasticNet, Logistic, Problem, SquaredError
from skdp.solvers import GradientDescent, HeavyBallDescent, MultistageNesterov, Nesterov
from skdp.solvers.defaults import loss_curvature
from skdp.solvers.papers.kuru_2022 import RunFacts, nesterov_bounds

ROOT = Path(__file__).parents[2]
SOLVERS = [HeavyBallDescent, MultistageNesterov, Nesterov]
PROBLEM = Problem(Logistic(), ElasticNet(0.02))


def public_for(adjacency=Adjacency.ZERO_OUT, **facts):
    facts = {"n_rows": 5000, "n_features": 6, "epsilon": 1.0, "delta": 0.0, **facts}
    return Public(n_outputs=1, adjacency=adjacency, row_bound=5.0, **facts)


def fit(X, y, solver, **parameters):
    """Fit without noise and without clipping; penalty 0.02 |w|^2."""
    with pytest.warns(skdp.PrivacyWarning):
        return skdp.DPLogisticRegression(
            C=1 / (0.04 * len(X)),
            classes=[0, 1],
            epsilon=math.inf,
            fit_intercept=False,
            solver=solver,
            scaling=skdp.RowNorm(100.0),
            **parameters,
        ).fit(X, y)


@pytest.fixture
def plain(monkeypatch):
    """The plain numpy versions behind the figures of the benchmark."""
    monkeypatch.syspath_prepend(str(ROOT))
    if not (ROOT / "benchmarks").exists():
        pytest.skip("benchmarks are not part of this installation")
    module = importlib.import_module("benchmarks.papers.k22")
    yield module
    sys.modules.pop("benchmarks.papers.k22", None)


@pytest.mark.parametrize("name", ["heavy_ball", "nesterov", "multistage"])
@pytest.mark.parametrize("step", [1.0, 0.1])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_iterates_are_those_of_a_plain_implementation(plain, classification, name, step, delta):
    X, y = classification
    curvature, mu, n_steps = 0.9, 0.04, 130
    kappa = curvature / mu
    root = math.sqrt(step * mu / curvature)
    first = plain.first_stage(kappa)
    solver = {
        "heavy_ball": HeavyBallDescent(momentum=(1 - root) / (1 + root)),
        "nesterov": Nesterov(),
        "multistage": MultistageNesterov(first_stage=first, p=plain.P),
    }[name].set_params(
        max_iter=n_steps, learning_rate=step / curvature, curvature=curvature, clip_norm=1e9
    )
    model = fit(X, y, solver, delta=delta)
    task = plain.LogisticProblem(X, 2.0 * y - 1, mu / 2)
    sizes = plain.step_sizes(name, n_steps, step, curvature, kappa)
    start = np.zeros((5, 1))
    *_, last = plain.iterates(name, start, lambda t, x: task.gradient(x), sizes, mu)
    np.testing.assert_allclose(model.coef_.ravel(), last.ravel(), atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("schedule", ["optimal", "uniform"])
def test_pure_plans_spend_the_whole_budget(solver, adjacency, schedule):
    public = public_for(adjacency)
    resolved = solver(noise_schedule=schedule).resolve(public, PROBLEM)
    plan = make_plan((SolverStage(resolved),), public, PROBLEM)
    assert plan.calibration.accountant == "pure"
    assert 0.9999 <= plan.calibration.epsilon <= 1.0
    assert all(isinstance(entry.event, Laplace) for entry in plan.entries)
    scales = [entry.event.noise_multiplier for entry in plan.entries for _ in range(entry.count)]
    assert len(scales) == resolved.max_iter
    if schedule == "uniform":
        assert len(set(scales)) == 1
    elif resolved.max_iter > 1:
        assert scales[0] > scales[-1]  # the later a step, the more it is worth


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("sampling", ["poisson", "fixed_size"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_plans_on_samples(solver, sampling, delta):
    public = public_for(Adjacency.REPLACE_ONE, delta=delta)
    asked = solver(batch_size=500, sampling=sampling, max_iter=12, mechanism="laplace")
    resolved = asked.resolve(public, PROBLEM)
    plan = make_plan((SolverStage(resolved),), public, PROBLEM)
    event = Composed(tuple((entry.event, entry.count) for entry in plan.entries))
    spent, _ = price(event.scaled(plan.calibration.scale), delta, Adjacency.REPLACE_ONE)
    assert 0.999 <= spent <= 1.0


def test_number_of_steps_makes_the_bound_least():
    public = public_for()
    resolved = Nesterov(clip_norm=2.0, initial_gap=3.0).resolve(public, PROBLEM)
    variance = 2 * 7 * (2.0 / (5000 * 1.0)) ** 2
    curvature = loss_curvature(public, PROBLEM) + PROBLEM.strong_convexity
    assert curvature == pytest.approx(0.25 * public.row_norm**2 + 0.02)
    bounds = nesterov_bounds(1000, RunFacts(curvature, 0.02, 3.0, variance))
    assert resolved.max_iter == int(bounds.argmin()) + 1
    quieter = Nesterov(clip_norm=2.0, initial_gap=3.0).resolve(public_for(epsilon=10.0), PROBLEM)
    assert quieter.max_iter > resolved.max_iter


@pytest.mark.parametrize("solver", SOLVERS)
class TestRefusals:
    def test_no_penalty(self, solver):
        with pytest.raises(ValueError, match=r"finite C and l1_ratio=0 .*DPRidge with alpha > 0"):
            solver().check(Problem(SquaredError(), ElasticNet()))

    @pytest.mark.parametrize(
        "parameters",
        [
            {"learning_rate": 100.0},
            {"curvature": "private"},
            {"batch_size": 10**9},
        ],
        ids=str,
    )
    def test_values_out_of_range(self, solver, parameters):
        (name,) = parameters
        with pytest.raises(ValueError, match=name):
            solver(**parameters).resolve(public_for(), PROBLEM)


@pytest.mark.parametrize("solver", [GradientDescent, *SOLVERS])
def test_gaussian_noise_is_not_pure(solver, classification):
    X, y = classification
    assert solver().pure_dp
    assert not solver(mechanism="gaussian").pure_dp
    assert solver(mechanism="laplace").pure_dp
    model = skdp.DPLogisticRegression(
        solver=solver(mechanism="gaussian"), classes=[0, 1], delta=0, scaling="none"
    )
    with pytest.raises(ValueError, match=r"pure differential privacy.*Nothing was released"):
        model.fit(X, y)
