"""Chunks of rows outside of memory: how many rows are read at once."""

from __future__ import annotations

import pytest

from skdp.data import Chunks

MEBIBYTE = 1 << 20


class Rows:
    """Rows that are never made: a slice gives its own length."""

    def __init__(self, n_rows, n_columns):
        self.shape = n_rows, n_columns

    def __getitem__(self, rows):
        return range(rows.start, rows.stop)


def lengths(n_rows, n_columns):
    """Rows of each chunk of the default size, as a task gets them."""
    chunks = Chunks(Rows(n_rows, n_columns), range(n_rows))
    found = list(chunks.run(lambda X, y, index: (X, y)))
    assert all(y == X for X, y in found)
    assert [one for X, _ in found[:1] + found[-1:] for one in (X.start, X.stop)][::3] == [0, n_rows]
    return [len(X) for X, _ in found]


@pytest.mark.parametrize("n_columns", [1, 8, 1000])
def test_a_chunk_has_64_mebibytes_of_rows_by_default(n_columns):
    a_chunk = 64 * MEBIBYTE // (8 * n_columns)
    *whole, last = lengths(5 * a_chunk // 2, n_columns)
    assert whole == pytest.approx([a_chunk] * 2, rel=0.01)
    assert 0 < last <= whole[0]


def test_few_rows_are_one_chunk():
    assert lengths(100, 3) == [100]
