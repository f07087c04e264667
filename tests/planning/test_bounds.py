"""Bounds and step counts against their printed forms and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.papers.theory import (
    printed_number_of_steps,
    quadratic_excess,
)
from skdp.planning import (
    largest_momentum_step,
    momentum_step_limit,
    noise_constant,
    number_of_steps,
    utility_bound,
)
from skdp.steps import ExponentialNoise


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


SCHEDULES = ["uniform", "dynamic", ExponentialNoise(0.9)]


@pytest.mark.parametrize(
    ("kappa", "alpha", "schedule"),
    [
        (kappa, alpha, SCHEDULES[(i + j) % 3])
        for i, kappa in enumerate([1.2, 5.0, 60.0])
        for j, alpha in enumerate([1e-7, 1e-4, 0.1, 100.0])
    ],
    ids=str,
)
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
    with pytest.raises(ValueError, match="step must lie in"):
        utility_bound(3, 1.0, 2.0, step=2.0)
    with pytest.raises(ValueError, match="step must lie in"):
        utility_bound(3, 1.0, 2.0, momentum=0.5, eta0=0.5, step=0.5)
    with pytest.raises(ValueError, match="batch_noise must not be negative"):
        number_of_steps(1.0, 2.0, batch_noise=-1.0)
    with pytest.raises(ValueError, match="they must differ"):
        momentum_step_limit(0.5, 0.5)
    with pytest.raises(ValueError, match="kappa be at least 1"):
        largest_momentum_step(0.5, 0.5)


@pytest.mark.parametrize("kappa", [1.0, 4.0, 50.0])
@pytest.mark.parametrize("n_steps", [1, 7, 300])
def test_batches_add_what_the_proof_adds(kappa, n_steps):
    """Thm 4.9: every step adds the variance of the batch; in long runs kappa times one step's."""
    variance, smoothness, gap, alpha = 0.3, 2.0, 0.25, 1e-3
    batch = variance / (2 * smoothness * gap)
    gamma = 1 - 1 / kappa
    extra = sum(gamma ** (n_steps - t) * variance for t in range(1, n_steps + 1))
    extra /= 2 * smoothness * gap
    for schedule in ("uniform", "dynamic"):
        full = utility_bound(n_steps, alpha, kappa, schedule)
        sampled = utility_bound(n_steps, alpha, kappa, schedule, batch_noise=batch)
        assert sampled - full == pytest.approx(extra, rel=1e-9)
    # as printed: alpha_g sigma_g**2 = D sigma_g**2 / (2 mu n**2 gap), with V = D sigma_g**2 / n**2
    printed = variance / (2 * (smoothness / kappa) * gap)
    assert extra <= printed * (1 + 1e-12)
    assert kappa * batch == pytest.approx(printed)
    if n_steps > 20 * kappa or kappa == 1:
        assert extra == pytest.approx(printed)


@pytest.mark.parametrize("pace", [0.2, 0.5, 1.5])
def test_shorter_and_longer_steps_have_their_bound(pace):
    """Steps of s/M on a quadratic: the bound holds, and it is exact where M and mu are one."""
    stds = np.linspace(0.2, 0.1, 15)
    for kappa in (1.0, 8.0):
        curvatures, start = np.geomspace(1.0, kappa, 5), np.ones(5)
        initial = curvatures.sum() / 2
        exact = quadratic_excess(curvatures, pace / kappa, stds, start) / initial
        budget = float(np.sum(stds**-2.0))
        alpha = noise_constant(5, 1.0, budget, kappa, 1, initial)
        bound = utility_bound(15, alpha, kappa, stds, step=pace)
        assert exact <= bound * (1 + 1e-9)
        if kappa == 1:
            assert exact == pytest.approx(bound, rel=1e-9)
