"""Rounding errors of sums are charged for as many additions as a pass makes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from skdp._oracle import (
    CappedHessian,
    Coordinates,
    GradientDifference,
    GradientSum,
    GramSum,
    LogisticStep,
    MagnitudeCounts,
    Public,
    PublicContext,
    ScoreSquares,
    ShrunkGradientSum,
    TableCounts,
    gradient_weight,
)
from skdp._oracle.kernels.clipped_gradients import gradient_rounding
from skdp._oracle.releases.base import Contribution
from skdp._oracle.releases.mechanisms import GaussianNoise, LaplaceNoise
from skdp._oracle.sources.base import added_in_pairs
from skdp._oracle.sources.records import Records
from skdp._oracle.sources.row_blocks import PAIRED_SUMS, part_rows, row_parts, summation_depth
from skdp.accounting import Adjacency
from skdp.objective import Logistic, Problem, SquaredError


def longest_chain(n_rows, n_features, blocks):
    """Additions: of the rows of a block, of the blocks of a part, and of parts in pairs."""
    longest, column = 0, np.broadcast_to(0.0, n_rows)
    for dtype in (np.float32, np.float64):
        X = np.broadcast_to(dtype(0), (n_rows, n_features))
        records = Records(X, column[:, None], None, None, column, 1.0)
        parts = [[block.n_rows for block in blocks(records[part])] for part in records.parts()]
        assert sum(map(sum, parts)) == n_rows
        in_part = max(max(sizes) + len(sizes) for sizes in parts)
        longest = max(longest, in_part + added_in_pairs(Addend() for _ in parts).additions)
    return longest


@pytest.mark.parametrize("n_outputs", [1, 30])
@pytest.mark.parametrize("n_features", [1, 3, 400])
def test_rounding_is_charged_for_as_many_rows_as_are_summed_at_once(n_features, n_outputs):
    """Whatever stands next to the columns."""
    n_rows = 2**23 if n_features < 400 else 2**16
    public = Public(
        n_rows, n_features, n_outputs, Adjacency.ZERO_OUT, 1.0, 1e-6, data_norm=1.0, row_bound=1.0
    )
    context = PublicContext(public, Problem(Logistic()), 1.0)
    zero, turned = np.zeros(public.shape), Coordinates(np.eye(n_features + 1))
    of_gradients, of_moments = (
        longest_chain(n_rows, n_features, blocks)
        for blocks in (Records.cached_blocks, Records.float64_blocks)
    )
    for statistic, exact, chain in (
        (GradientSum(zero, 1.0), 1.0, of_gradients),
        (GradientSum(zero, 1.0, order=1), 1.0, of_gradients),
        (GradientDifference(zero + 1e9, zero, 1.0), 1.0, of_gradients),
        (ShrunkGradientSum(zero, turned, 1.0, 1.0), 1.0, of_gradients),
        (GramSum(1.0), 1.0, of_moments),
        (CappedHessian(zero, turned, 1.0, 2.0), Logistic().weight_bound, of_moments),
        (ScoreSquares(zero, turned, 1.0, 2.0), 4.0, of_moments),
        (LogisticStep(zero, turned, 1.0, 2.0), gradient_weight(Logistic()), of_moments),
    ):
        slack = statistic.contribution(context, n_rows).bound / exact - 1
        assert slack >= 2 * chain * n_rows * 2.0**-53, type(statistic).__name__


@pytest.mark.parametrize("rows_per_group", [None, 4.0])
def test_the_rounding_of_a_records_own_norm_is_charged_for(rows_per_group):
    """A sum of k squares is off by k roundings, its root by half of that (Higham 2002, sec. 3.1).

    The norm of a row has as many as there are columns, that of a mean gradient, which is no product
    of two vectors, as many as there are coordinates.
    """
    n_features, n_outputs, unit = 10**5, 30, "row" if rows_per_group is None else "group"
    public = Public(
        1, n_features, n_outputs, Adjacency.ZERO_OUT, 1.0, 1e-6,
        unit=unit, rows_per_group=rows_per_group,
    )  # fmt: skip
    context = PublicContext(public, Problem(SquaredError()), 1.0)
    zero = np.zeros(public.shape)
    terms = zero.size if public.clips_means else n_features
    found = [GradientSum(zero, 1.0)] + [GradientSum(zero, 1.0, order=1)] * (unit == "row")
    for statistic in (*found, GramSum(1.0)):
        own = terms if type(statistic) is GradientSum else n_features
        if type(statistic) is GramSum:  # the square of a norm is off by twice as much
            own *= 2
        assert statistic.contribution(context, 1).bound - 1 >= own * 2.0**-53


@pytest.mark.parametrize("unit", ["row", "group"])
def test_the_rounding_of_other_coordinates_is_charged_for(unit):
    """Of the norms of all rows there, which n places may round in another way, and of T' g."""
    n_rows, size = 2**16, 800
    public = Public(n_rows, size, 1, Adjacency.ZERO_OUT, 1.0, 1e-6, has_intercept=False, unit=unit)
    context = PublicContext(public, Problem(SquaredError(), fit_intercept=False), 1.0)
    turned = Coordinates(np.diag(np.geomspace(1, 100, size)))
    zero = np.zeros(public.shape)
    plain, moved = (
        one.contribution(context, n_rows).bound - 1
        for one in (GradientSum(zero, 1.0), ShrunkGradientSum(zero, turned, 1.0, 1.0))
    )
    condition = np.linalg.norm(turned.matrix)  # the least singular value is 1
    norms, product = 2 * n_rows * (size + 4), 2 * n_rows * size
    assert moved >= plain + condition * (plain + (norms + product) * 2.0**-53)


def test_the_grid_is_charged_for_in_the_norm_of_the_noise():
    """Rounding moves each of so many coordinates by a cell between two runs: all of them, in L1."""
    for noise, moved in ((GaussianNoise(2.0), np.sqrt), (LaplaceNoise(2.0), float)):
        sums = Contribution(1.0, 2.0, size=10_000, total=1e6, order=noise.order)
        charged = noise.std(sums, 3.0) / 6.0
        if noise.order == 1:
            charged /= np.sqrt(2)
        assert charged >= (1 + noise._grid(sums, 3.0) * moved(10_000)) * (1 - 1e-15)


def test_bounds_that_are_roots_are_rounded_up(rng):
    """That of histograms is the root of the number of columns; two are sqrt(2) of it apart."""
    for n_features in rng.integers(1, 6000, 200).tolist():
        public = Public(9, n_features, 1, Adjacency.ZERO_OUT, 1.0, 1e-6)
        context = PublicContext(public, Problem(SquaredError()), 1.0)
        found = MagnitudeCounts(True, False).contribution(context, 9)
        assert Fraction(found.bound) ** 2 >= n_features
        for one in (found, TableCounts(0, np.zeros(1)).contribution(context, 9)):
            assert Fraction(one.spread) ** 2 >= 2
        assert Fraction(GramSum(1.0).contribution(context, 9).spread) ** 2 >= 2


class Addend:
    """A number that knows how many additions one of its terms has gone through."""

    def __init__(self, additions=0):
        self.additions = additions

    def __add__(self, other):
        return Addend(1 + max(self.additions, other.additions))


@pytest.mark.parametrize("n_features", [1, 3, 400, 5000])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_rounding_is_charged_for_any_number_of_rows(n_features, is_sparse):
    """Parts have a fixed size; sums of parts are added up in pairs."""
    most = part_rows(n_features, is_sparse)
    for n_rows in (most // 5, most, 7 * most + 3, 1000 * most):
        parts = row_parts(n_rows, n_features, is_sparse)
        assert max(part.stop - part.start for part in parts) <= most
        assert parts[-1].stop == n_rows
    for n_parts in (2, 3, 1000, 2**16 - 1):
        found = added_in_pairs(Addend() for _ in range(n_parts)).additions
        assert found <= 2 * np.log2(n_parts)
    # No machine has more rows than 2**63.
    assert PAIRED_SUMS >= 2 * 63
    unlimited = summation_depth(2**62, n_features, is_sparse, grouped=False)
    assert summation_depth(1, n_features, is_sparse, grouped=True) == unlimited


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("is_sparse", "most"), [(False, 2e-3), (True, 7e-3)])
def test_a_hundred_million_rows_cost_hardly_any_noise_for_rounding(is_sparse, most, grouped):
    for n_features in (1, 20, 300, 3000):
        assert gradient_rounding(10**8, n_features, 1, is_sparse, grouped) < most
