"""Sums of differences of gradients: what they are, and their bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from skdp._oracle import GradientDifference, GradientSum, smoothness
from skdp._oracle.kernels.clipped_gradients import clipped_gradients
from skdp._oracle.releases.gradients import LEAST_BOUND
from skdp._oracle.sources.memory import MemorySource
from skdp.objective import Huber, Logistic, Multinomial, Problem, SquaredError
from two_points import D, N, context_for, points, rows_for


@pytest.mark.parametrize("loss", [Logistic(), SquaredError(), Huber(1.0), Multinomial(3)], ids=str)
@pytest.mark.parametrize("as_sparse", [False, True])
def test_a_difference_is_one_of_gradients(rng, loss, as_sparse):
    n_outputs = 3 if isinstance(loss, Multinomial) else 1
    found = context_for(problem=Problem(loss), n_outputs=n_outputs)
    X = rng.standard_normal((N, D))
    rows = rows_for(found, rng, sparse.csr_array(X) if as_sparse else X)
    point, anchor = points(rng, found)
    difference = GradientDifference(point, anchor, 1e9).total(rows, found)
    parts = [GradientSum(at, 1e9).total(rows, found) for at in (point, anchor)]
    np.testing.assert_allclose(difference, parts[0] - parts[1], atol=1e-12)


def test_bound_is_the_smaller_of_clip_and_distance(rng):
    found = context_for()
    point, anchor = points(rng, found)
    beta = smoothness(found.public, found.problem)
    distance = np.linalg.norm(point - anchor)
    assert GradientDifference(point, anchor, 1e9).largest(found)[0] == pytest.approx(
        beta * distance
    )
    assert GradientDifference(point, anchor, 1e-3).largest(found)[0] == 1e-3
    assert GradientDifference(point, point, 2.0).largest(found)[0] == 2.0 * LEAST_BOUND
    # Nothing public bounds what a heavy record's gradient does.
    weighted = context_for(weighted=True)
    assert GradientDifference(point, anchor, 7.0).largest(weighted)[0] == 7.0
    free = context_for(row_bound=None)
    assert GradientDifference(point, anchor, 7.0).largest(free)[0] == 7.0


@pytest.mark.parametrize("loss", [Logistic(), SquaredError(), Huber(1.0), Multinomial(3)], ids=str)
def test_smoothness_bound_clips_nothing(rng, loss):
    n_outputs = 3 if isinstance(loss, Multinomial) else 1
    found = context_for(problem=Problem(loss), n_outputs=n_outputs)
    for size in (1e-6, 1.0, 30.0):
        point, anchor = points(rng, found, size)
        X = 10 * rng.standard_normal((N, D))
        rows = rows_for(found, rng, X)
        free = rows.total(clipped_gradients, loss, point, 1e20, anchor)
        bounded = GradientDifference(point, anchor, 1e20).total(rows, found)
        np.testing.assert_allclose(bounded, free, rtol=1e-9, atol=1e-9 * size)


HOSTILE = st.sampled_from([0.0, -0.0, 1.0, -3.0, 1e5, -1e300, 1e308, 1e-170, 5e-324, 0.1])


@given(
    row=st.lists(HOSTILE, min_size=D, max_size=D),
    target=st.sampled_from([0.0, 1.0, -1e300, 1e12, 1e-310]),
    weight=st.sampled_from([0.0, 1.0, 1e6, 1e-300]),
    size=st.sampled_from([0.0, 1e-9, 0.3, 1e6, 1e150]),
    clip=st.sampled_from([1e-12, 0.5, 1e12]),
    n_outputs=st.sampled_from([1, 2]),
)
@settings(max_examples=75, deadline=None)
def test_no_record_adds_more_than_the_bound(row, target, weight, size, clip, n_outputs):
    found = context_for(problem=Problem(SquaredError()), n_outputs=n_outputs)
    rng = np.random.default_rng(0)
    point, anchor = points(rng, found, size)
    rows = MemorySource.of(
        np.array([row]),
        np.full((1, n_outputs), target),
        np.array([weight]),
        found.public.row_bound,
        found.public.intercept_size,
    )
    statistic = GradientDifference(point, anchor, clip)
    most = statistic.contribution(found, 1).bound
    assert np.linalg.norm(statistic.total(rows, found) / most) <= 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"clip_norm": 0},
        {"clip_norm": 1e-184},
        {"clip_norm": math.inf},
        {"point": math.nan},
        {"slope": 0.0},
        {"slope": 1.5},
        {"slope": math.nan},
    ],
)
def test_wrong_sums_are_refused(rng, wrong):
    given = {"point": np.zeros((D + 1, 1)), "anchor": np.zeros((D + 1, 1)), "clip_norm": 1.0}
    if "point" in wrong:
        wrong = {"point": np.full((D + 1, 1), math.nan)}
    with pytest.raises(ValueError, match="GradientDifference"):
        GradientDifference(**{**given, **wrong})


def test_float32_rows_lose_nothing_near_the_anchor(rng):
    found = context_for(problem=Problem(SquaredError()))
    X = rng.standard_normal((N, D)).astype(np.float32)
    anchor = rng.standard_normal((D + 1, 1))
    point = anchor + 1e-9
    totals = [
        GradientDifference(point, anchor, 1.0).total(
            rows_for(found, rng, kind, np.ones((N, 1))), found
        )
        for kind in (X, X.astype(float))
    ]
    np.testing.assert_allclose(totals[0], totals[1], rtol=1e-5)
