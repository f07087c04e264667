"""The examples of the pages on losses, solvers and releases, held to our contracts."""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import documentation
import solver_contract as contract
from replays import ESTIMATORS, data_for, differing, each_row_once, neighbours
from skdp.accounting import Adjacency
from skdp.oracle import GaussianNoise, NoisyStatistic, Solution
from skdp.solvers import Solver, get_solver
from skdp.solvers.base import REGISTRY

DOCS = Path(__file__).parents[1] / "docs"

both = pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)


@pytest.fixture
def module_of(monkeypatch):
    """Return a function that makes a module of the first example of a page, word for word."""
    solvers = dict(REGISTRY)

    def make(page, name, *replacements):
        parsed = doctest.DocTestParser().parse((DOCS / page).read_text(encoding="utf-8"))
        parts = iter(parsed)
        lines = []
        for part in parts:
            if isinstance(part, doctest.Example):
                lines.append(part.source)
            elif lines and part.strip():
                break  # prose ends the example
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        source = "".join(lines)
        for old, new in replacements:
            assert old in source
            source = source.replace(old, new)
        exec(compile(source, page, "exec"), vars(module))
        return module

    yield make
    REGISTRY.clear()
    REGISTRY.update(solvers)


def test_the_loss_is_as_smooth_as_it_declares(module_of, rng):
    loss = module_of("development/add_a_loss.rst", "expectile").Expectile(0.9)
    m, y, h = 3 * rng.standard_normal((200, 2)), rng.standard_normal((200, 2)), 1e-5
    step = [h, 0.0]
    slope = (loss.value(m + step, y) - loss.value(m - step, y)) / (2 * h)
    np.testing.assert_allclose(loss.residual(m, y)[:, 0], slope, atol=1e-6)
    moved = loss.residual(m + step, y) - loss.residual(m, y)
    assert moved.max() / h == pytest.approx(loss.curvature)


@pytest.fixture
def fast_gradient(module_of):
    module_of("development/add_a_solver.rst", "fast_gradient")
    return get_solver("fast_gradient")


@both
@pytest.mark.parametrize("problem", contract.PROBLEMS)
def test_the_solver_plans_within_the_budget(fast_gradient, problem, adjacency):
    assert contract.takes(fast_gradient, problem)
    contract.check_the_plan_costs_the_budget(fast_gradient, problem, adjacency)
    contract.check_the_plan_follows_from_public_facts(fast_gradient, problem, adjacency)
    for facts in contract.EDGES:
        contract.check_defaults_at_the_edges(fast_gradient, problem, facts)


def test_the_solver_keeps_the_rest_of_the_contract(fast_gradient):
    contract.check_a_scikit_learn_object_with_a_purpose(fast_gradient)
    contract.check_the_minimum_without_noise(fast_gradient)


@both
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_solver_shows_nothing_but_releases(replay, rng, fast_gradient, kind, adjacency):
    X, y = data_for(kind, rng)
    make = lambda: ESTIMATORS[kind](adjacency=str(adjacency), solver=fast_gradient)  # noqa: E731
    replay.check_each(make, neighbours(kind, X, y, adjacency), adjacency)


class Counting(Solver):
    """Ask for one count."""

    def __init__(self, statistic):
        self.statistic = statistic

    def automatic(self, public, problem):
        return {}

    def solve(self, oracle):
        point = np.ones(oracle.public.shape)
        count = oracle.request(NoisyStatistic(self.statistic(point), GaussianNoise()))
        return Solution(count[0] / oracle.public.n_rows + 0 * point, 1)


Counting.name = "counting"  # afterwards, so that it is not registered


AUDITED = ("@dataclass", "@audited\n@dataclass")
HOME = "skdp.oracle.releases.correct"


def check_count(replay, rng, statistic, adjacency):
    X, y = data_for("logistic", rng)
    solver = Counting(statistic)
    make = lambda: ESTIMATORS["logistic"](  # noqa: E731
        adjacency=str(adjacency), solver=solver, scaling="none"
    )
    pairs = [
        differing(X, y, adjacency, 1, row, target, weight)[::-1]
        for _, row, target in each_row_once("logistic")
        for weight in (1.0, 1e6)
    ]
    replay.check_each(make, pairs, adjacency)


@both
@pytest.mark.usefixtures("raw_weights")
def test_the_statistic_moves_by_no_more_than_it_says(replay, rng, module_of, adjacency):
    module = module_of("development/add_a_release.rst", HOME, AUDITED)
    check_count(replay, rng, module.CorrectCount, adjacency)


@pytest.mark.parametrize(
    "seeded",
    [
        ("int(np.count_nonzero(right))", "(right * block.weights).sum()"),
        ("Contribution(1.0, spread=1.0", "Contribution(0.5, spread=1.0"),
    ],
    ids=["counts weights", "half the bound"],
)
@pytest.mark.usefixtures("raw_weights")
def test_mutants_of_the_statistic_are_caught(replay, leak, rng, module_of, seeded):
    mutant = module_of("development/add_a_release.rst", HOME, AUDITED, seeded)
    with pytest.raises(leak, match="times its sensitivity"):
        check_count(replay, rng, mutant.CorrectCount, Adjacency.ZERO_OUT)


PRIVATE_DIALECT = re.compile(r"\b(drown|mend|tells? of|who has|twin)\w*", re.IGNORECASE)


@pytest.mark.parametrize("name", documentation.pages())
def test_pages_are_short_plain_and_for_their_readers(name):
    """Words as rendered are counted by docs/word_budget.py, where the pages are built."""
    text = documentation.pages()[name]
    assert PRIVATE_DIALECT.findall(text) == []
    assert len(text.split()) < 1500
    if name.partition("/")[0] not in ("research", "development"):
        assert "-m benchmarks" not in text


def test_every_page_is_in_a_menu():
    pages = documentation.pages()
    for name in pages.keys() - {"index"}:
        section, _, page = name.partition("/")
        menu = "index" if page == "index" else f"{section}/index"
        assert re.search(rf"^   {name if page == 'index' else page}$", pages[menu], re.MULTILINE)
