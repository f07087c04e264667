"""Streams: nothing shows except through releases, and a row of raw columns pays for one part."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import skdp
from replays import differing, seeded
from skdp._oracle import Public
from skdp._oracle.sources.stream import StreamSource
from skdp._stages.scaling.shares import records_for_scaling
from skdp.accounting import Adjacency, OnBlock, walk
from skdp.audit.recording import record
from streams import SOLVERS, data, in_blocks, linear

SIZES = np.array([1000.0, 1.0, 0.01])


def raw(n=6000, seed=0):
    """Rows whose columns have far from unit size, and their targets."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 3))
    return 3 * SIZES + SIZES * Z, 500 + 40 * (Z @ [1.0, -0.5, 0.25]) + 10 * rng.standard_normal(n)


class OnBlocks:
    """Fits as `fit` does, on blocks, for the replay harness."""

    def __init__(self, adjacency="zero_out", model=None, size=97):
        terms = seeded(adjacency=str(adjacency))
        self._model = skdp.DPRidge(privacy=terms, delta=1e-6) if model is None else model
        self._size = size

    def fit(self, X, y, sample_weight=None):
        blocks, shape = in_blocks(X, y, self._size), {"n_samples": len(X), "n_features": X.shape[1]}
        if sample_weight is not None:
            of_blocks = np.split(sample_weight, range(self._size, len(X), self._size))
            blocks = ((*block, w) for block, w in zip(blocks, of_blocks, strict=True))
        self._model.fit_blocks(blocks, weighted=sample_weight is not None, **shape)
        vars(self).update({k: v for k, v in vars(self._model).items() if k.endswith("_")})
        del self._model


def parts_that_move(place):
    """Blocks whose statistics, without noise, depend on the record at a place."""
    X, y = raw(2000)
    other = X.copy()
    other[place] *= 5
    first = record(OnBlocks(), {"X": X, "y": y})
    second = record(OnBlocks(), {"X": other, "y": y}, first)
    moved = set()
    for one, two in zip(first.sources[0].charged, second.sources[0].charged, strict=True):
        for a, b in zip(one.answers, two.answers, strict=True):
            if not np.array_equal(a.statistic, b.statistic):
                moved.add(next(e.block for e, _ in walk(one.event) if isinstance(e, OnBlock)))
    return moved


def test_a_row_is_in_one_part(monkeypatch):
    first = records_for_scaling(_public(2000), True, True)
    assert 0 < first < 2000
    for place, block in ((0, 0), (first - 1, 0), (first, 1), (1999, 1)):
        assert parts_that_move(place) <= {block}
    original = StreamSource.take_first

    def keeping(self, count):  # the mutant: the first rows go on to the solver, too
        held = original(self, count)
        records = held.records
        self._left = records.X, records.targets, records.weights, None
        self.n_rows += count
        return held

    monkeypatch.setattr(StreamSource, "take_first", keeping)
    assert any(len(parts_that_move(place)) > 1 for place in range(0, first, first // 8))


def _public(n_rows, epsilon=1.0, n_features=3):
    provides = frozenset({"rows in an order that does not depend on them, cut in blocks"})
    terms = Adjacency.ZERO_OUT, epsilon, 1e-6
    return Public(n_rows, n_features, 1, *terms, provides=provides)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_nothing_but_releases(replay, adjacency):
    X, y = raw(400)
    first = records_for_scaling(_public(400), True, True)
    for place, row, target in ((0, 1e5, -1e300), (first - 1, 1e300, 1.0), (first, 5e-324, 1e12)):
        there, other = differing(X, y, adjacency, place, row, target)
        replay.check(lambda: OnBlocks(adjacency), there, other, adjacency)


def test_missing_rows_are_null_records():
    """Whether they are missing in the first part or in the second."""
    X, y = raw(400)
    for n in (60, 300):
        weights = (np.arange(400) < n).astype(float)
        short, null = (
            skdp.DPRidge(privacy=seeded()).fit_blocks(
                [block], n_samples=400, n_features=3, weighted=True
            )
            for block in ((X[:n], y[:n], weights[:n]), (X * weights[:, None], y, weights))
        )
        np.testing.assert_array_equal(short.coef_, null.coef_)
        assert str(short.privacy_) == str(null.privacy_)


EXTREME = ((0, 1e5, -1e300), (31, 1e300, 1.0), (59, 5e-324, 1e12))


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("name", SOLVERS)
def test_nothing_but_the_releases_of_a_solver(replay, name, adjacency):
    X, y = data(60)
    model = linear(SOLVERS[name], adjacency=str(adjacency), fit_intercept=False)
    for change in EXTREME:
        there, other = differing(X, y, adjacency, *change)
        pair = there[:2], other[:2]
        replay.check(lambda: OnBlocks(model=clone(model), size=25), *pair, adjacency)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_single_records_in_memory(replay, adjacency):
    X, y = data(60)
    for change in EXTREME:
        pair = differing(X, y, adjacency, *change)
        model = linear(SOLVERS["single"], adjacency=str(adjacency))
        replay.check(lambda model=model: clone(model), *pair, adjacency)
