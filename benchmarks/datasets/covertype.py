"""Cover type 2 against the rest: a 16 per cent sample of UCI Covertype, 92962 rows."""

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.registry import Split, shared_file

NAME = "covertype"


def load(seed):
    with np.load(shared_file("covertype_16pct.npz"), allow_pickle=False) as data:
        X, y = data["X"].astype(float), (data["y"] == 2).astype(int)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
    return Split(X_train, X_test, y_train, y_test, is_classification=True)
