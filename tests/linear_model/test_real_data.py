"""Accuracy of the default settings on real data sets that do not come with the project."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdp

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
RUNS = 5


def shared(name):
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} does not come with the project")
    return path


@pytest.fixture(scope="module")
def adult():
    frame = pd.read_csv(shared("adult.csv.gz"), keep_default_na=False)
    is_train = (frame.pop("split") == "train").to_numpy()
    y = frame.pop("income").str.contains(">50K").to_numpy().astype(int)
    X = pd.get_dummies(frame.drop(columns="fnlwgt"), dtype=float).to_numpy()
    scaler = StandardScaler().fit(X[is_train])
    return scaler.transform(X[is_train]), scaler.transform(X[~is_train]), y[is_train], y[~is_train]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "least", "most_loss"), [(1.0, 0.845, 0.345), (0.1, 0.835, 0.4)]
)
def test_adult(adult, epsilon, least, most_loss):
    X_train, X_test, y_train, y_test = adult
    scores, losses = [], []
    for seed in range(RUNS):
        model = skdp.DPLogisticRegression(
            classes=np.unique(y_test),
            epsilon=epsilon,
            privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
        ).fit(X_train, y_train)
        scores.append(model.score(X_test, y_test))
        losses.append(log_loss(y_test, model.predict_proba(X_test)))
    assert np.mean(scores) >= least
    assert np.mean(losses) <= most_loss


def test_california_housing():
    with np.load(shared("california_housing.npz"), allow_pickle=False) as data:
        X, y = data["X"].astype(float), data["y"].astype(float)
    scores = []
    for seed in range(2 * RUNS):
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
        model = make_pipeline(
            StandardScaler(),
            skdp.DPLinearRegression(privacy=skdp.Privacy(noise=skdp.SeededNoise(seed))),
        )
        scores.append(model.fit(X_train, y_train).score(X_test, y_test))
    assert np.mean(scores) >= 0.60
