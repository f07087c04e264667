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
    """Four partitions."""

    def __init__(self, X, y):
        self.X, self.y = X, y

    def run(self, task, spread=map):
        for index in range(4):
            yield task(self.X[index::4], self.y[index::4], index=index)


def pairs(name):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.uniform(-1, 1, 60)
    for place, row, target in ((0, 1e300, 1.0), (59, -3.0, -1e9)):
        other, targets = X.copy(), y.copy()
        other[place], targets[place] = row, target
        yield audit.NeighbouringPair(
            f"{name} {place}", {"X": Parts(X, y)}, {"X": Parts(other, targets)}, "replace_one"
        )


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("name", MODELS)
def test_no_row_shows_but_through_the_releases(name):
    report = audit.replay(MODELS[name], neighbours=pairs(name), adjacency="replace_one")
    assert report.ok, str(report)
    assert report.releases
