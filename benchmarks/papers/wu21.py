"""[Wu21]: does noise matched to falling steps (ADP-SGD) beat uniform noise (DP-SGD)?

Run `python -m benchmarks.papers.wu21`. The paper trains a convolutional network on CIFAR-10, batch
256, up to 39,200 steps of 1/sqrt(20 + t) or 0.1 - c sqrt(t), clip 0.5 to 5, five budgets, and finds
that the gain in accuracy grows with the number of steps and with the clip, and is largest at small
budgets. Here the models are logistic regressions on 10,000 rows of MNIST (ten classes, 50 principal
components) and 20,000 of covertype (class 2), with fewer steps and the last
iterate, not the best one; and steps three times as long, and adaptive ones, besides.
Centring, components and scale come from rows that are not trained on.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

import skdp
from benchmarks.papers.report import Report, mean_and_error
from benchmarks.papers.theory import improvement_ratio, printed_adp_noise
from benchmarks.registry import shared_file
from skdp.accounting import Adjacency, price
from skdp.accounting.papers import advanced_epsilon
from skdp.accounting.pricing import least_factor
from skdp.solvers import AdaptiveNoiseSGD
from skdp.steps import AdaptiveStep, PolynomialStep, SquareRootDecayStep, relative_noise, step_sizes

DELTA, BATCH, NORM = 1e-5, 256, 10.0
CLIPS, STEPS, EPSILONS = (0.5, 1.0, 2.5, 5.0), (100, 300, 900), (0.1, 0.2, 0.4, 0.8, 1.6)
CLIP, MIDDLE, EPSILON = 1.0, 300, 0.1
PAPER, LONGER = "1/sqrt(20+t)", "3/sqrt(20+t)"
ADAPTIVE, RAW = "adaptive", "adaptive, noise left in"
REPETITIONS = 20
RULES = {
    PAPER: PolynomialStep(),
    LONGER: PolynomialStep(3.0),
    "0.1-c sqrt(t)": SquareRootDecayStep(),
    ADAPTIVE: AdaptiveStep(initial=1.0, first=20**0.5, growth=1.0),
    RAW: AdaptiveStep(initial=1.0, first=20**0.5, growth=1.0, debias=False),
}


def scaled(rows, public, dimension):
    """Standardise, or reduce and scale such that the longest public row has norm 10."""
    if dimension is None:
        return StandardScaler().fit(public).transform(rows)
    change = PCA(dimension, svd_solver="randomized", random_state=0).fit(public)
    longest = np.linalg.norm(change.transform(public), axis=1).max()
    return change.transform(rows) * (NORM / longest)


def mnist():
    with np.load(shared_file("mnist.npz"), allow_pickle=False) as data:
        X, y = data["X"] / 255.0, data["y"].astype(int)
    public, train, test = slice(50000, 60000), slice(0, 10000), slice(60000, 70000)
    X_train, X_test = (scaled(X[part], X[public], 50) for part in (train, test))
    return X_train, y[train], X_test, y[test]


def covertype():
    with np.load(shared_file("covertype_16pct.npz"), allow_pickle=False) as data:
        X, y = data["X"].astype(float), (data["y"] == 2).astype(int)
    order = np.random.default_rng(0).permutation(len(X))
    public, train, test = order[:10000], order[10000:30000], order[30000:]
    X_train, X_test = (scaled(X[part], X[public], None) for part in (train, test))
    return X_train, y[train], X_test, y[test]


def model(classes, rule, n_steps, clip, epsilon, schedule, seed):
    solver = AdaptiveNoiseSGD(
        max_iter=n_steps,
        learning_rate=RULES[rule],
        batch_size=BATCH,
        clip_norm=clip,
        averaging="last",
        noise_schedule=schedule,
    )
    return skdp.DPLogisticRegression(
        C=np.inf,
        classes=classes,
        epsilon=epsilon,
        delta=DELTA,
        scaling=skdp.RowNorm(NORM),
        solver=solver,
        privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
    )


def exact_epsilon(plan, epsilon):
    """Exact epsilon of the noise with which advanced composition certifies ``epsilon``."""

    def by_paper(factor):
        return advanced_epsilon(plan.event.scaled(factor), DELTA, Adjacency.ZERO_OUT)

    factor = least_factor(by_paper, epsilon, DELTA)
    return price(plan.event.scaled(factor), DELTA, Adjacency.ZERO_OUT)[0]


def cells(data_name):
    """The designs: clip against steps on MNIST, else one factor moved at a time."""
    if data_name == "mnist":
        for clip in CLIPS:
            for n_steps in STEPS:
                yield PAPER, n_steps, clip, EPSILON, "auto"
        for n_steps in STEPS:
            yield "0.1-c sqrt(t)", n_steps, CLIP, EPSILON, "auto"
            yield LONGER, n_steps, CLIP, EPSILON, "auto"
            yield ADAPTIVE, n_steps, CLIP, EPSILON, "auto"
        for clip in CLIPS:
            if clip != CLIP:
                yield LONGER, MIDDLE, clip, EPSILON, "auto"
                yield ADAPTIVE, MIDDLE, clip, EPSILON, "auto"
        yield RAW, MIDDLE, CLIP, EPSILON, "auto"
        for epsilon in EPSILONS:
            yield PAPER, MIDDLE, CLIP, epsilon, "advanced"
    else:
        for clip in CLIPS:
            yield PAPER, MIDDLE, clip, EPSILON, "auto"
            yield ADAPTIVE, MIDDLE, clip, EPSILON, "auto"
    for epsilon in EPSILONS:
        if epsilon != EPSILON:
            yield PAPER, MIDDLE, CLIP, epsilon, "auto"
            yield ADAPTIVE, MIDDLE, CLIP, epsilon, "auto"


def run(report, data_name, load):
    X, y, X_test, y_test = load()
    classes = np.unique(y_test)
    for rule, n_steps, clip, epsilon, accountant in cells(data_name):
        scores = {}
        for name, schedule in (("dp", "uniform"), ("adp", "step_matched")):
            spent = epsilon
            if accountant == "advanced":
                plan = model(classes, rule, n_steps, clip, epsilon, schedule, 0).plan(*X.shape)
                spent = exact_epsilon(plan, epsilon)
            scores[name] = np.array(
                [
                    model(classes, rule, n_steps, clip, spent, schedule, seed)
                    .fit(X, y)
                    .score(X_test, y_test)
                    for seed in range(REPETITIONS)
                ]
            )
        sizes = expected_sizes(rule, n_steps)
        report.add(
            data=data_name,
            accountant={"auto": "exact"}.get(accountant, accountant),
            rule=rule,
            steps=n_steps,
            clip=clip,
            epsilon=epsilon,
            **mean_and_error("accuracy_dp", scores["dp"]),
            **mean_and_error("accuracy_adp", scores["adp"]),
            **mean_and_error("gap", scores["adp"] - scores["dp"]),
            improvement_ratio=f"{improvement_ratio(sizes):.4f}",
        )


def expected_sizes(rule, n_steps):
    chosen = RULES[rule]
    if isinstance(chosen, AdaptiveStep):
        return chosen.expected_sizes(n_steps)
    return step_sizes(chosen, n_steps)


def chosen(report, data="mnist", accountant="exact", rule=PAPER, **fixed):
    wanted = {"data": data, "accountant": accountant, "rule": rule, **fixed}
    return [row for row in report.rows if all(row[key] == value for key, value in wanted.items())]


def sentence(rows, factor, claim):
    """How the gap moves along a factor."""
    rows = sorted(rows, key=lambda row: row[factor])
    gaps = ", ".join(
        f"{100 * float(row['gap']):+.2f}±{100 * float(row['gap_error']):.2f}" for row in rows
    )
    first, last = rows[0], rows[-1]
    change = float(last["gap"]) - float(first["gap"])
    error = 2 * np.hypot(float(last["gap_error"]), float(first["gap_error"]))
    trend = "grows" if change > error else "falls" if change < -error else "is level"
    held = "reproduces" if trend == claim else "does not reproduce"
    values = ", ".join(f"{row[factor]:g}" for row in rows)
    return f"gap in points at {factor} {values}: {gaps}; it {trend}; the paper: it {claim}: {held}."


def verdict(report):
    rows = [row for row in report.rows if row["accountant"] == "exact"]
    if not rows:
        yield "Nothing could be run, so there is no verdict."
        return
    for kind, adaptive in (("steps fixed beforehand", False), ("adaptive steps", True)):
        some = [row for row in rows if (row["rule"] in (ADAPTIVE, RAW)) == adaptive]
        better = sum(float(row["gap"]) > 2 * float(row["gap_error"]) for row in some)
        worse = sum(float(row["gap"]) < -2 * float(row["gap_error"]) for row in some)
        yield (
            f"Exact accounting, {kind}, {len(some)} settings, {REPETITIONS} repetitions each: "
            f"ADP-SGD is better in {better} and worse in {worse} by more than two standard errors. "
            f"Largest gain {100 * max(float(row['gap']) for row in some):.2f}, largest loss "
            f"{-100 * min(float(row['gap']) for row in some):.2f} points. The paper: gains up to "
            "22."
        )
    for clip in CLIPS:
        rows = chosen(report, clip=clip, epsilon=EPSILON)
        if rows:
            yield f"MNIST, clip {clip:g}: " + sentence(rows, "steps", "grows")
    for rule in ("0.1-c sqrt(t)", LONGER, ADAPTIVE):
        rows = chosen(report, rule=rule, clip=CLIP, epsilon=EPSILON)
        if rows:
            yield f"mnist, steps of {rule}: " + sentence(rows, "steps", "grows")
    for data, rule in (("mnist", LONGER), ("mnist", ADAPTIVE), ("covertype", ADAPTIVE)):
        rows = chosen(report, data, rule=rule, steps=MIDDLE, epsilon=EPSILON)
        if rows:
            yield f"{data}, steps of {rule}: " + sentence(rows, "clip", "grows")
    for data in ("mnist", "covertype"):
        rows = chosen(report, data, rule=ADAPTIVE, steps=MIDDLE, clip=CLIP)
        if rows:
            yield f"{data}, steps of {ADAPTIVE}: " + sentence(rows, "epsilon", "falls")
    yield from adaptive_steps(report)
    for data in ("mnist", "covertype"):
        rows = chosen(report, data, steps=MIDDLE, epsilon=EPSILON)
        if rows:
            yield f"{data}: " + sentence(rows, "clip", "grows")
        rows = chosen(report, data, steps=MIDDLE, clip=CLIP)
        if rows:
            yield f"{data}: " + sentence(rows, "epsilon", "falls")
    rows = chosen(report, accountant="advanced")
    if rows:
        yield "MNIST, advanced composition: " + sentence(rows, "epsilon", "falls")
        alpha = relative_noise("uniform", MIDDLE)
        printed = printed_adp_noise(alpha, 1.0, EPSILON, DELTA, 10000, BATCH) * BATCH
        exact = model(range(10), PAPER, MIDDLE, CLIP, EPSILON, "uniform", 0)
        noisier = clone(exact).set_params(epsilon=exact_epsilon(exact.plan(10000, 50), EPSILON))
        noise, more = (one.plan(10000, 50).releases[0].noise_multiplier for one in (exact, noisier))
        yield (
            f"Noise multiplier at epsilon {EPSILON:g}, {MIDDLE} uniform steps: exact "
            f"{noise:.2f}, advanced composition {more:.2f}, as printed "
            f"{printed:.1f}. The paper reports a sixteenth of its epsilon."
        )


def adaptive_steps(report):
    """What steps from noisy gradients do next to steps that were fixed, and what debiasing does."""
    settings = {"steps": MIDDLE, "clip": CLIP, "epsilon": EPSILON}
    for raw in chosen(report, rule=RAW, **settings):
        told = []
        for rule in (PAPER, ADAPTIVE, RAW):
            (row,) = chosen(report, rule=rule, **settings)
            told.append(f"{rule}: {row['accuracy_dp']}, {row['accuracy_adp']}")
        yield (
            f"mnist, clip {CLIP:g}, {MIDDLE} steps, epsilon {EPSILON:g}, accuracy with uniform and "
            f"with matched noise: {'; '.join(told)}. Steps from gradients whose noise is taken off "
            "stay long, and noise that was to rise with falling steps is out of place; with noise "
            f"left in, steps fall as was foreseen, and it gains {100 * float(raw['gap']):.2f}."
        )


def draw(report, plt):
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")

    def line(ax, rows, factor, **style):
        rows = sorted(rows, key=lambda row: row[factor])
        if rows:
            ax.errorbar(
                [row[factor] for row in rows],
                [100 * float(row["gap"]) for row in rows],
                [100 * float(row["gap_error"]) for row in rows],
                capsize=2,
                **style,
            )

    for clip in CLIPS:
        line(axes[0], chosen(report, clip=clip, epsilon=EPSILON), "steps", label=f"clip {clip:g}")
    rows = chosen(report, rule="0.1-c sqrt(t)")
    line(axes[0], rows, "steps", label="clip 1, 0.1 - c sqrt(t)", ls="--")
    rows = chosen(report, rule=ADAPTIVE, clip=CLIP, epsilon=EPSILON)
    line(axes[0], rows, "steps", label="clip 1, adaptive", ls="-.")
    for data in ("mnist", "covertype"):
        rows = chosen(report, data, steps=MIDDLE, epsilon=EPSILON)
        line(axes[1], rows, "clip", label=data)
        if data == "mnist":
            rows = chosen(report, rule=LONGER, steps=MIDDLE)
            line(axes[1], rows, "clip", label=f"mnist, {LONGER}", ls="--")
        rows = chosen(report, data, rule=ADAPTIVE, steps=MIDDLE, epsilon=EPSILON)
        line(axes[1], rows, "clip", label=f"{data}, adaptive", ls="-.")
        line(axes[2], chosen(report, data, steps=MIDDLE, clip=CLIP), "epsilon", label=data)
    rows = chosen(report, accountant="advanced")
    line(axes[2], rows, "epsilon", label="mnist, advanced composition", ls=":")
    for ax, factor, claim in zip(
        axes, ("steps", "clip", "epsilon"), ("grows", "grows", "falls"), strict=True
    ):
        ax.axhline(0, color="grey", lw=0.5)
        ax.set(xlabel=factor, ylabel="accuracy gained, points", xscale="log")
        ax.set_title(f"paper: the gain {claim} with {factor}", fontsize=9)
        ax.legend(fontsize=7)
    return figure


def main():
    report = Report("wu21")
    for name, load in (("mnist", mnist), ("covertype", covertype)):
        report.attempt(name, run, name, load)
    report.finish(verdict(report), draw)


if __name__ == "__main__":
    main()
