"""Divide rows into parts and blocks by public shapes, and bound the rounding of sums over them.

Parts have a fixed size, and sums of parts are added up in pairs: a row's term goes through the same
number of additions, however many rows there are. With groups that number is private.
"""

import itertools
from collections.abc import Iterator

BLOCK_BYTES = 1 << 22  # of a block of rows: threads that took less would queue for the interpreter
COPIED_BYTES = 1 << 20  # of one that is written and read on the way to the sums, in a near cache
# Of a part in float64, which one thread takes as a whole; each costs a tenth of a millisecond in
# Python. Smaller ones are cut in two from a quarter of this size on.
PART_BYTES = 1 << 24
MOST_ROWS = 1 << 13  # of a dense block, added up one after the other: rounding grows with them
# Rows of a sparse block, or one for so many columns: each part, and each block, adds a sum of all
# columns.
SPARSE_ROWS, COLUMNS_FOR_A_ROW, SPARSE_BLOCKS = 1 << 12, 32, 4
PAIRED_SUMS = 2 * 64 + 4  # additions of sums of parts in pairs, however many a machine can hold
UNIT_ROUNDOFF = 2.0**-53  # of float64


def part_rows(n_columns: int, is_sparse: bool) -> int:
    """Return how many rows a part has at most."""
    if is_sparse:
        return SPARSE_BLOCKS * max(SPARSE_ROWS, n_columns // COLUMNS_FOR_A_ROW)
    return max(16, PART_BYTES // (8 * max(n_columns, 1)))


def row_parts(n_rows: int, n_columns: int, is_sparse: bool) -> list[slice]:
    """Divide rows in parts that threads can take; shapes decide.

    The same parts whatever the number of threads, so that a sum comes out the same, too.
    """
    size = part_rows(n_columns, is_sparse)
    # An even number of parts keeps two threads busy.
    n_parts = 2 * -(-n_rows // (2 * size)) if n_rows > size // 4 else 1
    edges = [n_rows * i // n_parts for i in range(n_parts + 1)]
    return [slice(*pair) for pair in itertools.pairwise(edges)]


def block_rows(n_rows: int, n_columns: int, is_sparse: bool, is_copied: bool) -> int:
    """Return how many rows to take at once: shapes and types decide, never values.

    Parameters
    ----------
    n_rows, n_columns : int
    is_sparse : bool
    is_copied : bool
        Whether blocks are made float64, or standardised, on the way.
    """
    if is_sparse:
        return max(SPARSE_ROWS, n_columns // COLUMNS_FOR_A_ROW)
    n_bytes = COPIED_BYTES if is_copied else BLOCK_BYTES
    return min(n_rows, MOST_ROWS, max(16, n_bytes // (8 * max(n_columns, 1))))


def summation_depth(n_rows: int, n_columns: int, is_sparse: bool, grouped: bool) -> int:
    """Return the largest number of additions that a record's term undergoes in a sum.

    It counts those in a block, those of the blocks of a part, and those of parts in pairs: the
    maximum over storage layouts (rows that are copied on the way or not, sparse rows that are
    written out or not). With groups the number of rows is private, and any number is counted for.
    """
    part = part_rows(n_columns, is_sparse)
    part = part if grouped else min(part, n_rows)
    # Parts may end in shorter blocks. A base adds a second sum for each block.
    kinds = {(False, False), (False, True), (is_sparse, False), (is_sparse, True)}
    sizes = [max(1, min(part, block_rows(part, n_columns, *kind))) for kind in sorted(kinds)]
    return PAIRED_SUMS + max(rows + (1 + is_sparse) * (-(-part // rows) + 2) for rows in sizes)


def slices(start: int, stop: int, step: int) -> Iterator[slice]:
    """Yield the slices of a range, ``step`` long but for the last."""
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))
