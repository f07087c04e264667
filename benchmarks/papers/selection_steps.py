"""Frank-Wolfe with private selection on the L1 ball: where is it worth having?

Run `python -m benchmarks.papers.selection_steps`. Five of 100 or 1000 normal columns make a target
of variance 0.23, to which noise of variance 0.09 is added. Every method has the smallest ball in
which the true coefficients lie. The paper is Talwar, Thakurta, Zhang 2015.
"""

from __future__ import annotations

import itertools

import numpy as np

import skdp
from benchmarks.papers.report import Report, errorbar, mean_and_error

TRUTH, NOISE, RUNS, N_TEST = (0.3, -0.25, 0.2, -0.15, 0.1), 0.3, 3, 4000
EPSILONS = (0.3, 1.0, 3.0)
SHAPES = ((2000, 100), (2000, 1000), (20_000, 100), (20_000, 1000))
METHODS = {
    "frank_wolfe, delta=0": ("frank_wolfe", 0.0),
    "gd, delta=0": ("gd", 0.0),
    "frank_wolfe, delta=1e-6": ("frank_wolfe", 1e-6),
    "gd, delta=1e-6": ("gd", 1e-6),
    "mirror descent, delta=1e-6": ("accelerated_mirror_descent", 1e-6),
}


def score(n_rows, n_columns, solver, delta, epsilon, seed):
    """R2 of a fit's predictions without the noise of the targets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns))
    X_test = rng.standard_normal((N_TEST, n_columns))
    truth = np.zeros(n_columns)
    truth[: len(TRUTH)] = TRUTH
    model = skdp.DPLinearRegression(
        epsilon=epsilon,
        delta=delta,
        solver=solver,
        constraint=skdp.objective.L1Ball(sum(map(abs, TRUTH))),
        fit_intercept=False,
        scaling="none",
        privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
    )
    model.fit(X, X @ truth + NOISE * rng.standard_normal(n_rows))
    return model.score(X_test, X_test @ truth)


def measure(report, shape):
    for (method, (solver, delta)), epsilon in itertools.product(METHODS.items(), EPSILONS):
        found = [score(*shape, solver, delta, epsilon, seed) for seed in range(RUNS)]
        report.add(
            rows=shape[0],
            columns=shape[1],
            method=method,
            epsilon=epsilon,
            **mean_and_error("score", found),
        )


def verdict(report):
    """Sentences that follow from the table."""
    for shape, epsilon in itertools.product(SHAPES, EPSILONS):
        found = [
            f"{row['method']} {float(row['score']):.2f} (+-{float(row['score_error']):.2f})"
            for row in report.rows
            if (row["rows"], row["columns"], row["epsilon"]) == (*shape, epsilon)
        ]
        yield f"{shape[0]} x {shape[1]}, epsilon {epsilon:g}: {'; '.join(found)}."


def draw(report, plt):
    figure, axes = plt.subplots(1, len(SHAPES), figsize=(14, 4), layout="constrained")
    for ax, shape in zip(axes, SHAPES, strict=True):
        for method in METHODS:
            chosen = (*shape, method)
            rows = [r for r in report.rows if (r["rows"], r["columns"], r["method"]) == chosen]
            errorbar(ax, rows, "epsilon", "score", label=method)
        ax.set(title=f"{shape[0]} x {shape[1]}", xscale="log", xlabel="epsilon", ylim=(-0.5, 1.02))
    axes[0].set_ylabel("R2")
    axes[0].legend(fontsize=7)
    return figure


def main():
    report = Report("selection_steps")
    for shape in SHAPES:
        report.attempt(f"{shape[0]} x {shape[1]}", measure, shape)
    report.finish(verdict(report), draw)


if __name__ == "__main__":
    main()
