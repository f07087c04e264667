"""Rows in partitions elsewhere, and models that are fitted to them."""

from __future__ import annotations

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import skdp

RNG = np.random.default_rng(0)


X = RNG.standard_normal((2000, 4)) * [1.0, 5.0, 0.1, 2.0] + 1


Y = X @ [1.0, -0.2, 5.0, 0.5] + RNG.standard_normal(2000)


LABELS = np.array(["n", "p"])[(np.median(Y) < Y).astype(int)]


SECRET = 123456.789


class Pickled(skdp.data.Partitions):
    """Partitions elsewhere: what goes there and what comes back is pickled, last ones first."""

    def __init__(self, *pairs, beside=("sample_weight", "groups"), lost_after=10**6):
        self._beside = beside
        self._pairs, self.visits, self._lost_after = pairs, 0, lost_after

    def _visit(self, task, pair):
        self.visits += 1
        if self.visits > self._lost_after:
            raise ConnectionError(f"lost {SECRET}")
        names = "X", "y", *self._beside
        rows = dict(zip(names, pair, strict=False))
        return pickled(pickled(task)(**rows))

    def run(self, task, spread=map):
        with ThreadPoolExecutor(1) as pool:
            waiting = [pool.submit(self._visit, task, pair) for pair in reversed(self._pairs)]
            return [one.result() for one in reversed(waiting)]


class Held(skdp.data.Partitions):
    """Rows in partitions of these sizes; ``numbered`` is whether these know their places.

    Tasks and what they return are pickled where ``elsewhere`` says so.
    """

    def __init__(
        self, *columns, names=("X", "y"), numbered=True, sizes=(300, 0, 450, 150), elsewhere=False
    ):
        edges = np.cumsum([0, *sizes])
        self._parts = [
            {name: one[start:stop] for name, one in zip(names, columns, strict=True)}
            | ({"index": index} if numbered else {})
            for index, (start, stop) in enumerate(itertools.pairwise(edges))
        ]
        self._copied = pickled if elsewhere else lambda one: one
        self.n_passes = 0

    def run(self, task, spread=map):
        self.n_passes += 1
        for part in self._parts:
            yield self._copied(self._copied(task)(**part))


def pickled(value):
    return pickle.loads(pickle.dumps(value))


def seeded(model, **options):
    if model is skdp.DPLogisticRegression:
        options = {"classes": ["n", "p"], **options}
    return model(privacy=skdp.Privacy(noise=skdp.SeededNoise(3)), **options)


FEW = {"max_iter": 8}  # passes, each of which adds up the partitions anew


GD = {"solver": "gd", **FEW}


class LaterPasses(Pickled):
    """From the second pass on, other rows come."""

    def __init__(self, change, *pairs):
        super().__init__(*pairs)
        self._passes, self._change = 0, change

    def run(self, task, spread=map):
        self._passes += 1
        if self._passes > 1:
            self._pairs = self._change(self._pairs)
        return super().run(task, spread)


WEIGHTS = RNG.exponential(size=2000)
WEIGHTS[:400] = 0.0  # all rows of some partitions
WEIGHTS[1234] = 1e12


EDGES = [0, 150, 350, 350, 900, 1300, 1990, 2000]


def in_seven(*columns, **options):
    """Return rows in partitions of different sizes, one of them empty."""
    parts = [slice(*pair) for pair in itertools.pairwise(EDGES)]
    return Pickled(*[tuple(one[part] for one in columns) for part in parts], **options)


def whole_groups():
    """Return a label for each row, none of which is in two partitions."""
    people, edges = RNG.integers(0, 40, 2000), np.searchsorted(EDGES, np.arange(2000), "right")
    return np.array([f"person {edge}.{one}" for edge, one in zip(edges, people, strict=True)])


PEOPLE = whole_groups()
