"""
Coefficients, predictions and export
====================================

Predictions clip columns to the ranges of the fit, so extreme rows get no extreme
predictions. ``to_sklearn`` returns the same coefficients in a model that is linear everywhere.
"""

import matplotlib.pyplot as plt
import numpy as np

import skdp

rng = np.random.default_rng(0)
x = rng.lognormal(0.0, 1.0, 5000)
y = np.minimum(x, 6.0) + 0.3 * rng.standard_normal(5000)
model = skdp.DPRidge(epsilon=1.0).fit(x[:, None], y)

grid = np.linspace(0, 25, 200)
figure, axes = plt.subplots(figsize=(4.8, 3.5))
axes.scatter(x[:500], y[:500], s=4, color="lightgrey")
axes.plot(grid, model.predict(grid[:, None]), label="as fitted")
axes.plot(grid, model.to_sklearn().predict(grid[:, None]), linestyle="--", label="to_sklearn()")
axes.set(xlim=(0, 25), xlabel="x", ylabel="prediction")
axes.legend()
figure.tight_layout()

# %%
# Both belong to one fit, so you can choose afterwards, at no cost.

print(np.array_equal(model.coef_, model.to_sklearn().coef_))
