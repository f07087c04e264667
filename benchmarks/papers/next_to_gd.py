"""Default settings of the papers' solvers next to "gd": the objective's excess at equal budget.

Excess is that of the penalised mean loss over its minimum, with columns (and targets of regression)
of unit size, no private scaling and a penalty of 0.05. The constants behind the defaults were
chosen on the first group of data; the second was not looked at for them.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

import skdp
from benchmarks.papers.report import chosen, mean_and_error
from benchmarks.registry import Unavailable, modules

PENALTY, DELTA, REPETITIONS = 0.05, 1e-6, 4
# Numbers of rows: of simulated data, and of real data at most.
SIMULATED_ROWS, MOST_ROWS = 20_000, 8000
CHOSEN_ON = ("simulated, linear", "simulated, logistic", "bike", "bank")
APART = ("california_housing", "covertype", "diamonds")
EPSILONS = (0.1, 1.0)
SOLVERS = (
    "gd",
    "adp_sgd",
    "svrg",
    "svrg++",
    "shuffled_sgd",
    "adaptive_shuffled_sgd",
    "heavy_ball",
    "nesterov",
    "multistage_nesterov",
    "accelerated_mirror_descent",
)
# A ball that holds the minimum of every problem here, for the solver that needs a set.
BALL = {"constraint": skdp.objective.L2Ball(3.0)}


@cache
def rows_of(name):
    """Columns of unit size, targets, and whether these are labels."""
    if name in CHOSEN_ON[:2]:
        rng = np.random.default_rng(1)
        X, way = rng.standard_normal((SIMULATED_ROWS, 10)), rng.standard_normal(10)
        margin = X @ way / np.linalg.norm(way)
        if name.endswith("logistic"):
            return X, (2 * margin + 0.5 > rng.logistic(size=len(X))).astype(int), True
        y = margin + 0.3 * rng.standard_normal(len(X))
        return X, (y - y.mean()) / y.std(), False
    split = modules("datasets")[name].load(0).standardised()
    X, y = split.X_train[:MOST_ROWS], split.y_train[:MOST_ROWS]
    return X[:, X.std(axis=0) > 0], y, split.is_classification


def objective(model, X, y, is_classification):
    coef = np.ravel(model.coef_)
    margin = X @ coef + np.ravel(model.intercept_)[0]
    if is_classification:
        loss = np.logaddexp(0, np.where(y == model.classes_[1], -margin, margin)).mean()
    else:
        loss = 0.5 * np.mean((margin - y) ** 2)
    return float(loss + 0.5 * PENALTY * coef @ coef)


@cache
def minimum(name):
    X, y, labels = rows_of(name)
    strength = PENALTY * len(y)
    twin = (
        LogisticRegression(C=1 / strength, tol=1e-9, max_iter=5000) if labels else Ridge(strength)
    )
    return objective(twin.fit(X, y), X, y, labels)


def excess(name, solver, epsilon, seed):
    X, y, labels = rows_of(name)
    strength = PENALTY * len(y)
    given = {"solver": solver, "epsilon": epsilon, "delta": DELTA, "scaling": "none"}
    given |= {"privacy": skdp.Privacy(noise=skdp.SeededNoise(seed))}
    given |= BALL if solver == "accelerated_mirror_descent" else {}
    if labels:
        model = skdp.DPLogisticRegression(classes=np.unique(y), C=1 / strength, **given)
    else:
        model = skdp.DPRidge(alpha=strength, **given)
    return objective(model.fit(X, y), X, y, labels) - minimum(name)


def measure(report, name):
    rows_of(name)
    for epsilon in EPSILONS:
        found = {
            solver: [excess(name, solver, epsilon, seed) for seed in range(REPETITIONS)]
            for solver in SOLVERS
        }
        yardstick = np.mean(found["gd"])
        for solver, values in found.items():
            group = "chosen on" if name in CHOSEN_ON else "apart"
            what = {"data": name, "group": group, "epsilon": epsilon, "solver": solver}
            ratio = {"ratio": f"{np.mean(values) / yardstick:.3g}"}
            report.add(**what, **mean_and_error("excess", values), **ratio)


def run(report):
    for name in CHOSEN_ON[:2] if report.quick else (*CHOSEN_ON, *APART):
        try:
            measure(report, name)
        except Unavailable as reason:
            print(f"{name} is left out: {reason}")


def verdict(rows):
    for solver in SOLVERS[1:]:
        here = chosen(rows, solver=solver)
        ratios = [
            np.median([row["ratio"] for row in chosen(here, epsilon=epsilon)])
            for epsilon in EPSILONS
        ]
        told = " and ".join(f"{ratio:.1f}" for ratio in ratios)
        yield f"{solver}, median excess at epsilon 0.1 and 1", f"{told} times that of gd", (
            "better" if max(ratios) < 1 else "not better"
        )  # fmt: skip


def draw(rows, plt):
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
    for ax, epsilon in zip(axes, EPSILONS, strict=True):
        here = chosen(rows, epsilon=epsilon)
        for name in dict.fromkeys(row["data"] for row in here):
            points = chosen(here, data=name)
            marker = "o" if name in CHOSEN_ON else "s"
            ratios = [row["ratio"] for row in points]
            ax.plot(ratios, [row["solver"] for row in points], marker, label=name)
        ax.set(xscale="log", xlabel="excess in units of gd's", title=f"epsilon {epsilon:g}")
        ax.axvline(1, color="grey", lw=0.5)
    axes[1].legend(fontsize=7)
    return figure
