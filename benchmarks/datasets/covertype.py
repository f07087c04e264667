"""Cover type 2 against the rest: a 16 per cent sample of UCI Covertype, 92962 rows."""

import numpy as np

from benchmarks.columns import random_splits
from benchmarks.registry import shared_file


def table():
    with np.load(shared_file("covertype_16pct.npz"), allow_pickle=False) as data:
        return data["X"].astype(float), (data["y"] == 2).astype(int)


load = random_splits(table, is_classification=True)
