"""A run without noise that diverges is an error, whatever the solver; one that converges is not."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning

import skdp
from skdp._fitting import user_warnings
from skdp._oracle import Oracle
from skdp.solvers import (
    SVRG,
    AcceleratedMirrorDescent,
    AdaptiveNoiseSGD,
    AdaptiveShuffledSGD,
    GradientDescent,
    HeavyBallDescent,
    MultistageNesterov,
    Nesterov,
    ResidualBudget,
    ShuffledSGD,
    SVRGPlusPlus,
)

pytestmark = pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning", "ignore::skdp.NoiseWarning")

TOO_LONG = {"max_iter": 60, "learning_rate": 40.0}
TOO_SMOOTH = {"max_iter": 60, "curvature": 0.1}
RUNAWAYS = [
    GradientDescent(**TOO_LONG),
    GradientDescent(**TOO_LONG, batch_size=10),
    AdaptiveNoiseSGD(**TOO_LONG),
    AdaptiveNoiseSGD(**TOO_LONG, batch_size=10),
    ResidualBudget(**TOO_LONG),
    SVRG(**TOO_LONG),
    SVRG(**TOO_LONG, inner_steps=60),  # a single epoch
    SVRG(max_iter=60, learning_rate=1.5, inner_steps=4),
    SVRGPlusPlus(**TOO_LONG),
    Nesterov(**TOO_SMOOTH),
    HeavyBallDescent(**TOO_SMOOTH, momentum=0.5),
    MultistageNesterov(**TOO_SMOOTH),
    AcceleratedMirrorDescent(max_iter=60, curvature=1e-3),
    AdaptiveShuffledSGD(**TOO_LONG),
]


def ridge(solver, **parameters):
    constraint = "l1_ball" if isinstance(solver, AcceleratedMirrorDescent) else None
    parameters = {"epsilon": math.inf, "constraint": constraint, **parameters}
    return skdp.DPRidge(
        alpha=1.0,
        solver=solver,
        scaling="none",
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
        **parameters,
    )


@pytest.mark.parametrize("solver", RUNAWAYS, ids=str)
def test_a_runaway_is_told(solver, regression):
    X, y = regression
    with pytest.raises(FloatingPointError, match=r"diverged.*Lower learning_rate"):
        ridge(solver).fit(X, y + 5)


@pytest.mark.parametrize("solver", RUNAWAYS, ids=str)
def test_where_there_is_noise_no_length_is_kept(solver, regression, monkeypatch):
    """The check reads nothing that was not released, and with noise it reads nothing at all."""
    seen = []
    note = Oracle.note_direction
    monkeypatch.setattr(
        Oracle,
        "note_direction",
        lambda self, found: (note(self, found), seen.append(self.gradient_lengths)),
    )
    model = ridge(solver, epsilon=5.0).fit(*regression)
    assert np.isfinite(model.coef_).all()
    assert seen
    assert not any(seen)


@pytest.mark.parametrize("solver", [*(type(one)() for one in RUNAWAYS), ShuffledSGD()], ids=str)
@pytest.mark.parametrize("target", ["null", "far"])
def test_defaults_do_not_run_away(solver, target, regression):
    """The curvature is that of the rows, whatever the targets."""
    X, y = regression
    y = {"null": np.zeros(len(y)), "far": y + 1e6}[target]
    assert np.isfinite(ridge(solver).fit(X, y).coef_).all()


@pytest.mark.parametrize("batch_size", [1, 10])
def test_steps_on_few_rows_are_as_short_as_these_need(batch_size):
    X, y = load_diabetes(return_X_y=True)
    solver = GradientDescent(batch_size=batch_size)
    fixed = skdp.Privacy(noise=skdp.SeededNoise(0))  # of the batches: one draw in 200 runs away
    model = skdp.DPRidge(epsilon=math.inf, solver=solver, privacy=fixed)
    assert model.fit(X, y).score(X, y) > 0.4


# ---------------------------------------------------------------- ends before the minimum


def convergence_warnings(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(one.message) for one in caught if one.category is ConvergenceWarning]


@pytest.mark.parametrize(
    ("model", "solver", "sizes", "shift"),
    [
        (skdp.DPLinearRegression, "whitened", [1e5, 1.0, 1.0], 1.6e9),  # seconds since 1970
        (skdp.DPHuberRegressor, "gd", [1e-3, 1.0, 1.0], 0.0),  # a column in large units
    ],
)
def test_columns_that_keep_a_solver_from_the_minimum_are_warned_about(
    model, solver, sizes, shift, rng
):
    X = rng.standard_normal((200, 3))
    y = X @ [1.0, -1.0, 0.5]
    raw = X * sizes + [shift, 0.0, 0.0]
    exact = {"epsilon": math.inf, "solver": solver}
    fit = model(**exact, scaling="none")
    (told,) = convergence_warnings(lambda: fit.fit(raw, y))
    assert f"{model.__name__}: the solver stopped before" in told
    assert fit.score(raw, y) < 0.9
    for sound in (
        lambda: model(**exact).fit(raw, y),
        lambda: model(**exact, scaling="none").fit(X, y),
        lambda: model(**exact, scaling="none").fit(np.hstack([X, X]), y),  # collinear, no harm
    ):
        assert convergence_warnings(sound) == []


def test_where_there_is_noise_no_gradient_decides_of_a_warning(regression, monkeypatch):
    kept = []
    monkeypatch.setattr(
        user_warnings, "warn_unless_converged", lambda who, found, public: kept.append(found.slopes)
    )
    for solver in ("gd", "whitened"):
        ridge(solver, epsilon=5.0).fit(*regression)
    assert kept == [(), ()]
    ridge("gd").fit(*regression)
    assert kept[-1]
