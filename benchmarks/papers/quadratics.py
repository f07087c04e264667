"""Uniform against dynamic noise on quadratics of known condition number, by simulation."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.papers.report import mean_and_error
from benchmarks.papers.theory import quadratic_excess
from skdp.planning import noise_constant, number_of_steps, utility_bound
from skdp.steps import CustomNoise, ExponentialNoise, noise_multipliers

KAPPAS = (2.0, 3.0, 5.0, 10.0, 40.0, 100.0, 300.0)
EXPERIMENTS = ("flatter", "sharper", "tight")
N_PARAMETERS, N_ROWS = 40, 1000


def quadratic(experiment, kappa):
    """Curvatures, step size, and the M for which the bound counts the noise as it enters.

    Two ways to a high condition number with steps of 1/M: flat directions get flatter, or sharp
    ones sharper. And one where the bound is the excess: all curvatures are mu, and a step leaves
    gamma of the excess.
    """
    if experiment == "tight":
        step = 1 - math.sqrt(1 - 1 / kappa)
        return np.ones(N_PARAMETERS), step, 1 / step**2
    flattest = 1 / kappa if experiment == "flatter" else 1.0
    curvatures = np.geomspace(flattest, flattest * kappa, N_PARAMETERS)
    return curvatures, 1 / curvatures[-1], curvatures[-1]


def simulate(curvatures, step, stds, start, runs):
    rng = np.random.default_rng(0)
    points = np.tile(start, (runs, 1))
    for std in stds:
        noise = std * rng.standard_normal(points.shape)
        points = points - step * (curvatures * points + noise)
    return points**2 @ curvatures / 2


def against_curvature(report, budget, clip_norm, runs=1000):
    """Excess of noisy gradient descent on quadratics: measured, exact, and bounded."""
    for experiment in EXPERIMENTS:
        for kappa in KAPPAS:
            curvatures, step, smoothness = quadratic(experiment, kappa)
            start = np.ones(N_PARAMETERS)
            initial = curvatures @ start**2 / 2
            alpha = noise_constant(N_PARAMETERS, clip_norm, budget, smoothness, N_ROWS, initial)
            measured, exact, bounds, counts = {}, {}, {}, {}
            for name, schedule in (
                ("uniform", CustomNoise()),
                ("dynamic", ExponentialNoise(1 - 1 / kappa)),
            ):
                counts[name] = n_steps = number_of_steps(alpha, kappa, name)
                multipliers = noise_multipliers(schedule.log_influence(n_steps), budget)
                stds = clip_norm / N_ROWS * multipliers
                measured[name] = simulate(curvatures, step, stds, start, runs) / initial
                exact[name] = quadratic_excess(curvatures, step, stds, start) / initial
                bounds[name] = utility_bound(n_steps, alpha, kappa, name)
            ratio = measured["uniform"].mean() / measured["dynamic"].mean()
            error = ratio * math.sqrt(
                sum((v.std(ddof=1) / v.mean()) ** 2 / runs for v in measured.values())
            )
            report.add(
                experiment=experiment,
                accountant="exact",
                x=kappa,
                gamma=f"{1 - 1 / kappa:.4f}",
                steps_uniform=counts["uniform"],
                steps_dynamic=counts["dynamic"],
                **mean_and_error("loss_uniform", measured["uniform"]),
                **mean_and_error("loss_dynamic", measured["dynamic"]),
                ratio=f"{ratio:.4f}",
                ratio_error=f"{error:.4f}",
                ratio_exact=f"{exact['uniform'] / exact['dynamic']:.4f}",
                ratio_of_bounds=f"{bounds['uniform'] / bounds['dynamic']:.4f}",
            )
