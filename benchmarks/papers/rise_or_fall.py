"""Should noise rise or fall? Both answers, each where its assumptions hold.

Run `python -m benchmarks.papers.rise_or_fall`. Noisy gradient descent on quadratics of one
curvature h in all directions, 500 steps of 1/sqrt(20 + t), one budget, 1,000 runs; how much of the
initial distance the steps forget, exp(-h sum of steps), is what decides.
"""

from __future__ import annotations

import numpy as np

from benchmarks.papers.report import Report, errorbar, mean_and_error
from skdp.steps import (
    CustomNoise,
    ExponentialNoise,
    PolynomialStep,
    StepMatchedNoise,
    UniformNoise,
    least_noise_effect,
    noise_effect,
    noise_multipliers,
)

STEPS, RUNS, DIMENSION, STD = 500, 1000, 20, 0.01
CURVATURES = np.geomspace(1e-4, 1.0, 9)
SIZES = PolynomialStep().sizes(STEPS)


def influence(curvature):
    """log q_t: what step t lets in, times what later steps leave of it."""
    kept = np.log1p(-SIZES * curvature)
    later = np.cumsum(kept[::-1])[::-1] - kept
    return 2 * (np.log(SIZES) + later)


def simulate(curvature, multipliers):
    """Excess at the end, run by run, started at the minimum, in units of its h/2."""
    rng = np.random.default_rng(0)
    points = np.zeros((RUNS, DIMENSION))
    for size, multiplier in zip(SIZES, STD * multipliers, strict=True):
        points -= size * (curvature * points + multiplier * rng.standard_normal(points.shape))
    return np.sum(points**2, axis=1)


def run(report):
    for curvature in CURVATURES:
        logs = influence(curvature)
        schedules = {
            "uniform": UniformNoise(),
            "rising": StepMatchedNoise(PolynomialStep()),
            "falling": ExponentialNoise(float(np.exp(-2 * curvature * SIZES.mean()))),
            "best": CustomNoise(logs, logarithmic=True),
        }
        noises = {
            name: noise_multipliers(schedule.log_influence(STEPS), 1.0)
            for name, schedule in schedules.items()
        }
        measured = {name: simulate(curvature, noise) for name, noise in noises.items()}
        unit = measured["uniform"].mean()
        row = {}
        for name, values in measured.items():
            row |= mean_and_error(name, values / unit)
            row[f"{name}_exact"] = (
                f"{noise_effect(logs, noises[name]) / noise_effect(logs, np.ones(STEPS)):.5f}"
            )
        bound = least_noise_effect(logs) / noise_effect(logs, np.ones(STEPS))
        report.add(
            curvature=f"{curvature:.3g}",
            forgotten=f"{1 - np.exp(-curvature * SIZES.sum()):.4f}",
            **row,
            least=f"{bound:.5f}",
        )


def verdict(report):
    for row in (report.rows[0], report.rows[-1]):
        left = {name: float(row[name]) for name in ("rising", "falling", "least")}
        yield (
            f"Curvature {row['curvature']}, where the run forgets "
            f"{100 * float(row['forgotten']):.1f} per cent of its start: next to uniform noise, "
            f"rising noise leaves {left['rising']:.2f} and falling noise {left['falling']:.2f} of "
            f"the excess; the least possible is {left['least']:.2f}."
        )


def draw(report, plt):
    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, style in (("uniform", "-"), ("rising", "-"), ("falling", "-"), ("best", "--")):
        errorbar(ax, report.rows, "curvature", name, ls=style, label=name)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="curvature",
        ylabel="excess that noise leaves, uniform = 1",
        title=f"{STEPS} steps of 1/sqrt(20 + t), one budget",
    )
    ax.legend()
    return figure


def main():
    report = Report("rise_or_fall")
    run(report)
    report.finish(verdict(report), draw)


if __name__ == "__main__":
    main()
