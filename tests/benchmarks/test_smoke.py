"""Each benchmark runs on small data, keeps its rows in its file and reads them again."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import (
    __main__ as command,
)
from benchmarks import (
    counts,
    held_out,
    held_out_sets,
    inference,
    registry,
    results_file,
    score_coverage,
    speed,
    table,
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
    inference.run(path, "a command", runs=2, minutes=1, smoke=True)
    return inference.verdict(path), len(results_file.read(path)[1]), 2


def run_scores(path):
    score_coverage.run(path, "a command", 3, [1.0], ["rows", "r2"])
    return score_coverage.verdict(path), len(results_file.read(path)[1]), 6


def run_reports(path):
    rows = reports.run(None, "a command", reports.SMOKE)
    assert {row["verdict"] for row in rows} == {"right"}
    results_file.write(path, ["a command"], list(rows[0]), rows)
    return reports.lines(rows), len(rows), len(reports.SMOKE)


RUNS = (run_utility, run_held_out, run_counts, run_cases, run_inference, run_scores, run_reports)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("run", RUNS)
def test_a_benchmark_runs_and_keeps_its_rows(run, small, tmp_path):
    path = tmp_path / "results.csv"
    report, found, wanted = run(path)
    assert found == wanted
    assert path.read_text(encoding="utf-8").startswith("# a command\n")
    assert all(isinstance(line, str) for line in report)


def test_new_rows_replace_those_of_the_same_key(tmp_path):
    path = tmp_path / "table.csv"
    row = dict.fromkeys(table.NUMBERS, 1.0) | {"data": "a", "condition": "raw", "method": "skdp"}
    row |= {"kind": "skdp", "scores": [0.5, -1e9], "runs": 2, "rows": 9, "columns": 3}
    table.merge(path, "first", [row, row | {"method": "AMP", "auc": math.nan}])
    table.merge(path, "second", [row | {"score": 0.25}])
    commands, (other, own) = table.read(path)
    assert commands == ["first", "second"]
    assert (own["score"], own["scores"], other["score"]) == (0.25, [0.5, -1e9], 1.0)
    assert math.isnan(other["auc"])


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
        with pytest.raises(SystemExit, match=r"unknown|speed has the parts"):
            call()


@pytest.mark.parametrize("name", sorted(registry.modules("datasets")))
def test_a_data_set_is_split_and_standardised(name):
    try:
        raw = registry.modules("datasets")[name].load(0)
    except registry.Unavailable as reason:
        pytest.skip(str(reason))
    scaled = raw.standardised().X_train
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-8)
    np.testing.assert_allclose(scaled.std(axis=0)[raw.X_train.std(axis=0) > 0], 1.0)


def test_halves_are_by_name():
    """If a name changes its half, constants were chosen on what is called the test half."""
    halves = [one.half for one in held_out_sets.SETS.values()]
    assert (halves.count("test"), halves.count("development")) == (54, 44)
    assert held_out_sets.SETS[TABLES[0]].half == "test"
    assert held_out_sets.SETS[TABLES[1]].half == "development"
