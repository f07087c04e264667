"""Counts and bounded sums: right, bounded whatever a row holds, and on the rows they name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from skdp.accounting import Adjacency, Gaussian
from skdp.objective import Logistic, Multinomial, Problem, SquaredError
from skdp.oracle import (
    GaussianNoise,
    GradientCount,
    NoisyStatistic,
    Public,
    ResidualCount,
    SquaredNormSum,
    noise_source,
)
from skdp.oracle.releases.base import PublicContext
from skdp.oracle.sources.memory import MemorySource

N, D = 40, 3
HOSTILE = [0.0, -0.0, 1.0, -3.0, 1e5, 1e154, -1e300, 1.7e308, 1e-310, 5e-324]
LOSSES = {"squared": SquaredError(), "logistic": Logistic(), "multinomial": Multinomial(3)}


def public_for(outputs=1, **facts):
    return Public(N, D, outputs, Adjacency.ZERO_OUT, 1.0, 1e-6, row_bound=3.0, **facts)


def make_rows(X, y, weights=None, bound=3.0):
    return MemorySource.of(X, y, weights, bound, 2.5)


def problem_data(loss, rng):
    X = rng.standard_normal((N, D))
    if isinstance(loss, Multinomial):
        return X, rng.integers(3, size=N), 3
    y = (X[:, :1] > 0).astype(float) if isinstance(loss, Logistic) else rng.standard_normal((N, 1))
    return X, y, 1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["dense", "float32", "csr"])
@pytest.mark.parametrize("name", LOSSES)
def test_counts_are_those_of_plain_numpy(rng, name, kind, weighted):
    loss = LOSSES[name]
    X, y, n_outputs = problem_data(loss, rng)
    weights = rng.uniform(0, 2, N) if weighted else None
    point = rng.standard_normal((D + 1, n_outputs))
    norms = np.linalg.norm(X, axis=1)
    full = np.hstack([X * np.minimum(1, 3.0 / norms)[:, None], np.full((N, 1), 2.5)])
    sizes = np.linalg.norm(loss.residual(full @ point, y), axis=1)
    gradients = sizes * np.linalg.norm(full, axis=1) * (1 if weights is None else weights)
    given_X = {"dense": X, "float32": X.astype(np.float32), "csr": sparse.csr_array(X)}[kind]
    context = PublicContext(public_for(n_outputs, sparse=kind == "csr"), Problem(loss), 1.0)
    rows = make_rows(
        given_X, y.astype(np.float32) if kind == "float32" and n_outputs == 1 else y, weights
    )
    for limit in np.quantile(sizes, [0.1, 0.5, 0.93]) + 1e-3:
        assert ResidualCount(point, limit).total(rows, context) == (sizes <= limit).sum()
    for limit in np.quantile(gradients, [0.1, 0.5, 0.93]) + 1e-3:
        assert GradientCount(point, limit).total(rows, context) == (gradients <= limit).sum()
    squares = np.minimum(1, np.sum(full**2, axis=1) / 9.0)
    found = SquaredNormSum(3.0).total(rows, context)
    np.testing.assert_allclose(found, squares.sum(), atol=N * 2.0**-20)


def sums(point):
    yield ResidualCount(point, 0.5)
    yield ResidualCount(point, 1e-300)
    yield GradientCount(point, 0.5)
    yield GradientCount(point, 1e300)
    yield SquaredNormSum(2.0)
    yield SquaredNormSum(1e-200)


def moves(row, target, weight, place, sum_class=None):
    """By how much each sum moves if one record becomes null, in units of its bound."""
    rng = np.random.default_rng(place)
    X, y = rng.standard_normal((N, D)), rng.standard_normal((N, 1))
    weights, point = np.ones(N), rng.standard_normal((D + 1, 1))
    context = PublicContext(public_for(), Problem(SquaredError()), 1.0)
    X[place], y[place], weights[place] = row, target, weight
    with_it = make_rows(X.copy(), y.copy(), weights.copy())
    X[place], y[place], weights[place] = 0.0, 0.0, 0.0
    without = make_rows(X, y, weights)
    for statistic in sums(point):
        bound = statistic.contribution(context, N)
        moved = abs(statistic.total(with_it, context) - statistic.total(without, context))
        yield float(moved[0]) / (bound.spread * bound.bound)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(HOSTILE), min_size=D, max_size=D),
    st.sampled_from(HOSTILE),
    st.sampled_from([0.0, 1.0, 1e6, 1e300]),
    st.integers(0, N - 1),
)
def test_no_record_moves_a_count_by_more_than_its_bound(row, target, weight, place):
    assert max(moves(row, target, weight, place)) <= 1


def test_a_count_that_adds_weights_is_caught(monkeypatch):
    def weighted(records, loss, point, limit, of_gradients):
        return float(records.weights.sum())

    monkeypatch.setattr("skdp.oracle.releases.counts.count_short", weighted)
    assert max(moves([1.0, 0.0, 0.0], 0.0, 40.0, 3)) > 1


def test_an_understated_sensitivity_is_caught(monkeypatch):
    from skdp.oracle.releases.mechanisms import Contribution

    monkeypatch.setattr(
        "skdp.oracle.releases.counts._Count.contribution",
        lambda self, context, n_rows: Contribution(0.5, 1.0, 1, float(n_rows)),
    )
    assert max(max(moves([9.0, 0.0, 0.0], 100.0, 1.0, place)) for place in range(8)) > 1


@pytest.mark.parametrize("make", [ResidualCount, GradientCount])
def test_points_and_limits_are_checked(make):
    point = np.zeros((D + 1, 1))
    for limit in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="limit must be positive"):
            make(point, limit)
    with pytest.raises(ValueError, match="finite"):
        make(np.full((D + 1, 1), np.nan), 1.0)
    context = PublicContext(public_for(), Problem(SquaredError()), 1.0)
    rows = make_rows(np.zeros((N, D)), np.zeros((N, 1)))
    with pytest.raises(ValueError, match="shape"):
        make(np.zeros((D, 1)), 1.0).total(rows, context)


def test_a_noisy_count_has_the_promised_noise():
    context = PublicContext(public_for(), Problem(SquaredError()), 2.0)
    rows = make_rows(np.zeros((N, D)), np.zeros((N, 1)))
    release = NoisyStatistic(ResidualCount(np.zeros((D + 1, 1)), 1.0), GaussianNoise(1.5))
    source = noise_source(0)
    answers = np.array([release.answer(rows, context, source)[0] for _ in range(4000)])
    assert abs(answers.mean() - N) < 4 * 3 / np.sqrt(4000)
    assert abs(answers.std() / 3 - 1) < 0.05
    assert release.event(context) == Gaussian(1.5, spread=1.0)


# ---------------------------------------------------------------------- null records


@pytest.mark.parametrize("name", LOSSES)
def test_a_null_record_adds_nothing(rng, name):
    """What amplification by sampling rests on under zero-out: absent, not merely bounded."""
    loss = LOSSES[name]
    X, y, n_outputs = problem_data(loss, rng)
    context = PublicContext(public_for(n_outputs), Problem(loss), 1.0)
    point, weights = rng.standard_normal((D + 1, n_outputs)), np.zeros(N)
    for statistic in (ResidualCount(point, 1e9), GradientCount(point, 1e9), SquaredNormSum(1e-9)):
        assert statistic.total(make_rows(X, y), context) == N
        assert statistic.total(make_rows(X, y, weights), context) == 0
        one = weights.copy()
        one[3] = 2.0
        assert statistic.total(make_rows(X, y, one), context) == 1
