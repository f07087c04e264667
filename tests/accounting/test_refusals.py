"""A combination without a theorem is refused by name, never guessed."""

import math

import pytest

from skdp.accounting import (
    Adjacency,
    ApproximateDP,
    Composed,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    OnBlock,
    Partition,
    PoissonSampled,
    Selected,
    Shuffled,
    UnknownCost,
    calibrate,
    price,
)

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
G, BLOCK = Gaussian(1.0), OnBlock(Partition(0, 3), 0, Gaussian(1.0))


@pytest.mark.parametrize(
    ("event", "adjacency", "named"),
    [
        (FixedSizeSampled(1, 10, G), ZERO_OUT, "FixedSizeSampled is amplified under replace_one"),
        (FixedSizeSampled(1, 10, Laplace(1.0)), ZERO_OUT, "number of rows"),
        (PoissonSampled(0.1, BLOCK), ZERO_OUT, "PoissonSampled of OnBlock"),
        (FixedSizeSampled(1, 10, BLOCK), REPLACE_ONE, "FixedSizeSampled of OnBlock"),
        (PoissonSampled(0.1, PoissonSampled(0.1, G)), ZERO_OUT, "of PoissonSampled"),
        (PoissonSampled(0.1, Selected(G, 5)), ZERO_OUT, "PoissonSampled of Selected"),
        (PoissonSampled(0.1, Shuffled(5, G)), ZERO_OUT, "PoissonSampled of Shuffled"),
        (PoissonSampled(0.1, ApproximateDP(1.0, 1e-6)), REPLACE_ONE, "left out of the sample"),
        (PoissonSampled(0.1, Composed(((G, 1), (Laplace(1.0), 1)))), ZERO_OUT, "Gaussian answers"),
        (Selected(PoissonSampled(0.1, G), 5), ZERO_OUT, "priced for Gaussian runs only"),
    ],
)
def test_refused_by_name(event, adjacency, named):
    with pytest.raises(UnknownCost, match=named):
        price(event, 1e-6, adjacency)
    with pytest.raises(UnknownCost, match=str(adjacency)):
        price(event, 1e-6, adjacency)
    with pytest.raises(UnknownCost):
        calibrate(event, 1.0, 1e-6, adjacency)


def test_delta_zero_never_gets_an_approximate_answer():
    plan = Composed(((Laplace(1.0), 3),))
    assert price(plan, 0.0, ZERO_OUT) == (3.0, "pure")
    assert price(G, 0.0, ZERO_OUT)[0] == math.inf
    assert price(Composed(((G, 1), (Laplace(1.0), 1))), 0.0, ZERO_OUT)[0] == math.inf
    with pytest.raises(UnknownCost, match="no amount of noise"):
        calibrate(G, 1.0, 0.0, ZERO_OUT)
    with pytest.raises(UnknownCost, match="no amount of noise"):
        calibrate(PoissonSampled(0.1, G), 1.0, 0.0, ZERO_OUT)


def test_too_many_combinations_of_blocks():
    partitions = [Partition(epoch, 3) for epoch in range(6)]
    plan = Composed.of(
        OnBlock(partition, block, event)
        for partition in partitions
        for block, event in enumerate((G, Laplace(1.0), ApproximateDP(0.3, 1e-7)))
    )
    with pytest.raises(UnknownCost, match="combinations of blocks"):
        price(plan, 1e-6, ZERO_OUT)


def test_deltas_too_small_to_resolve_are_refused():
    """Once such a delta took a noise multiplier of 1e10."""
    sampled = Composed(((PoissonSampled(0.01, G), 50),))
    with pytest.raises(UnknownCost, match="cannot distinguish a delta of 1e-295 from 0"):
        calibrate(sampled, 1.0, 1e-295, ZERO_OUT)
    found = calibrate(sampled, 1.0, 1e-270, ZERO_OUT)
    assert found.epsilon == pytest.approx(1.0, rel=1e-3)
    assert found.scale < 10


@pytest.mark.parametrize("delta", [0.5, 0.999])
def test_large_deltas_are_met(delta):
    sampled = Composed(((PoissonSampled(0.1, G), 50),))
    found = calibrate(sampled, 1.0, delta, ZERO_OUT)
    assert price(sampled.scaled(found.scale), delta, ZERO_OUT)[0] <= 1.0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(
    "inner",
    [
        ApproximateDP(0.1),
        Selected(ApproximateDP(0.1), 2),
        FixedSizeSampled(50, 100, ApproximateDP(0.1)),
        Composed(((Selected(ApproximateDP(0.1), 2), 1),)),
    ],
    ids=lambda event: str(event)[:40],
)
def test_guarantees_under_replace_one_say_nothing_of_a_smaller_sample(inner, delta):
    with pytest.raises(UnknownCost):
        price(PoissonSampled(0.1, inner), delta, REPLACE_ONE)


@pytest.mark.parametrize(
    ("epsilon", "delta", "name"),
    [
        (0.0, 1e-6, "epsilon"),
        (-1.0, 1e-6, "epsilon"),
        (5e-324, 1e-6, "epsilon"),
        (1.0, 1.0, "delta"),
    ],
)
def test_budgets_beyond_calibration_are_refused(epsilon, delta, name):
    """A search for the noise would not end."""
    with pytest.raises(ValueError, match=f"{name} must be"):
        calibrate(Gaussian(1.0), epsilon, delta, Adjacency.ZERO_OUT)
