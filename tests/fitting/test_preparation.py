"""Plans that are kept from one fit to the next."""

from __future__ import annotations

import sys

import skdp
from skdp.steps import CustomNoise


def test_a_function_that_is_defined_anew_is_planned_anew(monkeypatch):
    def levels(power):
        def influence(t, n_steps):
            return 10.0 ** (power * t)

        influence.__module__, influence.__qualname__ = "__main__", "influence"
        monkeypatch.setattr(sys.modules["__main__"], "influence", influence, raising=False)
        model = skdp.DPRidge(
            solver="gd", max_iter=3, scaling="none", noise_schedule=CustomNoise(influence)
        )
        return {release.noise_multiplier for release in model.plan(500, 4).releases}

    assert len(levels(0)) == 1
    assert len(levels(1)) == 3
