"""California housing: median house value in units of 100,000 USD; 20640 rows."""

from functools import cache

import numpy as np

from benchmarks.columns import random_split
from benchmarks.registry import shared_file


@cache
def table():
    with np.load(shared_file("california_housing.npz"), allow_pickle=False) as data:
        return data["X"].astype(float), data["y"].astype(float)


def load(seed):
    X, y = table()
    return random_split(X, y, seed, is_classification=False)
