"""Bounds of accelerated methods, and the optimal noise behind them."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from benchmarks.papers.theory import (
    heavy_ball_excess,
    heavy_ball_noise,
    noise_effect,
    noise_multipliers,
)
from skdp.solvers.descent import MomentumPath, Step
from skdp.solvers.papers.kuru_2022 import (
    RunFacts,
    heavy_ball_rate,
    nesterov_bounds,
    nesterov_influence,
    nesterov_momentum,
    stages_of_steps,
)
from skdp.steps import influence_to_noise

BOUNDS = {
    "nesterov": nesterov_bounds,
    "multistage": functools.partial(nesterov_bounds, stages=(20, 1.0)),
}
STAGES = {"nesterov": None, "multistage": (20, 1.0)}


# ---------------------------------------------------------------- noise


@pytest.mark.parametrize("composition", ["laplace", "gaussian"])
@pytest.mark.parametrize("kappa", [1.5, 10.0, 90.0, 5000.0])
@pytest.mark.parametrize("method", BOUNDS)
def test_optimal_noise_beats_uniform_at_every_number_of_steps(method, kappa, composition):
    facts = RunFacts(1.0, 1 / kappa, 1.0, 1e-4, composition)
    best = BOUNDS[method](1000, facts)
    uniform = BOUNDS[method](1000, facts, is_optimal=False)
    assert (best <= uniform * (1 + 1e-12)).all()
    assert (best[2:] < uniform[2:]).all()


@pytest.mark.parametrize("method", BOUNDS)
@pytest.mark.parametrize("n_steps", [1, 7, 150])
@pytest.mark.parametrize("step", [1.0, 0.1])
def test_bounds_are_those_of_the_noise_schedules(method, n_steps, step):
    """Eq. 29 and 34 written out, with the noise that the schedule gives."""
    L, mu, excess, variance = 3.0, 0.05, 2.0, 1e-3
    logs = nesterov_influence(n_steps, L, mu, step, STAGES[method])[1]
    sizes = np.full(n_steps, step / L)
    growth, stage = 1.0, np.ones(n_steps)
    if method == "multistage":
        stage = stages_of_steps(n_steps, L / mu, 20, 1.0)
        sizes = np.where(stage == 1, 1.0, 4.0**-stage) * step / L
    growth = 2.0 ** (stage[-1] - stage[0])
    left = growth * np.prod(1 - np.sqrt(mu * sizes))
    weights = np.array(
        [
            2.0 ** (stage[-1] - stage[t])
            * np.prod(1 - np.sqrt(mu * sizes[t + 1 :]))
            * sizes[t]
            * (1 + sizes[t] * L)
            for t in range(n_steps)
        ]
    )
    for composition in ("laplace", "gaussian"):
        effect = noise_effect(np.log(weights), influence_to_noise(logs, composition), composition)
        found = BOUNDS[method](n_steps, RunFacts(L, mu, excess, variance, composition), step)[-1]
        assert found == pytest.approx(left * excess + variance / 2 * effect, rel=1e-10)
    shift = logs - np.log(weights)
    np.testing.assert_allclose(shift, shift[0], atol=1e-9)


def test_the_printed_bound():
    """(32), with its (sum a^(1/3))^3 and d S^2 / (n eps)^2."""
    d, S, n, eps, L, mu, n_steps = 20, 40.0, 1e5, 1.0, 2.0, 0.02, 120
    contraction = 1 - np.sqrt(mu / L)
    a = contraction ** (n_steps - np.arange(1, n_steps + 1)) * (1 / L) * 2
    printed = contraction**n_steps * 10 + d * S**2 / (n * eps) ** 2 * np.sum(a ** (1 / 3)) ** 3
    found = nesterov_bounds(n_steps, RunFacts(L, mu, 10.0, 2 * d * (S / (n * eps)) ** 2))[-1]
    assert found == pytest.approx(printed, rel=1e-12)


@pytest.mark.parametrize("method", STAGES)
@pytest.mark.parametrize("n_steps", [1, 10, 400])
def test_proposition_4_2(method, n_steps):
    """b_t = sum_j a_j^(1/3) / a_t^(1/3) S/(n eps), on all rows, to 1e-12."""
    logs = nesterov_influence(n_steps, 90.0, 1.0, stages=STAGES[method])[1]
    a = np.exp(logs - logs.max())
    printed = (a ** (1 / 3)).sum() / a ** (1 / 3) / 0.8
    np.testing.assert_allclose(noise_multipliers(logs, 0.8, "laplace"), printed, rtol=1e-12)


# ---------------------------------------------------------------- paths on quadratics

CURVATURES = np.array([0.02, 0.1, 0.5, 1.0])


def excess_of(path, n_steps, size=1.0):
    step = Step(size, 1.0)
    for _ in range(n_steps):
        path.move(CURVATURES * path.at(step), step)
    return float(CURVATURES @ path.result() ** 2 / 2)


def heavy_ball(start, momentum):
    return MomentumPath(start, lambda size: momentum, False)


def test_nesterov_converges_at_its_rate():
    L, mu = 1.0, 0.02
    rate = 1 - np.sqrt(mu / L)
    start = np.ones(4)
    initial = float(CURVATURES @ start**2 / 2 + mu / 2 * start @ start)
    for n_steps in (1, 10, 100, 300):
        path = MomentumPath(start, nesterov_momentum(mu), True)
        assert excess_of(path, n_steps) <= rate**n_steps * initial
    slow = [excess_of(MomentumPath(start, nesterov_momentum(mu), True), n) for n in (100, 200)]
    assert (slow[1] / slow[0]) ** (1 / 200) < np.sqrt(rate)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.7365, 0.9])
@pytest.mark.parametrize("step", [1.0, 0.3])
def test_heavy_ball_converges_at_its_rate(step, momentum):
    rate = heavy_ball_rate(step, momentum, 1.0, 0.02)
    late = [excess_of(heavy_ball(np.ones(4), momentum), n, step) for n in (400, 800)]
    # t rho^t, in squares
    assert late[1] <= late[0] * (2 * rate**400) ** 2 * 1.5 + 1e-300
    assert late[1] == pytest.approx(
        heavy_ball_excess(CURVATURES, step, momentum, np.zeros(800), np.ones(4)), rel=1e-6
    )


def test_rate_is_the_spectral_radius():
    for step, momentum in ((0.1, 0.3), (1.0, 0.9), (1.5, 0.2), (0.0689, 0.536)):
        radii = []
        for h in np.linspace(0.02, 1.0, 201):
            matrix = [[1 + momentum - step * h, -momentum], [1.0, 0.0]]
            radii.append(np.abs(np.linalg.eigvals(matrix)).max())
        rate = heavy_ball_rate(step, momentum, 1.0, 0.02)
        assert rate == pytest.approx(max(radii), abs=1e-7)


def test_noise_is_the_stationary_covariance():
    """m(alpha, beta), its half as excess, and a simulation of it."""
    step, momentum, std = 0.4, 0.6, 0.1
    m = heavy_ball_noise(step, momentum, CURVATURES, std)
    exact = heavy_ball_excess(CURVATURES, step, momentum, np.full(5000, std), np.zeros(4))
    assert exact <= m / 2  # L = 1
    alone = [heavy_ball_noise(step, momentum, [h], std) * h / 2 for h in CURVATURES]
    assert exact == pytest.approx(sum(alone), rel=1e-9)
    rng = np.random.default_rng(0)
    path, taken = heavy_ball(np.zeros((4, 4000)), momentum), Step(step, 1.0)
    for _ in range(400):
        noise = std * rng.standard_normal((4, 4000))
        path.move(CURVATURES[:, None] * path.at(taken) + noise, taken)
    assert (path.result() ** 2).mean(axis=1).sum() == pytest.approx(m, rel=0.06)
    with pytest.raises(ValueError, match="does not converge"):
        heavy_ball_noise(4.0, 0.5, CURVATURES)
