"""Each benchmark runs on small data, keeps its rows in its file and reads them again."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from benchmarks import (
    __main__ as command,
)
from benchmarks import (
    counts,
    held_out,
    held_out_sets,
    inference,
    inference_real,
    registry,
    results_file,
    score_coverage,
    speed,
    utility,
    verdict,
)
from benchmarks.cases import running as cases
from benchmarks.reports import running as reports

TABLES = ("modeldata.ames", "keel.ring")


@pytest.fixture
def small(monkeypatch, rng):
    """Small data in place of tables of other packages."""
    X = rng.standard_normal((200, 3))
    known = {TABLES[0]: (X, X @ [1.0, 2.0, 3.0]), TABLES[1]: (X, (X[:, 0] > 0).astype(float))}
    monkeypatch.setattr(held_out, "arrays", lambda name: known[name])
    counted = X, rng.poisson(np.exp(X[:, 0])).astype(float)
    monkeypatch.setattr(counts, "arrays", lambda name: counted)
    monkeypatch.setattr(inference_real, "DRAWN", {"made up": (2_000,)})
    monkeypatch.setattr(inference_real, "population", lambda name: (X, X[:, 0] + 1.0, False))
    held_out.split_of.cache_clear()
    yield
    held_out.split_of.cache_clear()


def run_utility(path):
    names = ["reference", "skdp", "AdaSSP"]
    utility.run(path, "a command", ["diabetes"], names, [1.0], runs=2, jobs=1)
    rows = verdict.read(path)
    assert {(row["method"], row["epsilon"]) for row in rows} == {
        ("skdp", 1.0), ("AdaSSP", 1.0), ("non-private", math.inf), ("constant", math.inf),
    }  # fmt: skip
    return verdict.report(rows), len(rows), 8


def run_held_out(path):
    held_out.run(path, "a command", TABLES, epsilons=[1.0], runs=2, jobs=1)
    assert {row["data"] for row in verdict.read(path, "test")} == {TABLES[0]}
    rows = verdict.read(path)
    return verdict.report(rows), len(rows), 2 * 3 + 6 + 6


def run_counts(path):
    counts.run(path, "a command", counts.SMOKE, [1.0], runs=2, jobs=1)
    rows = results_file.read(path)[1]
    return counts.report(rows), len(rows), 4


def run_cases(path):
    rows = cases.run(path, "a command", cases.SMOKE[:2], [1.0], utility.DELTA, 2, 1, most_rows=300)
    return cases.report(cases.read(path)[1], rows), len(cases.read(path)[1]), len(rows)


def run_inference(path):
    inference.run(path, "a command", 2, inference.cells(smoke=True))
    return inference.verdict(path), len(results_file.read(path)[1]), 2


def run_real(path):
    inference_real.run(path, "a command", 2, ["made up"])
    return [], len(results_file.read(path)[1]), len(inference_real.EPSILONS)


def run_scores(path):
    score_coverage.run(path, "a command", 3, [1.0], ["rows", "r2"])
    return score_coverage.verdict(path), len(results_file.read(path)[1]), 6


def run_speed(path):
    speed.run(path, "a command", True, ["fits", "plans"])
    return [], len(results_file.read(path)[1]), 5


def run_reports(path):
    rows = reports.run(None, "a command", reports.SMOKE)
    assert {row["verdict"] for row in rows} == {"right"}
    results_file.write(path, ["a command"], list(rows[0]), rows)
    return reports.report(rows), len(rows), len(reports.SMOKE)


RUNS = (
    run_utility, run_held_out, run_counts, run_cases, run_inference, run_real, run_scores,
    run_speed, run_reports,
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("run", RUNS)
def test_a_benchmark_runs_and_keeps_its_rows(run, small, tmp_path):
    path = tmp_path / "results.csv"
    report, found, wanted = run(path)
    assert found == wanted
    assert path.read_text(encoding="utf-8").startswith(("# a command\n", "# made by: a command\n"))
    assert all(isinstance(line, str) for line in report)


def test_every_command_and_method_is_known():
    assert {"skdp", "non-private", "constant", "AMP", "skdp, 2 % public"} <= set(registry.methods())
    assert {method.kind for method in registry.methods().values()} == set(registry.KINDS)
    _, options = command.parse(["held_out", "--half", "development", "--verdict"])
    assert (options.what, options.half, options.verdict) == (["held_out"], "development", True)
    for call in (
        lambda: utility.run(None, "", ["iris"]),
        lambda: utility.chosen(["amp"]),
        lambda: held_out.run(None, "", ["iris"]),
        lambda: counts.run(None, "", ["nothing"]),
        lambda: speed.run(None, "", True, ["memmory"]),
        lambda: reports.run(None, "", ["nothing"]),
    ):
        with pytest.raises(SystemExit, match="unknown"):
            call()


RIVALS = {
    "AdaSSP": (1e6, 0.01), "Boosted AdaSSP": (1e6, 0.02), "TukeyEM": (10.0, 0.02),
    "DP-GD, 30 lines": (1e6, 0.07), "AMP": (300.0, 0.03), "objective perturbation": (300.0, 0.03),
}  # fmt: skip


@pytest.mark.parametrize("name", RIVALS)
def test_a_rival_with_an_enormous_budget_predicts_as_a_model_without_privacy(name):
    rng = np.random.default_rng(0)
    X = np.clip(rng.standard_normal((4000, 3)), -0.9, 0.9)
    y = X @ [0.5, -0.3, 0.2] + 0.1 + 0.1 * rng.standard_normal(4000)
    labels = rng.random(4000) < 1 / (1 + np.exp(-2 * X[:, 0] + X[:, 1]))
    method, (epsilon, error), found = registry.methods()[name], RIVALS[name], []
    for target, is_class in ((y, False), (labels.astype(int), True)):
        split = registry.Split(X, X, target, target, is_class)
        if method.applies(split):
            model = method.make(split, epsilon, 1e-6, 0).fit(X, target)
            twin = (LogisticRegression(C=1e9) if is_class else LinearRegression()).fit(X, target)
            name = "predict_proba" if is_class else "predict"
            difference = getattr(model, name)(X) - getattr(twin, name)(X)
            found.append(np.abs(difference).max())
    assert found
    assert max(found) < error


def test_halves_are_by_name():
    """If a name changes its half, constants were chosen on what is called the test half."""
    halves = [one.half for one in held_out_sets.SETS.values()]
    assert (halves.count("test"), halves.count("development")) == (54, 44)
    assert held_out_sets.SETS[TABLES[0]].half == "test"
    assert held_out_sets.SETS[TABLES[1]].half == "development"
