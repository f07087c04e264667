"""Cover type 2 against the rest: a 16 per cent sample of UCI Covertype, 92962 rows."""

from functools import cache

import numpy as np

from benchmarks.columns import random_split
from benchmarks.registry import shared_file


@cache
def table():
    with np.load(shared_file("covertype_16pct.npz"), allow_pickle=False) as data:
        return data["X"].astype(float), (data["y"] == 2).astype(int)


def load(seed):
    X, y = table()
    return random_split(X, y, seed, is_classification=True)
