"""Agreement with the public package dp-accounting, by stored figures and, where installed, live."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from skdp.accounting import (
    Adjacency,
    ApproximateDP,
    Composed,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PLDAccountant,
    PoissonSampled,
    RDPAccountant,
)
from skdp.accounting.rdp import laplace_renyi, poisson_renyi, without_replacement_renyi

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
pld, rdp = PLDAccountant(), RDPAccountant()


def close_to_reference(found, reference):
    """Within 1e-5, or 3e-6 of large figures.

    Below, 2.5e-5 is allowed: for small epsilon the lattice of the reference (1e-5 or 2e-5) adds
    that much to its figures, which are upper bounds as ours are.
    """
    return reference - 2.5e-5 <= found <= reference + max(1e-5, 3e-6 * reference)


@pytest.mark.slow
def test_poisson_samples(golden):
    for row in golden["poisson"]:
        event = PoissonSampled(row["rate"], Gaussian(row["noise_multiplier"]))
        plan = Composed(((event, row["steps"]),))
        for delta, reference in zip(row["deltas"], row["epsilons"], strict=True):
            found = pld.epsilon(plan, delta, Adjacency(row["adjacency"]))
            assert close_to_reference(found, reference), (row, found)


def test_distinct_levels(golden):
    for row in golden["heterogeneous"]:
        plan = Composed(
            tuple(
                (PoissonSampled(row["rate"], Gaussian(noise)), row["steps_each"])
                for noise in row["noise_multipliers"]
            )
        )
        found = pld.epsilon(plan, row["deltas"][0], Adjacency(row["adjacency"]))
        assert found == pytest.approx(row["epsilons"][0], abs=1e-5)


def test_known_guarantees(golden):
    for row in golden["response"]:
        plan = Composed(tuple((ApproximateDP(e, d), count) for e, d, count in row["parts"]))
        found = pld.epsilon(plan, row["delta"], ZERO_OUT)
        assert found == pytest.approx(row["epsilon"], abs=1e-5)


def renyi_of(row, orders):
    if row["kind"] == "laplace":
        return laplace_renyi(orders, row["epsilon"])
    mu = 1 / row["noise_over_sensitivity"]
    bound = poisson_renyi if row["kind"] == "poisson" else without_replacement_renyi
    return bound(orders, mu, row["rate"])


def test_renyi_divergences_on_the_same_orders(golden):
    orders = np.array(golden["orders"])
    whole = orders == np.round(orders)
    for row in golden["renyi"]:
        found, reference = renyi_of(row, orders), np.array(row["divergences"])
        exact = whole if row["kind"] == "poisson" else np.full_like(whole, True)
        np.testing.assert_allclose(found[exact], reference[exact], rtol=1e-6)
        # For Poisson samples at broken orders the reference sums a series that is off by up to 80 %
        # for small costs, always upwards, or gives up (inf); quadrature decides, below.
        assert np.all(found <= reference * (1 + 1e-6))


@pytest.mark.parametrize("rate", [0.001, 0.02, 0.3])
@pytest.mark.parametrize("mu", [0.25, 1.0, 1.7])
def test_broken_orders_by_adaptive_quadrature(rate, mu):
    for order in (1.25, 2.5, 4.75):

        def excess(x, order=order):
            shifted = mu * x - mu**2 / 2
            density = math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
            return density * math.expm1(order * math.log1p(rate * math.expm1(shifted)))

        moment, _ = quad(excess, -30, 40, points=[0.0, order * mu], limit=500, epsabs=1e-14)
        expected = math.log1p(moment) / (order - 1)
        found = poisson_renyi(np.array([order]), mu, rate)[0]
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-10)


def test_live_pld():
    dpa = pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant as Reference

    relations = {
        ZERO_OUT: dpa.NeighboringRelation.ADD_OR_REMOVE_ONE,
        REPLACE_ONE: dpa.NeighboringRelation.REPLACE_ONE,
    }
    runs = ((0.02, 0.9, 40), (0.2, 3.0, 25))
    for (adjacency, relation), (rate, noise, steps) in zip(relations.items(), runs, strict=True):
        accountant = Reference(relation)  # at these costs its lattice of 1e-4 adds 1e-6 at most
        event = dpa.PoissonSampledDpEvent(rate, dpa.GaussianDpEvent(noise))
        accountant.compose(event, steps)
        plan = Composed(((PoissonSampled(rate, Gaussian(noise)), steps),))
        found = pld.epsilon(plan, 1e-6, adjacency)
        assert close_to_reference(found, accountant.get_epsilon(1e-6))
    accountant = Reference(relations[ZERO_OUT])
    accountant.compose(dpa.LaplaceDpEvent(3.0), 20)
    found = pld.epsilon(Composed(((Laplace(3.0), 20),)), 1e-6, ZERO_OUT)
    assert close_to_reference(found, accountant.get_epsilon(1e-6))


def test_live_rdp():
    dpa = pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")
    from dp_accounting.rdp import RdpAccountant

    orders = np.array([2.0, 3.0, 5.0, 9.0, 33.0, 65.0])
    cases = {
        ZERO_OUT: (
            PoissonSampled(0.05, Gaussian(1.1)),
            dpa.PoissonSampledDpEvent(0.05, dpa.GaussianDpEvent(1.1)),
            dpa.NeighboringRelation.ADD_OR_REMOVE_ONE,
        ),
        REPLACE_ONE: (
            FixedSizeSampled(50, 1000, Gaussian(2.2)),
            dpa.SampledWithoutReplacementDpEvent(1000, 50, dpa.GaussianDpEvent(1.1)),
            dpa.NeighboringRelation.REPLACE_ONE,
        ),
    }
    for adjacency, (event, reference, relation) in cases.items():
        accountant = RdpAccountant(orders.tolist(), relation)
        accountant.compose(reference, 7)
        found = rdp.divergences(Composed(((event, 7),)), orders, adjacency)
        np.testing.assert_allclose(found, accountant.rdp, rtol=1e-6)


@pytest.mark.slow
def test_live_pld_on_a_grid():
    dpa = pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant as Reference

    for rate in (0.001, 0.05, 0.3):
        for noise in (0.6, 1.5, 4.0):
            for steps in (1, 10, 300):
                accountant = Reference(
                    dpa.NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=2e-5
                )
                event = dpa.PoissonSampledDpEvent(rate, dpa.GaussianDpEvent(noise))
                accountant.compose(event, steps)
                plan = Composed(((PoissonSampled(rate, Gaussian(noise)), steps),))
                for delta in (1e-4, 1e-7):
                    found = pld.epsilon(plan, delta, ZERO_OUT)
                    assert close_to_reference(found, accountant.get_epsilon(delta))
