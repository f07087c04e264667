"""Objective perturbation: exact profiles of small problems, other figures, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import logsumexp

from skdp.accounting import (
    Adjacency,
    Composed,
    Gaussian,
    ObjectivePerturbed,
    PoissonSampled,
    RDPAccountant,
    Selected,
    UnknownCost,
    calibrate,
    gaussian_delta,
    objective_delta,
    price,
)
from skdp.accounting.rdp import objective_renyi

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE


def densities(records, more, damping, std):
    """Density of the minimiser on a grid, for one parameter, with and without one more record."""
    w = np.linspace(-300, 300, 60_001)

    def density(rows):
        gradient, curvature = damping * w, np.full_like(w, damping)
        for x, y in rows:
            p = 1 / (1 + np.exp(-np.clip(x * w, -700, 700)))
            gradient = gradient + x * (p - y)
            curvature = curvature + x * x * p * (1 - p)
        # b = -gradient(w) is Gaussian, and dw = db / curvature.
        return np.exp(-0.5 * (gradient / std) ** 2) / (std * math.sqrt(2 * math.pi)) * curvature

    return density([*records, more]), density(records), w[1] - w[0]


@pytest.mark.parametrize("noise", [0.7, 1.5, 4.0])
@pytest.mark.parametrize("ratio", [0.05, 0.4, 0.9])
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 3.0])
def test_never_below_the_profile_of_a_real_problem(noise, ratio, epsilon):
    """One parameter, logistic loss, row of norm 1: the integral of the densities' excess."""
    damping = 0.25 / ratio
    claimed = objective_delta(noise, ratio, epsilon)
    for others in ([], [(1.0, 1.0)], [(-1.0, 1.0), (0.5, 0.0)]):
        for y in (0.0, 1.0):
            one, other, step = densities(others, (1.0, y), damping, noise)
            for p, q in ((one, other), (other, one)):
                met = np.maximum(p - math.exp(epsilon) * q, 0).sum() * step
                assert met <= claimed * (1 + 1e-6) + 1e-9


ORDERS = np.array([1.01, 1.5, 2.0, 4.0, 16.0, 64.0])


def exact_renyi(p, q, step, orders):
    with np.errstate(divide="ignore"):
        log_p, log_q = np.log(p), np.log(q)
    seen = np.isfinite(log_p) & np.isfinite(log_q)
    logs = np.multiply.outer(orders, log_p[seen] - log_q[seen]) + log_q[seen]
    return (logsumexp(logs, axis=1) + math.log(step)) / (orders - 1)


@pytest.mark.parametrize("noise", [0.7, 1.5, 4.0])
@pytest.mark.parametrize("ratio", [0.05, 0.4, 0.9])
def test_never_below_the_renyi_divergences_of_a_real_problem(noise, ratio):
    damping = 0.25 / ratio
    for others in ([], [(1.0, 1.0)], [(-1.0, 1.0), (0.5, 0.0)]):
        one, other, step = densities(others, (1.0, 1.0), damping, noise)
        another, _, _ = densities(others, (-1.0, 1.0), damping, noise)
        added = objective_renyi(ORDERS, noise, ratio)
        replaced = objective_renyi(ORDERS, noise, ratio, 2)
        for p, q, claimed in (
            (one, other, added),
            (other, one, added),
            (one, another, replaced),
            (another, one, replaced),
        ):
            assert (exact_renyi(p, q, step, ORDERS) <= claimed + 1e-7).all()


def test_mutant_renyi_divergences_too_small_are_seen():
    one, other, step = densities([], (1.0, 1.0), 2.5, 1.0)
    met = exact_renyi(other, one, step, ORDERS)
    assert (met > objective_renyi(ORDERS, 1.2, 0.1)).any()


def test_several_fits_compose_by_renyi_divergences():
    """Ten fits of epsilon 1 cost about half of the plain sum."""
    one = event(noise=5.6, ratio=0.18, output=166.0, failure=3e-13)
    alone = price(one, 1e-6, ZERO_OUT)[0]
    several = [event(noise=5.6 + 1e-3 * i, ratio=0.18, output=166.0) for i in range(10)]
    for ten in (Composed(((one, 10),)), Composed(tuple((item, 1) for item in several))):
        assert price(ten, 1e-6, ZERO_OUT)[0] < 5.5 * alone
    # Beside what has no Renyi theorem they are still taken together.
    beside = Composed(((one, 10), (PoissonSampled(0.01, Gaussian(5.0)), 1)))
    assert price(beside, 1e-6, REPLACE_ONE)[0] < 6 * price(one, 1e-6, REPLACE_ONE)[0]


def test_failures_are_added_to_delta():
    sure, likely = (Composed(((event(failure=f), 3),)) for f in (0.0, 1e-7))
    model = RDPAccountant()
    for epsilon in (0.2, 1.0):
        failed = 3e-7 * (1 + math.exp(epsilon))
        assert model.delta(likely, epsilon, ZERO_OUT) == pytest.approx(
            model.delta(sure, epsilon, ZERO_OUT) + failed, rel=1e-9
        )
    epsilon = model.epsilon(likely, 1e-5, ZERO_OUT)
    assert model.delta(likely, epsilon, ZERO_OUT) <= 1e-5 * (1 + 1e-9)
    assert model.epsilon(likely, 3e-7, ZERO_OUT) == math.inf
    with pytest.raises(UnknownCost, match="may fail"):
        model.examine(Selected(likely, 2.0), ZERO_OUT)


def test_without_curvature_it_is_twice_the_gaussian_mechanism():
    for epsilon in (0.5, 1.0, 2.0):
        assert objective_delta(3.0, 1e-12, epsilon) == pytest.approx(
            2 * gaussian_delta(1 / 3.0, epsilon), rel=1e-6
        )


def test_delta_falls_with_noise_and_epsilon_and_rises_with_the_ratio():
    noises, ratios = np.geomspace(0.3, 30, 20), np.linspace(0.01, 0.99, 20)
    epsilons = np.linspace(0.01, 8, 40)
    assert (np.diff([objective_delta(s, 0.3, 1.0) for s in noises]) <= 1e-15).all()
    assert (np.diff([objective_delta(2.0, 0.3, e) for e in epsilons]) <= 1e-15).all()
    assert (np.diff([objective_delta(2.0, r, 1.0) for r in ratios]) >= -1e-15).all()


def event(noise=10.0, ratio=0.1, output=100.0, failure=1e-30):
    return ObjectivePerturbed(noise, ratio, output, failure)


def test_the_parts_add_up():
    exact = objective_delta(10.0, 0.1, 1.0)
    whole = price(event(), exact * 1.5, ZERO_OUT)[0]
    assert 0.95 < whole <= 1.2
    from skdp.accounting.objective import ObjectivePerturbationAccountant

    model = ObjectivePerturbationAccountant()
    assert model.delta(event(), 1.0, ZERO_OUT) >= exact
    # A failure that can happen is paid for.
    assert model.delta(event(failure=1e-5), 1.0, ZERO_OUT) >= 1e-5
    # Little noise on the answer is dear.
    assert model.delta(event(output=0.1), 1.0, ZERO_OUT) > 0.5


def test_replace_one_is_group_privacy_for_two():
    from skdp.accounting.objective import ObjectivePerturbationAccountant

    model = ObjectivePerturbationAccountant()
    half = model.delta(event(), 0.5, ZERO_OUT)
    assert model.delta(event(), 1.0, REPLACE_ONE) == pytest.approx((1 + math.exp(0.5)) * half)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_calibration_alone_and_beside_others(adjacency, epsilon):
    one = event(noise=1.0, ratio=0.05)
    alone = calibrate(one, epsilon, 1e-6, adjacency)
    beside = calibrate(Composed(((one, 1), (Gaussian(3.0), 2))), epsilon, 1e-6, adjacency)
    assert alone.accountant in ("objective", "rdp")
    assert beside.accountant in ("mixed", "rdp")
    assert alone.scale < beside.scale
    for found in (alone, beside):
        assert 0.99 * epsilon <= found.epsilon <= epsilon


def test_too_much_curvature_cannot_be_calibrated():
    with pytest.raises(UnknownCost, match="no amount of noise"):
        calibrate(event(ratio=0.9), 0.5, 1e-6, ZERO_OUT)


def test_mutant_noise_too_small_is_seen():
    """With a fifth of the noise on the objective, the real problem is above the claim."""
    one, other, step = densities([], (1.0, 1.0), 2.5, 1.0)
    met = np.maximum(one - math.exp(0.3) * other, 0).sum() * step
    assert met > objective_delta(5.0, 0.1, 0.3)


@pytest.mark.parametrize(
    "fields", [(-1.0, 0.1, 1.0), (1.0, 1.0, 1.0), (1.0, 0.0, 1.0), (1.0, 0.1, math.inf)]
)
def test_impossible_events_are_refused(fields):
    with pytest.raises(ValueError, match="ObjectivePerturbed"):
        ObjectivePerturbed(*fields)
