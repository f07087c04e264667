"""The warning for batches so small that noise drowns them."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import skdp
from skdp.solvers import SVRG, GradientDescent


def warned(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(one.message) for one in caught if one.category is skdp.NoiseWarning]


def plan_of(n_rows, **parameters):
    solver = SVRG(**parameters)
    model = skdp.DPLogisticRegression(solver=solver, epsilon=0.2, delta=1e-3)
    return warned(lambda: model.plan(n_rows, 54))


@pytest.mark.parametrize(
    ("n_rows", "inner_steps"), [(4000, 100), pytest.param(200_000, 5000, marks=pytest.mark.slow)]
)
def test_the_run_of_the_paper_is_warned_about(n_rows, inner_steps):
    """Batches of 1 in 15 epochs, of 5000 steps in the paper, with n = 200,000; and a small one."""
    steps = 15 * inner_steps
    (told,) = plan_of(n_rows, max_iter=steps, inner_steps=inner_steps, batch_size=1)
    assert f"{steps} steps on batches of about 1 of {n_rows} rows" in told
    assert "no budget has been spent" in told
    noise, length = (
        float(word) for word in re.findall(r"(?:noise of|mean gradient is) ([\d.]+)", told)
    )
    assert length == pytest.approx(noise * 55**0.5, rel=0.02)
    sensible = int(re.search(r"batch_size of about (\d+)", told)[1])
    assert 10 < sensible < 1000
    # The batch it names is not warned about.
    assert not plan_of(n_rows, max_iter=steps, inner_steps=inner_steps, batch_size=sensible)


def test_sensible_batches_tell_most_of_what_the_budget_buys():
    """The arithmetic of the advice, against the calibrated noise."""
    solver = GradientDescent(max_iter=300, batch_size=1)
    model = skdp.DPLogisticRegression(solver=solver, epsilon=1.0, scaling="none")
    (told,) = warned(lambda: model.plan(20_000, 10))
    sensible = int(re.search(r"batch_size of about (\d+)", told)[1])
    noises = {}
    for size in (sensible, 10_000):
        statement = model.set_params(solver__batch_size=size).plan(20_000, 10)
        (record,) = statement.releases
        noises[size] = record.noise_multiplier / size
    assert 1 < noises[sensible] / noises[10_000] < 2


@pytest.mark.parametrize(
    "solver",
    [
        "gd",
        "svrg",
        "svrg++",
        GradientDescent(batch_size=0.1),
        GradientDescent(batch_size=10, sampling="shuffled"),
        "residual_budget",
    ],
    ids=str,
)
def test_ordinary_plans_are_not(solver):
    model = skdp.DPLogisticRegression(solver=solver)
    assert not warned(lambda: model.plan(50_000, 20))


def test_it_comes_before_any_budget_is_spent(classification):
    X, y = classification
    budget = skdp.PrivacyBudget(epsilon=1.0, delta=1e-5)
    solver = GradientDescent(max_iter=300, batch_size=1)
    model = skdp.DPLogisticRegression(solver=solver, budget=budget, random_state=0, epsilon=0.5)
    many = np.tile(X, (20, 1)), np.tile(y, 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(skdp.NoiseWarning):
            model.fit(*many)
    assert budget.n_fits == 0


def test_without_noise_there_is_nothing_to_warn_about(classification):
    solver = GradientDescent(max_iter=30, batch_size=1)
    model = skdp.DPLogisticRegression(solver=solver, epsilon=np.inf)
    assert not warned(lambda: model.fit(*classification))
