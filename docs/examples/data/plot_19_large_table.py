"""
A table that is larger than memory
==================================

Rows stay in a file. Missing values are filled, two candidates are compared, a model is fitted with
intervals, and other rows score it. Each step reads the file in chunks and keeps no rows.
"""

import tempfile

import numpy as np
from sklearn.pipeline import make_pipeline

import skdp
from skdp.model_selection import DPHoldout, DPSearchCV

rng = np.random.default_rng(0)
n_rows = 100_000  # made up, and few, because this page must run in seconds
folder = tempfile.TemporaryDirectory()
X = np.memmap(f"{folder.name}/rows", np.float32, "w+", shape=(n_rows, 4))
X[:] = rng.standard_normal(X.shape) * [10, 100, 1000, 1] + [50, 0, 0, 0]
y = X @ [0.1, 0.02, -0.001, 0.0] + rng.standard_normal(n_rows)
X[rng.random(n_rows) < 0.1, 1] = np.nan

holdout = DPHoldout(skdp.data.Chunks(X, y, rows_at_once=20_000), test_size=0.2)

# %%
# Compare two candidates, then fit the better one with intervals. Each fit makes few passes.

preparation = skdp.DPTabularPreprocessor(fill_value=0.0, missing=[1])
ridge = skdp.DPRidge(solver="boosted_ssp")
search = DPSearchCV(make_pipeline(preparation, ridge), {"dpridge__alpha": [1, 1e4]}, n_candidates=2)
search = holdout.fit(search)
best = search.best_params_["dpridge__alpha"]
ridge.set_params(inference=True, alpha=best)
model = holdout.fit(make_pipeline(preparation, ridge))
print(model[-1].summary())
skdp.linear_model.CoefficientDisplay.from_estimator(model[-1])

# %%
# Score on the rows that were set aside:

scores = holdout.evaluate(model, epsilon=1.0)
print(scores)

# %%
# The search and the fit add up. The score is on other rows and costs no more than they do.

whole = skdp.total_privacy(search, model, scores.privacy_, delta=3e-6)
print(f"epsilon {whole.epsilon:.2f} at delta {whole.delta:g}")
