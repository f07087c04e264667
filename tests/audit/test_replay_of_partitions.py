"""Replays and canaries of fits to rows in partitions."""

from __future__ import annotations

import numpy as np
import pytest

import skdp
from skdp import audit
from skdp.model_selection import DPSearchCV

SETTINGS = {"solver": "gd", "max_iter": 2, "scaling": skdp.RowNorm(4.0, target=1.0)}
RIDGE = skdp.DPRidge(**SETTINGS)
MODELS = {
    "fit": RIDGE,
    "search": DPSearchCV(RIDGE, {"alpha": [1.0, 9.0]}, n_candidates=2),
}


class Parts(skdp.data.Partitions):
    """Four partitions, of rows or of whole groups."""

    def __init__(self, X, y, **beside):
        self._columns = {"X": X, "y": y} | beside

    def run(self, task, spread=map):
        numbers = self._columns.get("groups", np.arange(len(self._columns["y"])) // 15)
        for index in range(4):
            rows = np.asarray(numbers) % 4 == index
            yield task(**{name: one[rows] for name, one in self._columns.items()}, index=index)


def pairs(name):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.uniform(-1, 1, 60)
    for place, row, target in ((0, 1e300, 1.0), (59, -3.0, -1e9)):
        other, targets = X.copy(), y.copy()
        other[place], targets[place] = row, target
        yield audit.NeighbouringPair(
            f"{name} {place}", {"X": X, "y": y}, {"X": other, "y": targets}, "replace_one"
        )


def replayed(name):
    model = MODELS[name]
    return audit.replay(model, *two(), pairs(name), partitions=Parts, adjacency="replace_one")


def two():
    return np.zeros((60, 3)), np.zeros(60)


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("name", MODELS)
def test_no_row_shows_but_through_the_releases(name):
    report = replayed(name)
    assert report.ok, str(report)
    assert report.releases
