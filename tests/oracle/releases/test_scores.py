"""Tables of counts and sums of facts: right, and bounded whatever a row holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from skdp._fitting.grouping import rows_in_memory
from skdp._oracle import InfluenceSquares, Public, TableCounts, UnitSum
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.sources.memory import MemorySource
from skdp.accounting import Adjacency
from skdp.objective import Problem, SquaredError

N = 50
CONTEXT = PublicContext(
    Public(N, 2, 1, Adjacency.REPLACE_ONE, 1.0, 1e-6, has_intercept=False),
    Problem(SquaredError(), fit_intercept=False),
    1.0,
)
HOSTILE = [0.0, -0.0, 1.0, -1.0, 0.3, 7.0, 1e300, -1e308, np.inf, -np.inf, np.nan, 5e-324]
STATISTICS = [
    TableCounts(0, np.array([-1.0, 0.0, 2.0])),
    TableCounts(0, np.array([0.5]), 1, 3),
    TableCounts(0, np.zeros(0)),
    TableCounts(0, np.zeros(1), 1, 3, is_divided=True),
    UnitSum(0),
    UnitSum(1),
    InfluenceSquares(np.array([0.5, -2.0]), 0.1),
    InfluenceSquares(np.array([0.0, 1e300]), -1e300),
]


def total(statistic, facts, weights=None):
    with np.errstate(invalid="ignore"):
        rows = MemorySource.of(facts, np.zeros((len(facts), 1)), weights, constant=0.0)
    return statistic.total(rows, CONTEXT)


@pytest.fixture
def facts(rng):
    return rng.standard_normal((N, 2))


@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
def test_no_record_adds_more_than_its_bound(statistic, facts):
    declared = statistic.contribution(CONTEXT, N)
    assert statistic.shape(CONTEXT) == total(statistic, facts).shape
    found = []
    null = np.ones(N)
    null[3] = 0.0
    for value in HOSTILE:
        for group in HOSTILE:
            facts[3] = value, group
            there = total(statistic, facts)
            assert np.isfinite(there).all()
            assert np.abs(there).max() <= declared.total
            part = there - total(statistic, facts, null)
            assert np.linalg.norm(part) <= declared.bound * (1 + 1e-12)
            found.append(part)
    distances = [np.linalg.norm(one - other) for one in found for other in found]
    assert max(distances) <= declared.spread * declared.bound * (1 + 1e-12)


def test_tables_count_by_group_and_interval(rng):
    facts = np.column_stack([rng.normal(size=N), rng.integers(0, 3, N)])
    edges = np.array([-0.5, 0.0, 1.0])
    found = total(TableCounts(0, edges, 1, 3), facts).reshape(3, 4)
    for group in range(3):
        ends = np.concatenate([[-np.inf], edges, [np.inf]])
        expected, _ = np.histogram(facts[facts[:, 1] == group, 0], ends)
        np.testing.assert_array_equal(found[group], expected)
    np.testing.assert_array_equal(total(TableCounts(0, edges), facts), found.sum(axis=0))


def test_rows_are_divided_between_two_cells_of_their_class(rng):
    facts = np.column_stack([rng.uniform(-1, 1, N), rng.integers(0, 3, N)])
    found = total(TableCounts(0, np.zeros(1), 1, 3, is_divided=True), facts).reshape(3, 2)
    for group in range(3):
        values = facts[facts[:, 1] == group, 0]
        assert found[group].sum() == len(values)
        assert found[group, 1] == pytest.approx((1 + values).sum() / 2, abs=N * 2.0**-21)
    with pytest.raises(ValueError, match="single edge"):
        TableCounts(0, np.ones(1), is_divided=True)


@pytest.mark.parametrize("sizes", [(1, 49), (2, 3, 45), (7,) * 7])
def test_a_group_is_divided_like_a_row(facts, sizes):
    """Its parts are not negative and add up to 1 at most, in whichever classes its rows are."""
    facts[:, 1] = np.arange(N) % 3
    facts[::5] = np.resize(HOSTILE, (len(facts[::5]), 2))
    codes = np.resize(np.repeat(np.arange(len(sizes)), sizes), N)
    n_groups = codes.max() + 1
    with np.errstate(invalid="ignore"):
        rows = rows_in_memory(CONTEXT.public, facts, np.zeros((N, 1)), None, codes)
    context = replace(CONTEXT, public=replace(CONTEXT.public, n_rows=n_groups, unit="group"))
    found = TableCounts(0, np.zeros(1), 1, 3, is_divided=True).total(rows, context)
    assert (found >= 0).all()
    assert n_groups - 1e-6 < found.sum() <= n_groups


def test_a_value_at_an_edge_lies_above_it():
    facts = np.array([[0.0, 0.0], [-0.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(total(TableCounts(0, np.array([0.0, 1.0])), facts), [0, 2, 1])


@pytest.mark.parametrize(
    "edges", [[1.0, 0.0], [0.0, 0.0], [np.nan], [np.inf], [[0.0, 1.0]]], ids=str
)
def test_edges_must_be_finite_and_increase(edges):
    with pytest.raises(ValueError, match="edges"):
        TableCounts(0, np.array(edges))


@pytest.mark.parametrize(
    "statistic",
    [UnitSum(2), TableCounts(-1, np.zeros(1)), InfluenceSquares(np.ones(3), 0.0)],
    ids=str,
)
def test_a_fact_that_is_not_there_is_refused(statistic, facts):
    with pytest.raises(ValueError, match=r"2 facts about a row.*Nothing was released"):
        total(statistic, facts)
