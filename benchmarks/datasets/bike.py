"""UCI Bike Sharing: rentals in an hour; 17379 rows, one-hot calendar and weather."""

from functools import cache

import pandas as pd

from benchmarks.columns import one_hot, random_split
from benchmarks.registry import shared_file

CATEGORIES = {
    "season": range(1, 5),
    "mnth": range(1, 13),
    "hr": range(24),
    "weekday": range(7),
    "weathersit": range(1, 5),
}
LEAKS = ["instant", "dteday", "casual", "registered"]  # the last two sum to the target


@cache
def table():
    frame = pd.read_csv(shared_file("bike_sharing_hour.csv.gz"))
    y = frame.pop("cnt").to_numpy(dtype=float)
    lists = {name: [str(label) for label in labels] for name, labels in CATEGORIES.items()}
    return one_hot(frame.drop(columns=LEAKS), lists), y


def load(seed):
    X, y = table()
    return random_split(X, y, seed, is_classification=False)
