"""The page "How accurate is it?" says what the table says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from benchmarks import table, verdict

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location("page", ROOT / "docs" / "accuracy_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rows(page):
    return table.read(page.RESULTS)[1]


def test_the_page_is_that_of_the_results(page, rows):
    """If not: python docs/accuracy_table.py."""
    others = verdict.read(page.HELD_OUT, "test")
    for name, text in page.texts(rows, others).items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, name
    readme = page.README.read_text(encoding="utf-8")
    assert page.with_figures(readme, page.MARK, page.readme(rows)) == readme
    assert readme.count(page.readme(rows)) == 1


def test_every_rival_that_wins_has_a_reason(page, rows):
    assert {row["method"] for row in rows if row["kind"] == "rival"} <= set(page.WHY)
    assert "not looked into yet" not in page.rivals(rows)


def test_a_win_is_reported_with_its_data_set(page):
    base = {"data": "bank", "condition": "raw", "epsilon": 1.0, "score_gap_se": 0.001, "score": 0.9}
    mine = base | {"method": "skdp", "kind": "skdp", "score_gap": -0.02}
    rival = base | {"method": "AMP", "kind": "rival", "score_gap": -0.01}
    text = page.rivals([mine, rival])
    assert "In 1 of 1 cells" in text
    assert "* **AMP** on bank, by 0.0100 at most: " in text
    assert "in 1 of 1 comparisons, by 0.0100 at most" in page.rivals_in_short([mine, rival])
    assert page.rivals([mine, rival | {"score_gap": -0.018}]).startswith("No rival is better")


def test_public_rows_are_said_to_halve_what_is_lost_where_they_do(page):
    losses = {"bike": (0.1, 0.05), "wine": (0.1, 0.051), "california_housing": (-0.02, -0.01)}
    rows = [
        {"data": data, "condition": "raw", "method": name, "epsilon": epsilon, "score_gap": -lost}
        for data, pair in losses.items()
        for name, lost in zip(("skdp", page.PUBLIC_ROWS), pair, strict=True)
        for epsilon in (0.1, 0.3, 1.0)
    ]
    text = page.with_public_rows(rows)
    assert "nothing was lost: bike, california_housing; more is: wine.\n" in text
    halved = [row for row in rows if row["data"] == "bike"]
    assert page.with_public_rows(halved).endswith("nothing was lost: bike.\n")


def test_numbers_are_short(page):
    assert [page.number(x) for x in (0.12345, -1e9, float("nan"), 1e9)] == [
        "0.123", "< -10", "-", "> 10",
    ]  # fmt: skip
