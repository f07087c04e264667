"""Diabetes progression, 442 rows; ships with scikit-learn. Targets are divided by 100."""

from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from benchmarks.registry import Split

NAME = "diabetes"


def load(seed):
    X, y = load_diabetes(return_X_y=True)
    y = y / 100
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
    return Split(X_train, X_test, y_train, y_test, is_classification=False)
