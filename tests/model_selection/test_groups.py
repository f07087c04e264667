"""Searches and cross-validations of fits that protect groups of rows: folds by group."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
)
from sklearn.pipeline import make_pipeline

import skdp
from skdp.preprocessing import DPStandardScaler

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
N_GROUPS, FOLDS = 60, GroupKFold(4, shuffle=True, random_state=0)


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def panel(rng):
    X = rng.standard_normal((500, 3))
    groups = rng.permutation(np.append(np.arange(N_GROUPS), rng.integers(0, 20, 440)))
    return X, X @ [1.0, -1.0, 0.0], groups


def ridge(**parameters):
    return skdp.DPRidge(scaling="none", **parameters).set_fit_request(groups=True)


def price_of(cv, **shape):
    search = GridSearchCV(ridge(), {"alpha": [1.0, 10.0]}, cv=cv)
    return skdp.privacy_of(search, n_features=3, **shape)


@pytest.mark.parametrize("in_a_pipeline", [False, True])
def test_a_search_routes_groups_to_fits_and_folds(panel, in_a_pipeline):
    """A group is in 3 of 4 trainings of both candidates, of 45 groups each, and in the refit."""
    X, y, groups = panel
    scaler = DPStandardScaler(scaling=skdp.PublicRange(-3, 3)).set_fit_request(groups=True)
    model = make_pipeline(scaler, ridge()) if in_a_pipeline else ridge()
    name = "dpridge__alpha" if in_a_pipeline else "alpha"
    search = GridSearchCV(model, {name: [1.0, 10.0]}, cv=FOLDS)
    price = skdp.privacy_of(search, n_groups=N_GROUPS, n_features=3)
    assert price.unit == "group"
    best = search.fit(X, y, groups=groups).best_estimator_
    fits = [step for _, step in best.steps] if in_a_pipeline else [best]
    assert {(fit.privacy_.unit, fit.privacy_.n_groups) for fit in fits} == {("group", N_GROUPS)}
    trained = [ridge().plan(None, 3, n_groups=45)] * 6
    whole = [ridge().plan(None, 3, n_groups=N_GROUPS)]
    if in_a_pipeline:
        trained += [scaler.plan(None, 3, n_groups=45)] * 6
        whole += [scaler.plan(None, 3, n_groups=N_GROUPS)]
    expected = skdp.total_privacy(*trained, *whole, delta=1e-6)
    assert price.epsilon == pytest.approx(expected.epsilon, rel=1e-9)


@pytest.mark.parametrize("cv", [GroupKFold(4), KFold(4)], ids=["by sizes", "of rows"])
def test_folds_that_follow_from_rows_are_refused(cv):
    with pytest.raises(ValueError, match="number of groups"):
        price_of(cv, n_groups=N_GROUPS)
