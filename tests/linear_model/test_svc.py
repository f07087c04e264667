"""Support vector classification: solutions, accuracy, one class against the rest."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC

import skdp
from replays import seeded
from skdp.audit import replay

EXACT = pytest.mark.filterwarnings("ignore:.*adds no noise:skdp.PrivacyWarning")


def draws(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 10))
    return X, (X @ np.r_[1, -1, 0.5, np.zeros(7)] + rng.standard_normal(n_rows) > 0.5).astype(int)


@EXACT
def test_without_noise_the_labels_are_those_of_scikit_learn():
    X, y = draws(2000)
    plain = LinearSVC(C=0.1, loss="hinge", max_iter=20_000, intercept_scaling=100).fit(X, y)
    model = skdp.DPLinearSVC(C=0.1, classes=[0, 1], epsilon=np.inf).fit(X, y)
    assert np.mean(plain.predict(X) == model.predict(X)) > 0.99
    direction = plain.coef_[0] / np.linalg.norm(plain.coef_)
    assert direction @ model.coef_[0] / np.linalg.norm(model.coef_) > 0.998


def test_at_a_budget_it_is_as_accurate_as_without():
    X, y = draws(30_000)
    model = skdp.DPLinearSVC(classes=[0, 1], privacy=seeded(0)).fit(X[:20_000], y[:20_000])
    plain = LinearSVC(loss="hinge", C=0.01).fit(X[:20_000], y[:20_000])
    right = [np.mean(one.predict(X[20_000:]) == y[20_000:]) for one in (model, plain)]
    assert right[0] > right[1] - 0.01


def test_three_classes_are_each_against_the_rest():
    X, y = load_iris(return_X_y=True)
    model = skdp.DPLinearSVC(classes=[0, 1, 2], epsilon=5.0, privacy=seeded(0)).fit(X, y)
    assert model.decision_function(X).shape == (150, 3)
    assert np.mean(model.predict(X) == y) > 0.8
    counts = {part.kind: part.count for part in model.privacy_.releases}
    assert counts["gradient"] == model.n_iter_
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize(
    ("classes", "solver", "adjacency"),
    [
        ([0, 1], "gd", "zero_out"),
        ([0, 1, 2], "gd", "replace_one"),
        ([0, 1, 2], "whitened", "zero_out"),
    ],
)
def test_nothing_but_releases(classes, solver, adjacency):
    model = skdp.DPLinearSVC(classes=classes, solver=solver, scaling="none", max_iter=2)
    report = replay(model, adjacency=adjacency)
    assert report.ok, f"\n{report}"
