"""The benchmark of constants: which there are, what changing them changes, and its table."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import skdp.stages.inference.stage as inference_stage
from benchmarks import constants, variants
from benchmarks.methods.skdp_auto import estimator
from benchmarks.variants import Variant, changed
from skdp.stages.scaling import distributions

ROOT = Path(__file__).parents[2]
SOURCES = {
    path.stem: ast.parse(path.read_text(encoding="utf-8"))
    for path in Path(distributions.__file__).parent.glob("*.py")
}
# Read once, where a class or a function is made, so that changing them has no effect there.
READ_AT_IMPORT = {"shares.COSTS_COLUMNS"}  # a default of Histograms, which no fit uses
TRIED = variants.variants()
TAIL_CONSTANTS = ("MAX_BODY_SHARE", "MAX_EXPONENT", "OMITTED_SHARE")


def split_of(name, most_rows=500):
    return next(constants.splits(name, 0, most_rows))[1]


# ------------------------------------------------------------------ which there are


def test_names_are_found_however_they_are_assigned():
    source = "A, (B, C) = 1, (2, 3)\nD: int = 4\nE = F = 5\nG_2 = -1 / 16\nlower = 6\nH: int\n"
    source += "def f():\n    I = 7\nclass K:\n    J = 8\n"
    assert sorted(variants.assigned(ast.parse(source))) == ["A", "B", "C", "D", "E", "F", "G_2"]


def test_what_is_not_numeric_is_no_constant():
    values = {1: True, 0.5: True, (1, 2.0): True, ((1, 2), (3, 4)): True, "a": False, (): False}
    assert {value: variants.is_numeric(value) for value in values} == values
    assert not variants.is_numeric(True)


def test_every_constant_is_tried_or_left_out_for_a_reason():
    found = set(variants.constants())
    assert {"estimates.Z_ONE", "shares.NOISE_GOAL", "refinements.MAX_EXPONENT"} <= found
    assert {"distributions.ZERO_SHARES", "stage.BINS_BY_NOISE", "refinements.MAX_NOISE"} <= found
    assert {one.name for one in TRIED} == found - variants.LEFT_OUT.keys()
    for table in (variants.LEFT_OUT, variants.ODDS, variants.NEIGHBOURS):
        assert set(table) <= found, "a constant that is gone"
    assert all(variants.LEFT_OUT.values())


def test_other_values_are_half_and_twice_or_said_to_be_others():
    for one in TRIED:
        was = variants.constants()[one.name]
        assert one.value != was, one
        assert isinstance(one.value, type(was)), one
        if one.at in ("half", "twice"):
            factor = 0.5 if one.at == "half" else 2.0
            assert one.value == pytest.approx(np.multiply(was, factor)), one
    odds = {one.at: one.value for one in TRIED if one.name == "refinements.STANDARD_SHARE"}
    assert odds == {"half the odds": pytest.approx(1 / 5), "twice the odds": pytest.approx(1 / 2)}
    neighbours = [(one.at, one.value) for one in TRIED if one.name == "shares.COSTS_COLUMNS"]
    assert neighbours == [("next below", (0.5,) * 4), ("next above", (0.5,) * 8)]


def test_there_are_histograms_in_bins_whatever_the_costs():
    """No fit is possible with the one by magnitude alone."""
    tried = [one for one in TRIED if one.constant.startswith("COSTS_")]
    assert len(tried) == 6
    assert all(len(one.value) > 1 for one in tried)


def test_constants_are_chosen_by_name_or_module():
    assert {one.name for one in variants.variants(["COSTS_COLUMNS"])} == {"shares.COSTS_COLUMNS"}
    chosen = variants.variants(["widening", "estimates.Z_ONE"])
    assert {one.module for one in chosen} == {"widening", "estimates"}
    with pytest.raises(SystemExit, match=r"unknown constants \['MAX_RELATIVE_WITH'\]"):
        variants.variants(["MAX_RELATIVE_WITH"])


# ------------------------------------------------------------------ what changing them changes


def read_at_import(tree):
    """Names that are read as a module is imported: outside of functions, and in their defaults."""
    todo = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            todo += [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            todo += getattr(node, "decorator_list", [])
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        todo += ast.iter_child_nodes(node)


def test_constants_are_read_when_they_are_used():
    source = "A = 1\nB = 2 * A\nclass K:\n    c: int = C\ndef f(d=D):\n    return E\n"
    assert set(read_at_import(ast.parse(source))) == {"A", "C", "D", "int"}
    found = {f"{stem}.{name}" for stem, tree in SOURCES.items() for name in read_at_import(tree)}
    assert found & {one.name for one in TRIED} == READ_AT_IMPORT


def test_what_is_cached_follows_from_constants_of_its_own_module():
    """Caches of the module of a constant are emptied, and no others."""
    cached = {
        stem
        for stem in SOURCES
        for thing in vars(importlib.import_module(f"{variants.PACKAGE}.{stem}")).values()
        if hasattr(thing, "cache_clear") and thing.__module__ == f"{variants.PACKAGE}.{stem}"
    }
    assert cached == {"distributions"}
    imported = [node.module for node in ast.walk(SOURCES["distributions"])
                if isinstance(node, ast.ImportFrom)]  # fmt: skip
    assert not [module for module in imported if module.startswith(variants.PACKAGE)]


def test_a_constant_is_another_wherever_it_is_imported_and_then_as_before():
    was, seen = distributions.RANGE_IN_SCALES, []

    def broken():
        with changed(Variant("distributions", "RANGE_IN_SCALES", "twice", 10.0)):
            seen.extend([distributions.RANGE_IN_SCALES, inference_stage.RANGE_IN_SCALES])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert seen == [10.0, 10.0]
    assert distributions.RANGE_IN_SCALES == inference_stage.RANGE_IN_SCALES == was


@pytest.mark.parametrize(
    "name",
    [
        "distributions.RANGE_IN_SCALES",
        "shares.MAX_SHARE_COLUMNS",
        "shares.RAISE_SHARE_ABOVE",
        "distributions.CENTRES",
    ],
)
def test_a_change_reaches_fits_and_leaves_no_trace(name):
    """Plans of fits and candidate distributions are cached: both are made anew."""
    split = split_of("diabetes")

    def coef():
        model = estimator(split, 1.0, 1e-6, 0).fit(split.X_train, split.y_train)
        return model.coef_

    before = coef()
    assert_array_equal(coef(), before)
    found = []
    for one in (one for one in TRIED if one.name == name):
        with changed(one):
            found.append(coef())
    assert any((other != before).any() for other in found)
    assert_array_equal(coef(), before)


def test_tails_matter_to_long_tails():
    split = split_of("target_lognormal1", None)
    first = constants.one_fit(split, 1.0, 1e-6, 0, {})
    keys = []
    for one in (one for one in TRIED if one.constant in TAIL_CONSTANTS):
        with changed(one):
            keys.append(constants.one_fit(split, 1.0, 1e-6, 0, {}))
    assert any(key != first for key in keys)


@pytest.mark.slow
def test_fits_that_read_the_same_are_the_same():
    """Such a fit is not finished; if it is, its scores are equal."""
    split, known = split_of("diabetes"), {}
    first = constants.one_fit(split, 1.0, 1e-6, 0, known)
    seen = dict.fromkeys(["same", "other"], 0)
    for one in TRIED[::3]:
        with changed(one):
            afresh = {}
            key = constants.one_fit(split, 1.0, 1e-6, 0, afresh)
            seen["same" if key == first else "other"] += 1
            if key == first:
                assert afresh[key]["score"] == known[first]["score"], one
    assert min(seen.values()) > 6
    count = len(known)
    assert constants.one_fit(split, 1.0, 1e-6, 0, known) == first
    assert len(known) == count


# ------------------------------------------------------------------ the table

NEAR = Variant("distributions", "MAX_RELATIVE_WIDTH", "half", 0.25)


def cells(*gains, metric="score", **more):
    """One cell of so many runs, each with the fit as it is and one that gains so much."""
    base = {"score": 0.5, metric: 0.5}
    return {"a": [[(False, base), (True, base | {metric: 0.5 + one} | more)] for one in gains]}


def test_a_row_counts_what_is_beyond_noise():
    row = constants.row_of(NEAR, 1, cells(0.02, 0.021, 0.019))
    assert (row["cells"], row["changed"], row["better"], row["worse"]) == (1, 1, 1, 0)
    assert row["score"] == pytest.approx(0.02)
    assert (row["as_it_is"], row["value"], row["runs"]) == ("0.5", "0.25", 3)
    for gains in [(0.02, -0.01, 0.03), (0.004, 0.004, 0.004)]:
        row = constants.row_of(NEAR, 1, cells(*gains))
        assert (row["better"], row["worse"]) == (0, 0), gains
    row = constants.row_of(NEAR, 1, cells(0.02, 0.021, metric="log_loss"))
    assert (row["log_loss_worse"], row["log_loss"]) == (1, pytest.approx(-0.0205))
    assert (row["worst"], row["best"]) == ("a, log loss", "")


def test_a_fit_that_is_lost_counts_as_one():
    row = constants.row_of(NEAR, 1, cells(-1e6, -2e6))
    assert row["score"] == row["worst_by"] == -1.5


def test_cells_without_scores_are_counted_apart():
    found = cells(0.1, 0.1) | {"b": cells(0.0, 0.0, failed="ValueError")["a"]}
    row = constants.row_of(NEAR, 1, found)
    assert (row["cells"], row["failed"], row["changed"]) == (2, 1, 2)
    assert row["score"] == pytest.approx(0.1)


def test_rows_are_merged_and_those_of_constants_that_are_gone_dropped(tmp_path):
    path = tmp_path / "constants.csv"
    gone = constants.row_of(NEAR, 1, cells(0.1)) | {"constant": "GONE"}
    constants.merge(path, "first", [gone, constants.row_of(NEAR, 1, cells(0.1, 0.2))])
    constants.merge(path, "second", [constants.row_of(NEAR, 1, cells(0.3))])
    commands, rows = constants.read(path)
    assert commands == ["first", "second"]
    (row,) = rows
    assert (row["constant"], row["score"], row["runs"]) == ("MAX_RELATIVE_WIDTH", 0.3, 1)
    assert np.isnan(row["score_se"])
    first, second = constants.report(rows)
    assert first == "0 of 1 constants change no fit: -"
    assert second.startswith(
        "distributions.MAX_RELATIVE_WIDTH 0.5 -> 0.25: 1 of 1 cells changed, score +0.3000"
    )


@pytest.mark.slow
def test_a_run_changes_constants_in_processes_of_its_own(tmp_path, capsys):
    path = tmp_path / "constants.csv"
    rows = constants.run(
        path,
        "a command",
        ["RANGE_IN_SCALES"],
        [1.0],
        runs=2,
        jobs=1,
        data=constants.SMOKE,
        most_rows=300,
    )
    assert [row["at"] for row in rows] == ["half", "twice"]
    for row in rows:
        assert (row["runs"], row["cells"], row["failed"]) == (2, 4, 0)
    assert any(row["changed"] for row in rows)
    assert variants.constants.__wrapped__() == variants.constants()
    assert len(constants.read(path)[1]) == 2
    assert "year_column, run 1" in capsys.readouterr().out
