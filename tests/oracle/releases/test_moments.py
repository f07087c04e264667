"""Sums of second moments: plain loops, and declared bounds on hostile records."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist

from skdp._oracle import (
    Coordinates,
    GramSum,
    ShrunkGradientSum,
    unpack_gram,
)
from skdp._oracle.kernels import second_moments
from skdp._oracle.sources import row_blocks
from skdp._oracle.sources.memory import MemorySource
from skdp.objective import Logistic, SquaredError
from weighted_records import POINT, context_for, data_for, records, rows_of

TURN = np.array([[3.0, 0.5, 0.0, 0.1], [0, 0.2, 0, 0], [0.3, 0, 1.0, 0], [0, 0, 0.4, 0.05]])


@pytest.fixture
def data(rng):
    return data_for(rng)


@pytest.mark.parametrize("layout", ["dense", "float32", "sparse"])
def test_gram_is_that_of_a_plain_loop(data, layout, monkeypatch):
    monkeypatch.setattr(row_blocks, "BLOCK_BYTES", 16 * 3 * 8)
    X, y, weights = data
    convert = {"dense": np.asarray, "float32": np.float32, "sparse": sparse.csr_array}[layout]
    answer = GramSum(2.0).total(
        rows_of(convert(X), y, weights), context_for(Logistic(), 70, weighted=True)
    )
    Z, roots = records(X, weights)
    V = Z * roots[:, None]
    V = V * np.minimum(1, 2.0 / np.maximum(np.linalg.norm(V, axis=1), 1e-300))[:, None]
    tolerance = 1e-4 if layout == "float32" else 1e-9
    np.testing.assert_allclose(unpack_gram(answer, Z.shape[1]), V.T @ V, atol=tolerance)
    # The vector is as long as the matrix.
    assert np.linalg.norm(answer) == pytest.approx(np.linalg.norm(V.T @ V), rel=1e-4)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_shrunk_gradients_are_those_of_a_plain_loop(data, whole, turned):
    X, y, weights = data
    T = TURN if turned else np.eye(4)
    statistic = ShrunkGradientSum(POINT, Coordinates(T), 1.5, 0.4, whole)
    answer = statistic.total(rows_of(X, y, weights), context_for(Logistic(), 70, weighted=True))
    Z, roots = records(X, weights)
    U = Z @ T
    residuals = 1 / (1 + np.exp(-Z @ POINT)) - y[:, None]
    lengths = np.linalg.norm(U, axis=1, keepdims=True)
    if whole:
        f = np.minimum(roots[:, None], 1.5 / lengths)
        plain = f * U * np.clip(f * residuals, -0.4, 0.4)
    else:
        f = np.minimum(1, 1.5 / lengths)
        plain = f * U * np.clip(weights[:, None] * residuals, -0.4, 0.4)
    np.testing.assert_allclose(answer[:, 0], plain.sum(axis=0), atol=1e-10)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_rows_that_are_short_in_any_coordinates_need_no_product(layout, rng, monkeypatch):
    """Most rows are shorter than the bound over the largest singular value."""
    X = 0.1 * rng.standard_normal((60, 3))
    X[[3, 7, 20, 41, 50]] = [[9, 1, 0], [1e100, 0, 1], [0, 0, 0], [0, 30, 2], [1e-170, 0, 0]]
    coordinates, bound, taken = Coordinates(TURN), 4.0, []
    original = second_moments.inverse_norms_in
    monkeypatch.setattr(
        second_moments,
        "inverse_norms_in",
        lambda records, *forms: taken.append(records.n_rows) or original(records, *forms),
    )
    of_rows = MemorySource.of(layout(X), np.zeros(60)).records
    arguments = *coordinates.forms, coordinates.largest, bound, True, True
    found = second_moments.shrink_factors_in(of_rows, *arguments)
    lengths = np.linalg.norm(np.column_stack([X, np.ones(60)]) @ TURN, axis=1)
    np.testing.assert_allclose(found, np.minimum(1.0, bound / lengths), rtol=1e-12)
    assert taken == [3]


HOSTILE = [
    [0, 0, 0],
    [1e300, -1e300, 1e300],
    [1e-170, 0, 0],
    [5e-324, 5e-324, 0],
    [1e5, 1.0, -3.0],
    [0.3, 0.2, 0.1],
    [3.0, -4.0, 1.0],
    [-1e200, 1e-200, 7.0],
]
SUMS = {
    "gram": lambda: GramSum(2.0),
    "turned": lambda: ShrunkGradientSum(POINT, Coordinates(TURN), 0.7, 0.4),
    "turned records": lambda: ShrunkGradientSum(POINT, Coordinates(TURN), 0.7, 0.4, True),
}


def worst(make, rng):
    """Largest move of a sum, in units of the declared bound, for zero-out and replace-one."""
    X = rng.standard_normal((12, 3))
    y = rng.standard_normal(12)
    weights = np.ones(12)
    zero_out = replace_one = 0.0
    for loss in (SquaredError(), Logistic()):
        context = context_for(loss, 12, weighted=True)
        targets = (0.0, 1.0) if loss.name == "logistic" else (0.0, 1e300, -2.0, 1e-310)
        statistic = make()
        bound = statistic.contribution(context, 12).bound
        base = np.clip(np.rint(y), 0, 1) if loss.name == "logistic" else y
        answers = []
        for row in [None, *HOSTILE]:
            for target in targets:
                for weight in (0.0,) if row is None else (1.0, 1e6, 1e300):
                    Z, t, w = X.copy(), base.copy(), weights.copy()
                    Z[4], t[4], w[4] = (0, 0, 0) if row is None else row, target, weight
                    with np.errstate(over="ignore", invalid="ignore"):
                        answers.append(statistic.total(rows_of(Z, t, w), context))
                    assert np.isfinite(answers[-1]).all()
        flat = np.reshape(answers, (len(answers), -1))
        zero_out = max(zero_out, np.linalg.norm(flat - flat[0], axis=1).max() / bound)
        replace_one = max(replace_one, pdist(flat).max() / bound)
    return zero_out, replace_one


@pytest.mark.parametrize("name", SUMS)
def test_no_record_moves_a_sum_by_more_than_is_declared(name, rng):
    zero_out, replace_one = worst(SUMS[name], rng)
    spread = SUMS[name]().contribution(context_for(Logistic(), 12), 12).spread
    assert 0.05 < zero_out <= 1
    assert replace_one <= spread * (1 + 1e-12)


def test_the_spread_of_gram_matrices_is_met(rng):
    """Two orthogonal records at the bound are sqrt(2) apart."""
    statistic, context = GramSum(2.0), context_for(Logistic(), 1)
    one = statistic.total(
        MemorySource.of(np.array([[4.0, 0, 0]]), np.zeros((1, 1)), None, None, 0.0), context
    )
    other = statistic.total(
        MemorySource.of(np.array([[0, 4.0, 0]]), np.zeros((1, 1)), None, None, 0.0), context
    )
    assert np.linalg.norm(one - other) == pytest.approx(math.sqrt(2) * 4.0)


def test_singular_coordinates_are_refused():
    with pytest.raises(ValueError, match="singular"):
        Coordinates(np.ones((3, 3)))
    with pytest.raises(TypeError, match="must be Coordinates"):
        ShrunkGradientSum(POINT, TURN, 1.0, 1.0)
