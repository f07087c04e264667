"""The non-private twin: LogisticRegression or LinearRegression after StandardScaler."""

from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.registry import Method


def make(split, epsilon, delta, seed):
    twin = LogisticRegression(max_iter=1000) if split.is_classification else LinearRegression()
    return make_pipeline(StandardScaler(), twin)


METHODS = [Method("non-private", "reference", make)]
