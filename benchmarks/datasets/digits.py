"""Handwritten digits, ten classes, 1797 rows; ships with scikit-learn."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from benchmarks.registry import Split

NAME = "digits"


def load(seed):
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
    return Split(X_train, X_test, y_train, y_test, is_classification=True)
