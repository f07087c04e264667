"""Warnings name the user's line, however a fit is reached, so that filters and readers find it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import skdp

X = np.random.default_rng(5).standard_normal((200, 3))
Y = X @ [1.0, -1.0, 0.5]
SEEDED = skdp.Privacy(noise=skdp.SeededNoise(0))
WARNED = {
    "seed": lambda: skdp.DPRidge(privacy=SEEDED).fit(X, Y),
    "seed of a scaler": lambda: skdp.DPStandardScaler(privacy=SEEDED).fit_transform(X),
    "no noise": lambda: skdp.DPRidge(epsilon=np.inf).fit(X, Y),
    "delta": lambda: skdp.DPHuberRegressor(delta=0.01).fit(X, Y),
    "delta in a pipeline": lambda: make_pipeline(skdp.DPRidge(delta=0.01)).fit(X, Y),
    "noise": lambda: skdp.DPRidge(epsilon=0.01).fit(X, Y),
    "noise of a plan": lambda: skdp.DPRidge(epsilon=0.01).plan(200, 3),
    "labels": lambda: skdp.DPLogisticRegression().fit(X, Y > 0),
    "blocks": lambda: skdp.DPRidge(constraint=skdp.objective.L2Ball(1.0)).fit_blocks(
        [(X, Y)], n_samples=200, n_features=3
    ),
    "score": lambda: skdp.DPRidge(epsilon=9.0).fit(X, Y).score(X, Y),
    "scores": lambda: cross_val_score(make_pipeline(skdp.DPRidge(epsilon=9.0)), X, Y, cv=2),
    "search": lambda: GridSearchCV(skdp.DPRidge(epsilon=9.0), {"alpha": [1.0]}, cv=2).fit(X, Y),
}


@pytest.mark.parametrize("name", WARNED)
def test_a_warning_points_to_the_line_of_the_user(name):
    with pytest.warns(UserWarning, match="DP") as caught:
        WARNED[name]()
    assert {one.filename for one in caught} == {__file__}
    assert {one.lineno for one in caught} == {WARNED[name].__code__.co_firstlineno}


@pytest.mark.parametrize(("action", "times"), [("default", 1), ("always", 3)])
def test_a_search_warns_once_of_what_is_wrong_with_all_of_its_fits(action, times):
    """Although scikit-learn changes filters for every fit, which makes Python forget."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        warnings.filterwarnings("ignore", message="as numpy has at import")
        warnings.simplefilter(action, skdp.SeededNoiseWarning)
        for _ in range(3):
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", category=DeprecationWarning)
            skdp.DPRidge(privacy=SEEDED).fit(X, Y)
    assert len(caught) == times
