"""
Pure differential privacy
=========================

``delta=0`` gives a guarantee without exception, by Laplace noise. It needs many rows and few
columns. The rows are made up, so their scores may be exact.
"""

import matplotlib.pyplot as plt
import numpy as np

import skdp

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (20_000, 4))
y = X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * rng.standard_normal(20_000)
epsilons = (0.1, 0.3, 1.0, 3.0)
figure, axes = plt.subplots(figsize=(4.8, 3.2))
for delta in (0.0, 1e-6):
    options = {"delta": delta, "scaling": skdp.PublicRange(-1, 1, target=3.0)}
    scores = [
        skdp.DPRidge(epsilon=epsilon, **options).fit(X, y).score(X, y) for epsilon in epsilons
    ]
    axes.plot(epsilons, scores, marker="o", label=f"delta = {delta:g}")
axes.set(xscale="log", xlabel="epsilon", ylabel="R2")
axes.legend()
figure.tight_layout()
print(skdp.DPRidge(delta=0, scaling=skdp.PublicRange(-1, 1, target=3.0)).plan(20_000, 4))
