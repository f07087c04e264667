"""
Score against epsilon
=====================

How much accuracy does privacy cost? On public data, or data made for the purpose,
`skdp.model_selection.PrivacyUtilityDisplay` draws it. On private rows every point would spend
budget, and the scores would not be private.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import skdp

X, y = load_breast_cancer(return_X_y=True)  # public data
X, X_test, y, y_test = train_test_split(X, y, random_state=0)
reference = LogisticRegression(max_iter=10_000).fit(X, y)
display = skdp.model_selection.PrivacyUtilityDisplay.from_estimator(
    skdp.DPLogisticRegression(classes=[0, 1]), X, y, X_test, y_test
)
display.references = {"not private": reference.score(X_test, y_test)}
display.plot().ax_.set_ylabel("accuracy")
print(f"all these fits together: epsilon {display.total.epsilon:.1f}")
