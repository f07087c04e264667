"""No row shows in scores except through the releases."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression

from grouped import group_neighbours, grouped_data
from replays import data_for, neighbours
from skdp import Privacy, SeededNoise
from skdp._oracle.releases import histograms, record_sums
from skdp._oracle.sources.column_map import Weights
from skdp.accounting import Adjacency
from skdp.metrics.evaluation import PrivateScorer
from skdp.metrics.requests import EXPLAINED, METRICS, declared_subgroups

OF_MANY = ["accuracy", "neg_log_loss"]
both = pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)


def fitted(kind, rng):
    """A model that is given, and rows to score it on."""
    X, y = data_for(kind, rng)
    other, labels = data_for(kind, rng)
    plain = LinearRegression if kind == "linear" else LogisticRegression
    return plain().fit(other, labels), X, y


class Signless(PrivateScorer):
    """Deviances are of positive targets: hostile ones lose their sign."""

    def fit(self, X, y, sample_weight=None, **beside):
        if {"mean_gamma_deviance", "d2_tweedie"} & set(np.atleast_1d(self.metrics)):
            y = np.maximum(np.abs(y), 5e-324)
        return super().fit(X, y, sample_weight, **beside)


class WithNullRecords(Signless):
    """Rows have no weights: a weight of 0 stands for a null record, any other weight for a row."""

    def fit(self, X, y, sample_weight=None, **beside):
        return super().fit(
            X, y, None if sample_weight is None else np.sign(sample_weight), **beside
        )

    def _facts_of(self, data, *start):
        return super()._facts_of(replace(data, weighted=False), *start)


def scorer(model, metrics, adjacency, of=WithNullRecords, **options):
    return lambda: of(
        model,
        metrics,
        epsilon=3.0,
        privacy=Privacy(adjacency=str(adjacency), noise=SeededNoise(0)),
        **options,
    )


def check(replay, kind, metrics, adjacency, rng, **options):
    model, X, y = fitted(kind, rng)
    make = scorer(model, metrics, adjacency, **options)
    replay.check_each(make, neighbours(kind, X, y, adjacency), adjacency)


@both
@pytest.mark.parametrize(
    "metrics",
    [list(METRICS["classifier"]), ["accuracy"], ["roc_auc"], ["recall"]],
    ids=["all", "accuracy", "roc_auc", "recall"],
)
def test_two_classes(replay, rng, adjacency, metrics):
    check(replay, "logistic", metrics, adjacency, rng)


@both
def test_several_classes(replay, rng, adjacency):
    check(replay, "multinomial", OF_MANY, adjacency, rng)


@both
@pytest.mark.parametrize("metrics", [list(METRICS["regressor"]), ["r2"]], ids=["all", "r2"])
def test_regressors(replay, rng, adjacency, metrics):
    check(replay, "linear", metrics, adjacency, rng, target_range=(0.0, 8.0))


@both
@pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups"])
@pytest.mark.parametrize(
    ("kind", "metrics", "options"),
    [
        ("logistic", list(METRICS["classifier"]), {}),
        ("multinomial", OF_MANY, {}),
        ("linear", list(METRICS["regressor"]), {"target_range": (0.0, 8.0)}),
    ],
    ids=["two classes", "several classes", "regressors"],
)
@pytest.mark.parametrize("max_weight", [None, 2.0])
def test_weights(replay, rng, adjacency, grouped, kind, metrics, options, max_weight):
    """Hostile rows have weights of 1 and of 1e6, null records of 0."""

    def of(*given, privacy, **others):
        return Signless(*given, privacy=privacy.set_params(max_weight=max_weight), **others)

    checked = check_groups if grouped else check
    checked(replay, kind, metrics, adjacency, rng, of=of, **options)


@pytest.mark.parametrize("metrics", ["accuracy", "neg_log_loss", "recall"])
def test_weights_without_a_bound_are_caught(replay, leak, rng, monkeypatch, metrics):
    monkeypatch.setattr(Weights, "apply", lambda self, weights, targets: weights)
    for sums in (record_sums, histograms):
        monkeypatch.setattr(sums.np, "clip", lambda values, low, high: values)
    with pytest.raises(leak):
        check(replay, "logistic", metrics, Adjacency.ZERO_OUT, rng, of=PrivateScorer)


@both
@pytest.mark.parametrize("power", [1, 1.5, 2])
def test_d2(replay, rng, adjacency, power):
    model, X, y = fitted("linear", rng)
    model.power = power
    make = scorer(model, "d2_tweedie", adjacency, target_range=(0.0, 8.0))
    replay.check_each(make, neighbours("linear", X, y, adjacency), adjacency)


def check_groups(replay, kind, metrics, adjacency, rng, change=lambda model: model, **options):
    model, _, _ = fitted(kind, rng)
    make = scorer(change(model), metrics, adjacency, **options)
    data = grouped_data(kind, rng)
    replay.check_each(make, group_neighbours(kind, data, adjacency, rng, (1, 2, 9, 40)), adjacency)


@both
@pytest.mark.parametrize(
    ("kind", "metrics", "options"),
    [
        ("logistic", list(METRICS["classifier"]), {}),
        ("logistic", ["accuracy"], {}),
        ("multinomial", OF_MANY, {}),
        ("linear", list(METRICS["regressor"]), {"target_range": (0.0, 8.0)}),
    ],
    ids=["two classes", "accuracy", "several classes", "regressors"],
)
def test_groups(replay, rng, adjacency, kind, metrics, options):
    check_groups(replay, kind, metrics, adjacency, rng, **options)


# One that rows may have, one that hostile records have, and one for all others.
SUBGROUPS = {
    "some": declared_subgroups(1, True, {"zero": 0, "two": [1.0, 1e5], "others": None}),
    "none may be left": declared_subgroups(1, True, [0.0, 2.0]),
    "labels": declared_subgroups(None, True, [0, 1, -1e5]),
}


class WithLabels(WithNullRecords):
    """Labels of subgroups come with the rows, not in them."""

    def fit(self, X, y, sample_weight=None, *, groups=None):
        by = X[:, 1] if self.subgroups.column is None else None
        return super().fit(X, y, sample_weight, groups=groups, by=by)


def check_subgroups(replay, kind, metrics, adjacency, rng, declared, grouped, **options):
    """Records of the neighbours are in one subgroup, in another, or in several with their rows."""
    model, X, y = fitted(kind, rng)
    labels = np.arange(len(X)) % 3
    X[:, 1] = labels

    def make():
        privacy = Privacy(adjacency=str(adjacency), noise=SeededNoise(0))
        return WithLabels(
            model, metrics, epsilon=3.0, privacy=privacy, subgroups=declared, **options
        )

    if grouped:
        data = grouped_data(kind, rng)
        data[0][:, 1] = labels
        pairs = group_neighbours(kind, data, adjacency, rng, (2, 9))
    else:
        pairs = neighbours(kind, X, y, adjacency)
    replay.check_each(make, pairs, adjacency)


@both
@pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups"])
@pytest.mark.parametrize(
    ("kind", "metrics", "declared", "options"),
    [
        ("logistic", list(METRICS["classifier"]), "some", {}),
        ("multinomial", OF_MANY, "none may be left", {}),
        ("logistic", ["accuracy"], "labels", {}),
        (
            "linear",
            [name for name in METRICS["regressor"] if name not in EXPLAINED],
            "some",
            {"target_range": (0.0, 8.0)},
        ),
    ],
    ids=["two classes", "several classes", "accuracy", "regressors"],
)
def test_subgroups(replay, rng, adjacency, grouped, kind, metrics, declared, options):
    declared = SUBGROUPS[declared]
    check_subgroups(replay, kind, metrics, adjacency, rng, declared, grouped, **options)


class Placed(ClassifierMixin, BaseEstimator):
    """What it says of a row depends on the row's place, and on the number of rows, at a tie.

    As a product of matrices may, in the last bit.
    """

    def __init__(self):
        self.classes_ = np.array([0, 1])

    def predict(self, X):
        return ((np.arange(len(X)) + len(X)) % 3 == 0).astype(int)


@both
def test_places_of_rows_have_no_say_where_there_are_groups(replay, rng, adjacency):
    check_groups(replay, "logistic", "accuracy", adjacency, rng, lambda model: Placed())


class Talking(ClassifierMixin, BaseEstimator):
    """A given model that warns and prints about what it predicts."""

    def __init__(self):
        self.classes_ = np.array([0, 1])

    def predict(self, X):
        if np.abs(X).max() > 1000:
            warnings.warn("there are outliers", UserWarning, stacklevel=2)
        np.log(np.array([X.min()]))
        return (X[:, 0] > 0).astype(int)


@both
def test_what_a_model_warns_of_does_not_show(replay, rng, adjacency):
    X, y = data_for("logistic", rng)
    make = scorer(Talking(), "accuracy", adjacency)
    replay.check_each(make, neighbours("logistic", X, y, adjacency), adjacency)
