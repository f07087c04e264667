"""
When persons have many rows
===========================

With ``groups`` the guarantee covers all rows of a person together, not each single row. The rows
are made up, so their scores may be exact.
"""

import matplotlib.pyplot as plt
import numpy as np

import skdp

rng = np.random.default_rng(0)
n_persons, visits = 3000, 8
person = np.repeat(np.arange(n_persons), visits)
X = np.repeat(rng.standard_normal((n_persons, 4)), visits, axis=0)
X += 0.5 * rng.standard_normal(X.shape)
y = X @ [1.0, -1.0, 0.5, 0.0] + 0.5 * rng.standard_normal(len(X))

epsilons = (0.1, 0.3, 1.0, 3.0)
rows = [skdp.DPRidge(epsilon=epsilon).fit(X, y).score(X, y) for epsilon in epsilons]
persons = [
    skdp.DPRidge(epsilon=epsilon, privacy=skdp.Privacy(rows_per_group=visits))
    .fit(X, y, groups=person)
    .score(X, y)
    for epsilon in epsilons
]
figure, axes = plt.subplots(figsize=(4.8, 3.2))
axes.plot(epsilons, rows, marker="o", label="private for a row")
axes.plot(epsilons, persons, marker="s", label="private for a person")
axes.set(xscale="log", xlabel="epsilon", ylabel="R2")
axes.legend()
figure.tight_layout()
