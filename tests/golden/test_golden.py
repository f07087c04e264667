"""Seeded fits give what they gave: coefficients, noise and price, up to rounding."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
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
    # Versions of numpy and scipy add up in another order.
    close = {"rtol": 1e-9, "atol": 1e-9}
    found, expected = golden_cases.described(CASES[name]), GOLDEN[name]
    assert found["accountant"] == expected["accountant"]
    assert found["epsilon"] == pytest.approx(expected["epsilon"], rel=1e-9)
    kinds = [record[:2] for record in found["releases"]]
    assert kinds == [record[:2] for record in expected["releases"]]
    noises = [[record[2] for record in case["releases"]] for case in (found, expected)]
    np.testing.assert_allclose(*noises, **close)
    assert found["numbers"].keys() == expected["numbers"].keys()
    for attribute, values in expected["numbers"].items():
        np.testing.assert_allclose(found["numbers"][attribute], values, **close, err_msg=attribute)
