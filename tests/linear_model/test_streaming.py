"""Blocks that arrive one by one: the same privacy, one charge, one reading, little memory."""

from __future__ import annotations

import tracemalloc
import warnings
from itertools import chain

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import skdp
from skdp._fitting.rows import BlockReader
from skdp._oracle import compiled
from skdp.accounting import OnBlock
from skdp.objective import L2Ball
from skdp.solvers import ShuffledSGD
from streams import SOLVERS, W, data, in_blocks, linear

SEEDED = skdp.Privacy(noise=skdp.SeededNoise(0))


@pytest.mark.parametrize("kind", ["dense", "float32", "csr"])
@pytest.mark.parametrize("solver", ["auto", "shuffled_sgd", "adaptive_shuffled_sgd"])
def test_a_stream_is_fitted(solver, kind):
    X, y = data()
    if kind == "float32":
        X, y = X.astype(np.float32), y.astype(np.float32)
    if kind == "csr":
        X = sparse.csr_array(X)
    model = linear(solver).fit_blocks(
        in_blocks(X, y, 700), n_samples=20000, n_features=4, sparse=kind == "csr"
    )
    np.testing.assert_allclose(model.coef_, W, atol=0.06)
    assert model.intercept_ == pytest.approx(0.4, abs=0.06)
    assert model.n_features_in_ == 4
    assert model.predict(X[:3]).shape == (3,)
    assert any("read once" in text for text in model.privacy_.assumptions)


@pytest.mark.parametrize("name", SOLVERS)
def test_how_rows_are_cut_into_blocks_does_not_matter(name):
    X, y = data(300)
    fits = [
        linear(SOLVERS[name]).fit_blocks(blocks, n_samples=300, n_features=4).coef_
        for blocks in (
            in_blocks(X, y, 300),
            in_blocks(X, y, 1),
            in_blocks(X, y, 77),
            iter([(X[:0], y[:0]), (X[:11], y[:11]), (X[11:], y[11:])]),
        )
    ]
    for other in fits[1:]:
        np.testing.assert_allclose(fits[0], other, rtol=1e-9)


KINDS = {
    "dense": np.asarray,
    "float32": np.float32,
    "csr": sparse.csr_array,
    "column by column": np.asfortranarray,
    "data frame": pd.DataFrame,
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}


@pytest.mark.parametrize(
    ("kind", "solver", "size"),
    [
        (kind, solver, (4000, 600)[(i + j) % 2])
        for i, kind in enumerate(KINDS)
        for j, solver in enumerate([ShuffledSGD(max_iter=1), *SOLVERS.values()])
    ],
    ids=str,
)
def test_missing_rows_are_null_to_the_last_bit(monkeypatch, solver, size, kind):
    """Neither the number of rows in a block, nor how they lie in memory, nor a start at which
    residuals are all rounding errors may tell rows that never arrive from null rows.
    """
    rng = np.random.default_rng(0)
    n_rows = 1000 if getattr(solver, "batch_size", None) == 1 else 4000  # as many steps
    X = rng.standard_normal((n_rows, 8))
    X[n_rows - n_rows // 4 :] = 0.0
    y = 1e12 * X[:, 0] + X[:, 1]
    X = KINDS[kind](X)
    y = y.astype(np.float32 if kind == "float32" else float)
    original = BlockReader.arrivals

    def weighted(self, blocks):
        for X, targets, _, groups in original(self, blocks):
            yield X, targets, np.asarray(abs(X).sum(axis=1) > 0, dtype=float), groups

    monkeypatch.setattr(BlockReader, "arrivals", weighted)
    whole, *short = (
        linear(solver)
        .fit_blocks(
            in_blocks(X[:n], y[:n], size),
            n_samples=n_rows,
            n_features=8,
            sparse=kind == "csr",
            coef_init=np.array([1e12, *np.zeros(7)]),
        )
        .coef_
        for n in (n_rows, n_rows - 1, n_rows - 2, n_rows - n_rows // 4)
    )
    for fewer in short:
        np.testing.assert_array_equal(whole, fewer)


# ---------------------------------------------------------------------- the budget


def test_a_stream_pays_the_parallel_price():
    X, y = data(2000)
    solver = ShuffledSGD(batch_size=1)
    model = linear(solver, epsilon=0.5).fit_blocks(
        in_blocks(X, y, 100), n_samples=2000, n_features=4
    )
    record = model.privacy_.releases[0]
    assert isinstance(record.event, OnBlock)
    shuffled = linear(solver, epsilon=0.5).plan(2000, 4)
    assert shuffled.releases[0].noise_multiplier < record.noise_multiplier


def test_the_budget_is_charged_once_and_before_the_first_block():
    X, y = data(500)
    budget = skdp.PrivacyBudget(2.5, 1e-5)
    seen = []

    def watched():
        for block in in_blocks(X, y, 100):
            seen.append(budget.spent)
            yield block

    model = skdp.DPLinearRegression(scaling="none", privacy=skdp.Privacy(budget=budget))
    model.fit_blocks(watched(), n_samples=500, n_features=4)
    assert len(seen) == 5
    assert set(seen) == {seen[0]}
    assert 0.5 < seen[0] <= 1.0
    again = iter(watched())
    model.fit_blocks(again, n_samples=500, n_features=4)
    assert budget.spent > 1.2
    seen.clear()
    model.set_params(epsilon=2.4)
    with pytest.raises(skdp.PrivacyBudgetError):
        model.fit_blocks(watched(), n_samples=500, n_features=4)
    assert not seen


def test_what_would_read_rows_again_is_refused_before_a_block_is_asked_for():
    def untouched():
        raise AssertionError("a block was asked for")
        yield

    for solver, said in (
        ("gd", "more than once"),
        ("adp_sgd", "more than once"),
    ):
        with pytest.raises(ValueError, match=said):
            linear(solver).fit_blocks(untouched(), n_samples=100, n_features=4)
    for counts in ({"n_samples": 0, "n_features": 4}, {"n_samples": 5.5, "n_features": 4}):
        with pytest.raises(ValueError, match="n_samples"):
            linear().fit_blocks(untouched(), **counts)


def test_an_exhausted_iterator_shows_no_row_again():
    """A second fit on it sees no rows: noise alone, at its own price."""
    X, y = data(2000)
    blocks = in_blocks(X, y, 100)
    first = linear().fit_blocks(blocks, n_samples=2000, n_features=4)
    second = linear().fit_blocks(blocks, n_samples=2000, n_features=4)
    nothing = linear().fit_blocks(iter(()), n_samples=2000, n_features=4)
    assert (first.coef_ != second.coef_).any()
    np.testing.assert_array_equal(second.coef_, nothing.coef_)


# ---------------------------------------------------------------------- wrong numbers of rows


@pytest.mark.parametrize("name", SOLVERS)
def test_of_more_rows_than_declared_the_first_are_kept(name):
    """Rows beyond the declared number change nothing, whatever they are."""
    X, y = data(300)
    first = linear(SOLVERS[name]).fit_blocks(in_blocks(X, y, 50), n_samples=300, n_features=4)
    bad = np.full((50, 4), "SECRET"), y[:50]
    for more in ((X[:50], 1e6 * y[:50]), bad):
        model = linear(SOLVERS[name])
        with pytest.warns(UserWarning, match="more rows arrived than the 300 that were declared"):
            model.fit_blocks(chain(in_blocks(X, y, 50), [more]), n_samples=300, n_features=4)
        np.testing.assert_array_equal(model.coef_, first.coef_)

    def failing():
        yield from in_blocks(X, y, 50)
        raise OSError("the disk is gone")

    with pytest.warns(UserWarning, match="or the iterator of blocks failed after these"):
        model.fit_blocks(failing(), n_samples=300, n_features=4)
    with skdp.PrivacyBudget(9.0, 1e-5) as budget:
        with pytest.raises(ValueError, match=r"more rows arrived.*Nothing was released"):
            model.fit_blocks(list(in_blocks(X, y, 50)), n_samples=299, n_features=4)
        assert budget.n_fits == 0


def named_blocks(form, orders):
    X, y = data(300)
    frame = pd.DataFrame(X, columns=list("abcd"))
    for place, order in enumerate(orders):
        rows = slice(100 * place, 100 * place + 100)
        yield form(frame[rows][list(order)]), y[rows]


def arrow_table(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)


def polars_frame(frame):
    return pytest.importorskip("polars").from_pandas(frame)


@pytest.mark.parametrize("form", [pd.DataFrame, polars_frame, arrow_table])
def test_blocks_have_the_columns_of_the_first(form):
    def fit(blocks):
        return linear().fit_blocks(blocks, n_samples=300, n_features=4)

    model = fit(named_blocks(form, ["abcd"] * 3))
    assert list(model.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(np.zeros((1, 4)), columns=list("dcba")))
    orders = ["abcd", "abcd", "bacd"]
    with pytest.raises(ValueError, match=r"another order.*budget of this fit is spent"):
        fit(named_blocks(form, orders))
    without = [*named_blocks(form, ["abcd"]), (np.zeros((9, 4)), np.zeros(9))]
    with skdp.PrivacyBudget(9.0, 1e-5) as budget:
        for blocks in (list(named_blocks(form, orders)), without):
            with pytest.raises(ValueError, match=r"another order.*Nothing was released"):
                fit(blocks)
        assert budget.n_fits == 0


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ((np.zeros((3, 5)), np.zeros(3)), "n_features=4 was declared, got 5"),
        ((np.zeros((3, 4)), np.zeros((3, 2))), "n_outputs=1 was declared, got 2"),
        ((sparse.csr_array((3, 4)), np.zeros(3)), "sparse=False was declared, got True"),
        ((np.full((3, 4), np.nan), np.zeros(3)), "NaN"),
        ((np.zeros((3, 4)), np.zeros(2)), "inconsistent"),
        (
            (np.zeros((3, 4)), np.zeros(3), np.ones(3)),
            r"a tuple \(X, y\), got a tuple of 3.* weighted=True",
        ),
        (np.zeros((3, 4)), "got ndarray"),
    ],
)
def test_blocks_that_are_not_as_declared_are_refused(block, said):
    with pytest.raises(ValueError, match=said):
        linear().fit_blocks(iter([block]), n_samples=300, n_features=4)


# ---------------------------------------------------------------------- memory


@pytest.fixture
def mapped(tmp_path):
    n_rows = 100000
    X = np.memmap(tmp_path / "X", np.float32, "w+", shape=(n_rows, 80))
    rng = np.random.default_rng(0)
    for start in range(0, n_rows, 20000):
        X[start : start + 20000] = rng.standard_normal((20000, 80), np.float32)
    X.flush()
    X = np.memmap(tmp_path / "X", np.float32, "r", shape=(n_rows, 80))
    return X, np.asarray(X[:, 0])


def peak(fit):
    tracemalloc.start()
    fit()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


@pytest.mark.parametrize("solver", ["shuffled_sgd", "adaptive_shuffled_sgd"])
def test_a_stream_holds_a_block_or_two(mapped, solver):
    X, y = mapped
    linear(solver).fit_blocks(in_blocks(X[:2000], y[:2000], 99), n_samples=2000, n_features=80)
    with compiled.switched(False):  # compilation needs memory
        used = peak(
            lambda: linear(solver).fit_blocks(
                in_blocks(X, y, 2000), n_samples=len(y), n_features=80
            )
        )
    assert used < 0.3 * X.nbytes


@pytest.mark.parametrize(
    "block",
    [
        (np.array([["a", "b"]], dtype=object), np.zeros(1)),
        (np.array([[np.nan, 0.0]]), np.zeros(1)),
        (np.zeros((1, 2)), np.array([np.inf])),
        (np.zeros((1, 3)), np.zeros(1)),
        (np.zeros((1, 2)), np.zeros(2)),
        np.zeros((1, 2)),
    ],
    ids=["text", "nan", "infinite target", "columns", "lengths", "no pair"],
)
def test_a_refused_block_says_that_the_budget_is_spent(block):
    model = skdp.DPLinearRegression(privacy=SEEDED)
    with pytest.raises(ValueError, match=r"\bThe budget of this fit is spent\.$") as refusal:
        model.fit_blocks(iter([block]), n_samples=100, n_features=2)
    assert "Nothing was released" not in str(refusal.value)


def test_raw_columns_are_warned_about_before_a_block_is_requested():
    def blocks():
        raise LookupError("a block was requested")
        yield

    def fit(model):
        model.fit_blocks(blocks(), n_samples=10_000, n_features=2)

    for model, what in (
        (skdp.DPRidge(constraint=L2Ball(1.0)), "columns and targets"),
        (
            skdp.DPLogisticRegression(classes=[0, 1], constraint=L2Ball(1.0)),
            "columns",
        ),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error", skdp.NoiseWarning)
            with pytest.raises(skdp.NoiseWarning, match=f"does not standardise {what}: .*RowNorm"):
                fit(model)
            for declared in ("none", skdp.RowNorm(2.0)):
                with pytest.raises(LookupError):
                    fit(clone(model).set_params(scaling=declared))
