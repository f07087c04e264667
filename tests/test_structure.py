"""The package stays as small and as flat as it is."""

from __future__ import annotations

import ast

import pytest

import structure

LIMITS = {
    "files": 190,
    "code lines": 26_320,
    "uses of Any": 459,
    "numeric constants": 396,
    "numeric literals": 1168,
    "code lines of tests": 34_650,
    "code lines of benchmarks": 9360,
    "imports, % of code": 9.3,
    "longest internal parameter list": 13,
}
MOST_CLASSES = 12
FIRST_FIT = {"files": 82, "functions": 730, "calls": 23_000, "frames": 28}


@pytest.fixture(scope="module")
def figures():
    return structure.static_figures()


@pytest.mark.parametrize("name", LIMITS)
def test_a_figure_of_the_files_stays_within_its_limit(figures, name):
    figure = figures[name]
    assert (figure[0] if isinstance(figure, tuple) else figure) <= LIMITS[name], figure


def test_estimators_inherit_from_few_classes():
    assert structure.longest_mro()[0] <= MOST_CLASSES


def test_the_first_fit_of_a_process_enters_few_files_functions_and_frames():
    found, deepest = structure.first_fit()
    assert found["files"] > 20
    assert all(found[name] <= FIRST_FIT[name] for name in FIRST_FIT), (found, deepest)


def test_numeric_literals_are_counted():
    source = "A = [0, 1, 2, -1, 0.5, True, 3, -2.5]\nf(x, 4 * x)"
    assert structure.numeric_literals(ast.parse(source)) == 3


def test_numeric_constants_are_counted():
    source = """
A = 1
B, C = 2.0, "text"
D: float = 1 / 3
E = (1, 2)
f = 4
G = len("text")
class H:
    I = -1e-3
    j = 5
"""
    assert structure.numeric_constants(ast.parse(source)) == ["A", "B", "D", "E", "I"]
