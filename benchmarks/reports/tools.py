"""Reports on budgets and accounting, and on estimators around private ones."""

from __future__ import annotations

import numpy as np
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    cross_val_predict,
    learning_curve,
)
from sklearn.multiclass import OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, RegressorChain
from sklearn.semi_supervised import SelfTrainingClassifier

import skdp
from benchmarks.reports.verdicts import (
    POOR,
    Found,
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
    PrivacyBudget,
    total_privacy,
)


@report("budgets", "diffprivlib #97, #71", "accuracy follows epsilon, from 0.01 to 1e7")
def accuracy_follows_epsilon():
    X, y = classes_of()
    right = LogisticRegression().fit(X, y).score(X, y)
    small, *large = (classifier(one).fit(X, y).score(X, y) for one in (0.001, 1, 100, 1e7))
    return [near(large, right, 0.01), holds(small < right - 0.02, "worse at 0.001", small)]


@report("budgets", "diffprivlib #63", "large negative predictions for log-normal targets")
def negative_predictions():
    X, y = rows()
    own, right = (model.fit(X, np.exp(y / 3)).predict(X) for model in (DPRidge(), Ridge()))
    return near((own < 0).mean(), (right < 0).mean(), 0.03)


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


@report("meta-estimators", "scikit-learn #19119", "self-training")
def self_training():
    X, y = classes_of(2000)
    some = np.where(np.arange(2000) % 4 == 0, y, -1)
    model = SelfTrainingClassifier(classifier(5.0)).fit(X, some)
    return refused(lambda: total_privacy(model, delta=1e-6), "SelfTrainingClassifier")


@report("meta-estimators", "mlxtend #423; scikit-learn #11047", "stacking")
def stacking():
    X, y = classes_of(3000)
    with PrivacyBudget(10.0, 1e-6) as budget:
        members = [("a", classifier()), ("b", classifier())]
        model = StackingClassifier(members, classifier(), cv=KFold(3)).fit(X, y)
    # Two fits on all rows, six on two thirds of them, and the final fit.
    nine = total_privacy(*[classifier().fit(X, y) for _ in range(9)], delta=1e-6).epsilon
    return [near(budget.spent, nine, 1e-3), at_least(model.score(X, y), 0.7)]


@report("meta-estimators", "scikit-learn #2879, #4946; dask-ml #480", "weights, groups, search")
def routed_metadata():
    X, y = rows(3000)
    groups, grid = np.arange(3000) // 3, {"alpha": [0.1, 1.0]}
    with sklearn.config_context(enable_metadata_routing=True):
        model = DPRidge().set_fit_request(groups=True, sample_weight=True)
        model.set_score_request(sample_weight=True)
        search = GridSearchCV(model, grid, cv=GroupKFold(3))
        search.fit(X, y, groups=groups, sample_weight=np.ones(3000))
    return near(search.best_estimator_.privacy_.n_groups, 1000, 0)


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


@report("meta-estimators", "TransformedTargetRegressor in a search", "privacy_of of the search")
def transformed_targets():
    X, y = rows(2000)
    model = TransformedTargetRegressor(DPRidge(), func=np.arcsinh, inverse_func=np.sinh)
    search = GridSearchCV(model, {"regressor__alpha": [0.1, 1.0]}, cv=KFold(2)).fit(X, y)
    fit = total_privacy(search.best_estimator_, delta=1e-6).epsilon
    try:
        price = holds(
            skdp.privacy_of(search, n_samples=2000, n_features=X.shape[1]).epsilon > 1.5,
            "above 1.5",
            "priced",
        )
    except ValueError as error:
        price = Found("a price above 1.5", str(error)[:160], POOR)
    return [near(fit, 1, 1e-4), price]


@report("meta-estimators", "OutputCodeClassifier", "classes=[0, 1] and [-1, 1] for its codes")
def output_codes():
    X, y = three_classes()

    def fit(classes):
        return OutputCodeClassifier(classifier(5.0, classes), code_size=3, random_state=0).fit(X, y)

    return [at_least(fit([-1, 1]).score(X, y), 0.5), refused(lambda: fit([0, 1]), "[-1, 1]")]


@report("meta-estimators", "dask arrays", "chunks of rows, of unknown size, and of columns")
def dask_chunks():
    import dask.array as da
    from distributed import Client

    X, y = rows(4000)
    target = da.from_array(y, chunks=1000)
    by_rows, by_columns = (da.from_array(X, chunks=(1000, width)) for width in (3, 2))
    unknown = by_rows[da.from_array(np.ones(4000, dtype=bool), chunks=1000)]

    def score(table):
        return r2_score(y, DPRidge(epsilon=5).fit(table, target).predict(X))

    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None):
        return near([score(table) for table in (by_rows, by_columns, unknown)], 0.84, 0.02)
