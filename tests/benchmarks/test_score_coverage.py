"""The benchmarks of private scores and of intervals on real tables and beside peers."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_curve

import skdp
from benchmarks import (
    inference,
    inference_peers,
    inference_real,
    results_file,
    score_coverage,
    selection,
)
from benchmarks.inference import Cell
from benchmarks.registry import Split
from skdp.metrics.scores import ScoreCurve


def test_every_kind_has_the_classes_that_it_says():
    shares = {kind: score_coverage.fitted(kind, 30_000)[2] for kind in score_coverage.CLASSES}
    assert shares["even"].mean() == pytest.approx(0.5, abs=0.01)
    assert shares["rare"].mean() == pytest.approx(0.085, abs=0.015)
    assert shares["very rare"].mean() == pytest.approx(0.015, abs=0.005)
    assert len(np.unique(shares["three"])) == 3


def test_the_exact_curve_is_scikit_learns():
    rng = np.random.default_rng(0)
    y, chances = rng.integers(2, size=200), rng.random(200)
    _, above, thresholds = roc_curve(y, chances, drop_intermediate=False)
    ranked = np.sort(chances[y == 1]), np.sort(chances[y == 0])
    curve = ScoreCurve("roc_curve", (), (), thresholds)
    np.testing.assert_allclose(score_coverage.exact_curve(curve, *ranked), above)
    curve = ScoreCurve("calibration_curve", (), (), np.array([-math.inf, 0.5]))
    found = score_coverage.exact_curve(curve, *ranked)
    np.testing.assert_allclose(found, [y[chances < 0.5].mean(), y[chances >= 0.5].mean()])


@pytest.mark.parametrize("name", ["accuracy", "confusion_matrix", "roc_curve", "calibration_curve"])
def test_scores_are_covered(name):
    line = score_coverage.measure("even", 500, name, 3.0, 60)
    assert line["coverage"] > 0.85
    assert line["silent"] < 0.2


@pytest.mark.parametrize(("kind", "name"), [("even", "f1"), ("student", "r2")])
def test_population_scores_are_covered(kind, name, monkeypatch):
    """Next to no noise: intervals of the same rows would nearly never reach the population's score.

    Its score is that of many more rows than the intervals are made of.
    """
    monkeypatch.setattr(score_coverage, "POPULATION", 50_000)
    score_coverage.population_score.cache_clear()
    line = score_coverage.measure(kind, 300, name, 1e3, 60, "population")
    score_coverage.population_score.cache_clear()
    assert line["coverage"] > 0.85
    assert line["silent"] == 0


def test_a_run_is_taken_up_again(tmp_path, capsys):
    path = tmp_path / "scores.csv"
    for _ in range(2):
        score_coverage.run(path, "a command", 3, [1.0], ["rows", "r2"])
        assert len(results_file.read(path)[1]) == 6
    capsys.readouterr()
    score_coverage.run(path, "a command", 3, [1.0], ["rows", "r2"])
    assert capsys.readouterr().out == ""
    assert score_coverage.verdict(path)[0].startswith("6 metrics")


def test_intervals_are_taken_up_again(tmp_path, capsys):
    path = tmp_path / "found.csv"
    inference.run(path, "a command", 2, 0.0, smoke=True)
    inference.run(path, "a command", 3, 0.0, smoke=True)
    once = capsys.readouterr().out.splitlines()[-2:]
    inference.run(tmp_path / "other.csv", "a command", 3, 0.0, smoke=True)
    assert capsys.readouterr().out.splitlines() == once
    assert "2 cells" in inference.verdict(path)[0]


def test_cells_come_in_rounds():
    order = inference.schedule(inference.cells(), 400)
    assert order[0][1] == inference.ROUNDS[0][0]
    assert {goal for _, goal in order[-50:]} == {400}
    assert {cell for cell, goal in order if goal == 400} == set(inference.cells())


def test_the_bounded_fit_without_bounds_is_least_squares(rng):
    Z = np.column_stack([rng.standard_normal((500, 3)), np.ones(500)])
    y = Z @ [1.0, 0.0, -1.0, 2.0] + rng.standard_normal(500)
    plain = np.linalg.lstsq(Z, y, rcond=None)[0]
    transform = np.diag([1.0, 2.0, 0.5, 1.0])
    found = inference_real.bounded_fit(Z, y, np.zeros(4), transform, np.inf, np.inf, False)
    np.testing.assert_allclose(found, plain)


def test_peers_estimate_the_slopes_of_the_simulation():
    """With a budget that leaves no noise worth mentioning, every method finds the same."""
    lines = inference_peers.measure(
        Cell("linear", "standardised", "normal", "equal", 4_000, 3, 1000.0), 10
    )
    assert [line["method"] for line in lines] == list(inference_peers.METHODS)
    for line in lines:
        assert line["median_error"] < 1.5, line
        assert 0.8 < line["coverage"] <= 1, line
        assert line["width"] == pytest.approx(1, abs=0.35), line


def test_searches_of_every_accounting_run():
    """They override what prices a search, whose form has to stay."""
    X, y = load_breast_cancer(return_X_y=True)
    split = Split(X[:400], X[400:], y[:400], y[400:], is_classification=True)
    _, searched = selection.grids(split)
    make = functools.partial(skdp.DPLogisticRegression, classes=[0, 1], scaling="none")
    grid = {"C": searched["strength and solver"]["fit__C"]}
    for method in selection.SEARCHES:
        assert 0 <= selection.run_one(method, split, grid, make, 3.0, 1e-6, 0) <= 1
