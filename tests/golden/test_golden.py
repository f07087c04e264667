"""Seeded fits give what they gave: coefficients, noise and price, up to rounding."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from skdp.solvers import available

_spec = importlib.util.spec_from_file_location("golden_cases", Path(__file__).parent / "cases.py")
golden_cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(golden_cases)

GOLDEN = json.loads(golden_cases.TARGET.read_text())
CASES = dict(golden_cases.cases())


def test_the_file_has_the_cases_and_no_others():
    assert set(CASES) == set(GOLDEN)


def test_every_solver_is_among_them():
    assert {solver for solver, *_ in golden_cases.SOLVERS} == {"auto", *available()}


@pytest.mark.parametrize("name", CASES)
def test_a_fit_gives_what_it_gave(name):
    results = json.loads(json.dumps(golden_cases.described(CASES[name])))
    figures, expected = (dict(golden_cases.flat(case)) for case in (results, GOLDEN[name]))
    assert figures.keys() == expected.keys()
    for path, value in expected.items():
        # Versions of numpy and scipy add up in another order, and scaling in single precision.
        is_number = isinstance(value, int | float)
        close = pytest.approx(value, rel=1e-5, abs=1e-5, nan_ok=True) if is_number else value
        assert figures[path] == close, path
