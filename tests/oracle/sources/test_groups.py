"""Groups of rows as records: their parts are means, and follow from no other group, bit for bit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from skdp._oracle.kernels import second_moments
from skdp._oracle.kernels.clipped_gradients import (
    clipped_gradients,
    clipped_means,
    gradient_rounding,
    weighted_residuals,
)
from skdp._oracle.releases import histograms
from skdp._oracle.sources import row_blocks
from skdp._oracle.sources.column_map import Columns
from skdp._oracle.sources.memory import MemorySource
from skdp._oracle.sources.records import GroupBlock, Groups, Records
from skdp.objective import Logistic, Multinomial, SquaredError

CLIP = 0.5
MAGNITUDES = histograms.MagnitudeCounts(True, True)


def source_of(X, targets, codes, weights=None):
    records = Records.of(X, targets, weights, 3.0, 1.0)
    return MemorySource(records, 3.0, groups=Groups.of(codes, codes.max() + 1))


def data(rng, n_rows=300, n_groups=40, n_features=5):
    codes = rng.permutation(np.append(np.arange(n_groups), rng.integers(0, 9, n_rows - n_groups)))
    X = rng.standard_normal((n_rows, n_features)) * 10.0 ** rng.integers(-2, 3, (n_rows, 1))
    return X, rng.standard_normal((n_rows, 1)), codes


@pytest.mark.parametrize("n_groups", [1, 3, 10**6])
@pytest.mark.parametrize("size", [1, 3, 49, 1000])
def test_shares_of_a_group_add_up_to_one_at_most_and_exactly(rng, n_groups, size):
    codes = np.append(np.arange(n_groups), np.zeros(size - 1, dtype=np.int64))
    shares = Groups.of(codes, n_groups).multipliers()
    own = shares[codes == 0]
    assert 1 - size * 2.0**-30 <= own.sum() <= 1
    assert shares.sum() == shares[::-1].sum() == rng.permutation(shares).sum() <= n_groups


def test_no_row_of_a_group_is_left_out_where_ranges_are_tested(rng):
    """Else the other rows of its group would count for less."""
    source = source_of(*data(rng))
    assert source.changed_by(Columns(*np.outer([-1, 1, 0, 1], np.ones(5))), source) is source


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_sums_are_of_means_of_groups(either_way, rng, form):
    X, y, codes = data(rng)
    source, point = source_of(form(X), y, codes), rng.standard_normal((6, 1))
    found = source.total(clipped_gradients, SquaredError(), point, CLIP)
    each = [
        clipped_gradients(one, SquaredError(), point, CLIP)[:, 0]
        for one in Records.of(X, y, None, 3.0, 1.0).blocks(1)
    ]
    means = np.array([np.mean(np.array(each)[codes == code], axis=0) for code in np.unique(codes)])
    assert (np.linalg.norm(means, axis=1) <= CLIP * (1 + 1e-12)).all()
    np.testing.assert_allclose(found[:, 0], means.sum(axis=0), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("form", ["dense", "sparse", "float32"])
def test_taken_groups_are_whole(rng, form):
    X, y, codes = data(rng)
    X = {"dense": X, "sparse": sparse.csr_array(X), "float32": X.astype(np.float32)}[form]
    source, point = source_of(X, y, codes), rng.standard_normal((6, 1))
    drawn = np.array([3, 4, 17, 39])
    inside = np.isin(codes, drawn)
    expected = source_of(X[inside], y[inside], np.searchsorted(drawn, codes[inside]))
    taken = source.take(drawn)
    assert (source.n_rows, taken.n_rows) == (40, 4)
    for one in (taken, taken.take(np.arange(4))):
        sums = [
            item.total(clipped_gradients, SquaredError(), point, CLIP) for item in (one, expected)
        ]
        np.testing.assert_allclose(*sums, rtol=1e-6)
    nobody = source.take(np.empty(0, dtype=np.int64))
    assert nobody.n_rows == 0
    assert not nobody.total(clipped_gradients, SquaredError(), point, CLIP).any()


@pytest.mark.parametrize(
    "loss", [SquaredError(), Logistic(), Multinomial(3)], ids=lambda loss: loss.name
)
@pytest.mark.parametrize("form", ["dense", "sparse", "float32", "columns first"])
@pytest.mark.parametrize("n_features", [1, 7, 64])
def test_parts_of_a_row_do_not_follow_from_its_place(rng, form, loss, n_features):
    """With a row more or less in another group, residuals and norms stay, bit for bit."""
    X, y, codes = data(rng, n_features=n_features)
    n_outputs = 3 if isinstance(loss, Multinomial) else 1
    targets = np.arange(len(X)) % 3 if n_outputs == 3 else (y > 0).astype(float)
    point = rng.standard_normal((n_features + 1, n_outputs))

    def facts(first):
        rows = X[first:]
        if form == "columns first":
            rows = np.asfortranarray(rows)
        elif form == "float32":
            rows = rows.astype(np.float32)
        elif form == "sparse":
            rows = sparse.csr_array(rows)
        source = source_of(rows, targets[first:], np.unique(codes[first:], return_inverse=True)[1])
        residuals = source.per_row(weighted_residuals, loss, point)
        norms = source.records.inverse_norms[:, None]
        margins = source.per_row(Records.margins, point)
        return np.column_stack([residuals, norms, margins])

    everyone = facts(0)
    for first in (1, 2, 3, 5, 8, 13, 97):
        assert np.array_equal(everyone[first:], facts(first))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_facts_of_rows_are_computed_anew_at_another_point(rng, form):
    X, y, codes = data(rng)
    source = source_of(form(X), y, codes)
    for point in (np.zeros((6, 1)), rng.standard_normal((6, 1)), np.zeros((6, 1))):
        fresh = source_of(form(X), y, codes)
        for function in ((weighted_residuals, SquaredError(), point), (Records.margins, point)):
            assert np.array_equal(source.per_row(*function), fresh.per_row(*function))


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_features", [1, 7, 64])
def test_compiled_parts_of_a_row_do_not_follow_from_its_place(
    compiled_kernels, rng, form, kind, n_features
):
    """Rows of weight 0 before and after it, which add exactly 0."""
    X, y, _ = data(rng, n_features=n_features)
    everywhere = rng.standard_normal((n_features + 1, 3))
    for loss, row in ((SquaredError(), 150), (Logistic(), 200), (Multinomial(3), 120)):
        point = everywhere[:, : loss.n_outputs or 1]
        targets = y > 0 if point.shape[1] == 1 else (y[:, 0] > 0).astype(int)
        weights = (np.arange(len(X)) == row).astype(float)
        sums = []
        for first in (0, 1, 2, 3, 5, 8, 13, 97, row):
            records = Records.of(
                form(X[first:].astype(kind)), targets[first:], weights[first:], 3.0
            )
            records = dataclasses.replace(records, multipliers=np.full(len(X) - first, 0.25))
            sums.append(clipped_gradients(records, loss, point, CLIP))
        assert sums[0].any()
        assert all(np.array_equal(one, sums[0]) for one in sums)


@pytest.mark.parametrize("form", ["dense", "sparse", "float32", "columns first"])
def test_means_of_a_group_do_not_follow_from_the_others(rng, form):
    """Of average, then clip: with another number of rows in the first group, bit for bit."""
    X, _, codes = data(rng)
    factors, found = rng.standard_normal(len(X)), []
    for left_out in (0, 1, 3):
        kept = np.ones(len(X), dtype=bool)
        kept[np.flatnonzero(codes == 0)[:left_out]] = False
        rows = X[kept].astype(np.float32) if form == "float32" else X[kept]
        rows = np.asfortranarray(rows) if form == "columns first" else rows
        rows = sparse.csr_array(rows) if form == "sparse" else rows
        records = Records.of(rows, np.zeros((len(codes[kept]), 1)))
        means = GroupBlock(records, Groups.of(codes[kept], 40)).sums(factors[kept])
        found.append(means)
    Z = np.hstack([X, np.ones((len(X), 1))])
    exact = [Z[codes == code].T @ factors[codes == code] for code in range(40)]
    np.testing.assert_allclose(found[0], exact, rtol=1e-5, atol=1e-4)
    assert np.array_equal(found[0][1:], found[1][1:])
    assert np.array_equal(found[0][1:], found[2][1:])


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("form", ["dense", "sparse", "float32"])
def test_means_are_clipped_as_a_whole(rng, form, n_outputs):
    """Over all outputs together."""
    X, _, codes = data(rng)
    y = rng.standard_normal((len(X), n_outputs))
    X[5] = 1e308  # in a group of its own, or with others
    rows = {"dense": X, "sparse": sparse.csr_array(X), "float32": X.clip(-1e30, 1e30)}[form]
    rows = rows.astype(np.float32) if form == "float32" else rows
    source, point = source_of(rows, y, codes), rng.standard_normal((6, n_outputs))
    residuals = source.per_row(weighted_residuals, SquaredError(), point)
    found = source.total_over_groups(clipped_means, CLIP, rows=(residuals,))
    Z = source.records.written_out()
    Z = Z * source.records.multipliers[:, None]
    means = np.array([Z[codes == one].T @ residuals[codes == one] for one in range(40)])
    lengths = np.linalg.norm(means, axis=(1, 2))
    expected = (means * np.minimum(1, CLIP / lengths)[:, None, None]).sum(axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_mean_that_overflows_counts_as_null():
    records = Records.of(np.full((4, 2), 1e308), np.zeros((4, 1)), constant=0.0)
    groups = Groups.of(np.array([0, 0, 1, 1]), 2)
    block = GroupBlock(dataclasses.replace(records, multipliers=groups.multipliers()), groups)
    residuals = np.array([[1e10], [-1e10], [1e-310], [1e-310]])
    with np.errstate(all="ignore"):
        found = clipped_means(block, residuals, CLIP)
    np.testing.assert_allclose(found, np.full((2, 1), 1e-2), rtol=1e-3)


def test_a_group_adds_no_more_than_a_row_may(rng):
    """Histograms and Gram matrices: of one group with any number of rows."""
    for size in (1, 2, 3, 7, 50, 1000):
        X = rng.standard_normal((size, 5)) * 10.0 ** rng.integers(-3, 4, (size, 1))
        source = source_of(X, np.ones((size, 1)), np.zeros(size, dtype=np.int64))
        table = source.total(histograms.bin_sum, MAGNITUDES, (6, histograms.N_MAGNITUDES))
        assert (table.sum(axis=1) <= 1).all()
        assert (table.sum(axis=1) > 1 - 1e-6).all()
        gram = source.total(second_moments.bounded_gram, 2.0)
        assert np.linalg.norm(gram) <= 4.0 * (1 + 1e-12)


def test_histograms_leave_rows_of_weight_0_out(rng):
    X, y, codes = data(rng)
    X[rng.random(X.shape) < 0.4] = 0.0
    weights = rng.integers(0, 2, len(X)).astype(float)
    tables = [
        source_of(rows, y, codes, weights).total(
            histograms.bin_sum, MAGNITUDES, (6, histograms.N_MAGNITUDES)
        )
        for rows in (X, sparse.csr_array(X))
    ]
    assert np.array_equal(*tables)
    assert np.allclose(tables[0].sum(axis=1), sum(weights[codes == c].mean() for c in range(40)))


def test_rounding_holds_for_any_number_of_rows(monkeypatch):
    """Many small parts of one group: the sum stays within what the bound allows for."""
    monkeypatch.setattr(row_blocks, "PART_BYTES", 2)
    X = np.full((30_000, 2), 1.1)
    point = np.zeros((3, 1))
    source = source_of(X, -np.ones((len(X), 1)), np.zeros(len(X), dtype=np.int64))
    found = source.total(clipped_gradients, SquaredError(), point, CLIP)
    slack = gradient_rounding.__wrapped__(1, 2, 1, False, True)
    assert CLIP * (1 - 1e-4) < np.linalg.norm(found) <= CLIP * (1 + slack)
    assert slack < 1e-12
