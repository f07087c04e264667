"""[Wu21] at the small budgets where its gain is largest, and with its steps tuned as it tunes them.

Run `python -m benchmarks.papers.wu21_small`; `budgets`, `table`, `tuning` or `constant` after it
runs one part, without writing. `benchmarks.papers.wu21` starts at epsilon 0.1, where honest noise
is a sixth of what the paper's accounting adds; the paper's own regime begins at a tenth of that.
Same model and rows of MNIST. "table" is Table 1's rule 0.1 - c sqrt(t) at four clips; "tuning" are
the adaptive steps with growth C from 1e-3 to 1, as Table 6 tunes it, and the weight that resets
of Sec. 6.2; "constant" compares constant with falling steps (Fig. 4).
"""

from __future__ import annotations

import sys

import numpy as np

import skdp
from benchmarks.papers import wu21
from benchmarks.papers.report import Report, errorbar, mean_and_error
from skdp.steps import AdaptiveStep, PolynomialStep, SquareRootDecayStep

REPETITIONS, STEPS = 10, 300
TABLE = "0.1-c sqrt(t)"
GROWTHS, RESET = (1e-3, 1e-2, 1e-1, 1.0), 39
RULES = {
    wu21.PAPER: PolynomialStep(),
    TABLE: SquareRootDecayStep(),
    "constant": 0.1,
    "resetting": AdaptiveStep(initial=1.0, first=20**0.5, weight=512.0, growth=1e-2, reset=RESET),
    **{f"C={C:g}": AdaptiveStep(initial=1.0, first=20**0.5, growth=C) for C in GROWTHS},
}


def compare(report, part, rule, n_steps, clip, epsilon, data):
    X, y, X_test, y_test = data
    scores = {}
    for name, schedule in (("dp", "uniform"), ("adp", "step_matched")):
        model = wu21.model(range(10), wu21.PAPER, n_steps, clip, epsilon, schedule, "auto", 0)
        model.set_params(solver__learning_rate=RULES[rule])
        scores[name] = np.array(
            [
                model.set_params(privacy__noise=skdp.SeededNoise(seed))
                .fit(X, y)
                .score(X_test, y_test)
                for seed in range(REPETITIONS)
            ]
        )
    report.add(
        part=part,
        rule=rule,
        steps=n_steps,
        clip=clip,
        epsilon=epsilon,
        runs=REPETITIONS,
        **mean_and_error("accuracy_dp", scores["dp"]),
        **mean_and_error("accuracy_adp", scores["adp"]),
        **mean_and_error("gap", 100 * (scores["adp"] - scores["dp"])),
    )


def budgets(report, data):
    for epsilon in (0.01, 0.02, 0.04, 0.1):
        compare(report, "budgets", wu21.PAPER, STEPS, 1.0, epsilon, data)


def table(report, data):
    for epsilon in (0.03, 0.1):
        for clip in wu21.CLIPS:
            compare(report, "table", TABLE, STEPS, clip, epsilon, data)
    for n_steps in (100, 900):
        compare(report, "table", TABLE, n_steps, 1.0, 0.03, data)


def tuning(report, data):
    for growth in GROWTHS:
        compare(report, "tuning", f"C={growth:g}", STEPS, 1.0, 0.1, data)
    compare(report, "tuning", "resetting", STEPS, 1.0, 0.1, data)


def constant(report, data):
    for epsilon in (0.03, 0.1):
        for rule in ("constant", wu21.PAPER, TABLE):
            compare(report, "constant", rule, STEPS, 1.0, epsilon, data)


def told(rows):
    return ", ".join(f"{float(row['gap']):+.2f}+-{float(row['gap_error']):.2f}" for row in rows)


def verdict(report):
    yield (
        f"Accuracy gained by ADP-SGD over DP-SGD in points, {REPETITIONS} runs with the same "
        "seeds, +- one standard error; exact accounting; 10,000 rows of MNIST, logistic "
        "regression. The paper: a network, CIFAR-10, the best iterate, the printed noise."
    )
    rows = [row for row in report.rows if row["part"] == "budgets"]
    values = ", ".join(f"{row['epsilon']:g}" for row in rows)
    yield f"{wu21.PAPER}, clip 1, epsilon {values}: {told(rows)}. The paper: it falls with epsilon."
    for epsilon in (0.03, 0.1):
        rows = [r for r in report.rows if r["part"] == "table" and r["epsilon"] == epsilon]
        rows = [row for row in rows if row["steps"] == STEPS]
        better = sum(float(row["gap"]) > 2 * float(row["gap_error"]) for row in rows)
        yield (
            f"{TABLE}, epsilon {epsilon:g}, clips 0.5, 1, 2.5, 5: {told(rows)}; better by more "
            f"than two standard errors in {better} of {len(rows)}. The paper: better, and it "
            "grows with the clip."
        )
    rows = [r for r in report.rows if r["part"] == "table" and r["epsilon"] == 0.03]
    rows = sorted((r for r in rows if r["clip"] == 1.0), key=lambda row: row["steps"])
    values = ", ".join(str(row["steps"]) for row in rows)
    yield f"{TABLE}, epsilon 0.03, clip 1, T = {values}: {told(rows)}. The paper: it grows with T."
    rows = [row for row in report.rows if row["part"] == "tuning"]
    values = ", ".join(row["rule"] for row in rows)
    yield f"Adaptive steps, epsilon 0.1, {values}: {told(rows)}. The paper tunes C to 1e-5..1e-2."
    for epsilon in (0.03, 0.1):
        rows = [r for r in report.rows if r["part"] == "constant" and r["epsilon"] == epsilon]
        scores = "; ".join(f"{r['rule']}: {r['accuracy_dp']}, {r['accuracy_adp']}" for r in rows)
        yield (
            f"Epsilon {epsilon:g}, accuracy with uniform and with matched noise: {scores}. The "
            "paper (Fig. 4): falling steps with matched noise are best."
        )


def draw(report, plt):
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    of = {part: [r for r in report.rows if r["part"] == part] for part in PARTS}
    errorbar(axes[0], of["budgets"], "epsilon", "gap", label=wu21.PAPER)
    for epsilon in (0.03, 0.1):
        rows = [r for r in of["table"] if r["epsilon"] == epsilon and r["steps"] == STEPS]
        errorbar(axes[1], rows, "clip", "gap", label=f"{TABLE}, epsilon {epsilon:g}")
    rows = [{**row, "C": row["rule"][2:]} for row in of["tuning"] if row["rule"][:2] == "C="]
    errorbar(axes[2], rows, "C", "gap", label="adaptive, epsilon 0.1")
    for ax, factor in zip(axes, ("epsilon", "clip", "growth C"), strict=True):
        ax.axhline(0, color="grey", lw=0.5)
        ax.set(xlabel=factor, ylabel="accuracy gained, points", xscale="log")
        ax.legend(fontsize=7)
    return figure


PARTS = {"budgets": budgets, "table": table, "tuning": tuning, "constant": constant}


def run(report, names):
    data = wu21.mnist()
    for name in names or PARTS:
        PARTS[name](report, data)


def main(names):
    report = Report("wu21_small")
    report.attempt("mnist", run, names)
    if not names:
        report.finish(verdict(report), draw)


if __name__ == "__main__":
    main(sys.argv[1:])
