"""What the printed noise of five papers costs, in their own set-ups.

Run `python -m benchmarks.papers.printed`. Every row is a run of a paper: the budget that it names,
the noise that it prints (`benchmarks.papers.theory.printed_noise`), the epsilon that an accountant
certifies for that noise, and the noise that the budget really takes. Unspecified constants are 1.
What that means for the result is shown for [V22], whose experiment is ours: the excess with its
noise and with noise that spends the budget, for `benchmarks.papers.v22` at its middle settings.
"""

from __future__ import annotations

import warnings

import numpy as np

import skdp
from benchmarks.papers import v22
from benchmarks.papers.report import Report, mean_and_error
from benchmarks.papers.theory import printed_noise
from skdp.accounting import Adjacency, calibrate

# Paper, budget, rows, steps, rows in a batch.
RUNS = (
    ("H22", 4.0, 1e-8, 1000, 100, None),
    ("W17 gd", 0.2, 1e-3, 200_000, 1500, None),
    ("W17 svrg", 0.2, 1e-3, 200_000, 75_000, 1),
    ("W17 svrg, Remark 4.1", 0.2, 1e-3, 200_000, 75_000, 1),
    ("Wu21, section 6", 0.8, 1e-5, 50_000, 11_760, 256),
    ("Wu21", 0.1, 1e-5, 10_000, 300, 256),
    ("K22", 1.0, 0.0, 100_000, 200, None),
    ("K22", 1.0, 0.0, 100_000, 200, 1000),
    ("V22", 1.0, 1e-6, 50_000, 100, None),
)
# Their neighbours: [V22] prints noise for the sensitivity 2 zeta.
REPLACE_ONE = {"V22"}
# One pass with either noise: budgets, and runs for each.
PASS_EPSILONS, PASS_RUNS = (0.1, 1.0, 8.0), 8


def passes(report):
    """A fit whose budget is the true cost of the printed noise is a fit with that noise."""
    here = {name: v22.MIDDLE[name] for name in ("n", "d", "sigma")}
    for epsilon in PASS_EPSILONS:
        noise = printed_noise("V22", epsilon, v22.DELTA, here["n"], 100)
        paid = {"excess_printed": noise.true_epsilon("replace_one"), "excess_honest": epsilon}
        for method in ("AMBSSGD", "SSGD"):
            found = {name: [] for name in paid}
            for seed in range(PASS_RUNS):
                X, y, w = v22.draw_rows(**here, rng=np.random.default_rng([seed, here["n"]]))
                for name, cost in paid.items():
                    solver = v22.solvers({})[method]
                    found[name].append(v22.excess(method, solver, X, y, w, cost, seed))
            report.add(
                paper="V22",
                epsilon=epsilon,
                delta=v22.DELTA,
                n_rows=here["n"],
                method=method,
                runs=PASS_RUNS,
                true_epsilon=f"{paid['excess_printed']:.4g}",
                **mean_and_error("excess_printed", found["excess_printed"]),
                **mean_and_error("excess_honest", found["excess_honest"]),
            )


def verdict(report):
    for row in report.rows:
        if row.get("method"):
            yield (
                f"V22, {row['method']}, n = {row['n_rows']}, epsilon {row['epsilon']:g}, "
                f"{row['runs']} runs: the printed noise costs {row['true_epsilon']} and leaves an "
                f"excess of {row['excess_printed']}+-{row['excess_printed_error']}; noise that "
                f"spends the budget leaves {row['excess_honest']}+-{row['excess_honest_error']}."
            )
            continue
        ratio = float(row["printed"]) / float(row["honest"])
        yield (
            f"{row['paper']}, epsilon {row['epsilon']:g}, n = {row['n_rows']}, {row['n_steps']} "
            f"steps on {row['batch']} rows: printed noise {row['printed']} costs epsilon = "
            f"{row['true_epsilon']}; honest noise is {row['honest']}: printed is {ratio:.3g} times "
            "that."
        )


def draw(report, plt):
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for row in (row for row in report.rows if not row.get("method")):
        ax.scatter(row["epsilon"], float(row["true_epsilon"]), label=row["paper"])
    ends = [0.01, 1e4]
    ax.plot(ends, ends, color="grey", lw=0.5)
    ax.set(
        xscale="log", yscale="log", xlabel="epsilon that is named", ylabel="epsilon that it costs"
    )
    ax.legend(fontsize=7)
    return figure


def main():
    warnings.simplefilter("ignore", skdp.PrivacyWarning)  # of delta next to 1/n
    report = Report("printed")
    for paper, epsilon, delta, n_rows, n_steps, batch in RUNS:
        noise = printed_noise(paper, epsilon, delta, n_rows, n_steps, batch)
        adjacency = "replace_one" if paper in REPLACE_ONE else "zero_out"
        found = calibrate(noise.event, epsilon, noise.delta, Adjacency.parse(adjacency))
        report.add(
            paper=paper,
            epsilon=epsilon,
            delta=delta,
            n_rows=n_rows,
            n_steps=n_steps,
            batch=batch or n_rows,
            adjacency=adjacency,
            printed=f"{noise.multiplier:.4g}",
            true_epsilon=f"{noise.true_epsilon(adjacency):.4g}",
            honest=f"{noise.multiplier * found.scale:.4g}",
        )
    passes(report)
    report.finish(verdict(report), draw)


if __name__ == "__main__":
    main()
