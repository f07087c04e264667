"""Diamonds: price in dollars; 53940 rows, cut, colour and clarity one-hot."""

import pandas as pd

from benchmarks.columns import one_hot, random_splits
from benchmarks.registry import shared_file

CATEGORIES = {
    "cut": "Fair,Good,Very Good,Premium,Ideal",
    "color": "D,E,F,G,H,I,J",
    "clarity": "I1,SI2,SI1,VS2,VS1,VVS2,VVS1,IF",
}


def table():
    frame = pd.read_csv(shared_file("diamonds.csv.gz"))
    y = frame.pop("price").to_numpy(dtype=float)
    return one_hot(frame, CATEGORIES), y


load = random_splits(table, is_classification=False)
