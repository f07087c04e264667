"""The package stays as small and as flat as it is."""

from __future__ import annotations

import ast

import pytest

import structure

LIMITS = {
    "files": 190,
    "code lines": 26_310,
    "uses of Any": 459,
    "numeric constants": 396,
    "imports, % of code": 9.3,
    "longest internal parameter list": 13,
}
MOST_CLASSES, MOST_FILES, MOST_FRAMES = 12, 72, 19


@pytest.fixture(scope="module")
def figures():
    return structure.static_figures()


@pytest.mark.parametrize("name", LIMITS)
def test_a_figure_of_the_files_stays_within_its_limit(figures, name):
    figure = figures[name]
    assert (figure[0] if isinstance(figure, tuple) else figure) <= LIMITS[name], figure


def test_estimators_inherit_from_few_classes():
    assert structure.longest_mro()[0] <= MOST_CLASSES


def test_a_fit_enters_few_files_and_frames():
    walk = structure.walk_of_a_fit()
    assert 20 < len(walk.files) <= MOST_FILES
    assert 8 < len(walk.deepest) <= MOST_FRAMES, walk.deepest


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
