"""A stream holds one block, and what has gone by cannot be asked for again."""

from __future__ import annotations

import numpy as np
import pytest

from skdp._oracle import noise_source
from skdp._oracle.sources.memory import MemorySource
from skdp._oracle.sources.stream import StreamSource


def test_a_stream_does_not_go_back():
    X, y = np.zeros((30, 4)), np.zeros(30)

    def make_rows(X, y, weights, groups):
        return MemorySource.of(X, y, weights, None, 0.0)

    arrivals = iter([(X, y[:, None], None, None)])
    rows = StreamSource(arrivals, 30, make_rows, (X[:0], y[:0, None], None, None))
    cuts, source = (0, 10, 20, 30), noise_source(0)
    assert rows.block(cuts, 1, source).n_rows == 10
    assert rows.block(cuts, 1, source).n_rows == 10
    with pytest.raises(ValueError, match="read once"):
        rows.block(cuts, 0, source)
    with pytest.raises(ValueError, match="read once"):
        rows.block((0, 10, 20, 31), 1, source)
    with pytest.raises(TypeError, match="cannot be pickled"):
        rows.__reduce__()
