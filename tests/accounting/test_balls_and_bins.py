"""Amplification of passes over bins that records pick in secret."""

import pytest

from skdp.accounting import (
    Adjacency,
    BallsAndBins,
    Composed,
    Gaussian,
    OnBlock,
    Partition,
    gaussian_epsilon,
    price,
)

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
G = Gaussian(1.5)


def on(partition, block, event=G):
    return OnBlock(partition, block, event)


def test_bins_of_different_epochs_and_noise():
    PLD_accounting = pytest.importorskip(
        "PLD_accounting", reason="the extra skdp[amplification] is not installed"
    )
    partition = Partition(0, 10, allocation=True)
    blocks = Composed.of(on(partition, k, Gaussian(1 + k / 100)) for k in range(10))
    whole = price(BallsAndBins(10, Gaussian(1.0)), 1e-5, ZERO_OUT)
    assert whole[1] == "balls_and_bins"
    assert price(blocks, 1e-5, ZERO_OUT) == whole
    assert whole[0] < gaussian_epsilon(1.0, 1e-5)
    twice = price(Composed(((BallsAndBins(10, Gaussian(1.0)), 2),)), 1e-5, ZERO_OUT)
    assert whole[0] < twice[0] < 2 * whole[0]
    # Beside other releases, such as histograms of columns, the pass stays as cheap as it is.
    beside = Composed(((blocks, 1), (Gaussian(40.0), 2)))
    assert whole[0] < price(beside, 1e-5, ZERO_OUT)[0] < 1.02 * whole[0]
    reference = PLD_accounting.gaussian_allocation_epsilon_range(
        delta=1e-5, sigma=1.0, num_steps=10, num_epochs=2
    )
    assert reference[1] <= twice[0] <= 1.02 * reference[0]
    # Under replace_one the maximum over blocks is charged.
    assert price(blocks, 1e-5, REPLACE_ONE) == price(Gaussian(1.0), 1e-5, REPLACE_ONE)
