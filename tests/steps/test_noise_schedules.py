"""Noise schedules against their closed forms and a numeric optimiser."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import skdp
from benchmarks.papers.theory import noise_effect, noise_multipliers
from skdp.solvers.papers.kuru_2022 import nesterov_influence, stages_of_steps
from skdp.steps import (
    NOISE_SCHEDULES,
    influence_to_noise,
    momentum,
    powers,
    relative_noise,
    step_sizes,
)

COMPOSITIONS = ["gaussian", "laplace"]


def influence_of(logs):
    return np.exp(logs - logs[-1])


def least_effect(logs, composition):
    """``(sum q**(1/2))**2`` for Gaussian noise, ``(sum q**(1/3))**3`` for Laplace noise."""
    power = {"gaussian": 2, "laplace": 3}[composition]
    return np.sum(np.exp(np.array(logs) / power)) ** power


# ------------------------------------------------------------------ influence to noise


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("n_steps", [1, 2, 7, 60])
def test_the_exponential_schedule_is_theorem_4_5(gamma, n_steps):
    """The general formula of Lemma 4.4 and the closed form of Thm 4.5, to 1e-12."""
    budget = 0.3927
    t = np.arange(1, n_steps + 1)
    closed = (gamma ** (-n_steps / 2) - 1) / (1 - gamma**0.5) * gamma ** (t / 2) / budget
    ours = noise_multipliers(powers(gamma, n_steps), budget)
    np.testing.assert_allclose(ours**2, closed, rtol=1e-12)
    q = gamma ** (n_steps - t)
    general = np.array([np.sqrt(q / q_t).sum() for q_t in q]) / budget
    np.testing.assert_allclose(ours**2, general, rtol=1e-12)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20))
@settings(deadline=None)
def test_laplace_noise_is_proposition_4_2(weights):
    q = np.array(weights)
    ours = noise_multipliers(np.log(q), 2.0, "laplace")
    expected = q ** (-1 / 3) * np.sum(q ** (1 / 3)) / 2.0
    np.testing.assert_allclose(ours, expected, rtol=1e-10)
    assert np.sum(1 / ours) == pytest.approx(2.0)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20), st.sampled_from(COMPOSITIONS))
@settings(deadline=None)
def test_the_least_effect_is_what_the_best_noise_has(weights, composition):
    logs = np.log(weights)
    best = noise_effect(logs, influence_to_noise(logs, composition), composition)
    assert best == pytest.approx(least_effect(logs, composition), rel=1e-10)
    assert best <= noise_effect(logs, np.ones(len(logs)), composition) * (1 + 1e-10)


@pytest.mark.parametrize("composition", COMPOSITIONS)
@pytest.mark.parametrize("name", NOISE_SCHEDULES)
def test_no_noise_does_better_on_its_own_bound(name, composition):
    """Against a generic optimiser over the simplex of budget shares."""
    sizes = np.linspace(1.0, 0.5, 6)
    logs = NOISE_SCHEDULES[name](sizes)
    cost = {"gaussian": 2, "laplace": 1}[composition]

    def bound(z):
        shares = np.exp(z - z.max())
        return math.log(noise_effect(logs, shares ** (-1 / cost), composition))

    ours = math.log(noise_effect(logs, relative_noise(name, sizes, composition), composition))
    found = min(
        minimize(bound, start, method="BFGS", options={"gtol": 1e-9}).fun
        for start in np.random.default_rng(0).standard_normal((3, 6))
    )
    assert ours <= found + 1e-9
    assert found == pytest.approx(ours, abs=1e-6)


@pytest.mark.parametrize(
    "schedule",
    [
        *((name, {}) for name in NOISE_SCHEDULES),
        ("exponential", {"gamma": 0.01}),
        ("momentum", {"gamma": 0.1, "beta": 0.999}),
        ("momentum", {"gamma": 1.0, "beta": 0.0}),
    ],
    ids=str,
)
def test_long_runs_neither_overflow_nor_underflow(schedule):
    for n_steps in [1, 2, 1000, 100_000]:
        sizes = step_sizes("polynomial", n_steps)
        for composition in COMPOSITIONS:
            noise = relative_noise(schedule, sizes, composition)
            assert noise.shape == (n_steps,)
            assert ((noise > 0) & np.isfinite(noise)).all()
            cost = {"gaussian": 2, "laplace": 1}[composition]
            spent = noise**-cost
            assert np.isfinite(spent).all()
            # what the limit on noise keeps back for steps without influence is next to nothing
            logs = NOISE_SCHEDULES[schedule[0]](sizes, **schedule[1])
            logs = logs - logs.max()
            least = least_effect(logs, composition)
            assert noise_effect(logs, noise, composition) <= least * (1 + 1e-9)


# ------------------------------------------------------------------ the shapes


def test_momentum_influence_is_the_double_sum():
    gamma, beta, n_steps = 0.97, 0.8, 25
    expected = [
        sum(
            gamma ** (n_steps - s) * ((1 - beta) / (1 - beta**s)) ** 2 * beta ** (2 * (s - t))
            for s in range(t, n_steps + 1)
        )
        for t in range(1, n_steps + 1)
    ]
    logs = momentum(np.ones(n_steps), gamma, beta)
    np.testing.assert_allclose(np.exp(logs), expected, rtol=1e-12)


def test_step_matched_noise_is_adp_sgds():
    """alpha_t**2 = b_t for steps of 1/b_t."""
    steps = "polynomial", {"initial": 3.0, "a": 20.0, "c": 2.0}
    b = np.sqrt(20 + 2 * np.arange(1, 31))
    noise = relative_noise("step_matched", step_sizes(steps, 30))
    np.testing.assert_allclose(noise**2 / noise[0] ** 2, b / b[0])
    np.testing.assert_allclose(relative_noise("step_matched", np.full(4, 0.1)), 1.0)


def test_nesterov_influence_is_equation_29():
    kappa, c, n_steps = 50.0, 0.5, 20
    smooth, strong = 2.0, 2.0 / kappa
    a = c / smooth
    t = np.arange(1, n_steps + 1)
    expected = (1 - math.sqrt(strong * a)) ** (n_steps - t) * a * (1 + a * smooth)
    ours = influence_of(nesterov_influence(n_steps, kappa, 1.0, c)[1])
    np.testing.assert_allclose(ours, expected / expected[-1], rtol=1e-12)
    assert (np.diff(ours) > 0).all()


def test_multistage_influence_is_equation_34():
    kappa, c, n_steps = 4.0, 0.5, 60
    stage = stages_of_steps(n_steps, kappa, 5, 1.0)
    unit = math.ceil(2 * math.log(8))
    assert [int((stage == k).sum()) for k in (1, 2, 3)] == [5, 4 * unit, n_steps - 5 - 4 * unit]
    smooth, strong = 3.0, 3.0 / kappa
    size = np.where(stage == 1, 1 / smooth, 1 / (4.0**stage * smooth)) * c
    expected = [
        2.0 ** (stage[-1] - stage[t])
        * np.prod(1 - np.sqrt(strong * size[t + 1 :]))
        * size[t]
        * (1 + size[t] * smooth)
        for t in range(n_steps)
    ]
    ours = influence_of(nesterov_influence(n_steps, kappa, 1.0, c, (5, 1.0))[1])
    np.testing.assert_allclose(ours, np.array(expected) / expected[-1], rtol=1e-10)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (("momentum", {"gamma": 1.5}), r"gamma must lie in \(0, 1\]"),
        (("momentum", {"beta": 1.0}), r"beta must lie in \[0, 1\)"),
        ("linear", "relative noise or one of 'exponential', 'momentum'"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(schedule, message):
    with pytest.raises(ValueError, match=message):
        relative_noise(schedule, np.ones(3))


@pytest.mark.parametrize(("kappa", "first"), [(1e18, 5), (4.0, 10**15)])
def test_stages_longer_than_any_memory(kappa, first):
    """No more is laid out than the run is long."""
    stage = stages_of_steps(12, kappa, first, 1.0)
    assert len(stage) == 12
    assert stage[0] == 1
    assert stage[-1] == (1 if first > 12 else 2)


@pytest.mark.parametrize("solver", ["gd", "whitened", "residual_budget"])
def test_noise_that_cannot_be_drawn_is_refused_before_the_charge(solver, regression):
    model = skdp.DPRidge(solver=solver, max_iter=2, noise_schedule=[1e16, 1.0])
    with skdp.PrivacyBudget(1.0, 1e-6) as budget:
        with pytest.raises(ValueError, match=r"noise_schedule must not vary.*Nothing was released"):
            model.fit(*regression)
        assert budget.n_fits == 0
