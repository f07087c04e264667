"""California housing: median house value in units of 100,000 USD; 20640 rows."""

import numpy as np

from benchmarks.columns import random_splits
from benchmarks.registry import shared_file


def table():
    with np.load(shared_file("california_housing.npz"), allow_pickle=False) as data:
        return data["X"].astype(float), data["y"].astype(float)


load = random_splits(table, is_classification=False)
