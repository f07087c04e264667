"""Mistakes of the first hour: each message says who asks, what was asked, and what is allowed.

Nothing is released, and no cell is quoted.
"""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdp
from skdp import Privacy, PublicRange, RowNorm
from skdp.metrics import evaluate
from skdp.model_selection import DPSearchCV, dp_train_test_split
from skdp.solvers import GradientDescent, get_solver

SEEDED = Privacy(noise=skdp.SeededNoise(0))

LOGISTIC, RIDGE, LINEAR = skdp.DPLogisticRegression, skdp.DPRidge, skdp.DPLinearRegression
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
    "epsilon 0": (fit(lambda: LOGISTIC(epsilon=0)), "epsilon", "positive number", "got 0"),
    "epsilon -1": (fit(lambda: LOGISTIC(epsilon=-1)), "epsilon", "positive number", "got -1"),
    "epsilon text": (fit(lambda: LOGISTIC(epsilon="1")), "epsilon", "positive number", "got '1'"),
    "epsilon nan": (fit(lambda: LOGISTIC(epsilon=np.nan)), "epsilon", "positive", "got nan"),
    "delta 1": (fit(lambda: LOGISTIC(delta=1)), "delta", "in [0, 1)", "got 1"),
    "delta negative": (fit(lambda: LOGISTIC(delta=-0.1)), "delta", "in [0, 1)", "got -0.1"),
    "pure and gaussian": (
        fit(lambda: LOGISTIC(delta=0, solver="newton")), "DPLogisticRegression", "delta=0",
        "'newton'", "Solvers that can", "gd",
    ),
    "solver typo": (fit(lambda: LOGISTIC(solver="lbfgs")), "solver", "'lbfgs'", "'gd'"),
    "solver class": (fit(lambda: LOGISTIC(solver=3)), "DPLogisticRegression", "a pair", "3"),
    "solver of regression": (
        fit(lambda: LOGISTIC(solver="boosted_ssp")), "'boosted_ssp'",
        "DPLinearRegression and DPRidge", "Solvers that fit it:\ngd: ", "\nnewton: ",
    ),
    "solver option": (lambda: get_solver("newton", inertia=3), "'newton'", "inertia", "max_iter"),
    "option of auto": (
        lambda: LOGISTIC().set_params(solver__max_iter=3), "DPLogisticRegression",
        "solver__max_iter", "solver is 'auto'", "solver=skdp.solvers.GradientDescent()",
    ),
    "option of no object": (
        lambda: LOGISTIC().set_params(privacy__adjacency="label"), "DPLogisticRegression",
        "privacy__adjacency", "privacy is None", "privacy=Privacy()",
    ),
    "two steps counts": (
        fit(lambda: LOGISTIC(solver=GradientDescent(), max_iter=3)), "max_iter", "solver__max_iter",
    ),
    "schedule typo": (
        fit(lambda: LOGISTIC(noise_schedule="cosine")), "noise_schedule", "'cosine'", "'uniform'",
    ),
    "adjacency typo": (
        fit(lambda: LOGISTIC(privacy=Privacy(adjacency="add"))), "adjacency", "'add'",
        "'zero_out', 'replace_one'",
    ),
    "text as targets, sparse rows": (
        fit(RIDGE, (sparse.csr_array(X), LABELS.astype(object))), "DPRidge", "y holds text",
        "numbers",
    ),
    "clip_norm": (fit(lambda: LOGISTIC(clip_norm=0)), "clip_norm", "positive", "0"),
    "momentum": (fit(lambda: LOGISTIC(momentum=1)), "momentum", "[0, 1)", "1"),
    "max_iter": (fit(lambda: LOGISTIC(max_iter=0)), "max_iter", "at least 1", "0"),
    "learning_rate": (fit(lambda: LOGISTIC(learning_rate="fast")), "learning_rate", "'fast'"),
    "batch_size": (fit(lambda: LOGISTIC(solver=("auto", {"batch_size": 0}))), "batch_size", "0"),
    "batch of more": (
        fit(lambda: LOGISTIC(solver=("gd", {"batch_size": N + 1}))), "batch_size", str(N),
    ),
    "row norm": (fit(lambda: LOGISTIC(scaling=RowNorm(-1))), "RowNorm: norm", "positive", "got -1"),
    "range turned": (
        fit(lambda: LOGISTIC(scaling=PublicRange(1, 0))), "PublicRange", "low < high",
        "high=0", "low=1",
    ),
    "range for more": (
        fit(lambda: LOGISTIC(scaling=PublicRange(by_column=[(0, 1)] * 3))), "PublicRange", "3 ends",
        "2 columns", "one number",
    ),
    "range as a tuple": (
        fit(lambda: LOGISTIC(scaling=(0, 1))), "scaling", "PublicRange(low, high)", "(0, 1)",
    ),
    "range of no frame": (
        fit(lambda: LOGISTIC(scaling=PublicRange(by_column={"age": (0, 1)}))), "by_column",
        "not a data frame", "{0:",
    ),
    "range of another": (
        fit(lambda: LOGISTIC(scaling=PublicRange(by_column={"agee": (0, 1)})), (FRAME[["age"]], Y)),
        "by_column", "not in X: 'agee'", "without a pair: 'age'",
    ),
    "scaling typo": (fit(lambda: LOGISTIC(scaling="minmax")), "scaling", "'minmax'", "'private'"),
    "constraint typo": (
        fit(lambda: LOGISTIC(constraint="ball")), "constraint", "'ball'", "'l2_ball'",
    ),
    "alpha": (fit(lambda: RIDGE(alpha=-1), (X, TARGET)), "alpha", "at least 0", "got -1"),
    "C": (fit(lambda: LOGISTIC(C=0)), "C must", "positive number", "got 0"),
    "l1_ratio": (fit(lambda: LOGISTIC(l1_ratio=2)), "l1_ratio", "[0, 1]", "got 2"),
    "intercept": (fit(lambda: LOGISTIC(fit_intercept="no")), "fit_intercept", "True", "'no'"),
    "classes 2": (fit(lambda: LOGISTIC(classes=2)), "classes", "as in [0, 1]", "got 2"),
    "one class declared": (fit(lambda: LOGISTIC(classes=[1])), "classes", "at least 2", "[1]"),
    "classes as text": (
        fit(lambda: LOGISTIC(classes=["0", "1"])), "classes are text ('0', '1')", "y are numbers",
    ),
    "classes as numbers": (
        fit(lambda: LOGISTIC(classes=[0, 1]), (X, LABELS)), "classes are numbers (0, 1)", "text",
    ),
    "mixed classes": (
        fit(lambda: LOGISTIC(classes=[0, 1]), (X, LABELS.astype(object))),
        "classes are numbers (0, 1)", "text",
    ),
    "label unknown": (
        fit(lambda: LOGISTIC(classes=["no", "maybe"]), (X, LABELS)), "'maybe', 'no'", "declared",
    ),
    "one class": (fit(LOGISTIC, (X, 0 * Y)), "DPLogisticRegression", "at least 2 classes"),
    "real labels": (fit(LOGISTIC, (X, TARGET)), "continuous"),
    "balanced": (
        fit(lambda: LOGISTIC(class_weight="balanced")), "'balanced'", "private labels", "a dict",
    ),
    "words as targets": (fit(RIDGE, (X, LABELS)), "DPRidge", "y must hold real numbers"),
    "text column": (
        fit(RIDGE, (FRAME[["age", "sex"]], TARGET)), "DPRidge", "text", "column 'sex'",
        "DPTabularPreprocessor", "OneHotEncoder(categories=",
    ),
    "text in an array": (fit(RIDGE, (with_cell("secret"), TARGET)), "DPRidge", "column 1", "text"),
    "text in y": (fit(RIDGE, (X, [*TARGET[1:], "secret"])), "DPRidge", "y"),
    "date column": (
        fit(RIDGE, (FRAME[["age", "day"]], TARGET)), "DPRidge", "dates", "column 'day'",
        "DPTabularPreprocessor",
    ),
    "dates alone": (fit(RIDGE, (FRAME[["day"]], TARGET)), "dates", "column 'day'"),
    "dates in an array": (fit(RIDGE, (FRAME[["day"]].to_numpy(), TARGET)), "dates", "column 0"),
    "lazy frame": (fit(RIDGE, (LazyFrame(), TARGET)), "DPRidge", "LazyFrame", "X.collect()"),
    "missing": (
        fit(RIDGE, (with_cell(np.nan), TARGET)), "DPRidge", "missing values", "without looking",
        "DPTabularPreprocessor",
    ),
    "infinite": (fit(RIDGE, (with_cell(np.inf), TARGET)), "DPRidge", "infinity"),
    "complex": (fit(RIDGE, (X + 1j, TARGET)), "DPRidge", "real numbers"),
    "fewer targets": (fit(RIDGE, (X, TARGET[1:])), "inconsistent numbers of samples"),
    "one column": (fit(RIDGE, (X[:, 0], TARGET)), "DPRidge", "X.reshape(-1, 1)"),
    "weights below 0": (
        lambda: RIDGE().fit(X, TARGET, sample_weight=-np.ones(N)), "sample_weight", "not be neg",
    ),
    "budget a number": (
        fit(lambda: LOGISTIC(privacy=Privacy(budget=1.0))), "budget", "PrivacyBudget", "1.0",
    ),
    "terms in a word": (
        fit(lambda: LOGISTIC(privacy="replace_one")), "privacy", "'replace_one'",
        "Privacy(adjacency='replace_one')",
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
    "plan of rows": (lambda: RIDGE().plan(X, Y), "plan", "an integer"),
    "plan of no targets": (lambda: RIDGE().plan(5, 3, n_outputs=0), "n_outputs", "at least 1"),
    "plan of two": (lambda: skdp.DPPoissonRegressor().plan(5, 3, n_outputs=2), "n_outputs", "be 1"),
    "plan of X": (lambda: RIDGE().plan(5, 3, sparse=X), "sparse must be True or False"),
    "rows as blocks": (lambda: LINEAR().fit_blocks(X, **SHAPE), "blocks", "iterable of tuples"),
    "a block alone": (lambda: LINEAR().fit_blocks((X, Y), **SHAPE), "blocks", "iterable of tuples"),
    "listed rows as blocks": (lambda: LINEAR().fit_blocks([["A", 3]], **SHAPE), "list of length 1"),
    "text as blocks": (lambda: LINEAR().fit_blocks("Anna", **SHAPE), "got str of length 4"),
    "no blocks": (lambda: LINEAR().fit_blocks(5, **SHAPE), "blocks", "iterable of tuples", "got 5"),
    "a number as a metric": (lambda: evaluate(FITTED, X, Y, 3, target_range=(0, 1)), "got 3"),
    "text as a model": (lambda: evaluate("model", X, Y), "a fitted classifier", "got str"),
    "plan of none": (lambda: RIDGE().plan(0, 3), "plan", "n_samples", "at least 1", "got 0"),
    "no total": (lambda: skdp.total_privacy(delta=1e-6), "total_privacy", "at least one fitted"),
    "total of unfitted": (
        lambda: skdp.total_privacy(RIDGE(), delta=1e-6), "total_privacy", "fitted estimators",
    ),
    "price of a model": (
        lambda: skdp.privacy_of(RIDGE()), "privacy_of", "a GridSearchCV", "got DPRidge",
        "total_privacy",
    ),
    "deltas that differ": (
        lambda: skdp.total_privacy(RIDGE().plan(N, 2), RIDGE(delta=1e-7).plan(N, 2)),
        "total_privacy", "[1e-07, 1e-06]", "pass the delta",
    ),
    "epsilon, several": (fit(lambda: RIDGE(epsilon=[1, 2])), "epsilon", "positive", "[1, 2]"),
    "delta nan": (fit(lambda: RIDGE(delta=np.nan)), "delta", "in [0, 1)", "got nan"),
    "names twice": (
        fit(RIDGE, (FRAME[["age", "age"]], TARGET)), "DPRidge", "columns of the same name",
        "Rename",
    ),
    "passes over chunks": (
        lambda: RIDGE(solver="svrg").fit(skdp.data.Chunks(X, TARGET)), "svrg", "taken by number",
        "Rows in memory",
    ),
    "no targets": (fit(RIDGE, (X, None)), "DPRidge", "requires y"),
    "no rows": (fit(RIDGE, (X[:0], TARGET[:0])), "0 sample(s)", "DPRidge"),
    "max_iter text": (fit(lambda: RIDGE(solver="gd", max_iter="many")), "max_iter", "'many'"),
    "target_bound": (fit(lambda: RIDGE(target_bound=-1)), "target_bound", "positive", "got -1"),
    "range without end": (
        fit(lambda: RIDGE(scaling=PublicRange(0, np.inf))), "PublicRange", "finite", "high=inf",
    ),
    "inference typo": (fit(lambda: RIDGE(inference="yes")), "inference", "'coeff", "None", "'yes'"),
    "inference of two": (
        fit(lambda: RIDGE(inference="coefficients"), (X, np.c_[TARGET, TARGET])), "DPRidge",
        "one target", "alone",
    ),
    "weights that miss": (
        lambda: RIDGE().fit(X, TARGET, sample_weight=np.full(N, np.nan)), "sample_weight",
        "missing", "0 for one that does not count",
    ),
    "weights of 0": (
        lambda: RIDGE().fit(X, TARGET, sample_weight=np.zeros(N)), "DPRidge", "zero for every",
        "positive weight",
    ),
    "groups too few": (
        lambda: RIDGE().fit(X, TARGET, groups=np.ones(5)), "DPRidge", "groups", "each row",
    ),
    "start of another": (
        lambda: RIDGE().fit(X, TARGET, coef_init=[1, 2, 3]), "coef_init", "(2,)",
    ),
    "metric typo": (
        lambda: evaluate(LOGISTIC(classes=[0, 1]).fit(X, Y), X, Y, ["acuracy"], epsilon=1.0,
                         delta=1e-6),
        "evaluate", "'accuracy'", "'acuracy'",
    ),
    "scores of unfitted": (
        lambda: evaluate(RIDGE(), X, TARGET, epsilon=1.0, delta=1e-6), "evaluate", "not fitted",
        "target_range=",
    ),
    "search for nothing": (
        fit(lambda: DPSearchCV(RIDGE())), "DPSearchCV", "param_grid or param_distributions", "none",
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
    "labels not declared": (
        lambda: skdp.DPTabularPreprocessor().fit(FRAME[["age", "sex"]]),
        "DPTabularPreprocessor", "column 'sex'", "categories={'sex': [...]}",
    ),
    "labels in one word": (
        lambda: skdp.DPTabularPreprocessor({"sex": "fm"}).fit(FRAME[["age", "sex"]]),
        "categories['sex']", "a list of at least 2 labels", "'fm'",
    ),
    "small public sample": (
        lambda: skdp.PublicSample(np.ones((9, 2))), "9 sample(s)", "minimum of 20", "PublicSample",
    ),
    "budget below 0": (lambda: skdp.PrivacyBudget(-1, 1e-6), "epsilon", "positive", "got -1"),
    "name typo": (lambda: RIDGE().set_params(epsilom=1), "'epsilom'", "DPRidge", "'epsilon'"),
    "other names": (
        lambda: RIDGE().fit(FRAME[["age"]], TARGET).predict(
            FRAME[["age"]].rename(columns={"age": "year"})
        ),
        "feature names", "year", "age",
    ),
    "more blocks": (
        lambda: RIDGE().fit_blocks([(X, TARGET)], n_samples=10, n_features=2), "more rows",
        "10 that were declared", "no model was kept",
    ),
    "predict before fit": (lambda: RIDGE().predict(X), "DPRidge", "not fitted yet", "'fit'"),
    "other columns": (lambda: clone(FITTED).fit(X, TARGET).predict(X[:, :1]), "1 feat", "2 feat"),
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


WARNED = {
    "large delta": (fit(lambda: RIDGE(delta=0.01)), skdp.PrivacyWarning, "delta=0.01.*1/n"),
    "labels of the rows": (fit(LOGISTIC), skdp.PrivacyWarning, r"classes=None.*classes=\[...\]"),
    "no noise": (fit(lambda: LOGISTIC(epsilon=np.inf)), skdp.PrivacyWarning, "NOT private"),
    "a seed": (fit(lambda: LOGISTIC(privacy=SEEDED)), skdp.SeededNoiseWarning, "NOT private"),
    "one row": (
        lambda: RIDGE(delta=0.1).plan(1, 2),
        skdp.NoiseWarning,
        "1 rows.*would suffice",
    ),
    "numbers as labels": (
        lambda: LOGISTIC().plan(500, 2, n_classes=200),
        skdp.NoiseWarning,
        "200 classes.*regressor",
    ),
    "few rows": (lambda: RIDGE().plan(20, 30), skdp.NoiseWarning, "31 parameters.*20 rows"),
    "little budget": (lambda: RIDGE(epsilon=1e-6).plan(N, 2), skdp.NoiseWarning, "epsilon=1e-06"),
}


@pytest.mark.parametrize("mistake", WARNED)
def test_a_warning_says_what_is_wrong(mistake):
    act, kind, message = WARNED[mistake]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=kind)
        with pytest.raises(kind) as found:
            act()
    assert re.search(message, str(found.value))
