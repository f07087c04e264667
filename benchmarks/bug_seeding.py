"""Register seeded bugs, each with a model that shows it; seed some around the path of all fits."""

from __future__ import annotations

import dataclasses

import numpy as np

import skdp
from benchmarks.releases import PROOFS
from skdp._fitting.rows import with_source
from skdp.linear_model import base

STEP = {"solver": "gd", "scaling": "none"}


def one_step(adjacency="zero_out", **parameters):
    return skdp.DPLinearRegression(
        max_iter=1,
        epsilon=4.0,
        delta=1e-5,
        privacy=skdp.Privacy(adjacency=adjacency),
        **{**STEP, **parameters},
    )


def three_steps(adjacency):
    return skdp.DPLogisticRegression(
        max_iter=3,
        classes=[0, 1],
        clip_norm=0.3,
        privacy=skdp.Privacy(adjacency=adjacency),
        **STEP,
    )


def batches(adjacency):
    solver = skdp.solvers.GradientDescent(max_iter=6, batch_size=20)
    return skdp.DPRidge(solver=solver, scaling="none", privacy=skdp.Privacy(adjacency=adjacency))


BUGS = {}
# Whose record each of the 60 made-up rows is, for bugs that only groups show.
GROUPS = {"multipliers_left_out": np.arange(60) // 3}


def bug(what, estimator=three_steps):
    """Register a function that seeds a bug with pytest's monkeypatch."""

    def register(function):
        BUGS[function.__name__] = (what, function, estimator)
        return function

    return register


def around_fit(patch, before=None, after=None):
    """Seed a bug around the one path of all fits."""
    original = base.DPLinearModel._fit

    def fit(self, given, *start):
        X, y = given.X, given.y
        rows = np.clip(np.asarray(X.toarray() if hasattr(X, "toarray") else X), -1e9, 1e9)
        if before is not None:
            changed = before(self, X, rows, y)
            if changed is not None:
                other = with_source(self, dataclasses.replace(given, X=changed))
                given = dataclasses.replace(given, make_source=other.make_source)
        original(self, given, *start)
        if after is not None:
            after(self, rows, y)
        return self

    patch.setattr(base.DPLinearModel, "_fit", fit)


def in_fit(what, before=None, after=None, estimator=three_steps):
    """Register a bug that is seeded around the one path of all fits."""

    def seed(patch):
        around_fit(patch, before, after)

    BUGS[what.replace(" ", "_")] = (what, seed, estimator)


for kind, proof in PROOFS.items():
    BUGS[f"half_{kind.__name__}"] = (
        f"{kind.__name__}: {proof.mutant}",
        proof.halve,
        proof.estimator,
    )
