"""UCI Wine Quality: marks from 3 to 9; 6497 rows, red and white."""

import numpy as np

from benchmarks.columns import random_splits
from benchmarks.registry import shared_file


def table():
    with np.load(shared_file("wine_quality.npz"), allow_pickle=False) as data:
        X = np.column_stack([data["X"], data["is_red"]]).astype(float)
        return X, data["y"].astype(float)


load = random_splits(table, is_classification=False)
