"""Agreement with the public package dp-accounting, where it is installed."""

import pytest

from costs import by_pairs
from skdp.accounting import (
    Adjacency,
    Composed,
    Gaussian,
    Laplace,
    PoissonSampled,
)

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE


def close_to_reference(found, reference):
    """Within 1e-5, or 3e-6 of large figures.

    Below, 2.5e-5 is allowed: for small epsilon the lattice of the reference (1e-5 or 2e-5) adds
    that much to its figures, which are upper bounds as ours are.
    """
    return reference - 2.5e-5 <= found <= reference + max(1e-5, 3e-6 * reference)


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
        found = by_pairs(plan, 1e-6, adjacency)
        assert close_to_reference(found, accountant.get_epsilon(1e-6))
    accountant = Reference(relations[ZERO_OUT])
    accountant.compose(dpa.LaplaceDpEvent(3.0), 20)
    found = by_pairs(Composed(((Laplace(3.0), 20),)), 1e-6, ZERO_OUT)
    assert close_to_reference(found, accountant.get_epsilon(1e-6))
