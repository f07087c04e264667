"""Problems, rows and scripted noise for runs of which only the last iterate is shown."""

from __future__ import annotations

import dataclasses

import numpy as np

from skdp.accounting import Adjacency
from skdp.objective import (
    L1,
    L2,
    Box,
    ElasticNet,
    Huber,
    L1Ball,
    L2Ball,
    Logistic,
    NoPenalty,
    Problem,
    Simplex,
    SquaredError,
)
from skdp.oracle import GaussianNoise, Public, noise_source
from skdp.oracle.releases.base import PublicContext
from skdp.oracle.sources.memory import MemorySource

N_ROWS = 40
ROW_BOUND = 2.0
CLIP = 0.7


def public_for(n_features=3, **facts):
    known = {
        "n_rows": N_ROWS,
        "n_outputs": 1,
        "adjacency": Adjacency.ZERO_OUT,
        "epsilon": 1.0,
        "delta": 1e-6,
        "has_intercept": False,
        "row_bound": ROW_BOUND,
        **facts,
    }
    return Public(n_features=n_features, **known)


RIDGE, SQUARED = L2(0.5), SquaredError()


def problem_for(penalty=RIDGE, loss=SQUARED, **parts):
    return Problem(loss, penalty, fit_intercept=False, **parts)


def context_for(problem=None, scale=5.0, n_features=3, **facts):
    return PublicContext(public_for(n_features, **facts), problem or problem_for(), scale)


def rows_for(X, y, dtype=np.float64):
    return MemorySource.of(X.astype(dtype), y.reshape(-1, 1).astype(dtype), None, ROW_BOUND, 0.0)


def data_for(rng):
    X = rng.standard_normal((N_ROWS, 3))
    return X, X @ np.array([1.0, -1.0, 0.5]) + 0.1 * rng.standard_normal(N_ROWS)


class Script:
    """Puts noise of one's own in the place of the mechanism's, and keeps what is hidden."""

    def __init__(self, monkeypatch, noise):
        self.hidden = []

        def add_noise(mechanism, statistic, contribution, scale, noise_source):
            self.hidden.append(statistic + noise(len(self.hidden), statistic.shape))
            return self.hidden[-1]

        monkeypatch.setattr(GaussianNoise, "add_noise", add_noise)


def run(monkeypatch, release, rows, context, noise):
    with monkeypatch.context() as patch:
        script = Script(patch, noise)
        point = release.answer(rows, context, noise_source(0))
    return point, np.array(script.hidden)


def silence(step, shape):
    return np.zeros(shape)


def image(monkeypatch, release, rows, context, first):
    """What is hidden in the second step, before its noise, where ``first`` was in the first."""
    _, (there,) = run(monkeypatch, dataclasses.replace(release, n_steps=1), rows, context, silence)

    def noise(step, shape):
        return first - there if step == 0 else np.zeros(shape)

    return run(monkeypatch, dataclasses.replace(release, n_steps=2), rows, context, noise)[1][1]


PROBLEMS = {
    "ridge": problem_for(),
    "logistic": problem_for(loss=Logistic()),
    "huber": problem_for(loss=Huber(0.2)),
    "elastic net": problem_for(ElasticNet(0.8, 0.4)),
    "ball": problem_for(constraint=L2Ball(0.3)),
    "lasso in a box": problem_for(L1(0.1), constraint=Box(-0.2, 0.3)),
    "cross-polytope": problem_for(NoPenalty(), constraint=L1Ball(0.4)),
    "simplex": problem_for(NoPenalty(), constraint=Simplex(0.5)),
}
