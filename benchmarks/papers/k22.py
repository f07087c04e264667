"""Kuru, Birbil, Gurbuzbalaban, Yildirim 2022: do accelerated methods with Laplace noise win?

Figures 3 and 4 in the set-up of the authors' code, with the noise corrected: logistic regression
with d = 20, n = 1e5, penalty 0.01 |x|^2, rows uniform in [0, 1]^20, labels by the sign of a linear
function, epsilon = 1 and delta = 0 under replace-one (sensitivity 40), start at 10 times ones,
E_0 = 10. The first stage of MASG has ceil(2 sqrt(kappa) ln sqrt(kappa)) steps, the heavy ball has
Nesterov's momentum. L is that of other rows of the same law, so that it costs nothing. The
published code uses a scale where the standard deviation was wanted, so that its noise is sqrt(2)
too small.

The runs are plain numpy, many at once, one column each, since the estimators would check and
calibrate each of them anew. Tests compare them with the solvers.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from benchmarks.papers.printed_noise import printed_noise
from benchmarks.papers.report import chosen, columns_of, cost_of_noise, shown
from skdp.solvers.papers import kuru_2022 as kuru
from skdp.steps import influence_to_noise

D, N, STRENGTH, EPSILON, SENSITIVITY, GUESS, P = 20, 100_000, 0.01, 1.0, 40.0, 10.0, 1.0
START, MU = 10.0, 2 * STRENGTH
STEPS, FACTORS = (100, 200, 500, 1000), (0.1, 1.0)
FIGURES = {"Fig. 3": (N, 8), "Fig. 4": (1000, 4)}  # rows in a batch, runs
POINTS = 16  # of each curve over t
BLOCK = 1 << 13
LABELS = {
    "gd": "DP-GD",
    "heavy_ball": "DP-HB",
    "nesterov": "DP-NAG",
    "multistage": "DP-MASG",
    "nesterov_opt": "DP-NAG-opt",
    "multistage_opt": "DP-MASG-opt",
}


def first_stage(kappa):
    """Steps of the first stage in the authors' code."""
    return math.ceil(2 * math.sqrt(kappa) * math.log(math.sqrt(kappa)))


def step_sizes(name, n_steps, step, smoothness, kappa):
    """alpha_t, step by step."""
    if not name.startswith("multistage"):
        return np.full(n_steps, step / smoothness)
    stage = kuru.stages_of_steps(n_steps, kappa, first_stage(kappa), P)
    return step / smoothness * np.where(stage == 1, 1.0, 4.0**-stage)


def number_of_steps(name, most, step, smoothness, mu, excess, variance):
    """T, or for the -opt versions the T' <= T that makes the bound (32) least."""
    if not name.endswith("opt"):
        return most
    stages = (first_stage(smoothness / mu), P) if name.startswith("multistage") else None
    bounds = kuru.nesterov_bounds(
        most, kuru.RunFacts(smoothness, mu, excess, variance), step, stages
    )
    return int(np.argmin(bounds)) + 1


def noise_multipliers(name, n_steps, step, kappa, epsilon, rate):
    """b_t in units of the sensitivity, which cost epsilon together."""
    logs = np.zeros(n_steps)
    if name.endswith("opt"):
        stages = (first_stage(kappa), P) if name.startswith("multistage") else None
        logs = kuru.nesterov_influence(n_steps, kappa, 1.0, step, stages)[1]
    shape = influence_to_noise(logs, "laplace")

    def excess(factor):
        return np.log1p(rate * np.expm1(1 / (factor * shape))).sum() - epsilon

    whole = (1 / shape).sum() / epsilon  # of the budget without samples
    return shape * brentq(excess, whole * rate / 2, 2 * whole)


def iterates(name, start, gradient, sizes, mu):
    """Yield x_1, x_2, ...; ``gradient(t, x)`` is noisy or not."""
    before = now = start
    for t, size in enumerate(sizes):
        if t > 0 and size != sizes[t - 1]:
            before = now
        root = math.sqrt(size * mu)
        beta = 0.0 if name == "gd" else (1 - root) / (1 + root)
        ahead = now if name in ("gd", "heavy_ball") else (1 + beta) * now - beta * before
        after = ahead - size * gradient(t, ahead)
        if name == "heavy_ball":
            after = after + beta * (now - before)
        before, now = now, after
        yield now


class LogisticProblem:
    """Mean logistic loss plus ``strength * |x|**2``; x of shape (d, runs), labels of -1 and 1."""

    def __init__(self, U, z, strength):
        self.signed = U * z[:, None].astype(U.dtype)
        self.strength = strength

    def gradient(self, x):
        """Gradient for every column."""
        x = x.astype(self.signed.dtype)
        total = np.zeros(x.shape)
        for start in range(0, len(self.signed), BLOCK):
            block = self.signed[start : start + BLOCK]
            margins = block @ x
            # -1 / (1 + exp(m)), in place
            np.exp(margins, out=margins)
            margins += 1
            np.divide(-1, margins, out=margins)
            total += block.T @ margins
        return total / len(self.signed) + 2 * self.strength * x

    def sampled_gradient(self, x, size, rng):
        """Gradient for every column, each on its own sample without replacement."""
        n_rows, runs = len(self.signed), x.shape[1]
        numbers = np.stack([rng.choice(n_rows, size, replace=False) for _ in range(runs)])
        rows = self.signed[numbers]
        margins = np.einsum("rij,jr->ri", rows, x.astype(rows.dtype), optimize=True)
        residuals = -1 / (1 + np.exp(margins))
        return np.einsum("rij,ri->jr", rows, residuals, optimize=True) / size + 2 * (
            self.strength * x
        )

    def value(self, x):
        """Objective for every column."""
        x32 = x.astype(self.signed.dtype)
        total = np.zeros(x.shape[1])
        for start in range(0, len(self.signed), BLOCK):
            margins = self.signed[start : start + BLOCK] @ x32
            total += np.logaddexp(0, -margins).sum(axis=0, dtype=np.float64)
        return total / len(self.signed) + self.strength * (x**2).sum(axis=0)


def rows_of_the_law(n_rows, rng):
    return rng.random((n_rows, D))


def minimum(task, smoothness):
    """F at the end of NAG without noise, as in the paper."""
    sizes = step_sizes("nesterov", 1000, 1.0, smoothness, smoothness / MU)
    *_, last = iterates("nesterov", np.zeros((D, 1)), lambda t, x: task.gradient(x), sizes, MU)
    return float(task.value(last)[0])


def curve(task, smoothness, least, name, most, step, size, runs, rng):
    """Return t -> F(x_t) - F* of every run, for some t, the last of which is T."""
    kappa, n_rows = smoothness / MU, len(task.signed)
    variance = 2 * D * (SENSITIVITY / (n_rows * EPSILON)) ** 2
    n_steps = number_of_steps(name, most, step, smoothness, MU, GUESS, variance)
    sizes = step_sizes(name, n_steps, step, smoothness, kappa)
    scales = noise_multipliers(name, n_steps, step, kappa, EPSILON, size / n_rows)
    scales = scales * SENSITIVITY / size

    def gradient(t, x):
        exact = task.gradient(x) if size == n_rows else task.sampled_gradient(x, size, rng)
        return exact + scales[t] * rng.laplace(size=x.shape)

    drawn = set(np.unique(np.geomspace(1, n_steps, POINTS).astype(int)))
    begin = np.full((D, runs), START)
    path = iterates(name, begin, gradient, sizes, MU)
    return {t: task.value(x) - least for t, x in enumerate(path, 1) if t in drawn}


def run(report):
    for rows, steps in ((N, 200), (1000, 200)):
        noise = printed_noise("K22", EPSILON, 0.0, N, steps, rows)
        report.add_noise(f"published code, {steps} steps on {rows:,} rows", noise)
    rng, n_rows = np.random.default_rng(22), 5000 if report.quick else N
    U = rows_of_the_law(n_rows, rng)
    z = np.where(U @ rng.standard_normal(D) > 0, 1.0, -1.0)
    task = LogisticProblem(U.astype(np.float32), z, STRENGTH)
    public = rows_of_the_law(n_rows, np.random.default_rng(23))
    smoothness = float(np.linalg.eigvalsh(public.T @ public / n_rows)[-1]) + MU
    least = minimum(task, smoothness)
    for part, (size, runs) in FIGURES.items():
        size, runs = (min(size, n_rows), 2) if report.quick else (size, runs)
        for step in FACTORS:
            for name in LABELS:
                for most in STEPS[:2] if report.quick else STEPS:
                    found = curve(task, smoothness, least, name, most, step, size, runs, rng)
                    row = {"m": size, "c": step, "algorithm": name, "T": most, "runs": runs}
                    row["kappa"] = f"{smoothness / MU:.4g}"
                    for t, excess in found.items():
                        row |= {"steps": t, **columns_of("excess", excess)}
                        report.rows.append({"part": f"{part}, curve", **row})
                    report.add(part=part, **row)


def with_best_length(rows):
    """Algorithm -> its row at the number of steps that leaves least.

    Versions with optimal noise stop before the cap T, so that several T are draws of the same run:
    their means are averaged first, as the least of several draws is too small.
    """
    best = {}
    for name in LABELS:
        here = chosen(rows, algorithm=name)
        lengths = [chosen(here, steps=steps) for steps in {row["steps"] for row in here}]
        found = [
            {
                "excess": float(np.mean([row["excess"] for row in same])),
                "excess_error": math.hypot(*(row["excess_error"] for row in same)) / len(same),
            }
            for same in lengths
        ]
        best[name] = min(found, key=lambda row: row["excess"])
    return best


def verdict(rows):
    for part in FIGURES:
        for step in FACTORS:
            best = with_best_length(chosen(rows, part=part, c=step))
            first, second = (
                min((name for name in best if name.endswith("opt") == is_opt),
                    key=lambda name: best[name]["excess"])
                for is_opt in (True, False)
            )  # fmt: skip
            difference = best[second]["excess"] - best[first]["excess"]
            error = math.hypot(best[first]["excess_error"], best[second]["excess_error"])
            yield (
                f"A version with optimal noise ends lowest ({part}, c = {step:g})",
                f"{LABELS[first]} {shown(best[first], 'excess')}, {LABELS[second]} "
                f"{shown(best[second], 'excess')}, each with its best T",
                "within its error" if abs(difference) < 2 * error
                else "holds" if difference > 0 else "does not hold",
            )  # fmt: skip
    for most, wins in ((STEPS[0], True), (STEPS[-1], False)):
        here = {row["algorithm"]: row for row in chosen(rows, part="Fig. 3", c=1.0, T=most)}
        if here:
            faster = here["heavy_ball"]["excess"] < here["gd"]["excess"]
            told = ", ".join(
                f"{LABELS[name]} {shown(here[name], 'excess')}" for name in list(here)[:3]
            )
            yield (
                f"With uniform noise acceleration {'wins' if wins else 'loses'} at T = {most} "
                "(Fig. 3, c = 1)",
                told,
                "holds" if faster == wins else "does not hold",
            )
    yield from cost_of_noise(rows)


def draw(rows, plt):
    """Fig. 3, a panel for each algorithm with curves of T."""
    figure, axes = plt.subplots(2, 6, figsize=(13, 5), sharey="row", layout="constrained")
    for line, step in zip(axes, FACTORS, strict=True):
        for ax, name in zip(line, LABELS, strict=True):
            here = chosen(rows, part="Fig. 3, curve", c=step, algorithm=name)
            for most in dict.fromkeys(row["T"] for row in here):
                points = chosen(here, T=most)
                excess = [row["excess"] for row in points]
                ax.plot([row["steps"] for row in points], excess, label=f"T = {most:.0f}")
            ax.set(xscale="log", yscale="log", title=f"{LABELS[name]}, c = {step:g}")
        line[0].set_ylabel("F(x_t) - F*")
    axes[0, 0].legend()
    return figure
