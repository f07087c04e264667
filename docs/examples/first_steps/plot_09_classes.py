"""
Ten classes, one release per step
=================================

With more than two classes a step releases one matrix, so the budget is not divided among classes.
The digits are public, so the score and the confusion matrix may be exact.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split

import skdp

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)
model = skdp.DPLogisticRegression(
    epsilon=3.0, classes=range(10), scaling=skdp.PublicRange(0, 16)
).fit(X, y)
print(f"accuracy: {model.score(X_test, y_test):.3f}")

# %%
# Pixels lie between 0 and 16 by definition, a public bound that costs nothing. The pictures show
# the coefficients of each class.

figure, axes = plt.subplots(2, 5, figsize=(4.8, 3.2))
for label, axis in zip(model.classes_, axes.ravel(), strict=True):
    axis.imshow(model.coef_[label].reshape(8, 8), cmap="coolwarm")
    axis.set(title=str(label), xticks=[], yticks=[])
figure.tight_layout()

ConfusionMatrixDisplay.from_estimator(model, X_test, y_test, colorbar=False)
