"""When does it pay to hide the iterates (``release="last"``)?

Run `python -m benchmarks.papers.hidden_iterates`. Ridge regression without an intercept on
California housing, standardised, rows cut to norm 3 and divided by it, centred targets; plain steps
of 1.9/M, clipping norm 1, epsilon 0.3. The excess of the penalised training loss over its minimum
is given in parts of that at the start.
"""

from __future__ import annotations

import numpy as np

import skdp
from benchmarks.datasets import california_housing
from benchmarks.papers.noise_solvers import standardised
from benchmarks.papers.report import Report, errorbar, mean_and_error
from skdp.solvers import GradientDescent

EPSILON, DELTA, RUNS, STEP = 0.3, 1e-6, 8, 1.9
PENALTIES, STEPS = (0.003, 0.03), (100, 200, 400, 800, 1600)


def rows():
    split = standardised(california_housing.load(0))
    norms = np.linalg.norm(split.X_train, axis=1, keepdims=True)
    return split.X_train / np.maximum(norms, 3.0), split.y_train - split.y_train.mean()


def run(report):
    X, y = rows()
    n_rows, n_columns = X.shape
    for penalty in PENALTIES:
        hessian = X.T @ X / n_rows + penalty * np.eye(n_columns)
        best = np.linalg.solve(hessian, X.T @ y / n_rows)
        start = best @ hessian @ best
        for n_steps in STEPS:
            for release in ("all", "last"):
                excess = []
                for seed in range(RUNS):
                    model = skdp.DPRidge(
                        alpha=penalty * n_rows,
                        fit_intercept=False,
                        epsilon=EPSILON,
                        delta=DELTA,
                        scaling=skdp.RowNorm(1.0),
                        privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
                        solver=GradientDescent(
                            max_iter=n_steps,
                            learning_rate=STEP,
                            momentum=0.0,
                            averaging="last",
                            clip_norm=1.0,
                            release=release,
                        ),
                    ).fit(X, y)
                    away = model.coef_ - best
                    excess.append(away @ hessian @ away / start)
                report.add(
                    penalty=penalty,
                    steps=n_steps,
                    release=release,
                    noise=f"{model.privacy_.releases[0].noise_multiplier:.1f}",
                    **mean_and_error("excess", excess),
                )


def verdict(report):
    for penalty in PENALTIES:
        rows = [row for row in report.rows if row["penalty"] == penalty]
        least = {
            release: min(
                (row for row in rows if row["release"] == release),
                key=lambda row: float(row["excess"]),
            )
            for release in ("all", "last")
        }
        told = "; ".join(
            f"{release}: {float(row['excess']):.4f} at {row['steps']} steps, noise {row['noise']}"
            for release, row in least.items()
        )
        at_most = {row["release"]: row["noise"] for row in rows if row["steps"] == STEPS[-1]}
        yield (
            f"Penalty {penalty:g} per mean loss, 2/(step lambda) = {2 / (STEP * penalty):.0f} "
            f"steps. Least excess: {told}. At {STEPS[-1]} steps the noise multiplier is "
            f"{at_most['all']} where all answers are charged and {at_most['last']} where only the "
            "last iterate is."
        )


def draw(report, plt):
    figure, axes = plt.subplots(1, len(PENALTIES), figsize=(9, 4), layout="constrained")
    for ax, penalty in zip(axes, PENALTIES, strict=True):
        for release in ("all", "last"):
            rows = [
                row for row in report.rows if (row["penalty"], row["release"]) == (penalty, release)
            ]
            errorbar(ax, rows, "steps", "excess", label=f'release="{release}"')
        ax.set(xscale="log", yscale="log", xlabel="steps", title=f"penalty {penalty:g}")
        ax.legend()
    axes[0].set_ylabel("excess, relative to the start")
    return figure


def main():
    report = Report("hidden_iterates")
    report.attempt("california_housing", run)
    report.finish(verdict(report), draw)


if __name__ == "__main__":
    main()
