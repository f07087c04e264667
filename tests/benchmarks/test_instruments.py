"""What the benchmark of instruments simulates, and the figures that it computes."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def instruments(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    return importlib.import_module("benchmarks.instruments")


def test_the_true_slopes_are_those_of_two_stages_on_many_rows(instruments, rng):
    for name in instruments.DESIGNS:
        rows, y, kinds, slopes = instruments.draw(name, 200_000, rng)
        coef, error = instruments.textbook(rows, y, kinds)
        assert (np.abs(coef - slopes) < 5 * error).all(), name
        R = np.column_stack([rows[:, np.concatenate(kinds[:2])], np.ones(len(y))])
        plain = np.linalg.lstsq(R, y, rcond=None)[0][:-1]
        assert np.abs(plain - slopes)[0] > 5 * error[0] or "weak" in name, name


def test_the_figures_of_a_cell(instruments, rng):
    coverage, error, of_all, plain, width, determined = instruments.measure(
        "three instruments", 4000, 5.0, 4, rng
    )
    assert 0.5 <= coverage <= 1
    assert of_all == coverage
    assert 0.5 <= plain <= 1
    assert error >= 0
    assert 0.8 < width < 2
    assert determined == 1
