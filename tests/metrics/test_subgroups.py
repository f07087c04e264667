"""Scores by subgroup: right without noise, priced as one, and refused before the charge."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as plain
from sklearn.linear_model import LinearRegression, LogisticRegression

import skdp
from skdp.metrics import Scores, evaluate
from skdp.metrics.requests import METRICS

REGIONS = {"north": [0.0, 1], "south": 2, "elsewhere": None}


@pytest.fixture(scope="module")
def two_classes():
    """A model, rows whose last column is a region, and labels that are harder in some regions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 4))
    X[:, 3] = rng.choice(5, 2000, p=[0.3, 0.3, 0.2, 0.1, 0.1])
    noise = rng.logistic(size=2000) * (0.2 + 0.3 * X[:, 3])
    y = np.where(X[:, 0] + noise > 0.5, "yes", "no")
    return LogisticRegression().fit(X[:500], y[:500]), X, y


def seeded(seed=0, **terms):
    return skdp.Privacy(noise=skdp.SeededNoise(seed), **terms)


def exact(*data, **options):
    with pytest.warns(skdp.PrivacyWarning, match="epsilon=inf"):
        return evaluate(*data, epsilon=math.inf, **options)


def of_region(X, name):
    return {"north": X[:, 3] < 2, "south": X[:, 3] == 2, "elsewhere": X[:, 3] > 2}[name]


def test_exact_scores_of_subgroups(two_classes):
    model, X, y = two_classes
    found = exact(model, X, y, list(METRICS["classifier"]), by=3, subgroups=REGIONS)
    assert list(found) == list(REGIONS)
    for name, scores in found.items():
        rows = of_region(X, name)
        truth, chance = y[rows] == "yes", model.predict_proba(X[rows])[:, 1]
        predicted = model.predict(X[rows]) == "yes"
        loss = np.minimum(-np.log(np.where(truth, chance, 1 - chance)), 6.0)
        expected = {
            "accuracy": plain.accuracy_score(truth, predicted),
            "precision": plain.precision_score(truth, predicted),
            "recall": plain.recall_score(truth, predicted),
            "f1": plain.f1_score(truth, predicted),
            "neg_log_loss": -loss.mean(),
        }
        for metric, value in expected.items():
            assert scores[metric].value == pytest.approx(value, abs=3e-6), (name, metric)
            assert scores[metric].noise_std == 0
        # Unlike a bound that follows from the mean alone, the square shows how losses vary.
        expected = loss.std() / math.sqrt(len(loss))
        assert scores["neg_log_loss"].sampling_std == pytest.approx(expected, rel=1e-4)
        area = plain.roc_auc_score(truth, chance)
        assert scores["roc_auc"].value == pytest.approx(area, abs=5e-4)


def test_labels_may_come_in_columns_arrays_and_partitions(two_classes):
    model, X, y = two_classes
    frame = pd.DataFrame(X, columns=list("abcd")).assign(d=X[:, 3].astype(int))
    text = np.array(["zero", "one", "two", "three", "four"])[X[:, 3].astype(int)]
    options = {"metrics": ["accuracy", "roc_auc"], "epsilon": 5.0, "privacy": seeded()}
    chosen = {"by": 3, "subgroups": REGIONS}
    named = {"north": ["zero", "one"], "south": "two", "elsewhere": None}
    expected = evaluate(model, X, y, **options, **chosen)
    on_names = LogisticRegression().fit(frame[:500], y[:500])
    for found in (
        evaluate(on_names, frame, y, by="d", subgroups=REGIONS, **options),
        evaluate(model, X, y, by=text, subgroups=named, **options),
        evaluate(model, X, y, by=pd.Series(text, dtype="category"), subgroups=named, **options),
        evaluate(model, X, y, by=list(X[:, 3]), subgroups=REGIONS, **options),
        evaluate(model, skdp.data.Chunks(X, y, 700), **options, **chosen),
    ):
        for name, scores in expected.items():
            for metric, score in scores.items():
                assert found[name][metric].value == pytest.approx(score.value, abs=1e-9)


def test_labels_that_are_not_declared_or_missing_are_in_no_subgroup(two_classes):
    model, X, y = two_classes
    labels = X[:, 3].astype(object)
    labels[::4], labels[1::4], labels[2::4] = None, math.nan, "text"
    metrics = ["accuracy", "roc_auc"]
    found = exact(model, X, y, metrics, by=labels, subgroups=[0, 2, "rare"])
    right = model.predict(X) == y
    assert list(found) == [0, 2, "rare"]
    for label in (0, 2):
        rows = np.arange(2000)[3::4][X[3::4, 3] == label]
        assert found[label]["accuracy"].value == pytest.approx(right[rows].mean())
    for metric in ("accuracy", "roc_auc"):
        assert math.isnan(found["rare"][metric].value)
        assert found["rare"][metric].interval() == (0.0, 1.0)


def test_a_person_adds_to_each_subgroup_the_share_of_their_rows_in_it(two_classes):
    model, X, y = two_classes
    person = np.random.default_rng(1).integers(0, 300, 2000)
    metrics = ["accuracy", "recall", "neg_log_loss"]
    found = exact(model, X, y, metrics, by=3, subgroups=REGIONS, groups=person)
    chance = model.predict_proba(X)[:, 1]
    positive = y == "yes"
    loss = np.minimum(-np.log(np.where(positive, chance, 1 - chance)), 6.0)
    weight = 1 / np.bincount(person)[person]
    right = model.predict(X) == y
    for name, scores in found.items():
        w = np.where(of_region(X, name), weight, 0.0)
        expected = {
            "accuracy": np.average(right, weights=w),
            "recall": np.average(right, weights=w * positive),
            "neg_log_loss": -np.average(loss, weights=w),
        }
        for metric, value in expected.items():
            assert scores[metric].value == pytest.approx(value, abs=3e-6)


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize("grouped", [False, True])
def test_all_subgroups_have_the_price_of_one_table(two_classes, adjacency, grouped):
    """The releases, and so the noise on a count, are those of a single table."""
    model, X, y = two_classes
    options = {"privacy": seeded(adjacency=adjacency)}
    if grouped:
        options["groups"] = np.arange(2000) // 4
    with skdp.PrivacyBudget(1.0, 1e-6, adjacency, allow_seeded_noise=True) as budget:
        terms = {"privacy": seeded(adjacency=adjacency, budget=budget)}
        found = evaluate(model, X, y, "recall", by=3, subgroups=range(5), **options | terms)
        assert budget.spent == pytest.approx(1.0, rel=1e-6)
    assert [str(one) for one in found.privacy_.releases] == [
        str(one) for one in evaluate(model, X, y, "recall", **options).privacy_.releases
    ]
    text = str(found.privacy_)
    assert "subgroups (0, 1, 2, 3, 4)" in text
    assert "size" not in text.split("assumed")[0]


def test_scores_of_subgroups_are_printed_and_hold_no_rows(two_classes):
    model, X, y = two_classes
    found = evaluate(model, X, y, ["accuracy", "recall", "roc_auc"], by=3, subgroups=REGIONS)
    assert isinstance(found, Scores)
    lines = repr(found).splitlines()
    assert lines[0].startswith("<Scores at epsilon=1")
    assert lines[1].startswith("north: accuracy 0.")
    assert len(lines) == 1 + 3 * len(REGIONS)
    assert len(pickle.dumps(found)) < 40_000


WRONG = {
    "need each other": [{"subgroups": None}, {"by": None}],
    "subgroups must be a list": [{"subgroups": "north"}, {"subgroups": 3}],
    "be disjoint": [
        {"subgroups": [1, 1.0]},
        {"subgroups": {"a": [1, 2], "b": 2}},
        {"subgroups": [[1], [2]]},
        {"subgroups": [1, None]},
        {"subgroups": [1, math.nan]},
    ],
    "one subgroup may have": [
        {"subgroups": []},
        {"subgroups": {"all": None}},
        {"subgroups": {"a": 1, "b": None, "c": None}},
        {"subgroups": {"a": 1, "b": []}},
    ],
    "Pass a column number": [{"by": 4}, {"by": "d"}],
    "Declare them as numbers": [{"subgroups": ["north"]}],
    "Declare them as text": [{"by": np.full(2000, "north")}],
    "by must have a label for each row": [
        {"by": np.zeros(1999)},
        {"by": np.zeros(1999), "groups": np.arange(2000)},
    ],
    "by must be a column of X": [{"by": np.zeros((2000, 2))}, {"by": 0.5}],
    "neither masked nor sparse": [{"by": np.ma.masked_equal(np.arange(2000), 3)}],
    "by a column of X": [
        {"X": lambda X, y: skdp.data.Chunks(X, y, 700), "y": None, "by": np.zeros(2000)}
    ],
    "cannot be hashed": [{"by": [[SECRET := "a secret"]] * 2000}],
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_subgroups_are_refused_before_the_charge(two_classes, message):
    model, X, y = two_classes
    for wrong in WRONG[message]:
        options = {"y": y, "by": 3, "subgroups": REGIONS} | wrong
        rows = options.pop("X", lambda X, y: X)(X, y)
        with skdp.PrivacyBudget(9.0, 1e-6) as budget:
            with pytest.raises(ValueError, match=message) as refusal:
                evaluate(model, rows, **options)
            assert budget.spent == 0
        assert "Nothing was released" in str(refusal.value)
        assert SECRET not in str(refusal.value)


def test_r2_by_subgroup_is_refused(regression):
    X, y = regression
    model = LinearRegression().fit(X, y)
    for metrics in (None, ["mean_squared_error", "d2_tweedie", "r2"]):
        with pytest.raises(ValueError, match="' cannot be compared between subgroups"):
            evaluate(model, X, y, metrics, by=0, subgroups=[0], target_range=(-1, 1))


def test_the_printed_lines_say_what_clipped_scores_are_of():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    model = LinearRegression().fit(X, y)
    given = {"by": X[:, 0] > 0, "subgroups": [True, False], "target_range": (-2.0, 3.0)}
    scores = evaluate(model, X, y, "mean_squared_error", **given)
    assert repr(scores).count("of targets clipped to [-2, 3]") == 2
