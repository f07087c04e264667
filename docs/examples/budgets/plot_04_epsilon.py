"""
Score against epsilon
=====================

scikit-learn's `ValidationCurveDisplay` shows how much accuracy privacy costs, on public or made-up
data. On private rows every point would spend budget, and the scores would not be private.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ValidationCurveDisplay, cross_val_score

import skdp

X, y = load_breast_cancer(return_X_y=True)  # public data
display = ValidationCurveDisplay.from_estimator(
    skdp.DPLogisticRegression(classes=[0, 1]),
    X,
    y,
    param_name="epsilon",
    param_range=[0.1, 0.3, 1.0, 3.0, 10.0],
    score_name="accuracy",
    score_type="test",
)
reference = cross_val_score(LogisticRegression(max_iter=10_000), X, y).mean()
display.ax_.axhline(reference, linestyle="--", label="not private")
display.ax_.legend()
