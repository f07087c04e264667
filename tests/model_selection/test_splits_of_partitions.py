"""Random splits of rows in partitions: by places alone, whole groups, the maximum's price."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skdp
from in_partitions import Held
from skdp.metrics import evaluate
from skdp.model_selection import (
    DPHoldout,
    DPSearchCV,
    dp_cross_validate,
    dp_train_test_split,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((900, 2))
Y = X @ [1.0, -2.0] + RNG.standard_normal(900)
PEOPLE = np.repeat([f"p{one:03}" for one in range(300)], 3)
LABELS = np.array(["n", "p"])[(Y > 0).astype(int)]
RIDGE = skdp.DPRidge(solver="gd", max_iter=2, scaling=skdp.RowNorm(3.0, target=10.0))


def rows_in(partitions):
    """Return the numbers of the rows, which the last column holds."""

    def last(X, y, **beside):
        return X[:, -1]

    return np.concatenate(list(partitions.run(last))).astype(int)


def numbered(rows):
    return np.column_stack([rows, np.arange(len(rows))])


def test_parts_follow_from_places_alone():
    """Parts are disjoint and complete; other rows, or one that is gone, move none."""
    seen = []
    for rows in (X, -X[::-1], np.where(np.arange(900)[:, None] == 17, 1e9, X)):
        train, test = dp_train_test_split(Held(numbered(rows), Y), random_state=3)
        seen.append((rows_in(train), rows_in(test)))
        assert len(seen[-1][1]) == 225
        np.testing.assert_array_equal(np.sort(np.concatenate(seen[-1])), np.arange(900))
    for other in seen[1:]:
        for one, two in zip(seen[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
    in_memory = dp_train_test_split(numbered(X), random_state=3)
    for one, two in zip(in_memory, seen[0], strict=True):
        np.testing.assert_array_equal(one[:, -1], two)


def test_groups_are_in_one_part_with_all_of_their_rows():
    names = ("X", "y", "groups")
    train, test = dp_train_test_split(Held(numbered(X), Y, PEOPLE, names=names), test_size=100)
    here, there = (set(PEOPLE[rows_in(part)]) for part in (train, test))
    assert not here & there
    assert (len(here), len(there)) == (200, 100)


def test_groups_without_an_order_are_refused():
    """Each pass could number them in another way, and so put them into another part."""
    people = np.empty(900, dtype=object)
    people[:] = [frozenset([-1]), frozenset([-2]), frozenset("p")] * 300
    held = Held(X, Y, people, names=("X", "y", "groups"), sizes=(900,))
    for use in (dp_train_test_split, RIDGE.fit):
        with pytest.raises(ValueError, match=r"labels of one kind.*Nothing was released"):
            use(held)


def test_partitions_that_do_not_know_their_places_are_split_alike():
    train, test = dp_train_test_split(Held(numbered(X), Y, numbered=False), random_state=0)
    one, other = rows_in(train), rows_in(test)
    np.testing.assert_array_equal(np.sort(np.concatenate([one, other])), np.arange(900))
    np.testing.assert_array_equal(other[other < 150], other[other >= 750] - 750)
    assert 150 < len(other) < 300


def test_folds_of_partitions_that_do_not_know_their_places_are_refused_before_the_charge():
    """A fold might have any number of rows, or none, for which its sum was not charged."""
    with skdp.PrivacyBudget(1.0, 1e-6) as budget:
        for use in (
            DPSearchCV(RIDGE, {}).fit,
            lambda rows: dp_cross_validate(RIDGE, rows),
        ):
            with pytest.raises(ValueError, match=r"pass their index.*Nothing was released"):
                use(Held(X, Y, numbered=False))
        assert budget.n_fits == 0


def test_parts_cost_the_maximum():
    with skdp.PrivacyBudget(1.0, 1e-6) as budget:
        train, test = dp_train_test_split(Held(X, Y))
        evaluate(RIDGE.fit(train), test)
        assert budget.n_fits == 2
        # All rows again, or a part once more, are more than is left.
        for rows in (Held(X, Y), train):
            with pytest.raises(skdp.PrivacyBudgetError):
                RIDGE.fit(rows)


def test_a_pipeline_is_fitted_to_the_first_part():
    holdout = DPHoldout(Held(X, Y))
    model = holdout.fit(make_pipeline(skdp.DPStandardScaler(epsilon=0.5), RIDGE))
    scores = holdout.evaluate(model, epsilon=1.5)
    whole = skdp.total_privacy(model, scores.privacy_, delta=1e-6)
    assert whole.epsilon <= 1.5 + 1e-9


def test_labels_are_read_where_the_rows_are():
    model = skdp.DPLogisticRegression(solver="gd", max_iter=2, scaling=skdp.RowNorm(3.0))
    with pytest.warns(skdp.PrivacyWarning, match="classes"):
        found = DPSearchCV(model, {"C": [0.1, 1.0]}, n_candidates=2).fit(Held(X, LABELS))
    assert found.classes_.tolist() == ["n", "p"]
    assert found.n_features_in_ == 2


@pytest.mark.parametrize(
    ("model", "rows", "match"),
    [
        (make_pipeline(StandardScaler(with_mean=False), RIDGE), (X, Y), "learn from rows"),
        (make_pipeline(FunctionTransformer(), RIDGE), (X, Y), "requires rows in memory"),
        (RIDGE, (X, np.where(Y > 3, np.nan, Y)), "y"),
        (RIDGE, (np.where(X > 3, np.nan, X), Y), "X"),
        (LinearRegression(), (X, Y), "an estimator of skdp"),
    ],
)
def test_refusals_come_before_the_charge(model, rows, match):
    with skdp.PrivacyBudget(1.0, 1e-6) as budget:
        for use in (
            lambda rows: dp_cross_validate(model, rows),
            lambda rows: DPSearchCV(model, {}).fit(rows),
        ):
            with pytest.raises(ValueError, match=rf"(?s){match}.*Nothing was released"):
                use(Held(*rows))
        assert budget.n_fits == 0


@pytest.mark.parametrize("is_numbered", [True, False])
def test_rows_that_change_after_the_split_are_refused(is_numbered):
    """One more row would move those behind it to other parts, which are charged the maximum."""
    held = Held(X, Y, numbered=is_numbered)
    train, test = dp_train_test_split(held)
    held._parts[0] |= {"X": np.append(X[:1], X[:300], 0), "y": np.append(Y[:1], Y[:300])}
    with skdp.PrivacyBudget(1.0, 1e-6) as budget:
        for part in (train, test):
            with pytest.raises(ValueError, match=r"when it was divided.*Nothing was released"):
                RIDGE.fit(part)
        assert budget.n_fits == 0


def test_what_partitions_bring_is_not_given_again():
    for use in (
        lambda: dp_train_test_split(Held(X, Y), Y),
        lambda: DPHoldout(Held(X, Y), Y),
        lambda: dp_cross_validate(RIDGE, Held(X, Y), groups=PEOPLE),
    ):
        with pytest.raises(ValueError, match=r"holds targets, weights.* and labels.*released"):
            use()


def test_a_search_is_scored_on_partitions_and_predicts_rows_in_memory():
    holdout = DPHoldout(Held(X, Y))
    search = holdout.fit(DPSearchCV(RIDGE, {"alpha": [0.1, 1.0]}, n_candidates=2))
    scores = holdout.evaluate(search)  # targets are cut to the range of the best model
    assert skdp.total_privacy(search, scores.privacy_, delta=1e-6).epsilon == pytest.approx(
        1.0, rel=1e-3
    )
    for method in (search.predict, search.score):
        with pytest.raises(ValueError, match=r"^DPRidge: .*Predict each partition"):
            method(Held(X, Y), *([Y] if method == search.score else []))
