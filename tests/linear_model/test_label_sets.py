"""A set of labels that comes from the rows is warned about, one that is declared is not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import skdp
from skdp.model_selection import DPSearchCV, dp_cross_validate

X = np.random.default_rng(6).standard_normal((300, 3))
Y = (X[:, 0] > 0).astype(int)
SEARCHED = {"param_grid": {"C": [0.1, 1.0]}, "n_candidates": 2, "epsilon": 9.0}


def search(model):
    return DPSearchCV(model, **SEARCHED).fit(X, Y)


FITS = {
    "memory": lambda model: model.fit(X, Y),
    "partitions": lambda model: model.fit(skdp.data.Chunks(X, Y)),
    "search": search,
    "search in a pipeline": lambda model: DPSearchCV(
        make_pipeline(model), {"dplogisticregression__C": [0.1]}, n_candidates=2, epsilon=9.0
    ).fit(X, Y),
    "cross-validation": lambda model: dp_cross_validate(model, X, Y, epsilon=9.0),
}


@pytest.mark.parametrize("name", FITS)
def test_labels_from_rows_are_warned_about_once(name):
    with pytest.warns(skdp.PrivacyWarning, match=r"classes=None.*by classes=\[...\]") as caught:
        FITS[name](skdp.DPLogisticRegression())
    (private,) = [one for one in caught if issubclass(one.category, skdp.PrivacyWarning)]
    assert private.filename == __file__  # the line that asked for the fit


@pytest.mark.parametrize("name", FITS)
def test_declared_labels_are_not(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", skdp.PrivacyWarning)
        FITS[name](skdp.DPLogisticRegression(classes=[0, 1]))
        FITS[name](skdp.DPLogisticRegression(classes=[0, 1, 2]))  # no record has one of them
        skdp.DPLogisticRegression().plan(300, 3)


def test_an_error_made_of_the_warning_costs_nothing(asked):
    budget = skdp.PrivacyBudget(3.0, 1e-6)
    with pytest.raises(skdp.PrivacyWarning):
        skdp.DPLogisticRegression(privacy=skdp.Privacy(budget=budget)).fit(X, Y)
    assert (budget.n_fits, asked) == (0, [])
