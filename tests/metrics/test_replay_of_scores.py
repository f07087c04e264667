"""No row shows in scores except through the releases; mutants that let one show are caught."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression

from replays import data_for, each_row_once, neighbours
from skdp.accounting import Adjacency
from skdp.metrics import facts
from skdp.metrics.evaluation import PrivateScorer
from skdp.metrics.questions import METRICS
from skdp.oracle import TableCounts, UnitSum
from skdp.stages import scores as stage

OF_MANY = ["accuracy", "balanced_accuracy", "confusion_matrix", "neg_log_loss"]
both = pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)


def fitted(kind, rng):
    """A model that is given, and rows to score it on."""
    X, y = data_for(kind, rng)
    other, labels = data_for(kind, rng)
    plain = LinearRegression if kind == "linear" else LogisticRegression
    return plain().fit(other, labels), X, y


def scorer(model, metrics, adjacency, **options):
    return lambda: PrivateScorer(
        model,
        metrics,
        epsilon=3.0,
        adjacency=str(adjacency),
        noise_source="seeded",
        random_state=0,
        **options,
    )


def check(replay, kind, metrics, adjacency, rng, **options):
    model, X, y = fitted(kind, rng)
    make = scorer(model, metrics, adjacency, **options)
    for data, neighbour in neighbours(kind, X, y, adjacency, each_row_once(kind)):
        replay.check(make, data, neighbour, adjacency)


@both
@pytest.mark.parametrize(
    "metrics",
    [list(METRICS["classifier"]), ["accuracy"], ["roc_auc"], ["recall", "neg_brier_score"]],
    ids=["all", "accuracy", "roc_auc", "recall and brier"],
)
def test_two_classes(replay, rng, adjacency, metrics):
    check(replay, "logistic", metrics, adjacency, rng)


@both
@pytest.mark.parametrize("metrics", [OF_MANY, ["balanced_accuracy"]], ids=["all", "balanced"])
def test_several_classes(replay, rng, adjacency, metrics):
    check(replay, "multinomial", metrics, adjacency, rng)


@both
@pytest.mark.parametrize("metrics", [list(METRICS["regressor"]), ["r2"]], ids=["all", "r2"])
def test_regressors(replay, rng, adjacency, metrics):
    check(replay, "linear", metrics, adjacency, rng, target_range=(-4.0, 4.0))


class Talking(ClassifierMixin, BaseEstimator):
    """A given model that warns and prints about what it predicts."""

    def __init__(self):
        self.classes_ = np.array([0, 1])

    def predict(self, X):
        if np.abs(X).max() > 1000:
            warnings.warn("there are outliers", UserWarning, stacklevel=2)
        np.log(np.array([X.min()]))
        return (X[:, 0] > 0).astype(int)


def check_a_talking_model(replay, adjacency, rng):
    X, y = data_for("logistic", rng)
    make = scorer(Talking(), "accuracy", adjacency)
    for data, neighbour in neighbours("logistic", X, y, adjacency, each_row_once("logistic")):
        replay.check(make, data, neighbour, adjacency)


@both
def test_what_a_model_warns_of_does_not_show(replay, rng, adjacency):
    check_a_talking_model(replay, adjacency, rng)


def mutant_edges_from_exact_counts(monkeypatch):
    """Bins at the exact quantiles of the rows' scores."""
    asked = stage._asked

    def exact(oracle, statistic, share):
        found = asked(oracle, statistic, share)
        if oracle.is_rehearsal or statistic.n_groups == 2:
            return found
        rows = statistic.total(oracle._source, oracle._context)
        return stage.NoisyTable(rows.reshape(1, -1), found.std, found.edges)

    monkeypatch.setattr(stage, "_asked", exact)


def mutant_records_counted_in_two_cells(monkeypatch):
    total = TableCounts.total

    def twice(self, rows, context):
        found = total(self, rows, context)
        return found + np.roll(found, 1)

    monkeypatch.setattr(TableCounts, "total", twice)


def mutant_losses_without_a_bound(monkeypatch):
    monkeypatch.setattr(
        facts, "log_losses", lambda found, classes, bound: -np.log(found[range(60), classes])
    )
    monkeypatch.setattr(
        UnitSum, "total", lambda self, rows, context: rows.records.X[:, [self.column]].sum(axis=0)
    )


def mutant_the_exact_number_of_rows_of_a_class(monkeypatch):
    """The denominators of rates are counted without noise."""
    asked = stage._asked

    def exact(oracle, statistic, share):
        found = asked(oracle, statistic, share)
        if oracle.is_rehearsal or statistic.n_groups == 1:
            return found
        rows = statistic.total(oracle._source, oracle._context).reshape(2, -1)
        wrong = rows.sum(axis=1) - found.counts.sum(axis=1)
        counts = found.counts + wrong[:, None] / found.counts.shape[1]
        return stage.NoisyTable(counts, found.std, found.edges, found.fine)

    monkeypatch.setattr(stage, "_asked", exact)


MUTANTS = {name: value for name, value in list(globals().items()) if name.startswith("mutant_")}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(replay, leak, rng, monkeypatch, name):
    MUTANTS[name](monkeypatch)
    with pytest.raises(leak):
        check(replay, "logistic", ["roc_auc", "neg_log_loss"], Adjacency.REPLACE_ONE, rng)


def test_a_model_whose_warnings_pass_is_caught(replay, leak, rng, monkeypatch):
    monkeypatch.setattr(
        facts, "predictions", lambda model, method, X, n_rows: getattr(model, method)(X)
    )
    with pytest.raises(leak, match="warnings"):
        check_a_talking_model(replay, Adjacency.REPLACE_ONE, rng)
