"""
Rows that arrive in blocks
==========================

``fit_blocks`` reads each row once, needs memory for one block, and costs no more than one noisy
answer.
"""

import matplotlib.pyplot as plt
import numpy as np

import skdp

weights = np.array([1.0, -1.0, 0.5])


def blocks(n_blocks, seed):
    rng = np.random.default_rng(seed)
    for _ in range(n_blocks):
        X = rng.standard_normal((1000, 3))
        yield X, X @ weights + 0.5 * rng.standard_normal(1000)


numbers = [3, 10, 30, 100]
errors = []
for number in numbers:
    model = skdp.DPLinearRegression(epsilon=1.0, scaling="none")
    model.fit_blocks(blocks(number, seed=number), n_samples=1000 * number, n_features=3)
    errors.append(np.abs(model.coef_ - weights).max())

figure, axes = plt.subplots(figsize=(4.8, 3.2))
axes.loglog([1000 * number for number in numbers], errors, marker="o")
axes.set(xlabel="rows", ylabel="largest error of a coefficient")
figure.tight_layout()
print(model.privacy_)
