"""
Standard errors of coefficients
===============================

``inference=True`` reserves a third of the budget for standard errors. They account
for the sampling of the rows and for the noise (:doc:`/how_to/intervals`).
"""

import numpy as np
import pandas as pd

import skdp

rng = np.random.default_rng(1)
n = 20_000
rows = pd.DataFrame(
    {
        "age": rng.uniform(20, 80, n),
        "smoker": (rng.random(n) < 0.3).astype(float),
        "income": np.exp(rng.normal(10.0, 0.5, n)),
        "height": rng.normal(170.0, 10.0, n),
    }
)
log_odds = 0.03 * (rows["age"] - 50) + 0.8 * rows["smoker"] - 1.0e-5 * rows["income"]
ill = rng.random(n) < 1 / (1 + np.exp(-log_odds))

# %%
# The plan says in advance whether the budget is likely to be enough. It reads no rows.

model = skdp.DPLogisticRegression(classes=[False, True], epsilon=1.0, inference=True)
print(model.plan(n, 4).expectations[0])

# %%
# The column "privacy" is the share of the variance that is due to the noise.

model.fit(rows, ill)
print(model.summary())

# %%
# In the picture, the thin bar minus the thick bar is due to the noise.

picture = skdp.linear_model.CoefficientDisplay.from_estimator(model)
picture.figure_.tight_layout()
