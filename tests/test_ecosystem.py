"""Programs of everyday work with scikit-learn: what runs with its models runs with these."""

from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn import inspection, metrics, model_selection
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier
from sklearn.feature_selection import RFE
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import estimator_html_repr

import skdp
from skdp._fitting.estimator import PrivateEstimator

pytestmark = pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")

RNG = np.random.default_rng(7)
N = 600
X = RNG.standard_normal((N, 4))
MARGIN = X @ np.array([2.0, -1.0, 0.5, 0.0])
Y = (MARGIN + 0.3 * RNG.standard_normal(N) > 0).astype(int)
TARGET = MARGIN + 0.3 * RNG.standard_normal(N)
THREE = np.digitize(MARGIN, [-1.0, 1.0])
FRAME = pd.DataFrame(X, columns=list("abcd"))
MIXED = FRAME.assign(town=np.where(X[:, 0] > 0, "big", "small"))


def classifier(**given):
    return skdp.DPLogisticRegression(**{"classes": [0, 1], "epsilon": 20.0, **given})


def regressor(**given):
    return skdp.DPRidge(epsilon=20.0, **given)


def accuracy(model, rows=X, labels=Y):
    return model.fit(rows, labels).score(rows, labels)


# ---------------------------------------------------------------- labels of all kinds

LABELS = {
    "text": np.where(Y == 1, "yes", "no"),
    "objects": np.where(Y == 1, "yes", "no").astype(object),
    "booleans": Y == 1,
    "floats": Y.astype(float),
    "minus and plus one": 2 * Y - 1,
    "a list": Y.tolist(),
    "a series": pd.Series(Y, index=np.arange(N) + 5),
    "a category": pd.Series(np.where(Y == 1, "yes", "no")).astype("category"),
    "nullable integers": pd.Series(Y, dtype="Int64"),
    "nullable booleans": pd.Series(Y == 1, dtype="boolean"),
    "a column": Y[:, None],
    "three classes": THREE,
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.filterwarnings("ignore:.*classes=None:skdp.PrivacyWarning")  # labels are read here
def test_labels_of_all_kinds(kind):
    model = classifier(classes=None).fit(FRAME, LABELS[kind])
    plain = LogisticRegression().fit(FRAME, LABELS[kind])
    assert list(model.classes_) == list(plain.classes_)
    assert model.score(FRAME, LABELS[kind]) > (0.75 if kind == "three classes" else 0.85)


# ---------------------------------------------------------------- tools around a model


def grid(model, parameters, **given):
    search = model_selection.GridSearchCV(model, parameters, cv=2, error_score="raise", **given)
    return search.fit(X, Y).cv_results_["mean_test_score"]


def with_town(model):
    towns = OneHotEncoder(categories=[["big", "small"]], sparse_output=False)
    columns = ColumnTransformer([("town", towns, ["town"])], remainder="passthrough")
    return make_pipeline(columns.set_output(transform="pandas"), model)


SCORES = {
    "search over epsilon and C": lambda: grid(
        classifier(), {"epsilon": [5.0, 20.0], "C": [0.1, 1.0]}
    ),
    "pipeline with categories": lambda: accuracy(with_town(classifier()), MIXED),
    "cross_val_score": lambda: model_selection.cross_val_score(classifier(), X, Y, cv=2),
    "cross_val_predict": lambda: np.mean(
        model_selection.cross_val_predict(classifier(), X, Y, cv=2) == Y
    ),
    "calibrated": lambda: accuracy(CalibratedClassifierCV(classifier(), cv=2)),
    "tuned threshold": lambda: accuracy(
        model_selection.TunedThresholdClassifierCV(classifier(), cv=2)
    ),
    "stacking": lambda: accuracy(StackingClassifier([("one", classifier())], cv=2)),
    "one against the rest": lambda: accuracy(OneVsRestClassifier(classifier()), X, THREE) + 0.1,
    "several labels": lambda: np.mean(
        MultiOutputClassifier(classifier()).fit(X, np.c_[Y, Y]).predict(X) == np.c_[Y, Y]
    ),
    "several targets": lambda: accuracy(regressor(), X, np.c_[TARGET, -TARGET]),
    "targets transformed": lambda: accuracy(
        TransformedTargetRegressor(regressor(), func=np.log, inverse_func=np.exp),
        X,
        np.exp(TARGET / 4),
    ),
    "recursive elimination": lambda: accuracy(RFE(classifier(), n_features_to_select=2)),
}  # fmt: skip


@pytest.mark.parametrize("program", SCORES)
def test_tools_of_scikit_learn_fit_and_score(program):
    scores = np.asarray(SCORES[program]())
    assert np.isfinite(scores).all()
    assert (scores > 0.75).all()


# ---------------------------------------------------------------- looking at a model


@pytest.fixture(scope="module")
def fitted():
    return classifier().fit(FRAME, Y)


def test_a_model_can_be_inspected(fitted):
    importance = inspection.permutation_importance(fitted, FRAME, Y, n_repeats=2, random_state=0)
    assert importance.importances_mean.argmax() == 0
    dependence = inspection.partial_dependence(fitted, FRAME, ["a"], grid_resolution=5)
    average = dependence["average"][0]
    assert (np.diff(average) >= 0).all()
    assert average[0] < 0.5 < average[-1]


DISPLAYS = {
    "partial dependence": lambda model: inspection.PartialDependenceDisplay.from_estimator(
        model, FRAME, ["a"], grid_resolution=5
    ),
    "decision boundary": lambda model: inspection.DecisionBoundaryDisplay.from_estimator(
        clone(model).fit(X[:, :2], Y), X[:, :2], grid_resolution=5
    ),
    "ROC curve": lambda model: metrics.RocCurveDisplay.from_estimator(model, FRAME, Y),
}


@pytest.mark.parametrize("display", DISPLAYS)
def test_displays_of_scikit_learn_draw_a_model(fitted, display):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = DISPLAYS[display](fitted).figure_
    assert figure.axes
    importlib.import_module("matplotlib.pyplot").close(figure)


def test_a_model_in_a_notebook_links_its_page(fitted, monkeypatch):
    assert "<script" not in fitted.privacy_._repr_html_()
    assert "href" not in estimator_html_repr(fitted).partition("DPLogisticRegression")[2]
    template = f"https://pages{PrivateEstimator._doc_link_template}"
    monkeypatch.setattr(PrivateEstimator, "_doc_link_module", "skdp")
    monkeypatch.setattr(PrivateEstimator, "_doc_link_template", template)
    page = "https://pages/generated/skdp.DPLogisticRegression.html"
    assert page in estimator_html_repr(fitted)


def test_other_picklers_keep_a_model(fitted):
    pickler = pytest.importorskip("cloudpickle")
    again = pickler.loads(pickler.dumps(fitted))
    assert (again.predict_proba(FRAME) == fitted.predict_proba(FRAME)).all()


def test_what_no_fit_needs_is_imported_at_its_first_use():
    program = """
import sys, skdp
later = "metrics", "model_selection", "preprocessing"
assert not [name for name in later if f"skdp.{name}" in sys.modules]
assert {*skdp.__all__, 'check', *later} <= {*dir(skdp)}
assert not {'TYPE_CHECKING', 'importlib'} & {*dir(skdp)}
assert all(getattr(skdp, name) is not None for name in (*skdp.__all__, *later))
assert not hasattr(skdp, "nothing")
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
