"""[W17], Figures 1 and 2 as printed: numbers of steps, batches, step sizes and noise.

Run `python -m benchmarks.papers.w17_literal`; `again` after it judges and draws the last run anew.
Nothing here is private at the epsilon that it names: the noise is the printed one, constant 1, and
what it costs stands beside. `benchmarks.papers.w17_passes` has the runs with noise that an
accountant certifies.

Rows of covertype (class 2 against the rest) have unit norm, so that G = 1 and L = 1/4, and
delta = 1e-3. Fig. 1 has an L2 penalty of 1e-2: DP-SVRG takes 15 epochs of 5000 single records with
Barzilai-Borwein steps (Tan, Ma, Dai, Qian 2016, the first of them 0.1), DP-GD 1500 steps, whose
size is not printed: 1 / (L + penalty) here. Fig. 2 has no penalty: DP-SVRG++ takes epochs of 10,
20, 40, ... records with steps of 0.01, DP-GD 1000 steps of 0.1. The paper's formula for the loss,
log(1 + exp(1 + y w'x)), is read as the logistic loss. Both algorithms return a point at any time,
so their gaps are drawn against gradients and against seconds after every epoch.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from scipy.special import expit

from benchmarks.papers import w17
from benchmarks.papers.report import Report, mean_and_error
from benchmarks.papers.theory import printed_noise

EPSILONS, SEEDS = w17.EPSILONS, 3
SMOOTHNESS, FIRST_STEP = 0.25, 0.1
DRAWN_STEPS = 40  # points of a curve of gradient descent


def unit_rows():
    X, y = w17.covertype()
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


class Problem:
    """Mean logistic loss with an L2 penalty, its gradients, and what has been spent on them."""

    def __init__(self, X, y, strength):
        self.X, self.y, self.strength = X, y, strength
        self.best = w17.exact(X, y, strength or 1e-12, "newton-cholesky")

    def gradient(self, w):
        return self.X.T @ (expit(self.X @ w) - self.y) / len(self.y)

    def gap(self, w):
        return w17.objective(w, self.X, self.y, self.strength) - self.best


def gradient_descent(problem, noise, n_steps, size, rng):
    """Yield (gradients next to n, iterate), now and then."""
    w = np.zeros(problem.X.shape[1])
    std = noise.multiplier / len(problem.y)
    for step in range(1, n_steps + 1):
        noisy = problem.gradient(w) + std * rng.standard_normal(len(w))
        w = w - size * (noisy + problem.strength * w)
        if step % (n_steps // DRAWN_STEPS) == 0:
            yield step, w


def variance_reduced(problem, noise, lengths, size, rng):
    """Yield (gradients next to n, snapshot) after every epoch; size None: Barzilai-Borwein."""
    n_rows, n_columns = problem.X.shape
    snapshot, iterate, gradients, former = np.zeros(n_columns), np.zeros(n_columns), 0.0, None
    doubles = size is not None  # SVRG++ goes on from its last iterate, SVRG from the snapshot
    for length in lengths:
        exact = problem.gradient(snapshot)
        eta = size
        if eta is None:
            penalised = exact + problem.strength * snapshot
            eta = FIRST_STEP
            if former is not None:
                change = snapshot - former[0]
                eta = change @ change / (length * (change @ (penalised - former[1])))
            former = snapshot, penalised
        w = iterate if doubles else snapshot
        rows = problem.X[rng.integers(n_rows, size=length)]
        constant = exact[None] + noise.multiplier * rng.standard_normal((length, n_columns))
        before = expit(rows @ snapshot)
        total, shrinkage = np.zeros(n_columns), 1 / (1 + eta * problem.strength)
        for row, more, at_snapshot in zip(rows, constant, before, strict=True):
            # The label cancels in the difference of two gradients of one record.
            w = shrinkage * (w - eta * ((expit(row @ w) - at_snapshot) * row + more))
            total += w
        snapshot, iterate = total / length, w
        gradients += 1 + 2 * length / n_rows
        yield gradients, snapshot


def runs(n_rows):
    """Figure, method, penalty, printed noise's name and steps, and the run itself."""
    doubled = [10 * 2**s for s in range(1, 16)]
    gd_size = 1 / (SMOOTHNESS + w17.STRENGTH)
    for figure, strength, methods in (
        (
            "Fig. 1",
            w17.STRENGTH,
            {
                "DP-GD": ("W17 gd", 1500, gradient_descent, 1500, gd_size),
                "DP-SVRG": ("W17 svrg", 75_000, variance_reduced, [5000] * 15, None),
            },
        ),
        (
            "Fig. 2",
            0.0,
            {
                "DP-GD": ("W17 gd", 1000, gradient_descent, 1000, 0.1),
                "DP-SVRG++": ("W17 svrg", sum(doubled), variance_reduced, doubled, 0.01),
            },
        ),
    ):
        for method, (paper, n_steps, run, *arguments) in methods.items():
            noises = {e: printed_noise(paper, e, w17.DELTA, n_rows, n_steps) for e in EPSILONS}
            yield figure, strength, method, noises, run, arguments


def measure(report):
    X, y = unit_rows()
    problems = {strength: Problem(X, y, strength) for strength in (w17.STRENGTH, 0.0)}
    for figure, strength, method, noises, run, arguments in runs(len(y)):
        problem = problems[strength]
        for epsilon, noise in noises.items():
            curves = []
            for seed in range(SEEDS):
                begun, curve = time.process_time(), []
                for passes, w in run(problem, noise, *arguments, np.random.default_rng(seed)):
                    curve.append((passes, time.process_time() - begun, w))
                curves.append([(a, b, problem.gap(w)) for a, b, w in curve])
            for points in zip(*curves, strict=True):
                report.add(
                    figure=figure,
                    method=method,
                    epsilon=epsilon,
                    n_rows=len(y),
                    passes=f"{points[0][0]:.4g}",
                    seconds=f"{np.mean([point[1] for point in points]):.3g}",
                    **mean_and_error("gap", [point[2] for point in points]),
                    runs=SEEDS,
                    noise=f"{noise.multiplier:.4g}",
                    true_epsilon=f"{noise.true_epsilon():.4g}",
                )


def last_rows(report, figure, epsilon):
    """Method -> the row of its end."""
    here = [r for r in report.rows if (r["figure"], r["epsilon"]) == (figure, epsilon)]
    return {row["method"]: row for row in here}


def verdict(report):
    yield (
        f"Covertype, {report.rows[0]['n_rows']} rows of unit norm, printed steps, batches and "
        f"noise, {SEEDS} runs, +- one standard error."
    )
    for figure in ("Fig. 1", "Fig. 2"):
        for epsilon in EPSILONS:
            ends = last_rows(report, figure, epsilon)
            plain, reduced = ends["DP-GD"], next(v for k, v in ends.items() if k != "DP-GD")
            gaps = [float(row["gap"]) for row in (plain, reduced)]
            said = ", ".join(
                f"{name} {float(row['gap']):.2g}+-{float(row['gap_error']):.1g} after "
                f"{float(row['passes']):.4g} passes and {float(row['seconds']):.1f} s"
                for name, row in ends.items()
            )
            holds = "holds" if gaps[1] < gaps[0] else "does not hold"
            yield (
                f"{figure}, epsilon {epsilon:g}: {said}. The figure's order {holds}: "
                f"{gaps[1] / gaps[0]:.2f} of DP-GD's gap. What the noise costs: DP-GD "
                f"{plain['true_epsilon']}, {reduced['method']} {reduced['true_epsilon']}."
            )


def draw(report, plt):
    figure, axes = plt.subplots(2, 4, figsize=(15, 6), layout="constrained", sharey="row")
    for row, name in zip(axes, ("Fig. 1", "Fig. 2"), strict=True):
        panels = [("passes", EPSILONS[0]), ("seconds", EPSILONS[0])]
        panels += [("passes", EPSILONS[1]), ("passes", EPSILONS[2])]
        for ax, (cost, epsilon) in zip(row, panels, strict=True):
            here = [r for r in report.rows if (r["figure"], r["epsilon"]) == (name, epsilon)]
            for method in dict.fromkeys(r["method"] for r in here):
                points = [r for r in here if r["method"] == method]
                costs, gaps = ([float(p[key]) for p in points] for key in (cost, "gap"))
                label = f"{method}, costs {points[0]['true_epsilon']}"
                ax.plot(costs, gaps, marker=".", ms=3, label=label)
            ax.set(xscale="log", yscale="log", xlabel=cost)
            ax.set_title(f"{name} as printed, epsilon {epsilon:g}", fontsize=9)
            ax.legend(fontsize=7)
        row[0].set_ylabel("optimality gap")
    return figure


def main(names):
    report = Report("w17_literal")
    if names == ["again"]:
        report.reload("epsilon", "n_rows")
        report.finish(verdict(report), draw)
        return
    report.run({"figures": measure}, names, verdict, draw)


if __name__ == "__main__":
    main(sys.argv[1:])
