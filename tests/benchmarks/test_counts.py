"""Counts and costs of real tables: what is compared, and what the verdict says."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import counts


def test_the_share_of_the_deviance_is_that_of_the_mean_of_training():
    y = np.array([0.0, 1.0, 3.0])
    assert counts.d2(y, 2.0, np.full(3, 2.0)) == pytest.approx(0.0)
    assert counts.d2(y, 2.0, np.maximum(y, 1e-12)) == pytest.approx(1.0)


def test_both_halves_have_tables():
    halves = [one.half for one in counts.SETS.values()]
    assert min(halves.count(half) for half in set(halves)) >= 4
    assert len(set(halves)) == 2


@pytest.fixture
def table(monkeypatch, rng):
    X = rng.standard_normal((400, 2))
    y = rng.poisson(np.exp(X[:, 0])).astype(float)
    monkeypatch.setattr(counts, "arrays", lambda name: (X, y))


def test_rows_are_kept_read_and_judged(table, tmp_path):
    path = tmp_path / "counts.csv"
    names = counts.SMOKE
    counts.run(path, "one", names, [1.0], runs=2, jobs=1)
    rows = counts.run(path, "two", names, [3.0], runs=2, jobs=1)
    comments, kept = counts.results_file.read(path)
    assert comments == ["one", "two"]
    assert [row["d2"] for row in kept] == [
        row["d2"]
        for row in sorted(rows, key=lambda row: (row["data"], row["method"], row["epsilon"]))
    ]
    assert {row["epsilon"] for row in kept} == {"1", "3", "inf"}
    assert len(kept) == 2 * 3 + 1
    (first, *_) = counts.report(kept)
    assert "1 data sets" in first
    assert " of 4 comparisons" in first


def test_a_cell_behind_is_named_with_its_reason():
    def row(method, epsilon, d2, ahead="nan"):
        return {
            "half": "test",
            "data": "a",
            "method": method,
            "epsilon": epsilon,
            "d2": d2,
            "d2_se": "0.01",
            "ahead": ahead,
            "ahead_se": "0.01",
        }

    lines = counts.report([
        row(counts.OURS, "1", "-0.1"),
        row("DPLinearRegression", "1", "0.2", "-0.3"),
        row("log1p", "1", "-0.2", "0.1"),
        row("log1p", "0.1", "0.2", "-0.3"),
        row("non-private", "inf", "0.1"),
    ])  # fmt: skip
    assert "ahead in 1 of 2" in lines[0]
    assert "below the mean model in 1 cells" in lines[0]
    assert lines[1].endswith("0.3000 (0.0100), as is Poisson regression without privacy")
    assert len(lines) == 3


def test_an_unknown_table_is_refused():
    with pytest.raises(SystemExit, match="unknown data sets"):
        counts.run(None, "", ["nothing"])
