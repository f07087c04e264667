"""Codes for missing data are clipped away and named; rare values, tails and indicators are not."""

import numpy as np
import pytest

from skdp import DPLinearRegression, Privacy, SeededNoise
from skdp.oracle import Columns
from skdp.stages.scaling import widening


def fitted(X, y, epsilon):
    return DPLinearRegression(epsilon=epsilon, privacy=Privacy(noise=SeededNoise(0))).fit(X, y)


def table(rng, n_rows=12_000):
    Z = rng.standard_normal((n_rows, 5))
    y = Z @ [1.0, 0.7, 0.7, 0.5, 0.3] + 0.7 * rng.standard_normal(n_rows)
    return Z * [1, 5, 10, 0.1, 2] + [0, 20, 50, 0, 8], y


@pytest.mark.parametrize(
    ("column", "code", "share"), [(0, 999, 0.02), (1, -999, 0.1), (2, -9999, 0.04), (4, 9999, 0.04)]
)
def test_codes_for_missing_data_are_clipped_and_named(rng, column, code, share):
    X, y = table(rng)
    X[rng.random(len(X)) < share, column] = code
    columns = fitted(X, y, 5.0).scaling_.columns
    below, above = columns.isolated
    assert below.nonzero()[0].tolist() == [column] * (code < 0)
    assert above.nonzero()[0].tolist() == [column] * (code > 0)
    rest = X[X[:, column] != code, column]
    assert rest.min() - 2 * rest.std() < columns.low[column] < columns.high[column]
    assert columns.high[column] < rest.max() + 2 * rest.std()
    assert columns.scale[column] == pytest.approx(rest.std(), rel=0.3)


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_other_columns_have_no_isolated_values(rng, epsilon):
    n_rows = 12_000
    Z, rare = rng.standard_normal((n_rows, 3)), rng.random((n_rows, 3)) < (0.05, 0.05, 0.93)
    gains = np.where(rng.random(n_rows) < 0.08, np.exp(8 + Z[:, 2]), 0.0)
    gains[rng.random(n_rows) < 0.005] = 99_999
    two = Z[:, 0] + 40 * (rng.random(n_rows) < 0.25)
    X = np.column_stack([np.exp(1.3 * Z[:, 0]), np.exp(2 * Z[:, 1]), 40 * rare, gains, two])
    columns = fitted(X, rng.standard_normal(n_rows), epsilon).scaling_.columns
    assert not np.any(columns.isolated)


def test_widening_leaves_isolated_values_clipped():
    unit, isolated = np.ones(2), (np.array([True, False]), np.array([False, True]))
    wide = widening._scaled(
        Columns(-unit, unit, 0 * unit, unit, isolated), widening.EXPANSION_FACTOR
    )
    assert wide.low.tolist() == [-1.0, -widening.EXPANSION_FACTOR]
    assert wide.high.tolist() == [widening.EXPANSION_FACTOR, 1.0]
    assert wide.isolated is isolated
