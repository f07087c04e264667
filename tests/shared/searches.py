"""Private searches of small ridge regressions, as several tests make them."""

from __future__ import annotations

from functools import partial

import skdp
from skdp.model_selection import DPSearchCV

RIDGE = partial(skdp.DPRidge, scaling=skdp.RowNorm(4.0, target=5.0), max_iter=3)
GRID = {"alpha": [0.1, 1.0, 10.0]}


def seeded(estimator=None, grid=GRID, seed=0, **options):
    """A search whose noise comes from a seed."""
    estimator = RIDGE() if estimator is None else estimator
    options = {"privacy": skdp.Privacy(noise=skdp.SeededNoise(seed)), **options}
    return DPSearchCV(estimator, grid, **options)
