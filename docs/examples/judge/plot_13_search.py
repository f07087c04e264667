"""
The price of a grid search
==========================

A search fits many models. `skdp.privacy_of` prices these fits. The price excludes the scores by
which the search chose.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, KFold

import skdp

X, y = load_breast_cancer(return_X_y=True)  # public data: exact scores are harmless
search = GridSearchCV(
    skdp.DPLogisticRegression(epsilon=0.5, classes=[0, 1]),
    {"C": [0.01, 1.0, 100.0]},
    cv=KFold(4, shuffle=True, random_state=0),
).fit(X, y)
table = pd.DataFrame(search.cv_results_)[["param_C", "mean_test_score", "std_test_score"]]
print(table.to_string(index=False))

# %%
# The price of all fits, including the refit, is several times the price of one fit.

print(skdp.privacy_of(search, n_samples=len(X), n_features=X.shape[1]))

figure, axes = plt.subplots(figsize=(4.8, 3))
axes.errorbar(
    table["param_C"].astype(float), table["mean_test_score"], table["std_test_score"], fmt="o"
)
axes.set(xscale="log", xlabel="C", ylabel="accuracy, four folds")
figure.tight_layout()
