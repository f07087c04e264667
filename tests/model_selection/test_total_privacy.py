"""The total of what private models inside other estimators cost, against what a budget counts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_selector,
)
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.feature_selection import RFE, SelectFromModel, SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression, RANSACRegressor
from sklearn.model_selection import (
    GridSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    TargetEncoder,
)

import skdp
from skdp._fitting.surroundings import learning_parts

DELTA = 1e-6


def logistic(**parameters):
    given = {"classes": [0, 1], "epsilon": 2.0, "scaling": "none", **parameters}
    return skdp.DPLogisticRegression(**given)


def ridge(**parameters):
    return skdp.DPRidge(epsilon=2.0, scaling="none", **parameters)


def scaler():
    return skdp.DPStandardScaler(epsilon=0.5)


COUNTED = {
    "pipeline": logistic,
    "nested pipeline": lambda: make_pipeline(FunctionTransformer(), logistic()),
    "one versus rest": lambda: OneVsRestClassifier(logistic()),
    "voting": lambda: VotingClassifier([("a", logistic()), ("b", LogisticRegression())]),
    "selection": lambda: make_pipeline(SelectFromModel(logistic()), LogisticRegression()),
    "transformed target": lambda: TransformedTargetRegressor(ridge()),
    "several targets": lambda: MultiOutputRegressor(ridge()),
    "union": lambda: make_pipeline(FeatureUnion([("a", scaler()), ("b", scaler())]), logistic()),
    "columns": lambda: make_pipeline(
        ColumnTransformer([("a", scaler(), [0, 1])], remainder="passthrough"), logistic()
    ),
}


def data_for(name, classification, regression):
    X, y = classification
    if name == "several targets":
        return X, np.column_stack([regression[1]] * 2)
    return X, y


NAMED = "ignore:total_privacy. Read rows without privacy:skdp.PrivacyWarning"


@pytest.mark.filterwarnings(NAMED)
@pytest.mark.parametrize("name", COUNTED)
def test_models_inside_other_estimators_are_counted(name, classification, regression):
    X, y = data_for(name, classification, regression)
    with skdp.PrivacyBudget(1000.0, DELTA) as budget:
        model = make_pipeline(scaler(), COUNTED[name]()).fit(X, y)
    total = skdp.total_privacy(model, delta=DELTA)
    assert budget.n_fits >= 2
    assert total.epsilon == pytest.approx(budget.spent, rel=1e-9)


REFUSED = {
    "stacking": lambda: StackingClassifier([("a", logistic())], cv=3),
    "search": lambda: make_pipeline(GridSearchCV(logistic(), {"C": [1.0, 2.0]}, cv=3)),
    "one versus one": lambda: OneVsOneClassifier(logistic()),
    "elimination": lambda: make_pipeline(RFE(logistic()), LogisticRegression()),
    "sequential": lambda: make_pipeline(
        SequentialFeatureSelector(logistic(), n_features_to_select=1, cv=2), LogisticRegression()
    ),
    "boosting": lambda: AdaBoostRegressor(ridge(), n_estimators=1),
    "consensus": lambda: RANSACRegressor(
        ridge(), min_samples=300, max_trials=1, residual_threshold=1e9
    ),
    "tuned threshold": lambda: TunedThresholdClassifierCV(logistic(), cv=3),
    "calibrated by folds": lambda: CalibratedClassifierCV(logistic(), ensemble=False, cv=3),
    "repeated rows": lambda: BaggingClassifier(make_pipeline(logistic()), n_estimators=1),
    "chain": lambda: ClassifierChain(logistic()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_estimators_that_keep_less_than_they_fitted_are_refused_by_name(name, classification):
    X, y = classification
    model = REFUSED[name]()
    if name == "chain":
        y = np.column_stack([y, 1 - y])
    inner = model.steps[0][1] if hasattr(model, "steps") else model
    pipeline = make_pipeline(scaler(), model).fit(X, y)
    for fitted in (pipeline, model):
        with pytest.raises(ValueError, match=type(inner).__name__):
            skdp.total_privacy(fitted, delta=DELTA)


class Homemade:
    """A classifier that is not one of scikit-learn's."""

    def fit(self, X, y):
        self.inner = {"models": np.array([logistic().fit(X, y)], dtype=object)}
        return self

    def predict(self, X):
        return self.inner["models"][0].predict(X)


def test_unknown_estimators_that_hold_private_models_are_refused(classification):
    model = make_pipeline(scaler(), Homemade()).fit(*classification)
    with pytest.raises(
        ValueError, match="Homemade is not known to fit each private model in it once"
    ):
        skdp.total_privacy(model, delta=DELTA)


@pytest.mark.parametrize(
    ("step", "learns"),
    [
        (OneHotEncoder(categories=[[0, 1]]), False),
        (OrdinalEncoder(categories=[[0, 1]]), False),
        (OneHotEncoder(), True),
        (OneHotEncoder(categories=[[0, 1]], min_frequency=2), True),
        (OrdinalEncoder(categories=[[0, 1]], max_categories=2), True),
        (TargetEncoder(categories=[[0, 1]]), True),
        (FunctionTransformer(), False),
        (PolynomialFeatures(2), False),
        (SplineTransformer(), True),
    ],
    ids=str,
)
def test_which_steps_learn_from_rows(step, learns):
    """Given categories are not all that some encoders find: means of targets, rare labels."""
    assert list(learning_parts(step)) == [type(step).__name__] * learns


ONE_HOT = OneHotEncoder(categories=[list(range(10))], handle_unknown="ignore")
DENSE = OneHotEncoder(categories=[[0, 1]], sparse_output=False)


def columns(*parts, **options):
    named = [(str(number), *part) for number, part in enumerate(parts)]
    return ColumnTransformer(named, **options)


@pytest.mark.parametrize(
    ("step", "reads"),
    [
        (columns((ONE_HOT, [3]), remainder="passthrough"), True),
        (columns((make_pipeline(FunctionTransformer(), ONE_HOT), [3])), True),
        (columns((ONE_HOT, [3]), sparse_threshold=0), False),
        (columns((DENSE, [3]), remainder="passthrough"), False),
        (columns((PolynomialFeatures(), [0, 1])), False),
        (columns((FunctionTransformer(np.sign), [0, 1])), False),
        (columns((FunctionTransformer(lambda X: X), [3])), True),
        (columns((HashingVectorizer(), "text"), ("passthrough", ["age"])), True),
        (make_pipeline(FeatureHasher(), columns(("passthrough", [0, 1]))), True),
        (make_pipeline(ONE_HOT, columns(("passthrough", [0, 1]))), True),
        (columns(("passthrough", lambda X: [0])), True),
        (columns(("passthrough", make_column_selector("a"))), False),
    ],
)
def test_which_column_transformers_decide_by_rows(step, reads):
    assert bool(list(learning_parts(step))) == reads


@pytest.mark.filterwarnings(NAMED)
def test_one_record_decides_on_the_type_of_columns(rng):
    """What the refusal is about: the type of X, which a statement calls public, is not."""
    X = np.column_stack([rng.standard_normal((600, 3)), np.full(600, -1.0)])
    X[60:, 3] = 4
    kinds = []
    for value in (4, -1):
        X[60, 3] = value
        model = make_pipeline(columns((ONE_HOT, [3]), remainder="passthrough"), ridge())
        model.fit(X, X[:, 0])
        kinds.append(model[:-1].transform(X).__class__)
        (said,) = [
            text
            for text in skdp.total_privacy(model).assumptions
            if "NOT part of this total" in text
        ]
        assert "ColumnTransformer (its output is dense or sparse" in said
    assert kinds[0] is not kinds[1]


def test_a_model_that_is_passed_twice_counts_twice(regression):
    model = ridge().fit(*regression)
    both = skdp.total_privacy(model, model, delta=DELTA)
    assert both.epsilon > skdp.total_privacy(model, delta=DELTA).epsilon


def test_models_of_different_people_cost_the_maximum(regression):
    """Each model's own fits add up: a scaler and a model in a pipeline are of the same rows."""
    X, y = regression
    models = [
        make_pipeline(skdp.DPStandardScaler(epsilon=epsilon), ridge()).fit(X[part::2], y[part::2])
        for part, epsilon in enumerate((0.5, 2.0))
    ]
    each = [skdp.total_privacy(model, delta=DELTA).epsilon for model in models]
    total = skdp.total_privacy(*models, delta=DELTA, disjoint=True)
    assert total.epsilon == pytest.approx(max(each), rel=1e-6)
    assert total.epsilon < skdp.total_privacy(*models, delta=DELTA).epsilon
    assert any("no person, is in the rows of two" in text for text in total.assumptions)
    assert total.n_rows is None
    # A later fit on all of the rows adds to each part.
    more = skdp.total_privacy(total, models[0], delta=DELTA)
    assert more.epsilon == pytest.approx(
        skdp.total_privacy(models[1], models[0], delta=DELTA).epsilon, rel=1e-6
    )


def test_the_text_of_a_statement_is_refused_by_the_way_to_read_it(regression):
    stated = skdp.DPRidge().fit(*regression).privacy_
    with pytest.raises(ValueError, match=r"PrivacyStatement\.from_json"):
        skdp.total_privacy(stated.to_json())
    read = skdp.PrivacyStatement.from_json(stated.to_json())
    assert skdp.total_privacy(read).epsilon == pytest.approx(stated.epsilon)
