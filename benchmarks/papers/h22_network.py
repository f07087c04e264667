"""[H22] with the paper's own model: a network of 1,000 hidden units on MNIST 3 against 5.

Run `python -m benchmarks.papers.h22_network`; `sizes` or `influence` after it runs one part,
without writing. Set-up of the paper: 60 principal components, rows of norm at most 10, clip 4,
steps of 0.1, R = 0.3927 for (4, 1e-8), T = 50, which was best for both schedules among 50, 100 and
150; the reduction is fitted on rows that are not trained on. "dynamic" takes the better of two
gammas in train loss, which favours it. The network is plain numpy: the norm of a record's gradient
is that of an outer product in each layer, so no gradient of a single record is formed. Noise and
its cost are those of `skdp.steps` and `skdp.accounting`.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from scipy.special import expit

from benchmarks.papers import h22
from benchmarks.papers.report import Report, errorbar, mean_and_error
from benchmarks.papers.theory import influence_by_retraining, printed_budget
from skdp.accounting import Adjacency, Composed, Gaussian, price
from skdp.steps import ExponentialNoise, UniformNoise, noise_multipliers

HIDDEN, SEEDS, SIZES, STEPS, GAMMAS = 1000, 8, (200, 500, 1000), (50,), (0.98, 0.95)
BUDGET = printed_budget(h22.EPSILON, h22.DELTA)


class Network:
    """Rows -> ``HIDDEN`` rectified units -> one margin, for the logistic loss."""

    def __init__(self, n_features, rng):
        size = math.sqrt(2 / n_features)
        self.inner = (size * rng.standard_normal((n_features + 1, HIDDEN))).astype(np.float32)
        self.inner[-1] = 0.0
        self.outer = (math.sqrt(1 / HIDDEN) * rng.standard_normal(HIDDEN + 1)).astype(np.float32)
        self.outer[-1] = 0.0

    def layers(self, X):
        hidden = np.maximum(X @ self.inner[:-1] + self.inner[-1], 0.0)
        return hidden, hidden @ self.outer[:-1] + self.outer[-1]

    def clipped_sum(self, X, y, clip_norm):
        """Sum of the records' gradients, each clipped in the norm over both layers."""
        hidden, margins = self.layers(X)
        residuals = expit(margins) - y.astype(np.float32)
        # d loss / d hidden of a record is its residual times this row.
        back = (hidden > 0) * self.outer[:-1]
        of_inner = (1 + np.sum(X**2, axis=1)) * np.sum(back**2, axis=1)
        of_outer = 1 + np.sum(hidden**2, axis=1)
        norms = np.abs(residuals) * np.sqrt(of_inner + of_outer)
        kept = residuals * np.minimum(1.0, clip_norm / np.maximum(norms, 1e-12))
        pushed = back * kept[:, None]
        inner = np.vstack([X.T @ pushed, pushed.sum(axis=0)])
        return inner, np.append(hidden.T @ kept, kept.sum())

    def step(self, X, y, size, clip_norm, multiplier, rng):
        std = clip_norm * multiplier
        for weights, total in zip(
            (self.inner, self.outer), self.clipped_sum(X, y, clip_norm), strict=True
        ):
            noise = rng.standard_normal(total.shape, dtype=np.float32)
            weights -= np.float32(size / len(y)) * (total + np.float32(std) * noise)

    def loss(self, X, y):
        _, margins = self.layers(X)
        return float(np.mean(np.logaddexp(0, margins) - y * margins))


def trained(X, y, multipliers, seed):
    rng, X = np.random.default_rng(seed), X.astype(np.float32)
    network = Network(X.shape[1], rng)
    for multiplier in multipliers:
        network.step(X, y, h22.STEP, h22.CLIP, multiplier, rng)
    return network


def schedules():
    """Name, parameter, steps and noise multipliers of all candidates."""
    for n_steps in STEPS:
        uniform = UniformNoise().log_influence(n_steps)
        yield "uniform", 1.0, n_steps, noise_multipliers(uniform, BUDGET)
        for gamma in GAMMAS:
            falling = ExponentialNoise(gamma).log_influence(n_steps)
            yield "dynamic", gamma, n_steps, noise_multipliers(falling, BUDGET)


def cost(multipliers):
    """Epsilon at the paper's delta: by the paper's accountant, and exactly."""
    plan = Composed(tuple((Gaussian(float(sigma)), 1) for sigma in multipliers))
    return tuple(
        price(plan, h22.DELTA, Adjacency.ZERO_OUT, accountant)[0] for accountant in ("zcdp", "gdp")
    )


def sizes(report):
    X, y, X_test, y_test = h22.mnist()
    for n_rows in SIZES:
        found = {}
        for name, gamma, n_steps, multipliers in schedules():
            results = []
            for seed in range(SEEDS):
                rows = np.random.default_rng(seed).choice(len(X), n_rows, replace=False)
                network = trained(X[rows], y[rows], multipliers, seed)
                right = (network.layers(X_test)[1] > 0) == (y_test == 1)
                results.append((network.loss(X[rows], y[rows]), right.mean()))
            key = name, gamma, n_steps
            found[key] = np.array(results)
        best = {
            name: min(
                (key for key in found if key[0] == name), key=lambda key: found[key][:, 0].mean()
            )
            for name in ("uniform", "dynamic")
        }
        uniform, dynamic = found[best["uniform"]], found[best["dynamic"]]
        printed, exact = cost(noise_multipliers(UniformNoise().log_influence(100), BUDGET))
        report.add(
            part="sizes",
            n_rows=n_rows,
            uniform_T=best["uniform"][2],
            dynamic_T=best["dynamic"][2],
            gamma=best["dynamic"][1],
            runs=SEEDS,
            **mean_and_error("loss_uniform", uniform[:, 0]),
            **mean_and_error("loss_gain", uniform[:, 0] - dynamic[:, 0]),
            **mean_and_error("accuracy_gain", 100 * (dynamic[:, 1] - uniform[:, 1])),
            epsilon_printed=f"{printed:.4f}",
            epsilon_exact=f"{exact:.4f}",
        )


def influence(report):
    """Fig. 1, left: how much a step's noise changes the final loss, on auxiliary rows."""
    n_rows, n_steps = 400, 100
    X, y = h22.auxiliary(n_rows, np.random.default_rng(5))
    planned = noise_multipliers(UniformNoise().log_influence(n_steps), BUDGET)

    def train(factors, seed):
        return trained(X, y, planned * factors, seed).loss(X, y)

    found = influence_by_retraining(train, n_steps, n_probes=5, factor=3.0, runs=6)
    for step, value, error in zip(found.steps, found.influence, found.standard_error, strict=True):
        report.add(
            part="influence",
            step=f"{step:g}",
            runs=6,
            influence=f"{value:.4g}",
            influence_error=f"{error:.2g}",
            slope=f"{found.slope:.4f}",
        )


def verdict(report):
    rows = [row for row in report.rows if row["part"] == "sizes"]
    gains = "; ".join(
        f"n = {row['n_rows']}: {float(row['loss_gain']):.4f}+-{float(row['loss_gain_error']):.4f} "
        f"of {float(row['loss_uniform']):.3f}, accuracy {float(row['accuracy_gain']):+.2f}"
        f"+-{float(row['accuracy_gain_error']):.2f} points"
        for row in rows
    )
    yield (
        f"60-{HIDDEN}-1 network, {SEEDS} runs, +- one standard error. Train loss gained by dynamic "
        f"over uniform noise: {gains}. The paper: dynamic wins, and the gap widens with n."
    )
    first, last = (float(rows[i]["loss_gain"]) for i in (0, -1))
    yield (
        f"Dynamic noise wins at {sum(float(row['loss_gain']) > 0 for row in rows)} of {len(rows)} "
        f"sizes; the gap {'widens' if last > first else 'shrinks'} with n, as for the logistic "
        "regression of `benchmarks.papers.h22`."
    )
    yield (
        f"The printed budget R = {BUDGET:.4f} costs epsilon = {rows[0]['epsilon_printed']} by a "
        f"zCDP accountant and {rows[0]['epsilon_exact']} exactly: the printed noise is too large, "
        "not too small."
    )
    probes = [row for row in report.rows if row["part"] == "influence"]
    yield (
        "Influence by retraining, n = 400, T = 100 (Fig. 1, left): "
        + ", ".join(f"{r['influence']}+-{r['influence_error']} at step {r['step']}" for r in probes)
        + f"; its logarithm rises by {probes[0]['slope']} a step. The paper: it rises."
    )


def draw(report, plt):
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    errorbar(axes[0], [r for r in report.rows if r["part"] == "sizes"], "n_rows", "loss_gain")
    axes[0].set(xlabel="n", ylabel="train loss gained by dynamic noise")
    axes[0].axhline(0, color="grey", lw=0.5)
    probes = [r for r in report.rows if r["part"] == "influence"]
    errorbar(axes[1], probes, "step", "influence")
    axes[1].set(xlabel="step t", ylabel="influence of its noise (Fig. 1, left)")
    return figure


PARTS = {"sizes": sizes, "influence": influence}


def main(names):
    Report("h22_network").run(PARTS, names, verdict, draw)


if __name__ == "__main__":
    main(sys.argv[1:])
