"""Figures that pages quote: how they are computed, and what the committed files contain."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from benchmarks import inference, results_file, table, verdict
from benchmarks.inference import Cell
from benchmarks.reports import running, verdicts
from skdp import PrivacyWarning

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
DESIGNS = inference.DESIGNS | inference.LINKS
KINDS = sorted({(problem, *one) for problem, some in DESIGNS.items() for one in some})

# ------------------------------------------------------------------ accuracy


def row(**values):
    """One row of a table of accuracy."""
    base = {
        "data": "bank", "condition": "raw", "method": "skdp", "epsilon": 1.0, "kind": "skdp",
        "score": 0.9, "score_gap": -0.004, "score_gap_se": 0.001, "log_loss": 0.3,
        "log_loss_gap": 0.01, "log_loss_gap_se": 0.001, "auc_gap": -0.002, "auc_gap_se": 0.001,
        "warned": 0.0, "scores": [],
    }  # fmt: skip
    return base | values


def test_a_gap_is_that_of_runs_on_the_same_split():
    """The split moves both scores, which is in the error of the score and not in the gap's."""
    twins = [{"score": 0.5}, {"score": 0.7}, {"score": 0.9}]
    found = table.summary([{"score": twin["score"] - 0.1} for twin in twins], twins)
    assert found["score_se"] == pytest.approx(0.2 / math.sqrt(3))
    assert found["score_gap"] == pytest.approx(-0.1)
    assert found["score_gap_se"] == pytest.approx(0.0, abs=1e-12)


def test_methods_are_compared_run_by_run():
    mine = row(scores=[0.5, 0.7, 0.9], score_gap_se=0.1)
    other = row(method="AMP", kind="rival", scores=[0.52, 0.71, 0.93], score_gap_se=0.1)
    assert verdict.advantage(mine, other) == pytest.approx((0.02, 0.01 / math.sqrt(3)))
    assert verdict.advantage(mine, row(scores=[0.5]))[1] == pytest.approx(math.hypot(0.1, 0.001))
    leaking = row(method="diffprivlib, bounds from data", kind="not private", score_gap=0.9)
    level = mine | {"method": "AMP", "kind": "rival"}
    for others, lost in (([other], [True]), ([level], [False]), ([leaking], [])):
        assert verdict.lost_cells(verdict.Table([mine, *others]), "score", 1) == lost
    (line,) = verdict.by_rival(verdict.Table([mine, other | {"log_loss_gap": 0.0}]))
    assert line == "AMP, raw columns: better in 66.7% of 3 scores"


def test_distances_are_means_and_medians_over_data_sets():
    rows = [row(data=name, score_gap=gap) for name, gap in (("a", -0.004), ("b", -0.02))]
    rows += [row(data="c", score_gap=0.003), row(epsilon=3.0)]
    rows += [row(data="d", score_gap=-0.5, log_loss=math.nan, log_loss_gap=math.nan, auc_gap=None)]
    (first, second) = verdict.distances(verdict.Table(rows))
    assert "raw, epsilon 1: R2 0.5000 (0.5000), accuracy 0.0070 (0.0040), log loss 0.01" in first
    assert "R2" not in second


@pytest.mark.parametrize(
    ("log_loss", "warned", "right"),
    [(0.41, 0.4, False), (0.41, 0.5, True), (0.39, 0.5, False), (0.39, 0.4, True)],
)
def test_warnings_belong_to_cells_in_which_a_constant_is_better(log_loss, warned, right):
    constant = row(method="constant", kind="reference", epsilon=math.inf, log_loss=0.4)
    cells = verdict.Table([constant, row(log_loss=log_loss, warned=warned)])
    ((_, found),) = verdict.warnings_of_noise(cells)
    assert found == right


# ------------------------------------------------------------------ intervals


@pytest.mark.parametrize(("problem", "columns", "errors"), KINDS)
def test_the_truth_is_what_is_simulated(problem, columns, errors):
    """It solves the estimating equation of the non-private fit, up to sampling."""
    cell = Cell(problem, "raw", columns, errors, 100_000, 5, 1.0)
    X, y = inference.simulate(cell, np.random.default_rng(1))
    residuals, _ = inference.residuals_and_weights(cell, X, y)
    scores = np.column_stack([X, np.ones(cell.n)]) * residuals[:, None]
    z = scores.sum(axis=0) / np.sqrt((scores**2).sum(axis=0))
    assert np.abs(z).max() < 4


@pytest.mark.parametrize(("columns", "classes", "d"), inference.CLASSES)
def test_the_truth_of_classes_is_what_is_simulated(columns, classes, d):
    cell = Cell("multinomial", "raw", columns, classes, 50_000, d, 1.0)
    X, y = inference.simulate(cell, np.random.default_rng(1))
    slopes, intercepts = inference.truth_of_classes(cell)
    residuals = softmax(X @ slopes.T + intercepts, axis=1) - np.eye(len(slopes))[y]
    scores = residuals[:, :, None] * np.column_stack([X, np.ones(cell.n)])[:, None, :]
    z = scores.sum(axis=0) / np.sqrt((scores**2).sum(axis=0))
    assert np.abs(z).max() < 4


def test_the_committed_intervals_cover_at_their_level():
    """Of cells whose coefficients are well determined, up to the error of so few runs."""
    judged = 0
    for line in results_file.read(RESULTS / "inference.csv")[1]:
        if not line["coverage_middle"] or float(line["relative_error"]) > 0.35:
            continue
        error = 0.22 / math.sqrt(float(line["runs"]) * float(line["d"]))
        assert 0.93 - 4 * error - 0.01 < float(line["coverage"]) <= 1, line
        judged += 1
    assert judged > 50


# ------------------------------------------------------------------ reports of bugs


def fail(message, error=ValueError):
    def call():
        raise error(message)

    return call


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (lambda: verdicts.near([1.0, 1.05], 1.0, 0.1), verdicts.RIGHT),
        (lambda: verdicts.near([1.0, float("nan")], 1.0, 0.1), verdicts.WRONG),
        (lambda: verdicts.at_least([0.9, 0.7], 0.8), verdicts.WRONG),
        (lambda: verdicts.holds(False, "true"), verdicts.WRONG),
        (lambda: verdicts.refused(fail("column 'a' has text"), "'a'", "text"), verdicts.RIGHT),
        (lambda: verdicts.refused(fail("failed"), "'a'"), verdicts.POOR),
        (lambda: verdicts.refused(lambda: 1.0, "'a'"), verdicts.WRONG),
        (lambda: verdicts.supported(fail("no"), None), verdicts.UNSUPPORTED),
        (lambda: verdicts.warned(lambda: None, PrivacyWarning), verdicts.WRONG),
        (lambda: verdicts.warned(fail("refused"), PrivacyWarning), verdicts.RIGHT),
        (lambda: [verdicts.near(1, 1, 0), verdicts.near(1, 2, 0)], verdicts.WRONG),
        (fail("unexpected"), verdicts.WRONG),
        (fail("", ModuleNotFoundError), running.SKIPPED),
    ],
)
def test_the_verdict_of_a_report_is_its_worst(found, verdict):
    assert running.outcome(verdicts.Report("", "", "", found)).verdict == verdict


def test_the_committed_table_has_every_report():
    rows = results_file.read(RESULTS / "reports.csv")[1]
    assert [row["report"] for row in rows] == list(running.REPORTS)
    counts = Counter(row["kind"] for row in rows)
    assert counts == {
        "formats": 25, "weights": 12, "scale": 5, "statistics": 6, "budgets": 11,
        "meta-estimators": 10,
    }  # fmt: skip


def test_no_verdict_is_wrong():
    """After a change: python -m benchmarks reports."""
    rows = results_file.read(RESULTS / "reports.csv")[1]
    assert not [row["report"] for row in rows if row["verdict"] == verdicts.WRONG]
