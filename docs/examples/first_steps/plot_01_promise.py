"""
What a private model shows of one row
=====================================

The number of ill people in a data set is released with noise, once with a certain person's row
and once with it blanked out. The two distributions of the answer nearly coincide, so an answer
hardly tells which of the two it came from. That is the promise of differential privacy, and
epsilon says how nearly.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from skdp.accounting import gaussian_mu

# With budget (1, 1e-6), one row moves a count by ``mu`` standard deviations of the noise.
mu = gaussian_mu(1.0, 1e-6)
noise = 1 / mu
answers = np.linspace(-4 * noise, 4 * noise, 400)

figure, axes = plt.subplots(figsize=(7, 3.2))
axes.fill_between(
    answers + 120, norm.pdf(answers, 1, noise), alpha=0.4, label="with the row: 121 are ill"
)
axes.fill_between(
    answers + 120, norm.pdf(answers, 0, noise), alpha=0.4, label="without: 120 are ill"
)
axes.set(xlabel="released count", yticks=[], title="epsilon = 1, delta = 1e-6")
axes.legend()
figure.tight_layout()

# %%
# An attacker who takes every answer above a threshold for "the row was there" is right more often
# than by chance, yet not by much: at 5 % false alarms, 8 % of the rows are caught.

caught = norm.cdf(norm.ppf(0.05) + mu)
print(f"caught at 5 % false alarms: {100 * caught:.1f} %")
