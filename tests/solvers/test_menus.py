"""Menus of solvers: general ones first with a purpose each, and what the modules of papers say."""

from __future__ import annotations

import csv
import importlib
import pkgutil
import re
import statistics
from pathlib import Path

import pytest

import skdp
from skdp.solvers import REGISTRY, available, core, get_solver, papers

ROOT = Path(__file__).parents[2]
PAPERS = {
    part.name: importlib.import_module(f"{papers.__name__}.{part.name}")
    for part in pkgutil.iter_modules(papers.__path__)
}


def solvers_in(package):
    """Names of the solvers that are defined in a package."""
    return [name for name in available() if REGISTRY[name].__module__.startswith(package.__name__)]


def test_general_solvers_come_before_those_of_papers():
    assert list(available()) == [*solvers_in(core), *solvers_in(papers)]
    assert list(available())[:2] == ["gd", "whitened"]
    fitting = available(skdp.DPRidge(), n_samples=100, n_features=3)
    assert list(fitting)[:2] == ["gd", "whitened"]
    assert list(fitting)[-1] == "svrg++"
    assert not any("\n" in reason for reason in fitting.others.values())


def test_a_refusal_lists_general_solvers_with_their_purpose():
    with pytest.raises(ValueError, match="must be 'auto', a Solver or a name of one") as refusal:
        get_solver("lbfgs")
    first, *lines, last = str(refusal.value).splitlines()
    assert "got 'lbfgs'. Nothing was released." in first
    assert lines[1:] == [f"{name}: {REGISTRY[name].purpose}" for name in solvers_in(core)]
    assert last == f"Of papers: {', '.join(solvers_in(papers))}."


def test_purposes_quote_the_file_that_is_named():
    lines = (ROOT / "benchmarks/papers/results/next_to_gd.csv").read_text().splitlines()[1:]
    rows = [row for row in csv.DictReader(lines) if row["epsilon"] == "1.0"]
    quoted = {name: re.findall(r"\d\.\d+", REGISTRY[name].purpose) for name in solvers_in(papers)}
    assert sum(map(len, quoted.values())) == 6
    for name in (name for name, figures in quoted.items() if figures):
        ratios = [float(row["ratio"]) for row in rows if row["solver"] == name]
        assert list(map(float, quoted[name])) == [round(statistics.median(ratios), 1)]


@pytest.mark.parametrize("paper", PAPERS.values(), ids=list(PAPERS))
def test_a_paper_says_which_of_its_solvers_is_which_algorithm(paper):
    assert 10 <= len(paper.__doc__.splitlines()) <= 24
    missing = [name for name in solvers_in(paper) if f'"{name}"' not in paper.__doc__]
    assert missing == []
    for said in ("paper", "default", "Worth using"):
        assert said in paper.__doc__
