"""What delta = 0 costs: Laplace noise beside Gaussian noise, and private selection.

Columns of the data sets are standardised beforehand, which is not part of the budget. For the
selection, five of 100 or 1000 normal columns make a target of variance 0.23, to which noise of
variance 0.09 is added, and every method has the smallest L1 ball in which the true coefficients
lie (Talwar, Thakurta, Zhang 2015).
"""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler

import skdp
from benchmarks.datasets import adult, breast_cancer, california_housing, diabetes, digits
from benchmarks.papers.report import chosen, columns_of, errorbar, shown
from benchmarks.registry import Unavailable

DELTAS = (0.0, 1e-6)
# Data set, number of runs, and columns to keep.
DATA = {
    "breast_cancer": (breast_cancer, 10, None),
    "diabetes": (diabetes, 10, None),
    "digits": (digits, 5, None),
    "california_housing": (california_housing, 5, None),
    "adult, first 6 columns": (adult, 3, 6),
    "adult": (adult, 2, None),
}
TRUTH, NOISE, RUNS, N_TEST = np.array([0.3, -0.25, 0.2, -0.15, 0.1]), 0.3, 3, 4000
SHAPES = ((2000, 100), (20_000, 100), (20_000, 1000))
METHODS = (("frank_wolfe", 0.0), ("gd", 0.0), ("gd", 1e-6))


def score_of_data(split, n_columns, delta, seed):
    scaler = StandardScaler().fit(split.X_train)
    X, X_test = (scaler.transform(Z)[:, :n_columns] for Z in (split.X_train, split.X_test))
    privacy = skdp.Privacy(noise=skdp.SeededNoise(seed))
    given = {"solver": "gd", "delta": delta, "privacy": privacy, "scaling": "none"}
    if split.is_classification:
        model = skdp.DPLogisticRegression(classes=split.classes, **given)
    else:
        model = skdp.DPLinearRegression(**given)
    return model.fit(X, split.y_train).score(X_test, split.y_test)


def score_of_selection(n_rows, n_columns, solver, delta, seed):
    """R2 of a fit's predictions without the noise of the targets."""
    rng = np.random.default_rng(seed)
    X, X_test = (rng.standard_normal((n, n_columns)) for n in (n_rows, N_TEST))
    margin, wanted = (Z[:, : len(TRUTH)] @ TRUTH for Z in (X, X_test))
    model = skdp.DPLinearRegression(
        delta=delta,
        solver=solver,
        constraint=skdp.objective.L1Ball(float(np.abs(TRUTH).sum())),
        fit_intercept=False,
        scaling="none",
        privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
    )
    return model.fit(X, margin + NOISE * rng.standard_normal(n_rows)).score(X_test, wanted)


def run(report):
    for name, (dataset, runs, n_columns) in DATA.items():
        try:
            splits = [dataset.load(seed) for seed in range(2 if report.quick else runs)]
        except Unavailable as reason:
            print(f"{name} is left out: {reason}")
            continue
        n_rows, n_all = splits[0].X_train.shape
        for delta in DELTAS:
            scores = [score_of_data(one, n_columns, delta, i) for i, one in enumerate(splits)]
            shape = {"n_rows": n_rows, "n_columns": n_columns or n_all, "delta": delta}
            report.add(part="data", data=name, **shape, **columns_of("score", scores))
    for shape in SHAPES[: 1 if report.quick else None]:
        for solver, delta in METHODS:
            scores = [score_of_selection(*shape, solver, delta, seed) for seed in range(RUNS)]
            facts = {"n_rows": shape[0], "n_columns": shape[1], "solver": solver, "delta": delta}
            report.add(part="selection", **facts, **columns_of("score", scores))


def verdict(rows):
    here = chosen(rows, part="data")
    for name in dict.fromkeys(row["data"] for row in here):
        pure, other = (chosen(here, data=name, delta=delta)[0] for delta in DELTAS)
        yield (
            f"{name} ({pure['n_rows']:,.0f} rows, {pure['n_columns']:.0f} columns)",
            f"delta = 0: {shown(pure, 'score', 3)}; delta = 1e-6: {shown(other, 'score', 3)}",
            f"costs {other['score'] - pure['score']:.3f}",
        )
    here = chosen(rows, part="selection")
    for n_rows, n_columns in dict.fromkeys((row["n_rows"], row["n_columns"]) for row in here):
        scores = [
            chosen(here, n_rows=n_rows, n_columns=n_columns, solver=solver, delta=delta)[0]["score"]
            for solver, delta in METHODS
        ]
        yield (
            f"L1 ball, {n_rows:,.0f} rows, {n_columns:,.0f} columns",
            f"R2 of frank_wolfe {scores[0]:.2f}, of gd {scores[1]:.2f}; of gd with delta = 1e-6 "
            f"{scores[2]:.2f}",
            "frank_wolfe for delta = 0" if scores[0] > scores[1] else "gd",
        )


def draw(rows, plt):
    figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for delta in DELTAS:
        errorbar(
            ax,
            chosen(rows, part="data", delta=delta),
            "data",
            "score",
            label=f"delta {delta:g}",
            ls="",
            marker="o",
        )
    ax.tick_params("x", rotation=20)
    ax.set(ylabel="test score at epsilon 1")
    ax.legend()
    return figure
