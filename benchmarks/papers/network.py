"""A network of 1,000 rectified units in numpy, with the sum of its records' clipped gradients.

The norm of a record's gradient is that of an outer product in each layer, so that no gradient of a
single record is formed.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, log_softmax, softmax

HIDDEN = 1000


class Network:
    """Rows -> ``HIDDEN`` rectified units -> scores for the log loss: one for two classes."""

    def __init__(self, n_features, rng, n_classes=2):
        size = math.sqrt(2 / n_features)
        self.inner = (size * rng.standard_normal((n_features + 1, HIDDEN))).astype(np.float32)
        self.inner[-1] = 0.0
        shape = HIDDEN + 1, 1 if n_classes == 2 else n_classes
        outer = math.sqrt(1 / HIDDEN) * rng.standard_normal(shape)
        self.outer = outer.astype(np.float32)
        self.outer[-1] = 0.0

    def layers(self, X):
        hidden = np.maximum(X @ self.inner[:-1] + self.inner[-1], 0.0)
        return hidden, hidden @ self.outer[:-1] + self.outer[-1]

    def clipped_sum(self, X, y, clip_norm):
        """Sum of the records' gradients, each clipped in the norm over both layers."""
        hidden, scores = self.layers(X)
        if scores.shape[1] == 1:
            residuals = expit(scores) - y[:, None].astype(np.float32)
        else:
            residuals = softmax(scores, axis=1)
            residuals[np.arange(len(y)), y] -= 1.0
        back = (hidden > 0) * (residuals @ self.outer[:-1].T)  # d loss / d hidden
        of_inner = (1 + np.sum(X**2, axis=1)) * np.sum(back**2, axis=1)
        of_outer = (1 + np.sum(hidden**2, axis=1)) * np.sum(residuals**2, axis=1)
        norms = np.sqrt(of_inner + of_outer)
        kept = np.minimum(1.0, clip_norm / np.maximum(norms, 1e-12))[:, None]
        back *= kept
        residuals *= kept
        inner = np.vstack([X.T @ back, back.sum(axis=0)])
        return inner, np.vstack([hidden.T @ residuals, residuals.sum(axis=0)])

    def step(self, X, y, size, clip_norm, multiplier, rng):
        std = clip_norm * multiplier
        for weights, total in zip(
            (self.inner, self.outer), self.clipped_sum(X, y, clip_norm), strict=True
        ):
            noise = rng.standard_normal(total.shape, dtype=np.float32)
            weights -= np.float32(size / len(y)) * (total + np.float32(std) * noise)

    def loss(self, X, y):
        scores = self.layers(X)[1]
        if scores.shape[1] == 1:
            margins = scores[:, 0]
            return float(np.mean(np.logaddexp(0, margins) - y * margins))
        return -float(np.mean(log_softmax(scores, axis=1)[np.arange(len(y)), y]))

    def accuracy(self, X, y):
        scores = self.layers(X)[1]
        chosen = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)
        return float(np.mean(chosen == y))
