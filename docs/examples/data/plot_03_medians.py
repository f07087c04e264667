"""
Missing numbers, filled with private medians
============================================

If no typical value is known, ``impute="median"`` estimates it from three noisy histograms.
`skdp.total_privacy` adds up the costs of the steps of a pipeline.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

import skdp

rng = np.random.default_rng(0)
n = 20_000
income = pd.DataFrame({"year": rng.integers(1950, 2000, n), "income": rng.lognormal(10, 1, n)})
years = 2020 - income["year"] + rng.normal(0, 3, n)
income[rng.random(income.shape) < 0.2] = np.nan

table = skdp.DPTabularPreprocessor(impute="median", epsilon=0.2)
model = make_pipeline(table, skdp.DPRidge(epsilon=0.8)).fit(income, years)
for column, value in table.fit(income).fill_values_.items():
    print(f"{column}: median {income[column].median():.0f}, found {value:.0f}")

# %%
# The pipeline costs less than 0.2 + 0.8. (The line above that printed medians fitted the table
# once more, which would also cost budget on private rows. Exact medians and scores are harmless
# because these rows are made up.)

print(f"epsilon of the pipeline: {skdp.total_privacy(model, delta=1e-6).epsilon:.3f}")
print(f"R2 on these rows: {model.score(income, years):.3f}")

figure, axes = plt.subplots(figsize=(4.8, 3))
axes.hist(income["income"].dropna(), bins=np.linspace(0, 1e5, 60), color="lightgrey")
axes.axvline(model[0].fill_values_["income"], label="private median, fills the gaps")
axes.set(yticks=[], xlabel="income")
axes.legend()
figure.tight_layout()
