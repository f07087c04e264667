"""Calibration: on the private side, and close to the budget."""

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
    event_mu,
    gaussian_mu,
    price,
)

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 8.0])
@pytest.mark.parametrize("adjacency", Adjacency)
def test_full_batch_schedules_in_closed_form(epsilon, adjacency):
    plan = Composed.of(Gaussian(1 + t / 100) for t in range(1000))
    found = calibrate(plan, epsilon, 1e-6, adjacency)
    mu = event_mu(plan, adjacency) / found.scale
    assert found.accountant == "gdp"
    assert mu == pytest.approx(gaussian_mu(epsilon, 1e-6), rel=1e-9)
    assert (1 - 1e-9) * epsilon <= found.epsilon <= epsilon


SAMPLED = {
    "poisson": (PoissonSampled, (0.01,), ZERO_OUT),
    "poisson, replace one": (PoissonSampled, (0.01,), REPLACE_ONE),
    "without replacement": (FixedSizeSampled, (100, 10_000), REPLACE_ONE),
}


@pytest.mark.parametrize("kind", SAMPLED)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_a_thousand_equal_sampled_steps(kind, epsilon):
    sampled, arguments, adjacency = SAMPLED[kind]
    plan = Composed(((sampled(*arguments, Gaussian(1.0)), 1000),))
    found = calibrate(plan, epsilon, 1e-5, adjacency)
    assert 0.9998 * epsilon <= found.epsilon <= epsilon
    assert price(plan.scaled(found.scale), 1e-5, adjacency)[0] == found.epsilon


def test_pure_plans_meet_delta_zero():
    plan = Composed(((FixedSizeSampled(10, 100, Laplace(1.0)), 50),))
    found = calibrate(plan, 1.0, 0.0, REPLACE_ONE)
    assert found.accountant == "pure"
    assert 0.999 <= found.epsilon <= 1.0
    # ln(1 + q (exp(e0) - 1)) = 1/50, and e0 = 2 / b.
    exact = 2 / math.log1p(math.expm1(1 / 50) / 0.1)
    assert found.scale == pytest.approx(exact, rel=1e-3)


def test_parts_without_noise_keep_their_cost():
    known = ApproximateDP(0.4, 1e-7)
    plan = Composed(((known, 1), (Gaussian(1.0), 10)))
    found = calibrate(plan, 1.0, 1e-6, ZERO_OUT)
    assert 0.999 <= found.epsilon <= 1.0
    with pytest.raises(UnknownCost, match="no amount of noise"):
        calibrate(plan, 0.39, 1e-6, ZERO_OUT)
    with pytest.raises(UnknownCost, match="no amount of noise"):
        calibrate(plan, 1.0, 1e-8, ZERO_OUT)


def test_theorems_have_their_names():
    split = Partition(0, 2)
    sampled, blocks = PoissonSampled(0.1, Gaussian(1.0)), (Gaussian(3.0), Laplace(9.0))
    on_blocks = [(OnBlock(split, k, event), 1) for k, event in enumerate(blocks)]
    for plan, delta, name in (
        (Gaussian(1.0), 1e-6, "gdp"),
        (Laplace(1.0), 0.0, "pure"),
        (sampled, 1e-6, "pld"),
        (Composed(tuple(on_blocks)), 1e-6, "pld"),  # which block is the costlier one is no matter
        (Shuffled(10_000, Laplace(1.0)), 1e-6, "shuffle"),
        (Selected(Gaussian(1.0), 5), 1e-6, "selection"),
        (Composed(((Selected(Gaussian(1.0), 5), 2),)), 1e-6, "pld"),
        (Composed(((Selected(Gaussian(1.0), 5), 1), (sampled, 1))), 1e-6, "pld"),
    ):
        assert price(plan, delta, ZERO_OUT)[1] == name
