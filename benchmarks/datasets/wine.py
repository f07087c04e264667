"""UCI Wine Quality: marks from 3 to 9; 6497 rows, red and white."""

from functools import cache

import numpy as np

from benchmarks.columns import random_split
from benchmarks.registry import shared_file


@cache
def table():
    with np.load(shared_file("wine_quality.npz"), allow_pickle=False) as data:
        X = np.column_stack([data["X"], data["is_red"]]).astype(float)
        return X, data["y"].astype(float)


def load(seed):
    X, y = table()
    return random_split(X, y, seed, is_classification=False)
