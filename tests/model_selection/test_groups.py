"""Searches and cross-validations of fits that protect groups of rows: folds by group."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeavePGroupsOut,
)
from sklearn.pipeline import make_pipeline

import skdp
from skdp.model_selection.memberships import memberships_of
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


def search_over(model, panel, cv=FOLDS, name="alpha", **options):
    X, y, groups = panel
    return GridSearchCV(model, {name: [1.0, 10.0]}, cv=cv, **options).fit(X, y, groups=groups)


def test_a_search_routes_groups_to_fits_and_folds(panel):
    search = search_over(ridge(), panel)
    statement = search.best_estimator_.privacy_
    assert (statement.unit, statement.n_groups) == ("group", N_GROUPS)
    price = skdp.privacy_of(search)
    assert price.unit == "group"
    # A group is in 3 of 4 trainings of both candidates, of 45 groups each, and in the refit.
    trained = ridge().plan(None, 3, n_groups=45)
    whole = ridge().plan(None, 3, n_groups=N_GROUPS)
    expected = skdp.total_privacy(*[trained] * 6, whole, delta=1e-6)
    assert price.epsilon == pytest.approx(expected.epsilon, rel=1e-9)


def test_a_pipeline_in_a_search(panel):
    scaler = DPStandardScaler(scaling=skdp.PublicRange(-3, 3)).set_fit_request(groups=True)
    search = search_over(make_pipeline(scaler, ridge()), panel, name="dpridge__alpha")
    assert [step.privacy_.unit for _, step in search.best_estimator_.steps] == ["group", "group"]
    assert skdp.privacy_of(search).unit == "group"


def test_without_a_refit_the_number_of_groups_is_asked_for(panel):
    search = search_over(ridge(), panel, refit=False)
    shape = {"n_features": 3, "n_outputs": 1}
    assert skdp.privacy_of(search, n_groups=N_GROUPS, **shape).unit == "group"
    with pytest.raises(ValueError, match="n_groups=59 was passed"):
        skdp.privacy_of(search_over(ridge(), panel), n_groups=59)


def test_groups_that_reached_no_fit_are_noticed(panel):
    search = search_over(skdp.DPRidge(scaling="none").set_fit_request(groups=False), panel)
    with pytest.raises(ValueError, match="protects single rows"):
        skdp.privacy_of(search, n_groups=N_GROUPS)


@pytest.mark.parametrize(
    "cv",
    [
        FOLDS,
        LeaveOneGroupOut(),
        LeavePGroupsOut(2),
        GroupShuffleSplit(3, random_state=1),
        GroupShuffleSplit(3, train_size=5, random_state=1),
        GroupShuffleSplit(3, test_size=0.4, train_size=0.3, random_state=2),
    ],
    ids=str,
)
def test_splits_that_follow_from_the_number_of_groups(rng, cv):
    """As counted by the splits themselves, on groups of any numbers of rows."""
    groups = np.append(np.arange(9), rng.integers(0, 9, 40))
    trains = [train for train, _ in cv.split(np.zeros((49, 1)), None, groups)]
    expected = {
        tuple(sorted(len(set(groups[train])) for train in trains if group in groups[train]))
        for group in range(9)
    }
    found = memberships_of(cv, 9, "group")
    counted = {tuple(sorted(membership.elements())) for membership in found}
    assert counted <= expected
    assert max(map(sum, counted)) == max(map(sum, expected))


def test_a_search_that_leaves_each_group_out(panel):
    X, y, groups = panel
    few = groups < 8
    search = search_over(ridge(), (X[few], y[few], groups[few]), LeaveOneGroupOut())
    trained, whole = (ridge().plan(None, 3, n_groups=n) for n in (7, 8))
    expected = skdp.total_privacy(*[trained] * 14, whole, delta=1e-6)
    assert skdp.privacy_of(search).epsilon == pytest.approx(expected.epsilon, rel=1e-9)


def test_a_shuffle_that_nobody_can_repeat_counts_every_training():
    found = memberships_of(GroupShuffleSplit(3), 10, "group")
    assert [list(membership.elements()) for membership in found] == [[8, 8, 8]]


@pytest.mark.parametrize("cv", [GroupKFold(4), KFold(4)], ids=["by sizes", "of rows"])
def test_folds_that_follow_from_rows_are_refused(panel, cv):
    search = search_over(ridge(), panel, cv)
    for splits in (None, list(cv.split(*panel))):
        with pytest.raises(ValueError, match="number of groups"):
            skdp.privacy_of(search, splits=splits)
