"""Plans with noise schedules: their price, and how a search reaches their parameters."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from skdp.accounting import Adjacency, Composed, price
from skdp.objective import L2, Logistic, Problem
from skdp.oracle import Public, SolverStage, make_plan
from skdp.solvers import GradientDescent
from skdp.steps import (
    NOISE_SCHEDULES,
    MomentumNoise,
    PolynomialStep,
    SquareRootDecayStep,
    StepMatchedNoise,
)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("name", NOISE_SCHEDULES)
def test_a_plan_of_every_schedule_costs_the_budget(name, adjacency):
    for n_steps in [1, 2, 37, 2000]:
        public = Public(1000, 5, 1, adjacency, epsilon=0.7, delta=1e-6)
        problem = Problem(Logistic(), L2(0.1))
        solver = GradientDescent(max_iter=n_steps, noise_schedule=name).resolve(public, problem)
        plan = make_plan((SolverStage(solver),), public, problem)
        assert sum(entry.count for entry in plan.entries) == n_steps
        event = Composed(tuple((entry.event, entry.count) for entry in plan.entries))
        spent, _ = price(event.scaled(plan.calibration.scale), public.delta, adjacency)
        assert spent == pytest.approx(0.7, rel=1e-6)
        assert spent <= 0.7


def test_grid_search_reaches_the_parameters():
    solver = GradientDescent(noise_schedule=MomentumNoise())
    solver = clone(solver).set_params(noise_schedule__gamma=0.8, noise_schedule__beta=0.3)
    assert solver.noise_schedule.get_params() == {"gamma": 0.8, "beta": 0.3}
    matched = GradientDescent(noise_schedule=StepMatchedNoise(PolynomialStep()))
    matched.set_params(noise_schedule__steps__a=3.0)
    assert matched.noise_schedule.steps.a == 3.0


def test_gradient_descent_matches_its_own_steps():
    public = Public(1000, 5, 1, Adjacency.ZERO_OUT, epsilon=0.7, delta=1e-6)
    problem = Problem(Logistic(), L2(0.1))
    steps = SquareRootDecayStep(0.2, 0.01)
    solver = GradientDescent(max_iter=9, learning_rate=steps, noise_schedule="step_matched")
    plan = make_plan((SolverStage(solver.resolve(public, problem)),), public, problem)
    noise = np.array([entry.event.noise_multiplier for entry in plan.entries])
    np.testing.assert_allclose(noise / noise[0], (steps.sizes(9) / steps.sizes(9)[0]) ** -0.5)
