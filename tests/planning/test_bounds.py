"""Bounds and step counts against their printed forms, brute force, and 1,000 noisy runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdp.accounting import gaussian_delta
from skdp.planning import (
    exact_budget,
    improvement_ratio,
    largest_momentum_step,
    momentum_step_limit,
    noise_constant,
    number_of_steps,
    plot_utility_bounds,
    printed_budget,
    printed_number_of_steps,
    quadratic_excess,
    quadratic_influence,
    utility_bound,
)
from skdp.steps import (
    CustomNoise,
    ExponentialNoise,
    PolynomialStep,
    SquareRootDecayStep,
    least_noise_effect,
    noise_effect,
    noise_multipliers,
)


def test_the_papers_budget():
    """(4, 1e-8) is rho = 0.1963 and R = 0.3927 in zCDP; the exact figure is larger."""
    budget = printed_budget(4.0, 1e-8)
    assert round(budget, 4) == 0.3927
    assert budget / 2 == pytest.approx(0.1963, abs=1e-4)  # printed cut off, not rounded
    rho = budget / 2
    assert rho + 2 * math.sqrt(rho * math.log(1e8)) == pytest.approx(4.0, rel=1e-12)
    exact = exact_budget(4.0, 1e-8)
    assert gaussian_delta(math.sqrt(exact), 4.0) == pytest.approx(1e-8, rel=1e-6)
    assert exact > budget


def test_noise_constant_by_hand():
    assert noise_constant(3, 2.0, 0.5, 4.0, 10, 0.25) == pytest.approx(12 / (4 * 100 * 0.25))


@pytest.mark.parametrize("kappa", [1.0, 1.5, 10.0, 300.0])
@pytest.mark.parametrize("n_steps", [1, 2, 40])
def test_bounds_are_the_printed_ones(kappa, n_steps):
    alpha, gamma = 1e-3, 1 - 1 / kappa
    uniform = gamma**n_steps + alpha * kappa * (1 - gamma**n_steps) * n_steps
    assert utility_bound(n_steps, alpha, kappa, "uniform") == pytest.approx(uniform, rel=1e-9)
    roots = sum(gamma ** ((n_steps - t) / 2) for t in range(1, n_steps + 1))
    dynamic = gamma**n_steps + alpha * roots**2
    assert utility_bound(n_steps, alpha, kappa) == pytest.approx(dynamic, rel=1e-5)
    schedule = ExponentialNoise(max(gamma, 1e-12))
    assert utility_bound(n_steps, alpha, kappa, schedule) == pytest.approx(dynamic, rel=1e-5)


def test_bounds_with_momentum_are_the_printed_ones():
    alpha, kappa, beta, eta0, n_steps = 1e-3, 10.0, 0.6, 0.3, 12
    gamma = 1 - eta0 / kappa

    def printed(variances):
        u3 = sum(
            gamma ** (n_steps - t)
            * ((1 - beta) / (1 - beta**t)) ** 2
            * sum(beta ** (2 * (t - i)) * variances[i - 1] for i in range(1, t + 1))
            for t in range(1, n_steps + 1)
        )
        return gamma**n_steps + 2 * eta0 * alpha * u3

    options = {"momentum": beta, "eta0": eta0}
    uniform = utility_bound(n_steps, alpha, kappa, "uniform", **options)
    assert uniform == pytest.approx(printed(np.full(n_steps, n_steps)), rel=1e-9)
    dynamic = utility_bound(n_steps, alpha, kappa, **options)
    assert dynamic < uniform
    rng = np.random.default_rng(0)
    for _ in range(20):  # no division of the budget does better
        shares = rng.dirichlet(np.ones(n_steps))
        assert dynamic <= printed(1 / shares)


@pytest.mark.parametrize("kappa", [1.2, 5.0, 60.0])
@pytest.mark.parametrize("alpha", [1e-7, 1e-4, 0.1, 100.0])
@pytest.mark.parametrize("schedule", ["uniform", "dynamic", ExponentialNoise(0.9)], ids=str)
def test_the_number_of_steps_is_the_best(kappa, alpha, schedule):
    ours = number_of_steps(alpha, kappa, schedule)
    limit = 8 * printed_number_of_steps(alpha, kappa) + 40
    bounds = [utility_bound(n, alpha, kappa, schedule) for n in range(1, limit)]
    assert bounds[ours - 1] <= min(bounds) * (1 + 1e-9)


@pytest.mark.parametrize("schedule", ["uniform", "dynamic"])
def test_the_number_of_steps_with_momentum(schedule):
    options = {"momentum": 0.5, "eta0": largest_momentum_step(0.5, 5.0)}
    ours = number_of_steps(1e-3, 5.0, schedule, **options)
    bounds = [utility_bound(n, 1e-3, 5.0, schedule, **options) for n in range(1, 4 * ours)]
    assert bounds[ours - 1] <= min(bounds) * (1 + 1e-9)


def test_printed_numbers_of_steps_by_hand():
    assert printed_number_of_steps(1e-3, 10.0, "uniform") == math.ceil(10 * math.log(101))
    assert printed_number_of_steps(1e-3, 10.0) == math.ceil(20 * math.log(101))
    with_momentum = printed_number_of_steps(1e-3, 10.0, momentum=0.5, eta0=0.1)
    assert with_momentum == math.ceil(200 * math.log(11))
    assert printed_number_of_steps(1e9, 1.0) == 1


@pytest.mark.parametrize("beta", [0.0, 0.3, 0.9, 0.99])
@pytest.mark.parametrize("kappa", [1.0, 2.0, 100.0])
def test_the_largest_step_with_momentum_meets_its_limit(beta, kappa):
    eta0 = largest_momentum_step(beta, kappa)
    assert 0 < eta0 < kappa * (1 - beta) + 1e-12
    gamma = 1 - eta0 / kappa
    limit = momentum_step_limit(beta, gamma)
    assert eta0 <= limit * (1 + 1e-6)
    # by the quadratic that the printed form solves: 1 - eta/4 - beta gamma eta^2/(..)^2(..)^3 >= 0
    coefficient = beta * gamma / ((gamma - beta) ** 2 * (1 - beta) ** 3)
    assert 1 - limit / 4 - coefficient * limit**2 == pytest.approx(0, abs=1e-9)


def test_improvement_ratio_by_hand():
    sizes = PolynomialStep().sizes(1000)
    assert improvement_ratio(sizes) == pytest.approx(1000 * np.sum(sizes**2) / sizes.sum() ** 2)
    assert improvement_ratio(sizes) == improvement_ratio(PolynomialStep(), 1000)
    assert improvement_ratio(0.3, 10) == 1.0
    grows = [improvement_ratio(PolynomialStep(a=1.0), 10**k) for k in (2, 3, 4, 5)]
    assert (np.diff(grows) > 0.4).all()  # as log T
    # 0.1 - c sqrt(t) tends to T * int (1-s)^2 / (T int (1-s))^2 over s = sqrt(u): 1/6 / (1/3)^2
    assert improvement_ratio(SquareRootDecayStep(), 10**5) == pytest.approx(1.5, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 2.0), "alpha must be positive"),
        ((1.0, 0.5), "kappa must be at least 1"),
        ((1.0, math.inf), "kappa must be at least 1"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        utility_bound(3, *arguments)
    with pytest.raises(ValueError, match="eta0 in"):
        utility_bound(3, 1.0, 2.0, momentum=0.5, eta0=3.0)
    with pytest.raises(ValueError, match="they must differ"):
        momentum_step_limit(0.5, 0.5)
    with pytest.raises(ValueError, match="kappa be at least 1"):
        largest_momentum_step(0.5, 0.5)


# ------------------------------------------------------------------ a quadratic


def simulate(curvatures, step, stds, start, runs, seed):
    """Excess at the end of noisy gradient descent, run by run; nothing but the recursion."""
    rng = np.random.default_rng(seed)
    points = np.tile(start, (runs, 1))
    for std in stds:
        noise = std * rng.standard_normal(points.shape)
        points = points - step * (curvatures * points + noise)
    return points**2 @ curvatures / 2


@pytest.mark.parametrize("kappa", [10.0, 40.0, 160.0])
def test_dynamic_noise_wins_on_a_quadratic_as_the_bound_says(kappa):
    """1,000 runs: the order of the bounds, and the ratio of the excess within 10 per cent.

    Steps are ``eta0/(2M)`` with eta0 = 1, for which a quadratic contracts as the bound says,
    ``(1 - 1/(2 kappa))**2`` being ``1 - 1/kappa`` and a little; nearly all directions have the
    curvature mu, which is where the inequality of Polyak and Lojasiewicz is tight.
    """
    n_parameters, budget, n_rows, clip_norm = 40, 0.3927, 1000, 4.0
    curvatures = np.full(n_parameters, 1.0)
    curvatures[0] = kappa
    step = 1 / (2 * kappa)
    start = np.full(n_parameters, 1.0)
    start[0] = 0.0
    initial = curvatures @ start**2 / 2
    alpha = noise_constant(n_parameters, clip_norm, budget, kappa, n_rows, initial)
    # Noise enters a quadratic of curvature mu and steps of 1/(2M) with 1/(4 kappa) of the bound's.
    alpha /= 4 * kappa
    measured, bounds = {}, {}
    n_steps = number_of_steps(alpha, kappa, "uniform")
    for name, schedule in (
        ("uniform", CustomNoise()),
        ("dynamic", ExponentialNoise(1 - 1 / kappa)),
    ):
        multipliers = noise_multipliers(schedule.log_influence(n_steps), budget)
        stds = clip_norm * multipliers / n_rows
        runs = simulate(curvatures, step, stds, start, 1000, seed=1)
        measured[name] = runs.mean()
        bounds[name] = utility_bound(n_steps, alpha, kappa, schedule)
        exact = quadratic_excess(curvatures, step, stds, start)
        assert runs.mean() == pytest.approx(exact, abs=5 * runs.std() / math.sqrt(1000))
    assert measured["dynamic"] <= measured["uniform"]
    assert bounds["dynamic"] <= bounds["uniform"]
    predicted = bounds["dynamic"] / bounds["uniform"]
    assert measured["dynamic"] / measured["uniform"] == pytest.approx(predicted, rel=0.1)


@pytest.mark.parametrize("kappa", [10.0, 40.0])
@pytest.mark.parametrize("times", [1, 5])
def test_the_ratio_of_what_noise_leaves_is_the_bounds(kappa, times):
    """Started at the minimum, where only noise counts: no constant of the bound enters."""
    n_steps, gamma = round(times * kappa), 1 - 1 / kappa
    curvatures = np.ones(30)
    measured = []
    for schedule in (CustomNoise(), ExponentialNoise(gamma)):
        stds = noise_multipliers(schedule.log_influence(n_steps), 0.3927)
        measured.append(simulate(curvatures, 1 / (2 * kappa), stds, np.zeros(30), 1000, 3).mean())
    logs = ExponentialNoise(gamma).log_influence(n_steps)
    predicted = least_noise_effect(logs) / noise_effect(logs, np.ones(n_steps))
    assert measured[1] / measured[0] == pytest.approx(predicted, rel=0.1)


@pytest.mark.parametrize("kappa", [3.0, 40.0])
def test_measured_excess_keeps_below_the_bound(kappa):
    """Steps of 1/M, curvatures spread out: the printed bound holds, for both schedules."""
    curvatures = np.geomspace(1.0, kappa, 20)
    start = np.full(20, 1.0)
    initial = curvatures @ start**2 / 2
    alpha = noise_constant(20, 4.0, 0.3927, kappa, 1000, initial)
    for n_steps in (3, 30, 300):
        measured = {}
        for schedule in ("uniform", "dynamic"):
            rule = CustomNoise() if schedule == "uniform" else ExponentialNoise(1 - 1 / kappa)
            stds = 4.0 / 1000 * noise_multipliers(rule.log_influence(n_steps), 0.3927)
            measured[schedule] = simulate(curvatures, 1 / kappa, stds, start, 1000, 2).mean()
            assert measured[schedule] / initial <= utility_bound(n_steps, alpha, kappa, schedule)
        assert measured["dynamic"] <= measured["uniform"] * 1.02


def test_influence_on_a_quadratic_is_what_noise_does():
    curvatures, step, n_steps = np.array([0.5, 1.0, 3.0]), 0.4, 8
    influence = np.exp(quadratic_influence(curvatures, step, n_steps))
    for t in range(n_steps):
        stds = np.zeros(n_steps)
        stds[t] = 0.7
        excess = quadratic_excess(curvatures, step, stds, np.zeros(3))
        assert excess == pytest.approx(influence[t] * 0.49)
        # a step along one coordinate, by hand
        left = (1 - step * curvatures) ** (2 * (n_steps - 1 - t))
        assert excess == pytest.approx(0.49 * step**2 * (curvatures * left).sum() / 2)


def test_the_bounds_can_be_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    ax = plot_utility_bounds(1e-4, 8.0, momentum=0.5)
    assert len(ax.get_legend().get_texts()) == 4
    again = plot_utility_bounds(1e-4, 8.0, most_steps=50, ax=ax)
    assert again is ax
