"""Counts and bounded sums: right, bounded whatever a row holds, and on the rows they name."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from skdp.accounting import Adjacency, Composed, Gaussian, OnBlock, Partition, price
from skdp.objective import Logistic, Multinomial, Problem, SquaredError
from skdp.oracle import (
    Cut,
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
    residuals = loss.residual(full @ point, y) * (1 if weights is None else weights[:, None])
    sizes = np.linalg.norm(residuals, axis=1)
    gradients = sizes * np.linalg.norm(full, axis=1)
    given_X = {"dense": X, "float32": X.astype(np.float32), "csr": sparse.csr_array(X)}[kind]
    terms = PublicContext(public_for(n_outputs, sparse=kind == "csr"), Problem(loss), 1.0)
    rows = make_rows(
        given_X, y.astype(np.float32) if kind == "float32" and n_outputs == 1 else y, weights
    )
    for limit in np.quantile(sizes, [0.1, 0.5, 0.93]) + 1e-3:
        assert ResidualCount(point, limit).total(rows, terms) == (sizes <= limit).sum()
    for limit in np.quantile(gradients, [0.1, 0.5, 0.93]) + 1e-3:
        assert GradientCount(point, limit).total(rows, terms) == (gradients <= limit).sum()
    squares = np.minimum(1, np.sum(full**2, axis=1) / 9.0)
    found = SquaredNormSum(3.0).total(rows, terms)
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
    terms = PublicContext(public_for(), Problem(SquaredError()), 1.0)
    X[place], y[place], weights[place] = row, target, weight
    with_it = make_rows(X.copy(), y.copy(), weights.copy())
    X[place], y[place], weights[place] = 0.0, 0.0, 0.0
    without = make_rows(X, y, weights)
    for what in sums(point):
        bound = what.contribution(terms, N)
        moved = abs(what.total(with_it, terms) - what.total(without, terms))
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
    def weighted(self, loss, point, limit):
        return float(self._weights.sum())

    monkeypatch.setattr(MemorySource, "count_residuals", weighted)
    assert max(moves([1.0, 0.0, 0.0], 0.0, 40.0, 3)) > 1


def test_an_understated_sensitivity_is_caught(monkeypatch):
    from skdp.oracle.releases.mechanisms import Contribution

    monkeypatch.setattr(
        "skdp.oracle.releases.counts._Count.contribution",
        lambda self, terms, n_rows: Contribution(0.5, 1.0, 1, float(n_rows)),
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
    terms = PublicContext(public_for(), Problem(SquaredError()), 1.0)
    rows = make_rows(np.zeros((N, D)), np.zeros((N, 1)))
    with pytest.raises(ValueError, match="shape"):
        make(np.zeros((D, 1)), 1.0).total(rows, terms)


def test_a_noisy_count_has_the_promised_noise():
    terms = PublicContext(public_for(), Problem(SquaredError()), 2.0)
    rows = make_rows(np.zeros((N, D)), np.zeros((N, 1)))
    release = NoisyStatistic(ResidualCount(np.zeros((D + 1, 1)), 1.0), GaussianNoise(1.5))
    source = noise_source(0)
    answers = np.array([release.answer(rows, terms, source)[0] for _ in range(4000)])
    assert abs(answers.mean() - N) < 4 * 3 / np.sqrt(4000)
    assert abs(answers.std() / 3 - 1) < 0.05
    assert release.event(terms) == Gaussian(1.5, spread=1.0)


# ---------------------------------------------------------------------- cuts

CUTS = (0, 0, 7, 8, 30, 40)


def numbered():
    return make_rows(np.arange(N, dtype=float)[:, None] @ np.ones((1, D)), np.zeros((N, 1)))


def drawn(rows, cuts, index, source, epoch=0):
    return set(Cut(epoch, cuts, index).draw(rows, source)._X[:, 0].astype(int).tolist())


def test_blocks_of_a_cut_are_disjoint_and_hold_every_row():
    rows, source = numbered(), noise_source(0)
    blocks = [drawn(rows, CUTS, index, source) for index in range(len(CUTS) - 1)]
    assert [len(block) for block in blocks] == [0, 7, 1, 22, 10]
    assert all(not a & b for a, b in itertools.combinations(blocks, 2))
    assert set().union(*blocks) == set(range(N))


def test_a_cut_is_drawn_once_and_not_gone_back_to():
    rows, source = numbered(), noise_source(0)
    first = drawn(rows, CUTS, 3, source)
    assert drawn(rows, CUTS, 1, source)
    assert drawn(rows, CUTS, 3, source) == first
    assert drawn(rows, CUTS, 3, source, epoch=1) != first
    with pytest.raises(ValueError, match="drawn once"):
        drawn(rows, CUTS, 3, source)


def test_blocks_of_other_cuts_add_up():
    """They overlap, so they are not blocks of one partition, though they are as many."""
    public = public_for()
    inner = Gaussian(1.0)
    one, other = Cut(0, (0, 20, 40), 0), Cut(0, (0, 10, 40), 1)
    same = Composed.of([one.event(inner, public), Cut(0, (0, 20, 40), 1).event(inner, public)])
    different = Composed.of([one.event(inner, public), other.event(inner, public)])
    once, _ = price(inner, 1e-6, Adjacency.ZERO_OUT)
    twice, _ = price(Composed(((inner, 2),)), 1e-6, Adjacency.ZERO_OUT)
    assert price(same, 1e-6, Adjacency.ZERO_OUT)[0] == pytest.approx(once)
    assert price(different, 1e-6, Adjacency.ZERO_OUT)[0] == pytest.approx(twice)
    assert one.event(inner, public) == OnBlock(Partition(0, 2, cuts=(0, 20, 40)), 0, inner)


@pytest.mark.parametrize(
    "arguments", [(-1, (0, 1), 0), (0, (0, 1), 1), (0, (0, 3, 2), 0), (0, (-1, 2), 0), (0, (0,), 0)]
)
def test_impossible_cuts_are_refused(arguments):
    with pytest.raises(ValueError, match="Cut"):
        Cut(*arguments)


def test_a_cut_beyond_the_rows_is_refused():
    with pytest.raises(ValueError, match="number of rows"):
        Cut(0, (0, N + 1), 0).event(Gaussian(1.0), public_for())
    with pytest.raises(ValueError, match="cuts"):
        Partition(0, 2, cuts=(0, 1))


# ---------------------------------------------------------------------- null records


@pytest.mark.parametrize("name", LOSSES)
def test_a_null_record_adds_nothing(rng, name):
    """What amplification by sampling rests on under zero-out: absent, not merely bounded."""
    loss = LOSSES[name]
    X, y, n_outputs = problem_data(loss, rng)
    terms = PublicContext(public_for(n_outputs), Problem(loss), 1.0)
    point, weights = rng.standard_normal((D + 1, n_outputs)), np.zeros(N)
    for what in (ResidualCount(point, 1e9), GradientCount(point, 1e9), SquaredNormSum(1e-9)):
        assert what.total(make_rows(X, y), terms) == N
        assert what.total(make_rows(X, y, weights), terms) == 0
        one = weights.copy()
        one[3] = 2.0
        assert what.total(make_rows(X, y, one), terms) == 1


def test_many_blocks_of_one_cut_share_their_places():
    """Each place is looked at once a cut, not once a block: time is not in their square."""
    places = tuple(range(0, 10**6, 7))
    first, other = Cut(0, places, 0), Cut(0, tuple(map(np.int64, places)), 5)
    assert first.cuts is other.cuts
    assert all(type(place) is int for place in other.cuts[:9])
    with pytest.raises(TypeError):
        Cut(0, (0.5, 1), 0)
