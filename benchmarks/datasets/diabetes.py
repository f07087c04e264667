"""Diabetes progression, in its own units; 442 rows, ships with scikit-learn."""

from sklearn.datasets import load_diabetes

from benchmarks.columns import random_split


def load(seed):
    X, y = load_diabetes(return_X_y=True, scaled=False)
    return random_split(X, y, seed, is_classification=False)
