"""What the rivals in benchmarks/methods share: bounds, an intercept, predictions.

A rival needs bounds before it can add noise. It gets the ones that columns of unit size call for:
a row, with its intercept of 1, is scaled down to the norm sqrt(number of columns), in fit and in
predict; a target lies in [-3, 3]. These are constants. On columns of another size they are the
wrong ones, and that is the point of the "raw" condition: nothing else would be private.

All rivals are charged as skdp is: zero-out adjacency, the number of rows public, and Gaussian
releases accounted for exactly, which asks for less noise than most of the papers do.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from scipy.special import expit

from skdp.accounting import gaussian_mu

TARGET_BOUND = 3.0


def scaled_down(X, bound):
    """Rows no longer than the bound."""
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X * np.minimum(1.0, bound / np.maximum(norms, 1e-300))


def symmetric_noise(size, rng):
    """Symmetric matrix with standard normal entries, the two triangles equal."""
    upper = np.triu(rng.standard_normal((size, size)))
    return upper + np.triu(upper, 1).T


class Rival:
    """Linear model with a budget; a subclass says how to find its weights."""

    def __init__(self, split, epsilon, delta, seed):
        self.split, self.epsilon, self.delta = split, epsilon, delta
        self.mu = gaussian_mu(epsilon, delta)
        self.rng = np.random.default_rng([seed, 77])

    def rows(self, X):
        """Columns and an intercept, no longer than ``row_bound``."""
        Z = np.column_stack([X, np.ones(len(X))])
        self.row_bound = np.sqrt(Z.shape[1])
        return scaled_down(Z, self.row_bound)


class RegressionRival(Rival):
    """Least squares; ``weights`` gets rows and targets within their bounds."""

    def fit(self, X, y):
        Z = self.rows(X)
        self.coef = self.weights(Z, np.clip(y, -TARGET_BOUND, TARGET_BOUND))
        return self

    def predict(self, X):
        return self.rows(X) @ self.coef

    @abstractmethod
    def weights(self, Z, y):
        """Return one weight for each column of Z."""


class ClassificationRival(Rival):
    """Logistic regression; more than two classes are one model each, on equal shares of the budget.

    ``weights`` gets rows within their bound, targets 0 and 1, and its share of the budget.
    """

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        Z = self.rows(X)
        positive = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        share = len(positive)
        self.coef = np.column_stack(
            [
                self.weights(
                    Z, (y == label).astype(float), self.epsilon / share, self.delta / share
                )
                for label in positive
            ]
        )
        return self

    def predict_proba(self, X):
        chances = expit(self.rows(X) @ self.coef)
        if len(self.classes_) == 2:
            return np.hstack([1 - chances, chances])
        return (chances + 1e-12) / (chances + 1e-12).sum(axis=1, keepdims=True)

    @abstractmethod
    def weights(self, Z, y, epsilon, delta):
        """Return one weight for each column of Z."""


def minimise_logistic(Z, y, ridge, tilt, tolerance):
    """Minimise the sum of log losses + ridge/2 |w|**2 + tilt'w by Newton steps.

    Stops when the norm of the gradient is at most ``tolerance``.
    """

    def value(w):
        margins = Z @ w
        return np.logaddexp(0, margins).sum() - y @ margins + ridge / 2 * (w @ w) + tilt @ w

    w = np.zeros(Z.shape[1])
    for _ in range(100):
        chances = expit(Z @ w)
        gradient = Z.T @ (chances - y) + ridge * w + tilt
        if np.linalg.norm(gradient) <= tolerance:
            return w
        weights = np.sqrt(chances * (1 - chances))[:, None] * Z
        hessian = weights.T @ weights + ridge * np.eye(len(w))
        step = np.linalg.solve(hessian, gradient)
        size, start, slope = 1.0, value(w), gradient @ step
        while size > 1e-6 and value(w - size * step) > start - 0.1 * size * slope:
            size /= 2
        w = w - size * step
    raise RuntimeError(f"no minimum found: |gradient| = {np.linalg.norm(gradient):g}")
