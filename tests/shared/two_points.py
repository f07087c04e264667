"""A small problem, rows for it, and two points between which gradients differ."""

from __future__ import annotations

import numpy as np

from skdp._oracle import Public
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.sources.memory import MemorySource
from skdp.accounting import Adjacency
from skdp.objective import ElasticNet, Logistic, Multinomial, Problem

N, D = 40, 3


def context_for(scale=0.0, problem=None, n_outputs=1, row_bound=4.0, **facts):
    public = Public(N, D, n_outputs, Adjacency.ZERO_OUT, 1.0, 1e-6, row_bound=row_bound, **facts)
    return PublicContext(public, problem or Problem(Logistic(), ElasticNet(0.1)), scale)


def rows_for(context, rng, X=None, targets=None, weights=None):
    public = context.public
    X = rng.standard_normal((N, D)) if X is None else X
    if targets is None:
        targets = (rng.random((N, public.n_outputs)) > 0.5).astype(float)
        if isinstance(context.problem.loss, Multinomial):
            targets = np.arange(N) % 3
    return MemorySource.of(X, targets, weights, public.row_bound, public.intercept_size)


def points(rng, context, size=0.3):
    return (size * rng.standard_normal(context.public.shape) for _ in range(2))
