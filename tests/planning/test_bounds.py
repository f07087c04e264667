"""Bounds and step counts against their printed forms, brute force, and 1,000 noisy runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdp.accounting import gaussian_delta
from skdp.planning import (
    batch_constant,
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
    relaxed_number_of_steps,
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


# ------------------------------------------------------------------ a quadratic


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


@pytest.mark.parametrize("kappa", [3.0, 10.0, 40.0, 160.0])
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
