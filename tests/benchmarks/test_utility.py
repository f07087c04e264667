"""The benchmark of accuracy: data sets, the table, its merging, and the verdict."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks import __main__ as command
from benchmarks import columns, registry, speed, table, utility, verdict
from benchmarks.datasets import adult, bank, bike, diamonds
from benchmarks.environments import diffprivlib_env

DATA = sorted(registry.modules("datasets"))
N_COLUMNS = {
    "adult": 107, "bank": 64, "bike": 58, "breast_cancer": 30, "california_housing": 8,
    "covertype": 54, "diabetes": 10, "diamonds": 26, "digits": 64, "mnist": 49, "wine": 12,
}  # fmt: skip


def load(name, seed=0):
    try:
        return registry.modules("datasets")[name].load(seed)
    except registry.Unavailable as reason:
        pytest.skip(str(reason))


# ------------------------------------------------------------------ data sets


@pytest.mark.parametrize("name", DATA)
def test_a_data_set_has_its_columns_and_both_conditions(name):
    raw = load(name)
    assert raw.X_train.shape[1] == raw.X_test.shape[1] == N_COLUMNS[name]
    assert np.isfinite(raw.X_train).all()
    scaled = raw.standardised()
    assert (raw.condition, scaled.condition) == ("raw", "standardised")
    assert_allclose(scaled.X_train.mean(axis=0), 0.0, atol=1e-8)
    used = scaled.X_train.std(axis=0) > 0
    assert_allclose(scaled.X_train.std(axis=0)[used], 1.0)
    if raw.is_classification:
        assert set(np.unique(scaled.y_train)) == set(raw.classes)
    else:
        assert_allclose([scaled.y_train.mean(), scaled.y_train.std()], [0.0, 1.0], atol=1e-8)
        assert raw.y_train.std() > 0


@pytest.mark.parametrize(
    "module", [adult, bank, bike, diamonds], ids=lambda module: module.__name__
)
def test_public_lists_of_categories_are_complete(module):
    """Every row has one 1 in the block of every category."""
    X = load(module.__name__.rsplit(".", maxsplit=1)[-1]).X_train
    sizes = [
        len(labels.split(",") if isinstance(labels, str) else labels)
        for labels in module.CATEGORIES.values()
    ]
    start = X.shape[1] - sum(sizes)
    for size in sizes:
        assert_allclose(X[:, start : start + size].sum(axis=1), 1.0)
        start += size


def test_one_hot_uses_the_list_and_not_the_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": [1.5, 2.0, 2.5], "kind": ["b", "a", "unheard of"]})
    found = columns.one_hot(frame, {"kind": ["a", "b", "c"]})
    assert_allclose(found, [[1.5, 0, 1, 0], [2.0, 1, 0, 0], [2.5, 0, 0, 0]])


# ------------------------------------------------------------------ methods


def test_methods_have_names_and_kinds():
    methods = registry.methods()
    assert {"skdp", "skdp gd", "non-private", "constant", "AdaSSP", "AMP"} <= set(methods)
    assert {method.kind for method in methods.values()} == set(registry.KINDS)
    assert not methods["skdp gd"].on_demand
    assert methods["skdp adp_sgd"].on_demand


def test_methods_are_chosen_by_name_or_kind():
    assert utility.chosen(["skdp", "AMP", "skdp"]) == ["skdp", "AMP"]
    assert "AdaSSP" in utility.chosen(["rival"])
    assert "skdp adp_sgd" not in utility.chosen([])
    assert "skdp adp_sgd" in utility.chosen([], everything=True)
    assert "skdp adp_sgd" in utility.chosen(["solver"], everything=True)
    assert utility.chosen(["skdp adp_sgd"]) == ["skdp adp_sgd"]
    with pytest.raises(SystemExit, match="unknown method 'amp'"):
        utility.chosen(["amp"])


def test_diffprivlib_answers_from_its_own_environment():
    try:
        diffprivlib_env.python()
    except registry.Unavailable as reason:
        pytest.skip(str(reason))
    split = load("breast_cancer").standardised()
    model = registry.methods()["diffprivlib"].make(split, 1e6, 0.0, 0)
    model.fit(split.X_train, split.y_train)
    assert (
        np.mean(model.classes_[model.predict_proba(split.X_test).argmax(1)] == split.y_test) > 0.9
    )
    assert diffprivlib_env.versions()["diffprivlib"] == "0.6.6"
    with pytest.raises(ValueError, match="only the test rows"):
        model.predict_proba(split.X_train)
    with pytest.raises(RuntimeError, match="failed: ValueError"):
        model.fit(split.X_train, split.y_train[1:])


# ------------------------------------------------------------------ running


@pytest.fixture(scope="module")
def rows():
    return utility.run(
        None, "test", ["diabetes"], ["reference", "skdp", "AdaSSP"], [1.0, 10.0], runs=2,
        jobs=1, conditions=["standardised"],
    )  # fmt: skip


def test_a_run_gives_a_row_for_every_cell(rows):
    found = {(row["method"], row["epsilon"]) for row in rows}
    private = {(name, epsilon) for name in ("skdp", "AdaSSP") for epsilon in (1.0, 10.0)}
    assert found == private | {("non-private", math.inf), ("constant", math.inf)}
    for row in rows:
        assert (row["rows"], row["columns"], row["runs"]) == (442, 10, 2)
        assert "log_loss" not in row


def test_gaps_are_to_the_non_private_model_on_the_same_split(rows):
    (twin,) = [row for row in rows if row["method"] == "non-private"]
    assert (twin["score_gap"], twin["score_gap_se"]) == (0.0, 0.0)
    for row in rows:
        assert row["score_gap"] == pytest.approx(row["score"] - twin["score"])


def test_what_fails_leaves_no_row(monkeypatch, capsys):
    def make(split, epsilon, delta, seed):
        raise ValueError("no such thing")

    broken = registry.Method("broken", "rival", make)
    known = registry.methods() | {"broken": broken}
    monkeypatch.setattr(utility, "methods", lambda: known)
    assert utility.run(None, "", ["diabetes"], ["broken"], [1.0], runs=2, jobs=1) == []
    assert "2 of 2 runs failed; ValueError: no such thing" in capsys.readouterr().out


def test_unknown_data_is_refused():
    with pytest.raises(SystemExit, match="unknown data sets"):
        utility.run(None, "", ["iris"])


# ------------------------------------------------------------------ the table


def row(**values):
    """One row that meets every aim."""
    base = {
        "data": "bank", "condition": "standardised", "method": "skdp", "epsilon": 1.0,
        "kind": "skdp", "delta": 1e-6, "runs": 10, "rows": 41188, "columns": 64,
        "score": 0.9, "score_se": 0.001, "score_gap": -0.001, "score_gap_se": 0.0005,
        "log_loss": 0.28, "log_loss_se": 0.001, "log_loss_gap": 0.003, "log_loss_gap_se": 0.0005,
        "auc": 0.79, "auc_se": 0.001, "auc_gap": -0.002, "auc_gap_se": 0.0005, "seconds": 0.1,
        "warned": 0.0, "scores": [],
    }  # fmt: skip
    return base | values


def test_a_table_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "table.csv"
    original = [
        row(scores=[0.5, 0.25, -1e9]),
        row(method="constant", epsilon=math.inf, log_loss=math.nan),
    ]
    table.write(path, ["made so"], original)
    commands, found = table.read(path)
    assert commands == ["made so"]
    for back in found:
        (mine,) = [one for one in original if one["method"] == back["method"]]
        for name in table.COLUMNS:
            assert back[name] == pytest.approx(mine[name], nan_ok=True), name


def test_merging_replaces_what_is_new_and_keeps_the_rest(tmp_path):
    path = tmp_path / "table.csv"
    table.merge(path, "first", [row(), row(method="AMP", kind="rival"), row(epsilon=3.0)])
    table.merge(path, "second", [row(score=0.95), row(condition="raw")])
    table.merge(path, "first", [])
    commands, found = table.read(path)
    assert commands == ["second", "first"]
    assert len(found) == 4
    scores = {(one["condition"], one["method"], one["epsilon"]): one["score"] for one in found}
    assert scores["standardised", "skdp", 1.0] == 0.95
    assert scores["standardised", "AMP", 1.0] == scores["standardised", "skdp", 3.0] == 0.9


def test_summary_takes_the_split_out_of_the_gap():
    """What a split does to both models is in the score's error and not in the gap's."""
    twins = [{"score": 0.5}, {"score": 0.7}, {"score": 0.9}]
    found = table.summary([{"score": twin["score"] - 0.1} for twin in twins], twins)
    assert found["score_se"] == pytest.approx(0.2 / math.sqrt(3))
    assert found["score_gap"] == pytest.approx(-0.1)
    assert found["score_gap_se"] == pytest.approx(0.0, abs=1e-12)


# ------------------------------------------------------------------ the verdict


def missed(rows):
    return [finding.aim for finding in verdict.findings(rows) if finding.met is False]


GOOD = [
    row(),
    row(epsilon=0.1, score=0.895, score_gap=-0.006),
    row(method="AMP", kind="rival", score=0.88, score_gap=-0.02, auc_gap=-0.1, log_loss_gap=0.1),
    row(method="constant", kind="reference", epsilon=math.inf, score=0.887, score_gap=-0.014),
]


def test_a_good_table_meets_the_aims():
    assert missed(GOOD) == []


@pytest.mark.parametrize(
    ("worse", "aim"),
    [
        ({"score_gap": -0.0051}, "standardised columns"),
        ({"log_loss_gap": 0.016}, "standardised columns"),
        ({"auc_gap": -0.0052}, "standardised columns"),
        ({"score_gap": -0.0345}, "never worse than the constant"),
        ({"score_gap": -0.0221}, "no rival better"),
        ({"score_gap": -0.008}, "more budget never hurts"),
        ({"runs": 9}, "ten runs or more"),
    ],
)
def test_a_miss_is_found(worse, aim):
    assert any(found.startswith(aim) for found in missed([row(**worse), *GOOD[1:]]))


@pytest.mark.parametrize(
    ("log_loss", "warned", "aim"),
    [(0.41, 0.4, "worse than a constant"), (0.39, 0.5, "better than a constant")],
)
def test_warnings_belong_where_a_constant_is_better(log_loss, warned, aim):
    constant = row(method="constant", kind="reference", epsilon=math.inf, log_loss=0.4)
    cells = verdict.Table([constant, row(log_loss=log_loss, warned=warned)])
    (finding,) = verdict.warnings_of_noise(cells)
    assert finding.aim.startswith(aim)
    assert not finding.met
    (finding,) = verdict.warnings_of_noise(
        verdict.Table([constant, row(log_loss=log_loss, warned=0.9 - warned)])
    )
    assert finding.met
    uncounted = verdict.Table([constant, row(warned=math.nan)])
    assert not list(verdict.warnings_of_noise(uncounted))


def test_small_data_are_not_held_to_the_distances():
    assert not missed([row(rows=4999, score_gap=-0.006, score_gap_se=0.01), *GOOD[1:]])


def test_raw_thresholds_are_found_met_missed_or_absent():
    base = {"data": "california_housing", "condition": "raw"}
    rows = [row(**base, score=0.6), row(**base, epsilon=0.3, score=0.49, score_gap=-0.1)]
    found = {f.cell: f.met for f in verdict.raw_thresholds(verdict.Table(rows))}
    assert found["california_housing, epsilon 1"] is True
    assert found["california_housing, epsilon 0.3"] is False
    assert found["adult, epsilon 1"] is None


def test_scores_are_compared_run_by_run():
    """What a split does to both is no reason for doubt."""
    mine = row(scores=[0.5, 0.7, 0.9], score_gap_se=0.1)
    other = row(method="AMP", kind="rival", scores=[0.52, 0.71, 0.93], score_gap_se=0.1)
    better, error = verdict.advantage(mine, other)
    assert (better, error) == pytest.approx((0.02, 0.01 / math.sqrt(3)))
    assert any(aim.startswith("no rival better") for aim in missed([mine, other]))
    assert verdict.advantage(mine, row(scores=[0.5]))[1] == pytest.approx(math.hypot(0.1, 0.0005))


def test_a_rival_that_is_surely_better_counts_before_one_that_may_be():
    sure = row(method="AMP", kind="rival", score_gap=0.005, score_gap_se=0.0001)
    unsure = row(method="AdaSSP", kind="rival", score_gap=0.05, score_gap_se=0.5)
    (found, *_) = verdict.against_rivals(verdict.Table([row(), sure, unsure]))
    assert found.met is False
    assert "AMP" in found.figure


def test_a_rival_by_name_only_is_not_held_against_the_default():
    """What is not private as it was run is no rival."""
    leaking = row(method="diffprivlib, bounds from data", kind="not private", score_gap=0.1)
    assert missed([*GOOD, leaking]) == []


def test_a_huge_budget_must_end_at_the_non_private_score():
    assert missed([*GOOD, row(epsilon=1000.0, score_gap=0.0, score=0.901)]) == []
    short = row(epsilon=1000.0, score_gap=-0.006, score_gap_se=0.003, score=0.9)
    assert "a huge budget gives the non-private score" in missed([
        *GOOD, {**short, "score_gap_se": 0.001},
    ])  # fmt: skip


def test_the_report_gives_figures():
    lines = list(verdict.report([row(score_gap=-0.03), *GOOD[1:]]))
    assert any("MISSED  bank, epsilon 1: accuracy loses 0.0300, at most 0.005" in x for x in lines)


def test_the_command_line_reaches_subsets():
    _, arguments = command.parse(
        ["utility", "adult", "bank", "--methods", "skdp", "not private", "--epsilon", "1", "1e3",
         "--conditions", "raw", "--runs", "3", "--jobs", "1", "--all"]
    )  # fmt: skip
    assert arguments.what == ["utility", "adult", "bank"]
    assert arguments.methods == ["skdp", "not private"]
    assert arguments.epsilon == [1.0, 1000.0]
    assert arguments.conditions == ["raw"]


def test_rows_of_a_part_take_the_place_of_those_before():
    former = [("fit", "1"), ("milliseconds", "2"), ("other fit", "3"), ("milliseconds", "4")]
    rows = [("other fit", "5"), ("milliseconds", "6"), ("new fit", "7"), ("milliseconds", "8")]
    assert speed.merged(former, rows) == [*former[:2], *rows]
    with pytest.raises(SystemExit, match=r"speed has the parts .*memory.*1000x10"):
        speed.run(None, "", True, ["memmory"])
