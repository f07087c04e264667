"""Rows that arrive in blocks, and the solvers that read them once."""

from __future__ import annotations

import numpy as np

import skdp
from replays import seeded
from skdp.solvers import AdaptiveShuffledSGD, ShuffledSGD, Whitened

W = np.array([1.0, -0.5, 0.25, 0.0])
SOLVERS = {
    "shuffled": ShuffledSGD(max_iter=9),
    "single": ShuffledSGD(batch_size=1),
    "adaptive": AdaptiveShuffledSGD(max_iter=9),
    "whitened": Whitened(max_iter=3),
}


def data(n=20000, seed=0):
    """Rows of four columns, and their targets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    return X, X @ W + 0.4 + 0.1 * rng.standard_normal(n)


def in_blocks(X, y, size):
    """Yield so many rows at a time."""
    for start in range(0, X.shape[0], size):
        yield X[start : start + size], y[start : start + size]


def linear(solver="auto", adjacency="zero_out", **parameters):
    """A regression whose noise comes from a seed."""
    terms = seeded(adjacency=adjacency)
    return skdp.DPLinearRegression(solver=solver, scaling="none", privacy=terms, **parameters)
