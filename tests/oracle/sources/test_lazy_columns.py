"""Rows that are standardised a block at a time count as a standardised copy of them does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from skdp._oracle import Columns, Scaling
from skdp._oracle.kernels import clipped_gradients as gradients
from skdp._oracle.kernels import second_moments
from skdp._oracle.noise import SystemSource
from skdp._oracle.releases import histograms
from skdp._oracle.sources import memory, records, row_blocks
from skdp._oracle.sources.memory import MemorySource
from skdp._oracle.sources.records import Groups
from skdp.objective import Logistic

N_ROWS, N_COLUMNS = 300, 5


def sources(rng, monkeypatch, dtype, is_sparse, size=1.0):
    """The same standardised rows, mapped in every pass and copied beforehand."""
    monkeypatch.setattr(row_blocks, "COPIED_BYTES", 8 * N_COLUMNS * 40)  # several blocks
    monkeypatch.setattr(row_blocks, "SPARSE_ROWS", 40)
    X = (size * rng.standard_normal((N_ROWS, N_COLUMNS))).astype(dtype)
    X[rng.random(X.shape) < 0.3] = 0
    centre = np.zeros(N_COLUMNS) if is_sparse else size * rng.standard_normal(N_COLUMNS)
    columns = Columns(
        *np.array([-1.5, 1.5])[:, None] * np.full(N_COLUMNS, size),
        centre,
        size * np.ones(N_COLUMNS) / 3,
    )
    held = sparse.csr_array(X) if is_sparse else X
    weights, targets = rng.random(N_ROWS), (X[:, :1] > 0).astype(dtype)
    found = []
    for most in (0, 1 << 30):
        monkeypatch.setattr(memory, "COPY_BYTES", most)
        monkeypatch.setattr(memory, "SPARSE_COPY", most)
        rows = MemorySource.of(held, targets, weights, None, 0.5)
        found.append(rows.transformed(Scaling(columns), 2.0))
    assert [rows.records.columns is None for rows in found] == [False, True]
    return found


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_statistic_is_that_of_a_copy(rng, monkeypatch, dtype, is_sparse):
    lazy, copied = sources(rng, monkeypatch, dtype, is_sparse)
    tolerance = 1e-12 if dtype is np.float64 or is_sparse else 1e-5
    point = rng.standard_normal((N_COLUMNS + 1, 1))
    turned = rng.standard_normal((N_COLUMNS + 1, N_COLUMNS + 1))
    bins = histograms.BinCounts(True, True, np.full(6, -9.0), np.full(6, 2.5), 8)
    asked = [
        (gradients.clipped_gradients, (Logistic(), point, 0.3)),
        (second_moments.bounded_gram, (1e6,)),
        (second_moments.bounded_gram, (0.8,)),
        (histograms.bin_sum, (bins, (6, 8))),
    ]
    for function, arguments in asked:
        found, expected = (rows.total(function, *arguments) for rows in (lazy, copied))
        np.testing.assert_allclose(
            found, expected, rtol=tolerance, atol=tolerance, err_msg=function.__name__
        )
    for function, arguments in (
        (records.inverse_l1_norms, ()),
        (second_moments.inverse_norms_in, (np.linalg.qr(turned.T).R, turned @ turned.T)),
    ):
        found, expected = (rows.per_row(function, *arguments) for rows in (lazy, copied))
        np.testing.assert_allclose(found, expected, rtol=tolerance)
    chosen = np.array([3, 7, 250])
    for rows in (lazy, copied):
        np.testing.assert_allclose(
            rows.take(chosen).records.written_out(), rows.records.written_out()[chosen]
        )
    np.testing.assert_allclose(
        lazy.records.written_out(), copied.records.written_out(), rtol=tolerance
    )


@pytest.mark.parametrize("is_sparse", [False, True])
def test_huge_rows_stay_finite(rng, monkeypatch, is_sparse):
    lazy, copied = sources(rng, monkeypatch, np.float64, is_sparse, size=1e307)
    assert np.isfinite(lazy.records.X.data if is_sparse else lazy.records.X).all()
    np.testing.assert_allclose(lazy.records.inverse_norms, copied.records.inverse_norms)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_division_outlives_every_change_of_form(rng, grouped, monkeypatch):
    """The ledger takes blocks with equal numbers for the same ones, before `unclip` and after."""
    X, targets = rng.standard_normal((N_ROWS, N_COLUMNS)), np.zeros((N_ROWS, 1))
    given = MemorySource.of(X, targets)
    if grouped:
        given = MemorySource(given.records, groups=Groups.of(np.arange(N_ROWS) // 2, N_ROWS // 2))
    ones = np.ones(N_COLUMNS)
    scaling = Scaling(Columns(-ones, ones, 0 * ones, ones))
    draws = SystemSource()
    scaled = given.transformed(scaling, None)
    cuts, rows_of = (0, 5, 10), []
    take = MemorySource.take
    monkeypatch.setattr(MemorySource, "take", lambda *of: rows_of.append(of[1]) or take(*of))
    plain = given.transformed(scaling, None, unit_constant=True)
    for source, index in ((scaled, 0), (plain, 0), (plain, 1)):
        source.block(cuts, index, draws)
    assert np.array_equal(rows_of[0], rows_of[1])
    assert not np.isin(rows_of[2], rows_of[0]).any()
