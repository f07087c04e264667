"""From a table as it was published to columns of numbers, by public knowledge alone."""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.registry import Split


def one_hot(frame, categories):
    """Put a 0/1 column for every listed category in place of the column that has them.

    The lists are divided by commas. They are public: they come from the description of the data
    set, not from its rows.
    """
    numbers = frame.drop(columns=list(categories)).to_numpy(dtype=float)
    blocks = [
        (frame[name].astype(str).to_numpy()[:, None] == np.array(labels.split(","))).astype(float)
        for name, labels in categories.items()
    ]
    return np.hstack([numbers, *blocks])


def random_split(X, y, seed, is_classification):
    """Three quarters to train, a quarter to test."""
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=seed)
    return Split(X_train, X_test, y_train, y_test, is_classification)


def random_splits(table, is_classification):
    """Return the function of a seed that splits a table, which is read once."""
    once = cache(table)
    return lambda seed: random_split(*once(), seed, is_classification)
