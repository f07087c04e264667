"""Approximate minima perturbation: a tilted, regularised minimum, and a little output noise.

R. Iyengar, J. P. Near, D. Song, O. Thakkar, A. Thakurta, L. Wang: Towards practical differentially
private convex optimization. S&P 2019, algorithm 1, with the split of the budget of its version
without hyperparameters. Constants are those of zero-out: a record moves the gradient by L and the
Hessian by one rank, where the paper, for replaced records, has 2 L and two.
"""

import numpy as np

from benchmarks.registry import Method, has_classes
from benchmarks.rivals import ClassificationRival, minimise_logistic

OUTPUT_SHARE = 0.01


def deviation(sensitivity, epsilon, delta):
    """Noise of the paper's Gaussian mechanism."""
    return sensitivity * (1 + np.sqrt(2 * np.log(1 / delta))) / epsilon


def split_budget(epsilon):
    """Shares of epsilon: for noise in the objective, for its curvature, for the output."""
    objective = (1 - OUTPUT_SHARE) * epsilon
    fraction = min(0.88671 + 0.0186607 / epsilon**0.372906, 0.99)
    noise = max(fraction, 1 - 1 / epsilon + 0.001) * objective
    return noise, objective - noise, OUTPUT_SHARE * epsilon


class AMP(ClassificationRival):
    def weights(self, Z, y, epsilon, delta):
        noise, curvature, output = split_budget(epsilon)
        ridge = self.row_bound**2 / 4 / curvature
        tolerance = 1 / len(Z)  # of the sum; 1 / n**2 of the mean
        tilt = self.rng.standard_normal(Z.shape[1])
        tilt *= deviation(self.row_bound, noise, (1 - OUTPUT_SHARE) * delta)
        w = minimise_logistic(Z, y, ridge, tilt, tolerance)
        moved = deviation(tolerance / ridge, output, OUTPUT_SHARE * delta)
        return w + moved * self.rng.standard_normal(len(w))


METHODS = [Method("AMP", "rival", AMP, has_classes)]
