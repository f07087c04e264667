"""The budget loop: what runs, what is refused, and where it ends."""

from __future__ import annotations

import math

import numpy as np
import pytest

import skdp
from benchmarks.papers.theory import noise_effect
from replays import differing
from skdp._oracle import BudgetError, Public, Solution
from skdp._oracle.oracle import Ledger, Oracle, PrivacyFilter
from skdp._oracle.releases.base import PublicContext
from skdp.accounting import Adjacency, gaussian_mu
from skdp.objective import ElasticNet, Problem, SquaredError
from skdp.solvers import GradientDescent
from skdp.solvers.papers.hong_2022 import ResidualBudget
from skdp.steps import NOISE_SCHEDULES, powers, relative_noise

PROBLEM = Problem(SquaredError(), ElasticNet(0.1))


def facts(**known):
    known = {"n_rows": 400, "n_features": 5, "epsilon": 1.0, "delta": 1e-6, **known}
    return Public(n_outputs=1, adjacency=known.pop("adjacency", Adjacency.ZERO_OUT), **known)


def rehearse(solver, public, coins=0):
    """Run against noise only; return the solution, what was spent and the noise asked for."""
    guard = PrivacyFilter(public.adjacency)
    ledger = Ledger(guard)
    oracle = Oracle(PublicContext(public, PROBLEM, scale=1.0), ledger, np.random.default_rng(coins))
    solution = solver.resolve(public, PROBLEM).solve(oracle)
    noise = [entry.event.noise_multiplier for entry in ledger.entries for _ in range(entry.count)]
    return solution, guard.spent, np.array(noise)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("name", NOISE_SCHEDULES)
def test_an_exact_schedule_keeps_its_last_step(name, adjacency):
    """The step is made if it costs no more than what is left; "less" would lose the last one."""
    for n_steps in [1, 2, 7, 1000]:
        solver = ResidualBudget(max_iter=n_steps, noise_schedule=name)
        solution, spent, _ = rehearse(solver, facts(adjacency=adjacency))
        assert solution.n_iter == n_steps
        assert spent == pytest.approx(1.0, rel=1e-8)


def test_a_schedule_is_gradient_descent(regression):
    given = {"max_iter": 30, "noise_schedule": ("exponential", {"gamma": 0.9}), "momentum": 0.5}
    both = [
        skdp.DPRidge(
            epsilon=2.0,
            solver=kind(**given),
            scaling="none",
            privacy=skdp.Privacy(noise=skdp.SeededNoise(5)),
        ).fit(*regression)
        for kind in (ResidualBudget, GradientDescent)
    ]
    np.testing.assert_allclose(both[0].coef_, both[1].coef_, rtol=1e-4)
    assert both[0].n_iter_ == 30


class Doubling(ResidualBudget, registered=False):
    """Requests twice as much whenever the last noisy gradient was no larger than its noise.

    ``keeps_to`` is the share of the budget at which it ends.
    """

    keeps_to = 1.0

    def solve(self, oracle):
        point, spent, share = oracle.start(), 0.0, 1 / self.max_iter
        while spent + share <= self.keeps_to:
            gradient = oracle.gradient(point, self.clip_norm, share**-0.5)
            point, spent = point - self.learning_rate * gradient, spent + share
            expected = gradient.size * oracle.gradient_std(self.clip_norm, share**-0.5, None) ** 2
            share *= 2 if np.sum(gradient**2) < 2 * expected else 1
        return Solution(point, 1)


def test_the_filter_refuses_a_solver_that_overspends(monkeypatch, regression):
    """A mutant that forgets to look at what is left is stopped by the guard."""
    model = skdp.DPRidge(solver=Doubling(max_iter=9), epsilon=0.01)
    model.fit(*regression)
    monkeypatch.setattr(Doubling, "keeps_to", math.inf)
    with pytest.raises(BudgetError, match="of which"):
        model.fit(*regression)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_nothing_but_releases_when_noise_follows_the_answers(replay, leak, regression, adjacency):
    """And a mutant, whose noise follows the rows, is caught."""
    X, y = regression[0][:60], regression[1][:60]
    n_steps = [20]

    def make():
        return skdp.DPRidge(
            solver=Doubling(max_iter=n_steps[0]),
            privacy=skdp.Privacy(adjacency=str(adjacency), noise=skdp.SeededNoise(0)),
            epsilon=0.1,
        )

    pair = differing(X, y, adjacency, 3, 1e300, y[3])
    replay.check(make, *pair, adjacency)

    def read():
        n_steps[0] += 1  # stands for a value read from other rows
        return make()

    with pytest.raises(leak):
        replay.check(read, *pair, adjacency)


def test_fits_end_below_the_bound():
    """Hong, Wang, Zhou (2022), Thms 4.2 and 4.3, with the true kappa and gap of a ridge problem.

    The mean excess of 40 fits, with no clipping.
    """
    rng = np.random.default_rng(0)
    n_rows, penalty, clip_norm = 500, 0.3, 20.0
    X = rng.standard_normal((n_rows, 4))
    X *= 2 / np.linalg.norm(X, axis=1, keepdims=True)
    y = X @ [1.0, -1.0, 0.5, 0.0]
    hessian = X.T @ X / n_rows
    smoothness = 4.0 + penalty
    best = np.linalg.solve(hessian + penalty * np.eye(4), X.T @ y / n_rows)

    def excess(w):
        return 0.5 * (w - best) @ (hessian + penalty * np.eye(4)) @ (w - best)

    kappa = smoothness / (np.linalg.eigvalsh(hessian)[0] + penalty)
    gap = excess(np.zeros(4))
    alpha = 4 * clip_norm**2 / (2 * gaussian_mu(1.0, 1e-6) ** 2 * 4.0 * n_rows**2 * gap)
    gamma = 1 - 1 / kappa

    def bound_of(schedule, n_steps):
        logs, noise = powers(gamma, n_steps), relative_noise(schedule, np.ones(n_steps))
        return gamma**n_steps + alpha * noise_effect(logs, noise)

    for schedule in (("exponential", {"gamma": gamma}), "uniform"):
        steps = min(range(1, 300), key=lambda n_steps: bound_of(schedule, n_steps))
        solver = ResidualBudget(
            max_iter=steps,
            learning_rate=1 / 4.0,
            momentum=0.0,
            averaging="last",
            clip_norm=clip_norm,
            noise_schedule=schedule,
        )
        model = skdp.DPRidge(
            alpha=penalty * n_rows,
            epsilon=1.0,
            delta=1e-6,
            scaling=skdp.RowNorm(2.0),
            fit_intercept=False,
            solver=solver,
        )
        fits = [
            skdp.DPRidge(
                **model.get_params(deep=False)
                | {
                    "privacy": skdp.Privacy(noise=skdp.SeededNoise(s)),
                }
            )
            for s in range(40)
        ]
        left = np.mean([excess(fit.fit(X, y).coef_) for fit in fits]) / gap
        bound = bound_of(schedule, steps)
        assert 1 < steps < 300
        assert 0.02 * bound < left <= bound < 1
