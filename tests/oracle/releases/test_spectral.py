"""The largest eigenvalue of a Gram matrix: bounded by Weyl's inequality, and tightly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import Adjacency
from skdp.objective import Logistic, Problem
from skdp.oracle import LargestEigenvalue, Public, PublicContext
from skdp.oracle.sources.memory import MemorySource


def context_for(n_rows=50, row_bound=2.0, **facts):
    public = Public(n_rows, 3, 1, Adjacency.ZERO_OUT, 1.0, 0.0, row_bound=row_bound, **facts)
    return PublicContext(public, Problem(Logistic()), 1.0)


@given(seed=st.integers(0, 2**32 - 1), length=st.floats(0.01, 10))
@settings(deadline=None, max_examples=60)
def test_one_record_moves_the_eigenvalue_by_its_bound(seed, length):
    """Weyl's inequality, with the shrinking of rows; the bound cannot be made smaller."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 3)) * length
    other = X.copy()
    X[0], other[0] = X[0] * 100, 0.0
    context = context_for(n_rows=20)
    bound = LargestEigenvalue().contribution(context, 20).bound
    size = context.public.intercept_size
    values = [
        LargestEigenvalue().total(MemorySource.of(Z, np.zeros((20, 1)), None, 2.0, size), context)[
            0
        ]
        for Z in (X, other)
    ]
    assert abs(values[0] - values[1]) <= bound


def test_the_bound_on_the_eigenvalue_is_tight():
    context = context_for(n_rows=2, has_intercept=False)
    X = np.array([[3.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    values = []
    for Z in (X, X * [[0.0], [1.0]]):
        rows = MemorySource.of(Z, np.zeros((2, 1)), None, 2.0, 0.0)
        values.append(LargestEigenvalue().total(rows, context)[0])
    assert values[0] - values[1] == pytest.approx(4.0)
    assert LargestEigenvalue().contribution(context, 2).bound == pytest.approx(4.0, rel=1e-9)


def test_eigenvalue_needs_a_bound_on_rows():
    context = context_for(row_bound=None)
    with pytest.raises(ValueError, match=r"scaling=RowNorm.*Nothing was released"):
        LargestEigenvalue().contribution(context, 50)
