"""Blocks of rows in an order that is drawn once: disjoint, and priced as such."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from skdp._oracle import Cut, Public, noise_source
from skdp._oracle.sources.memory import MemorySource
from skdp.accounting import Adjacency, Composed, Gaussian, OnBlock, Partition, price

N = 40
PUBLIC = Public(N, 1, 1, Adjacency.ZERO_OUT, 1.0, 1e-6)
CUTS = (0, 0, 7, 8, 30, 40)


def numbered():
    return MemorySource.of(np.arange(float(N))[:, None], np.zeros((N, 1)))


def drawn(rows, cuts, index, source):
    return set(Cut(cuts, index).draw(rows, source).records.X[:, 0].astype(int).tolist())


def test_blocks_of_a_cut_are_disjoint_and_hold_every_row():
    rows, source = numbered(), noise_source(0)
    blocks = [drawn(rows, CUTS, index, source) for index in range(len(CUTS) - 1)]
    assert [len(block) for block in blocks] == [0, 7, 1, 22, 10]
    assert all(not a & b for a, b in itertools.combinations(blocks, 2))
    assert set().union(*blocks) == set(range(N))


def test_a_cut_is_drawn_once():
    rows, source = numbered(), noise_source(0)
    first = drawn(rows, CUTS, 3, source)
    assert drawn(rows, CUTS, 1, source)
    assert drawn(rows, CUTS, 3, source) == first
    assert drawn(numbered(), CUTS, 3, source) != first


def test_blocks_of_other_cuts_add_up():
    """They overlap, so they are not blocks of one partition, though they are as many."""
    public, inner = PUBLIC, Gaussian(1.0)
    one, other = Cut((0, 20, 40), 0), Cut((0, 10, 40), 1)
    same = Composed.of([one.event(inner, public), Cut((0, 20, 40), 1).event(inner, public)])
    different = Composed.of([one.event(inner, public), other.event(inner, public)])
    once, _ = price(inner, 1e-6, Adjacency.ZERO_OUT)
    twice, _ = price(Composed(((inner, 2),)), 1e-6, Adjacency.ZERO_OUT)
    assert price(same, 1e-6, Adjacency.ZERO_OUT)[0] == pytest.approx(once)
    assert price(different, 1e-6, Adjacency.ZERO_OUT)[0] == pytest.approx(twice)
    assert one.event(inner, public) == OnBlock(Partition(0, 2, cuts=(0, 20, 40)), 0, inner)


@pytest.mark.parametrize(
    "arguments", [((0, 1), -1), ((0, 1), 1), ((0, 3, 2), 0), ((-1, 2), 0), ((0,), 0)]
)
def test_impossible_cuts_are_refused(arguments):
    with pytest.raises(ValueError, match="Cut"):
        Cut(*arguments)


def test_a_cut_beyond_the_rows_is_refused():
    with pytest.raises(ValueError, match="number of rows"):
        Cut((0, N + 1), 0).event(Gaussian(1.0), PUBLIC)
    with pytest.raises(ValueError, match="cuts"):
        Partition(0, 2, cuts=(0, 1))


def test_many_blocks_of_one_cut_share_their_places():
    """Each place is looked at and hashed once a pass, not once a block: time is linear."""
    blocks = Cut.blocks(map(np.int64, range(0, 10**6, 7)), once=True)
    places = blocks[0].cuts
    assert len(blocks) == len(places) - 1
    assert all(block.once and block.cuts is places for block in blocks)
    assert all(type(place) is int for place in places[:9])
    events = [block.event(Gaussian(1.0), replace(PUBLIC, n_rows=10**6)) for block in blocks[:9]]
    assert all(event.partition.cuts is places for event in events)
    # A tuple's own hash reads all places each time.
    assert hash(places) == hash(tuple(places)) == vars(places)["_hash"]
    assert Cut(tuple(places), 5) == replace(blocks[5], once=False)
    with pytest.raises(TypeError):
        Cut((0.5, 1), 0)
