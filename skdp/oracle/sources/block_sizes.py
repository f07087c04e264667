"""Divide rows into parts and blocks by public shapes, and bound the rounding of sums over them."""

import itertools
from collections.abc import Iterator

BLOCK_BYTES = 1 << 22  # of a block of rows: threads that took less would queue for the interpreter
COPIED_BYTES = 1 << 20  # of one that is written and read on the way to the sums, in a near cache
# Of a part, which one thread takes as a whole; each costs a tenth of a millisecond in Python. There
# are at most MAX_PARTS, larger ones if need be, and two from a quarter of this size on.
PART_BYTES = 1 << 24
MAX_PARTS = 16
MOST_PARTITIONS = 1 << MAX_PARTS  # see `skdp.oracle.sources.partitioned.require_few_partitions`
GROUPED_ROWS = 1 << 13  # with groups, added up one after the other: rounding grows with them
# Additions of sums of parts in pairs, however many a machine can hold, and of blocks in a part.
PAIRED_SUMS = 2 * 64 + 4
# Sparse rows come in parts of so many rows or more, and of one for so many columns: each part, and
# each block, adds a sum of all columns. Blocks are at most so many, until they have the most rows.
SPARSE_ROWS, COLUMNS_FOR_A_ROW, SPARSE_BLOCKS, MOST_SPARSE_ROWS = 1 << 12, 32, 256, 1 << 16
UNIT_ROUNDOFF = 2.0**-53  # of float64


def row_parts(n_rows: int, n_columns: int, itemsize: int, is_sparse: bool) -> list[slice]:
    """Divide rows in parts that threads can take; shapes and types alone decide.

    The same parts whatever the number of threads, so that a sum comes out the same, too.
    """
    if is_sparse:
        n_parts = n_rows // max(SPARSE_ROWS, n_columns // COLUMNS_FOR_A_ROW)
    else:
        n_bytes = n_rows * n_columns * itemsize  # an even number of parts keeps two threads busy
        n_parts = 2 * -(-n_bytes // (2 * PART_BYTES)) if n_bytes > PART_BYTES // 4 else 1
    n_parts = min(max(1, n_parts), MAX_PARTS)
    edges = [n_rows * i // n_parts for i in range(n_parts + 1)]
    return [slice(start, stop) for start, stop in itertools.pairwise(edges)]


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
        # Sparse rows gain nothing from the cache; blocks bound copies, and chains of additions.
        rows = min(-(-n_rows // SPARSE_BLOCKS), MOST_SPARSE_ROWS)
        return max(SPARSE_ROWS, n_columns // COLUMNS_FOR_A_ROW, rows)
    n_bytes = COPIED_BYTES if is_copied else BLOCK_BYTES
    return min(n_rows, max(16, n_bytes // (8 * max(n_columns, 1))))


def summation_depth(n_rows: int, n_columns: int, is_sparse: bool, grouped: bool) -> int:
    """Return the largest number of additions that a record's term undergoes in a sum.

    It counts those in a block, and those of the sums of blocks and parts: the maximum over storage
    layouts (rows that are copied on the way or not, sparse rows that are written out or not). With
    groups the number of rows is private: their source cuts parts of a fixed size, each of them one
    block, and adds them up in pairs (`skdp.oracle.sources.groups`), so the figure is right for any
    number of rows.
    """
    if grouped:
        return grouped_part_rows(n_columns) + PAIRED_SUMS
    # Parts may end in shorter blocks. A base adds a second sum for each block.
    sizes = block_sizes(n_rows, n_columns, is_sparse)
    return max(rows + (1 + is_sparse) * (-(-n_rows // rows) + 2 * MAX_PARTS) for rows in sizes)


def block_sizes(n_rows: int, n_columns: int, is_sparse: bool) -> list[int]:
    """Return the numbers of rows that blocks may have, as :func:`block_rows` gives them."""
    kinds = {(False, False), (False, True), (is_sparse, False), (is_sparse, True)}
    return [max(1, block_rows(n_rows, n_columns, *kind)) for kind in sorted(kinds)]


def grouped_part_rows(n_columns: int) -> int:
    """Return the rows in a part where there are groups; their number has no say in it."""
    return min(GROUPED_ROWS, max(16, COPIED_BYTES // (8 * max(n_columns, 1))))


def slices(start: int, stop: int, step: int) -> Iterator[slice]:
    """Yield the slices of a range, ``step`` long but for the last."""
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))
