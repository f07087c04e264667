"""
From a raw data frame to a scored model
=======================================

A table with categories, missing values, a date and numbers becomes a private classifier, with a
score and the price of both. The hospital stays are made up.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

import skdp
from skdp.model_selection import DPHoldout

rng = np.random.default_rng(0)
n = 8000
stays = pd.DataFrame(
    {
        "age": rng.gamma(9.0, 6.0, n),
        "sex": rng.choice(["f", "m"], n),
        "ward": rng.choice(["surgery", "medicine", "children"], n),
        "admitted": np.datetime64("2024-01-01") + rng.integers(0, 365, n),
    }
)
risk = (stays.age - 60) / 12 + 1.5 * (stays.sex == "m") - 2.0 * (stays.ward == "children")
stays["readmitted"] = risk + rng.logistic(size=n) > 0
stays.loc[rng.random(n) < 0.1, ["age", "ward"]] = None
print(stays.head())

# %%
# Labels, a typical age and the columns with missing cells are public. Everything else is estimated
# with noise.

holdout = DPHoldout(stays.drop(columns="readmitted"), stays["readmitted"])
labels = {"sex": ["f", "m"], "ward": ["surgery", "medicine", "children"]}
model = make_pipeline(
    skdp.DPTabularPreprocessor(labels, fill_value={"age": 50}, missing=["age", "ward"]),
    skdp.DPLogisticRegression(epsilon=1.0, classes=[False, True]),
).set_output(transform="pandas")
model = holdout.fit(model)
scores = holdout.evaluate(model, "accuracy", epsilon=1.0, delta=1e-6)
print(scores["accuracy"])
print(model[-1].coefficients())

# %%
# The statement lists the releases and assumptions of the fit and of the score. Each row is in one
# part of the split, so the total is epsilon 1.

print(skdp.total_privacy(model, scores.privacy_, delta=1e-6))

# %%
# An effect is a coefficient times the estimated standard deviation of its column.

effects = model[-1].coefficients()["effect"].sort_values()
figure, axes = plt.subplots(figsize=(4.8, 3.2))
axes.barh(effects.index, effects)
axes.set(xlabel="effect on the log odds of readmission")
figure.tight_layout()
