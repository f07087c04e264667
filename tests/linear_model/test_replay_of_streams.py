"""No row of a stream shows except through the releases: replay."""

from __future__ import annotations

import pytest

from replays import differing
from skdp.accounting import Adjacency
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
