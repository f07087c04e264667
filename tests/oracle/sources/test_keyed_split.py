"""Divisions by a key and the numbers of records: exact sizes, and no other record matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from skdp._oracle import noise_source
from skdp._oracle.sources.keyed_split import PartOfPartitions, starts_of_partitions


def parts(division, start, n_records):
    """The part of each of some records, each of which is in one part."""
    masks = np.array([one._mask(start, n_records) for one in division])
    assert (masks.sum(axis=0) == 1).all()
    return masks.argmax(axis=0)


@pytest.mark.parametrize("sizes", [[1], [3, 0], [0, 3], [5, 5, 5], [1] * 40, [70_000, 1, 9_999]])
def test_parts_have_the_given_sizes(sizes):
    split, n = PartOfPartitions.drawn(sizes, noise_source(3)), sum(sizes)
    numbers = parts(split, 0, n)
    assert np.bincount(numbers, minlength=len(sizes)).tolist() == sizes
    # A record's part follows from its own number alone, wherever a partition begins.
    for start in range(min(n, 9)):
        np.testing.assert_array_equal(parts(split, start, n - start), numbers[start:])
    starts, held = starts_of_partitions([n // 3, 0, n - n // 3], [0, None, 2]), []
    for index, (start, size) in enumerate(zip(starts, (n // 3, 0, n - n // 3), strict=True)):
        part = replace(split[-1], starts=starts, sizes=[n // 3, 0, n - n // 3])
        mask = part.mask(index, size)
        np.testing.assert_array_equal(mask, numbers[start : start + size] == len(sizes) - 1)
        held.append(int(mask.sum()))
    assert part.counts() == held
    with pytest.raises(ValueError, match="when it was divided"):
        part.mask(0, n // 3 + 1)


def test_parts_are_random():
    """Neighbouring numbers fall into parts independently, and all keys differ."""
    draws = noise_source(0)
    sizes = [50_000, 50_000]
    first, other = (parts(PartOfPartitions.drawn(sizes, draws), 0, 100_000) for _ in range(2))
    for one, two in ((first[:-1], first[1:]), (first, other), (first[:-4], first[4:])):
        pairs = np.bincount(2 * one + two, minlength=4)
        assert stats.chisquare(pairs).pvalue > 1e-4


@pytest.mark.parametrize("indices", [[1, 0], [0, None], [0, 2], [0, 0]])
def test_partitions_that_say_a_wrong_place_are_refused(indices):
    with pytest.raises(ValueError, match="must be its place"):
        starts_of_partitions([3, 4], indices)


def test_partitions_that_do_not_know_their_places_are_divided_alike():
    assert starts_of_partitions([3, 0, 4], [None, None, None]) == [0, 0, 0]
    part = PartOfPartitions.drawn([50, 50], noise_source(0), [0, 0], [50, 50])[1]
    np.testing.assert_array_equal(part.mask(None, 50), part.mask(1, 50))
    assert part.counts() == [int(part.mask(None, 50).sum())] * 2
