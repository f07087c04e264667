"""Breast cancer (Wisconsin), two classes; 569 rows, ships with scikit-learn."""

from sklearn.datasets import load_breast_cancer

from benchmarks.columns import random_split


def load(seed):
    X, y = load_breast_cancer(return_X_y=True)
    return random_split(X, y, seed, is_classification=True)
