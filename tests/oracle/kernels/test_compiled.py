"""Compiled kernels: what they add is what numpy's functions add, and no record adds more."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import skdp
from skdp.objective import Huber, Logistic, Multinomial, SquaredError
from skdp.oracle import Columns, compiled
from skdp.oracle.kernels import clipped_gradients as gradients
from skdp.oracle.kernels import second_moments
from skdp.oracle.kernels.clipped_gradients import (
    clipped_gradients,
    gradient_rounding,
    l1_clipped_gradients,
)
from skdp.oracle.releases import histograms
from skdp.oracle.sources import block_sizes
from skdp.oracle.sources.groups import Groups
from skdp.oracle.sources.memory import MemorySource
from skdp.oracle.sources.records import Records, inverse_l1_norms
from two_ways import CLIP, LOSSES, N_COLUMNS, both_ways, sources


def point_of(rows):
    """A point at which no margin is a sum of large numbers, which rounding swallows."""
    point = np.zeros((rows.records.n_parameters, 1))
    point[0] = 0.8
    return point


def called(monkeypatch):
    """Names of the compiled kernels that did some work."""
    names = set()

    def watch(module, name, loop=None):
        function = loop or f"_compiled_{name}"
        original = getattr(module, function)

        def watched(*arguments):
            found = original(*arguments)
            if loop or found is not None:
                names.add(name)
            return found

        monkeypatch.setattr(module, function, watched)

    watch(gradients, "clipped_gradients")
    watch(histograms, "magnitude_counts", "_add_magnitude_counts")
    watch(histograms, "bin_counts", "_add_bin_counts")
    watch(second_moments, "write_scaled", "_write_scaled_rows")
    watch(second_moments, "weighted_gram")
    watch(second_moments, "inverse_norms_in")
    return names


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_agree_within_what_rounding_is_charged_for(compiled_kernels, monkeypatch, loss, dtype):
    worked = called(monkeypatch)
    for rows in sources(dtype, monkeypatch):
        point, n_rows = point_of(rows), rows.n_rows
        slack = gradient_rounding(n_rows, N_COLUMNS, 1, False) * CLIP
        inverse = rows.per_row(inverse_l1_norms)
        asked = [(clipped_gradients, ()), (l1_clipped_gradients, (inverse,))]
        for function, vectors in asked:
            first, second = both_ways(rows.total, function, loss, point, CLIP, rows=vectors)
            assert first.shape == second.shape
            assert np.isfinite(second).all()
            assert np.linalg.norm(first - second) <= slack
    assert worked == {"clipped_gradients"}


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_record_adds_more_than_the_bound(compiled_kernels, monkeypatch, loss, dtype):
    """Points of any kind, at which margins overflow or are no numbers."""
    slack = 1 + gradient_rounding(1, N_COLUMNS, 1, False)
    points = [np.array(numbers)[:, None] for numbers in ([1e308, -1e308, 1e308, 1.0], [0.1] * 4)]
    for rows in sources(dtype, monkeypatch):
        records, inverse = rows.records, rows.per_row(inverse_l1_norms)
        for point in points:
            here = point[: records.n_parameters]
            for i in range(0, rows.n_rows, 3):
                one = records[slice(i, i + 1)]
                total = clipped_gradients(one, loss, here, CLIP)
                assert math.hypot(*total.ravel()) <= CLIP * slack
                total = l1_clipped_gradients(one, inverse[i : i + 1], loss, here, CLIP)
                assert np.abs(total).sum() <= CLIP * slack


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_sparse_sums_agree_and_no_record_adds_more(compiled_kernels, monkeypatch, loss, dtype):
    """With a base and without, weights, bounds on rows; entries of any size, and stored zeros."""
    index = (np.int32, np.int64)[(LOSSES.index(loss) + (dtype is np.float32)) % 2]
    monkeypatch.setattr(block_sizes, "SPARSE_ROWS", 70)
    monkeypatch.setattr(second_moments, "MOST_FILLED", 1.0)
    worked, gram = called(monkeypatch), second_moments.bounded_gram
    slack = CLIP * gradient_rounding(500, N_COLUMNS, 1, True)
    for rows in sources(dtype, monkeypatch):
        if rows.records.columns is not None:
            continue
        for base in (None, np.array([0.5, -0.25, 0.0])):
            if base is not None and not rows.records.constant:
                continue
            records = rows.records
            stored = sparse.csr_array(records.stored)
            stored.data[::7] = 0.0
            stored.indices = stored.indices.astype(index)
            stored.indptr = stored.indptr.astype(index)
            bound = None if records.shrink is None else 1.5
            given = records.targets, records.weights, bound, records.constant
            records = Records.of(stored, *given, base=base)
            point = point_of(rows)
            first, second = both_ways(clipped_gradients, records, loss, point, CLIP)
            assert np.linalg.norm(first - second) <= slack
            for function, arguments in (
                (gram, (CLIP,)),
                (gram, (CLIP, 3.0, 1.0)),
            ):
                first, second = both_ways(function, records, *arguments)
                assert np.linalg.norm(first - second) <= CLIP * slack
                assert np.array_equal(second, second.T)
            huge = np.array([1e308, -1e308, 1e308, 1.0])[: len(point), None]
            for i in range(0, 500, 9):
                one = records[slice(i, i + 1)]
                total = clipped_gradients(one, loss, huge, CLIP)
                assert math.hypot(*total.ravel()) <= CLIP * (1 + slack)
                turn = np.tri(len(point))
                limits = second_moments.shrinking_factors(one, turn, CLIP, False)
                total = second_moments.shrunk_gradients_in(one, limits, loss, point, 1.0)
                assert math.hypot(*(turn.T @ total).ravel()) <= CLIP * (1 + slack)
                assert np.linalg.norm(gram(one, CLIP, 3.0, 1.0)) <= CLIP**2 * (1 + 2 * slack)
    assert worked == {"clipped_gradients", "weighted_gram", "inverse_norms_in"}


@pytest.mark.parametrize("base", [None, 15.9])
def test_products_of_sparse_rows_are_rounded_as_little_as_is_charged_for(compiled_kernels, base):
    """Entries that all but cancel the longest base, so that parts are much longer than rows."""
    rng, n_rows = np.random.default_rng(0), 20_000
    X = sparse.csr_array(sparse.random(n_rows, 8, density=0.15, random_state=rng))
    X.data += 0.5 if base is None else -base
    base = None if base is None else base * np.eye(8)[0]
    records = Records.of(X, np.zeros((n_rows, 1)), base=base)
    found = second_moments.bounded_gram(records, 1.0)
    rows = records.written_out().astype(np.longdouble)
    rows /= np.maximum(1, np.sqrt((rows * rows).sum(1)))[:, None]
    error = float(np.linalg.norm((found - rows.T @ rows).astype(float)))
    assert error <= 2 * gradient_rounding(n_rows, 8, 1, True) / 2
    proved = 32 * 33**2 * 2.0**-53 * n_rows
    assert error <= proved
    # Two neighbouring sets of rows are off by twice as much, eigenvalues included.
    charged = [2 * gradient_rounding(n_rows, 8, 16, is_sparse) for is_sparse in (False, True)]
    assert charged[1] - charged[0] >= 2 * proved


@pytest.mark.parametrize("form", ["plain", "base", "bound", "null", "groups"])
def test_norms_of_sparse_rows_in_other_coordinates_are_not_rounded_down(
    compiled_kernels, monkeypatch, form
):
    """Even where T all but cancels a row, as it does the first 20."""
    worked, rng, n_rows, size = called(monkeypatch), np.random.default_rng(0), 400, 8
    dense = sparse.random(n_rows, size, density=0.3, random_state=rng).toarray()
    dense[:20] = np.linspace(1, 2, size) + 1e-7 * rng.standard_normal((20, size))
    X = sparse.csr_array(dense)
    base = np.linspace(0, 3, size) if form == "base" else None
    records = Records.of(
        X, np.zeros((n_rows, 1)), None, 0.7 if form == "bound" else None, base=base
    )
    if form == "groups":
        records = dataclasses.replace(records, multipliers=np.full(n_rows, 0.5))
    if form == "null":  # nothing is stored in most rows, and there is no constant
        X.data[:] = 0.0
        records = Records.of(X, np.zeros((n_rows, 1)), constant=0.0)
    for condition in (1.0, 1e3, 1e6):
        vectors = rng.standard_normal((records.n_parameters,) * 2)
        vectors[:, 0] = records.written_out()[0] if form != "null" else 1.0
        T = np.linalg.qr(vectors)[0] * np.geomspace(1 / condition, 1, len(vectors))
        by_numpy, found = both_ways(second_moments.inverse_norms_in, records, T)
        rows = records.written_out().astype(np.longdouble) @ T.astype(np.longdouble)
        exact = np.sqrt((rows * rows).sum(1))
        with np.errstate(divide="ignore"):
            lengths = 1 / found.astype(np.longdouble)
        assert (lengths >= exact * (1 - 16 * 2.0**-53)).all()
        np.testing.assert_allclose(found[20:], by_numpy[20:], rtol=1e-13 * condition**2)
        assert form != "null" or (found == np.finfo(float).max).all()
    assert worked == {"inverse_norms_in"}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_norms_of_dense_rows_in_other_coordinates_are_not_too_small(
    compiled_kernels, monkeypatch, dtype
):
    """Up to the rounding that is charged for; a row whose products overflow is too long."""
    worked, rng = called(monkeypatch), np.random.default_rng(0)
    for rows, condition in itertools.product(sources(dtype, monkeypatch), (1.0, 1e4)):
        records, size = rows.records, rows.records.n_parameters
        T = np.linalg.qr(rng.standard_normal((size, size)))[0]
        T = T * np.geomspace(1 / condition, 1, size)
        by_numpy, found = both_ways(second_moments.inverse_norms_in, records, T)
        exact = records.written_out().astype(np.longdouble) @ T.astype(np.longdouble)
        exact = np.sqrt((exact * exact).sum(1))
        slack = second_moments.transform_rounding(condition, 1, N_COLUMNS, size, False)
        visible = exact > 1e-150  # others are null up to underflow
        assert (found * exact <= 1 + slack)[visible].all()
        np.testing.assert_allclose(found[::2], by_numpy[::2], rtol=slack)
        last = records[slice(496, 500)]  # in another place
        assert np.array_equal(second_moments.inverse_norms_in(last, T), found[496:])
    assert worked == {"inverse_norms_in"}


def test_a_long_sum_is_rounded_as_little_as_is_charged_for(compiled_kernels, rng):
    n_rows = 100_000
    X = 10.0 ** rng.uniform(-3, 6, (n_rows, 2))
    targets = -1e9 * np.ones((n_rows, 1))  # every record is clipped, in one direction
    rows = MemorySource.of(X, targets, constant=0.0)
    total = rows.total(clipped_gradients, SquaredError(), np.zeros((2, 1)), 1.0)
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    exact = [math.fsum(column) for column in units.T]
    error = np.linalg.norm(total[:, 0] - exact)
    assert 2 * error <= gradient_rounding(n_rows, 2, 1, False)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_counts_are_the_same(compiled_kernels, monkeypatch, dtype):
    worked = called(monkeypatch)
    low, width = np.array([-3.0, 0.0, 1e-300, -9.0]), np.array([0.1, 1e-320, 1e300, 3.0])
    shares = Groups.of(np.random.default_rng(0).integers(0, 9, 500), 9).multipliers()
    alone = list(sources(dtype, monkeypatch))
    grouped = [dataclasses.replace(rows.records, multipliers=shares) for rows in alone]
    for rows in (*alone, *map(MemorySource, grouped)):
        for features, targets in ((True, True), (True, False), (False, True)):
            ends = (low, width) if features else (low[:1], width[:1])
            for statistic in (
                histograms.MagnitudeCounts(features, targets),
                histograms.MagnitudeCounts(features, targets, of_blocks=True),
                histograms.BinCounts(features, targets, *ends, 7),
            ):
                table = len(ends[0]), getattr(statistic, "n_bins", histograms.N_MAGNITUDES)
                first, second = both_ways(rows.total, histograms.bin_sum, statistic, table)
                assert np.array_equal(first, second)
    assert worked == {"magnitude_counts", "bin_counts"}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gram_sums_are_the_same_bit_for_bit(compiled_kernels, monkeypatch, dtype):
    worked = called(monkeypatch)
    for rows in sources(dtype, monkeypatch):
        grouped = dataclasses.replace(rows.records, multipliers=np.full(rows.n_rows, 0.3))
        of_groups = MemorySource(grouped)
        for compute in (
            functools.partial(rows.total, second_moments.bounded_gram, 2.0),
            functools.partial(rows.total, second_moments.bounded_gram, 2.0, 3.0, 1.0),
            functools.partial(of_groups.total, second_moments.bounded_gram, 2.0),
        ):
            worked.clear()
            first, second = both_ways(compute)
            assert "write_scaled" in worked
            assert np.array_equal(first, second)
            assert np.isfinite(first).all()


def test_margins_that_are_no_numbers_are_gone_with_their_tile(compiled_kernels, rng):
    """The loops use one array for the margins of all tiles, and BLAS may add to what it holds."""
    n_rows = 3 * max(8, gradients.TILE_NUMBERS // N_COLUMNS)
    X = rng.standard_normal((2 * n_rows, N_COLUMNS))
    X[:n_rows] = [1e308, -1e308, 1.0]  # inf - inf
    targets, point = rng.standard_normal((2 * n_rows, 1)), np.array([[1e9], [1e9], [1.0], [0.5]])
    rows = MemorySource.of(X, targets)
    for loss in LOSSES:
        first, second = both_ways(rows.total, clipped_gradients, loss, point, CLIP)
        assert np.isfinite(second).all()
        slack = gradient_rounding(rows.n_rows, N_COLUMNS, 1, False) * CLIP
        assert np.linalg.norm(first - second) <= slack


LIE_ELSEWHERE = {
    "unaligned": lambda a: np.frombuffer(b"0" + a.tobytes(), np.uint8)[1:].view(a.dtype),
    "big-endian": lambda a: a.astype(">f8"),
    "a field": lambda a: np.rec.fromarrays([np.zeros(len(a), "i1"), a], names="code, value").value,
    "every other one": lambda a: np.repeat(a, 2)[::2],
}


@pytest.mark.parametrize("lie", LIE_ELSEWHERE)
def test_targets_and_weights_that_lie_elsewhere(compiled_kernels, monkeypatch, rng, lie):
    worked, move = called(monkeypatch), LIE_ELSEWHERE[lie]
    X, weights = rng.standard_normal((300, N_COLUMNS)), rng.random(300)
    y = X[:, 0] + rng.standard_normal(300)
    assert lie != "unaligned" or not move(y).flags.aligned
    plain = MemorySource.of(X, y[:, None], weights)
    moved = MemorySource.of(X, move(y)[:, None], move(weights))
    for function, arguments in (
        (clipped_gradients, (Huber(0.7), np.ones((4, 1)), CLIP)),
        (histograms.bin_sum, (histograms.MagnitudeCounts(True, True), (4, 141))),
    ):
        assert np.array_equal(plain.total(function, *arguments), moved.total(function, *arguments))
    assert worked == {"clipped_gradients", "magnitude_counts"}
    model = skdp.DPRidge(privacy=skdp.Privacy(noise=skdp.SeededNoise(0)), delta=1e-4)
    first = model.fit(X, y, weights).coef_
    assert np.array_equal(first, model.fit(X, move(y), move(weights)).coef_)


def test_exponentials(compiled_kernels):
    """Within four units in the last place; cut where they leave the range; nan is small."""
    x = np.concatenate([np.linspace(-708, 709, 20_001), np.linspace(-1, 1, 2_001), [-0.0]])
    found = x.copy()
    gradients._exponentials(found, np.empty(len(x), np.int64))
    np.testing.assert_allclose(found, np.exp(x), rtol=4 * 2.0**-53)
    ends = np.array([-np.inf, -1e300, np.nan, 1e300, np.inf])
    gradients._exponentials(ends, np.empty(len(ends), np.int64))
    np.testing.assert_allclose(ends, np.exp([-708.0, -708.0, -708.0, 709.0, 709.0]), rtol=1e-15)


def test_what_no_compiled_kernel_can_do_is_left_to_numpy(compiled_kernels, monkeypatch, rng):
    worked = called(monkeypatch)
    X, codes = rng.standard_normal((40, 3)), rng.integers(3, size=40)
    plain = MemorySource.of(X, X[:, :1])
    unaligned = np.frombuffer(b"0" + X.tobytes(), np.uint8)[1:].view(np.float64).reshape(X.shape)
    assert not unaligned.flags.aligned
    mapped = Columns(*np.array([[-9.0] * 3, [9.0] * 3, [0.0] * 3, [2.0] * 3])).for_type(X.dtype)
    for rows, loss, n_outputs, anchor in (
        (Records.of(sparse.csr_array(X), X[:, :1], columns=mapped), Logistic(), 1, None),
        (MemorySource.of(np.asfortranarray(X), X[:, :1]).records, Logistic(), 1, None),
        (MemorySource.of(unaligned, X[:, :1]).records, Logistic(), 1, None),
        (MemorySource.of(X, codes).records, Multinomial(3), 3, None),
        (MemorySource.of(X, X[:, :2]).records, SquaredError(), 2, None),
        (plain.records, Logistic(), 1, np.zeros((4, 1))),
    ):
        point = np.ones((4, n_outputs))
        first, second = both_ways(clipped_gradients, rows, loss, point, CLIP, anchor)
        assert np.array_equal(first, second)
    assert worked == set()


def test_a_loss_that_changes_the_residual_of_another_is_left_to_numpy(compiled_kernels, rng):
    class Doubled(Logistic):
        def _residual(self, margins, targets, out):
            super()._residual(margins, targets, out)
            out *= 2

    assert (Logistic().kernel, Doubled().kernel) == ((1, 1.0), None)
    rows = MemorySource.of(1e-3 * rng.standard_normal((40, 3)), np.ones((40, 1)))
    point = np.zeros((4, 1))
    plain, doubled = (
        rows.total(clipped_gradients, loss, point, 1e3) for loss in (Logistic(), Doubled())
    )
    np.testing.assert_allclose(doubled, 2 * plain, rtol=1e-12)


def test_a_fit_is_charged_the_same(compiled_kernels, rng):
    X = rng.standard_normal((300, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] > 0.1
    X.setflags(write=False)  # as joblib's workers get them

    def fitted():
        return skdp.DPLogisticRegression(
            privacy=skdp.Privacy(noise=skdp.SeededNoise(0)), delta=1e-4, classes=[False, True]
        ).fit(X, y)

    first, second = both_ways(fitted)
    assert first.privacy_ == second.privacy_
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-6)


# ---------------------------------------------------------------- which of the two runs


def test_the_shape_decides(compiled_kernels, monkeypatch):
    worked = called(monkeypatch)
    few, many = (MemorySource.of(np.ones((n, 2)), np.ones((n, 1))).records for n in (100, 200))
    arguments = Logistic(), np.ones((3, 1)), 1.0
    with compiled.switched(True, least_numbers=400):
        clipped_gradients(few, *arguments)
        assert worked == set()
        clipped_gradients(many, *arguments)
        assert worked == {"clipped_gradients"}


@pytest.mark.parametrize("switch", ["never", None])
def test_the_environment_turns_them_off(compiled_kernels, switch):
    """Read when skdp is imported: numba is not even loaded."""
    program = """
import sys, numpy as np, skdp
from skdp.oracle import compiled
X = np.random.default_rng(0).standard_normal((70_000, 2))
privacy = skdp.Privacy(noise=skdp.SeededNoise(0))
model = skdp.DPRidge(solver="gd", max_iter=2, delta=1e-7, privacy=privacy)
model.fit(X, X[:, 0])
print(compiled.is_large(X.shape), "numba" in sys.modules)
"""
    environment = {name: value for name, value in os.environ.items() if name != compiled.SWITCH}
    if switch is not None:
        environment[compiled.SWITCH] = switch
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(switch is None)] * 2


@pytest.fixture
def loading(monkeypatch):
    """As if nothing had been loaded yet."""
    for loop in compiled._LOOPS:
        monkeypatch.delitem(vars(loop), "dispatcher", raising=False)
    compiled._failure.cache_clear()
    yield
    compiled._failure.cache_clear()


def test_without_numba_numpy_does_it(loading, monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    with compiled.switched(True, least_numbers=0):
        assert not compiled.is_installed()
        skdp.DPRidge(delta=1e-3).fit(np.eye(400)[:, :2], np.ones(400))


def test_where_nothing_compiles_numpy_does_it(compiled_kernels, loading, monkeypatch):
    import numba

    def refused(*arguments, **options):
        raise OSError("no compiler")

    monkeypatch.setattr(numba, "njit", refused)
    assert not compiled.is_installed()
    with pytest.warns(RuntimeWarning, match="SKDP_COMPILED=never"):
        compiled.prepare((1000, 1000))


def test_where_nothing_can_be_kept_on_disk_it_compiles_nevertheless(compiled_kernels, monkeypatch):
    import numba

    njit = numba.njit

    def unwritable(*signatures, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*signatures, **options)

    def one_more(x: float) -> float:
        return x + 1

    monkeypatch.setattr(numba, "njit", unwritable)
    assert compiled.Loop(one_more, is_inner=False)(1.0) == 2.0
