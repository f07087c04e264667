"""Seeded fits of every solver, estimator, adjacency, stage and kind of rows, and their results.

`test_golden.py` compares fits with golden.json, up to rounding. This script writes the file, and
lists the cases that differ from it in any bit (names of releases excepted) on one machine:

    python tests/golden/cases.py --overwrite
    python tests/golden/cases.py --compare
"""

from __future__ import annotations

import argparse
import functools
import json
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scipy import sparse

import skdp
from skdp.metrics import evaluate
from skdp.model_selection import DPSearchCV

TARGET = Path(__file__).parent / "golden.json"
LINEAR, RIDGE = skdp.DPLinearRegression, skdp.DPRidge
LOGISTIC = functools.partial(skdp.DPLogisticRegression, classes=[0, 1])
NUMBERS = ("coef_", "intercept_", "mean_", "scale_", "low_", "high_", "row_bound_", "n_iter_")
NUMBERS += (
    "n_gradients_",
    "alpha_",
    "best_score_",
    "prediction_range_",
    "coef_std_error_",
    "cv_errors_",
)
COUNTS = ("n_iter_", "n_gradients_")
TERMS = ("adjacency", "rows_per_group")
# Sentences may be reworded; their number may not change.
PROSE = ("assumptions", "expectations", "notes")


def data(n_rows=400, n_features=5):
    """X, targets, two and three classes, weights."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n_rows, n_features)) * np.linspace(0.5, 2, n_features) + 0.3
    margin = X @ np.linspace(1, -1, n_features)
    y = margin + 0.3 * rng.standard_normal(n_rows) + 2.0
    labels = (margin > 0.3).astype(int)
    several = np.digitize(margin, [-1.0, 1.0])
    return X, y, labels, several, rng.exponential(size=n_rows)


X, Y, LABELS, SEVERAL, WEIGHTS = data()
KINDS = {
    "linear": (LINEAR, (X, Y)),
    "ridge": (RIDGE, (X, Y)),
    "logistic": (LOGISTIC, (X, LABELS)),
    "three classes": (functools.partial(LOGISTIC, classes=[0, 1, 2]), (X, SEVERAL)),
}
BALL = {"constraint": skdp.objective.L2Ball(2.0)}
L1_BALL = {"constraint": skdp.objective.L1Ball(2.0), "fit_intercept": False}
SEED = skdp.SeededNoise(7)


def fitted(model, *arguments, groups=None, **options):
    """Return a function that fits a seeded model."""
    rows = {} if groups is None else {"groups": groups}
    terms = {name: options.pop(name) for name in TERMS if name in options}
    privacy = skdp.Privacy(noise=SEED, **terms)
    return lambda: model(privacy=privacy, **options).fit(*arguments, **rows)


# Every solver once or twice; problems, adjacencies and scaling in turn.
SOLVERS = [
    ("auto", "linear", "zero_out", "auto", {}),
    ("auto", "ridge", "replace_one", "auto", {}),
    ("auto", "logistic", "zero_out", "none", {}),
    ("auto", "three classes", "replace_one", "auto", {}),
    ("accelerated_mirror_descent", "logistic", "zero_out", "none", {"constraint": "l1_ball"}),
    ("adaptive_shuffled_sgd", "ridge", "replace_one", "auto", {}),
    ("adp_sgd", "logistic", "replace_one", "auto", {}),
    ("boosted_ssp", "ridge", "zero_out", "none", {}),
    ("frank_wolfe", "linear", "zero_out", "none", L1_BALL),
    ("laplace_newton", "ridge", "replace_one", "auto", {"delta": 0.0}),
    ("gd", "three classes", "zero_out", "auto", {}),
    ("gd", "linear", "replace_one", "none", {}),
    ("heavy_ball", "ridge", "replace_one", "auto", {}),
    ("multistage_nesterov", "logistic", "zero_out", "auto", {}),
    ("nesterov", "ridge", "zero_out", "none", {}),
    ("residual_budget", "three classes", "replace_one", "none", {}),
    ("shuffled_sgd", "linear", "zero_out", "auto", {}),
    ("svrg", "logistic", "replace_one", "none", {}),
    ("svrg++", "ridge", "zero_out", "auto", {}),
    ("whitened", "three classes", "replace_one", "auto", {}),
    ("whitened", "linear", "zero_out", "none", {}),
]
# With the solver that is chosen, at epsilon 2.
OPTIONS = [
    ("private", "three classes", "zero_out", {"scaling": "private"}),
    ("bounds", "linear", "replace_one", {"scaling": skdp.PublicRange(-3.0, 3.0)}),
    ("data_norm", "logistic", "zero_out", {"scaling": skdp.RowNorm(2.0)}),
    ("no intercept", "ridge", "replace_one", {"fit_intercept": False}),
    ("exact", "logistic", "zero_out", {"epsilon": np.inf}),
    ("pure", "ridge", "replace_one", {"delta": 0.0, "epsilon": 5.0}),
    ("ball", "linear", "zero_out", BALL),
    (
        "batches",
        "logistic",
        "replace_one",
        {"solver": ("auto", {"batch_size": 50}), "max_iter": 20},
    ),
]


def cases():
    """Yield (name, function that returns a fitted model)."""
    for solver, kind, adjacency, scaling, more in SOLVERS:
        model, arguments = KINDS[kind]
        options = {"solver": solver, "adjacency": adjacency, "scaling": scaling, "epsilon": 2.0}
        yield (
            f"{solver}, {kind}, {adjacency}, {scaling}",
            fitted(model, *arguments, **options, **more),
        )
    for name, kind, adjacency, options in OPTIONS:
        model, arguments = KINDS[kind]
        options = {"adjacency": adjacency, "epsilon": 2.0, **options}
        yield f"{name}, {kind}, {adjacency}", fitted(model, *arguments, **options)
    # Other inputs and stages.
    zero_out, replace_one = ({"adjacency": name} for name in ("zero_out", "replace_one"))
    yield "float32, linear, zero_out", fitted(LINEAR, X.astype(np.float32), Y, **zero_out)
    yield "sparse, ridge, replace_one", fitted(RIDGE, sparse.csr_array(X), Y, **replace_one)
    yield "weights, logistic, zero_out", fitted(LOGISTIC, X, LABELS, WEIGHTS, **zero_out)
    yield "two targets, replace_one", fitted(RIDGE, X, np.c_[Y, -Y], **replace_one)
    yield "l1, zero_out", fitted(LOGISTIC, X, LABELS, l1_ratio=1.0, **zero_out)
    recalibrated = {"solver": "gd", **replace_one}
    yield "calibrated, replace_one", fitted(LOGISTIC, X, LABELS, **recalibrated)
    yield "scaler, zero_out", fitted(skdp.DPStandardScaler, X, **zero_out)
    sparse_rows = sparse.csr_array(X)
    yield "sparse scaler, replace_one", fitted(skdp.DPStandardScaler, sparse_rows, **replace_one)
    for solver, adjacency in (("shuffled_sgd", zero_out), ("adaptive_shuffled_sgd", replace_one)):
        model = LINEAR(privacy=skdp.Privacy(noise=SEED, **adjacency), solver=solver)
        yield (
            f"blocks, {solver}, {adjacency['adjacency']}",
            lambda model=model: model.fit_blocks(
                zip(np.array_split(X, 7), np.array_split(Y, 7), strict=True),
                n_samples=400,
                n_features=5,
            ),
        )
    seeded = {"privacy": skdp.Privacy(noise=SEED)}
    codes = np.arange(len(X)) // 3
    huber, net = skdp.DPHuberRegressor, skdp.DPElasticNet
    yield "huber, zero_out", fitted(huber, X, Y, scaling="none", **zero_out)
    yield "elastic net, replace_one", fitted(net, X, Y, **replace_one)
    yield "label, ridge", fitted(RIDGE, X, Y, adjacency="label")
    yield "label, logistic", fitted(LOGISTIC, X, LABELS, adjacency="label")
    yield "groups, ridge, replace_one", fitted(RIDGE, X, Y, groups=codes, **replace_one)
    means = {"rows_per_group": 3.0, "solver": "gd", **zero_out}
    yield "means of groups, logistic", fitted(LOGISTIC, X, LABELS, groups=codes, **means)
    inferred = {"inference": "coefficients", "epsilon": 5.0}
    yield "inference, ridge, zero_out", fitted(RIDGE, X, Y, **inferred, **zero_out)
    yield (
        "inference, logistic, replace_one",
        fitted(LOGISTIC, X, LABELS, **inferred, **replace_one),
    )
    sample = skdp.PublicSample(X[:40])
    yield "public sample, ridge", fitted(RIDGE, X[40:], Y[40:], scaling=sample, **zero_out)
    tail = np.exp(0.8 * X)  # long tails, so that ranges of columns are enlarged on the way
    yield "long tails, ridge", fitted(RIDGE, tail, tail @ np.ones(5), epsilon=20.0, **zero_out)
    yield "chunks, ridge, zero_out", fitted(RIDGE, skdp.data.Chunks(X, Y, 90), **zero_out)
    yield "chunks, logistic", fitted(LOGISTIC, skdp.data.Chunks(X, LABELS, 90), classes=[0, 1])
    for name, (model, arguments) in KINDS.items():
        yield (
            f"scores, {name}",
            lambda model=model, arguments=arguments: evaluate(
                model(epsilon=np.inf).fit(*arguments), *arguments, epsilon=2.0, **seeded
            ),
        )
    yield (
        "search, ridge",
        lambda: DPSearchCV(
            RIDGE(), {"alpha": [0.1, 10.0]}, epsilon=5.0, n_candidates=3, **seeded
        ).fit(X, Y),
    )
    # More rows than one part of a pass holds.
    large, targets, labels, *_ = data(40_000, 40)
    yield "large, auto, DPRidge", fitted(RIDGE, large, targets, solver="auto")
    yield (
        "large, whitened, DPLogisticRegression",
        fitted(LOGISTIC, large, labels, solver="whitened"),
    )


def described(make):
    """Return what a case gives: numbers, the statement, and the plan of the same fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make()
        plan = plain(model.plan(**shape_of(model))) if hasattr(model, "plan") else {}
    statement = plain(model.privacy_)
    # Without noise the number of steps depends on rounding, and so on the processor.
    left_out = COUNTS if getattr(model, "epsilon", 1.0) == np.inf else ()
    return {
        "numbers": {
            name: np.atleast_1d(np.asarray(getattr(model, name), dtype=float)).tolist()
            for name in NUMBERS
            if name not in left_out and getattr(model, name, None) is not None
        },
        "scores": scores_of(model) if isinstance(model, Mapping) else {},
        "statement": statement,
        "plan, where it differs": {k: v for k, v in plan.items() if v != statement[k]},
    }


def scores_of(scores):
    """Return private scores with the noise that they state."""
    return {
        name: [score.value, score.noise_std, score.sampling_std] for name, score in scores.items()
    }


def shape_of(model):
    """Return the public shape of a fitted model's rows, as `plan` takes it."""
    n_rows, n_groups = model.privacy_.n_rows, model.privacy_.n_groups
    shape = {"n_samples": n_rows, "n_features": model.n_features_in_}
    return shape if n_groups is None else {**shape, "n_groups": n_groups}


def plain(statement):
    """Return a statement as plain objects, with the number of its sentences for the sentences."""
    stated = statement.to_dict()
    return {**stated, **{name: len(stated[name]) for name in PROSE}}


def flat(value, path=""):
    """Yield (path, number or text) of everything in nested plain objects, but names of releases."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            if key != "kind":
                yield from flat(item, f"{path}/{key}")
    else:
        yield path, value


def compare(results):
    """Print every figure that differs from golden.json in any bit."""
    expected = json.loads(TARGET.read_text())
    for name in sorted(results.keys() | expected.keys()):
        old, new = (dict(flat(every.get(name, {}))) for every in (expected, results))
        changed = [
            path for path in sorted(old.keys() | new.keys()) if old.get(path) != new.get(path)
        ]
        for path in changed[:5]:
            print(f"{name}: {path}: {old.get(path)} -> {new.get(path)}")
    print(f"{len(results)} cases compared.")


def main():
    """Write golden.json anew, or compare with it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--overwrite", action="store_true")
    parser.add_argument("--compare", action="store_true")
    options = parser.parse_args()
    if TARGET.exists() and not (options.overwrite or options.compare):
        raise SystemExit(f"{TARGET} exists; pass --overwrite to replace it.")
    results = {name: json.loads(json.dumps(described(make))) for name, make in cases()}
    if options.compare:
        compare(results)
    else:
        lines = (f"{json.dumps(name)}: {json.dumps(case)}" for name, case in results.items())
        TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
