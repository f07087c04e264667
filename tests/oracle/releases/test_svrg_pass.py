"""Passes of variance-reduced steps: their arithmetic, noise and cost."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from skdp.accounting import Adjacency, Composed, FixedSizeSampled, Gaussian, PoissonSampled
from skdp.objective import (
    L1,
    L2,
    Huber,
    L2Ball,
    Logistic,
    Multinomial,
    NoPenalty,
    Problem,
    SquaredError,
)
from skdp.oracle import (
    AllRows,
    Block,
    FixedSize,
    GaussianNoise,
    GradientDifference,
    GradientSum,
    LaplaceNoise,
    NoisyStatistic,
    Poisson,
    Public,
    PublicContext,
    SVRGPass,
    noise_source,
    smoothness,
)
from skdp.oracle.noise import SystemSource
from skdp.oracle.releases.mechanisms import Contribution
from skdp.oracle.releases.step_noise import VaryingNoise
from skdp.oracle.sources.memory import MemorySource
from two_points import D, N, context_for, points, rows_for

pytestmark = pytest.mark.usefixtures("either_way")

# ---------------------------------------------------------------------- scalar residuals


@pytest.mark.parametrize("loss", [Logistic(), SquaredError(), Huber(1.3)], ids=str)
@given(
    margin=st.floats(-1e300, 1e300) | st.sampled_from([0.0, 800.0, -800.0, 1e308, -1e308]),
    target=st.sampled_from([0.0, 1.0]),
)
@settings(max_examples=60, deadline=None)
def test_scalar_residuals_agree(loss, margin, target):
    expected = loss.residual(np.array([[margin]]), np.array([[target]]))[0, 0]
    assert loss.residual_of_one(margin, target) == pytest.approx(expected, rel=1e-12, abs=1e-15)


# ---------------------------------------------------------------------- draws in blocks


@pytest.mark.parametrize("sampler", [Poisson(0.05), FixedSize(2), FixedSize(30), AllRows()])
def test_draws_in_a_row_have_the_law_of_single_ones(rng, sampler):
    found = context_for()
    rows, source = rows_for(found, rng), noise_source(3)
    numbers, edges = sampler.draw_many(rows, 4000, source)
    assert edges[0] == 0
    assert edges[-1] == len(numbers)
    sizes = np.diff(edges)
    share = sampler.divisor(found.public) / N
    if isinstance(sampler, Poisson):
        variance = N * share * (1 - share)
        assert abs(sizes.mean() - N * share) < 4 * math.sqrt(variance / 4000)
        assert abs(sizes.var() / variance - 1) < 0.15
    else:
        assert (sizes == share * N).all()
    each = np.bincount(numbers, minlength=N)
    assert abs(each - 4000 * share).max() <= 4.5 * math.sqrt(4000 * share * (1 - share)) + 1e-9
    for first, stop in itertools.pairwise(edges[:50]):
        assert (np.diff(numbers[first:stop]) > 0).all()  # no row twice


def test_pairs_of_draws_are_independent(rng):
    rows, source = rows_for(context_for(), rng), noise_source(5)
    numbers, edges = Poisson(0.3).draw_many(rows, 6000, source)
    joined = np.zeros((6000, N), dtype=bool)
    joined[np.repeat(np.arange(6000), np.diff(edges)), numbers] = True
    correlation = np.corrcoef(joined[:, :8].T) - np.eye(8)
    assert abs(correlation).max() < 5 / math.sqrt(6000)
    shifted = np.mean(joined[1:, 0] & joined[:-1, 0])
    assert abs(shifted - 0.09) < 5 * math.sqrt(0.09 / 6000)


# ---------------------------------------------------------------------- the pass


def by_hand(release, rows, context):
    """The pass without noise, over all rows, step by step through sums."""
    problem, n = context.problem, context.public.n_rows
    w, points = release.start, []
    clip = release.clip_norm
    for size in release.step_sizes:
        if not context.public.weighted:
            steepest = smoothness(context.public, problem) * np.linalg.norm(w - release.anchor)
            clip = min(release.clip_norm, release.slope * steepest)
        total = GradientDifference(w, release.anchor, clip).total(rows, context)
        w = problem.prox(w - size * (total / n + release.snapshot), size)
        points.append(w)
    return np.stack([w, np.mean(points, axis=0)])


@pytest.mark.parametrize(
    "problem",
    [
        Problem(Logistic(), L2(0.1)),
        Problem(Logistic(), NoPenalty()),
        Problem(SquaredError(), L1(0.05)),
        Problem(Huber(0.7), L2(0.1), L2Ball(0.2)),
        Problem(Multinomial(3), L2(0.1)),
    ],
    ids=str,
)
@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_pass_is_the_steps_that_it_says(rng, problem, as_sparse, weighted):
    for clip, slope in [(0.05, 1.0), (1e3, 1.0), (1e3, 0.02)]:
        n_outputs = 3 if isinstance(problem.loss, Multinomial) else 1
        found = context_for(problem=problem, n_outputs=n_outputs)
        X = rng.standard_normal((N, D))
        weights = rng.random(N) * 2 if weighted else None
        rows = rows_for(found, rng, sparse.csr_array(X) if as_sparse else X, weights=weights)
        start, anchor = points(rng, found)
        sizes = np.array([0.1, 0.1, 0.2, 0.05, 0.05])
        snapshot = 0.1 * rng.standard_normal(found.public.shape)
        release = SVRGPass(start, anchor, snapshot, sizes, clip, slope=slope)
        answer = release.answer(rows, found, noise_source(0))
        np.testing.assert_allclose(answer, by_hand(release, rows, found), atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 39])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_batches_side_by_side_are_those_of_the_kernel(rng, size, weighted, fit_intercept):
    """Each batch, summed one by one, by matrix products, and by the kernel of full gradients."""
    problem = Problem(Logistic(), L2(0.1), fit_intercept=fit_intercept)
    public = Public(
        N, D, 1, Adjacency.REPLACE_ONE, 1.0, 1e-6, row_bound=2.0, has_intercept=fit_intercept
    )
    found = PublicContext(public, problem, 0.0)
    X = 3 * rng.standard_normal((N, D))
    weights = rng.random(N) if weighted else None
    targets = (rng.random((N, 1)) > 0.5).astype(float)
    intercept = public.intercept_size * fit_intercept
    answers = []
    for kind in (X, sparse.csr_array(X)):
        rows = MemorySource.of(kind, targets, weights, 2.0, intercept)
        release = SVRGPass(
            np.zeros(public.shape),
            np.full(public.shape, 0.1),
            np.full(public.shape, 0.2),
            np.full(30, 0.3),
            0.4,
            sampler=FixedSize(size),
        )
        answers.append(release.answer(rows, found, noise_source(7)))
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-12)


def test_blocks_and_fresh_snapshots(rng):
    found = context_for(scale=1.0)
    rows = rows_for(found, rng)
    point, anchor = points(rng, found)
    blocks = tuple(Block(0, 4, i) for i in range(4))
    fresh = NoisyStatistic(GradientSum(anchor, 1.0), GaussianNoise(3.0))
    release = SVRGPass(point, anchor, fresh, np.full(4, 0.1), 1.0, GaussianNoise(2.0), blocks)
    event = release.event(found)
    assert [count for _, count in event.parts] == [4, 1, 1, 1, 1]
    assert event.parts[0][0] == Gaussian(3.0)
    assert release.n_gradients(found) == 2 * N + N
    assert release.answer(rows, found, noise_source(0)).shape == (2, D + 1, 1)
    assert len(release.parts()) == 1 + 4 + 1 + 3
    sampled = dataclasses.replace(fresh, sampler=Poisson(0.5))
    with pytest.raises(ValueError, match="all rows"):
        dataclasses.replace(release, snapshot=sampled).event(found)


@pytest.mark.parametrize(
    ("sampler", "kind"), [(Poisson(0.1), PoissonSampled), (FixedSize(4), FixedSizeSampled)]
)
def test_the_event_is_that_of_its_steps(rng, sampler, kind):
    found = context_for()
    point, anchor = points(rng, found)
    release = SVRGPass(point, anchor, point, np.full(9, 0.1), 1.0, GaussianNoise(2.0), sampler)
    ((event, count),) = release.event(found).parts
    assert isinstance(event, kind)
    assert (event.event, count) == (Gaussian(2.0), 9)
    assert Composed(release.event(found).parts) == release.event(found)
    assert release.n_gradients(found) == 2 * 9 * 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"clip_norm": 0.0},
        {"clip_norm": 1e-184},  # limits on long rows would be subnormal, and inexact
        {"clip_norm": 1e21},
        {"step_sizes": [0.1, -0.1]},
        {"step_sizes": []},
        {"step_sizes": [math.nan]},
        {"start": np.full((D + 1, 1), math.inf)},
        {"sampler": (AllRows(),)},
        {"slope": 0.0},
        {"slope": 1.5},
        {"slope": math.nan},
        {"mechanism": LaplaceNoise(1.0)},
    ],
    ids=str,
)
def test_wrong_passes_are_refused(wrong):
    point = np.zeros((D + 1, 1))
    given = {
        "start": point,
        "anchor": point,
        "snapshot": point,
        "step_sizes": [0.1, 0.1],
        "clip_norm": 1.0,
    }
    with pytest.raises(ValueError, match="SVRGPass"):
        SVRGPass(**{**given, **wrong})


def test_wrong_shapes_are_refused_before_any_row(rng):
    release = SVRGPass(np.zeros((2, 1)), np.zeros((2, 1)), np.zeros((2, 1)), [0.1], 1.0)
    with pytest.raises(ValueError, match="shape"):
        release.event(context_for())


def test_a_runaway_pass_says_so(rng):
    found = context_for(problem=Problem(SquaredError()), row_bound=None)
    rows = rows_for(found, rng, 1e100 * np.ones((N, D)), np.zeros((N, 1)))
    point = np.zeros(found.public.shape)
    release = SVRGPass(point + 1, point, point, np.full(99, 1e200), 1e20)
    with pytest.raises(FloatingPointError, match="diverged"):
        release.answer(rows, found, noise_source(0))


# ---------------------------------------------------------------------- its noise


def test_the_noise_of_a_step_has_the_promised_size(rng):
    """On a pass whose sum is zero, the iterates are a random walk of known steps."""
    found = context_for(scale=2.0, problem=Problem(SquaredError()), row_bound=None)
    rows = rows_for(found, rng, np.zeros((N, D)), np.zeros((N, 1)), np.zeros(N))
    point = np.zeros(found.public.shape)
    release = SVRGPass(
        point + 1.0, point, point, np.full(1, 1.0), 0.5, GaussianNoise(3.0), Poisson(0.25)
    )
    source = noise_source(0)
    moved = np.array([release.answer(rows, found, source)[0] - 1 for _ in range(3000)]).ravel()
    expected = 2.0 * 3.0 * 0.5 / (0.25 * N)
    assert moved.std() == pytest.approx(expected, rel=0.04)
    assert abs(moved.mean()) < 5 * expected / math.sqrt(moved.size)
    assert release.std(found) / (0.25 * N) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("multiplier", [1e-3, 0.5, 30.0, 1e6])
@pytest.mark.parametrize("n_rows", [1, 1000, 10**9])
def test_step_noise_pays_for_its_rounding(multiplier, n_rows):
    size, slack = 21, 1 + 1e-9
    contribution = Contribution(slack, 2.0, size, n_rows * slack)
    noise = VaryingNoise(GaussianNoise(multiplier), contribution, 1.0)
    assert noise.std >= multiplier * (noise.cells * slack + 1.75 * math.sqrt(size))
    assert noise.cells * contribution.total <= 2.0**50
    assert noise.std >= 1
    assert noise.std <= multiplier * noise.cells * 1.01 or n_rows > 1000 or multiplier > 1e5


def test_steps_are_integers_of_the_grid_with_exact_noise():
    contribution = Contribution(1.0, 2.0, 5, 100.0)
    noise = VaryingNoise(GaussianNoise(1.0), contribution, 1.0, SystemSource(), 7)
    cells = np.full(5, 0.4)
    hidden = [noise.add_noise(cells.copy()) for _ in range(20)]
    assert all((one == np.rint(one)).all() for one in hidden)
    assert len({tuple(one) for one in hidden}) == 20
    exact = VaryingNoise(GaussianNoise(1.0), contribution, 0.0, SystemSource(), 7)
    assert (exact.add_noise(cells.copy()) == 0.4).all()


def test_noise_too_fine_is_refused():
    with pytest.raises(ValueError, match="too fine"):
        VaryingNoise(GaussianNoise(1e-20), Contribution(1.0, 2.0, 5, 1e9), 1.0)


@pytest.mark.parametrize("batch", [1, 3, 40], ids=["row by row", "few rows", "all rows"])
def test_a_null_row_adds_nothing_where_margins_overflow(batch):
    """There the difference of residuals is not a number, and no weight makes it 0."""
    n, anchor, start = 40, np.array([[0.0], [1.2e308]]), np.array([[0.0], [0.1]])
    step, sampler = 2.0**1000, AllRows() if batch == n else FixedSize(batch)
    found = []
    for x, weight in ((-100.0, 1.0), (0.0, 0.0)):
        X, weights = np.zeros((n, 1)), np.zeros(n)
        X[:, 0], weights[:] = x, weight
        rows = MemorySource.of(X, np.zeros((n, 1)), weights, None, 2.0)
        public = Public(n, 1, 1, Adjacency.ZERO_OUT, 1.0, 1e-6, has_intercept=True, weighted=True)
        context = PublicContext(public, Problem(SquaredError(), NoPenalty()), 0.0)
        release = SVRGPass(
            anchor + start, anchor, np.zeros((2, 1)), np.full(1, step), 1.0, sampler=sampler
        )
        answer = release.answer(rows, context, noise_source(1))
        found.append(-batch * (answer[0] - anchor).ravel() / step)
    assert np.abs(found[1]).max() < 1e-6
    assert np.linalg.norm(found[0] - found[1]) <= batch * (1 + 1e-9)
