"""Weighted records of a logistic problem, their public facts, and what they look like inside."""

from __future__ import annotations

import numpy as np

from skdp._oracle import Public
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.sources.memory import MemorySource
from skdp.accounting import Adjacency
from skdp.objective import ElasticNet, Problem

SIZE, ROW_BOUND = 0.8, 5.0
POINT = np.array([[0.5], [-1.0], [0.2], [0.3]])


def context_for(loss, n_rows, scale=1.0, weighted=False, is_sparse=False, **facts):
    facts = {"n_features": 3, "n_outputs": 1, "row_bound": ROW_BOUND, **facts}
    public = Public(
        n_rows=n_rows,
        adjacency=Adjacency.ZERO_OUT,
        epsilon=1.0,
        delta=1e-6,
        data_norm=None,
        weighted=weighted,
        sparse=is_sparse,
        **facts,
    )
    return PublicContext(public, Problem(loss, ElasticNet(0.01)), scale)


def rows_of(X, y, weights=None):
    return MemorySource.of(X, np.asarray(y, float).reshape(-1, 1), weights, ROW_BOUND, SIZE)


def records(X, weights):
    """Rows with their constant, shrunk to the public bound."""
    norms = np.linalg.norm(X, axis=1)
    Z = X * np.minimum(1, ROW_BOUND / np.maximum(norms, 1e-300))[:, None]
    return np.column_stack([Z, np.full(len(X), SIZE)]), np.sqrt(weights)


def data_for(rng):
    X = rng.standard_normal((70, 3)) * rng.choice([0.1, 1, 10], (70, 1))
    return X, (rng.random(70) > 0.5).astype(float), rng.choice([0.0, 0.5, 1.0, 9.0], 70)
