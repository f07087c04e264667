"""[K22], Figures 1 to 4 in the set-up of the authors' own code, with the noise corrected.

Run `python -m benchmarks.papers.k22_published`; `figures`, `factors` or `bounds` after it runs one
part, without writing; `again` judges the last run anew. The code that the paper links to fixes what
the paper leaves open, and what `benchmarks.papers.k22` chose otherwise: rows are uniform in [0,
1]^20, not centred; labels are the signs of a linear function; all methods start at 10 times ones,
far away; the first stage of MASG has ceil(2 sqrt(kappa) ln sqrt(kappa)) steps; the heavy ball has
Nesterov's momentum. What stays: epsilon = 1, delta = 0, sensitivity 40, E_0 = 10, honest Laplace
noise, L of other rows of the same law. "factors" changes rows and start one at a time, to show
which of them decides.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from benchmarks.papers import k22
from benchmarks.papers.accelerated import (
    ALGORITHMS,
    LogisticProblem,
    first_stage,
    iterates,
    noise_multipliers,
    number_of_steps,
    published_first_stage,
    step_sizes,
)
from benchmarks.papers.report import Report, mean_and_error
from benchmarks.papers.theory import heavy_ball_noise
from skdp.planning import heavy_ball_rate
from skdp.steps import MultistageNoise, NesterovNoise, relative_noise

RUNS, FEW_RUNS = 8, 4
DRAWN, POINTS = ("Fig. 3", "Fig. 4"), 16  # of each curve over t
MU = 2 * k22.STRENGTH
VARIANCE = 2 * k22.D * (k22.SENSITIVITY / (k22.N * k22.EPSILON)) ** 2


def published_rows(n_rows, rng):
    return rng.random((n_rows, k22.D))


def task_of(law, rng):
    """Rows, labels, and the curvature of other rows of the same law."""
    if law == "ours":
        task, rows = k22.problem(rng), k22.rows
    else:
        U = published_rows(k22.N, rng)
        z = np.where(U @ rng.standard_normal(k22.D) > 0, 1.0, -1.0)
        task, rows = LogisticProblem(U.astype(np.float32), z, k22.STRENGTH), published_rows
    public = rows(k22.N, np.random.default_rng(23))
    return task, float(np.linalg.eigvalsh(public.T @ public / k22.N)[-1]) + MU


def errors(task, smoothness, least, name, most, step, size, start, runs, rng, first):
    """F(x_t) - F* of every run, for some t, the last of which is T."""
    kappa = smoothness / MU
    n_steps = number_of_steps(name, most, step, smoothness, MU, k22.GUESS, VARIANCE, first)
    sizes = step_sizes(name, n_steps, step, smoothness, kappa, first)
    rate = size / k22.N
    scales = noise_multipliers(name, n_steps, step, kappa, k22.EPSILON, rate, first)
    scales = scales * k22.SENSITIVITY / size

    def gradient(t, x):
        exact = task.gradient(x) if size == k22.N else task.sampled_gradient(x, size, rng)
        return exact + scales[t] * rng.laplace(size=x.shape)

    drawn = set(np.unique(np.geomspace(1, n_steps, POINTS).astype(int)))
    begin = np.full((k22.D, runs), float(start))
    path = iterates(name, begin, gradient, sizes, MU, published=True)
    return {t: task.value(x) - least for t, x in enumerate(path, 1) if t in drawn}


def compare(report, part, law, start, first, sizes, steps, runs):
    rng = np.random.default_rng(22)
    task, smoothness = task_of(law, rng)
    least = k22.minimum(task, smoothness, MU)
    at_start = float(task.value(np.full((k22.D, 1), float(start)))[0]) - least
    for size in sizes:
        for step in k22.FACTORS:
            for name in ALGORITHMS:
                for most in steps:
                    curve = errors(
                        task, smoothness, least, name, most, step, size, start, runs, rng, first
                    )
                    row = {"rows": law, "start": start, "m": size, "c": step}
                    row |= {"algorithm": name, "T": most, "runs": runs}
                    row |= {"kappa": f"{smoothness / MU:.4g}", "at_start": f"{at_start:.4g}"}
                    for t, found in curve.items():
                        row |= {"steps": t, **mean_and_error("excess", found)}
                        if part in DRAWN:
                            report.rows.append({"part": f"{part}, curve", **row})
                    report.add(part=part, **row)


def figures(report):
    published = ("published", 10.0, published_first_stage)
    compare(report, "Fig. 3", *published, [k22.N], k22.STEPS, RUNS)
    compare(report, "Fig. 4", *published, [1000], k22.STEPS, FEW_RUNS)


def factors(report):
    for law, start in (("published", 0.0), ("ours", 10.0), ("ours", 0.0)):
        first = published_first_stage if law == "published" else first_stage
        compare(report, "factors", law, start, first, [k22.N], k22.STEPS[:3], FEW_RUNS)


def bounds(report):
    """Figures 1 and 2: what the theory says of the heavy ball, and the optimal noise."""
    for beta in np.linspace(0, 0.95, 20):
        for alpha in (0.25, 0.5, 1.0, 1.5):
            rate = heavy_ball_rate(alpha, beta, 1.0, 0.05)
            noise = heavy_ball_noise(alpha, beta, 1.0, 0.05) if rate < 1 else math.inf
            report.rows.append(
                {
                    "part": "Fig. 1",
                    "alpha": alpha,
                    "beta": f"{beta:.3g}",
                    "rho": f"{rate:.6g}",
                    "m": f"{noise:.6g}",
                }
            )
    for kind, schedule in (
        ("NAG-opt", NesterovNoise(20.0)),
        ("MASG-opt", MultistageNoise(20.0, 1.0, 13, 1.0)),
    ):
        for most in (13, 53, 133):
            noise = relative_noise(schedule, most, "laplace")
            noise = noise * np.sum(1 / noise)  # n epsilon b_t / S
            for t in sorted({1, most // 4, most // 2, 3 * most // 4, most} - {0}):
                report.rows.append(
                    {
                        "part": "Fig. 2",
                        "algorithm": kind,
                        "T": most,
                        "steps": t,
                        "b": f"{noise[t - 1]:.6g}",
                    }
                )


def of(report, part, **wanted):
    """(algorithm, T) -> (excess, error, steps taken)."""
    return {
        (row["algorithm"], row["T"]): (
            float(row["excess"]),
            float(row["excess_error"]),
            row["steps"],
        )
        for row in report.rows
        if row["part"] == part and all(row[name] == value for name, value in wanted.items())
    }


def ranked(found, where):
    least = k22.with_best_length(found)
    order = sorted(least, key=lambda name: least[name][0])
    texts = [f"{k22.LABELS[n]} {least[n][0]:.3g} (+-{least[n][1]:.1g})" for n in order]
    opt = min(least[n][0] for n in order if n.endswith("opt"))
    plain = min(least[n][0] for n in order if not n.endswith("opt"))
    holds = "holds" if opt < plain else "does not hold"
    return (
        f'{where}, each with its best T: {", ".join(texts)}. The paper\'s "-opt lowest" {holds}: '
        f"{opt / plain:.2f} of the best other."
    )


def verdict(report):
    one = next(row for row in report.rows if row["part"] == "Fig. 3")
    yield (
        f"Set-up of the authors' code: rows uniform in [0,1]^20, start 10 x ones, kappa = "
        f"{one['kappa']}, excess at the start {one['at_start']}; honest Laplace noise, epsilon 1. "
        f"{RUNS} runs (Fig. 3) and {FEW_RUNS} (Fig. 4), +- one standard error."
    )
    for part in ("Fig. 3", "Fig. 4"):
        for step in k22.FACTORS:
            found = of(report, part, c=step)
            yield ranked(found, f"{part}, c = {step:g}")
            shown = [
                f"T = {most}: GD {found['gd', most][0]:.3g}, HB "
                f"{found['heavy_ball', most][0]:.3g}, NAG {found['nesterov', most][0]:.3g}"
                for most in sorted({most for _, most in found})
            ]
            yield f"{part}, c = {step:g}, uniform noise: {'; '.join(shown)}."
    for law, start in (("published", 0.0), ("ours", 10.0), ("ours", 0.0)):
        for step in k22.FACTORS:
            found = of(report, "factors", rows=law, start=start, c=step)
            yield ranked(found, f"What decides: rows {law}, start {start:g}, c = {step:g}, m = n")
    ratios = []
    for law, start in (("published", 10.0), ("published", 0.0), ("ours", 10.0), ("ours", 0.0)):
        found = of(report, "factors", rows=law, start=start, c=1.0) or of(report, "Fig. 3", c=1.0)
        least = k22.with_best_length(found)
        staged = least["multistage_opt"][0]
        plain = min(value for name, (value, _) in least.items() if not name.endswith("opt"))
        ratios.append(f"{law} rows and first stage, start {start:g}: {staged / plain:.2f}")
    yield (
        "DP-MASG-opt at c = 1 and m = n, in units of the best method without -opt: "
        f"{'; '.join(ratios)}. `benchmarks.papers.k22` is the last of these, where it loses."
    )


def draw(report, plt):
    """Figs 1 and 2 at the top; below, as printed, a panel for each algorithm with curves of T."""
    figure = plt.figure(figsize=(15, 14), layout="constrained")
    grid = figure.add_gridspec(5, 6)
    theory = [figure.add_subplot(grid[0, part]) for part in (slice(0, 2), slice(2, 4), slice(4, 6))]
    bounds = [row for row in report.rows if row["part"] == "Fig. 1"]
    for alpha in dict.fromkeys(row["alpha"] for row in bounds):
        here = [row for row in bounds if row["alpha"] == alpha]
        for ax, name in zip(theory[:2], ("rho", "m"), strict=True):
            values = [float(row[name]) for row in here]
            ax.plot([float(row["beta"]) for row in here], values, label=f"alpha = {alpha} / L")
    theory[0].set(title="Fig. 1: rate of the heavy ball", xlabel="beta")
    theory[1].set(title="Fig. 1: its noise next to that of a step", xlabel="beta", yscale="log")
    for kind in ("NAG-opt", "MASG-opt"):
        rows = [r for r in report.rows if r["part"] == "Fig. 2" and r["algorithm"] == kind]
        chosen = [r for r in rows if r["T"] == 133]
        theory[2].plot([r["steps"] for r in chosen], [float(r["b"]) for r in chosen], label=kind)
    theory[2].set(title="Fig. 2: n eps b_t / S, kappa 20", xlabel="t", yscale="log")
    panels = [(part, step) for part in DRAWN for step in k22.FACTORS]
    for line, (part, step) in enumerate(panels, 1):
        first = None
        for place, name in enumerate(ALGORITHMS):
            first = ax = figure.add_subplot(grid[line, place], sharey=first)
            rows = [
                row
                for row in report.rows
                if (row["part"], row.get("c"), row.get("algorithm"))
                == (f"{part}, curve", step, name)
            ]
            for most in dict.fromkeys(row["T"] for row in rows):
                here = [row for row in rows if row["T"] == most]
                values = [float(row["excess"]) for row in here]
                ax.plot([row["steps"] for row in here], values, label=f"T = {most}")
            ax.set(xscale="log", yscale="log", title=f"{k22.LABELS[name]}, {part}, c = {step:g}")
            ax.title.set_fontsize(9)
        figure.axes[-len(ALGORITHMS)].set_ylabel("F(x_t) - F*")
    for ax in (*theory, figure.axes[3]):
        ax.legend(fontsize=7)
    return figure


PARTS = {"bounds": bounds, "figures": figures, "factors": factors}


def main(names):
    report = Report("k22_published")
    if names == ["again"]:
        report.reload("T", "steps", "c", "start")
        report.finish(verdict(report), draw)
        return
    report.run(PARTS, names, verdict, draw)


if __name__ == "__main__":
    main(sys.argv[1:])
