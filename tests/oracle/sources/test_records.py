"""Records: rows as they came, and their norms, whatever they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from skdp._oracle.sources import records
from skdp._oracle.sources.memory import MemorySource
from skdp._oracle.sources.partitioned import PartitionRows, PartitionSum

hostile = st.floats(allow_nan=False, allow_infinity=False, width=64)


def test_rows_are_not_copied(rng):
    X = rng.standard_normal((100, 3))
    assert MemorySource.of(X, np.zeros((100, 1))).records.X is X


@settings(max_examples=100, deadline=None)
@given(X=arrays(np.float64, (4, 3), elements=hostile), as_sparse=st.booleans())
def test_row_norms_neither_overflow_nor_underflow(X, as_sparse):
    norms = records.row_norms(sparse.csr_array(X) if as_sparse else X)
    for norm, row in zip(norms, X, strict=True):
        exact = math.hypot(*row)
        assert norm == pytest.approx(exact, rel=1e-14, abs=0) or (norm == exact == math.inf)


def test_tracebacks_that_print_variables_show_no_rows():
    source = MemorySource.of(np.array([[0.123]]), np.array([[4.567]]), None, None, 1.0)
    for one in (source.records, PartitionRows([[0.123]], [4.567]), PartitionSum(1, 0.123)):
        assert "123" not in repr(one)
        assert "567" not in repr(one)
