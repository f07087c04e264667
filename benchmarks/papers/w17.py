"""Wang, Ye, Xu 2017: does variance reduction need fewer gradients than gradient descent?

Rows are those of covertype, class 2 against the rest, at delta = 1e-3.

Part "printed" is Figures 1 and 2 with the printed steps, batches and noise, constant 1. None of it
is private at the epsilon that it names. Rows have unit norm, so that G = 1 and L = 1/4. Fig. 1 has
an L2 penalty of 1e-2: DP-SVRG makes 15 epochs of 5000 steps on single records with
Barzilai-Borwein step sizes (Tan, Ma, Dai, Qian 2016, the first of them 0.1), DP-GD 1500 steps. Of
these the size is not printed: it is 1 / (L + penalty) here. Fig. 2 has no penalty: DP-SVRG++ has
epochs of 10, 20, 40, ... records with steps of 0.01, DP-GD 1000 steps of 0.1. The paper's formula
for the loss, log(1 + exp(1 + y w'x)), is read as the logistic loss.

Part "certified" has the package's noise, and 5, 10 and 20 passes over standardised rows, since the
claim is about gradients. Every method has the step size that is best for its setting among the same
number of choices, which favours none. Batches have 1000 rows.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import skdp
from benchmarks.papers.printed_noise import printed_noise
from benchmarks.papers.report import chosen, columns_of, cost_of_noise, errorbar
from benchmarks.papers.rows import covertype
from skdp.solvers import SVRG, GradientDescent, SVRGPlusPlus

DELTA, PENALTY, EPSILONS, PAPER_ROWS = 1e-3, 1e-2, (0.2, 0.5, 1.0), 200_000
SMOOTHNESS, FIRST_STEP, DRAWN_STEPS, RUNS = 0.25, 0.1, 40, 3
PASSES, CERTIFIED_EPSILONS, CERTIFIED_RUNS, BATCH = (5, 10, 20), (0.2, 1.0), 4, 1000
EPOCHS = {5: 2, 10: 3, 20: 4}
FULL_STEPS, BATCH_STEPS = (0.5, 1.0, 2.0, 4.0), (0.3, 0.6, 1.2, 2.4)


def objective(w, X, y, strength):
    margins = X @ w
    return np.mean(np.logaddexp(0, margins) - y * margins) + strength / 2 * w @ w


def minimum(X, y, strength):
    model = LogisticRegression(
        C=1 / ((strength or 1e-9) * len(y)), fit_intercept=False, tol=1e-8, max_iter=1000
    )
    return objective(model.fit(X, y).coef_.ravel(), X, y, strength)


# ------------------------------------------------------------------ as printed


class Problem:
    """Mean logistic loss with an L2 penalty, and its gradients."""

    def __init__(self, X, y, strength):
        self.X, self.y, self.strength = X, y, strength
        self.least = minimum(X, y, strength)

    def gradient(self, w):
        return self.X.T @ (expit(self.X @ w) - self.y) / len(self.y)

    def gap(self, w):
        return objective(w, self.X, self.y, self.strength) - self.least


def gradient_descent(problem, noise, n_steps, size, rng):
    """Yield (gradients in units of n, iterate), now and then."""
    w = np.zeros(problem.X.shape[1])
    std = noise.multiplier / len(problem.y)
    for step in range(1, n_steps + 1):
        noisy = problem.gradient(w) + std * rng.standard_normal(len(w))
        w = w - size * (noisy + problem.strength * w)
        if step % max(1, n_steps // DRAWN_STEPS) == 0:
            yield step, w


def variance_reduced(problem, noise, lengths, size, rng):
    """Yield (gradients in units of n, snapshot) after every epoch; size None: Barzilai-Borwein."""
    n_rows, n_columns = problem.X.shape
    snapshot, iterate, gradients, former = np.zeros(n_columns), np.zeros(n_columns), 0.0, None
    goes_on = size is not None  # SVRG++ from its last iterate, SVRG from the snapshot
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
        w = iterate if goes_on else snapshot
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


def printed_runs(n_rows, quick):
    """Figure, method, penalty, the printed noise's name and steps, and the run."""
    share = 10 if quick else 1
    doubled = [10 * 2**s for s in range(1, 9 if quick else 16)]
    epochs = [5000 // share] * (15 // (3 if quick else 1))
    yield "Fig. 1", PENALTY, "DP-GD", "W17 gd", gradient_descent, (
        1500 // share, 1 / (SMOOTHNESS + PENALTY),
    )  # fmt: skip
    yield "Fig. 1", PENALTY, "DP-SVRG", "W17 svrg", variance_reduced, (epochs, None)
    yield "Fig. 2", 0.0, "DP-GD", "W17 gd", gradient_descent, (1000 // share, 0.1)
    yield "Fig. 2", 0.0, "DP-SVRG++", "W17 svrg", variance_reduced, (doubled, 0.01)


def printed(report):
    X, y = covertype(report.quick)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    problems = {strength: Problem(X, y, strength) for strength in (PENALTY, 0.0)}
    for figure, strength, method, paper, algorithm, arguments in printed_runs(len(y), report.quick):
        n_steps = int(np.sum(arguments[0]))
        for epsilon in EPSILONS:
            noise = printed_noise(paper, epsilon, DELTA, len(y), n_steps)
            curves = [
                [
                    (passes, problems[strength].gap(w))
                    for passes, w in algorithm(
                        problems[strength], noise, *arguments, np.random.default_rng(seed)
                    )
                ]
                for seed in range(2 if report.quick else RUNS)
            ]
            for points in zip(*curves, strict=True):
                report.add(
                    part="printed",
                    figure=figure,
                    method=method,
                    epsilon=epsilon,
                    n_rows=len(y),
                    passes=f"{points[0][0]:.4g}",
                    **columns_of("gap", [gap for _, gap in points]),
                    runs=len(points),
                    noise=f"{noise.multiplier:.4g}",
                    true_epsilon=f"{noise.true_epsilon():.4g}",
                )


# ------------------------------------------------------------------ with certified noise


def solvers(passes, n_rows):
    """Name, step size and solver. A step of SVRG has two gradients of each of its rows."""
    epochs = EPOCHS[passes]
    batch = min(BATCH, n_rows // 10)
    steps = (passes - epochs) * n_rows / (2 * batch)
    inner, lengths = round(steps / epochs), 2 ** (epochs + 1) - 2
    for size in FULL_STEPS:
        for name, momentum in (("gd, plain", 0.0), ("gd, momentum 0.5", 0.5)):
            yield name, size, GradientDescent(
                max_iter=passes, learning_rate=size, momentum=momentum, averaging="last"
            )  # fmt: skip
    for size in BATCH_STEPS:
        yield "svrg", size, SVRG(
            max_iter=inner * epochs, inner_steps=inner, batch_size=batch, learning_rate=size
        )  # fmt: skip
        inner_doubled = max(1, round(steps / lengths))
        yield "svrg++", size, SVRGPlusPlus(
            max_iter=inner_doubled * lengths, inner_steps=inner_doubled, batch_size=batch,
            learning_rate=size,
        )  # fmt: skip


def certified(report):
    X, y = covertype(report.quick)
    for penalty, strength in (("with", PENALTY), ("without", 0.0)):
        least = minimum(X, y, strength)
        for epsilon in CERTIFIED_EPSILONS:
            for passes in PASSES[:1] if report.quick else PASSES:
                for name, size, solver in solvers(passes, len(y)):
                    found = []
                    for seed in range(2 if report.quick else CERTIFIED_RUNS):
                        model = skdp.DPLogisticRegression(
                            C=1 / (strength * len(y)) if strength else math.inf,
                            classes=[0, 1],
                            solver=solver,
                            epsilon=epsilon,
                            delta=DELTA,
                            fit_intercept=False,
                            scaling="none",
                            privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
                        ).fit(X, y)
                        found.append(objective(model.coef_.ravel(), X, y, strength) - least)
                    report.add(
                        part="certified",
                        penalty=penalty,
                        n_rows=len(y),
                        epsilon=epsilon,
                        passes=passes,
                        method=name,
                        step=size,
                        runs=len(found),
                        **columns_of("gap", found),
                    )


def run(report):
    for name, paper, n_steps in (
        ("DP-GD, 1500 steps", "W17 gd", 1500),
        ("DP-SVRG, n = 200,000", "W17 svrg", 75_000),
        ("with Remark 4.1", "W17 svrg, Remark 4.1", 75_000),
    ):
        report.add_noise(name, printed_noise(paper, EPSILONS[0], DELTA, PAPER_ROWS, n_steps))
    printed(report)
    certified(report)


def best(rows, **setting):
    """Method -> its row with the best step size."""
    here = chosen(rows, part="certified", **setting)
    return {
        name: min(chosen(here, method=name), key=lambda row: row["gap"])
        for name in dict.fromkeys(row["method"] for row in here)
    }


def verdict(rows):
    for figure in ("Fig. 1", "Fig. 2"):
        here = chosen(rows, part="printed", figure=figure, epsilon=EPSILONS[0])
        plain, reduced = {row["method"]: row for row in here}.values()
        yield (
            f"{reduced['method']} needs fewer gradients than DP-GD ({figure}, epsilon 0.2)",
            f"{reduced['gap'] / plain['gap']:.2f} of DP-GD's gap after {reduced['passes']:.0f} "
            f"instead of {plain['passes']:.0f} passes; costs epsilon "
            f"{reduced['true_epsilon']:,.0f} instead of {plain['true_epsilon']:.2g}",
            "holds" if reduced["gap"] < plain["gap"] else "does not hold",
        )
    for penalty, name in (("with", "DP-SVRG"), ("without", "DP-SVRG++")):
        method, told, holds = name.lower()[3:], [], []
        for passes in dict.fromkeys(row["passes"] for row in chosen(rows, part="certified")):
            ratios = []
            for epsilon in CERTIFIED_EPSILONS:
                found = best(rows, penalty=penalty, epsilon=epsilon, passes=passes)
                ratios.append(found[method]["gap"] / found["gd, plain"]["gap"])
            told.append(f"{passes:.0f} passes: " + " and ".join(f"{one:.2f}" for one in ratios))
            holds.append(max(ratios) < 1)
        yield (
            f"{name} with certified noise does",
            f"share of DP-GD's gap at epsilon 0.2 and 1: {'; '.join(told)}",
            "holds" if all(holds) else "holds at few passes" if holds[0] else "does not hold",
        )
    yield from cost_of_noise(rows)


def draw(rows, plt):
    figure, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
    for ax, name in zip(axes[0], ("Fig. 1", "Fig. 2"), strict=True):
        here = chosen(rows, part="printed", figure=name, epsilon=EPSILONS[0])
        for method in dict.fromkeys(row["method"] for row in here):
            points = chosen(here, method=method)
            label = f"{method}, costs {points[0]['true_epsilon']:.4g}"
            errorbar(ax, points, "passes", "gap", label=label, marker=".")
        ax.set(title=f"{name} as printed, epsilon 0.2 named")
    here = chosen(rows, part="certified", epsilon=EPSILONS[0])
    for ax, penalty in zip(axes[1], ("with", "without"), strict=True):
        for name in dict.fromkeys(row["method"] for row in here):
            points = [
                best(here, penalty=penalty, passes=passes)[name]
                for passes in dict.fromkeys(row["passes"] for row in here)
            ]
            errorbar(ax, points, "passes", "gap", label=name, marker=".")
        ax.set(title=f"certified noise, epsilon 0.2, {penalty} penalty")
    for ax in axes.flat:
        ax.set(xscale="log", yscale="log", xlabel="passes", ylabel="gap")
        ax.legend(fontsize=8)
    return figure
