"""Compiled loops over steps: their sums, bounds and noise are those of numpy's steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from skdp.accounting import Adjacency
from skdp.objective import L1, L2, Huber, L2Ball, Logistic, NoPenalty, Problem, SquaredError
from skdp.oracle import (
    AllRows,
    Block,
    Columns,
    FixedSize,
    GaussianNoise,
    GradientSum,
    NoisyStatistic,
    Poisson,
    Public,
    Scaling,
    ShuffledPass,
    SVRGPass,
    compiled,
    noise_source,
)
from skdp.oracle.kernels import difference_steps
from skdp.oracle.kernels.clipped_gradients import (
    TILE_NUMBERS,
    clipped_gradients,
    gradient_rounding,
)
from skdp.oracle.kernels.difference_steps import (
    LARGEST_QUOTIENT,
    DifferenceBounds,
    Move,
    difference_loop,
    sums_of_differences,
)
from skdp.oracle.noise import SeededSource
from skdp.oracle.releases import shuffled_pass, step_noise, svrg_pass
from skdp.oracle.releases.base import PublicContext
from skdp.oracle.releases.shuffled_pass import SingleMove, SingleRows, SingleSteps
from skdp.oracle.sources import memory
from skdp.oracle.sources.memory import Divisions, MemorySource
from two_ways import CLIP, LOSSES, N_COLUMNS, both_ways, sources

pytestmark = pytest.mark.usefixtures("compiled_kernels")

FAR = 2.0**600  # size of a step next to which the point it starts from is nothing


def context_for(records, problem, scale=0.0, row_bound=None, **facts):
    public = Public(
        records.n_rows, records.n_features, 1, Adjacency.REPLACE_ONE, 1.0, 1e-6,
        has_intercept=bool(records.constant), row_bound=row_bound,
        weighted=records.weights is not None, **facts,
    )  # fmt: skip
    return PublicContext(public, problem, scale)


def sum_of_differences(records, loss, anchor, away, batch, bound=CLIP, block_rows=1 << 10, norms=1):
    """The compiled sum over a batch, which is read off a single step."""
    size = len(away)
    inverse = norms * np.minimum(records.inverse_norms, LARGEST_QUOTIENT)
    move = Move(FAR, np.ones(size), np.zeros(size))
    bounds, noise = DifferenceBounds(bound, math.inf, 0.0), (1.0 / bound, None)
    loop = difference_loop(records, loss, inverse, anchor, block_rows, bounds, noise, move)
    there, mean = away.copy(), np.zeros(size)
    assert loop.take(np.asarray(batch), np.array([0, len(batch)]), [1.0], there, mean)
    return -there / (FAR * bound) * bound


def two_points(records):
    """Anchors and ways from them; no margin is a sum of large numbers, which rounding swallows."""
    away = np.zeros(records.n_parameters)
    away[0] = 0.8
    yield np.zeros((records.n_parameters, 1)), away
    yield 0.5 * away[:, None], 0.5 * away


# ---------------------------------------------------------------- sums


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_agree_within_what_rounding_is_charged_for(monkeypatch, loss, dtype):
    for rows in sources(dtype, monkeypatch):
        records, everyone = rows.records, np.arange(rows.n_rows)
        context = context_for(records, Problem(loss, fit_intercept=bool(records.constant)))
        for anchor, away in two_points(records):
            for batch in (everyone[:-1], everyone[::7], everyone[40:43]):
                slack = gradient_rounding(len(batch), N_COLUMNS, 1, False) * CLIP
                edges, by_numpy = np.array([0, len(batch)]), np.zeros(away.size)
                sum_up = sums_of_differences(
                    rows, batch, edges, loss, anchor, svrg_pass.largest_batch(context)
                )
                with np.errstate(all="ignore"):
                    sum_up(0, len(batch), away, CLIP, 1.0, by_numpy)
                found = sum_of_differences(records, loss, anchor, away, batch)
                assert np.isfinite(found).all()
                assert np.linalg.norm(by_numpy - found) <= slack


def longest_difference(rows, loss, anchor, away, **options):
    found = 0.0
    for i in range(0, rows.n_rows, 3):
        total = sum_of_differences(rows.records, loss, anchor, away, [i], **options)
        found = max(found, math.hypot(*total))
    return found


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_record_adds_more_than_the_bound(monkeypatch, loss, dtype):
    """Points of any kind, at which margins overflow or are no numbers."""
    slack = 1 + gradient_rounding(1, N_COLUMNS, 1, False)
    anchors = [np.array(numbers)[:, None] for numbers in ([1e308, -1e308, 1e308, 1.0], [0.1] * 4)]
    for rows in sources(dtype, monkeypatch):
        size = rows.records.n_parameters
        for anchor in anchors:
            for away in (np.full(size, 1e140), np.full(size, -0.1)):
                longest = longest_difference(rows, loss, anchor[:size], away)
                assert longest <= CLIP * slack
                # A difference that is not a number counts as 0.
                is_cut = loss.residual_bound is None and anchor[0, 0] < 1
                assert longest > 0.99 * CLIP or not is_cut


@pytest.mark.parametrize("block_rows", [1 << 10, 1 << 16])
def test_a_long_sum_is_rounded_as_little_as_is_charged_for(rng, block_rows):
    n_rows = 100_000
    X = 10.0 ** rng.uniform(-3, 6, (n_rows, 2))
    rows = MemorySource.of(X, np.zeros((n_rows, 1)), constant=0.0)
    far, everyone = np.full(2, 1e9), np.arange(n_rows)  # every record is clipped, in one direction
    anchor = np.zeros((2, 1))
    total = sum_of_differences(rows.records, SquaredError(), anchor, far, everyone, 1.0, block_rows)
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    exact = [math.fsum(column) for column in units.T]
    assert 2 * np.linalg.norm(total - exact) <= gradient_rounding(n_rows, 2, 1, False)


def single_step(records, i, loss, point, shift):
    """The compiled statistic of a step on one record alone, rounded to the grid of a shift."""
    singles = SingleRows.of(records[np.array([i])], CLIP)
    there, total = point[:, 0].copy(), np.zeros(len(point))
    noise, move = np.full((1, len(point)), -shift), SingleMove(-FAR, 0.0, np.ones(len(point)))
    steps = SingleSteps(loss, shift, move, None, np.add, is_compiled=True, is_watched=False)
    steps.take(singles, noise, 0, there, total)
    np.testing.assert_array_equal(there, total)
    return -there / FAR


def test_margins_that_are_no_numbers_are_gone_with_their_tile(rng):
    """Work space of all tiles is the same, and one record must not move what others add."""
    n_rows = 3 * max(8, TILE_NUMBERS // N_COLUMNS)
    X = rng.standard_normal((2 * n_rows, N_COLUMNS))
    X[:n_rows] = [1e308, -1e308, 1.0]  # inf - inf
    rows, plain = (MemorySource.of(Z, np.zeros((len(Z), 1))).records for Z in (X, X[n_rows:]))
    anchor, away = np.array([[1e9], [1e9], [1.0], [0.5]]), np.array([1e3, -1e3, 0.3, 0.2])
    for loss in LOSSES:
        some = np.arange(len(X))
        for batch in (some, some[[0, n_rows, n_rows + 1]]):
            null = rows.having(None, np.where(some < n_rows, 0.0, rows.inverse_norms))
            total = sum_of_differences(null, loss, anchor, away, batch)
            alone = sum_of_differences(plain, loss, anchor, away, batch[batch >= n_rows] - n_rows)
            slack = gradient_rounding(len(X), N_COLUMNS, 1, False) * CLIP
            assert np.linalg.norm(total - alone) <= slack


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_steps_on_one_record_add_what_the_kernel_adds(monkeypatch, loss):
    """At points of any kind; and what is shown is on the grid."""
    slack, grid = gradient_rounding(1, N_COLUMNS, 1, False) * CLIP, 2.0**-20
    for rows in sources(np.float64, monkeypatch):
        records, point = rows.records, np.zeros((rows.records.n_parameters, 1))
        for point[0] in (0.8, 1e140):
            for i in range(0, rows.n_rows, 11):
                found = single_step(records, i, loss, point, 0.0)
                with compiled.switched(False):
                    by_numpy = clipped_gradients(records[np.array([i])], loss, point, CLIP)[:, 0]
                assert np.linalg.norm(found) <= CLIP + slack
                # A row too long to be shrunk is null here, and is left out there.
                if records.shrink is None or records.shrink[i] > 0:
                    assert np.linalg.norm(found - by_numpy) <= 2 * slack
                on_grid = single_step(records, i, loss, point, 1.5 * 2.0**52 * grid)
                np.testing.assert_allclose(on_grid, np.rint(found / grid) * grid, atol=1e-40)


# ---------------------------------------------------------------- passes


PROBLEMS = {
    "ridge": Problem(SquaredError(), L2(0.1)),
    "logistic": Problem(Logistic(), L2(0.1), fit_intercept=False),
    "huber": Problem(Huber(0.7), NoPenalty()),
}
SAMPLERS = {
    "poisson": Poisson(0.02),
    "fixed size": FixedSize(3),
    "large": FixedSize(150),
    "all": AllRows(),
    "blocks": tuple(Block(0, 40, i) for i in range(40)),
}


def plain_rows(rng, problem, dtype=np.float64, weighted=False, lazily=False):
    X = rng.standard_normal((300, 5)).astype(dtype)
    targets = (rng.random((300, 1)) > 0.5).astype(dtype)
    weights = rng.random(300) if weighted else None
    rows = MemorySource.of(X, targets, weights, 2.0, 1.5 if problem.fit_intercept else 0.0)
    ones = np.ones(5)
    in_units = Scaling(Columns(-2 * ones, 2 * ones, 0.25 * ones, 3 * ones))
    return rows.transformed(in_units, 2.0) if lazily else rows


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("scale", [0.0, 1.0])
@pytest.mark.parametrize(
    "kind", [{}, {"dtype": np.float32}, {"weighted": True}, {"lazily": True}], ids=str
)
def test_a_pass_of_differences(rng, worked, monkeypatch, name, sampler, scale, kind):
    """Equal draws, and sums that are the same on the grid: so are the points."""
    monkeypatch.setattr(memory, "COPY_BYTES", 0)
    monkeypatch.setattr(step_noise, "BLOCK", 100)  # which is drawn anew on the way
    problem = PROBLEMS[name]
    rows = plain_rows(rng, problem, **kind)
    context = context_for(rows.records, problem, scale, 2.0)
    shape = context.public.shape
    start, anchor, snapshot = 0.3 * rng.standard_normal((3, *shape))
    release = SVRGPass(
        start, anchor, snapshot, np.full(40, 0.1), 0.5, sampler=SAMPLERS[sampler], slope=0.5
    )

    def answer():
        rows._divisions = Divisions(rows.n_rows)  # which keeps blocks that were drawn
        return release.answer(rows, context, noise_source(1))

    answers = both_ways(answer)
    assert worked == ["difference_loop"]
    np.testing.assert_allclose(*answers, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("scale", [0.0, 1.0])
@pytest.mark.parametrize("kind", [{}, {"dtype": np.float32}, {"weighted": True}], ids=str)
def test_a_pass_of_single_records(rng, worked, monkeypatch, name, scale, kind):
    monkeypatch.setattr(shuffled_pass, "AT_ONCE", 70)
    problem = PROBLEMS[name]
    rows = plain_rows(rng, problem, **kind)
    context = context_for(rows.records, problem, scale, 2.0)
    release = ShuffledPass(300, 0.1, 0.5, tail=0.3, intercept_rate=0.4)
    answers = both_ways(lambda: release.answer(rows, context, noise_source(1)))
    assert set(worked) == {"single_steps"}
    np.testing.assert_allclose(*answers, rtol=1e-12, atol=1e-12)


class Watching(SeededSource):
    """Shown every answer, and what it was before its noise."""

    keeps_record = True

    def __init__(self, seed):
        super().__init__(seed)
        self.statistics = []

    def record_answer(self, answer, statistic, event, bound, std):
        self.statistics.append(statistic)
        return answer


@pytest.mark.parametrize("release", ["differences", "single records"])
def test_whoever_looks_at_answers_sees_those_of_the_loops(rng, release):
    """So `skdp.audit.replay` finds out about the loops, and not about numpy's steps."""
    problem = PROBLEMS["logistic"]
    rows = plain_rows(rng, problem)
    context = context_for(rows.records, problem, 1.0, 2.0)
    if release == "differences":
        start, anchor, snapshot = 0.3 * rng.standard_normal((3, *context.public.shape))
        sampler = Poisson(0.02)
        made = SVRGPass(start, anchor, snapshot, np.full(40, 0.1), 0.5, sampler=sampler)
        hidden = "_side_by_side", difference_steps
    else:
        made, hidden = ShuffledPass(300, 0.1, 0.5), ("ddot", shuffled_pass)
    first, second = Watching(1), Watching(1)
    answers = [made.answer(rows, context, SeededSource(1))]
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(hidden[1], hidden[0])  # numpy's way
        answers.append(made.answer(rows, context, first))
    with compiled.switched(False):
        answers.append(made.answer(rows, context, second))
    for other in answers[1:]:
        np.testing.assert_allclose(other, answers[0], rtol=1e-12, atol=1e-12)
    assert len(first.statistics) == made.n_steps
    for one, two in zip(first.statistics, second.statistics, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9 * np.abs(two).max())


def test_what_no_loop_can_do_is_left_to_numpy(rng, worked):
    plain = PROBLEMS["logistic"]
    X, y = rng.standard_normal((60, 3)), (rng.random((60, 1)) > 0.5).astype(float)
    rows = MemorySource.of(X, y, None, 2.0, 0.0)
    zero = np.zeros((3, 1))
    fresh = NoisyStatistic(GradientSum(zero, 1.0), GaussianNoise())
    for source, problem, snapshot, sizes in (
        (MemorySource.of(sparse.csr_array(X), y, None, 2.0, 0.0), plain, zero, [0.1] * 9),
        (MemorySource.of(np.asfortranarray(X), y, None, 2.0, 0.0), plain, zero, [0.1] * 9),
        (rows, Problem(Logistic(), L1(0.1), fit_intercept=False), zero, [0.1] * 9),
        (rows, Problem(Logistic(), L2(0.1), L2Ball(1.0), False), zero, [0.1] * 9),
        (rows, plain, fresh, [0.1] * 9),
        (rows, plain, zero, [0.1] * 8 + [0.2]),
    ):
        context = context_for(source.records, problem, 1.0, 2.0, sparse=source.records.is_sparse)
        release = SVRGPass(zero, zero, snapshot, sizes, 0.5, sampler=FixedSize(5))
        answers = both_ways(lambda r=release, s=source, c=context: r.answer(s, c, SeededSource(3)))
        np.testing.assert_array_equal(*answers)
    ball = Problem(Logistic(), L2(0.1), L2Ball(1.0), False)
    context, release = context_for(rows.records, ball, 1.0, 2.0), ShuffledPass(60, 0.1, 0.5)
    answers = both_ways(lambda: release.answer(rows, context, SeededSource(3)))
    np.testing.assert_array_equal(*answers)
    assert worked == []


def test_batches_of_more_rows_than_a_block_are_left_to_threads(rng, worked, monkeypatch):
    problem = PROBLEMS["ridge"]
    rows = plain_rows(rng, problem)
    context = context_for(rows.records, problem, 0.0, 2.0)
    zero = np.zeros(context.public.shape)
    release = SVRGPass(zero, zero, zero, np.full(5, 0.1), 0.5, sampler=FixedSize(100))
    monkeypatch.setattr(svrg_pass, "largest_batch", lambda context: 99)
    release.answer(rows, context, noise_source(0))
    assert worked == []
    monkeypatch.setattr(svrg_pass, "largest_batch", lambda context: 100)
    release.answer(rows, context, noise_source(0))
    assert worked == ["difference_loop"]
