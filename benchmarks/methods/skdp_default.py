"""skdp with default settings after StandardScaler (whose cost is not included)."""

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdp

NAME = "skdp, default"


def applies(split):
    return True


def make(split, epsilon, delta, seed):
    estimator = skdp.DPLogisticRegression if split.is_classification else skdp.DPLinearRegression
    return make_pipeline(
        StandardScaler(), estimator(epsilon=epsilon, delta=delta, random_state=seed)
    )
