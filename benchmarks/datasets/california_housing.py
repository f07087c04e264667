"""California housing, 20640 rows; target in units of 100,000 USD."""

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.registry import Split, shared_file

NAME = "california_housing"


def load(seed):
    with np.load(shared_file("california_housing.npz"), allow_pickle=False) as data:
        X, y = data["X"].astype(float), data["y"].astype(float)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
    return Split(X_train, X_test, y_train, y_test, is_classification=False)
