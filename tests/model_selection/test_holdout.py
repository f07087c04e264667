"""Splits in the accounting: disjoint parts cost the maximum, whatever else overlaps is added."""

from __future__ import annotations

import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import AdaBoostRegressor, BaggingRegressor, VotingRegressor
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

import skdp
from composition import DELTA, together
from skdp._fitting import parts
from skdp.metrics import evaluate
from skdp.model_selection import DPHoldout, DPSearchCV, dp_cross_validate, dp_train_test_split

FIT = partial(skdp.DPRidge, scaling=skdp.RowNorm(4.0, target=5.0), max_iter=3)


def score(model, X, y, epsilon=1.0):
    return evaluate(model, X, y, "r2", epsilon=epsilon)


def total(*models):
    return skdp.total_privacy(*models, delta=DELTA).epsilon


def test_a_fit_and_a_score_cost_the_maximum(regression):
    X_train, X_test, y_train, y_test = dp_train_test_split(*regression)
    with skdp.PrivacyBudget(1.0, DELTA) as budget:
        model = FIT().fit(X_train, y_train)
        scores = score(model, X_test, y_test)
        assert budget.spent == pytest.approx(1.0, rel=1e-6)
    assert total(model, scores.privacy_) == pytest.approx(1.0, rel=1e-6)
    assert "part of a random split, 2 of 2" in str(scores.privacy_)
    assert "do not add up" in str(budget.statement)


def test_every_other_overlap_is_added(regression):
    X, y = regression
    X_train, X_test, y_train, y_test = dp_train_test_split(X, y, test_size=0.5)
    model = FIT().fit(X_train, y_train)
    others = {
        "the same part": (X_train, y_train),
        "all rows": (X, y),
        "a copy": (X_test.copy(), y_test),
        "some of the rows": (X_test[:50], y_test[:50]),
        "mixed parts": (X_test, y_train),
        "another split": dp_train_test_split(X, y, test_size=0.5)[1::2],
    }
    for name, rows in others.items():
        assert total(model, FIT().fit(*rows)) == pytest.approx(together(1, 1), rel=1e-6), name
    assert total(model, FIT().fit(X_test, y_test)) == pytest.approx(1.0, rel=1e-6)


def test_weights_are_of_the_part_or_the_fit_is_not(regression):
    """Weights of the rows of the other part would let those have a say in this fit."""
    X, y = regression
    split = dp_train_test_split(X, y, np.linspace(0.5, 2.0, len(y)), test_size=0.5)
    X_train, X_test, y_train, y_test, own, others = split
    model = FIT().fit(X_test, y_test)
    for weights in (own, None, 2.0):
        found = FIT().fit(X_train, y_train, sample_weight=weights)
        assert total(model, found) == pytest.approx(1.0, rel=1e-6)
    for weights in (others, own.copy()):
        found = FIT().fit(X_train, y_train, sample_weight=weights)
        assert total(model, found) == pytest.approx(together(1, 1), rel=1e-6)


def test_more_than_the_part_around_is_all_of_the_rows(regression):
    """What is fitted inside of a part of a part may still reach for the whole of the outer one."""
    outer = DPHoldout(*regression)
    inner = DPHoldout(outer.X_train, outer.y_train)
    with parts.fits_on_part(inner._parts[0]):
        greedy = FIT().fit(outer.X_train, outer.y_train)
    with parts.fits_on_part(inner._parts[1]):
        other = FIT().fit(inner.X_test, inner.y_test)
    assert total(greedy, other) == pytest.approx(together(1, 1), rel=1e-6)
    assert total(inner.fit(FIT()), other) == pytest.approx(1.0, rel=1e-6)


def test_pipelines_of_a_holdout(regression):
    X, y = regression
    holdout = DPHoldout(X, y)
    model = make_pipeline(FunctionTransformer(np.tanh), FIT())
    fitted = holdout.fit(model)
    assert not hasattr(model[-1], "coef_")
    scores = holdout.evaluate(fitted, "r2", epsilon=1.0, target_range=(-5, 5))
    assert total(fitted, scores.privacy_) == pytest.approx(1.0, rel=1e-6)
    # Outside of it a pipeline makes arrays that nobody knows.
    model.fit(holdout.X_train, holdout.y_train)
    assert total(model, scores.privacy_) == pytest.approx(together(1, 1), rel=1e-6)
    scaler = holdout.fit(skdp.DPStandardScaler())
    assert total(scaler, scores.privacy_) == pytest.approx(1.0, rel=1e-6)
    with pytest.raises(TypeError, match="holds rows"):
        pickle.dumps(holdout)
    assert "300 rows to fit on, 100 to score on" in repr(holdout)


READS_ROWS = ColumnTransformer([("all", StandardScaler(), [0, 1])])
NOT_PRIVATE = {
    "a step": (make_pipeline(StandardScaler(), FIT()), "privacy.*: StandardScaler"),
    "a step of a step": (make_pipeline(READS_ROWS, FIT()), "privacy.*: StandardScaler"),
    "targets": (TransformedTargetRegressor(FIT(), transformer=StandardScaler()), "StandardScaler"),
    "a member": (VotingRegressor([("a", make_pipeline(PCA(1), FIT()))]), "privacy.*: PCA"),
    "a search": (GridSearchCV(FIT(), {}), "GridSearchCV is not known to fit"),
    "a transformer": (make_pipeline(SelectKBest(k=2), skdp.DPStandardScaler()), "SelectKBest"),
    "columns": (make_pipeline(ColumnTransformer([("a", OneHotEncoder(), [0])]), FIT()), "OneHot"),
    "errors": (AdaBoostRegressor(FIT()), "AdaBoostRegressor is not known to fit.* select rows"),
    "copies": (BaggingRegressor(FIT()), "BaggingRegressor is not known to fit.*repeat"),
    "the model": (LinearRegression(), "LinearRegression is not private"),
}


@pytest.mark.parametrize("case", NOT_PRIVATE)
def test_what_reads_rows_without_privacy_is_refused_before_the_fit(case, regression):
    model, said = NOT_PRIVATE[case]
    holdout = DPHoldout(*regression)
    with skdp.PrivacyBudget(9.0, DELTA) as budget:
        with pytest.raises(ValueError, match=f"DPHoldout: .*{said}.*Nothing was released"):
            holdout.fit(model)
        assert budget.n_fits == 0


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(PolynomialFeatures(2), FIT()),
        make_pipeline(ColumnTransformer([("all", skdp.DPStandardScaler(), [0, 1])]), FIT()),
        make_pipeline(FrozenEstimator(StandardScaler().fit(np.eye(4))), FIT()),
        VotingRegressor([("a", FIT()), ("b", FIT())]),
    ],
)
def test_private_models_and_steps_that_learn_nothing_are_fitted(model, regression):
    X, y = regression
    assert DPHoldout(X[:, :4], y).fit(model).predict(X[:3, :4]).shape == (3,)


def test_the_rows_are_split(rng):
    X, y = np.arange(101.0)[:, None] * [1.0, 2.0], np.arange(101)
    containers = (np.asarray, sparse.csr_array, pd.DataFrame, np.ndarray.tolist)
    for make, size in zip(containers, (0.25, 26, 0.5, 1), strict=True):
        found = dp_train_test_split(make(X), y, test_size=size)
        first, second = (
            part.toarray() if sparse.issparse(part) else np.asarray(part) for part in found[:2]
        )
        assert len(second) == {0.25: 26, 0.5: 51}.get(size, size)
        np.testing.assert_array_equal(first[:, 0], found[2])
        np.testing.assert_array_equal(second[:, 1], 2 * found[3])
        np.testing.assert_array_equal(np.sort(np.concatenate(found[2:])), y)
    one, other = (dp_train_test_split(y, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(one[0], other[0])
    drawn = np.array([dp_train_test_split(y)[1] for _ in range(300)])
    counts = np.bincount(drawn.ravel(), minlength=101)
    assert np.abs(counts - 300 * 26 / 101).max() < 60  # seven standard deviations


def test_rows_of_the_other_part_cannot_be_written_into_an_array(regression):
    for part in dp_train_test_split(*regression, list(regression[1])):
        with pytest.raises(ValueError, match="read-only"):
            part[:] = 0.0
    holdout = DPHoldout(*regression)
    with pytest.raises(ValueError, match="read-only"):
        holdout.X_test[:50] = holdout.X_train[:50]


@pytest.mark.parametrize("size", [0, 1.0, 101, -1, 0.0, "half", None, True, np.nan])
def test_sizes_that_are_refused(size):
    with pytest.raises(ValueError, match="test_size must be"):
        dp_train_test_split(np.zeros((101, 2)), test_size=size)


def test_other_refusals():
    with pytest.raises(ValueError, match="at least one array"):
        dp_train_test_split()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        dp_train_test_split(np.zeros((5, 2)), np.zeros(4))
    with pytest.raises(ValueError, match="at least one array"):
        dp_train_test_split(groups=np.arange(5))
    with pytest.raises(ValueError, match="array 1 and groups must have one entry for each row"):
        dp_train_test_split(np.zeros((5, 2)), groups=np.zeros(4))
    with pytest.raises(ValueError, match="number of groups from 1 to 1, got 3"):
        dp_train_test_split(np.zeros((5, 2)), groups=[0, 0, 1, 1, 1], test_size=3)


def test_parts(regression):
    """No row is in both parts, every row in one, and only these very arrays are known."""
    X, y = regression
    numbers = np.arange(len(y))
    first, second, n_first, n_second = dp_train_test_split(X, numbers)
    assert len(np.intersect1d(n_first, n_second)) == 0, "the parts overlap"
    assert len(n_first) + len(n_second) == len(y)
    model = FIT().fit(first, y[n_first])
    assert total(model, FIT().fit(second, y[n_second])) > 1.2, "y is of no part"


def test_a_second_use_of_a_part_warns_unless_a_budget_counts_it(rng):
    """Two models and two scores stated epsilon 1 each, and the better one was kept in silence."""
    X = rng.standard_normal((400, 2))
    holdout = DPHoldout(X, X[:, 0], random_state=0)

    def use_twice():
        models = [holdout.fit(skdp.DPRidge()) for _ in range(2)]
        return [holdout.evaluate(model, "r2", epsilon=1.0, delta=1e-6) for model in models]

    with pytest.warns(skdp.PrivacyWarning, match="prices add up") as found:
        use_twice()
    assert [str(one.message)[:48] for one in found] == [
        "DPHoldout.fit: 2 models were fitted on the first",
        "DPHoldout.evaluate: the second part was scored 2",
    ]
    with skdp.PrivacyBudget(9.0, 1e-6), warnings.catch_warnings():
        warnings.filterwarnings("error", category=skdp.PrivacyWarning)
        use_twice()


@pytest.mark.parametrize("name", ["X", "y", "sample_weight", "offset", "groups"])
def test_a_hold_out_scores_its_own_rows(regression, name):
    X, y = regression
    halves = DPHoldout(X, y)
    model = halves.fit(FIT())
    with (
        skdp.PrivacyBudget(1.0, DELTA) as budget,
        pytest.raises(TypeError, match=f"multiple values for keyword argument '{name}'"),
    ):
        halves.evaluate(model, **{name: X if name == "X" else y})
    assert budget.n_fits == 0


def test_an_offset_of_the_other_part_is_added(classification):
    """It holds rows of that part, as weights do."""
    X, y = classification[0][:400], classification[1][:400]
    split = dp_train_test_split(X, y, y * 1.0, test_size=0.5)
    A, B, y_A, y_B, o_A, o_B = split
    model = skdp.DPLogisticRegression(classes=np.unique(y).tolist())
    first = clone(model).fit(A, y_A)
    search = DPSearchCV(clone(model), {}, n_candidates=2)
    for offset, is_own in ((o_B, True), (o_A, False)):
        others = [
            clone(model).fit(B, y_B, offset=offset),
            clone(search).fit(B, y_B, offset=offset),
            evaluate(first, B, y_B, offset=offset).privacy_,
            dp_cross_validate(clone(model), B, y_B, offset=offset).privacy_,
        ]
        for other in others:
            spent = total(first, other)
            assert spent == pytest.approx(1.0, rel=1e-4) if is_own else spent > 1.3


def test_subgroups_of_the_other_part_are_refused(classification):
    X, y = classification[0][:400], classification[1][:400]
    A, B, y_A, y_B, by_A, by_B = dp_train_test_split(X, y, np.arange(400) % 2, test_size=0.5)
    model = skdp.DPLogisticRegression(classes=np.unique(y).tolist()).fit(A, y_A)
    scores = partial(evaluate, model, B, y_B, subgroups=[0, 1])
    assert total(model, scores(by=by_B).privacy_) == pytest.approx(1.0, rel=1e-4)
    with pytest.raises(ValueError, match="labels of other rows of a split than X"):
        scores(by=by_A)


def test_targets_that_no_score_takes_are_not_fitted(regression):
    X, y = regression
    halves = DPHoldout(X, y.astype(object))
    with skdp.PrivacyBudget(1.0, DELTA) as budget, pytest.raises(ValueError, match="of objects"):
        halves.fit(FIT())
    assert budget.n_fits == 0
