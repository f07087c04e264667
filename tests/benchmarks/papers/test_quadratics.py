"""Noise on a quadratic: the closed form, the bounds, and 1,000 runs each."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.papers.theory import quadratic_excess, quadratic_influence
from skdp.planning import noise_constant, number_of_steps, utility_bound
from skdp.steps import (
    CustomNoise,
    ExponentialNoise,
    least_noise_effect,
    noise_effect,
    noise_multipliers,
)


def simulate(curvatures, step, stds, start, runs, seed):
    """Excess at the end of noisy gradient descent, run by run; nothing but the recursion."""
    rng = np.random.default_rng(seed)
    points = np.tile(start, (runs, 1))
    for size, std in zip(np.broadcast_to(step, len(stds)), stds, strict=True):
        noise = std * rng.standard_normal(points.shape)
        points = points - size * (curvatures * points + noise)
    return points**2 @ curvatures / 2


def schedules_for(kappa):
    return {"uniform": CustomNoise(), "dynamic": ExponentialNoise(1 - 1 / kappa)}


@pytest.mark.parametrize("spectrum", ["spread", "flat but one", "one"])
@pytest.mark.parametrize("kappa", [3.0, 10.0, 40.0])
def test_measured_excess_is_the_exact_one(kappa, spectrum):
    """1,000 runs, steps of 1/M: the closed form for every spectrum, and dynamic <= uniform."""
    n_parameters, budget, n_rows, clip_norm = 40, 0.3927, 1000, 4.0
    curvatures = {
        "spread": np.geomspace(1.0, kappa, n_parameters),
        "flat but one": np.append(np.ones(n_parameters - 1), kappa),
        "one": np.full(n_parameters, 1.0),
    }[spectrum]
    start = np.ones(n_parameters)
    initial = curvatures @ start**2 / 2
    alpha = noise_constant(n_parameters, clip_norm, budget, kappa, n_rows, initial)
    n_steps = number_of_steps(alpha, kappa, "uniform")
    measured, exact = {}, {}
    for name, schedule in schedules_for(kappa).items():
        stds = clip_norm / n_rows * noise_multipliers(schedule.log_influence(n_steps), budget)
        runs = simulate(curvatures, 1 / kappa, stds, start, 1000, seed=1)
        exact[name] = quadratic_excess(curvatures, 1 / kappa, stds, start)
        measured[name] = runs.mean()
        assert measured[name] == pytest.approx(exact[name], abs=4 * runs.std() / math.sqrt(1000))
        assert exact[name] / initial <= utility_bound(n_steps, alpha, kappa, schedule)
    assert exact["dynamic"] <= exact["uniform"]
    assert measured["dynamic"] <= measured["uniform"]
    ratio = exact["dynamic"] / exact["uniform"]
    assert measured["dynamic"] / measured["uniform"] == pytest.approx(ratio, rel=0.1)


@pytest.mark.parametrize("kappa", [3.0, 40.0])
def test_where_the_bound_is_tight_its_ratio_is_measured(kappa):
    """1,000 runs: the order of the bounds, and the ratio of the excess within 10 per cent.

    The bound lets every direction shrink by gamma = 1 - 1/kappa in a step. On a quadratic whose
    curvatures are all mu, steps of eta with (1 - eta mu)**2 = gamma do just that, and noise enters
    with eta**2 mu/2: no constant is lost, and the bound is the excess.
    """
    n_parameters, budget, n_rows, clip_norm = 40, 0.3927, 1000, 4.0
    curvatures, start = np.ones(n_parameters), np.ones(n_parameters)
    step = 1 - math.sqrt(1 - 1 / kappa)
    initial = n_parameters / 2
    alpha = noise_constant(n_parameters, clip_norm, budget, 1 / step**2, n_rows, initial)
    n_steps = number_of_steps(alpha, kappa, "uniform")
    measured, bounds = {}, {}
    for name, schedule in schedules_for(kappa).items():
        stds = clip_norm / n_rows * noise_multipliers(schedule.log_influence(n_steps), budget)
        measured[name] = simulate(curvatures, step, stds, start, 1000, seed=1).mean()
        bounds[name] = utility_bound(n_steps, alpha, kappa, schedule)
        exact = quadratic_excess(curvatures, step, stds, start)
        assert bounds[name] == pytest.approx(exact / initial, rel=1e-9)
    assert measured["dynamic"] <= measured["uniform"]
    predicted = bounds["dynamic"] / bounds["uniform"]
    assert measured["dynamic"] / measured["uniform"] == pytest.approx(predicted, rel=0.1)


def test_why_the_ratio_differs_where_the_bound_is_loose():
    """At kappa 3, steps of 1/(2M) leave (1 - 1/(2 kappa))**2 = 0.694 in a step, not 0.667.

    The ratio is then that of a bound with the true rate; the difference of the rates,
    1/(4 kappa**2), is gone at kappa 10 and beyond.
    """
    budget, stds, bounds = 0.3927, {}, {}
    for kappa, far in ((3.0, True), (10.0, False), (40.0, False)):
        step, start = 1 / (2 * kappa), np.ones(40)
        alpha = noise_constant(40, 4.0, budget, 1 / step**2, 1000, 20.0)
        n_steps = number_of_steps(alpha, kappa, "uniform")
        rate = (1 - step) ** 2
        exact, bounds, true = {}, {}, {}
        for name, schedule in schedules_for(kappa).items():
            stds = 0.004 * noise_multipliers(schedule.log_influence(n_steps), budget)
            exact[name] = quadratic_excess(np.ones(40), step, stds, start)
            bounds[name] = utility_bound(n_steps, alpha, kappa, schedule)
            true[name] = utility_bound(n_steps, alpha, 1 / (1 - rate), schedule)
        ratios = [values["dynamic"] / values["uniform"] for values in (exact, bounds, true)]
        assert ratios[0] == pytest.approx(ratios[2], rel=1e-9)
        assert (ratios[0] / ratios[1] > 1.2) == far
        assert (abs(ratios[0] / ratios[1] - 1) < 0.1) != far


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


def test_quadratics_with_steps_that_change():
    curvatures, sizes = np.array([0.0, 0.5, 1.0, 2.0]), np.array([0.5, 0.4, 0.3, 0.2])
    influence = np.exp(quadratic_influence(curvatures, sizes))
    for t in range(4):
        stds = np.zeros(4)
        stds[t] = 1.0
        excess = quadratic_excess(curvatures, sizes, stds, np.zeros(4))
        assert excess == pytest.approx(influence[t], rel=1e-9)
    stds = np.array([0.3, 0.2, 0.1, 0.05])
    runs = simulate(curvatures, sizes, stds, np.ones(4), 4000, 5)
    exact = quadratic_excess(curvatures, sizes, stds, np.ones(4))
    assert runs.mean() == pytest.approx(exact, abs=4 * runs.std() / math.sqrt(4000))
    assert quadratic_influence([1.0], 0.5, 7).shape == (7,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([-1.0], 0.5, 3), "curvatures must be finite"),
        (([0.0], 0.5, 3), "not all 0"),
        (([1.0], 0.5), "one number or one for each"),
        (([1.0], [0.5, 0.5], 3), "one number or one for each"),
        (([1.0], [0.5, -0.5]), "step must be positive"),
    ],
)
def test_quadratics_that_are_none_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        quadratic_influence(*arguments)
