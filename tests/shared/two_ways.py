"""Hostile rows, and what is computed of them in numpy and in compiled loops."""

from __future__ import annotations

import numpy as np

from skdp.objective import Huber, Logistic, SquaredError
from skdp.oracle import Columns, Scaling, compiled
from skdp.oracle.sources import memory
from skdp.oracle.sources.memory import MemorySource

LOSSES = [SquaredError(), Logistic(), Huber(0.7)]
HOSTILE = [0.0, -0.0, 5e-324, -1e-310, 1e-170, 1e-30, 1.0, -3.0, 1e5, 1e154, -1e200, 1.7e308]
N_COLUMNS, CLIP = 3, 0.3


def sources(dtype, monkeypatch):
    """Rows of hostile numbers beside common ones; with weights, bounds and scaling or without."""
    rng = np.random.default_rng(0)
    few = [x for x in HOSTILE if dtype is np.float64 or abs(x) < 1e38]
    X = rng.choice(few, (500, N_COLUMNS)) * rng.choice([1.0, 1.0, 0.3], (500, N_COLUMNS))
    X[::2] = rng.standard_normal(X[::2].shape)
    X = X.astype(dtype)
    targets = rng.choice([0.0, 1.0], (len(X), 1)).astype(dtype)
    weights = rng.choice([0.0, 1e-300, 0.5, 1.0, 1e300], len(X))
    ones = np.ones(N_COLUMNS)
    in_units = Scaling(Columns(-2 * ones, 9 * ones, 0.25 * ones, 3 * ones))
    monkeypatch.setattr(memory, "COPY_BYTES", 0)  # blocks are standardised in every pass
    for row_bound, constant in ((None, 0.5), (1.5, 1.0), (None, 0.0)):
        for given in (None, weights):
            rows = MemorySource.of(X, targets, given, row_bound, constant)
            yield rows
            yield rows.transformed(in_units, row_bound)


def both_ways(compute, *arguments, **options):
    with compiled.switched(False):
        by_numpy = compute(*arguments, **options)
    return by_numpy, compute(*arguments, **options)
