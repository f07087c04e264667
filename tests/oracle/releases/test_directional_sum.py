"""Sums of derivatives along a direction, or a tail: a plain loop, bounds, mutants, refusals."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import pdist

from skdp.accounting import Adjacency, Gaussian
from skdp.objective import Huber, Logistic, Multinomial, Problem, SquaredError
from skdp.oracle import (
    DirectionalSum,
    GaussianNoise,
    NoisyStatistic,
    NotAudited,
    Oracle,
    Public,
    TailSum,
    noise_source,
)
from skdp.oracle.ledger import Ledger, PrivacyFilter
from skdp.oracle.releases import directional
from skdp.oracle.releases.base import PublicContext
from skdp.oracle.sources import block_sizes
from skdp.oracle.sources.base import RepeatableSource
from skdp.oracle.sources.memory import MemorySource

pytestmark = pytest.mark.usefixtures("either_way")

N, D, SIZE, ROW_BOUND = 40, 3, 0.8, 5.0
LOSSES = {"logistic": Logistic(), "squared": SquaredError(), "multinomial": Multinomial(3)}
LOW, HIGH = np.array([-0.5, -2.0, 0.1]), np.array([0.5, 1.0, 3.0])
ALONG, WITH_SHIFT, TAILS = "along", "with a shift", "tails"
CASES = [
    ("logistic", ALONG),
    ("logistic", WITH_SHIFT),
    ("squared", WITH_SHIFT),
    ("multinomial", ALONG),
    ("logistic", TAILS),
    ("squared", TAILS),
    ("multinomial", TAILS),
]
cases = pytest.mark.parametrize(("name", "form"), CASES)


def statistic_of(form, point, direction, clip_norm):
    if form == TAILS:
        return TailSum(point, LOW, HIGH, ROW_BOUND / 2, clip_norm)
    return DirectionalSum(point, direction, clip_norm, form == WITH_SHIFT)


def context_for(loss, n_rows=N, **facts):
    outputs = loss.n_outputs or 1
    public = Public(n_rows, D, outputs, Adjacency.ZERO_OUT, 1.0, 1e-6, row_bound=ROW_BOUND, **facts)
    return PublicContext(public, Problem(loss), 1.0)


def rows_of(X, y, weights=None, spread=map):
    return MemorySource.of(X, y, weights, ROW_BOUND, SIZE, spread)


def targets_of(loss, numbers):
    """Valid targets made of any numbers."""
    if isinstance(loss, Multinomial):
        return np.asarray(np.clip(np.abs(numbers), 0, 2), dtype=int)
    return np.asarray(numbers if loss.quadratic else numbers > 0, dtype=float)[:, None]


def problem_data(loss, rng):
    X = rng.standard_normal((N, D)) * rng.choice([0.3, 1, 10], (N, 1))
    shape = D + 1, loss.n_outputs or 1
    y = targets_of(loss, 2 * rng.standard_normal(N))
    return X, y, rng.standard_normal(shape), rng.standard_normal(shape)


# ---------------------------------------------------------------------- what it sums


@pytest.mark.parametrize("layout", ["dense", "float32", "sparse"])
@pytest.mark.parametrize("weighted", [False, True])
@cases
def test_the_sum_is_that_of_a_plain_loop(rng, monkeypatch, name, form, weighted, layout):
    monkeypatch.setattr(block_sizes, "BLOCK_BYTES", 16 * D * 8)
    loss, clip_norm = LOSSES[name], 0.9
    X, y, point, direction = problem_data(loss, rng)
    X = np.float32(X).astype(float)
    weights = rng.choice([0.0, 0.5, 1.0, 9.0], N) if weighted else None
    Z = X * np.minimum(1, ROW_BOUND / np.linalg.norm(X, axis=1))[:, None]
    Z = np.column_stack([Z, np.full(N, SIZE)])
    cut = np.clip(X, LOW, HIGH)
    cut *= np.minimum(1, ROW_BOUND / 2 / np.maximum(np.linalg.norm(cut, axis=1), 1e-300))[:, None]
    cut = np.column_stack([cut, np.full(N, SIZE)])
    plain = np.zeros(5 if form == WITH_SHIFT else 2)
    for i in range(N):
        weight = np.ones(1) if weights is None else weights[[i]]
        where, along = Z[[i]] @ point, Z[[i]] @ direction
        if form == TAILS:
            where, along = cut[[i]] @ point, (Z - cut)[[i]] @ point
        vector = directional.derivatives(loss, where, along, y[[i]], weight, form == WITH_SHIFT)[0]
        plain += vector * min(1, clip_norm / max(np.linalg.norm(vector), 1e-300))
    convert = {"dense": np.asarray, "float32": np.float32, "sparse": sparse.csr_array}[layout]
    targets = y.astype(np.float32) if layout == "float32" and y.dtype == float else y
    statistic = statistic_of(form, point, direction, clip_norm)
    context = context_for(loss, weighted=weighted, sparse=layout == "sparse")
    found = statistic.total(rows_of(convert(X), targets, weights), context)
    assert found.shape == statistic.shape(context)
    np.testing.assert_allclose(found, plain, rtol=1e-5, atol=1e-5)


@cases
def test_layouts_parts_and_threads_agree(rng, monkeypatch, name, form):
    loss = LOSSES[name]
    X, y, point, direction = problem_data(loss, rng)
    X[rng.random(X.shape) < 0.4] = 0.0
    weights = rng.choice([0.0, 0.5, 1.0, 9.0], N)
    statistic, context = (
        statistic_of(form, point, direction, 0.9),
        context_for(loss, weighted=True),
    )
    whole = statistic.total(rows_of(X, y, weights), context)
    other = statistic.total(rows_of(sparse.csr_array(X), y, weights), context)
    np.testing.assert_allclose(other, whole, rtol=1e-12)
    monkeypatch.setattr(block_sizes, "PART_BYTES", 5 * D * 8)
    assert len(rows_of(X, y).records.parts()) > 5
    in_parts = statistic.total(rows_of(X, y, weights), context)
    np.testing.assert_allclose(in_parts, whole, rtol=1e-12)
    with ThreadPoolExecutor(3) as pool:
        threaded = statistic.total(rows_of(X, y, weights, pool.map), context)
    assert (threaded == in_parts).all()


# ---------------------------------------------------------------------- what one record may do

HOSTILE = [0.0, -0.0, 1.0, -3.0, 1e5, 1e154, 1e300, -1e300, 1.7e308, 1e-310, 5e-324]
WEIGHTS = [0.0, 5e-324, 1.0, 40.0, 1e12, 1e300]


def moves(name, form, records, place=4, reach=1.0, clip_norm=0.7):
    """Largest moves of a sum by one record, in units of the declared bound.

    ``records`` are pairs of (row, target, weight) that stand in one place, in turn. Returned are
    the largest distance to a null record there, and the largest between two of them.
    """
    rng = np.random.default_rng(place)
    loss = LOSSES[name]
    X, y, point, direction = problem_data(loss, rng)
    context = context_for(loss, weighted=True)
    statistic = statistic_of(form, reach * point, reach * direction, clip_norm)
    bound = statistic.contribution(context, N).bound
    assert clip_norm <= bound <= clip_norm * (1 + 1e-12)
    answers = []
    for row, target, weight in [(np.zeros(D), 0.0, 0.0), *records]:
        Z, t, w = X.copy(), y.copy(), np.ones(N)
        Z[place], t[place], w[place] = row, targets_of(loss, np.array([target]))[0], weight
        answers.append(statistic.total(rows_of(Z, t, w), context))
        assert np.isfinite(answers[-1]).all()
    flat = np.reshape(answers, (len(answers), -1))
    return np.linalg.norm(flat - flat[0], axis=1).max() / bound, pdist(flat[1:]).max() / bound


record = st.tuples(
    st.lists(st.sampled_from(HOSTILE) | st.floats(-1e3, 1e3), min_size=D, max_size=D),
    st.sampled_from([0.0, 1.0, -2.0, 1e300, -1e300, 1e-310]),
    st.sampled_from(WEIGHTS),
)


@cases
@settings(max_examples=30, deadline=None)
@given(
    pair=st.tuples(record, record),
    place=st.integers(0, N - 1),
    reach=st.sampled_from([0.0, 1e-200, 1.0, 1e150, 1e300]),
    clip_norm=st.sampled_from([1e-100, 0.3, 3.0, 1e9]),
)
def test_no_record_moves_the_sum_by_more_than_its_bound(name, form, pair, place, reach, clip_norm):
    away, apart = moves(name, form, pair, place, reach, clip_norm)
    assert away <= 1
    assert apart <= 2


def attack(name, form):
    """The largest moves by a fixed set of records that has something for every mistake."""
    rows = [np.array([a, b, 1.0]) for a in (-4.0, 0.1, 1e300) for b in (-3.0, 0.0, 1.7e308)]
    records = [
        (row, target, weight)
        for row in rows
        for target in (0.0, 1.0, 1e300, -50.0)
        for weight in (0.0, 1.0, 1e12)
    ]
    found = [moves(name, form, records, place) for place in range(3)]
    return max(away for away, _ in found), max(apart for _, apart in found)


@cases
def test_the_bounds_are_kept_and_nearly_met(name, form):
    away, apart = attack(name, form)
    assert 0.99 < away <= 1
    assert 1.6 < apart <= 2


def mutant_nothing_clipped(patch):
    patch.setattr(directional, "clipped", lambda vectors, bound: np.nan_to_num(vectors))


def mutant_each_entry_clipped_by_itself(patch):
    def clipped(vectors, bound):
        return np.clip(np.nan_to_num(vectors), -bound, bound)

    patch.setattr(directional, "clipped", clipped)


def mutant_shift_not_clipped(patch):
    original = directional.clipped

    def clipped(vectors, bound):
        finite = np.nan_to_num(vectors)
        return np.hstack([original(finite[:, :2].copy(), bound), finite[:, 2:]])

    patch.setattr(directional, "clipped", clipped)


def mutant_weights_after_the_clip(patch):
    original, clip = directional.derivatives, directional.clipped
    kept = []

    def derivatives(loss, margins, along, targets, weights, with_shift):
        kept.append(weights)
        return original(loss, margins, along, targets, None, with_shift)

    def clipped(vectors, bound):
        return clip(vectors, bound) * kept.pop()[:, None]

    patch.setattr(directional, "derivatives", derivatives)
    patch.setattr(directional, "clipped", clipped)


def mutant_weights_left_out(patch):
    original = directional.derivatives

    def derivatives(loss, margins, along, targets, weights, with_shift):
        return original(loss, margins, along, targets, None, with_shift)

    patch.setattr(directional, "derivatives", derivatives)


def mutant_nan_let_through(patch):
    def clipped(vectors, bound):
        lengths = np.linalg.norm(vectors, axis=1)
        return vectors * np.minimum(1, bound / np.where(lengths > 0, lengths, 1.0))[:, None]

    patch.setattr(directional, "clipped", clipped)


MUTANTS = {name: value for name, value in globals().items() if name.startswith("mutant_")}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("mutant", "form"),
    [(mutant, WITH_SHIFT) for mutant in MUTANTS]
    + [(mutant, TAILS) for mutant in MUTANTS if mutant != "mutant_shift_not_clipped"],
)
def test_mutants_are_caught(monkeypatch, mutant, form):
    MUTANTS[mutant](monkeypatch)
    try:
        away, apart = attack("logistic", form)
    except AssertionError:
        return  # something that is not a number came out
    assert away > 1 or apart > 2, f"{mutant} went unnoticed"


def test_flags_of_the_caller_do_not_matter(rng):
    """A floating-point error that depends on a record must not be raised."""
    loss = Logistic()
    X, y, point, direction = problem_data(loss, rng)
    X[0], X[1], X[2] = 1e300, 5e-324, -1e300
    weights = rng.choice([0.0, 5e-324, 1e300], N)
    with np.errstate(all="ignore"):
        rows = rows_of(X, y, weights)
    with np.errstate(all="raise"):
        for form in (WITH_SHIFT, TAILS):
            statistic = statistic_of(form, point, direction, 1e-3)
            statistic.total(rows, context_for(loss, weighted=True))


# ---------------------------------------------------------------------- what is charged


def test_it_costs_what_a_vector_of_that_bound_costs():
    context = context_for(Logistic())
    statistic = DirectionalSum(np.zeros((D + 1, 1)), np.zeros((D + 1, 1)), 2.5, True)
    release = NoisyStatistic(statistic, GaussianNoise(1.5))
    assert release.event(context) == Gaussian(1.5, spread=2.0)
    assert release.event(context).sensitivity(Adjacency.REPLACE_ONE) == 2.0
    assert release.kind == "calibration"
    assert release.std(context) == pytest.approx(1.5 * 2.5, rel=1e-6)
    source, rows = noise_source(0), rows_of(np.zeros((N, D)), np.zeros((N, 1)), np.zeros(N))
    answers = np.array([release.answer(rows, context, source) for _ in range(2000)])
    assert answers.shape == (2000, 5)
    assert np.std(answers, axis=0) == pytest.approx(1.5 * 2.5, rel=0.07)


# ---------------------------------------------------------------------- what is refused


class NotToBeRead(RepeatableSource):
    """Rows that must not be looked at."""

    n_rows = N

    def total(self, function, *arguments, rows=()):
        raise AssertionError(f"{function.__name__} was asked for")

    per_row = total

    def transformed(self, scaling, row_bound, instead_of=None):
        raise AssertionError("another map was asked for")

    unclipped = fold = transformed


def ask(statistic, loss):
    context = context_for(loss)
    ledger = Ledger(PrivacyFilter(Adjacency.ZERO_OUT))
    oracle = Oracle(context, ledger, np.random.default_rng(0), NotToBeRead(), noise_source(0))
    return oracle.request(NoisyStatistic(statistic, GaussianNoise(2.0)))


def test_wrong_shapes_are_refused_before_any_row_is_read():
    right, wrong = np.zeros((D + 1, 1)), np.zeros((D, 1))
    with pytest.raises(ValueError, match=r"the point must have shape \(4, 1\).*Nothing"):
        ask(DirectionalSum(wrong, right, 1.0), Logistic())
    with pytest.raises(ValueError, match=r"the direction must have shape \(4, 1\).*Nothing"):
        ask(DirectionalSum(right, np.zeros(D + 1), 1.0), Logistic())


def test_ranges_of_other_columns_are_refused_before_any_row_is_read():
    with pytest.raises(ValueError, match=r"low and high must have 3 entries; got \(2,\).*Nothing"):
        ask(TailSum(np.zeros((D + 1, 1)), LOW[:2], HIGH, 1.0, 1.0), Logistic())


def test_rows_within_their_ranges_have_no_tails(rng):
    loss = SquaredError()
    X, y, point, _ = problem_data(loss, rng)
    statistic = TailSum(point, X.min(axis=0), X.max(axis=0), ROW_BOUND, 1.0)
    found = statistic.total(rows_of(X, y), context_for(loss))
    np.testing.assert_allclose(found, 0.0, atol=1e-12)  # norms may be rounded in another way


def test_a_shift_of_several_outputs_is_refused_before_any_row_is_read():
    point = np.zeros((D + 1, 3))
    with pytest.raises(ValueError, match=r"a shift is for one output; got 3.*Nothing"):
        ask(DirectionalSum(point, point, 1.0, with_shift=True), Multinomial(3))


def test_bad_numbers_and_points_are_refused():
    point = np.zeros((D + 1, 1))
    for clip_norm in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="clip_norm must be positive and finite"):
            DirectionalSum(point, point, clip_norm)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="finite"):
            DirectionalSum(np.full_like(point, bad), point, 1.0)
        with pytest.raises(ValueError, match="finite"):
            DirectionalSum(point, np.full_like(point, bad), 1.0)


def test_points_are_copied():
    point, direction = np.zeros((D + 1, 1)), np.ones((D + 1, 1))
    statistic = DirectionalSum(point, direction, 1.0)
    point[:], direction[:] = 9.0, 9.0
    assert not statistic.point.any()
    assert (statistic.direction == 1).all()
    with pytest.raises(ValueError, match="read-only"):
        statistic.direction[0] = 2.0


def test_a_kinked_loss_is_refused(rng):
    X, y, point, direction = problem_data(SquaredError(), rng)
    with pytest.raises(ValueError, match="huber"):
        DirectionalSum(point, direction, 1.0).total(rows_of(X, y), context_for(Huber()))


def test_a_subclass_is_not_audited():
    class Unclipped(DirectionalSum):
        def total(self, rows, context):
            return np.full(2, 1e9)

    point = np.zeros((D + 1, 1))
    with pytest.raises(NotAudited, match="Unclipped is not an audited release"):
        ask(Unclipped(point, point, 1.0), Logistic())
