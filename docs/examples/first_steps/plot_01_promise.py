"""
The trace of one row
====================

The number of ill people in a data set is released with noise, once with a certain person's row
and once without it. The two distributions of the answer nearly coincide, so an answer
hardly reveals whether the row was there. That is the promise of differential privacy, and
epsilon says how nearly they coincide.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from skdp.accounting import gaussian_mu

# With budget (1, 1e-6), one row moves a count by ``mu`` standard deviations of the noise.
mu = gaussian_mu(1.0, 1e-6)
noise = 1 / mu
answers = np.linspace(-4 * noise, 4 * noise, 400)

figure, axes = plt.subplots(figsize=(4.8, 3.2))
axes.fill_between(answers + 120, norm.pdf(answers, 1, noise), alpha=0.4, label="with the row: 121")
axes.fill_between(answers + 120, norm.pdf(answers, 0, noise), alpha=0.4, label="without it: 120")
axes.set(xlabel="released number of ill people", yticks=[], title="epsilon = 1, delta = 1e-6")
axes.legend()
figure.tight_layout()

# %%
# An attacker who concludes from every answer above a threshold that the row was there is right
# slightly more often than by chance: at 5 % false alarms, 8 % of the rows are detected.

caught = norm.cdf(norm.ppf(0.05) + mu)
print(f"detected at 5 % false alarms: {100 * caught:.1f} %")
