"""Random divisions of numbered records, in which a record's part follows from its number and a key.

No division is stored: the part of any record is computed where its rows are.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from skdp._numbers import AnyArray, Indices, Mask
from skdp._oracle.noise import NoiseSource


@dataclass(frozen=True, eq=False)
class PartOfPartitions:
    """One part, or several, of a random division of the records of all partitions.

    Record i has the i-th 64-bit number of the counter-based generator Philox, and parts are cut at
    quantiles of these numbers. Nothing but the key and the number of records, which is public,
    decides: a record stays in its part whatever it and the others hold, and under each neighbouring
    relation (zero-out, replace-one, label) neighbours have as many records at the same places. So
    parts are disjoint in the sense of parallel composition. The key need not be secret.

    Attributes
    ----------
    key : int
        Of the generator, below 2**124.
    cuts : array of shape (n_parts - 1,)
        Least number of each part but the first.
    numbers : tuple of int
        Of the parts.
    starts : sequence of int
        Number of the first record of each partition. Zeros where partitions do not know their
        places.
    sizes : sequence of int
        Number of records of each partition when they were divided.

    References
    ----------
    J. Salmon, M. Moraes, R. Dror, D. Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011.
    """

    key: int
    cuts: AnyArray
    numbers: tuple[int, ...]
    starts: Sequence[int]
    sizes: Sequence[int]

    @classmethod
    def drawn(
        cls,
        sizes: Sequence[int],
        noise_source: NoiseSource,
        starts: Sequence[int] = (0,),
        held: Sequence[int] | None = None,
    ) -> list[Self]:
        """Draw a division into parts of these sizes, and return the parts.

        ``held`` are the numbers of records of the partitions. None for a single one.
        """
        high, low = noise_source.integers(2**62, 2).tolist()
        key, n_records = high << 62 | low, sum(sizes)
        values = np.append(keyed_values(key, 0, n_records), np.uint64(2**64 - 1))
        ranks = np.cumsum(sizes)[:-1]
        values.partition(ranks)
        held = [n_records] if held is None else held
        return [cls(key, values[ranks], (number,), starts, held) for number in range(len(sizes))]

    def mask(self, index: int | None, n_records: int) -> Mask:
        """Return which records of a partition belong to it.

        Raises
        ------
        ValueError
            If the partition had another number of records when it was divided: its later records
            would be in another part than before, and be charged for one of both.
        """
        if n_records not in (self.sizes if index is None else [self.sizes[index]]):
            raise ValueError(
                "a partition has another number of rows, or of groups, than when it was divided at "
                "random. Every pass must read the same rows."
            )
        return self._mask(self.starts[0 if index is None else index], n_records)

    def _mask(self, start: int, n_records: int) -> Mask:
        values = keyed_values(self.key, start, n_records)
        return np.isin(np.searchsorted(self.cuts, values, side="right"), self.numbers)

    def rows(self, index: int | None, n_rows: int, codes: Indices | None) -> Indices:
        """Return the numbers of a partition's rows that belong to it.

        ``codes`` are the numbers of the rows' groups, which are the records, if there are any.
        """
        if codes is None:
            return np.flatnonzero(self.mask(index, n_rows))
        return np.flatnonzero(self.mask(index, int(codes.max(initial=-1)) + 1)[codes])

    def counts(self) -> list[int]:
        """Return how many records of each partition belong to it."""
        held = zip(self.starts, self.sizes, strict=True)
        return [int(np.count_nonzero(self._mask(*one))) for one in held]


def starts_of_partitions(sizes: Sequence[int], indices: Sequence[int | None]) -> list[int]:
    """Return the number of the first record of each partition.

    Parameters
    ----------
    sizes : sequence of int
        Records of each partition.
    indices : sequence of int or None
        The place that each partition states. None if it says nothing, or is empty.

    Raises
    ------
    ValueError
        If some say a wrong place, or only some say it.
    """
    known = [(place, index) for place, index in enumerate(indices) if sizes[place]]
    if all(index is None for _, index in known):
        return [0] * len(sizes)
    if any(place != index for place, index in known):
        raise ValueError(
            "the index that a partition passes to a task must be its place in the order of the "
            "results, from 0 on, and all partitions must pass it, or none. Nothing was released."
        )
    return [0, *itertools.accumulate(sizes)][:-1]


def are_numbered(sizes: Sequence[int], starts: Sequence[int]) -> bool:
    """Return whether records have numbers of their own. Partitions may not know their places."""
    return any(starts) or np.count_nonzero(sizes) == 1


def equal_sizes(n_records: int, n_parts: int) -> list[int]:
    """Return the sizes of parts that are equal, up to one record."""
    return [n_records * (i + 1) // n_parts - n_records * i // n_parts for i in range(n_parts)]


def keyed_values(key: int, start: int, n_records: int) -> AnyArray:
    """Return the 64-bit numbers of ``n_records`` records from number ``start`` on."""
    skipped = start % 4  # the generator makes four at a time
    generator = np.random.Philox(key=key, counter=start // 4)
    return np.asarray(generator.random_raw(n_records + skipped)[skipped:])
