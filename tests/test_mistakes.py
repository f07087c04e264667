"""Mistakes of the first hour: each message says who asks, what was asked, and what is allowed.

Nothing is released, and no cell is quoted.
"""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdp
from skdp import Privacy, PublicRange, RowNorm
from skdp._oracle.oracle import Oracle
from skdp.metrics import evaluate
from skdp.model_selection import DPSearchCV, dp_train_test_split
from skdp.solvers import GradientDescent

SEEDED = Privacy(noise=skdp.SeededNoise(0))

LOGISTIC, RIDGE, LINEAR = skdp.DPLogisticRegression, skdp.DPRidge, skdp.DPLinearRegression
MODELS = LOGISTIC, RIDGE, LINEAR
SECRET = 987654.25
N = 300

rng = np.random.default_rng(0)
X = rng.standard_normal((N, 2))
Y = (X[:, 0] > 0).astype(int)
TARGET = X @ [1.0, -1.0]
FRAME = pd.DataFrame(
    {
        "age": X[:, 0],
        "sex": np.where(X[:, 1] > 0, "secret-f", "secret-m"),
        "day": pd.date_range("1999-12-31", periods=N),
    }
)
LABELS = np.where(Y == 1, "yes", "no")


SHAPE = {"n_features": 2, "n_samples": N}


class LazyFrame:
    """A frame whose rows are not there yet, as polars has it."""

    columns = ("age",)

    def collect(self):
        return FRAME[["age"]]


def fit(model, data=(X, Y)):
    return lambda: model().fit(*data)


def with_cell(value):
    changed = X.astype(object)
    changed[3, 1] = value
    return changed


def spend_twice():
    with skdp.PrivacyBudget(1.0, 1e-6):
        LOGISTIC(epsilon=0.9).fit(X, Y)
        LOGISTIC(epsilon=0.9).fit(X, Y)


def same_seed_twice():
    with skdp.PrivacyBudget(9.0, 1e-6, allow_seeded_noise=True):
        for _ in range(2):
            LOGISTIC(privacy=SEEDED).fit(X, Y)


# What is done, and what the message has to hold: who or what, what was asked, what is allowed.
REFUSED = {
    "solver typo": (fit(lambda: LOGISTIC(solver="lbfgs")), "solver", "'lbfgs'", "'gd'"),
    "option of auto": (
        lambda: LOGISTIC().set_params(solver__max_iter=3), "DPLogisticRegression",
        "solver__max_iter", "solver is 'auto'",
    ),
    "option of no object": (
        lambda: LOGISTIC().set_params(privacy__adjacency="label"), "DPLogisticRegression",
        "privacy__adjacency", "privacy is None",
    ),
    "batch_size": (fit(lambda: LOGISTIC(solver=("auto", {"batch_size": 0}))), "batch_size", "0"),
    "range for more": (
        fit(lambda: LOGISTIC(scaling=PublicRange(by_column=[(0, 1)] * 3))), "PublicRange", "3 ends",
        "2 columns", "one number",
    ),
    "range of no frame": (
        fit(lambda: LOGISTIC(scaling=PublicRange(by_column={"age": (0, 1)}))), "by_column",
        "not a data frame", "{0:",
    ),
    "range of another": (
        fit(lambda: LOGISTIC(scaling=PublicRange(by_column={"agee": (0, 1)})), (FRAME[["age"]], Y)),
        "by_column", "Not in X: 'agee'", "Without a pair: 'age'",
    ),
    "constraint typo": (
        fit(lambda: LOGISTIC(constraint="ball")), "constraint", "'ball'", "'l2_ball'",
    ),
    "classes as numbers": (
        fit(lambda: LOGISTIC(classes=[0, 1]), (X, LABELS)), "0, 1 (numbers)", "are in y, text",
    ),
    "label unknown": (
        fit(lambda: LOGISTIC(classes=["no", "maybe"]), (X, LABELS)), "'maybe', 'no'", "declared",
    ),
    "one class": (fit(LOGISTIC, (X, 0 * Y)), "DPLogisticRegression", "at least 2 classes"),
    "real labels": (fit(LOGISTIC, (X, TARGET)), "continuous"),
    "text in an array": (fit(RIDGE, (with_cell("secret"), TARGET)), "DPRidge", "column 1", "text"),
    "text in y": (fit(RIDGE, (X, [*TARGET[1:], "secret"])), "DPRidge", "y"),
    "lazy frame": (fit(RIDGE, (LazyFrame(), TARGET)), "DPRidge", "LazyFrame", "X.collect()"),
    "partitions as y": (
        fit(RIDGE, (X, skdp.data.Chunks(X, TARGET))), "DPRidge", "y is a Chunks",
        "in place of X, without y",
    ),
    "missing": (
        fit(RIDGE, (with_cell(np.nan), TARGET)), "DPRidge", "missing", "DPTabularPreprocessor",
    ),
    "infinite": (fit(RIDGE, (with_cell(np.inf), TARGET)), "DPRidge", "infinity"),
    "weights below 0": (
        lambda: RIDGE().fit(X, TARGET, sample_weight=-np.ones(N)), "sample_weight", "not be neg",
    ),
    "budget spent": (spend_twice, "DPLogisticRegression", "1", "epsilon"),
    "same seed": (same_seed_twice, "seed"),
    "noise typo": (
        fit(lambda: LOGISTIC(privacy=Privacy(noise="seed"))), "noise", "'system'", "'seed'",
        "SeededNoise(seed)",
    ),
    "no seed": (
        fit(lambda: LOGISTIC(privacy=Privacy(noise=skdp.SeededNoise(None)))), "seed", "an integer",
        "None",
    ),
    "blocks without classes": (
        lambda: LOGISTIC().fit_blocks([(X, Y)], n_samples=N, n_features=2), "DPLogisticRegression",
        "classes=",
    ),
    "plan of two": (lambda: skdp.DPPoissonRegressor().plan(5, 3, n_outputs=2), "n_outputs", "be 1"),
    "plan of X": (lambda: RIDGE().plan(5, 3, sparse=X), "sparse must be True or False"),
    "no blocks": (lambda: LINEAR().fit_blocks(5, **SHAPE), "blocks", "iterable of tuples", "got 5"),
    "a number as a metric": (lambda: evaluate(FITTED, X, Y, 3, target_range=(0, 1)), "got 3"),
    "text as a model": (lambda: evaluate("model", X, Y), "a fitted classifier", "got str"),
    "no total": (lambda: skdp.total_privacy(delta=1e-6), "total_privacy", "at least one fitted"),
    "total of unfitted": (
        lambda: skdp.total_privacy(RIDGE(), delta=1e-6), "total_privacy", "fitted estimators",
    ),
    "epsilon, several": (fit(lambda: RIDGE(epsilon=[1, 2])), "epsilon", "positive", "[1, 2]"),
    "names twice": (
        fit(RIDGE, (FRAME[["age", "age"]], TARGET)), "DPRidge", "columns of the same name",
        "Rename",
    ),
    "inference typo": (fit(lambda: RIDGE(inference="yes")), "inference", "'coeff", "None", "'yes'"),
    "weights that miss": (
        lambda: RIDGE().fit(X, TARGET, sample_weight=np.full(N, np.nan)), "sample_weight",
        "missing", "0 for one without effect",
    ),
    "weights of 0": (
        lambda: RIDGE().fit(X, TARGET, sample_weight=np.zeros(N)), "DPRidge", "zero for every",
        "positive weight",
    ),
    "groups too few": (
        lambda: RIDGE().fit(X, TARGET, groups=np.ones(5)), "DPRidge", "groups", "each row",
    ),
    "scores of unfitted": (
        lambda: evaluate(RIDGE(), X, TARGET, epsilon=1.0, delta=1e-6), "evaluate", "not fitted",
        "target_range=",
    ),
    "search over budgets": (
        fit(lambda: DPSearchCV(RIDGE(), {"epsilon": [1, 2]})), "DPSearchCV", "epsilon", "decides",
    ),
    "search with a scaler": (
        fit(lambda: DPSearchCV(make_pipeline(StandardScaler(), RIDGE()), {"dpridge__alpha": [1]})),
        "DPSearchCV", "'standardscaler'", "without privacy", "DPStandardScaler",
    ),
    "split of too many": (
        lambda: dp_train_test_split(X, TARGET, test_size=2.0), "test_size", "between 0 and 1",
        "got 2.0",
    ),
    "no such column": (
        lambda: skdp.DPTabularPreprocessor({"sax": ["f", "m"]}).fit(FRAME[["age", "sex"]]),
        "DPTabularPreprocessor", "'sax'", "X has 'age', 'sex'",
    ),
    "small public sample": (
        lambda: skdp.PublicSample(np.ones((9, 2))), "9 sample(s)", "minimum of 20", "PublicSample",
    ),
    "name typo": (lambda: RIDGE().set_params(epsilom=1), "'epsilom'", "DPRidge", "'epsilon'"),
    "other names": (
        lambda: RIDGE().fit(FRAME[["age"]], TARGET).predict(
            FRAME[["age"]].rename(columns={"age": "year"})
        ),
        "feature names", "year", "age",
    ),
    "more blocks": (
        lambda: RIDGE().fit_blocks([(X, TARGET)], n_samples=10, n_features=2), "more rows",
        "10 that were declared", "No model was kept",
    ),
    "other columns": (lambda: clone(FITTED).fit(X, TARGET).predict(X[:, :1]), "1 feat", "2 feat"),
    "plan of no columns": (lambda: RIDGE().plan(10, 0), "n_features", "must be at least 1"),
    "plan of other classes": (
        lambda: LOGISTIC(classes={0, 1, 2}).plan(10, 2, n_classes=2), "3 classes are declared",
    ),
    "rows of no shape": (fit(RIDGE, (np.full((), SECRET), [1.0])), "Reshape your data"),
    "parts that overflow": (
        fit(RIDGE, (sparse.csr_array(([1.7e308, 1.7e308, 1.0], [0, 0, 1], [0, 2, 3])), [0.0, 1.0])),
        "add up to infinity",
    ),
    "categories of the rows": (
        fit(RIDGE, (FRAME[["sex"]].astype("category"), TARGET)), "'sex'", "levels were learnt",
    ),
}  # fmt: skip
FITTED = RIDGE()


def scikit_learn_takes_equal_names():
    """Whether the installed version fits columns of the same name, as older ones do."""
    try:
        Ridge().fit(FRAME[["age", "age"]], TARGET)
    except Exception:
        return False
    return True


if scikit_learn_takes_equal_names():
    del REFUSED["names twice"]


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_refusal_says_what_to_do(mistake):
    act, *fragments = REFUSED[mistake]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((ValueError, TypeError)) as refusal:
            act()
    message = str(refusal.value)
    assert [part for part in fragments if part not in message] == [], message
    for cell in ("secret", "1999", "987", *(f"{value:.4g}" for value in X[:3].ravel())):
        assert cell not in message
    assert len(message) < 800


# Parameters of any estimator, and those of one, with the message that `fit` and `plan` raise.
SETTINGS = [
    ({"epsilon": 1e-300}, "epsilon must be a positive number from 1e-6 to 1e9"),
    ({"epsilon": 0}, "epsilon must be a positive number.*got 0"),
    ({"epsilon": -1.0}, "epsilon must be a positive number.*got -1"),
    ({"epsilon": True}, "epsilon must be a positive number"),
    ({"delta": -1e-9}, r"delta must be a number in \[0, 1\)"),
    ({"delta": 1.0}, r"delta must be a number in \[0, 1\).*got 1"),
    ({"delta": 0, "solver": "residual_budget"}, "pure differential privacy.*a solver that can"),
    ({"solver": 3}, "solver must be a name, .*, or a Solver, got 3"),
    ({"noise_schedule": "cosine"}, r"noise_schedule must be 'auto', .*'uniform'"),
    ({"noise_schedule": [1.0, 2.0], "max_iter": 3}, "3 positive, finite numbers"),
    (
        {"privacy": Privacy(adjacency="add_one")},
        "adjacency must be one of 'zero_out', 'replace_one'",
    ),
    ({"clip_norm": -1.0}, "clip_norm must be 'auto' or positive and finite"),
    ({"clip_norm": "median"}, r"clip_norm must be .*, got 'median'"),
    ({"clip_norm": 1e-320}, r"clip_norm must be .*, from 1e-100 to 1e\+100"),
    (
        {"clip_norm": 1e-320, "solver": "residual_budget"},
        "clip_norm must be 'auto' or positive and finite",
    ),
    ({"scaling": RowNorm(1e-300)}, r"norm must be .*, from 1e-50 to 1e\+50, got 1e-300"),
    ({"scaling": RowNorm(0.0)}, "RowNorm: norm must be a positive, finite number"),
    ({"privacy": Privacy}, "privacy must be None or a Privacy object"),
    ({"privacy": Privacy(budget=1.0)}, "budget must be None or a PrivacyBudget, got 1"),
    ({"privacy": Privacy(rows_per_group=0)}, "rows_per_group must be None or a positive"),
    ({"noise_schedule": ("exponential",)}, r"noise_schedule must be .*, got \('exponential',\)"),
    ({"learning_rate": "adaptive", "solver": "gd"}, "learning_rate must be .*, got 'adaptive'"),
    ({"max_iter": 2.5}, "max_iter must be 'auto' or an integer, at least 1"),
    ({"constraint": "sphere"}, "constraint must be None, a set such as"),
    ({"solver": "sgdd"}, "solver must be 'auto', a Solver or a name"),
    ({"prior": StandardScaler()}, "a fitted linear model of skdp or .*got object of type Standard"),
    ({"prior": RandomForestRegressor(2)}, "PublicModel.*got object of type RandomForestRegressor"),
    ({"learning_rate": -0.1}, "learning_rate must give positive, finite steps"),
    ({"learning_rate": "fast"}, "learning_rate must be 'auto', a positive number"),
    ({"momentum": -0.5}, r"momentum must be 'auto' or a number in \[0, 1\)"),
    (
        {"solver": GradientDescent(), "max_iter": 7},
        "max_iter was set beside a configured solver.*solver__max_iter",
    ),
    ({"solver": GradientDescent(averaging="best")}, "averaging must be one of 'last'"),
]
OWN = [
    (LINEAR, {"scaling": RowNorm(1.0, (0, 1.7e308))}, r"RowNorm: target .* 1e-50 to 1e\+50"),
    (RIDGE, {"scaling": PublicRange(low=0.0, target=1.0)}, "needs finite numbers with low < high"),
    (LOGISTIC, {"scaling": PublicRange(target=1.0)}, "labels have no range"),
    (LOGISTIC, {"C": 0}, "C must be a positive number"),
    (LOGISTIC, {"class_weight": "balanced"}, "would have to count the private labels"),
    (LOGISTIC, {"class_weight": [1, 2]}, "class_weight must be None or a dict"),
    (LOGISTIC, {"class_weight": {7: 1.0}}, "class_weight names labels that are not among"),
    (LOGISTIC, {"class_weight": {1: -1.0}}, "class_weight must be finite and not negative"),
    (LOGISTIC, {"classes": [1]}, "classes must name at least 2 labels"),
    (LOGISTIC, {"classes": [1, 2]}, "label that is not among the declared classes"),
]
SETTINGS = [
    *((MODELS[place % 3], *row) for place, row in enumerate(SETTINGS)),
    *OWN,
]


@pytest.mark.parametrize(
    ("model", "parameters", "message"), SETTINGS, ids=lambda one: str(one)[:40]
)
def test_a_parameter_is_refused_before_rows_are_read(model, parameters, message, monkeypatch):
    def answered(self, release):
        assert self._source is None, "a release was answered"
        return ask(self, release)

    ask = Oracle.request
    monkeypatch.setattr(Oracle, "request", answered)
    with pytest.raises(ValueError, match=message) as refusal:
        model(**parameters).fit(X, Y)
    assert str(refusal.value).startswith(f"{type(model()).__name__}: ")
    if parameters.keys().isdisjoint({"class_weight", "classes"}):  # labels are in the rows
        with pytest.raises(ValueError, match=message):
            model(**parameters).plan(N, 2)


@pytest.mark.parametrize("model", [skdp.DPRidge(), skdp.DPStandardScaler()])
def test_a_refusal_of_names_of_columns_or_of_none_does_not_speak_of_cells(model):
    frame = pd.DataFrame(X, columns=["age", *range(X.shape[1] - 1)])
    for table, said in (
        (frame, "X holds columns whose names"),
        (frame[[]], "X must have at least"),
    ):
        with pytest.raises(skdp.InputError, match=said) as refusal:
            model.fit(table, Y)
        assert "cells" not in str(refusal.value)


def test_errors_and_warnings_are_named_and_pickled_as_users_import_them():
    """Workers send them back as pickles. The last line of a traceback is their full name."""
    rooms = skdp, skdp.accounting, skdp.audit, skdp.metrics, skdp.model_selection, skdp.solvers
    named = {
        one
        for room in rooms
        for one in vars(room).values()
        if isinstance(one, type) and issubclass(one, Exception)
    }
    assert {skdp.InputError, skdp.PrivacyBudgetError, skdp.NoiseWarning} < named
    for one in named:
        assert not any(part.startswith("_") for part in one.__module__.split(".")), one
        again = pickle.loads(pickle.dumps(one("x")))
        assert (type(again), str(again)) == (one, "x")


def test_a_refused_fit_leaves_no_trace():
    model = LOGISTIC()
    with pytest.raises(ValueError, match="must not be negative"):
        model.fit(X, Y, sample_weight=-np.ones(N))
    assert not hasattr(model, "classes_")
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_solver_whose_needs_are_not_met():
    class Picky(GradientDescent):
        needs = frozenset({"strongly_convex"})

    with pytest.raises(ValueError, match="'gd' needs strongly_convex, a penalty that is strongly"):
        LINEAR(solver=Picky()).fit(X, Y)
    RIDGE(solver=Picky()).plan(400, 5)


def test_an_estimator_has_to_say_how_its_targets_are_read():
    class Unfinished(skdp.linear_model.base.DPLinearModel):
        pass

    with pytest.raises(TypeError, match=r"_declared_targets.*_read_targets"):
        Unfinished()


WARNED = {
    "large delta": (fit(lambda: RIDGE(delta=0.01)), skdp.PrivacyWarning, "delta=0.01.*1/n"),
    "labels of the rows": (fit(LOGISTIC), skdp.PrivacyWarning, r"classes=None.*classes=\[...\]"),
    **{
        name: (
            fit(RIDGE, (FRAME[["age"]].assign(**{name: TARGET}), TARGET)), skdp.PrivacyWarning,
            f"seem to identify persons: '{name}'.*as groups",
        )
        for name in ("patient_id", "MRN", "NHS number", "patient_no", "customerId",
                     "National Insurance No")
    },
    "get_dummies": (
        fit(RIDGE, (pd.get_dummies(FRAME[["sex"]]), TARGET)), skdp.PrivacyLeakWarning,
        r"'sex_...' look like .*get_dummies.*DPTabularPreprocessor",
    ),
    "no noise": (fit(lambda: LOGISTIC(epsilon=np.inf)), skdp.PrivacyWarning, "NOT private"),
    "a seed": (fit(lambda: LOGISTIC(privacy=SEEDED)), skdp.SeededNoiseWarning, "NOT private"),
    "one row": (
        lambda: RIDGE(delta=0.1).plan(1, 2),
        skdp.NoiseWarning,
        "from 1 row:.*to reach half of the possible improvement",
    ),
    "numbers as labels": (
        lambda: LOGISTIC().plan(500, 2, n_classes=200),
        skdp.NoiseWarning,
        "200 classes.*regressor",
    ),
    "few rows": (lambda: RIDGE().plan(20, 30), skdp.NoiseWarning, "31 parameters.*20 rows"),
    "little budget": (lambda: RIDGE(epsilon=1e-6).plan(N, 2), skdp.NoiseWarning, "epsilon=1e-06"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", WARNED)
def test_a_warning_says_what_is_wrong(mistake):
    act, kind, message = WARNED[mistake]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=kind)
        with pytest.raises(kind) as found:
            act()
    assert re.search(message, str(found.value))
