"""No row of a stream shows except through the releases: replay, with seeded bugs."""

from __future__ import annotations

import numpy as np
import pytest

from replays import differing
from skdp.accounting import Adjacency
from skdp.oracle.releases import shuffled_pass
from skdp.oracle.releases.mechanisms import GaussianNoise
from streams import SOLVERS, data, in_blocks, linear


class OnBlocks:
    """Fits as `fit` does, on blocks, for the replay harness."""

    def __init__(self, model, size):
        self._model, self._size = model, size

    def fit(self, X, y):
        self._model.fit_blocks(in_blocks(X, y, self._size), n_samples=len(y), n_features=X.shape[1])
        vars(self).update({k: v for k, v in vars(self._model).items() if k.endswith("_")})
        del self._model


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("name", SOLVERS)
def test_nothing_but_releases(replay, name, adjacency):
    X, y = data(60)
    for place, row, target in ((0, 1e5, -1e300), (31, 1e300, 1.0), (59, 5e-324, 1e12)):
        there, other = differing(X, y, adjacency, place, row, target)
        replay.check(
            lambda: OnBlocks(
                linear(SOLVERS[name], adjacency=str(adjacency), fit_intercept=False), 25
            ),
            there[:2],
            other[:2],
            adjacency,
        )


@pytest.mark.parametrize("name", ["single"])
@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_single_records_in_memory(replay, name, adjacency):
    X, y = data(60)
    for place, row, target in ((0, 1e5, -1e300), (31, 1e300, 1.0), (59, 5e-324, 1e12)):
        replay.check(
            lambda: linear(SOLVERS[name], adjacency=str(adjacency)),
            *differing(X, y, adjacency, place, row, target),
            adjacency,
        )


def test_replay_sees_less_noise_in_a_pass(replay, leak, monkeypatch):
    """The mutant draws a pass with half the noise that was charged."""
    original = GaussianNoise.scale_of_noise
    monkeypatch.setattr(GaussianNoise, "scale_of_noise", lambda *args: 0.5 * original(*args))
    X, y = data(60)
    with pytest.raises(leak, match="less noise"):
        replay.check(lambda: linear(SOLVERS["single"]), (X, y), (X, y), Adjacency.ZERO_OUT)


def test_replay_sees_a_step_that_is_not_hidden(replay, leak, monkeypatch):
    """The mutant adds what it is about to hide to the point as well."""
    original = shuffled_pass.daxpy

    def leaky(vector, onto, *rest):
        if len(rest) == 2 and rest[1] < 0 and onto.shape == (5,):
            onto += 1e-9 * np.clip(leaky.last, -1, 1)
        leaky.last = vector.copy()
        return original(vector, onto, *rest)

    leaky.last = np.zeros(5)
    monkeypatch.setattr(shuffled_pass, "daxpy", leaky)
    X, y = data(60)
    Z = X.copy()
    Z[3] = 0.5
    with pytest.raises(leak):
        replay.check(lambda: linear(SOLVERS["single"]), (X, y), (Z, y), Adjacency.REPLACE_ONE)
