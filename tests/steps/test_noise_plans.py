"""Plans with noise schedules: their price, and how a search reaches their parameters."""

from __future__ import annotations

import pytest

from skdp._oracle import Public, SolverStage, make_plan
from skdp.accounting import Adjacency, Composed, price
from skdp.objective import ElasticNet, Logistic, Problem
from skdp.solvers import GradientDescent
from skdp.steps import NOISE_SCHEDULES


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("name", NOISE_SCHEDULES)
def test_a_plan_of_every_schedule_costs_the_budget(name, adjacency):
    for n_steps in [1, 2, 37, 2000]:
        public = Public(1000, 5, 1, adjacency, epsilon=0.7, delta=1e-6)
        problem = Problem(Logistic(), ElasticNet(0.1))
        solver = GradientDescent(max_iter=n_steps, noise_schedule=name).resolve(public, problem)
        plan = make_plan((SolverStage(solver),), public, problem)
        assert sum(entry.count for entry in plan.entries) == n_steps
        event = Composed(tuple((entry.event, entry.count) for entry in plan.entries))
        spent, _ = price(event.scaled(plan.calibration.scale), public.delta, adjacency)
        assert spent == pytest.approx(0.7, rel=1e-6)
        assert spent <= 0.7
