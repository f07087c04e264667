"""Menus of solvers: general ones first with a purpose each, and what the modules of papers say."""

from __future__ import annotations

import itertools
import re
import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import documentation
import skdp
from skdp.solvers import REGISTRY, available, core, get_solver, papers
from skdp.solvers.base import ALGORITHMS


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
    assert "got 'lbfgs'." in first
    assert lines[1:] == [f"{name}: {REGISTRY[name].purpose}" for name in solvers_in(core)]
    assert last == f"Of papers: {', '.join(solvers_in(papers))}."


# The grid that a search covers for every solver of a paper: a neutral value and another one. The
# page says for which solvers the others have a meaning.
PAGE = (documentation.DOCS / "papers" / "index.rst").read_text(encoding="utf-8")
NEUTRAL = {"momentum": 0.0, "noise_schedule": "uniform", "clip_norm": "auto"}
OTHER = {"momentum": 0.5, "noise_schedule": "exponential", "clip_norm": 1.0}
SEARCHED = {
    solver: {name for name, cell in zip(OTHER, cells, strict=True) if cell == "yes"}
    for solver, *cells in re.findall(r"^(\S+) +(yes|no) +(yes|no) +(yes|no)$", PAGE, re.M)
}


def ridge(solver, **values):
    """Return an estimator that every solver can fit: a penalty, and a ball where one is needed."""
    ball = {"constraint": "l1_ball"} if solver == "accelerated_mirror_descent" else {}
    return skdp.DPRidge(solver=solver, max_iter=10, **ball, **NEUTRAL | values)


def test_the_grid_covers_all_solvers_of_papers():
    assert sorted(SEARCHED) == sorted(solvers_in(papers))


@pytest.mark.parametrize("solver", SEARCHED)
def test_one_grid_runs_for_the_solvers_of_papers(solver):
    """Neutral values run for each, others where the theory has them, and all else is refused."""
    for names in itertools.chain.from_iterable(
        itertools.combinations(OTHER, size) for size in range(4)
    ):
        model = ridge(solver, **{name: OTHER[name] for name in names})
        if SEARCHED[solver].issuperset(names):
            assert model.plan(500, 3).releases
        else:
            refused = ", ".join(sorted(set(names) - SEARCHED[solver]))
            with pytest.raises(ValueError, match=f"solver '{re.escape(solver)}' has no {refused}"):
                model.plan(500, 3)


def test_one_search_over_the_solvers_of_papers(rng):
    """scikit-learn's search fits all of them with one grid; what is refused scores nan."""
    X = rng.standard_normal((300, 3))
    grid = {
        "solver": [name for name in SEARCHED if name != "accelerated_mirror_descent"],
        **{name: [NEUTRAL[name], OTHER[name]] for name in OTHER},
    }
    with warnings.catch_warnings(action="ignore"):
        search = GridSearchCV(ridge("gd"), grid, cv=2).fit(X, X[:, 0])
    found = {
        tuple(parameters.values())
        for parameters, score in zip(
            search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
        )
        if np.isfinite(score)
    }
    runs = sum(2 ** len(SEARCHED[solver]) for solver in grid["solver"])
    assert len(found) == runs


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_papers_names_select_their_solvers(algorithm):
    """By name, as a pair, and in the plan of an estimator; what the user sets comes first."""
    name, settings = ALGORITHMS[algorithm]
    assert type(get_solver(algorithm)) is REGISTRY[name]
    assert get_solver(algorithm).get_params().items() >= settings.items()
    assert get_solver((algorithm, {"max_iter": 7})).max_iter == 7
    pairs = [(name, dict(settings)), algorithm]
    if name != "accelerated_mirror_descent":  # needs a ball
        first, second = (skdp.DPRidge(solver=solver).plan(500, 3) for solver in pairs)
        assert first.releases == second.releases


@pytest.mark.parametrize(
    ("given", "meant"),
    [("adp-sgd", "ADP-SGD"), ("svgr", "svrg"), ("DP_NAG", "DP-NAG"), ("heavyball", "heavy_ball")],
)
def test_an_unknown_name_is_answered_by_the_most_similar_one(given, meant):
    with pytest.raises(ValueError, match=rf"got '{given}'\. Did you mean '{meant}'\?"):
        get_solver(given)


def test_values_that_are_neutral_for_others_are_kept_where_they_mean_something():
    assert get_solver("gd", momentum=0.0).momentum == 0.0
    with pytest.raises(ValueError, match="has no momentum"):
        get_solver("svrg", momentum=0.1)
    with pytest.raises(ValueError, match="has no momentum"):
        get_solver("svrg", momentum=[0.0])
