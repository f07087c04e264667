"""Bounds and step counts against their printed forms and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.theory import (
    batch_constant,
    exact_budget,
    improvement_ratio,
    plot_utility_bounds,
    printed_budget,
    printed_number_of_steps,
    quadratic_excess,
    relaxed_number_of_steps,
)
from skdp.accounting import gaussian_delta
from skdp.planning import (
    largest_momentum_step,
    momentum_step_limit,
    noise_constant,
    number_of_steps,
    utility_bound,
)
from skdp.steps import ExponentialNoise, PolynomialStep, SquareRootDecayStep


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
    batch = batch_constant(variance, smoothness, gap)
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


def test_batches_add_to_momentum_what_its_proof_adds():
    beta, eta0, kappa, n_steps, alpha, batch = 0.6, 0.3, 10.0, 12, 1e-3, 0.02
    gamma = 1 - eta0 / kappa
    options = {"momentum": beta, "eta0": eta0}
    extra = utility_bound(n_steps, alpha, kappa, batch_noise=batch, **options)
    extra -= utility_bound(n_steps, alpha, kappa, **options)
    u3 = sum(
        gamma ** (n_steps - t)
        * ((1 - beta) / (1 - beta**t)) ** 2
        * sum(beta ** (2 * (t - i)) for i in range(1, t + 1))
        for t in range(1, n_steps + 1)
    )
    assert extra == pytest.approx(2 * eta0 * batch * u3, rel=1e-9)
    # Thm 4.10's proof leaves a factor out: the sum of gamma**(T-t) is kappa/eta0, not kappa
    assert extra <= 2 * kappa * batch


def test_stochastic_descent_ends_below_its_bound():
    """Batches of a least-squares problem drawn for good, 1,000 runs; alpha of the noise by hand."""
    rng = np.random.default_rng(0)
    rows, targets = rng.standard_normal((60, 3)), rng.standard_normal(60)
    hessian = rows.T @ rows / 60
    best = np.linalg.solve(hessian, rows.T @ targets / 60)
    values = np.linalg.eigvalsh(hessian)
    smoothness, kappa, std, n_steps, size = values[-1], values[-1] / values[0], 0.05, 40, 10
    gap = best @ hessian @ best / 2
    points, spread = np.zeros((1000, 3)), 0.0
    for _ in range(n_steps):
        drawn = rng.integers(60, size=(1000, size))
        errors = np.einsum("rbd,rd->rb", rows[drawn], points) - targets[drawn]
        gradients = np.einsum("rbd,rb->rd", rows[drawn], errors) / size
        full = (points - best) @ hessian
        spread = max(spread, np.mean(np.sum((gradients - full) ** 2, axis=1)))
        noisy = gradients + std * rng.standard_normal(points.shape)
        points = points - noisy / smoothness
    moved = points - best
    measured = np.mean(np.sum(moved @ hessian * moved, axis=1)) / 2 / gap
    # sigma_t**2 = T/R, so alpha R sigma**2 = alpha T is one step's share of the noise
    alpha = 3 * std**2 / (2 * smoothness * gap) / n_steps
    batch = batch_constant(spread, smoothness, gap)
    bound = utility_bound(n_steps, alpha, kappa, "uniform", batch_noise=batch)
    assert utility_bound(n_steps, alpha, kappa, "uniform") < measured <= bound


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


@given(st.floats(1.0, 1e3), st.floats(1e-10, 10.0))
@settings(deadline=None)
def test_the_relaxed_number_of_steps(kappa, alpha):
    """Wang, Ye, Xu 2017, eq. (81), by brute force; never more than for the bound itself."""
    ours = relaxed_number_of_steps(alpha, kappa)
    gamma = 1 - 1 / kappa
    steps = np.arange(1, 4 * ours + 10)
    bounds = gamma**steps + alpha * steps**2
    assert bounds[ours - 1] <= bounds.min() * (1 + 1e-9)
    assert ours <= number_of_steps(alpha, kappa, "uniform")


def test_the_relaxed_number_grows_as_the_printed_logarithm():
    """T = O(log(n**2 epsilon**2 / ...)): ten times the rows add the same number of steps."""
    counts = [relaxed_number_of_steps(10.0**-k, 10.0) for k in (8, 10, 12, 14)]
    steps = np.diff(counts)
    assert (np.abs(steps - 10 * math.log(100)) < 0.15 * 10 * math.log(100)).all()
    assert (np.diff(steps) >= 0).all()


def test_the_bounds_can_be_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    ax = plot_utility_bounds(1e-4, 8.0, momentum=0.5)
    assert len(ax.get_legend().get_texts()) == 4
    again = plot_utility_bounds(1e-4, 8.0, most_steps=50, ax=ax)
    assert again is ax
    sampled = plot_utility_bounds(1e-4, 8.0, batch_noise=0.01)
    assert "batches 0.01" in sampled.get_title()
    best = [min(line.get_ydata()) for line in sampled.lines]
    assert min(best) > min(min(line.get_ydata()) for line in ax.lines)
