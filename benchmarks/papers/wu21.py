"""Wu, Wang, Cristali, Gu, Willett 2021: does noise matched to falling steps beat uniform noise?

The paper trains convolutional networks on CIFAR-10 and MNIST. Here the models are logistic
regressions on 10,000 rows of MNIST (ten digits, 50 principal components, batches of 256, the last
iterate), and a dense network of 1,000 hidden units on 1,000 rows of 3s and 5s, all of them in each
step. Noise is by `skdp.steps`, its cost exact. Rows of MNIST that no model is fitted to define the
reduction.

- budgets: steps of 1/sqrt(20+t), clip 1.
- clips: Table 1, steps of 0.1 - c sqrt(t), at four clips and at three numbers of steps.
- constant: constant steps in place of falling ones, for the logistic regression.
- curves: Figs 1 and 3, accuracy of the network along a run with steps of 1/sqrt(20+t).
- decay: Fig. 4, the network with steps of 1/sqrt(2+ct) at noise that is the same for all c.
"""

from __future__ import annotations

import numpy as np

import skdp
from benchmarks.papers.network import Network
from benchmarks.papers.printed_noise import printed_noise
from benchmarks.papers.report import chosen, columns_of, cost_of_noise, errorbar, shown
from benchmarks.papers.rows import digits
from skdp.accounting import gaussian_mu
from skdp.solvers import AdaptiveNoiseSGD
from skdp.steps import relative_noise, step_sizes

DELTA, BATCH, COLUMNS, CLIP, STEPS, RUNS = 1e-5, 256, 50, 1.0, 300, 10
FALLING, TABLE = "1/sqrt(20+t)", "0.1-c sqrt(t)"
RULES = {FALLING: "polynomial", TABLE: "square_root_decay", "constant": 0.1}
SCHEDULES = {"dp": "uniform", "adp": "step_matched"}
# Part, rule, number of steps, clip, epsilon.
CELLS = [
    *(("budgets", FALLING, STEPS, CLIP, epsilon) for epsilon in (0.01, 0.02, 0.04, 0.1)),
    *(("clips", TABLE, STEPS, clip, 0.03) for clip in (0.5, 1.0, 2.5, 5.0)),
    *(("steps", TABLE, n_steps, CLIP, 0.03) for n_steps in (100, 300, 900)),
    *(
        ("constant", rule, STEPS, CLIP, eps)
        for eps in (0.03, 0.1)
        for rule in ("constant", FALLING)
    ),
]
N_ROWS, NETWORK_COLUMNS, NETWORK_STEPS, NETWORK_RUNS, EVERY = 1000, 60, 200, 6, 20
NETWORK_EPSILONS = (0.1, 0.3, 1.0)
DECAYS, MULTIPLIERS, DECAY_RUNS = (0.0, 0.02, 0.2, 2.0), (20.0, 60.0), 4


def logistic(report):
    data = digits(range(10), COLUMNS, slice(10_000), slice(50_000, 60_000), report.quick)
    X, y, X_test, y_test = data
    for part, rule, n_steps, clip, epsilon in CELLS[:: 4 if report.quick else 1]:
        scores = {}
        for name, schedule in SCHEDULES.items():
            solver = AdaptiveNoiseSGD(
                max_iter=n_steps,
                learning_rate=RULES[rule],
                batch_size=BATCH,
                clip_norm=clip,
                averaging="last",
                noise_schedule=schedule,
            )
            model = skdp.DPLogisticRegression(
                C=np.inf,
                classes=range(10),
                epsilon=epsilon,
                delta=DELTA,
                scaling=skdp.RowNorm(10.0),
                solver=solver,
            )
            scores[name] = np.array(
                [
                    model.set_params(privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)))
                    .fit(X, y)
                    .score(X_test, y_test)
                    for seed in range(2 if report.quick else RUNS)
                ]
            )
        report.add(
            part=part,
            rule=rule,
            steps=n_steps,
            clip=clip,
            epsilon=epsilon,
            runs=len(scores["dp"]),
            **columns_of("accuracy_dp", scores["dp"]),
            **columns_of("accuracy_adp", scores["adp"]),
            **columns_of("gap", 100 * (scores["adp"] - scores["dp"])),
        )


def multipliers_for(schedule, sizes, epsilon):
    """Noise multipliers that spend (epsilon, DELTA) exactly."""
    relative = relative_noise(schedule, sizes)
    return relative * np.sqrt(np.sum(relative**-2.0)) / gaussian_mu(epsilon, DELTA)


def accuracies(data, sizes, multipliers, seed):
    """Test accuracy of the network after every ``EVERY`` steps of one run."""
    X, y, X_test, y_test = data
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(X), min(N_ROWS, len(X)), replace=False)
    X, y = X[rows].astype(np.float32), y[rows]
    network, found = Network(X.shape[1], rng), []
    for t, (size, multiplier) in enumerate(zip(sizes, multipliers, strict=True), 1):
        network.step(X, y, size, CLIP, multiplier, rng)
        if t % EVERY == 0:
            found.append(network.accuracy(X_test, y_test))
    return 100 * np.array(found)


def network(report):
    data = digits((3, 5), NETWORK_COLUMNS, slice(6000), slice(6000, None), report.quick)
    n_steps = 2 * EVERY if report.quick else NETWORK_STEPS
    runs = 2 if report.quick else NETWORK_RUNS
    sizes = step_sizes("polynomial", n_steps)
    for epsilon in NETWORK_EPSILONS:
        found = {}
        for name, schedule in SCHEDULES.items():
            plan = multipliers_for(schedule, sizes, epsilon)
            found[name] = np.array([accuracies(data, sizes, plan, seed) for seed in range(runs)])
        for place, t in enumerate(range(EVERY, n_steps + 1, EVERY)):
            dp, adp = found["dp"][:, place], found["adp"][:, place]
            report.add(
                part="curves",
                epsilon=epsilon,
                t=t,
                runs=runs,
                **columns_of("accuracy_dp", dp),
                **columns_of("accuracy_adp", adp),
                **columns_of("gap", adp - dp),
            )
    times = np.arange(1, n_steps + 1)
    for multiplier in MULTIPLIERS:
        for decay in DECAYS:
            sizes, noise = 1 / np.sqrt(2 + decay * times), np.full(n_steps, multiplier)
            seeds = range(2 if report.quick else DECAY_RUNS)
            last = [accuracies(data, sizes, noise, seed)[-1] for seed in seeds]
            report.add(
                part="decay",
                multiplier=multiplier,
                decay=decay,
                runs=len(last),
                **columns_of("accuracy_dp", last),
            )


def run(report):
    noise = printed_noise("Wu21, section 6", 0.8, DELTA, 50_000, 11_760, 256)
    report.add_noise("section 6", noise)
    logistic(report)
    network(report)


def gains(rows):
    return ", ".join(shown(row, "gap") for row in rows)


def listed(rows, name):
    return ", ".join(f"{row[name]:g}" for row in rows)


def grows(rows, factor):
    """Whether the gain grows from the first row to the last by two errors, or falls."""
    first, last = rows[0], rows[-1]
    change = last["gap"] - first["gap"]
    if abs(change) <= 2 * np.hypot(first["gap_error"], last["gap_error"]):
        return "within its error"
    return "holds" if change > 0 else "does not hold"


def verdict(rows):
    here = chosen(rows, part="budgets")
    yield (
        "ADP-SGD beats DP-SGD, most at small budgets",
        f"points of accuracy gained by logistic regression at epsilon {listed(here, 'epsilon')}: "
        f"{gains(here)}",
        "holds" if all(row["gap"] > 2 * row["gap_error"] for row in here) else "does not hold",
    )
    for part, factor, name in (("clips", "clip", "clip (Table 1)"), ("steps", "steps", "T")):
        here = chosen(rows, part=part)
        if here:
            yield (
                f"The gain grows with the {name}"
                if part == "clips"
                else f"The gain grows with {name}",
                f"at {listed(here, factor)}: {gains(here)} points",
                grows(here, factor),
            )
    here = chosen(rows, part="curves")
    first, last = min(row["t"] for row in here), max(row["t"] for row in here)
    ahead, end = (chosen(here, t=t) for t in (first, last))
    yield (
        "The gain grows during a run (Figs 1 and 3; network)",
        f"at epsilon 0.1, 0.3, 1 after {first:.0f} steps {gains(ahead)} points, after {last:.0f} "
        f"steps {gains(end)}; the lead is budget spent sooner",
        "holds" if all(map(lambda a, b: b["gap"] > a["gap"], ahead, end)) else "does not hold",
    )
    here = chosen(rows, part="decay", multiplier=MULTIPLIERS[-1])
    told = ", ".join(f"{shown(row, 'accuracy_dp', 3)} at c = {row['decay']:g}" for row in here)
    best = max(here, key=lambda row: row["accuracy_dp"])
    yield (
        f"Falling steps beat constant ones (Fig. 4; network, equal noise {MULTIPLIERS[-1]:g})",
        f"accuracy {told}",
        "holds" if best["decay"] > 0 else "does not hold",
    )
    constant, falling = (chosen(rows, part="constant", rule=rule) for rule in ("constant", FALLING))
    pairs = [
        f"{shown(first, 'accuracy_adp', 3)} against {shown(second, 'accuracy_adp', 3)} at epsilon "
        f"{first['epsilon']:g}"
        for first, second in zip(falling, constant, strict=False)
    ]
    if pairs:
        yield (
            "The same for logistic regression at an equal budget",
            "; ".join(pairs),
            "does not hold beyond the error",
        )
    yield from cost_of_noise(rows)


def draw(rows, plt):
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    errorbar(axes[0], chosen(rows, part="budgets"), "epsilon", "gap", marker="o")
    axes[0].axhline(0, color="grey", lw=0.5)
    axes[0].set(xscale="log", xlabel="epsilon", ylabel="points gained by ADP-SGD", title=FALLING)
    for place, epsilon in enumerate(NETWORK_EPSILONS):
        here = chosen(rows, part="curves", epsilon=epsilon)
        style = {"color": f"C{place}"}
        errorbar(axes[1], here, "t", "accuracy_dp", ls="--", **style)
        errorbar(axes[1], here, "t", "accuracy_adp", label=f"epsilon {epsilon:g}", **style)
    axes[1].set(xlabel="t", ylabel="accuracy", title="Fig. 3: ADP-SGD solid, DP-SGD dashed")
    axes[1].legend()
    return figure
