"""UCI Adult, income above 50K: 32561 rows to train and 16281 to test, one-hot, no fnlwgt."""

import pandas as pd

from benchmarks.registry import Split, shared_file

NAME = "adult"


def load(seed):
    frame = pd.read_csv(shared_file("adult.csv.gz"), keep_default_na=False)
    is_train = (frame.pop("split") == "train").to_numpy()
    y = frame.pop("income").str.contains(">50K").to_numpy().astype(int)
    X = pd.get_dummies(frame.drop(columns="fnlwgt"), dtype=float).to_numpy()
    return Split(X[is_train], X[~is_train], y[is_train], y[~is_train], is_classification=True)
