"""Support vector classification: solutions, accuracy, one class against the rest."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import LinearSVC

import skdp

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
