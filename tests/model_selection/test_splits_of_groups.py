"""Splits, scores, searches and analyses whose unit is a group: each group is on one side."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp
from composition import DELTA, together
from skdp._fitting import parts
from skdp.metrics import evaluate
from skdp.metrics.evaluation import PrivateScorer
from skdp.model_selection import (
    DPHoldout,
    DPSearchCV,
    candidates,
    dp_cross_validate,
    dp_train_test_split,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
N_GROUPS = 80


def ridge(**parameters):
    return skdp.DPRidge(**{"scaling": skdp.RowNorm(4.0, target=5.0), "max_iter": 4, **parameters})


def nested():
    """A pipeline whose two private fits lie at different depths."""
    scaler = skdp.DPStandardScaler(scaling=skdp.PublicRange(-3, 3))
    return make_pipeline(FunctionTransformer(), make_pipeline(scaler, ridge()))


@pytest.fixture
def panel(rng):
    """Rows of 80 groups, 1 to 40 each, in no order; the last column is the number of the group."""
    groups = rng.permutation(np.append(np.arange(N_GROUPS), rng.integers(0, 20, 420)))
    X = np.column_stack([rng.standard_normal((500, 3)), groups / N_GROUPS])
    return X, X[:, :3] @ [1.0, -1.0, 0.0], np.array([f"p{group:02d}" for group in groups])


def total(*models):
    return skdp.total_privacy(*models, delta=DELTA)


def test_a_group_is_on_one_side_and_pays_the_maximum(panel):
    X, y, groups = panel
    for given in (groups, list(groups), pd.Series(groups)):
        found = dp_train_test_split(X, y, groups=given, test_size=20)
        X_train, X_test, y_train, y_test, train, test = found
        assert (len(set(train)), len(set(test))) == (60, 20)
        assert set(train).isdisjoint(test)
        assert len(X_train) == len(y_train) == len(train)
    with skdp.PrivacyBudget(1.0, DELTA) as budget:
        model = ridge().fit(X_train, y_train, groups=train)
        scores = evaluate(model, X_test, y_test, "r2", groups=test)
        assert budget.spent == pytest.approx(1.0, rel=1e-6)
    whole = total(model, scores.privacy_)
    assert (whole.epsilon, whole.unit) == (pytest.approx(1.0, rel=1e-6), "group")
    assert scores.privacy_.n_groups == 20
    assert "These groups are part 2 of 2" in str(scores.privacy_.assumptions)


def test_parts_count_for_their_own_unit_and_labels(panel):
    """What is fitted with other labels, or none, or on rows of both sides, is on all rows."""
    X, y, groups = panel
    X_train, X_test, y_train, y_test, train, test = dp_train_test_split(X, y, groups=groups)
    assert set(train).isdisjoint(test)
    model = ridge().fit(X_train, y_train, groups=train)
    doubled = pytest.approx(together(1, 1), rel=1e-6)
    assert total(model, ridge().fit(X_test, y_test, groups=test)).epsilon == pytest.approx(1.0)
    assert total(model, ridge().fit(X_test, y_test, groups=test.copy())).epsilon == doubled
    assert total(model, ridge().fit(X_train, y_train, groups=train)).epsilon == doubled
    rows = [ridge().fit(*side) for side in ((X_train, y_train), (X_test, y_test))]
    assert total(*rows).epsilon == doubled
    with pytest.raises(ValueError, match="single rows and some protect groups"):
        total(model, rows[1])
    part = parts.part_of(X_train, y_train, train, unit="group")
    with parts.fits_on_part(part, "group"):
        assert parts.part_of(X_train * 2, unit="group") == part
        assert parts.part_of(X_train * 2) == ()


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("make", [ridge, nested])
def test_holdouts_hand_labels_to_every_private_fit(panel, make, routing):
    X, y, groups = panel
    with sklearn.config_context(enable_metadata_routing=routing):
        halves = DPHoldout(X, y, groups=groups, test_size=0.5)
        model = halves.fit(make())
        scores = halves.evaluate(model, "r2", target_range=(-5, 5))
    fits = [model] if make is ridge else candidates.private_fits(model)
    assert [fit.privacy_.unit for fit in fits] == ["group"] * len(fits)
    assert total(model, scores.privacy_).epsilon == pytest.approx(1.0, rel=1e-6)
    assert repr(halves) == "<DPHoldout: 40 groups to fit on, 40 to score on>"


class OfRows(skdp.DPStandardScaler):
    """A step that protects rows alone."""

    def fit(self, X, y=None):
        return super().fit(X)


def test_what_takes_no_groups_is_refused(panel):
    X, y, groups = panel
    model = make_pipeline(OfRows(), ridge())
    budget = skdp.PrivacyBudget(9.0, DELTA)
    calls = {
        "DPHoldout": lambda: DPHoldout(X, y, groups=groups).fit(model),
        "DPSearchCV": lambda: DPSearchCV(
            model,
            {"dpridge__alpha": [1.0]},
            privacy=skdp.Privacy(budget=budget),
            target_range=(-5, 5),
        ).fit(X, y, groups=groups),
        "dp_cross_validate": lambda: dp_cross_validate(
            model, X, y, groups=groups, privacy=skdp.Privacy(budget=budget), target_range=(-5, 5)
        ),
    }
    for who, call in calls.items():
        with pytest.raises(ValueError, match=f"{who}: OfRows does not accept groups"):
            call()
    assert budget.n_fits == 0


def test_a_search_that_may_keep_labels_from_its_fits_is_refused(panel):
    """Without metadata routing its fits would get none, and protect rows."""
    X, y, groups = panel
    model = GridSearchCV(ridge(), {"alpha": [1.0, 2.0]}, cv=GroupKFold(2, shuffle=True))
    with pytest.raises(ValueError, match="DPHoldout: GridSearchCV is not known to fit"):
        DPHoldout(X, y, groups=groups).fit(model)


def test_a_search_is_priced_and_charged_for_groups(panel):
    X, y, groups = panel
    model = DPSearchCV(nested(), {"pipeline__dpridge__alpha": [0.1, 1.0]}, epsilon=2.0)
    with skdp.PrivacyBudget(2.0, DELTA) as budget:
        found = model.fit(X, y, groups=groups)
        assert budget.n_fits == 1
        assert budget.statement.unit == "group"
    assert found.privacy_ == found.plan(None, n_groups=N_GROUPS)
    assert (found.privacy_.unit, found.privacy_.n_groups) == ("group", N_GROUPS)
    assert found.privacy_.n_rows is None
    assert found.privacy_.epsilon == pytest.approx(found.plan(N_GROUPS).epsilon)
    with pytest.raises(ValueError, match="single rows and some protect groups"):
        total(found, ridge().fit(X, y))


def check_sides(monkeypatch, run):
    """No group is fitted on and scored in one run; all fits and scores protect groups."""
    X_of = {"fit": [], "score": []}
    fit, score = skdp.DPRidge._fit, PrivateScorer.fit

    def fitted(self, rows, *start):
        X_of["fit"].append((rows.X, rows.groups and rows.groups.codes))
        return fit(self, rows, *start)

    def scored(self, X, y, sample_weight=None, *, groups=None):
        X_of["score"].append((X, groups))
        return score(self, X, y, sample_weight, groups=groups)

    with monkeypatch.context() as patch:
        patch.setattr(skdp.DPRidge, "_fit", fitted)
        patch.setattr(PrivateScorer, "fit", scored)
        found = run()
    assert len(X_of["fit"]) == len(X_of["score"]) >= 2
    for (one, labels), (other, others) in zip(X_of["fit"], X_of["score"], strict=True):
        assert labels is not None, "rows were fitted"
        assert others is not None, "rows were scored"
        assert set(one[:, 3]).isdisjoint(other[:, 3]), "a group is on both sides"
        assert len(set(one[:, 3])) == len(set(labels))
    return found


def seeded_search(panel):
    model = DPSearchCV(
        ridge(),
        {"alpha": [0.1, 1.0]},
        n_candidates=8,
        privacy=skdp.Privacy(noise=skdp.SeededNoise(1)),
    )
    return lambda: model.fit(*panel[:2], groups=panel[2])


def folds(panel):
    X, y, groups = panel
    return lambda: dp_cross_validate(ridge(), X, y, "r2", cv=4, groups=groups)


BOTH = pytest.mark.parametrize("run", [seeded_search, folds])


@BOTH
def test_groups_are_on_one_side_of_every_run(panel, monkeypatch, run):
    found = check_sides(monkeypatch, run(panel))
    assert (found.privacy_.unit, found.privacy_.n_groups) == ("group", N_GROUPS)
    assert "500" not in str(found.privacy_), "the number of rows is private"


def test_budgets_and_totals_are_for_one_unit(panel):
    """A fit of rows came first: no score, search or cross-validation of groups is charged to it."""
    X, y, groups = panel
    budget = skdp.PrivacyBudget(9.0, DELTA)
    charged = skdp.Privacy(budget=budget)
    model = ridge(privacy=charged).fit(X, y)
    search = DPSearchCV(ridge(), {"alpha": [1.0]}, privacy=charged)
    calls = [
        lambda: evaluate(model, X, y, groups=groups, privacy=charged),
        lambda: search.fit(X, y, groups=groups),
        lambda: dp_cross_validate(ridge(), X, y, "r2", groups=groups, privacy=charged),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"for each group.*nothing was charged"):
            call()
    assert budget.n_fits == 1
    found = dp_cross_validate(ridge(), X, y, "r2", groups=groups)
    scores = evaluate(model, X, y, groups=groups)
    assert total(found, scores.privacy_).unit == "group"
    assert total(found, scores.privacy_).epsilon == pytest.approx(together(1, 1), rel=1e-4)


def test_refusals_do_not_tell_the_number_of_rows(panel):
    X, y, groups = panel
    calls = [
        lambda: DPHoldout(X, y, groups=groups[:-1]),
        lambda: dp_cross_validate(ridge(), X, y[:-1], groups=groups),
        lambda: dp_cross_validate(ridge(), X[:, :, None], y, "r2", groups=groups),
        lambda: DPSearchCV(ridge(), {"alpha": [1.0]}).fit(X, y[:-1], groups=groups),
        lambda: evaluate(ridge(epsilon=9.0).fit(X, y), X[:, :3], y, groups=groups),
        lambda: evaluate(ridge(epsilon=9.0).fit(X, y), X, y, groups=groups[:-1]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"Nothing was released|dim") as refusal:
            call()
        assert not any(number in str(refusal.value) for number in ("500", "499"))
