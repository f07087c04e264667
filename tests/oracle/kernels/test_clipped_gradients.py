"""The fused pass against a plain loop over records."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from skdp._numbers import LARGEST_BOUND, LEAST_CLIP_NORM
from skdp._oracle import Public
from skdp._oracle.kernels.clipped_gradients import (
    clipped_gradients,
    clipped_in_norm,
    gradient_rounding,
)
from skdp._oracle.sources import row_blocks
from skdp._oracle.sources.memory import MemorySource
from skdp._oracle.sources.records import inverse_l1_norms
from skdp.accounting import Adjacency
from skdp.objective import Huber, Logistic, Multinomial, SquaredError

LOSSES = {
    "squared": SquaredError(),
    "logistic": Logistic(),
    "softmax": Multinomial(3),
    "huber": Huber(),
}


def plain_sum(X, targets, weights, data_norm, has_intercept, loss, point, clip_norm):
    """One record after the other, in the words of the definition."""
    total = np.zeros(point.shape)
    for i, raw in enumerate(X.astype(float)):
        row = raw.copy()
        norm = np.linalg.norm(row)
        if data_norm is not None and norm > data_norm:
            row *= data_norm / norm
        if has_intercept:
            row = np.append(row, 0.5)
        residual = loss.residual((row @ point)[None, :], targets[i : i + 1])[0]
        gradient = np.outer(row, residual * weights[i])
        total += gradient * min(1.0, clip_norm / max(np.linalg.norm(gradient), 1e-300))
    return total


def targets_of(loss, n, rng):
    if isinstance(loss, Multinomial):
        return rng.integers(3, size=n)
    if isinstance(loss, Logistic):
        return rng.integers(2, size=(n, 1)).astype(float)
    return 3 * rng.standard_normal((n, 2))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("layout", ["C", "F", "csr_array", "csr_matrix", "sliced"])
@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("data_norm", [None, 1.2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_agrees_with_a_plain_loop(name, layout, has_intercept, data_norm, dtype, rng, monkeypatch):
    monkeypatch.setattr(row_blocks, "BLOCK_BYTES", 16 * 4 * 8)  # several blocks
    loss = LOSSES[name]
    X = rng.standard_normal((45, 4)).astype(dtype)
    X[rng.random(X.shape) < 0.4] = 0
    targets = targets_of(loss, 45, rng)
    weights = rng.random(45)
    n_outputs = {"logistic": 1, "softmax": 3}.get(name, 2)
    point = rng.standard_normal((4 + has_intercept, n_outputs))
    expected = plain_sum(X, targets, weights, data_norm, has_intercept, loss, point, 0.6)
    held = {
        "C": np.ascontiguousarray,
        "F": np.asfortranarray,
        "csr_array": sparse.csr_array,
        "csr_matrix": sparse.csr_matrix,
        "sliced": lambda A: np.repeat(A, 2, axis=0)[::2],
    }[layout](X)
    rows = MemorySource.of(
        held,
        targets.astype(dtype) if targets.ndim > 1 else targets,
        weights,
        data_norm,
        0.5 * has_intercept,
    )
    total = rows.total(clipped_gradients, loss, point, 0.6)
    tolerance = 1e-12 if dtype is np.float64 else 2e-5
    assert total.dtype == np.float64
    np.testing.assert_allclose(total, expected, atol=tolerance)


hostile = st.floats(allow_nan=False, allow_infinity=False, width=64)


def powers_of_ten(least, largest):
    return st.floats(least, largest).map(lambda exponent: 10.0**exponent)


@settings(max_examples=100, deadline=None)
@given(
    X=arrays(np.float64, (3, 2), elements=hostile),
    y=arrays(np.float64, (3, 2), elements=hostile),
    w=arrays(np.float64, (3,), elements=st.floats(0, 1e300)),
    point=arrays(np.float64, (3, 2), elements=hostile),
    clip_norm=st.floats(1e-6, 1e6) | powers_of_ten(-100, 100),
    data_norm=st.none() | st.floats(1e-6, 1e6) | powers_of_ten(-50, 50),
)
def test_no_record_adds_more_than_the_bound(X, y, w, point, clip_norm, data_norm):
    """For every finite record, point and weight, however extreme."""
    slack = 1 + gradient_rounding(1, 3, 2, False)
    for i in range(3):
        rows = MemorySource.of(X[i : i + 1], y[i : i + 1], w[i : i + 1], data_norm)
        total = rows.total(clipped_gradients, SquaredError(), point, clip_norm)
        assert np.isfinite(total).all()
        assert math.hypot(*total.ravel()) <= clip_norm * slack * (1 + 1e-15)


@pytest.mark.parametrize("exponent", range(140, 309, 2))
def test_the_largest_row_bound_and_the_least_clip(exponent):
    """Rows scaled down by much, to residuals near the least normal number."""
    X = np.array([[10.0**exponent, 0.7 * 10.0**exponent]])
    rows = MemorySource.of(X, np.array([[-1e300]]), None, LARGEST_BOUND, 0.0)
    total = rows.total(clipped_gradients, SquaredError(), np.zeros((2, 1)), LEAST_CLIP_NORM)
    assert math.hypot(*total.ravel()) <= LEAST_CLIP_NORM * (1 + 1e-14)


def test_larger_row_bounds_are_refused():
    with pytest.raises(ValueError, match=r"row_bound must be at most 1e\+50"):
        Public(100, 2, 1, Adjacency.ZERO_OUT, 1.0, 1e-6, row_bound=1e60)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_rounding_of_sums_is_within_what_is_charged(dtype, as_sparse, rng):
    """Order of summation and float32 must not move a sum by more than the declared slack."""
    n_rows, clip_norm = 30_000, 1.0
    X = (10.0 ** rng.uniform(-3, 6, (n_rows, 2))).astype(dtype)
    y = (-1e9 * np.ones((n_rows, 1))).astype(dtype)  # every record is clipped, in one direction
    held = sparse.csr_array(X) if as_sparse else X
    source, point = MemorySource.of(held, y, constant=0.0), np.zeros((2, 1))
    total = source.total(clipped_gradients, SquaredError(), point, clip_norm)
    rows = X.astype(float)
    exact = [math.fsum(column) for column in (rows / np.linalg.norm(rows, axis=1, keepdims=True)).T]
    error = np.linalg.norm(total[:, 0] - np.array(exact))
    slack = gradient_rounding(n_rows, 2, 1, as_sparse)
    assert 2 * error <= slack * clip_norm


def test_a_null_record_adds_nothing():
    X = np.array([[0.0, 0.0], [1.0, 1.0]])
    y = np.array([[5.0], [5.0]])
    point = np.ones((3, 1))
    there, absent = (
        source.total(clipped_gradients, SquaredError(), point, 1.0)
        for source in (
            MemorySource.of(X, y, np.array([0.0, 1.0])),
            MemorySource.of(X[1:], y[1:], np.ones(1)),
        )
    )
    np.testing.assert_array_equal(there, absent)


# ---------------------------------------------------------------- L1 clipping


def l1_clipped(source, point, clip_norm):
    arguments = SquaredError(), point, clip_norm
    inverse = source.per_row(inverse_l1_norms)
    return source.total(clipped_in_norm, *arguments, rows=(inverse,))


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("row_bound", [None, 1.3])
def test_each_record_is_clipped_in_l1_norm(rng, n_outputs, dtype, is_sparse, row_bound):
    X = rng.standard_normal((30, 4)).astype(dtype)
    targets = (10 ** rng.uniform(-3, 3, (30, n_outputs))).astype(dtype)
    weights = rng.uniform(0, 3, 30)
    point = rng.standard_normal((5, n_outputs))
    rows = MemorySource.of(
        sparse.csr_array(X) if is_sparse else X, targets, weights, row_bound, 2.5
    )
    total = l1_clipped(rows, point, 0.8)
    expected = np.zeros_like(total)
    for i in range(30):
        z = X[i].astype(float)
        if row_bound is not None:
            z = z * min(1, row_bound / np.linalg.norm(z))
        z = np.append(z, 2.5)
        gradient = weights[i] * np.outer(z, z @ point - targets[i])
        norm = np.abs(gradient).sum()
        expected += gradient * min(1, 0.8 / norm)
        alone = l1_clipped(rows.take(np.array([i])), point, 0.8)
        slack = gradient_rounding(1, 4, n_outputs, is_sparse)
        assert np.abs(alone).sum() <= 0.8 * (1 + slack)
    np.testing.assert_allclose(total, expected, rtol=2e-4 if dtype == np.float32 else 1e-10)


def test_hostile_rows_stay_within_the_bound():
    extremes = [0.0, 5e-324, 1e-170, 1e-30, 1.0, 1e154, 1e300, 1.7e308]
    X = np.array([[a, -b, a] for a in extremes for b in extremes])
    for row_bound in (None, 1e-3, 2.0, 1e200):
        rows = MemorySource.of(X, np.full((len(X), 1), 1e3), np.full(len(X), 1e6), row_bound, 0.5)
        for i in range(len(X)):
            alone = l1_clipped(rows.take(np.array([i])), np.ones((4, 1)), 0.3)
            assert np.abs(alone).sum() <= 0.3 * (1 + 1e-12)
