"""Hong, Wang, Zhou 2022: does noise that falls from step to step beat uniform noise?

The set-up of the paper: a network of 1,000 hidden units on MNIST and on its 3s and 5s, 60 principal
components, rows of norm at most 10, clip 4, steps of 0.1, (4, 1e-8)-DP. T and gamma are chosen for
each schedule on auxiliary Gaussian rows of the same number, by train loss, as printed. The labels
of these are those of random planes. The paper has 100 repetitions, this has 8. Rows of MNIST that
no model is fitted to define the reduction. Noise and its cost are those of `skdp.steps` and
`skdp.accounting`.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from benchmarks.papers.network import Network
from benchmarks.papers.printed_noise import printed_noise
from benchmarks.papers.report import chosen, columns_of, cost_of_noise, errorbar, shown
from benchmarks.papers.rows import LONGEST_ROW, digits
from benchmarks.papers.theory import noise_multipliers, printed_budget
from benchmarks.table import mean_and_error
from skdp.steps import powers

EPSILON, DELTA, COLUMNS, CLIP, STEP = 4.0, 1e-8, 60, 4.0, 0.1
BUDGET = printed_budget(EPSILON, DELTA)
DATA = {"3 and 5": ((3, 5), (200, 500, 1000, 2000)), "ten digits": (range(10), (1000, 2000))}
STEPS, GAMMAS, RUNS, TUNING_RUNS = (50, 100, 150), (0.99, 0.98, 0.95), 8, 2
PROBED_ROWS, PROBED_STEPS, PROBED_RUNS = 400, 100, 6


def auxiliary(n_rows, rng, n_columns, n_classes=2):
    """Gaussian rows with labels of random planes, of the private rows' shape and norm."""
    X = rng.standard_normal((n_rows, n_columns)) / np.sqrt(np.arange(1, n_columns + 1))
    X *= LONGEST_ROW / np.linalg.norm(X, axis=1).max()
    if n_classes > 2:
        return X, (X @ rng.standard_normal((n_columns, n_classes))).argmax(axis=1)
    return X, (X @ rng.standard_normal(n_columns) > 0).astype(int)


def trained(X, y, multipliers, seed):
    rng, X = np.random.default_rng(seed), X.astype(np.float32)
    network = Network(X.shape[1], rng, max(2, int(y.max()) + 1))
    for multiplier in multipliers:
        network.step(X, y, STEP, CLIP, multiplier, rng)
    return network


def schedules(all_steps=STEPS):
    """Name, parameter, steps and noise multipliers of all candidates."""
    for n_steps in all_steps:
        yield "uniform", 1.0, n_steps, noise_multipliers(np.zeros(n_steps), BUDGET)
        for gamma in GAMMAS:
            yield "dynamic", gamma, n_steps, noise_multipliers(powers(gamma, n_steps), BUDGET)


def tuned(n_columns, n_classes, n_rows, all_steps):
    """Schedule -> its parameter, steps and noise, best on auxiliary rows of the same number."""
    best = {}
    for name, gamma, n_steps, multipliers in schedules(all_steps):
        losses = []
        for seed in range(TUNING_RUNS):
            rng = np.random.default_rng([seed, n_rows])
            X, y = auxiliary(n_rows, rng, n_columns, n_classes)
            losses.append(trained(X, y, multipliers, seed).loss(X, y))
        candidate = float(np.mean(losses)), gamma, n_steps, multipliers
        best[name] = min(candidate, best.get(name, candidate), key=lambda one: one[0])
    return {name: one[1:] for name, one in best.items()}


def sizes(report, data, wanted, all_sizes):
    X, y, X_test, y_test = digits(wanted, COLUMNS, slice(6000), slice(6000, None), report.quick)
    all_sizes = (50, 100) if report.quick else all_sizes
    for n_rows in all_sizes:
        taken = tuned(X.shape[1], len(wanted), n_rows, (30,) if report.quick else STEPS)
        found = {name: [] for name in taken}
        for name, (_, _, multipliers) in taken.items():
            for seed in range(2 if report.quick else RUNS):
                rows = np.random.default_rng(seed).choice(len(X), n_rows, replace=False)
                network = trained(X[rows], y[rows], multipliers, seed)
                right = 100 * network.accuracy(X_test, y_test)
                found[name].append((network.loss(X[rows], y[rows]), right))
        uniform, dynamic = np.array(found["uniform"]), np.array(found["dynamic"])
        report.add(
            part="sizes",
            data=data,
            n_rows=n_rows,
            uniform_T=taken["uniform"][1],
            dynamic_T=taken["dynamic"][1],
            gamma=taken["dynamic"][0],
            runs=len(uniform),
            **columns_of("loss_uniform", uniform[:, 0]),
            **columns_of("loss_gain", uniform[:, 0] - dynamic[:, 0]),
            **columns_of("accuracy_uniform", uniform[:, 1]),
            **columns_of("accuracy_gain", dynamic[:, 1] - uniform[:, 1]),
        )


def influence_by_retraining(train, n_steps, n_probes, factor, runs):
    """Return steps, what their noise changes in the final loss, its standard errors, and a slope.

    The loss is compared to that of the planned noise. It changes by as much per step and per unit
    of added variance, in units of the variance of the unchanged step. The slope is that of a line
    in t for the logarithm of the change.

    Parameters
    ----------
    train : callable (factors, seed) -> float
        Trains with the noise of step t multiplied by ``factors[t-1]`` and returns the final loss.
        Equal seeds draw equal noise, or the differences would be lost in it.
    n_steps : int
    n_probes : int
        Number of blocks of steps, of about equal length, that are probed.
    factor : float
        On the noise of the probed steps.
    runs : int
        Number of seeds over which each probe is averaged.
    """
    plain = np.array([train(np.ones(n_steps), seed) for seed in range(runs)])
    blocks = np.array_split(np.arange(n_steps), n_probes)
    means, errors = np.empty(n_probes), np.empty(n_probes)
    for place, block in enumerate(blocks):
        factors = np.ones(n_steps)
        factors[block] = factor
        changes = np.array([train(factors, seed) for seed in range(runs)]) - plain
        means[place], errors[place] = mean_and_error(changes / (len(block) * (factor**2 - 1)))
    middles = np.array([block.mean() + 1 for block in blocks])
    return middles, means, errors, fitted_slope(blocks, means, errors)


def fitted_slope(blocks, means, errors):
    """Fit a line to the logarithms of the blocks' mean influence, weighted by their errors."""
    top, length = means.max(), blocks[-1][-1] + 1
    weights = 1 / np.maximum(errors / top, 1e-3)

    def misfit(parameters):
        height, slope = parameters
        fitted = [np.exp(height + slope * (block - length + 1)).mean() for block in blocks]
        return weights * (np.array(fitted) - means / top)

    bounds = [-20, -20 / length], [20, 20 * len(blocks) / length]
    fits = (
        least_squares(misfit, [0.0, start / length], bounds=bounds)
        for start in (-2.0, 0.0, 2.0, 8.0)
    )
    return float(min(fits, key=lambda result: float(result.cost)).x[1])


def influence(report):
    """Fig. 1, left: how much a step's noise changes the final loss, on auxiliary rows."""
    n_steps, runs = (20, 2) if report.quick else (PROBED_STEPS, PROBED_RUNS)
    X, y = auxiliary(PROBED_ROWS, np.random.default_rng(5), COLUMNS)
    planned = noise_multipliers(np.zeros(n_steps), BUDGET)

    def train(factors, seed):
        return trained(X, y, planned * factors, seed).loss(X, y)

    *found, slope = influence_by_retraining(train, n_steps, n_probes=5, factor=3.0, runs=runs)
    for step, value, error in zip(*found, strict=True):
        report.add(
            part="influence",
            step=f"{step:g}",
            runs=runs,
            influence=f"{value:.4g}",
            influence_error=f"{error:.2g}",
            slope=f"{slope:.4f}",
        )


def run(report):
    report.add_noise("100 steps, n = 1000", printed_noise("H22", EPSILON, DELTA, 1000, 100))
    influence(report)
    for data, (wanted, all_sizes) in DATA.items():
        sizes(report, data, wanted, all_sizes)


def verdict(rows):
    for data in DATA:
        here = chosen(rows, part="sizes", data=data)
        gains = "; ".join(
            f"{shown(row, 'loss_gain')} of {row['loss_uniform']:.3f} at n = {row['n_rows']:.0f}"
            for row in here
        )
        signs = [row["loss_gain"] / row["loss_gain_error"] for row in here]
        wins, losses = sum(one > 2 for one in signs), sum(one < -2 for one in signs)
        yield (
            f"Noise that falls beats uniform noise (Fig. 1; MNIST, {data}, network)",
            f"gains in train loss: {gains}; better by two errors at {wins} and worse at {losses} "
            f"of {len(here)} sizes",
            "holds" if wins > losses else "does not hold",
        )
    here = chosen(rows, part="sizes", data="3 and 5")
    first, last = (row["loss_gain"] / row["loss_uniform"] for row in (here[0], here[-1]))
    yield (
        "The gap widens with n",
        f"as a share of the loss it goes from {first:.3f} to {last:.3f}; accuracy differs by "
        f"at most {max(abs(row['accuracy_gain']) for row in here):.1g} points",
        "holds" if last > first else "does not hold",
    )
    probes = chosen(rows, part="influence")
    slope = probes[0]["slope"]
    yield (
        "The noise of a later step has more influence (Fig. 1, left)",
        f"the logarithm of the influence rises by {slope:.3g} a step",
        "holds" if slope > 0 else "does not hold",
    )
    yield from cost_of_noise(rows)


def draw(rows, plt):
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    errorbar(axes[0], chosen(rows, part="influence"), "step", "influence")
    axes[0].set(xlabel="step t", ylabel="influence of its noise", title="Fig. 1, left")
    for data in DATA:
        errorbar(axes[1], chosen(rows, part="sizes", data=data), "n_rows", "loss_gain", label=data)
    axes[1].set(xlabel="n", ylabel="train loss gained", title="Fig. 1, middle", xscale="log")
    axes[1].axhline(0, color="grey", lw=0.5)
    axes[1].legend()
    return figure
