"""Reports on budgets and accounting, and on estimators around private ones."""

from __future__ import annotations

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    HalvingGridSearchCV,
    KFold,
    cross_val_predict,
    learning_curve,
)
from sklearn.multiclass import OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, RegressorChain

from benchmarks.reports.verdicts import (
    at_least,
    classes_of,
    classifier,
    holds,
    near,
    refused,
    report,
    rows,
)
from skdp import (
    DPRidge,
    total_privacy,
)


@report("budgets", "diffprivlib #97, #71", "accuracy follows epsilon, from 0.01 to 1e7")
def accuracy_follows_epsilon():
    X, y = classes_of()
    right = LogisticRegression().fit(X, y).score(X, y)
    small, *large = (classifier(one).fit(X, y).score(X, y) for one in (0.001, 1, 100, 1e7))
    return [near(large, right, 0.01), holds(small < right - 0.02, "worse at 0.001", small)]


@report("budgets", "opacus #775, #591; google/differential-privacy #430", "epsilon up to 1e9")
def large_epsilons():
    X, y = rows(2000)
    scores = [DPRidge(epsilon=one).fit(X, y).score(X, y) for one in (50, 1000, 1e9)]
    models = [DPRidge(epsilon=one).fit(X, y) for one in (50, 100, 500)]
    total = total_privacy(*models, delta=1e-6).epsilon
    return [near(scores, 0.84, 0.02), holds(500 <= total <= 650, "500 to 650", total)]


# ---------------------------------------------------------------------------- around estimators


def three_classes(n=3000):
    X, _ = rows(n)
    return X, np.digitize(X[:, 0], [-0.5, 0.5])


@report("meta-estimators", "scikit-learn #29551, #4634", "calibration, a class missing in a fold")
def calibration_by_folds():
    X, y = three_classes()
    order = np.argsort(y)
    model = CalibratedClassifierCV(classifier(5.0, [0, 1, 2]), cv=KFold(3))
    chances = model.fit(X[order], y[order]).predict_proba(X)
    return near(chances.sum(axis=1), 1, 1e-9)


@report("meta-estimators", "scikit-learn #9593", "cross_val_predict by all methods, a rare class")
def predictions_by_folds():
    X, _ = rows(2000)
    labels = np.digitize(X[:, 0], [0, 2.5])
    shapes = [
        cross_val_predict(classifier(classes=[0, 1, 2]), X, labels, cv=KFold(3), method=name).shape
        for name in ("predict_proba", "decision_function")
    ]
    return holds(set(shapes) == {(2000, 3)}, "(2000, 3)", shapes)


@report("meta-estimators", "scikit-learn #18550", "voting on text labels, which it encodes")
def voting():
    X, y = classes_of(3000)
    text = np.array(["no", "yes"])[y]

    def vote(labels):
        return VotingClassifier([("a", classifier(5.0, labels))], voting="soft").fit(X, text)

    score = vote([0, 1]).score(X, text)
    return [refused(lambda: vote(["no", "yes"]), "classes=[0, 1]"), at_least(score, 0.75)]


@report("meta-estimators", "chains, halving, selections, learning curves", "six of them")
def many_tools():
    X, y = rows(3000)
    ridge, labels = DPRidge(epsilon=5), np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    chain = RegressorChain(ridge).fit(X, np.column_stack([y, y]))
    of_labels = ClassifierChain(classifier(5.0)).fit(X, labels)
    halving = HalvingGridSearchCV(ridge, {"alpha": [0.1, 1.0]}, min_resources=500).fit(X, y)
    fewest = RFECV(ridge, cv=KFold(3)).fit(X, y)
    forward = SequentialFeatureSelector(ridge, n_features_to_select=2, cv=KFold(3)).fit(X, y)
    _, _, curve = learning_curve(ridge, X, y, cv=KFold(3), train_sizes=[0.5, 1.0])
    return [
        near([chain.score(X, y[:, None].repeat(2, 1)), halving.score(X, y)], 0.84, 0.03),
        at_least(of_labels.score(X, labels), 0.9),
        near([fewest.score(X, y), *curve.mean(axis=1)], 0.84, 0.03),
        holds(forward.get_support()[:2].all(), "the two strongest columns", forward.get_support()),
    ]


@report("meta-estimators", "OutputCodeClassifier", "classes=[0, 1] and [-1, 1] for its codes")
def output_codes():
    X, y = three_classes()

    def fit(classes):
        return OutputCodeClassifier(classifier(5.0, classes), code_size=3, random_state=0).fit(X, y)

    return [at_least(fit([-1, 1]).score(X, y), 0.5), refused(lambda: fit([0, 1]), "[-1, 1]")]
