"""Blocks: the costliest one is charged, repeats and other partitions add up."""

import math

import pytest

from costs import by_pairs
from skdp.accounting import (
    Adjacency,
    Composed,
    Gaussian,
    Laplace,
    OnBlock,
    Partition,
    PoissonSampled,
    gaussian_epsilon,
    price,
)

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
G = Gaussian(1.5)


def on(partition, block, event=G):
    return OnBlock(partition, block, event)


def test_the_costliest_block_is_found_among_mixed_contents():
    partition = Partition(0, 4)
    plan = Composed(
        (
            (on(partition, 0, Gaussian(3.0)), 1),
            (on(partition, 1, PoissonSampled(0.1, Gaussian(1.0))), 1),
            (on(partition, 2, Laplace(1.0)), 1),
            (on(partition, 3, Composed(((Gaussian(3.0), 1), (Laplace(9.0), 1)))), 1),
            (Gaussian(5.0), 1),
        )
    )
    contents = [Gaussian(3.0), PoissonSampled(0.1, Gaussian(1.0)), Laplace(1.0)]
    contents.append(Composed(((Gaussian(3.0), 1), (Laplace(9.0), 1))))
    alone = [
        by_pairs(Composed(((content, 1), (Gaussian(5.0), 1))), 1e-6, ZERO_OUT)
        for content in contents
    ]
    assert by_pairs(plan, 1e-6, ZERO_OUT) == pytest.approx(max(alone), rel=1e-9)


def test_repeated_questions_to_one_block_add_up():
    partition = Partition(0, 2)
    forty = Composed(((on(partition, 0), 40), (on(partition, 1), 1)))
    assert price(forty, 1e-6, ZERO_OUT)[0] == pytest.approx(
        gaussian_epsilon(math.sqrt(40) / 1.5, 1e-6)
    )


def test_different_partitions_add_up():
    plan = Composed(((on(Partition(0, 2), 0), 1), (on(Partition(1, 2), 0), 1)))
    assert price(plan, 1e-6, ZERO_OUT)[0] == pytest.approx(
        gaussian_epsilon(math.sqrt(2) / 1.5, 1e-6)
    )
    plan = Composed(((on(Partition(0, 2), 0), 1), (on(Partition(0, 3), 0), 1)))
    assert price(plan, 1e-6, ZERO_OUT)[0] == pytest.approx(
        gaussian_epsilon(math.sqrt(2) / 1.5, 1e-6)
    )


def test_many_sampled_blocks_reduce_to_the_least_noisy_one():
    partition = Partition(0, 500)
    plan = Composed.of(
        on(partition, k, PoissonSampled(0.1, Gaussian(1 + k / 500))) for k in range(500)
    )
    alone = price(PoissonSampled(0.1, Gaussian(1.0)), 1e-6, ZERO_OUT)
    assert price(plan, 1e-6, ZERO_OUT) == alone
