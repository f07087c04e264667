"""Estimators around a fit that resample its rows, score it without noise, or leave out groups."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import RFECV, SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    PolynomialFeatures,
    StandardScaler,
)

import skdp
from composition import DELTA

RNG = np.random.default_rng(0)
X = RNG.standard_normal((240, 3))
Y = (X[:, 0] > 0).astype(int)
MODEL = skdp.DPLogisticRegression(classes=[0, 1], scaling="none", max_iter=2)
GROUPS = np.arange(len(X)) // 2


class Oversampler(BaseEstimator):
    """Repeats rows of the rarer label, as imbalanced-learn's RandomOverSampler."""

    def fit(self, X, y):
        return self

    def fit_resample(self, X, y):
        rare = np.flatnonzero(y == np.bincount(y).argmin())
        rows = np.concatenate([np.arange(len(y)), rare])
        return X[rows], y[rows]


class Resampled(ClassifierMixin, BaseEstimator):
    """Pipeline of a step with ``fit_resample`` and a model, as imbalanced-learn's."""

    def __init__(self, steps):
        self.steps = steps

    def fit(self, X, y):
        X, y = self.steps[0][1].fit_resample(X, y)
        self.model_ = clone(self.steps[1][1]).fit(X, y)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.model_.predict(X)


class Balanced(ClassifierMixin, BaseEstimator):
    """Makes its sampler in the fit, as imbalanced-learn's ensembles."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        self.samplers_ = [Oversampler()]
        self.model_ = clone(self.model).fit(*self.samplers_[0].fit_resample(X, y))
        return self


def resampled(model=MODEL):
    return Resampled([("over", Oversampler()), ("model", model)])


SEARCH = skdp.model_selection.DPSearchCV(MODEL, {"C": [0.1, 1.0]}, n_candidates=2)
RESAMPLING = {
    "pipeline": resampled(),
    "bagging": BaggingClassifier(resampled(), n_estimators=2, bootstrap=False),
    "ensemble": Balanced(MODEL),
    "search": resampled(SEARCH),
    "in a search": GridSearchCV(resampled(), {}, scoring="accuracy", error_score="raise"),
}


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("name", RESAMPLING)
def test_resampling_is_warned_of_by_fit_and_refused_by_the_total(name):
    said = r"adds, repeats or removes rows.*\(Oversampler.fit_resample\).*NOT private.*class_weight"
    with pytest.warns(skdp.NotPrivateWarning, match=said) as caught:  # at the line of the user
        model = clone(RESAMPLING[name]).fit(X, Y)
    assert {one.filename for one in caught} == {__file__}
    if name != "in a search":  # skdp.privacy_of prices those
        with pytest.raises(ValueError, match=r"total_privacy: .*is not known to fit"):
            skdp.total_privacy(model, delta=DELTA)


def test_prices_and_private_searches_refuse_resampling():
    pipeline = resampled()
    for act in (
        lambda: skdp.privacy_of(GridSearchCV(pipeline, {}), n_samples=240, n_features=3),
        lambda: skdp.model_selection.DPSearchCV(pipeline, {}, n_candidates=2).fit(X, Y),
        lambda: skdp.model_selection.dp_cross_validate(pipeline, X, Y),
        lambda: skdp.model_selection.DPHoldout(X, Y).fit(pipeline),
    ):
        with pytest.raises(ValueError, match=r"skdp, or .*a Pipeline|is not known to fit"):
            act()


def test_resampling_has_one_warning():
    class OfImbalancedLearn(Pipeline):
        def fit(self, X, y):
            X, y = self.steps[0][1].fit_resample(X, y)
            self.steps[1][1].fit(X, y)
            return self

    with pytest.warns(skdp.NotPrivateWarning) as caught:
        OfImbalancedLearn([("over", Oversampler()), ("model", clone(MODEL))]).fit(X, Y)
    assert sum(issubclass(one.category, skdp.NotPrivateWarning) for one in caught) == 1


ALL = [0, 1, 2]
LEARNING = {
    "StandardScaler": make_pipeline(StandardScaler(), MODEL),
    "PCA": make_pipeline(make_pipeline(PolynomialFeatures(2), PCA(2)), MODEL),
    "SelectKBest": make_pipeline(SelectKBest(k=2), make_pipeline(PolynomialFeatures(2), MODEL)),
    "SimpleImputer": make_pipeline(ColumnTransformer([("a", SimpleImputer(), ALL)]), MODEL),
    "KBinsDiscretizer": make_pipeline(KBinsDiscretizer(encode="ordinal"), SEARCH),
    "MinMaxScaler": GridSearchCV(
        make_pipeline(MinMaxScaler(), MODEL), {"minmaxscaler__clip": [True]}
    ),
}
QUIET = [
    make_pipeline(PolynomialFeatures(2), FunctionTransformer(np.tanh), MODEL),
    make_pipeline(ColumnTransformer([("a", skdp.DPStandardScaler(), ALL)]), MODEL),
    make_pipeline(FrozenEstimator(StandardScaler().fit(X)), MODEL),
    make_pipeline(FeatureUnion([("a", skdp.DPStandardScaler()), ("b", "passthrough")]), MODEL),
]


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("name", LEARNING)
def test_steps_that_learn_without_privacy_are_warned_of_by_the_fit(name):
    with pytest.warns(
        skdp.NotPrivateWarning, match=f"without privacy: {name}( in 'pca')?\\. Through"
    ):
        clone(LEARNING[name]).fit(X, Y)


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("pipeline", QUIET)
def test_private_steps_and_those_that_learn_nothing_are_not_warned_of(pipeline):
    with warnings.catch_warnings():
        warnings.simplefilter("error", skdp.PrivacyWarning)
        clone(pipeline).fit(X, Y)


def error(estimator, X, y):
    return accuracy_score(y, estimator.predict(X))


EXACT = {
    "grid": lambda s: GridSearchCV(MODEL, {"C": [1.0, 2.0]}, scoring=s).fit(X, Y),
    "score": lambda s: cross_val_score(MODEL, X, Y, scoring=s),
    "in a pipeline": lambda s: cross_val_score(make_pipeline(MODEL), X, Y, scoring=s),
    "several": lambda s: cross_validate(MODEL, X, Y, scoring={"one": s}),
    "curve": lambda s: learning_curve(MODEL, X, Y, scoring=s, train_sizes=[0.9]),
    "permutations": lambda s: permutation_test_score(MODEL, X, Y, scoring=s, n_permutations=1),
    "columns": lambda s: RFECV(MODEL, scoring=s, cv=2).fit(X, Y),
}


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("name", EXACT)
def test_exact_scores_of_scikit_learn_are_warned_of(name):
    for scoring in ("accuracy", make_scorer(accuracy_score)):
        with pytest.warns(skdp.ExactScoreWarning, match="scores this fit on other private rows"):
            EXACT[name](scoring)


SCALED = make_pipeline(skdp.DPStandardScaler(), MODEL)
WITH_GROUPS = {
    "the model": (SCALED, {"dplogisticregression__groups": GROUPS}, "DPStandardScaler"),
    "the scaler": (SCALED, {"dpstandardscaler__groups": GROUPS}, "DPLogisticRegression"),
    "an inner step": (
        make_pipeline(skdp.DPStandardScaler(), make_pipeline(skdp.DPStandardScaler(), MODEL)),
        {"pipeline__dplogisticregression__groups": GROUPS},
        "DPStandardScaler",
    ),
}


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("name", WITH_GROUPS)
def test_groups_for_one_private_step_of_a_pipeline_are_refused(name):
    pipeline, given, who = WITH_GROUPS[name]
    with pytest.raises(ValueError, match=f"{who}: the pipeline passes .*no groups to this step"):
        clone(pipeline).fit(X, Y, **given)


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
def test_a_refusal_of_groups_spends_nothing_at_the_first_step():
    with skdp.PrivacyBudget(9.0, DELTA) as budget, pytest.raises(ValueError, match="passes"):
        clone(SCALED).fit(X, Y, dplogisticregression__groups=GROUPS)
    assert budget.n_fits == 0


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
def test_groups_that_routing_keeps_from_a_private_step_are_refused():
    with config_context(enable_metadata_routing=True):
        scaler, model = skdp.DPStandardScaler(), clone(MODEL).set_fit_request(groups=True)
        pipeline = make_pipeline(scaler.set_fit_request(groups=False), model)
        with pytest.raises(ValueError, match="DPStandardScaler: the pipeline passes 'groups'"):
            pipeline.fit(X, Y, groups=GROUPS)
        pipeline[0].set_fit_request(groups=True)
        assert pipeline.fit(X, Y, groups=GROUPS)[0].privacy_.unit == "group"
        by_rows = make_pipeline(skdp.DPStandardScaler(), clone(MODEL))
        for step in by_rows:
            step.set_fit_request(groups=False)
        search = GridSearchCV(by_rows, {}, cv=GroupKFold(2), error_score="raise")
        assert search.fit(X, Y, groups=GROUPS).best_estimator_[-1].privacy_.unit == "row"
