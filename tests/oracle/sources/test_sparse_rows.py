"""Sparse rows moved by a public base count as the dense rows that they stand for."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

import skdp
from skdp._oracle import Columns, Oracle, Public, PublicContext, Scaling
from skdp._oracle.kernels import clipped_gradients as gradients
from skdp._oracle.kernels import second_moments
from skdp._oracle.kernels.clipped_gradients import (
    clipped_gradients,
    clipped_means,
    gradient_rounding,
)
from skdp._oracle.noise import noise_source
from skdp._oracle.oracle import AdmitAll, Ledger
from skdp._oracle.releases import histograms, record_sums
from skdp._oracle.sources import memory, records, row_blocks
from skdp._oracle.sources.memory import MemorySource
from skdp._oracle.sources.records import Groups, Records
from skdp._oracle.sources.row_blocks import LONGEST_BASE, growth_of_rounding, summation_depth
from skdp.accounting import Adjacency
from skdp.objective import Logistic, Multinomial, Problem, SquaredError

N_ROWS, N_COLUMNS, CONSTANT = 400, 6, 2.5
FORMS = ["copied", "mapped", "long base", "groups", "groups, long base"]
hostile = st.floats(allow_nan=False, allow_infinity=False, width=64)


def table(rng):
    """Rows with empty, full, huge, tiny and central ones; some zeros are stored."""
    X = rng.standard_normal((N_ROWS, N_COLUMNS)) * [1, 5, 0.1, 1, 1, 1] + [0, 40, 0.2, 0, 0, 0]
    X[rng.random(X.shape) < 0.6] = 0
    X[:, 5] = rng.random(N_ROWS) < 0.02
    X[:6] = [[0] * 6, [1e300] * 6, [-1e300] * 6, [1e-310] * 6, [0, 20, 0.1, 0, 0, 0.02], [7] * 6]
    held = sparse.csr_array(X)
    held.data[rng.random(held.nnz) < 0.1] = 0.0
    return held


def sources(rng, monkeypatch, form):
    """The same standardised rows, sparse and dense, in several blocks."""
    monkeypatch.setattr(row_blocks, "COPIED_BYTES", 8 * N_COLUMNS * 40)
    monkeypatch.setattr(row_blocks, "SPARSE_ROWS", 70)
    monkeypatch.setattr(memory, "SPARSE_COPY", 0 if form == "mapped" else 1 << 30)
    X = table(rng)
    low = np.array([-3.0, 0.5, -1.0, -3.0, -3.0, -0.5])  # 0 lies outside of the second range
    centre = np.array([0.1, 20.0, 0.1, -0.2, 0.0, 0.02])
    size = np.array([1.0, 5.0, 0.1, 0.5, 1.0, 0.14])
    if "long" in form:
        centre[3], low[3] = 200.0, -1.0
    columns = Columns(low, low + np.array([6, 80, 2, 400, 6, 2]), centre, size)
    weights, targets = rng.random(N_ROWS), (X[:, [0]].toarray() > 0).astype(float)
    groups = Groups.of(np.sort(rng.integers(90, size=N_ROWS)), 90)
    found = []
    for rows in (X, X.toarray()):
        given = MemorySource.of(rows, targets, weights, None, CONSTANT)
        if "groups" in form:
            given = MemorySource(given.records, groups=groups)
        found.append(given.transformed(Scaling(columns), 4.0))
    is_long = "long" in form
    assert (found[0].records.base is None) == found[0].records.loses_zeros == is_long
    assert (found[0].records.columns is None) == (form in ("copied", "groups"))
    return found


@pytest.mark.parametrize("form", FORMS)
def test_every_statistic_is_that_of_dense_rows(either_way, rng, monkeypatch, form):
    monkeypatch.setattr(second_moments, "MOST_FILLED", 1.0)
    rows, dense = sources(rng, monkeypatch, form)
    point = rng.standard_normal((N_COLUMNS + 1, 1))
    turned = rng.standard_normal((N_COLUMNS + 1, N_COLUMNS + 1))
    edges = np.full(N_COLUMNS + 1, -9.0), np.full(N_COLUMNS + 1, 2.51)
    cut = np.linspace(0.1, 0.8, N_COLUMNS)
    public = Public(N_ROWS, N_COLUMNS, 1, Adjacency.ZERO_OUT, 1.0, 1e-6)
    context = PublicContext(public, Problem(Logistic()), 1.0)
    asked = [
        (gradients.clipped_gradients, (Logistic(), point, 0.3)),
        (gradients.clipped_gradients, (Logistic(), point, 0.3, 0.5 * point)),
        (gradients.clipped_gradients, (SquaredError(), point, 2.0)),
        (second_moments.bounded_gram, (1e6,)),
        (second_moments.bounded_gram, (0.8,)),
        (record_sums.record_sum, (record_sums.DirectionalSum(point, point, 1.0, True), context)),
        (record_sums.record_sum, (record_sums.TailSum(point, -cut, cut, 1.5, 1.0), context)),
        (record_sums.record_sum, (record_sums.TailSum(point, cut, 3 * cut, 9.0, 1.0), context)),
        (record_sums.record_sum, (record_sums.ResidualSquares(point, 3.0), context)),
        (histograms.bin_sum, (histograms.BinCounts(True, True, *edges, 8), (N_COLUMNS + 1, 8))),
    ]
    for function, arguments in asked:
        found, expected = (one.total(function, *arguments) for one in (rows, dense))
        np.testing.assert_allclose(
            found, expected, rtol=1e-11, atol=1e-11, err_msg=function.__name__
        )
    for function, arguments in (
        (records.inverse_l1_norms, ()),
        (second_moments.inverse_norms_in, (np.linalg.qr(turned.T).R, turned @ turned.T)),
    ):
        found, expected = (one.per_row(function, *arguments) for one in (rows, dense))
        np.testing.assert_allclose(found, expected, rtol=1e-11)
    inverse = [one.per_row(records.inverse_l1_norms) for one in (rows, dense)]
    arguments = Logistic(), point, 0.3
    found, expected = (
        one.total(gradients.clipped_in_norm, *arguments, rows=(norms,))
        for one, norms in zip((rows, dense), inverse, strict=True)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(rows.records.inverse_norms, dense.records.inverse_norms, rtol=1e-11)
    chosen = np.array([3, 0, 77])
    for some in (slice(None), chosen):
        if "groups" not in form or isinstance(some, slice):
            given = rows.take(chosen).records if some is chosen else rows.records
            np.testing.assert_allclose(
                given.written_out(), dense.records.written_out()[some], rtol=1e-11, atol=1e-13
            )


def test_gradients_of_several_classes_are_those_of_dense_rows(rng, monkeypatch):
    classes, point = rng.integers(3, size=N_ROWS), rng.standard_normal((N_COLUMNS + 1, 3))
    found, expected = (
        MemorySource(replace(one.records, targets=classes)).total(
            gradients.clipped_gradients, Multinomial(3), point, 0.5
        )
        for one in sources(rng, monkeypatch, "copied")
    )
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("form", ["groups", "groups, long base"])
def test_mean_gradients_of_groups_are_those_of_dense_rows(rng, monkeypatch, form):
    rows, dense = sources(rng, monkeypatch, form)
    residuals = rng.standard_normal((N_ROWS, 2))
    found, expected = (
        one.total_over_groups(clipped_means, 0.7, rows=(residuals,)) for one in (rows, dense)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@settings(max_examples=100, deadline=None)
@given(
    X=arrays(np.float64, (4, 3), elements=hostile | st.just(0.0) | st.floats(-80, 80)),
    base=arrays(np.float64, (3,), elements=st.floats(-40, 40)),
    is_central=st.booleans(),
)
def test_norms_are_never_too_small(X, base, is_central):
    """Even where a row all but cancels the base; limits on gradients are inverses of norms."""
    if is_central:
        X[0] = -base
        X[1] = -base * (1 + 2.0**-30)
    held = sparse.csr_array(X)
    norms = records.row_norms(held, None, base)
    for norm, row in zip(norms, X, strict=True):
        exact = sum((Fraction(b) + Fraction(x)) ** 2 for b, x in zip(base, row, strict=True))
        if exact > Fraction(np.finfo(float).max) ** 2:
            assert norm > 1e308
            continue
        slack = Fraction(1 + 7 * 2.0**-53)
        # Subnormal norms have fewer digits; a constant feature stands beside every base.
        assert (Fraction(norm) * slack + 4 * Fraction(5e-324)) ** 2 >= exact
        lost = (2 * 3 + 8) * 2.0**-52 * float(base @ base)
        assert Fraction(norm) ** 2 <= (exact + Fraction(lost)) * Fraction(1 + 1e-14) + Fraction(
            1e-299
        )


def test_rows_taken_by_number_are_written_out_in_blocks_only():
    """All of a large batch at once would be as large as a dense table."""
    moved = Columns(*np.array([-1, 1, 0.9, 0.01])[:, None] * np.ones(4))
    held = sparse.csr_array(np.eye(50, 4))
    given = MemorySource.of(held, np.zeros((50, 1))).transformed(Scaling(moved), None).records
    assert given.loses_zeros
    taken = given[np.arange(40)]
    assert sparse.issparse(taken.stored)
    np.testing.assert_array_equal(taken.X, given.X[:40])
    blocks = [block.stored for block in taken.blocks(7)]
    assert [len(block) for block in blocks] == [7] * 5 + [5]
    assert all(isinstance(block, np.ndarray) for block in blocks)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_bounds_that_hold_0_are_no_reason_to_move_sparse_columns(is_sparse, rng):
    """Most of their values are 0; those of years, say, are not."""
    X = np.c_[rng.random((500, 2)) < 0.1, rng.integers(1990, 2020, 500)].astype(float)
    model = skdp.DPRidge(
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
    )
    model.set_params(scaling=skdp.PublicRange(by_column={0: (0, 1), 1: (-3, 1), 2: (1990, 2020)}))
    model.fit(sparse.csr_array(X) if is_sparse else X, X[:, 0])
    expected = [0, 0, 2005] if is_sparse else [0.5, -1, 2005]
    np.testing.assert_array_equal(model.scaling_.columns.centre, expected)


@settings(max_examples=100, deadline=None)
@given(
    X=arrays(np.float64, (3, 2), elements=hostile | st.just(0.0)),
    y=arrays(np.float64, (3, 2), elements=hostile),
    w=arrays(np.float64, (3,), elements=st.floats(0, 1e300)),
    point=arrays(np.float64, (3, 2), elements=hostile),
    base=arrays(np.float64, (2,), elements=st.floats(-50, 50)),
    clip_norm=st.floats(1e-6, 1e6),
    row_bound=st.none() | st.floats(1e-6, 1e6),
)
def test_no_record_adds_more_than_the_bound(X, y, w, point, base, clip_norm, row_bound):
    X[0] = -base  # the record is all constant
    slack = 1 + gradient_rounding(1, 2, 2, True)
    for i in range(3):
        one = slice(i, i + 1)
        held = sparse.csr_array(X[one])
        found = Records.of(held, y[one], w[one], row_bound, CONSTANT, base=base)
        total = clipped_gradients(found, SquaredError(), point, clip_norm)
        assert np.isfinite(total).all()
        assert math.hypot(*total.ravel()) <= clip_norm * slack * (1 + 1e-15)


def test_parts_of_rows_are_not_longer_than_rounding_is_charged_for():
    """The worst row is its base's opposite: it leaves the constant alone."""
    base = np.array([0.6, 0.8]) * LONGEST_BASE * CONSTANT * (1 - 1e-15)
    assert row_blocks.base_of(base, CONSTANT) is base
    assert row_blocks.base_of(base * 1.0001, CONSTANT) is None
    assert row_blocks.base_of(base, 0.0) is None
    record = Records.of(
        sparse.csr_array(-base[None]), np.ones((1, 1)), base=base, constant=CONSTANT
    )
    length = 1 / record.inverse_norms[0]
    assert length == pytest.approx(CONSTANT)
    worst = (np.linalg.norm(record.stored.toarray()) + np.linalg.norm(base)) / length
    assert 0.9 * growth_of_rounding(LONGEST_BASE) <= worst <= growth_of_rounding(LONGEST_BASE)
    for n_rows, n_features in ((1, 3), (10**6, 50), (10**6, 10**5)):
        terms = summation_depth(n_rows, n_features, True, False)
        charged = gradient_rounding(n_rows, n_features, 1, True)
        assert charged >= 2.0**-53 * 2 * terms * n_rows * worst


def test_rounding_of_sums_is_within_what_is_charged(rng):
    n_rows, clip_norm = 20_000, 1.0
    base = np.array([0.6, 0.8]) * LONGEST_BASE * CONSTANT * 0.99
    X = rng.standard_normal((n_rows, 2)) * 1e-3 - base
    source = MemorySource(
        Records.of(sparse.csr_array(X), np.full((n_rows, 1), -1e9), base=base, constant=CONSTANT)
    )
    total = source.total(clipped_gradients, SquaredError(), np.zeros((3, 1)), clip_norm)[:, 0]
    rows = np.c_[base + X, np.full(n_rows, CONSTANT)]
    exact = [math.fsum(column) for column in (rows / np.linalg.norm(rows, axis=1)[:, None]).T]
    error = np.linalg.norm(total - np.array(exact))
    assert 2 * error <= gradient_rounding(n_rows, 2, 1, True) * clip_norm


@pytest.mark.parametrize("n_features", [1, 300, 3000])
def test_rounding_is_charged_for_as_many_rows_as_are_summed_at_once(n_features):
    """Of rows that are written out, as well as of those that stay sparse."""
    n_rows = 2**17 if n_features < 3000 else 2**13
    held, column = sparse.csr_array((n_rows, n_features)), np.zeros(n_rows)
    moved = Columns(*np.array([-1, 1, 0.5, 1.0])[:, None] * np.ones(n_features))
    for columns, base in ((None, None), (None, np.ones(n_features)), (moved.for_type(float), None)):
        given = Records(held, column[:, None], None, None, column, 1.0, columns, base=base)
        parts = [given[part] for part in given.parts()]
        for blocks in (Records.cached_blocks, Records.float64_blocks):
            sizes = [[block.n_rows for block in blocks(part)] for part in parts]
            assert sum(map(sum, sizes)) == n_rows
            longest = max(max(one) + 2 * len(one) for one in sizes) + 2 * np.log2(len(parts) + 1)
            assert longest <= summation_depth(n_rows, n_features, True, False)


FEW = {"max_iter": 8}
OTHERS = {
    "default": (skdp.DPLogisticRegression, FEW),
    "gd": (skdp.DPLogisticRegression, {"solver": "gd", **FEW}),
    "ridge": (skdp.DPRidge, FEW),
    "boosted": (skdp.DPLinearRegression, {"solver": "boosted_ssp"}),
    "svrg": (skdp.DPRidge, {"solver": "svrg", "max_iter": 50}),
    "in balls": (skdp.DPRidge, {"constraint": skdp.objective.L2Ball(), "solver": "gd", **FEW}),
    "pure": (
        skdp.DPLogisticRegression,
        {"delta": 0.0, "scaling": skdp.PublicRange(-60.0, 60.0), "epsilon": 5.0, **FEW},
    ),
    "intervals": (skdp.DPLinearRegression, {"inference": "coefficients", "epsilon": 5.0, **FEW}),
    "no noise": (skdp.DPRidge, {"epsilon": math.inf}),
    "no intercept": (skdp.DPRidge, {"fit_intercept": False, **FEW}),
}


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning", "ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("name", OTHERS)
def test_a_fit_is_that_of_dense_rows(name, rng):
    """Same releases, noise and model; stored zeros and parts of entries make no difference."""
    make, parameters = OTHERS[name]
    X = rng.standard_normal((3000, 5)) + np.array([0, 3, 50, 1, -1])
    X[rng.random(X.shape) < 0.5] = 0
    y = X @ [1.0, 0.5, 0.02, -1.0, 0.0] + rng.standard_normal(3000)
    y = (y > np.median(y)).astype(int) if make is skdp.DPLogisticRegression else y
    model = make(
        **parameters,
        privacy=skdp.Privacy(noise=skdp.SeededNoise(1)),
    )
    expected = model.fit(X, y)
    coef, scores, made = expected.coef_, expected.predict(X), expected.privacy_.releases
    rows = sparse.csr_array(X)
    empty = (X == 0) & (rng.random(X.shape) < 0.3)
    zeros = sparse.csr_array(X + 7 * empty)
    zeros.data[zeros.data == 7] = 0
    parts = sparse.csr_array(
        (np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2), 2 * rows.indptr), rows.shape
    )
    close = {"rtol": 1e-4, "atol": 1e-4 * np.abs(coef).max()}
    for held in (rows, zeros, parts, sparse.csr_matrix(X)):
        found = model.fit(held, y)
        np.testing.assert_allclose(found.coef_, coef, **close)
        np.testing.assert_allclose(found.predict(held), scores, rtol=1e-3, atol=1e-2)
        assert [(one.kind, one.count) for one in found.privacy_.releases] == [
            (one.kind, one.count) for one in made
        ]
    assert found.privacy_.epsilon == pytest.approx(expected.privacy_.epsilon)


@pytest.mark.parametrize(
    ("column", "pointer"), [(4, [0, 1, 2]), (-1, [0, 1, 2]), (10**7, [0, 1, 2]), (1, [0, 2, 1])]
)
@pytest.mark.parametrize("solver", ["gd", "whitened"])
def test_numbers_out_of_range_are_refused(column, pointer, solver):
    """Compiled loops would read and write outside their arrays, and norms would miss the entry."""
    X = sparse.csr_array(np.eye(2, 4))
    X.indices[1], X.indptr[:] = column, pointer
    model = skdp.DPRidge(solver=solver, scaling=skdp.RowNorm(1.0))
    with pytest.raises(ValueError, match=r"not a valid CSR matrix.*Nothing was released"):
        model.fit(X, [0.0, 1.0])


@pytest.mark.parametrize("far", [0.05, 1e3])
def test_rounding_is_charged_for_the_base_that_rows_have(rng, far):
    """Whatever ranges apply, and with a constant feature of either size."""
    n_rows, one = 10**8, np.ones(N_COLUMNS)
    public = Public(n_rows, N_COLUMNS, 1, Adjacency.ZERO_OUT, 1.0, 1e-6, sparse=True, row_bound=9.0)
    X = sparse.csr_array(rng.standard_normal((5, N_COLUMNS)))
    rows = MemorySource.of(X, np.zeros((5, 1)), None, 9.0, public.intercept_size)
    context = PublicContext(public, Problem(SquaredError()), 1.0)
    oracle = Oracle(context, Ledger(AdmitAll()), rng, rows, noise_source(0))
    scaling = Scaling(Columns(-one, one, far * one, one))

    def is_charged():
        held = oracle._source._records
        ratio = 0.0 if held.base is None else np.linalg.norm(held.base) / held.constant
        assert ratio <= oracle._context.public.base_ratio <= LONGEST_BASE
        return oracle._context.rounding(n_rows, 1)

    assert is_charged() < 1e-3  # no base: rows as they are given
    oracle.standardise(scaling)
    assert is_charged() < (5e-4 if far < 1 else np.inf)
    wider = replace(scaling, columns=replace(scaling.columns, low=-9 * one, high=9 * one))
    with oracle.with_ranges(wider, 30.0):
        is_charged()
    oracle.unclip(scaling)
    is_charged()
