"""A run without noise that diverges is an error, whatever the solver; one that converges is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

import skdp
from skdp.oracle import Oracle
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
TOO_SMOOTH = {"max_iter": 60, "smoothness": 0.1}
RUNAWAYS = [
    GradientDescent(**TOO_LONG),
    GradientDescent(**TOO_LONG, batch_size=10),
    GradientDescent(**TOO_LONG, clip_norm="adaptive"),
    AdaptiveNoiseSGD(**TOO_LONG),
    AdaptiveNoiseSGD(**TOO_LONG, batch_size=10),
    ResidualBudget(**TOO_LONG),
    SVRG(**TOO_LONG),
    SVRG(**TOO_LONG, inner_steps=60),  # a single epoch
    SVRG(max_iter=60, learning_rate=1.5, inner_steps=4, snapshot_noise="fresh"),
    SVRGPlusPlus(**TOO_LONG),
    Nesterov(**TOO_SMOOTH),
    HeavyBallDescent(**TOO_SMOOTH, momentum=0.5),
    MultistageNesterov(**TOO_SMOOTH),
    AcceleratedMirrorDescent(max_iter=60, smoothness=1e-3),
    AdaptiveShuffledSGD(**TOO_LONG),
]


def ridge(solver, **parameters):
    constraint = "l2_ball" if isinstance(solver, AcceleratedMirrorDescent) else None
    parameters = {"epsilon": math.inf, "constraint": constraint, **parameters}
    return skdp.DPRidge(
        alpha=1.0,
        solver=solver,
        scaling="none",
        noise_source="seeded",
        random_state=0,
        **parameters,
    )


@pytest.mark.parametrize("solver", RUNAWAYS, ids=str)
def test_a_runaway_is_told(solver, regression):
    X, y = regression
    with pytest.raises(FloatingPointError, match=r"ran away.*Lower learning_rate"):
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
@pytest.mark.parametrize("target", ["given", "null", "unrelated", "far"])
def test_defaults_do_not_run_away(solver, target, regression, rng):
    X, y = regression
    y = {
        "given": y,
        "null": np.zeros(len(y)),
        "unrelated": rng.standard_normal(len(y)),
        "far": y + 1e6,
    }[target]
    assert np.isfinite(ridge(solver).fit(X, y).coef_).all()


@pytest.mark.parametrize("radius", [1.0, 100.0, 1e20])
def test_gradients_may_grow_from_a_start_outside_of_the_set(radius, regression):
    """At zero gradients are short, and on a large simplex they cannot be."""
    model = ridge("gd", constraint="simplex", radius=radius).fit(*regression)
    assert model.coef_.sum() == pytest.approx(radius)
