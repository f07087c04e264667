"""UCI Bike Sharing: rentals in an hour; 17379 rows, one-hot calendar and weather."""

import pandas as pd

from benchmarks.columns import one_hot, random_splits
from benchmarks.registry import shared_file

CATEGORIES = {
    "season": "1,2,3,4",
    "mnth": "1,2,3,4,5,6,7,8,9,10,11,12",
    "hr": "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23",
    "weekday": "0,1,2,3,4,5,6",
    "weathersit": "1,2,3,4",
}
LEAKS = ["instant", "dteday", "casual", "registered"]  # the last two sum to the target


def table():
    frame = pd.read_csv(shared_file("bike_sharing_hour.csv.gz"))
    y = frame.pop("cnt").to_numpy(dtype=float)
    return one_hot(frame.drop(columns=LEAKS), CATEGORIES), y


load = random_splits(table, is_classification=False)
