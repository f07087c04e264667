"""What the printed noise of five papers costs, in their own set-ups.

Run `python -m benchmarks.papers.printed`. Every row is a run of a paper: the budget that it names,
the noise that it prints (`skdp.planning.papers.printed_noise`), the epsilon that an accountant
certifies for that noise, and the noise that the budget really takes. Unspecified constants are 1.
"""

from __future__ import annotations

from benchmarks.papers.report import Report
from skdp.accounting import Adjacency, calibrate
from skdp.planning.papers import printed_noise

# Paper, budget, rows, steps, rows in a batch.
RUNS = (
    ("H22", 4.0, 1e-8, 1000, 100, None),
    ("W17 gd", 0.2, 1e-3, 200_000, 1500, None),
    ("W17 svrg", 0.2, 1e-3, 200_000, 75_000, 1),
    ("Wu21", 0.8, 1e-5, 50_000, 11_760, 256),
    ("Wu21", 0.1, 1e-5, 10_000, 300, 256),
    ("K22", 1.0, 0.0, 100_000, 200, None),
    ("K22", 1.0, 0.0, 100_000, 200, 1000),
    ("V22", 1.0, 1e-6, 50_000, 100, None),
)
# Their neighbours: [V22] prints noise for the sensitivity 2 zeta.
REPLACE_ONE = {"V22"}


def verdict(report):
    for row in report.rows:
        ratio = float(row["printed"]) / float(row["honest"])
        yield (
            f"{row['paper']}, epsilon {row['epsilon']:g}, n = {row['n_rows']}, {row['n_steps']} "
            f"steps on {row['batch']} rows: printed noise {row['printed']} costs epsilon = "
            f"{row['true_epsilon']}; honest noise is {row['honest']}: printed is {ratio:.3g} times "
            "that."
        )


def draw(report, plt):
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for row in report.rows:
        ax.scatter(row["epsilon"], float(row["true_epsilon"]), label=row["paper"])
    ends = [0.01, 1e4]
    ax.plot(ends, ends, color="grey", lw=0.5)
    ax.set(
        xscale="log", yscale="log", xlabel="epsilon that is named", ylabel="epsilon that it costs"
    )
    ax.legend(fontsize=7)
    return figure


def main():
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
            batch=batch or (1 if paper == "W17 svrg" else n_rows),
            adjacency=adjacency,
            printed=f"{noise.multiplier:.4g}",
            true_epsilon=f"{noise.true_epsilon(adjacency):.4g}",
            honest=f"{noise.multiplier * found.scale:.4g}",
        )
    report.finish(verdict(report), draw)


if __name__ == "__main__":
    main()
