"""
Audit a fit yourself
====================

`skdp.audit` adds canaries to the data, fits many times, and bounds from below the success of an
attacker, independently of the proof. A lower bound above the claim would disprove the claim.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import skdp
from skdp import audit

model = skdp.DPLinearRegression(solver="gd", max_iter=1, scaling="none", epsilon=4.0)
found = audit.canaries(model, n_fits=1000)
print(f"claimed mu {found.claim.mu:.2f}, found at least {found.mu_lower:.2f}")

# %%
# Every threshold on the scores is a test for the record. The picture shows its error rates, and the
# error rates that the claim permits.

scores = found.scores_with, found.scores_without
thresholds = np.sort(np.concatenate(scores))
missed = [(scores[0] <= threshold).mean() for threshold in thresholds]
alarms = [(scores[1] > threshold).mean() for threshold in thresholds]
grid = np.linspace(0, 1, 201)
figure, axes = plt.subplots()
axes.plot(alarms, missed, label="measured")
axes.plot(grid, norm.cdf(norm.isf(grid) - found.claim.mu), "k--", label="claim: nothing below")
axes.set(xlabel="false positives", ylabel="false negatives")
axes.legend()
