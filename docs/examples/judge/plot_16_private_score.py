"""
A score with noise, and an interval around it
=============================================

A score on private rows depends on them. `skdp.metrics.evaluate` releases it with noise and charges
a budget. If the rows were not used for the fit, each row is charged once.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import skdp
from skdp.metrics import evaluate
from skdp.model_selection import dp_train_test_split

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = dp_train_test_split(X, y, test_size=0.4)
with skdp.PrivacyBudget(epsilon=3.0, delta=1e-6) as budget:
    model = skdp.DPLogisticRegression(
        epsilon=3.0, classes=range(10), scaling=skdp.PublicRange(0, 16)
    ).fit(X, y)
    scores = evaluate(model, X_test, y_test, epsilon=3.0, delta=1e-6)
accuracy = scores["accuracy"]
low, high = accuracy.interval(0.95)
print(f"accuracy {accuracy.value:.3f}; on these rows it lies between {low:.3f} and {high:.3f}")
print(f"exact, to compare; the digits are public rows: {model.score(X_test, y_test):.3f}")

# %%
# The two parts are disjoint, so the whole costs no more than one of them:

print(f"spent: {budget.spent:.3f}")

figure, axes = plt.subplots(figsize=(4.8, 2.2))
axes.errorbar(
    [accuracy.value], [0], xerr=[[accuracy.value - low], [high - accuracy.value]], fmt="o"
)
axes.axvline(model.score(X_test, y_test), color="grey", ls="--", label="exact score")
axes.set(yticks=[], xlabel="accuracy and its interval")
axes.legend()
figure.tight_layout()
