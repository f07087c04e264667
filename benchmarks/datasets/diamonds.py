"""Diamonds: price in dollars; 53940 rows, cut, colour and clarity one-hot."""

from functools import cache

import pandas as pd

from benchmarks.columns import one_hot, random_split
from benchmarks.registry import shared_file

CATEGORIES = {
    "cut": "Fair,Good,Very Good,Premium,Ideal",
    "color": "D,E,F,G,H,I,J",
    "clarity": "I1,SI2,SI1,VS2,VS1,VVS2,VVS1,IF",
}


@cache
def table():
    frame = pd.read_csv(shared_file("diamonds.csv.gz"))
    y = frame.pop("price").to_numpy(dtype=float)
    lists = {name: labels.split(",") for name, labels in CATEGORIES.items()}
    return one_hot(frame, lists), y


def load(seed):
    X, y = table()
    return random_split(X, y, seed, is_classification=False)
