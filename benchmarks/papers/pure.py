"""Is delta = 0 of use by default? Laplace noise beside Gaussian noise on real data.

Run `python -m benchmarks.papers.pure`. Columns are standardised beforehand, which is not part of
the budget. The accelerated solvers get a penalty of 0.01 |w|^2 / 2 on the mean loss: they need one.
"""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler

import skdp
from benchmarks.datasets import adult, breast_cancer, california_housing, diabetes, digits
from benchmarks.papers.report import Report, mean_and_error

EPSILONS, PENALTY = (1.0, 4.0), 0.01
METHODS = {
    "gd, delta=0": ("gd", {}, 0.0),
    "nesterov, delta=0": ("nesterov", {}, 0.0),
    "multistage, delta=0": ("multistage_nesterov", {}, 0.0),
    "heavy_ball, delta=0": ("heavy_ball", {}, 0.0),
    "nesterov, private L, delta=0": ("nesterov", {"curvature": "private"}, 0.0),
    "gd, delta=1e-6": ("gd", {}, 1e-6),
    "nesterov, delta=1e-6": ("nesterov", {}, 1e-6),
}
# Data set, number of runs, and columns to keep.
DATA = {
    "breast_cancer": (breast_cancer, 10, None),
    "diabetes": (diabetes, 10, None),
    "digits": (digits, 5, None),
    "california_housing": (california_housing, 5, None),
    "adult, first 6 columns": (adult, 3, 6),
    "adult": (adult, 2, None),
}


def fit(split, n_columns, solver, parameters, delta, epsilon, seed):
    """Test score and steps of one fit."""
    scaler = StandardScaler().fit(split.X_train)
    X, X_test = (scaler.transform(Z)[:, :n_columns] for Z in (split.X_train, split.X_test))
    options = {
        "solver": skdp.solvers.get_solver(solver, **parameters),
        "epsilon": epsilon,
        "delta": delta,
        "privacy": skdp.Privacy(noise=skdp.SeededNoise(seed)),
        "scaling": "none",
    }
    n_rows = len(X)
    if split.is_classification:
        strength = {} if solver == "gd" else {"C": 1 / (PENALTY * n_rows)}
        model = skdp.DPLogisticRegression(classes=split.classes, **options, **strength)
    elif solver == "gd":
        model = skdp.DPLinearRegression(**options)
    else:
        model = skdp.DPRidge(alpha=PENALTY * n_rows, **options)
    model.fit(X, split.y_train)
    return model.score(X_test, split.y_test), model.n_iter_


def measure(report, data, dataset, runs, n_columns):
    splits = [dataset.load(seed) for seed in range(runs)]
    for method, (solver, parameters, delta) in METHODS.items():
        for epsilon in EPSILONS:
            found = np.array(
                [
                    fit(split, n_columns, solver, parameters, delta, epsilon, seed)
                    for seed, split in enumerate(splits)
                ]
            )
            report.add(
                data=data,
                rows=len(splits[0].X_train),
                columns=n_columns or splits[0].X_train.shape[1],
                method=method,
                epsilon=epsilon,
                runs=runs,
                steps=int(np.median(found[:, 1])),
                **mean_and_error("score", found[:, 0]),
            )


def verdict(report):
    """Sentences that follow from the table."""
    yield "Test scores (accuracy, R2 for regression), default settings, after StandardScaler."
    for epsilon in EPSILONS:
        for data in DATA:
            found = [
                f"{row['method']} {float(row['score']):.3f} (+-{float(row['score_error']):.3f}, "
                f"{row['steps']} steps)"
                for row in report.rows
                if (row["data"], row["epsilon"]) == (data, epsilon)
            ]
            yield f"epsilon {epsilon:g}, {data}: {'; '.join(found)}."


def draw(report, plt):
    figure, axes = plt.subplots(1, len(EPSILONS), figsize=(13, 4), layout="constrained")
    for ax, epsilon in zip(axes, EPSILONS, strict=True):
        for i, method in enumerate(METHODS):
            chosen = [r for r in report.rows if (r["method"], r["epsilon"]) == (method, epsilon)]
            ax.errorbar(
                np.arange(len(chosen)) + 0.1 * (i - 3),
                [max(0.0, float(row["score"])) for row in chosen],
                [float(row["score_error"]) for row in chosen],
                fmt="o",
                capsize=2,
                label=method,
            )
        ax.set_xticks(range(len(DATA)), [name.replace(", ", ",\n") for name in DATA], fontsize=7)
        ax.set(title=f"epsilon = {epsilon:g}", ylabel="test score, 0 if below")
    axes[0].legend(fontsize=6)
    return figure


def main():
    report = Report("pure")
    for data, settings in DATA.items():
        report.attempt(data, measure, data, *settings)
    report.finish(verdict(report), draw)


if __name__ == "__main__":
    main()
