"""
Retraining every month on one budget
====================================

A `skdp.PrivacyBudget` adds up the costs of fits on the same rows and refuses a fit that would
exceed it. Costs compose, so more fits share a budget than a sum of epsilons suggests.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import skdp

X, y = load_digits(return_X_y=True)
spent = []
with skdp.PrivacyBudget(epsilon=3.0, delta=1e-6) as budget:
    try:
        while True:
            skdp.DPLogisticRegression(epsilon=0.8, classes=range(10)).fit(X, y)
            spent.append(budget.spent)
    except skdp.PrivacyBudgetError as refusal:
        print(refusal)

figure, axes = plt.subplots(figsize=(4.8, 3.2))
months = range(1, len(spent) + 1)
axes.plot(months, spent, marker="o", label="composed")
axes.plot(months, [0.8 * month for month in months], linestyle="--", label="sum of epsilons")
axes.axhline(3.0, color="grey", label="budget")
axes.set(xlabel="fits", ylabel="epsilon")
axes.legend()
figure.tight_layout()

# %%
# The budget's own statement lists all releases.

print(budget)
print(str(budget.statement)[:400], "...")
