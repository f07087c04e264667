"""Uniform against dynamic noise on quadratics of known condition number, by simulation."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.papers.report import mean_and_error
from skdp.planning import noise_constant, number_of_steps, utility_bound
from skdp.steps import CustomNoise, ExponentialNoise, noise_multipliers

KAPPAS = (2.0, 5.0, 10.0, 30.0, 100.0, 300.0)


def against_curvature(report, budget, clip_norm, runs=200):
    """Excess of noisy gradient descent on quadratics, by simulation; 200 runs at each kappa.

    Two ways to a high condition number: flat directions get flatter, or sharp ones sharper.
    """
    n_parameters, n_rows = 40, 1000
    for experiment, flattest in (("flatter", lambda kappa: 1 / kappa), ("sharper", lambda _: 1.0)):
        for kappa in KAPPAS:
            curvatures = np.geomspace(flattest(kappa), flattest(kappa) * kappa, n_parameters)
            start = np.ones(n_parameters)
            initial = curvatures @ start**2 / 2
            smoothness = curvatures[-1]
            alpha = noise_constant(n_parameters, clip_norm, budget, smoothness, n_rows, initial)
            measured, bounds, counts = {}, {}, {}
            for name, schedule in (
                ("uniform", CustomNoise()),
                ("dynamic", ExponentialNoise(1 - 1 / kappa)),
            ):
                counts[name] = n_steps = number_of_steps(alpha, kappa, name)
                multipliers = noise_multipliers(schedule.log_influence(n_steps), budget)
                rng = np.random.default_rng(0)
                points = np.tile(start, (runs, 1))
                for multiplier in multipliers:
                    noise = clip_norm * multiplier / n_rows * rng.standard_normal(points.shape)
                    points = points - (curvatures * points + noise) / smoothness
                measured[name] = points**2 @ curvatures / 2 / initial
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
                ratio_of_bounds=f"{bounds['uniform'] / bounds['dynamic']:.4f}",
            )
