"""Seeded fits of every solver, estimator, adjacency and stage: what they give must not change.

Written to golden.json, which `test_golden.py` compares with, by

    python tests/golden/cases.py --overwrite
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

import skdp

TARGET = Path(__file__).parent / "golden.json"
LINEAR, RIDGE, LOGISTIC = skdp.DPLinearRegression, skdp.DPRidge, skdp.DPLogisticRegression
NUMBERS = ("coef_", "intercept_", "mean_", "scale_", "low_", "high_", "row_bound_", "n_iter_")
NUMBERS += ("n_gradients_",)


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
    "three classes": (LOGISTIC, (X, SEVERAL)),
}
BALL = {"constraint": "l2_ball", "radius": 2.0}


def fitted(model, *arguments, **options):
    """Return a function that fits a seeded model."""
    return lambda: model(noise_source="seeded", random_state=7, **options).fit(*arguments)


# Every solver once or twice; problems, adjacencies and scaling in turn.
SOLVERS = [
    ("auto", "linear", "zero_out", "auto", {}),
    ("auto", "ridge", "replace_one", "auto", {}),
    ("auto", "logistic", "zero_out", "none", {}),
    ("auto", "three classes", "replace_one", "auto", {}),
    ("accelerated_mirror_descent", "logistic", "zero_out", "none", BALL),
    ("adaptive_shuffled_sgd", "ridge", "replace_one", "auto", {}),
    ("adassp", "linear", "zero_out", "auto", {}),
    ("adp_sgd", "logistic", "replace_one", "auto", {}),
    ("boosted_ssp", "ridge", "zero_out", "none", {}),
    ("gd", "three classes", "zero_out", "auto", {}),
    ("gd", "linear", "replace_one", "none", {}),
    ("heavy_ball", "ridge", "replace_one", "auto", {}),
    ("multistage_nesterov", "logistic", "zero_out", "auto", {}),
    ("nesterov", "ridge", "zero_out", "none", {}),
    ("newton", "logistic", "replace_one", "auto", {}),
    ("objective_perturbation", "logistic", "zero_out", "auto", {}),
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
    ("bounds", "linear", "replace_one", {"bounds": (-3.0, 3.0)}),
    ("data_norm", "logistic", "zero_out", {"data_norm": 2.0}),
    ("no intercept", "ridge", "replace_one", {"fit_intercept": False}),
    ("exact", "logistic", "zero_out", {"epsilon": np.inf}),
    ("pure", "ridge", "replace_one", {"delta": 0.0, "epsilon": 5.0}),
    ("ball", "linear", "zero_out", BALL),
    ("batches", "logistic", "replace_one", {"batch_size": 50, "max_iter": 20}),
    ("adaptive clip", "three classes", "zero_out", {"clip_norm": "adaptive", "max_iter": 12}),
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
    recalibrated = {"calibration": "private", "solver": "gd", **replace_one}
    yield "calibrated, replace_one", fitted(LOGISTIC, X, LABELS, **recalibrated)
    yield "ridge_cv, replace_one", fitted(skdp.DPRidgeCV, X, Y, epsilon=2.0, **replace_one)
    yield "scaler, zero_out", fitted(skdp.DPStandardScaler, X, **zero_out)
    sparse_rows = sparse.csr_array(X)
    yield "sparse scaler, replace_one", fitted(skdp.DPStandardScaler, sparse_rows, **replace_one)
    for solver, adjacency in (("shuffled_sgd", zero_out), ("adaptive_shuffled_sgd", replace_one)):
        model = LINEAR(noise_source="seeded", random_state=7, solver=solver, **adjacency)
        yield (
            f"blocks, {solver}, {adjacency['adjacency']}",
            lambda model=model: model.fit_blocks(
                zip(np.array_split(X, 7), np.array_split(Y, 7), strict=True),
                n_samples=400,
                n_features=5,
            ),
        )
    # More rows than one part of a pass holds.
    large, targets, labels, *_ = data(40_000, 40)
    yield "large, auto, DPRidge", fitted(RIDGE, large, targets, solver="auto")
    yield (
        "large, whitened, DPLogisticRegression",
        fitted(LOGISTIC, large, labels, solver="whitened"),
    )


def described(make):
    """Return what a case gives: numbers, what was released and what it cost."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make()
    statement = model.privacy_
    return {
        "numbers": {
            name: np.atleast_1d(np.asarray(getattr(model, name), dtype=float)).tolist()
            for name in NUMBERS
            if getattr(model, name, None) is not None
        },
        "epsilon": statement.epsilon,
        "accountant": statement.accountant,
        "releases": [
            [record.kind, record.count, record.noise_multiplier] for record in statement.releases
        ],
    }


def main():
    """Write golden.json anew."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--overwrite", action="store_true")
    if TARGET.exists() and not parser.parse_args().overwrite:
        raise SystemExit(f"{TARGET} exists; pass --overwrite to replace it.")
    found = {name: described(make) for name, make in cases()}
    lines = (f"{json.dumps(name)}: {json.dumps(case)}" for name, case in found.items())
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
