"""
Noise schedules
===============

A budget can be divided among the steps of a solver in many ways. All of these schedules have the
same cost.
"""

import matplotlib.pyplot as plt

import skdp
from skdp.solvers import GradientDescent

figure, axes = plt.subplots(figsize=(4.8, 3.5))
for schedule in ("uniform", "exponential", "momentum", "step_matched"):
    solver = GradientDescent(max_iter=40, noise_schedule=schedule, learning_rate=0.5)
    statement = skdp.DPRidge(solver=solver, scaling="none").plan(n_samples=10_000, n_features=10)
    noise = [r.noise_multiplier for r in statement.releases for _ in range(r.count)]
    axes.plot(noise, label=f"{schedule}: epsilon {statement.epsilon:.3f}")
axes.set(yscale="log", xlabel="step", ylabel="noise multiplier")
axes.legend()
figure.tight_layout()
