"""[Wu21] where its claims are made: a network, curves along the run, and its tuning of (beta, C).

Run `python -m benchmarks.papers.wu21_network`; `curves`, `constant` or `tuning` after it runs one
part, without writing. The paper trains convolutional networks on CIFAR-10 and MNIST. Here it is the
network of `benchmarks.papers.h22_network`, which is not convex: 1,000 hidden units on MNIST 3
against 5, all rows in every step, noise by `skdp.steps`, exact accounting.

- curves: Figs 1 and 3, accuracy, noise in a step and epsilon spent along a run with steps of
  1/sqrt(20+t). The paper reports the last and the best iterate; choosing the best takes data that
  no budget pays for.
- constant: Fig. 4, steps of 1/sqrt(2+ct) at a noise that is the same for all c; 0 is constant.
- tuning: Tables 3 and 6 on the logistic regression of `benchmarks.papers.wu21`: DP-SGD has the best
  of its weights beta, ADP-SGD the best of all pairs (beta, C), chosen on the very scores that are
  compared, as in the paper; so ADP-SGD chooses among four times as many.
"""

from __future__ import annotations

import sys

import numpy as np

import skdp
from benchmarks.papers import h22, wu21
from benchmarks.papers.h22_network import Network
from benchmarks.papers.report import Report, errorbar, mean_and_error
from skdp.accounting import Adjacency, Composed, Gaussian, gaussian_mu, price
from skdp.steps import AdaptiveStep, PolynomialStep, relative_noise

DELTA, CLIP, N_ROWS = 1e-5, 1.0, 1000
# curves: budgets, steps, runs, and every how many steps accuracy is taken.
EPSILONS, STEPS, SEEDS, EVERY = (0.1, 0.3, 1.0), 200, 6, 20
# constant: values of c, noise multipliers, runs.
DECAYS, MULTIPLIERS, FIG4_SEEDS = (0.0, 0.02, 0.2, 2.0), (20.0, 60.0), 4
# tuning: values of beta and C, steps between resets, steps, runs, budgets.
BETAS, GROWTHS, RESET, TUNED_STEPS, TUNED_RUNS = (1.0, 512.0), (1e-5, 1e-4, 1e-3, 1e-2), 39, 300, 6
TUNED_EPSILONS = (0.03, 0.1)
SCHEDULES = {"dp": "uniform", "adp": "step_matched"}


def multipliers_for(schedule, sizes, epsilon):
    """Noise multipliers that spend (epsilon, DELTA) exactly."""
    relative = relative_noise(schedule, len(sizes), sizes=sizes)
    return relative * np.sqrt(np.sum(relative**-2.0)) / gaussian_mu(epsilon, DELTA)


def spent(multipliers):
    """Epsilon of these steps at DELTA."""
    plan = Composed(tuple((Gaussian(float(sigma)), 1) for sigma in multipliers))
    return price(plan, DELTA, Adjacency.ZERO_OUT)[0]


def accuracies(data, sizes, multipliers, seed):
    """Test accuracy after every ``EVERY`` steps of one run."""
    X, y, X_test, y_test = data
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(X), N_ROWS, replace=False)
    X, y = X[rows].astype(np.float32), y[rows]
    network, found = Network(X.shape[1], rng), []
    for t, (size, multiplier) in enumerate(zip(sizes, multipliers, strict=True), 1):
        network.step(X, y, size, CLIP, multiplier, rng)
        if t % EVERY == 0:
            found.append(network.accuracy(X_test, y_test))
    return 100 * np.array(found)


def curves(report):
    data = h22.mnist()
    sizes = PolynomialStep().sizes(STEPS)
    for epsilon in EPSILONS:
        plans = {name: multipliers_for(SCHEDULES[name], sizes, epsilon) for name in SCHEDULES}
        runs = {
            name: np.array([accuracies(data, sizes, plan, seed) for seed in range(SEEDS)])
            for name, plan in plans.items()
        }
        for place, t in enumerate(range(EVERY, STEPS + 1, EVERY)):
            report.add(
                part="curves",
                epsilon=epsilon,
                t=t,
                runs=SEEDS,
                **mean_and_error("accuracy_dp", runs["dp"][:, place]),
                **mean_and_error("accuracy_adp", runs["adp"][:, place]),
                **mean_and_error("gap", runs["adp"][:, place] - runs["dp"][:, place]),
                **mean_and_error("best_gap", runs["adp"].max(axis=1) - runs["dp"].max(axis=1)),
                noise_dp=f"{sizes[t - 1] * plans['dp'][t - 1]:.4g}",
                noise_adp=f"{sizes[t - 1] * plans['adp'][t - 1]:.4g}",
                spent_dp=f"{spent(plans['dp'][:t]):.4g}",
                spent_adp=f"{spent(plans['adp'][:t]):.4g}",
            )


def constant(report):
    data, times = h22.mnist(), np.arange(1, STEPS + 1)
    for multiplier in MULTIPLIERS:
        noise = np.full(STEPS, multiplier)
        for decay in DECAYS:
            sizes = 1 / np.sqrt(2 + decay * times)
            last = [accuracies(data, sizes, noise, seed)[-1] for seed in range(FIG4_SEEDS)]
            report.add(
                part="constant",
                multiplier=multiplier,
                spent_dp=f"{spent(noise):.4g}",
                decay=decay,
                runs=FIG4_SEEDS,
                **mean_and_error("accuracy_dp", last),
            )


def tuning(report):
    X, y, X_test, y_test = wu21.mnist()
    for epsilon in TUNED_EPSILONS:
        for beta in BETAS:
            for name, growth in (("dp", 1e-3), *(("adp", growth) for growth in GROWTHS)):
                rule = AdaptiveStep(first=20**0.5, weight=beta, growth=growth, reset=RESET)
                schedule = SCHEDULES[name]
                model = wu21.model(
                    range(10), wu21.PAPER, TUNED_STEPS, CLIP, epsilon, schedule, "auto", 0
                )
                model.set_params(solver__learning_rate=rule)
                scores = []
                for seed in range(TUNED_RUNS):
                    model.set_params(privacy__noise=skdp.SeededNoise(seed)).fit(X, y)
                    scores.append(100 * model.score(X_test, y_test))
                report.add(
                    part="tuning",
                    epsilon=epsilon,
                    beta=beta,
                    growth=growth if name == "adp" else "",
                    runs=TUNED_RUNS,
                    **mean_and_error(f"accuracy_{name}", scores),
                )


def best_of(rows, name):
    rows = [row for row in rows if row.get(f"accuracy_{name}")]
    return max(rows, key=lambda row: float(row[f"accuracy_{name}"]))


def verdict(report):
    of = {part: [row for row in report.rows if row["part"] == part] for part in PARTS}
    for epsilon in EPSILONS:
        rows = [row for row in of["curves"] if row["epsilon"] == epsilon]
        told = ", ".join(f"{row['gap']}+-{row['gap_error']} at {row['t']}" for row in rows[1:-1:4])
        last = rows[-1]
        half = rows[len(rows) // 2 - 1]
        yield (
            f"Network, 1/sqrt(20+t), clip {CLIP:g}, n = {N_ROWS}, epsilon {epsilon:g}, "
            f"{SEEDS} runs: points gained by ADP-SGD {told}, {last['gap']}+-{last['gap_error']} at "
            f"{last['t']} (of {last['accuracy_dp']} per cent); by the best iterates "
            f"{last['best_gap']}+-{last['best_gap_error']}. After {half['t']} steps DP-SGD has "
            f"spent epsilon {half['spent_dp']}, ADP-SGD {half['spent_adp']}. The paper: better, "
            "most at small epsilon, and growing with t."
        )
    for multiplier in MULTIPLIERS:
        rows = [row for row in of["constant"] if row["multiplier"] == multiplier]
        told = ", ".join(
            f"c = {row['decay']:g} {row['accuracy_dp']}+-{row['accuracy_dp_error']}" for row in rows
        )
        falls = best_of(rows, "dp")["decay"] > 0
        yield (
            f"Steps 1/sqrt(2+ct) at noise multiplier {multiplier:g} (epsilon "
            f"{rows[0]['spent_dp']}), {FIG4_SEEDS} runs, accuracy: {told}. The paper: constant "
            f"steps (c = 0) are not as good as falling ones; here {'so' if falls else 'not so'}."
        )
    for epsilon in TUNED_EPSILONS:
        rows = [row for row in of["tuning"] if row["epsilon"] == epsilon]
        dp, adp = best_of(rows, "dp"), best_of(rows, "adp")
        gain = float(adp["accuracy_adp"]) - float(dp["accuracy_dp"])
        error = np.hypot(float(adp["accuracy_adp_error"]), float(dp["accuracy_dp_error"]))
        yield (
            f"Adaptive steps, epsilon {epsilon:g}, {TUNED_RUNS} runs: best DP-SGD "
            f"{dp['accuracy_dp']} at beta {dp['beta']:g}; best ADP-SGD {adp['accuracy_adp']} at "
            f"(beta, C) = ({adp['beta']:g}, {adp['growth']:g}); gain {gain:+.2f}+-{error:.2f} "
            "points. The paper: .03 to 1.3."
        )


def draw(report, plt):
    figure, axes = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
    rows = [row for row in report.rows if row["part"] == "curves"]
    for place, epsilon in enumerate(EPSILONS):
        here = [row for row in rows if row["epsilon"] == epsilon]
        colour = {"color": f"C{place}"}
        errorbar(axes[0], here, "t", "accuracy_dp", ls="--", **colour)
        errorbar(axes[0], here, "t", "accuracy_adp", label=f"epsilon {epsilon:g}", **colour)
        times = [row["t"] for row in here]
        for name, style in (("dp", "--"), ("adp", "-")):
            noise = [float(row[f"noise_{name}"]) for row in here]
            axes[1].plot(times, noise, style, color=f"C{place}")
    axes[0].set(xlabel="t", ylabel="accuracy; dashed: DP-SGD", title="Fig. 3")
    axes[1].set(xlabel="t", ylabel="noise in a step", yscale="log", title="Fig. 1")
    for multiplier in MULTIPLIERS:
        here = [row for row in report.rows if row["part"] == "constant"]
        here = [row for row in here if row["multiplier"] == multiplier]
        errorbar(axes[2], here, "decay", "accuracy_dp", label=f"noise {multiplier:g}")
    axes[2].set_xscale("symlog", linthresh=0.01)
    axes[2].set(xlabel="c of 1/sqrt(2+ct)", ylabel="accuracy", title="Fig. 4")
    axes[0].legend(fontsize=7)
    axes[2].legend(fontsize=7)
    return figure


PARTS = {"curves": curves, "constant": constant, "tuning": tuning}


def main(names):
    Report("wu21_network").run(PARTS, names, verdict, draw)


if __name__ == "__main__":
    main(sys.argv[1:])
