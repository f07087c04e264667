"""The warning for batches so small that noise drowns them."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import skdp
from skdp.fitting import noise_warnings
from skdp.objective import Logistic
from skdp.solvers import SVRG, AdaptiveShuffledSGD, GradientDescent, ShuffledSGD


def warned(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(one.message) for one in caught if one.category is skdp.NoiseWarning]


def plan_of(n_rows, **parameters):
    solver = SVRG(**parameters)
    model = skdp.DPLogisticRegression(solver=solver, epsilon=0.2, delta=1e-3, scaling="none")
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


@pytest.mark.parametrize(
    "solver",
    [
        "gd",
        "svrg",
        "svrg++",
        GradientDescent(batch_size=0.1),
        GradientDescent(batch_size=500, sampling="shuffled"),
        "shuffled_sgd",
        "adaptive_shuffled_sgd",
        ShuffledSGD(batch_size=200),
        "residual_budget",
    ],
    ids=str,
)
def test_ordinary_plans_are_not(solver):
    model = skdp.DPLogisticRegression(solver=solver)
    assert not warned(lambda: model.plan(50_000, 20))


DROWNED = [
    (GradientDescent(max_iter=100, batch_size=10, sampling="shuffled"), 100, 10),
    (ShuffledSGD(batch_size=10), 100, 10),
    (ShuffledSGD(batch_size=1), 1000, 1),
    (SVRG(max_iter=600, batch_size=5, sampling="shuffled"), 600, 5),
    (AdaptiveShuffledSGD(max_iter=100), 100, 5),  # half of the rows are counted, not stepped on
]


@pytest.mark.parametrize(("solver", "steps", "rows"), DROWNED, ids=str)
def test_disjoint_batches_that_noise_drowns_are_warned_about(solver, steps, rows):
    model = skdp.DPRidge(solver=solver, scaling="none")
    plans = []
    (told,) = warned(lambda: plans.append(model.plan(1000, 10)))
    assert f"{steps} steps on batches of about {rows} of 1000 rows" in told
    kind = {"svrg": "gradient_difference", "shuffled_sgd": "shuffled_pass"}.get(
        solver.name, "gradient"
    )
    (noise,) = {one.noise_multiplier for one in plans[0].releases if one.kind == kind}
    length = float(re.search(r"mean gradient is ([\d.]+)", told)[1])
    assert length == pytest.approx(noise * 11**0.5 / rows, rel=0.02)
    sensible = int(re.search(r"of about (\d+) rows each", told)[1])
    smaller = {"batch_size": sensible} if hasattr(solver, "batch_size") else {"max_iter": 10}
    model.set_params(**{f"solver__{name}": value for name, value in smaller.items()})
    assert not warned(lambda: model.plan(1000, 10))


def test_it_comes_before_any_budget_is_spent(classification):
    X, y = classification
    budget = skdp.PrivacyBudget(epsilon=1.0, delta=1e-5)
    solver = GradientDescent(max_iter=300, batch_size=1)
    model = skdp.DPLogisticRegression(
        classes=[0, 1], solver=solver, privacy=skdp.Privacy(budget=budget), epsilon=0.5
    )
    many = np.tile(X, (20, 1)), np.tile(y, 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(skdp.NoiseWarning):
            model.fit(*many)
    assert budget.n_fits == 0


# ---------------------------------------------------------------- too few rows for anything


class UnknownLoss(skdp.DPRidge):
    """A regression with a loss of its own, of which no fit was measured."""

    def _loss(self, n_outputs):
        @dataclass(frozen=True)
        class UnmeasuredLoss(Logistic):
            name: ClassVar[str] = "unknown"
            targets: ClassVar[str] = "count"

        return UnmeasuredLoss()


def test_nothing_is_expected_of_a_loss_that_was_not_measured():
    assert skdp.DPRidge().plan(2000, 10).expectations
    assert UnknownLoss().plan(2000, 10).expectations == ()
    assert warned(lambda: skdp.DPRidge().plan(20, 30))
    assert not warned(lambda: UnknownLoss().plan(20, 30))


@pytest.mark.parametrize(
    ("shape", "parameters"),
    [
        ((2, 3), {}),
        ((20, 30), {}),
        ((400, 5), {"epsilon": 1e-6}),
        ((40, 5), {"delta": 0.0, "epsilon": 0.1, "scaling": "none"}),
        ((60, 5), {"privacy": skdp.Privacy(adjacency="replace_one"), "epsilon": 0.3}),
    ],
)
def test_a_fit_that_cannot_learn_says_so_and_how_many_rows_would_do(shape, parameters, rng):
    X = rng.standard_normal(shape)
    model = skdp.DPRidge(**parameters)
    advice = r"do not expect better predictions.*About (\d+) rows would suffice"
    with pytest.warns(skdp.NoiseWarning, match=advice) as fitted:
        model.fit(X, X[:, 0])
    with pytest.warns(skdp.NoiseWarning, match=advice) as planned:
        model.plan(*shape)
    told = {str(warning.message) for warning in (*fitted, *planned)}
    assert len(told) == 1  # from public facts: fit and plan say the same
    enough = int(re.search(advice, told.pop()).group(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", skdp.NoiseWarning)
        model.plan(enough, shape[1])


@pytest.mark.parametrize("signal", [0.0, 1.0])
def test_a_fit_that_gains_little_by_its_own_coefficients_says_so_afterwards(rng, signal):
    """By public facts alone there is no warning, and the released slopes decide."""
    X = rng.standard_normal((1000, 3))
    y = signal * X.sum(axis=1) + rng.standard_normal(len(X))
    model = skdp.DPRidge(epsilon=0.5, privacy=skdp.Privacy(noise=skdp.SeededNoise(0)))
    assert not warned(lambda: model.plan(*X.shape))
    said = warned(lambda: model.fit(X, y))
    assert ["the model gains little" in text for text in said] == [True] * (signal == 0)


def test_a_warning_about_a_small_gain_comes_after_everything_is_kept(rng):
    X = rng.standard_normal((1000, 3))
    model = skdp.DPRidge(epsilon=0.5, privacy=skdp.Privacy(noise=skdp.SeededNoise(0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", skdp.NoiseWarning)
        with pytest.raises(skdp.NoiseWarning, match="gains little"):
            model.fit(X, rng.standard_normal(1000))
    assert model.privacy_.epsilon <= 0.5
    assert model.n_features_in_ == 3


@pytest.mark.parametrize(
    ("make", "n_rows", "few", "least"),
    [
        (skdp.DPLinearRegression, 1000, 125.0, 0.0625),
        (lambda **given: skdp.DPLogisticRegression(classes=[0, 1], **given), 400, 20.0, 0.0225),
    ],
)
def test_gains_so_little_are_warned_of(rng, monkeypatch, make, n_rows, few, least):
    """By the tables that the limits were chosen on: `benchmarks utility --verdict` counts."""
    fits = []
    X = rng.standard_normal((n_rows, 3))
    with monkeypatch.context() as patch:
        patch.setattr(noise_warnings, "warn_about_gain", lambda *given: fits.append(given))
        make(epsilon=1.0, privacy=skdp.Privacy(noise=skdp.SeededNoise(0))).fit(X, X[:, 0] > 0)
    who, prepared, solution = fits[0]
    signal = noise_warnings.signal_to_noise(prepared.public) * prepared.public.n_parameters
    for share, gained in ((0.75, 0.75), (1.25, 0.75), (0.75, 1.25)):
        curvature = share * few / signal
        slopes = np.array([[1.0], [0.0], [0.0], [0.0]]) * math.sqrt(2 * gained * least / curvature)
        other = replace(solution, coef=slopes, mean_curvature=curvature)
        said = warned(lambda other=other: noise_warnings.warn_about_gain(who, prepared, other))
        assert bool(said) == (share < 1 and gained < 1)
