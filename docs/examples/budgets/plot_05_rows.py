"""
Rows that a budget needs
========================

Ten times as many rows help about as much as ten times a small epsilon. The rows are made up, so
their scores may be exact.
"""

import matplotlib.pyplot as plt
import numpy as np

import skdp

rng = np.random.default_rng(0)
weights = rng.standard_normal(10)


def made_up(n):
    X = rng.standard_normal((n, 10))
    return X, X @ weights + 2 * rng.standard_normal(n)


X_test, y_test = made_up(5000)
sizes = [100, 300, 1000, 3000, 10_000, 30_000]
figure, axes = plt.subplots(figsize=(4.8, 3.5))
for epsilon in (0.1, 1.0, 10.0):
    scores = []
    for n in sizes:
        models = [skdp.DPRidge(epsilon=epsilon).fit(*made_up(n)) for _ in range(3)]
        scores.append(np.mean([model.score(X_test, y_test) for model in models]))
    axes.plot(sizes, scores, marker="o", label=f"epsilon {epsilon:g}")
axes.axhline(weights @ weights / (weights @ weights + 4), color="grey", label="best possible")
axes.set(xscale="log", ylim=(-0.1, 1), xlabel="rows", ylabel="R2")
axes.legend()
figure.tight_layout()

# %%
# ``plan`` warns in advance, without any rows, if nothing can be learned.

import warnings  # noqa: E402

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    skdp.DPRidge(epsilon=0.1).plan(n_samples=100, n_features=10)
print(caught[0].message)
