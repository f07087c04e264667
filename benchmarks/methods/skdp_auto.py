"""skdp as it comes: nothing is set but the budget, the labels and the seed of the noise.

On demand with predictions that are linear, and with some rows public, to see what they do.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

import skdp
from benchmarks.registry import Method, Split


def estimator(split, epsilon, delta, seed, **parameters):
    """An estimator of skdp for this kind of target."""
    privacy = skdp.Privacy(noise=skdp.SeededNoise(seed))
    parameters |= {"epsilon": epsilon, "delta": delta, "privacy": privacy}
    if split.is_classification:
        return skdp.DPLogisticRegression(classes=split.classes, **parameters)
    return skdp.DPLinearRegression(**parameters)


@dataclass(frozen=True)
class Linear:
    """An estimator of skdp whose fitted model predicts linearly everywhere."""

    model: BaseEstimator

    def fit(self, X, y):
        """Return the fitted model of scikit-learn with the same coefficients."""
        return self.model.fit(X, y).to_sklearn()


def linear(split, epsilon, delta, seed, **parameters):
    """A model with linear predictions."""
    return Linear(estimator(split, epsilon, delta, seed, **parameters))


@dataclass(frozen=True)
class WithPublicRows:
    """Some of the rows are public: columns are read from them, and the others are trained on."""

    split: Split
    epsilon: float
    delta: float
    seed: int
    share: float = 0.02

    def fit(self, X, y):
        """Return the model of the rows that are private."""
        n_public = round(self.share * len(y))
        places = np.random.default_rng(self.seed).permutation(len(y))
        public, private = places[:n_public], np.sort(places[n_public:])
        scaling = skdp.PublicSample(X[public])
        model = estimator(self.split, self.epsilon, self.delta, self.seed, scaling=scaling)
        return model.fit(X[private], y[private])


METHODS = [
    Method("skdp", "skdp", estimator),
    Method("skdp linear", "solver", linear, on_demand=True),
    Method("skdp, 2 % public", "solver", WithPublicRows, on_demand=True),
]
