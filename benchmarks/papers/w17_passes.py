"""[W17] where it makes its claim: the gap after few passes, with a penalty and without.

Run `python -m benchmarks.papers.w17_passes`; `penalty` or `plain` after it runs one part, without
writing. The paper's claim is about gradient complexity: SVRG needs fewer gradients for a gap than
DP-GD. `benchmarks.papers.w17` compares at 210 passes, where noise decides and not work. Here all
rows of covertype that there are take 5, 10 and 20 passes with honest noise, once with the L2
penalty of 1e-2 (Fig. 1) and once without a penalty (Fig. 2, the case that SVRG++ is for), drawn
against gradients and against seconds, as the paper's figures are. Every
method has the step size that is best for its setting among the same number of choices, which
favours none; batches are 1000 rows and not single ones.
"""

from __future__ import annotations

import math
import sys
import time
import warnings

import skdp
from benchmarks.papers import w17
from benchmarks.papers.report import Report, errorbar, mean_and_error
from skdp.solvers import SVRG, GradientDescent, SVRGPlusPlus

PASSES, EPSILONS, REPETITIONS = (5, 10, 20), (0.2, 1.0), 4
EPOCHS, DOUBLING, BATCH = {5: 2, 10: 3, 20: 4}, {5: 2, 10: 3, 20: 4}, 1000
FULL_STEPS, BATCH_STEPS = (0.5, 1.0, 2.0, 4.0), (0.3, 0.6, 1.2, 2.4)


def gd(passes, size, momentum):
    return GradientDescent(max_iter=passes, learning_rate=size, momentum=momentum, averaging="last")


def svrg(passes, size, n_rows):
    """Epochs, each of one pass for the snapshot; a step takes two gradients of each of its rows."""
    steps = (passes - EPOCHS[passes]) * n_rows / (2 * BATCH)
    inner = round(steps / EPOCHS[passes])
    return SVRG(
        max_iter=inner * EPOCHS[passes], inner_steps=inner, batch_size=BATCH, learning_rate=size
    )


def svrg_doubling(passes, size, n_rows):
    lengths = 2 ** (DOUBLING[passes] + 1) - 2
    steps = (passes - DOUBLING[passes]) * n_rows / (2 * BATCH)
    inner = max(1, round(steps / lengths))
    return SVRGPlusPlus(
        max_iter=inner * lengths, inner_steps=inner, batch_size=BATCH, learning_rate=size
    )


def methods(passes, n_rows):
    for size in FULL_STEPS:
        yield "gd, plain", size, gd(passes, size, 0.0)
        yield "gd, momentum 0.5", size, gd(passes, size, 0.5)
    for size in BATCH_STEPS:
        yield "svrg", size, svrg(passes, size, n_rows)
        yield "svrg++", size, svrg_doubling(passes, size, n_rows)


def measure(report, part, strength):
    X, y = w17.covertype()
    best = w17.exact(X, y, strength) if strength else w17.exact(X, y, 1e-9)
    for epsilon in EPSILONS:
        for passes in PASSES:
            for name, size, solver in methods(passes, len(y)):
                model = skdp.DPLogisticRegression(
                    C=1 / (strength * len(y)) if strength else math.inf,
                    classes=[0, 1],
                    solver=solver,
                    epsilon=epsilon,
                    delta=w17.DELTA,
                    fit_intercept=False,
                    scaling="none",
                    privacy=skdp.Privacy(),
                )
                model.plan(*X.shape)  # so that a first calibration is not counted
                found, seconds = [], []
                for seed in range(REPETITIONS):
                    begun = time.process_time()
                    model.set_params(privacy__noise=skdp.SeededNoise(seed)).fit(X, y)
                    seconds.append(time.process_time() - begun)
                    w = model.coef_.ravel()
                    found.append(w17.objective(w, X, y, strength) - best)
                report.add(
                    part=part,
                    n_rows=len(y),
                    epsilon=epsilon,
                    passes=passes,
                    method=name,
                    step=size,
                    gradients=f"{model.n_gradients_ / len(y):.3g}",
                    runs=REPETITIONS,
                    **mean_and_error("gap", found),
                    seconds=f"{sum(seconds) / REPETITIONS:.3g}",
                )


def penalty(report):
    measure(report, "penalty", w17.STRENGTH)


def plain(report):
    measure(report, "plain", 0.0)


def tuned(report, part, epsilon, passes):
    """Method -> its row with the best step."""
    rows = [
        row
        for row in report.rows
        if (row["part"], row["epsilon"], row["passes"]) == (part, epsilon, passes)
    ]
    names = dict.fromkeys(row["method"] for row in rows)
    return {
        name: min((r for r in rows if r["method"] == name), key=lambda r: float(r["gap"]))
        for name in names
    }


def verdict(report):
    rows = report.rows[0]["n_rows"]
    yield (
        f"Covertype, {rows} rows, delta {w17.DELTA:g}, honest noise, {REPETITIONS} runs, every "
        "method with its best of four steps; the paper: 200,000 rows, single records and a noise "
        "that its own theorem does not allow."
    )
    for part, title in (("penalty", "penalty 1e-2 (Fig. 1)"), ("plain", "no penalty (Fig. 2)")):
        for epsilon in EPSILONS:
            for passes in PASSES:
                found = tuned(report, part, epsilon, passes)
                told = ", ".join(
                    f"{name} {float(row['gap']):.4f}+-{float(row['gap_error']):.4f}"
                    for name, row in found.items()
                )
                reduced = min(float(found[name]["gap"]) for name in ("svrg", "svrg++"))
                plain_gap = float(found["gd, plain"]["gap"])
                with_momentum = float(found["gd, momentum 0.5"]["gap"])
                times = ", ".join(f"{name} {row['seconds']}" for name, row in found.items())
                yield (
                    f"{title}, epsilon {epsilon:g}, {passes} passes: {told}. Variance reduction "
                    f"has {reduced / plain_gap:.2f} of plain gd's gap (the paper: less than 1), "
                    f"{reduced / with_momentum:.2f} of gd's with momentum. Seconds of processor: "
                    f"{times}."
                )


def draw(report, plt):
    figure, axes = plt.subplots(2, 4, figsize=(17, 8), layout="constrained")
    panels = [(part, epsilon) for part in ("penalty", "plain") for epsilon in EPSILONS]
    for row, cost in zip(axes, ("passes", "seconds"), strict=True):
        for ax, (part, epsilon) in zip(row, panels, strict=True):
            for name in dict.fromkeys(row["method"] for row in report.rows):
                best = [tuned(report, part, epsilon, passes)[name] for passes in PASSES]
                errorbar(ax, best, cost, "gap", label=name)
            ax.set(xscale="log", yscale="log", xlabel=cost, title=f"{part}, epsilon {epsilon:g}")
        row[0].set_ylabel("optimality gap")
    axes[0, 0].legend(fontsize=7)
    return figure


PARTS = {"penalty": penalty, "plain": plain}


def main(names):
    warnings.simplefilter("ignore", skdp.PrivacyWarning)
    warnings.simplefilter("ignore", skdp.NoiseWarning)
    Report("w17_passes").run(PARTS, names, verdict, draw)


if __name__ == "__main__":
    main(sys.argv[1:])
