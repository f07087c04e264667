"""Combinations that look amplifiable and are not proved to be."""

from __future__ import annotations

import pytest

from skdp.accounting import (
    Adjacency,
    ApproximateDP,
    Composed,
    FixedSizeSampled,
    Gaussian,
    OnePass,
    PoissonSampled,
    Selected,
    UnknownCost,
    calibrate,
    price,
)
from skdp.accounting.events.last_iterate import HiddenIterates

REPLACE_ONE = Adjacency.REPLACE_ONE


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
    "wrap",
    [
        lambda event: event,
        lambda event: Composed(((event, 1),)),
        lambda event: Composed(((Composed(((event, 1),)), 1),)),
        lambda event: OnePass(5, event),
    ],
)
def test_hidden_runs_are_no_gaussian_sums(wrap):
    event = PoissonSampled(0.1, wrap(HiddenIterates(Gaussian(3.0), 100, 0.9)))
    with pytest.raises(UnknownCost):
        price(event, 1e-6, REPLACE_ONE)


def test_no_noise_makes_up_for_a_part_that_has_none():
    plan = Composed(((Gaussian(0.0), 1), (Gaussian(1.0), 1)))
    with pytest.raises(UnknownCost, match="amount of noise"):
        calibrate(plan, 1.0, 1e-6, Adjacency.ZERO_OUT)
