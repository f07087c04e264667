"""Lines of a statement: how many steps a release holds, and which rows each of them reads."""

import math

import pytest

import skdp
from skdp.accounting import (
    Cost,
    Gaussian,
    OnBlock,
    Partition,
    gaussian_epsilon,
)
from skdp.accounting.statement import ReleaseRecord
from skdp.solvers import AdaptiveShuffledSGD, ShuffledSGD


@pytest.mark.parametrize(
    ("solver", "told"),
    [
        (ShuffledSGD(max_iter=20), "20 x gradient (disjoint blocks of rows),"),
        (AdaptiveShuffledSGD(max_iter=10), "10 x gradient (disjoint blocks of rows),"),
    ],
)
def test_the_statement_of_a_fit_says_that_blocks_do_not_add_up(solver, told):
    statement = skdp.DPRidge(solver=solver, scaling="none").plan(1000, 3)
    for shown in (str(statement), statement._repr_html_()):
        assert told in shown
        assert "disjoint blocks of rows" in shown
        assert "do not add up: a row is" in shown


def test_blocks_of_two_fits_are_not_taken_for_each_other():
    """A record may lie in the costliest block of each: every fit draws its own division."""

    def fit(*noises):
        records = tuple(
            ReleaseRecord("gram", 1, noise, OnBlock(Partition(0, 2), i, Gaussian(noise, 1.0)))
            for i, noise in enumerate(noises)
        )
        return Cost(records, 1e-6, "zero_out", n=100)

    total = (fit(5.0, 500.0) + fit(500.0, 5.0)).statement()
    assert total.epsilon == pytest.approx(gaussian_epsilon(math.sqrt(2) / 5, 1e-6), rel=1e-3)
