"""DP-GD in thirty lines: what one writes without a library, with sensible constants.

Full-batch gradient descent with clipped gradients of single records, Gaussian noise and momentum;
the mean of the last half of the iterates is the model. Logistic, multinomial or squared loss.
"""

import numpy as np
from scipy.special import expit, softmax

from benchmarks.registry import Method
from benchmarks.rivals import TARGET_BOUND, Rival

STEPS, MOMENTUM = {True: 50, False: 100}, 0.9  # for classification, for regression


class GradientDescent(Rival):
    def fit(self, X, y):
        Z = self.rows(X)
        n, d = Z.shape
        # 1. Targets, step size and clipping norm, for columns of unit size.
        if self.split.is_classification:
            self.classes_ = np.unique(y)
            targets = (y[:, None] == self.classes_).astype(float)[:, len(self.classes_) == 2 :]
            step, clip = 12.0 / d, 0.5 * self.row_bound
        else:
            targets = np.clip(y, -TARGET_BOUND, TARGET_BOUND)[:, None]
            step, clip = 2.0 / d, 0.7 * self.row_bound
        # 2. Clipped residuals, noise, a step; the tail is kept.
        steps = STEPS[self.split.is_classification]
        self.coef = np.zeros((d, targets.shape[1]))
        norms, velocity, tail = np.linalg.norm(Z, axis=1, keepdims=True), 0.0, []
        for t in range(steps):
            residuals = self.outputs(Z) - targets
            sizes = norms * np.linalg.norm(residuals, axis=1, keepdims=True)
            gradient = Z.T @ (residuals * np.minimum(1, clip / np.maximum(sizes, 1e-300)))
            noise = self.rng.standard_normal(self.coef.shape) * clip * np.sqrt(steps) / self.mu
            velocity = MOMENTUM * velocity - step * (gradient + noise) / n
            self.coef = self.coef + velocity
            if t >= steps // 2:
                tail.append(self.coef)
        self.coef = np.mean(tail, axis=0)
        return self

    def outputs(self, Z):
        scores = Z @ self.coef
        if not self.split.is_classification:
            return scores
        return expit(scores) if scores.shape[1] == 1 else softmax(scores, axis=1)

    def predict(self, X):
        return self.outputs(self.rows(X))[:, 0]

    def predict_proba(self, X):
        chances = self.outputs(self.rows(X))
        return np.hstack([1 - chances, chances]) if chances.shape[1] == 1 else chances


METHODS = [Method("DP-GD, 30 lines", "rival", GradientDescent)]
