"""
Audit a fit yourself
====================

`skdp.audit` plants canaries, fits many times, and bounds from below how well an attacker can do,
without having to believe the proof. A lower bound above the claim would disprove it.
"""

import skdp
from skdp import audit

model = skdp.DPLinearRegression(solver="gd", max_iter=1, scaling="none", epsilon=4.0)
found = audit.canaries(model, n_fits=1000)
print(f"claimed mu {found.claim.mu:.2f}, found at least {found.mu_lower:.2f}")

# %%
# Errors of the best attacks, and those that the claim allows.

found.plot()
