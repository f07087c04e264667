"""Histograms of all columns: bounds by enumeration of neighbours, and counts by plain numpy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

from skdp._oracle import BinCounts, MagnitudeCounts, Public
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.releases.histograms import (
    BEYOND,
    BLOCK,
    BLOCKS,
    DIGIT,
    FAR,
    N_NEAR,
    SIDE,
    STEPS,
    logarithms,
    weight_of,
)
from skdp._oracle.sources.memory import MemorySource
from skdp._oracle.sources.records import Groups
from skdp.accounting import Adjacency
from skdp.objective import Problem, SquaredError

N_FEATURES, N_OUTPUTS, N_BINS = 2, 1, 3
VALUES = [0.0, -0.0, 1.0, -3.0, 1e300, 5e-324]
SELECTIONS = [(True, False), (False, True), (True, True)]


def context_for(n_rows, n_features=N_FEATURES, **facts):
    facts = {"weighted": True, **facts}
    public = Public(n_rows, n_features, N_OUTPUTS, Adjacency.ZERO_OUT, 1.0, 1e-6, **facts)
    return PublicContext(public, Problem(SquaredError()), 1.0)


def statistics(features, targets):
    """Both kinds."""
    n_columns = N_FEATURES * features + N_OUTPUTS * targets
    low, width = np.array([-1.0, 0.0, -2.0]), np.array([1.0, 0.5, 2.0])
    yield MagnitudeCounts(features, targets)
    yield BinCounts(features, targets, low[:n_columns], width[:n_columns], N_BINS)


def totals_of_single_rows(statistic):
    """What each row of a grid of values adds, and last what a null row does."""
    grid = np.array(list(itertools.product(VALUES, repeat=N_FEATURES + N_OUTPUTS)))
    for row, weight in [*((row, 1.0) for row in grid), (grid[-1], 0.0)]:
        X, y = row[None, :N_FEATURES], row[None, N_FEATURES:]
        yield statistic.total(MemorySource.of(X, y, np.array([weight])), context_for(1))


def test_counts_are_kept_for_equal_ranges_alone(rng):
    """A sum that was kept is that of the same request, whatever becomes of the answers."""
    X, y = rng.standard_normal((30, N_FEATURES)), rng.standard_normal((30, N_OUTPUTS))
    groups, context = Groups.of(np.arange(30), 30), context_for(30, unit="group")
    rows = MemorySource(MemorySource.of(X, y).records, groups=groups)
    low, width = np.full(N_FEATURES, -1.0), np.full(N_FEATURES, 0.5)
    for targets, start, step in itertools.product((False, True), (0.0, 0.0, 0.4), (1.0, 1.0, 2.0)):
        about = (start + low)[: None if not targets else 1], step * width[: 1 if targets else None]
        request = BinCounts(not targets, targets, *about, N_BINS)
        afresh = request.total(MemorySource.of(X, y), context)
        answer = request.total(rows, context)
        assert (answer == afresh).all()
        answer += 1.0


@pytest.mark.parametrize(("features", "targets"), SELECTIONS)
def test_bounds_are_attained_by_neighbours_and_never_exceeded(features, targets):
    """Sums over rows: neighbours differ by what one row adds, and what it is replaced by adds."""
    for statistic in statistics(features, targets):
        contribution = statistic.contribution(context_for(1), 1)
        added = np.array([total.ravel() for total in totals_of_single_rows(statistic)])
        assert not added[-1].any()
        by_zero_out = np.linalg.norm(added, axis=1).max()
        distinct = np.unique(added, axis=0)
        by_replacement = max(np.linalg.norm(distinct - one, axis=1).max() for one in distinct)
        assert contribution.bound * (1 - 1e-14) <= by_zero_out <= contribution.bound
        longest = contribution.spread * contribution.bound
        assert longest * (1 - 1e-14) <= by_replacement <= longest
        assert contribution.size == added.shape[1] == math.prod(statistic.shape(context_for(1)))


@pytest.mark.parametrize(("features", "targets"), SELECTIONS)
def test_a_group_moves_counts_by_no_more_than_a_row(rng, features, targets):
    X, y = rng.choice(VALUES, (60, N_FEATURES)), rng.choice(VALUES, (60, N_OUTPUTS))
    groups = Groups.of(rng.integers(7, size=60), 7)
    for statistic in statistics(features, targets):
        bound = statistic.contribution(context_for(7, unit="group"), 7).bound

        def total(weights, statistic=statistic):
            rows = MemorySource(MemorySource.of(X, y, weights).records, groups=groups)
            return statistic.total(rows, context_for(7, unit="group"))

        for i in range(7):
            weights = np.ones(60)
            weights[groups.order[groups.edges[i] : groups.edges[i + 1]]] = 0.0
            assert 0 < np.linalg.norm(total(np.ones(60)) - total(weights)) <= bound


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_sparse_rows_of_groups_that_count_for_nothing_add_nothing(rng, weight):
    """A whole part of the rows may have weight 0, or store no entry."""
    X = sparse.csr_array(weight * rng.choice(VALUES[:-1], (60, N_FEATURES)))
    records = MemorySource.of(X, np.zeros((60, N_OUTPUTS)), np.full(60, weight)).records
    rows = MemorySource(records, groups=Groups.of(np.arange(60) // 3, 20))
    context = context_for(20, unit="group", sparse=True)
    counts = next(statistics(True, False)).total(rows, context)
    assert (counts > 0).any() == (weight > 0)


@pytest.mark.parametrize("kind", ["dense", "float32", "csr"])
def test_counts_are_those_of_plain_numpy(rng, either_way, kind):
    """Columns of X come first, then targets; rows of weight 0 are left out."""
    n_rows = 500
    X = np.where(rng.random((n_rows, 2)) < 0.4, 0.0, rng.standard_normal((n_rows, 2)))
    X = X.astype(np.float32).astype(np.float64)
    y, weights = 3 * rng.standard_normal((n_rows, 1)), rng.choice([0.0, 0.5, 2.0], n_rows)
    given = {"dense": X, "float32": X.astype(np.float32), "csr": sparse.csr_array(X)}[kind]
    rows, context = MemorySource.of(given, y, weights), context_for(n_rows, sparse=kind == "csr")
    columns = np.hstack([X, y])[weights > 0].T
    magnitudes, bins = (one.total(rows, context) for one in statistics(True, True))
    edges = np.concatenate(([0.0], 4.0 ** np.arange(1 - STEPS, STEPS)))
    for column, found in zip(columns, magnitudes, strict=True):
        sizes = np.append(edges, np.inf)
        above, below = (np.histogram(one[one > 0], sizes)[0] for one in (column, -column))
        expected = [*below[::-1], np.sum(column == 0), *above]
        np.testing.assert_array_equal(found[:N_NEAR], expected)
        assert not found[N_NEAR:].any()
    low, width = (-1.0, 0.0, -2.0), (1.0, 0.5, 2.0)
    for j, column in enumerate(columns):
        inner = low[j] + width[j] * np.arange(1, N_BINS)
        expected = np.bincount(np.searchsorted(inner, column, side="right"), minlength=N_BINS)
        np.testing.assert_array_equal(bins[j], expected)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_two_digits_of_a_far_value_are_its_sign_and_step(either_way, kind):
    steps = np.concatenate([np.arange(-511, -STEPS), np.arange(STEPS, BEYOND)])
    for sign in (-1, 1):
        X = kind(sign * 3.0 * 4.0 ** steps[:, None])
        rows, context = MemorySource.of(X, np.zeros((len(steps), 1))), context_for(1, 1)
        (found,) = MagnitudeCounts(True, False).total(rows, context)
        assert not found[:N_NEAR].any()
        digits = np.bincount(steps % SIDE, minlength=SIDE)
        none = np.zeros(SIDE)
        expected = [digits, none] if sign < 0 else [none, digits]
        np.testing.assert_array_equal(found[FAR], DIGIT * np.concatenate(expected))
        places = (steps // STEPS)[:, None] == BLOCKS
        np.testing.assert_array_equal(found[BLOCK], DIGIT * places.sum(axis=0))
        assert np.unique(np.column_stack([steps // STEPS, steps % SIDE]), axis=0).shape == (
            len(steps),
            2,
        )


@pytest.mark.parametrize(
    ("low", "width", "n_bins"),
    [([np.nan], [1.0], 3), ([0.0], [np.inf], 3), ([0.0], [0.0], 3), ([0.0], [1.0], 0)],
)
def test_wrong_bins_are_refused(low, width, n_bins):
    with pytest.raises(
        ValueError, match=r"BinCounts: (the (low|width) must be finite|widths must be positive)"
    ):
        BinCounts(False, True, low, width, n_bins)


def test_edges_of_another_number_of_columns_are_refused():
    statistic = BinCounts(True, True, np.zeros(2), np.ones(2), N_BINS)
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        statistic.shape(context_for(5))


def test_weights_come_back_from_their_logarithms():
    weights = np.array([1e-300, 0.75, 1.0, 1.5, 1e6, 1.7e308])
    found = [weight_of(one) for one in logarithms(weights)]
    np.testing.assert_allclose(found, weights, rtol=1e-9)
    assert weight_of(1e4) == np.finfo(float).max
    assert weight_of(-1e4) == 5e-324
