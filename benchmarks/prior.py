"""Fits from a public model, next to that model and to the default without it.

Each run draws a public sample and private rows from one table, and fits them with ``prior``. The
sample matches the private rows, is shifted (it comes from the lower half of a column, and the
private rows from all of it), or has reversed or shuffled targets, so that its model is wrong.
"""

from __future__ import annotations

import warnings
from importlib import import_module

import numpy as np
from sklearn.metrics import log_loss, r2_score

import skdp
from benchmarks import results_file
from benchmarks.registry import Unavailable

EPSILONS = (0.1, 0.3, 1.0)
N_PUBLIC = 200
# Private rows and the column whose lower half a shifted sample comes from, by data set.
SETS = {
    "california_housing": (2_000, 0),
    "bike": (2_000, 0),
    "wine": (2_000, 0),
    "diamonds": (2_000, 0),
    "adult": (2_000, 0),
    "bank": (2_000, 0),
    "breast_cancer": (200, 0),
    "diabetes": (200, 0),
}
KINDS = ("match", "shift", "reversed", "useless")
COLUMNS = ("data", "kind", "epsilon", "runs", "public", "default", "prior", "error", "slope")


def tables(name: str, kind: str, seed: int):
    """Public X and y, private X and y, and those of a test."""
    split = import_module(f"benchmarks.datasets.{name}").load(seed)
    rng = np.random.default_rng(seed)
    X, y = np.asarray(split.X_train, dtype=float), np.asarray(split.y_train)
    order = rng.permutation(len(X))
    n_private, column = SETS[name]
    n_public = min(N_PUBLIC, len(X) - n_private)
    public, private = order[n_private:], order[:n_private]
    if kind == "shift":
        low = np.argsort(X[public, column], kind="stable")[: max(n_public, len(public) // 2)]
        public = rng.permutation(public[low])
    public = public[:n_public]
    targets = y[public]
    if kind == "useless":
        targets = rng.permutation(targets)
    if kind == "reversed":
        targets = (
            1 - targets if split.is_classification else targets.max() + targets.min() - targets
        )
    return (X[public], targets), (X[private], y[private]), (split.X_test, split.y_test)


def scored(model, X, y) -> float:
    """Return R2, or minus the log loss; both are higher if the model is better."""
    if hasattr(model, "predict_proba"):
        return -log_loss(y, model.predict_proba(X), labels=[0, 1])
    return r2_score(y, model.predict(X))


def one_run(name: str, kind: str, seed: int, epsilons) -> dict[float, tuple[float, ...]]:
    """Scores of the public model, the default and the fit from the prior, and its slope."""
    (P, q), (X, y), (X_test, y_test) = tables(name, kind, seed)
    is_label = set(np.unique(y)) <= {0, 1}
    make = skdp.DPLogisticRegression if is_label else skdp.DPRidge
    declared = {"classes": [0, 1]} if is_label else {}
    X_test = np.asarray(X_test, dtype=float)
    public = scored(make(epsilon=float("inf"), **declared).fit(P, q), X_test, y_test)
    found = {}
    for epsilon in epsilons:
        default = make(epsilon=epsilon, **declared).fit(X, y)
        sample = skdp.PublicSample(P, y=q)
        model = make(epsilon=epsilon, prior=sample, **declared).fit(X, y)
        pair = [scored(one, X_test, y_test) for one in (default, model)]
        found[epsilon] = (public, *pair, float(np.ravel(model.prior_fit_.coef_)[0]))
    return found


def months(output, command, runs: int = 50, epsilon: float = 0.3, n_rows: int = 1_000):
    """Fit 12 months of other people: from zero, from last month's coefficients, and its model."""
    scores = np.zeros((runs, 12, 3))
    for seed in range(runs):
        split = import_module("benchmarks.datasets.california_housing").load(seed)
        order = np.random.default_rng(seed).permutation(len(split.X_train))
        start, last = {}, None
        for month in range(12):
            rows = order[month * n_rows : (month + 1) * n_rows]
            X, y = split.X_train[rows], split.y_train[rows]
            plain, begun = (
                skdp.DPRidge(epsilon=epsilon).fit(X, y, **given) for given in ({}, start)
            )
            last = skdp.DPRidge(epsilon=epsilon, prior=last).fit(X, y)
            start = {"coef_init": begun.coef_, "intercept_init": begun.intercept_}
            test = split.X_test, split.y_test
            scores[seed, month] = [scored(one, *test) for one in (plain, begun, last)]
    columns = ("month", "alone", "coef_init", "prior", "error")
    errors = (scores[..., 2] - scores[..., 0]).std(axis=0, ddof=1) / runs**0.5
    found = np.column_stack([scores.mean(axis=0), errors])
    rows = [
        dict(zip(columns, (month, *(f"{one:.3f}" for one in line)), strict=True))
        for month, line in enumerate(found, 1)
    ]
    results_file.write(output, [command], columns, rows)
    return rows


def run(output, command, names=(), runs: int = 50, epsilons=EPSILONS) -> list[dict]:
    """Run all kinds of priors on all data sets, and write the means."""
    rows = []
    for name in names or SETS:
        for kind in KINDS:
            try:
                with warnings.catch_warnings(action="ignore"):
                    every = [one_run(name, kind, seed, epsilons) for seed in range(runs)]
            except Unavailable:
                print(f"{name}: skipped")
                break
            for epsilon in epsilons:
                scores = np.array([one[epsilon] for one in every])
                public, default, prior, slope = scores.mean(axis=0)
                error = (scores[:, 2] - scores[:, 1]).std(ddof=1) / runs**0.5 if runs > 1 else 0.0
                values = (public, default, prior, error, slope)
                texts = (f"{value:.4f}" for value in values)
                row = (name, kind, f"{epsilon:g}", str(runs), *texts)
                rows.append(dict(zip(COLUMNS, row, strict=True)))
                print(*row, flush=True)
    results_file.write(output, [command], COLUMNS, rows)
    return rows


def report(rows) -> list[str]:
    """Say by how much the fit from the prior is behind the better of its two rivals."""
    lines = []
    for kind in KINDS:
        for epsilon in sorted({row["epsilon"] for row in rows}, key=float):
            of = [row for row in rows if (row["kind"], row["epsilon"]) == (kind, epsilon)]
            rivals = ("public", "default") if kind in KINDS[:2] else ("default",)
            gaps = [float(r["prior"]) - max(float(r[one]) for one in rivals) for r in of]
            if gaps:
                worst = of[int(np.argmin(gaps))]["data"]
                lines.append(
                    f"{kind:9} epsilon {epsilon:4} next to the better of {' and '.join(rivals)}: "
                    f"mean {np.mean(gaps):+.3f}, worst {min(gaps):+.3f} ({worst})"
                )
    return lines
