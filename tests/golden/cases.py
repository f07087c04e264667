"""Seeded fits of every solver, estimator, adjacency and stage: what they give must not change."""

from __future__ import annotations

import hashlib
import itertools
import warnings

import numpy as np
from scipy import sparse

import skdp
from skdp.solvers import available

SEED = {"noise_source": "seeded", "random_state": 7}
ADJACENCIES = ("zero_out", "replace_one")


def data(n_rows=400, n_features=5):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n_rows, n_features)) * np.linspace(0.5, 2, n_features) + 0.3
    margin = X @ np.linspace(1, -1, n_features)
    y = margin + 0.3 * rng.standard_normal(n_rows) + 2.0
    labels = (margin > 0.3).astype(int)
    several = np.digitize(margin, [-1.0, 1.0])
    weights = rng.exponential(size=n_rows)
    return X, y, labels, several, weights


X, Y, LABELS, SEVERAL, WEIGHTS = data()
LARGE = data(40_000, 40)


def fitted(model, *arguments, **options):
    return lambda: model(**SEED, **options).fit(*arguments)


def cases():
    """Yield (name, function that returns a fitted model)."""
    linear, ridge, logistic = skdp.DPLinearRegression, skdp.DPRidge, skdp.DPLogisticRegression
    problems = {
        "linear": (linear, (X, Y)),
        "ridge": (ridge, (X, Y)),
        "logistic": (logistic, (X, LABELS)),
        "three classes": (logistic, (X, SEVERAL)),
    }
    # 1. Every solver on every problem, under both adjacencies, with and without scaling.
    for solver, kind, adjacency, scaling in itertools.product(
        ["auto", *available()], problems, ADJACENCIES, ("auto", "none")
    ):
        model, arguments = problems[kind]
        options = {"solver": solver, "adjacency": adjacency, "scaling": scaling, "epsilon": 2.0}
        yield f"{solver}, {kind}, {adjacency}, {scaling}", fitted(model, *arguments, **options)
    # 2. Other inputs and stages, with the default solver.
    for adjacency in ADJACENCIES:
        for kind, (model, arguments) in problems.items():
            more = {
                "private": {"scaling": "private"},
                "bounds": {"bounds": (-3.0, 3.0)},
                "data_norm": {"data_norm": 2.0},
                "no intercept": {"fit_intercept": False},
                "exact": {"epsilon": np.inf},
                "pure": {"delta": 0.0, "epsilon": 5.0},
                "ball": {"constraint": "l2_ball", "radius": 2.0},
                "batches": {"batch_size": 50, "max_iter": 20},
                "adaptive clip": {"clip_norm": "adaptive", "max_iter": 12},
            }
            for name, options in more.items():
                options = {"adjacency": adjacency, "epsilon": 2.0, **options}
                yield f"{name}, {kind}, {adjacency}", fitted(model, *arguments, **options)
            first, *rest = arguments
            inputs = {
                "float32": (first.astype(np.float32), *rest),
                "sparse": (sparse.csr_array(first), *rest),
                "weights": (first, *rest, WEIGHTS),
            }
            for name, given in inputs.items():
                yield f"{name}, {kind}, {adjacency}", fitted(model, *given, adjacency=adjacency)
        yield f"two targets, {adjacency}", fitted(ridge, X, np.c_[Y, -Y], adjacency=adjacency)
        yield f"l1, {adjacency}", fitted(logistic, X, LABELS, l1_ratio=1.0, adjacency=adjacency)
        yield (
            f"calibrated, {adjacency}",
            fitted(logistic, X, LABELS, calibration="private", solver="gd", adjacency=adjacency),
        )
        yield f"scaler, {adjacency}", fitted(skdp.DPStandardScaler, X, adjacency=adjacency)
        yield (
            f"sparse scaler, {adjacency}",
            fitted(skdp.DPStandardScaler, sparse.csr_array(X), adjacency=adjacency),
        )
        for solver in ("shuffled_sgd", "adaptive_shuffled_sgd"):
            model = linear(solver=solver, adjacency=adjacency, **SEED)
            yield (
                f"blocks, {solver}, {adjacency}",
                lambda model=model: model.fit_blocks(
                    zip(np.array_split(X, 7), np.array_split(Y, 7), strict=True),
                    n_samples=400,
                    n_features=5,
                ),
            )
    # 3. More rows than one part of a pass holds.
    for solver in ("auto", "gd", "whitened", "adassp", "newton", "svrg", "adaptive_shuffled_sgd"):
        for model, index in ((ridge, 1), (logistic, 2)):
            given = (LARGE[0], LARGE[index])
            yield f"large, {solver}, {model.__name__}", fitted(model, *given, solver=solver)


def described(make):
    """Return what a case gives: digests of numbers and of the statement, or the refusal."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = make()
        except (ValueError, FloatingPointError) as refusal:
            return {"refused": type(refusal).__name__}
    numbers = {}
    for name in (
        "coef_",
        "intercept_",
        "mean_",
        "scale_",
        "low_",
        "high_",
        "row_bound_",
        "n_iter_",
        "n_gradients_",
    ):
        if hasattr(model, name) and getattr(model, name) is not None:
            numbers[name] = np.atleast_1d(np.asarray(getattr(model, name), dtype=float))
    statement = model.privacy_
    text = "\n".join(
        [f"{statement.epsilon!r} {statement.accountant} {statement.noise_source}"]
        + [f"{r.kind} {r.count} {r.noise_multiplier!r}" for r in statement.releases]
    )
    digest = hashlib.sha256()
    for name, values in sorted(numbers.items()):
        digest.update(name.encode() + values.tobytes())
    return {
        "digest": digest.hexdigest()[:16],
        "statement": hashlib.sha256(text.encode()).hexdigest()[:16],
        "releases": [f"{r.kind} x {r.count}" for r in statement.releases][:6],
        "epsilon": statement.epsilon,
        "first": [float(f"{v:.6g}") for v in next(iter(numbers.values())).ravel()[:4]],
        "warnings": sorted({str(w.category.__name__) for w in caught}),
    }
