"""Handwritten digits, ten classes; 1797 rows, ships with scikit-learn."""

from sklearn.datasets import load_digits

from benchmarks.columns import random_split


def load(seed):
    X, y = load_digits(return_X_y=True)
    return random_split(X, y, seed, is_classification=True)
