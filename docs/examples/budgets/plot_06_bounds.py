"""
Public ranges, or ranges estimated privately
============================================

By default ``fit`` estimates the ranges of columns by noisy histograms. A `PublicRange` saves
that part of the budget, which matters if there are few rows. These rows are public, so their
scores may be exact.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import skdp

frame, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X, X_test, y, y_test = train_test_split(frame, y, random_state=0)

# Ranges that a physician knows without the rows.
ranges = skdp.PublicRange(by_column={
    "age": (18, 80), "sex": (1, 2), "bmi": (15, 45), "bp": (60, 140), "s1": (90, 310),
    "s2": (40, 250), "s3": (20, 100), "s4": (2, 10), "s5": (3, 6.5), "s6": (60, 130),
}, target=(0, 350))  # fmt: skip
scores = {
    "estimated privately": [
        skdp.DPRidge(epsilon=2.0).fit(X, y).score(X_test, y_test) for _ in range(10)
    ],
    "public ranges": [
        skdp.DPRidge(epsilon=2.0, scaling=ranges).fit(X, y).score(X_test, y_test) for _ in range(10)
    ],
}
figure, axes = plt.subplots(figsize=(4.8, 2.6))
axes.boxplot(scores.values(), tick_labels=list(scores), orientation="horizontal")
axes.set(xlabel="R2 at epsilon 2, ten fits each")
figure.tight_layout()
for name, values in scores.items():
    print(f"{name}: {np.mean(values):.3f}")
