"""diffprivlib 0.6.6: objective perturbation (Chaudhuri et al. 2011), functional mechanism (2012).

It runs in an environment of its own, see benchmarks/environments. With standardised columns it
gets bounds: rows of norm sqrt(columns) for LogisticRegression, cells and targets in [-3, 3] for
LinearRegression. With raw columns it gets none, as a user would do it: then it warns, and reads
them from the rows. That is NOT private, so this line is no rival of a private method.
It has no delta: all of its budget is epsilon.
"""

import numpy as np

from benchmarks.environments import diffprivlib_env
from benchmarks.registry import Method, Unavailable
from benchmarks.rivals import TARGET_BOUND

CELL_BOUND = 3.0


class Remote:
    """Fits in the other environment, where it predicts the test rows at once."""

    def __init__(self, split, epsilon, delta, seed):
        self.X_test = split.X_test
        self.task = {
            "epsilon": epsilon,
            "seed": seed,
            "X_test": split.X_test,
            "is_classification": split.is_classification,
        }
        if split.condition == "standardised":
            row_bound = np.sqrt(split.X_train.shape[1])
            self.task |= {"row_bound": row_bound, "cell_bound": CELL_BOUND}
            self.task["target_bound"] = TARGET_BOUND

    def fit(self, X, y):
        self.answer = diffprivlib_env.ask(X_train=X, y_train=y, **self.task)
        self.classes_ = self.answer.get("classes")
        return self

    def predict(self, X):
        self.check(X)
        return self.answer["predictions"]

    def predict_proba(self, X):
        self.check(X)
        return self.answer["chances"]

    def check(self, X):
        if X is not self.X_test:
            raise ValueError("only the test rows of the split can be predicted")


def is_here(split, condition):
    try:
        diffprivlib_env.python()
    except Unavailable:
        return False
    return split.condition == condition


METHODS = [
    Method("diffprivlib", "rival", Remote, lambda split: is_here(split, "standardised")),
    Method(
        "diffprivlib, bounds from data", "not private", Remote, lambda split: is_here(split, "raw")
    ),
]
