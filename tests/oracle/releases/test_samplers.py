"""Samplers: what is drawn, and what may not be asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from skdp._oracle import AllRows, Block, FixedSize, Poisson, Public, noise_source
from skdp._oracle.sources.memory import MemorySource
from skdp.accounting import (
    Adjacency,
    Composed,
    FixedSizeSampled,
    Gaussian,
    PoissonSampled,
    event_mu,
)

N = 103
PUBLIC = Public(
    n_rows=N, n_features=1, n_outputs=1, adjacency=Adjacency.ZERO_OUT, epsilon=1.0, delta=1e-6
)


@pytest.fixture
def rows():
    return MemorySource.of(np.arange(float(N))[:, None], np.zeros((N, 1)))


def drawn(sampler, rows, source):
    return sampler.draw(rows, source).records.X[:, 0].astype(int).tolist()


def test_divisors_are_expected_sizes_and_do_not_depend_on_the_draw():
    assert Poisson(0.25).divisor(PUBLIC) == N / 4
    assert FixedSize(7).divisor(PUBLIC) == 7
    assert Block(0, 4, 0).divisor(PUBLIC) == N / 4


def test_blocks_of_an_epoch_are_a_partition(rows):
    source = noise_source(None)
    for epoch in range(3):
        blocks = [drawn(Block(epoch, 5, i), rows, source) for i in range(5)]
        assert sorted(number for block in blocks for number in block) == list(range(N))
        again = drawn(Block(epoch, 5, 2), rows, source)
        assert again == blocks[2]


def test_epochs_are_divided_anew(rows):
    source = noise_source(None)
    assert drawn(Block(0, 2, 0), rows, source) != drawn(Block(1, 2, 0), rows, source)


def test_epochs_are_charged_one_by_one():
    """A record may lie in the costliest block of each; blocks of one epoch cost as much as one."""

    def mu(*places):
        events = [Block(epoch, 4, index).event(Gaussian(1.0), PUBLIC) for epoch, index in places]
        return event_mu(Composed.of(events), Adjacency.ZERO_OUT)

    assert mu((0, 0), (0, 1), (0, 2)) == pytest.approx(mu((0, 0)))
    assert mu((0, 0), (1, 1)) == pytest.approx(2**0.5 * mu((0, 0)))


def test_samples_are_charged_at_the_rate_at_which_they_are_drawn():
    step = Gaussian(1.0)
    assert Poisson(0.25).event(step, PUBLIC) == PoissonSampled(0.25, step)
    exchanged = replace(PUBLIC, adjacency=Adjacency.REPLACE_ONE)
    assert FixedSize(7).event(step, exchanged) == FixedSizeSampled(7, N, step)


def test_an_epoch_cannot_be_divided_twice(rows):
    """A second draw for the same epoch would put a record in two of its blocks."""
    source = noise_source(None)
    drawn(Block(1, 2, 0), rows, source)
    with pytest.raises(ValueError, match="drawn once"):
        drawn(Block(0, 2, 1), rows, source)


def test_block_sizes_are_a_function_of_n(rows):
    source = noise_source(None)
    for n_blocks in (1, 4, 50, 200):
        sizes = [len(drawn(Block(0, n_blocks, i), rows, source)) for i in range(n_blocks)]
        assert sizes == [N * (i + 1) // n_blocks - N * i // n_blocks for i in range(n_blocks)]
        assert max(sizes) <= Block(0, n_blocks, 0).max_rows(PUBLIC)


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.1, float("nan")])
def test_bad_rates(bad):
    with pytest.raises(ValueError, match=r"rate must lie in \(0, 1\]"):
        Poisson(bad)


@pytest.mark.parametrize(
    "place", [(float("nan"), 4, 0), (0.5, 4, 0), (0, 4, 4), (-1, 4, 0), (0, 4, -1)]
)
def test_places_that_are_none(place):
    """An epoch that is not equal to itself would be divided anew at every call."""
    with pytest.raises((TypeError, ValueError)):
        Block(*place)


# Law 3: blocks of one division cost their maximum; asking one of them again adds up.


def cost(samplers):
    event = Composed.of(sampler.event(Gaussian(2.0), PUBLIC) for sampler in samplers)
    return event_mu(event, Adjacency.ZERO_OUT) ** 2


def test_disjoint_blocks_cost_their_maximum():
    one = cost([AllRows()])
    assert cost([Block(0, 10, i) for i in range(10)]) == pytest.approx(one)
    assert cost([Block(0, 10, 3)] * 40) == pytest.approx(40 * one)
    assert cost([Block(epoch, 10, 3) for epoch in range(5)]) == pytest.approx(5 * one)
    # the same numbers, but of another division: they may overlap
    assert cost([Block(0, 10, 3), Block(0, 11, 3)]) == pytest.approx(2 * one)
