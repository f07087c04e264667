"""The benchmark of intervals: what it simulates has the truth that it is measured by."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from benchmarks import inference, results_file
from benchmarks.inference import Cell

ROOT = Path(__file__).parents[2]
DESIGNS = inference.DESIGNS | inference.LINKS
KINDS = sorted({(problem, *one) for problem, some in DESIGNS.items() for one in some})


@pytest.mark.parametrize(("problem", "columns", "errors"), KINDS)
def test_the_truth_is_what_is_simulated(problem, columns, errors):
    cell = Cell(problem, "raw", columns, errors, 200_000, 5, 1.0)
    X, y = inference.simulate(cell, np.random.default_rng(1))
    slopes, _ = inference.truth(cell)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=0.03)
    if columns != "heavy":
        np.testing.assert_allclose(X.std(axis=0), 1, atol=0.03)
        if problem not in inference.POWERS:
            np.testing.assert_allclose(np.std(X @ slopes), 1, atol=0.02)
    # The estimating equation of the non-private fit is solved by the truth, up to sampling.
    Z = np.column_stack([X, np.ones(cell.n)])
    residuals, _ = inference.residuals_and_weights(cell, X, y)
    scores = Z * residuals[:, None]
    z = scores.sum(axis=0) / np.sqrt((scores**2).sum(axis=0))
    assert np.abs(z).max() < 4


@pytest.mark.parametrize(("columns", "classes", "d"), inference.CLASSES)
def test_the_truth_of_classes_is_what_is_simulated(columns, classes, d):
    cell = Cell("multinomial", "raw", columns, classes, 100_000, d, 1.0)
    X, y = inference.simulate(cell, np.random.default_rng(1))
    slopes, intercepts = inference.truth_of_classes(cell)
    np.testing.assert_allclose(slopes.sum(axis=0), 0, atol=1e-12)
    residuals = softmax(X @ slopes.T + intercepts, axis=1) - np.eye(len(slopes))[y]
    scores = residuals[:, :, None] * np.column_stack([X, np.ones(cell.n)])[:, None, :]
    z = scores.sum(axis=0) / np.sqrt((scores**2).sum(axis=0))
    assert np.abs(z).max() < 4
    # Over rows drawn anew, the fit without privacy has the errors that widths are next to.
    errors = inference.non_private_errors(cell, X, y)
    assert errors.shape == (len(slopes), d + 1)
    assert (errors > 0).all()


def test_a_line_counts_what_is_determined():
    cell = Cell("linear", "raw", "normal", "equal", 10, 2, 1.0)
    one = np.array([0.5, 3.0, -9.0]), np.array([True, True]), np.array([0.1, 0.4])
    other = np.array([-2.0, 1.0, 0.0]), np.array([True, False]), np.array([0.2, 0.9])
    line = inference.line(
        cell,
        [
            (*one, np.array([2.0, 4.0]), np.array([0.0, 5.0])),
            (*other, np.array([4.0, np.inf]), np.array([0.0, 0.0])),
        ],
    )
    assert line["coverage"] == pytest.approx(1 / 3)
    assert line["coverage_middle"] == pytest.approx(1 / 2)
    assert line["determined"] == pytest.approx(3 / 4)
    assert line["width"] == pytest.approx((3 + 4) / 2)
    assert line["naive"] == pytest.approx(3 / 4)
    assert line["intercept"] == 0
    nothing = inference.line(cell, [(one[0], ~one[1], one[2], one[2], one[2])] * 2)
    assert "coverage" not in nothing


def test_all_of_it_once(tmp_path):
    inference.run(tmp_path / "found.csv", "a command", runs=2, minutes=1, smoke=True)
    text = (tmp_path / "found.csv").read_text().splitlines()
    assert text[0] == "# a command"
    assert text[1].split(",") == list(inference.COLUMNS)
    assert len(text) == 4


def test_the_results_cover_at_their_level():
    """Of cells whose coefficients are well determined, up to the error of so few runs."""
    _, lines = results_file.read(ROOT / "benchmarks" / "results" / "inference.csv")
    judged = 0
    for line in lines:
        if not line["coverage_middle"] or float(line["relative_error"]) > 0.35:
            continue
        error = 0.22 / math.sqrt(float(line["runs"]) * float(line["d"]))
        assert 0.93 - 4 * error - 0.01 < float(line["coverage"]) <= 1, line
        judged += 1
    assert judged > 50
