"""Plain numpy versions of the algorithms of [K22], many runs at once, one column each.

The rows of `benchmarks.papers.k22` are 1e5, its steps tens of thousands: the estimators would
check and calibrate every run anew. `tests/solvers/test_accelerated.py` holds these iterates equal
to those of the solvers.
"""

from __future__ import annotations

import math

import numpy as np

from skdp.planning import multistage_bounds, nesterov_bounds
from skdp.steps import (
    MultistageNoise,
    NesterovNoise,
    UniformNoise,
    sampled_laplace_noise,
    stages,
)

ALGORITHMS = ("gd", "heavy_ball", "nesterov", "multistage", "nesterov_opt", "multistage_opt")
P = 1.0
BLOCK = 1 << 13


def first_stage(kappa):
    """Steps of the first stage, as those of the later ones for k = 1; the paper says >= 1."""
    return 2 * math.ceil(math.sqrt(kappa) * math.log(2 ** (P + 2)))


def published_first_stage(kappa):
    """Steps of the first stage in the authors' code."""
    return math.ceil(2 * math.sqrt(kappa) * math.log(math.sqrt(kappa)))


def step_sizes(name, n_steps, step, smoothness, kappa, first=first_stage):
    """alpha_t, step by step."""
    if not name.startswith("multistage"):
        return np.full(n_steps, step / smoothness)
    stage = stages(n_steps, kappa, first(kappa), P)
    return step / smoothness * np.where(stage == 1, 1.0, 4.0**-stage)


def number_of_steps(name, most, step, smoothness, mu, excess, variance, first=first_stage):
    """T, or for the -opt versions the T' <= T that makes the bound (32) least."""
    if not name.endswith("opt"):
        return most
    options = {"step": step, "noise_schedule": "optimal", "composition": "laplace"}
    if name.startswith("multistage"):
        options |= {"first_stage": first(smoothness / mu), "p": P}
        bounds = multistage_bounds(most, smoothness, mu, excess, variance, **options)
    else:
        bounds = nesterov_bounds(most, smoothness, mu, excess, variance, **options)
    return int(np.argmin(bounds)) + 1


def noise_multipliers(name, n_steps, step, kappa, epsilon, rate, first=first_stage):
    """b_t in units of the sensitivity, which cost epsilon together."""
    schedule = UniformNoise()
    if name == "nesterov_opt":
        schedule = NesterovNoise(kappa, step)
    elif name == "multistage_opt":
        schedule = MultistageNoise(kappa, step, first(kappa), P)
    return sampled_laplace_noise(schedule.log_influence(n_steps), epsilon, rate)


def iterates(name, start, gradient, sizes, mu, published=False):
    """Yield x_1, x_2, ...; ``gradient(t, x)`` is noisy or not.

    With ``published`` the heavy ball has the momentum of the authors' code, which is Nesterov's.
    """
    before = now = start
    for t, size in enumerate(sizes):
        if t > 0 and size != sizes[t - 1]:
            before = now
        root = math.sqrt(size * mu)
        if name == "gd":
            ahead, beta = now, 0.0
            after = now - size * gradient(t, now)
        elif name == "heavy_ball":
            beta = (1 - root) / (1 + root) if published else (1 - root) ** 2
            after = now - size * gradient(t, now) + beta * (now - before)
        else:
            beta = (1 - root) / (1 + root)
            ahead = (1 + beta) * now - beta * before
            after = ahead - size * gradient(t, ahead)
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
