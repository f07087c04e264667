"""Compiled loops: they add what numpy's functions add, and no record adds more than its bound."""

from __future__ import annotations

import dataclasses
import math
import os
import runpy
import subprocess
import sys
from fractions import Fraction
from operator import mul

import numpy as np
import pytest
from scipy import sparse

import skdp
from skdp._oracle import compiled
from skdp._oracle.kernels import clipped_gradients as gradients
from skdp._oracle.kernels import loops, second_moments
from skdp._oracle.kernels.clipped_gradients import (
    clipped_gradients,
    clipped_in_norm,
    gradient_rounding,
)
from skdp._oracle.releases import histograms
from skdp._oracle.sources import memory
from skdp._oracle.sources.memory import MemorySource
from skdp._oracle.sources.records import Records, inverse_l1_norms
from skdp.objective import Huber, Logistic, Multinomial, SquaredError
from skdp.objective.tweedie import TweedieLog
from two_ways import CLIP, FORMS, HOSTILE, LOSSES, N_COLUMNS, both_ways, hostile_rows

pytestmark = pytest.mark.usefixtures("compiled_kernels")


def kernels(rows, n_outputs):
    """Sums to compare, with what they are given beside the loss, and the norm that they bound."""
    yield clipped_gradients, (), 2
    if n_outputs == 1:
        yield clipped_in_norm, (rows.per_row(inverse_l1_norms),), 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("loss", "n_outputs"), LOSSES, ids=str)
def test_the_contract_of_a_sum(monkeypatch, loss, n_outputs, form):
    """Within rounding of numpy's sum; and no record adds more, even if margins are not numbers."""
    monkeypatch.setattr(memory, "COPY_BYTES", 0)  # blocks are standardised in every pass
    used, original = [], gradients._compiled_sum
    note = lambda *given, **named: used.append(original(*given, **named)) or used[-1]  # noqa: E731
    monkeypatch.setattr(gradients, "_compiled_sum", note)
    is_sparse = form.startswith("sparse")
    slack = CLIP * gradient_rounding(300, N_COLUMNS, n_outputs, is_sparse)
    for rows in hostile_rows(form, loss, n_outputs):
        size = rows.records.n_parameters
        point = np.zeros((size, n_outputs))
        point[0] = np.linspace(0.8, 0.2, n_outputs)
        if rows.records.constant:
            point[-1] = np.linspace(0.25, 0.5, n_outputs)
        huge = np.array([[1e308], [-1e308], [1e308], [1.0]])[:size] * np.ones(n_outputs)
        for function, vectors, order in kernels(rows, n_outputs):
            first, second = both_ways(rows.total, function, loss, point, CLIP, rows=vectors)
            assert np.isfinite(second).all()
            assert np.linalg.norm(first - second) <= slack
            for i in range(0, rows.n_rows, 23):
                one, own = rows.records[slice(i, i + 1)], [each[i : i + 1] for each in vectors]
                for at in (huge, point + 0.1):
                    total = function(one, *own, loss, at, CLIP)
                    assert np.linalg.norm(total.ravel(), order) <= CLIP * (1 + slack)
    assert used
    assert used[-1] is not None


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_long_sum_is_rounded_as_little_as_is_charged_for(rng, n_outputs):
    n_rows = 100_000
    X = 10.0 ** rng.uniform(-3, 6, (n_rows, 2))
    targets = -1e9 * np.ones((n_rows, n_outputs))  # every record is clipped, in one direction
    rows = MemorySource.of(X, targets, constant=0.0)
    total = rows.total(clipped_gradients, SquaredError(), np.zeros((2, n_outputs)), 1.0)
    units = X / np.linalg.norm(X, axis=1, keepdims=True) / math.sqrt(n_outputs)
    exact = np.array([math.fsum(column) for column in units.T])
    error = np.linalg.norm(total - exact[:, None])
    assert 2 * error <= gradient_rounding(n_rows, 2, n_outputs, False)


@pytest.mark.parametrize("base", [None, 15.9])
def test_products_of_sparse_rows_are_rounded_as_little_as_is_charged_for(base):
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


@pytest.mark.parametrize("row_bound", [None, 1.5])
@pytest.mark.parametrize("base", [None, np.array([0.5, -0.25, 0.0, 0.0])])
def test_products_of_sparse_rows_are_numpys(rng, monkeypatch, base, row_bound):
    X = sparse.csr_array(sparse.random(300, 4, density=0.15, random_state=rng))
    monkeypatch.setattr(second_moments, "MOST_FILLED", 1.0)
    records = Records.of(X, rng.random((300, 1)), rng.random(300), row_bound, base=base)
    first, second = both_ways(second_moments.bounded_gram, records, CLIP)
    np.testing.assert_allclose(second, first, atol=1e-12)
    assert np.array_equal(second, second.T)


@pytest.mark.parametrize("row_bound", [None, 1.5])
@pytest.mark.parametrize("base", [None, np.array([15.0, -2.0, 0.0])])
def test_norms_of_sparse_rows_are_not_rounded_down(monkeypatch, base, row_bound):
    """In coordinates of condition 1e6, of rows that nearly cancel the base, and of hostile ones."""
    monkeypatch.setattr(second_moments, "MOST_FILLED", 1.0)
    rng = np.random.default_rng(0)
    X = rng.choice([*HOSTILE, 0.0, 0.0], (300, N_COLUMNS))
    X[100:] = rng.standard_normal((200, N_COLUMNS)) * 10.0 ** rng.uniform(-9, 3, (200, 1))
    X[200:] -= 0.0 if base is None else base
    transform = np.linalg.qr(rng.standard_normal((4, 4))).Q * np.geomspace(1e-3, 1e3, 4)
    forms = np.linalg.qr(transform.T).R, transform @ transform.T
    records = Records.of(sparse.csr_array(X), np.zeros((300, 1)), None, row_bound, 0.5, base=base)
    given = second_moments.inverse_norms_in, records, *forms
    by_numpy, by_loops = both_ways(*given)
    assert np.isfinite(by_loops).all()
    rows = records.written_out()
    usual = np.isfinite(X).all(axis=1) & (np.abs(X).max(axis=1) < 1e100)
    exact = [
        math.sqrt(sum(sum(map(mul, map(Fraction, row), map(Fraction, column))) ** 2
                      for column in transform.T))
        for row in rows[usual]
    ]  # fmt: skip
    assert (1 / by_loops[usual] >= np.array(exact) * (1 - 1e-12)).all()
    common = slice(100, 200)
    np.testing.assert_allclose(by_loops[common], by_numpy[common], rtol=1e-5)
    assert (by_loops[~usual] <= by_numpy[~usual] * (1 + 1e-12)).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_are_numpys(rng, weighted):
    """Also of values beyond all bins, and of those whose bins are no numbers."""
    X = rng.choice([*HOSTILE, *rng.standard_normal(9)], (300, N_COLUMNS))
    rows = MemorySource.of(X, X[:, :1].copy(), rng.random(300) if weighted else None)
    low, width = np.array([-1.0, -1e308, 0.5, 0.0]), np.array([0.25, 1e300, 5e-324, 1.7e308])
    for statistic, n_bins in (
        (histograms.BinCounts(True, True, low, width, 7), 7),
        (histograms.MagnitudeCounts(True, True), histograms.N_MAGNITUDES),
    ):
        given = histograms.bin_sum, statistic, (N_COLUMNS + 1, n_bins), 300
        first, second = both_ways(rows.total, *given)
        assert first.sum() == 4 * 300
        np.testing.assert_array_equal(first, second)


LIE_ELSEWHERE = {
    "unaligned": lambda a: np.frombuffer(b"0" + a.tobytes(), np.uint8)[1:].view(a.dtype),
    "big-endian": lambda a: a.astype(">f8"),
    "a field": lambda a: np.rec.fromarrays([np.zeros(len(a), "i1"), a], names="code, value").value,
    "every other one": lambda a: np.repeat(a, 2)[::2],
}


@pytest.mark.parametrize("lie", LIE_ELSEWHERE)
def test_rows_that_lie_elsewhere(rng, lie):
    move = LIE_ELSEWHERE[lie]
    X, weights = rng.standard_normal((300, N_COLUMNS)), rng.random(300)
    y = X[:, 0] + rng.standard_normal(300)
    plain = MemorySource.of(X, y[:, None], weights)
    moved = MemorySource.of(move(X.ravel()).reshape(X.shape), move(y)[:, None], move(weights))
    arguments = clipped_gradients, Huber(0.7), np.ones((4, 1)), CLIP
    np.testing.assert_allclose(plain.total(*arguments), moved.total(*arguments), rtol=1e-12)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_groups_and_types_of_indices(rng, index):
    X = sparse.csr_array(sparse.random(300, 4, density=0.3, random_state=rng))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    for form in (X, X.toarray()):
        records = Records.of(form, rng.integers(3, size=300), rng.random(300))
        records = dataclasses.replace(records, multipliers=np.full(300, 0.25))
        point = rng.standard_normal((5, 3))
        first, second = both_ways(clipped_gradients, records, Multinomial(3), point, CLIP)
        np.testing.assert_allclose(second, first, atol=1e-11)
        assert clipped_gradients(records[slice(0, 0)], Multinomial(3), point, CLIP).sum() == 0


def test_exponentials():
    """Within four units in the last place; cut where they leave the range; nan is small."""
    x = np.concatenate([np.linspace(-708, 709, 20_001), np.linspace(-1, 1, 2_001), [-0.0]])
    found = x.copy()
    loops.exponentials(found, np.empty(len(x), np.int64))
    np.testing.assert_allclose(found, np.exp(x), rtol=4 * 2.0**-53)
    ends = np.array([-np.inf, -1e300, np.nan, 1e300, np.inf])
    loops.exponentials(ends, np.empty(len(ends), np.int64))
    np.testing.assert_allclose(ends, np.exp([-708.0, -708.0, -708.0, 709.0, 709.0]), rtol=1e-15)


def test_a_loss_that_changes_the_residual_of_another_is_left_to_numpy():
    class Doubled(Logistic):
        def _residual(self, margins, targets, out):
            super()._residual(margins, targets, out)
            out *= 2

    assert Logistic().kernel is not None
    assert Doubled().kernel is None
    assert TweedieLog().with_bounded_weights.kernel is None


def test_a_fit_is_charged_the_same(rng):
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


@pytest.mark.parametrize(
    ("switch", "before", "loaded"),
    [(None, "", False), (None, "import numba", True), ("never", "import numba", False)],
)
def test_numba_is_loaded_if_it_repays_or_is_there(switch, before, loaded):
    """Of a few million numbers read it does not; the environment turns loops off."""
    program = f"""
import numpy as np, skdp
from skdp._oracle import compiled
{before}
X = np.random.default_rng(0).standard_normal((2000, 2))
skdp.DPRidge(solver="gd", max_iter=2, delta=1e-7).fit(X, X[:, 0])
print(compiled.is_active())
compiled.prepare(compiled.LEAST_WORK)
print(compiled.is_active())
"""
    environment = {name: value for name, value in os.environ.items() if name != compiled.SWITCH}
    if switch is not None:
        environment[compiled.SWITCH] = switch
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(loaded), str(switch is None)]


def test_a_long_compilation_is_announced(capfd):
    """Other loops are silent, since some of them run only if rows have few entries."""
    import numba

    def one_more(x):
        return x + 1

    for name, n_lines in (("add_dense", 1), ("add_sparse_products", 0)):
        one_more.__module__, one_more.__name__ = loops.__name__, name
        numba.njit(one_more)(1.0)
        assert capfd.readouterr().err.splitlines() == [compiled.ANNOUNCEMENT] * n_lines
        with compiled.quiet():  # as in a search, whose candidates are private
            numba.njit(one_more)(1)
        assert not capfd.readouterr().err


def test_spellings_of_the_environment_variable(monkeypatch):
    for switch, is_on in (("auto", True), ("AUTO ", True), (" Off ", False), ("0", False)):
        monkeypatch.setenv(compiled.SWITCH, switch)
        assert runpy.run_path(compiled.__file__)["_is_on"] == is_on


def test_without_numba_numpy_does_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    with compiled.switched(True):
        assert not compiled.is_active()
        skdp.DPRidge(delta=1e-3).fit(np.eye(400)[:, :2], np.ones(400))


def test_if_nothing_compiles_numpy_does_it(monkeypatch, rng):
    """Whether anything compiles is known before a fit; so are the types that numba refuses."""
    from numba.core.errors import TypingError

    def refused(error):
        def call(*arguments):
            raise error

        return call

    rows = MemorySource.of(rng.standard_normal((40, 3)), np.ones((40, 1)))
    with compiled.switched(False):
        wanted = rows.total(clipped_gradients, Logistic(), np.ones((4, 1)), CLIP)
    with compiled.switched(True), monkeypatch.context() as patch:
        patch.setattr(loops, "add_dense", refused(TypingError("no such type")))
        found = rows.total(clipped_gradients, Logistic(), np.ones((4, 1)), CLIP)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
        # Any other error may depend on the rows, which must not choose the kernel.
        patch.setattr(loops, "add_dense", refused(ZeroDivisionError("of rows")))
        with pytest.raises(ZeroDivisionError):
            rows.total(clipped_gradients, Logistic(), np.ones((4, 1)), CLIP)
    with monkeypatch.context() as patch, compiled.switched(False):
        patch.setattr(compiled, "double", refused(OSError("no compiler")))
        assert not compiled.load()


def test_if_nothing_can_be_kept_on_disk_it_compiles_nevertheless(monkeypatch):
    import numba

    njit = numba.njit

    def unwritable(*signatures, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*signatures, **options)

    def one_more(x: float) -> float:
        return x + 1

    monkeypatch.setattr(numba, "njit", unwritable)
    assert compiled.Loop(one_more)(1.0) == 2.0
