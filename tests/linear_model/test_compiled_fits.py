"""Fits whose passes of many small steps run compiled: their charge, and when loops are loaded."""

from __future__ import annotations

import numpy as np
import pytest

import skdp
from skdp.oracle import compiled
from skdp.solvers import SVRG, ShuffledSGD
from two_ways import both_ways

pytestmark = pytest.mark.usefixtures("compiled_kernels")


NO_ADVICE = pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")


def fitted(solver, X, y):
    return skdp.DPLogisticRegression(
        solver=solver,
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
        delta=1e-4,
        classes=[False, True],
    ).fit(X, y)


@pytest.mark.parametrize(
    ("solver", "loop"),
    [
        (SVRG(batch_size=4, max_iter=60), "difference_loop"),
        (ShuffledSGD(max_iter=300), "single_steps"),
    ],
    ids=str,
)
@NO_ADVICE
def test_a_fit_is_charged_the_same(rng, worked, solver, loop):
    X = rng.standard_normal((300, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] > 0.1
    first, second = both_ways(fitted, solver, X, y)
    assert set(worked) == {loop}
    assert first.privacy_ == second.privacy_
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-6)


@pytest.mark.parametrize(
    ("solver", "wanted"),
    [
        (SVRG(batch_size=4, max_iter=60), True),
        (ShuffledSGD(max_iter=300), True),
        (ShuffledSGD(max_iter=299), False),
        ("gd", False),
    ],
    ids=str,
)
@NO_ADVICE
def test_loops_are_loaded_before_the_charge(rng, monkeypatch, solver, wanted):
    asked, prepare = [], compiled.prepare

    def noted(shape, has_long_passes=False):
        asked.append(has_long_passes)
        prepare(shape, has_long_passes)
        raise KeyboardInterrupt

    monkeypatch.setattr(compiled, "prepare", noted)
    budget = skdp.PrivacyBudget(epsilon=2.0, delta=1e-4)
    model = skdp.DPRidge(solver=solver, delta=1e-4, privacy=skdp.Privacy(budget=budget))
    with pytest.raises(KeyboardInterrupt):
        model.fit(rng.standard_normal((300, 4)), rng.standard_normal(300))
    assert asked == [wanted]
    assert budget.spent == 0


def test_public_facts_decide(monkeypatch):
    """Steps, expected rows and columns, with what numpy takes for a step."""
    with compiled.switched(True, least_numbers=1 << 17):
        assert compiled.is_long(100_000, 1.0, 20)
        assert compiled.is_long(200, 10_000, 50)
        assert not compiled.is_long(1000, 256, 50)
        assert not compiled.takes_steps(1000, 256, 50)
    with compiled.switched(False):
        assert not compiled.is_long(100_000, 10_000, 50)
        assert not compiled.takes_steps(100_000, 10_000, 50)


def test_where_steps_do_not_compile_a_warning_says_so_before_the_charge(monkeypatch):
    monkeypatch.setattr(compiled, "_failure", lambda over_steps=False: OSError("no compiler"))
    assert not compiled.takes_steps(100_000, 10_000, 50)
    with pytest.warns(RuntimeWarning, match="SKDP_COMPILED=never"):
        compiled.prepare((10, 1), has_long_passes=True)
