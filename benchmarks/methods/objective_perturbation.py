"""Objective perturbation, by the tight bound of a generalised linear model.

R. Redberg, A. Koskela, Y.-X. Wang: Improving the privacy and practicality of objective
perturbation for differentially private linear learners. NeurIPS 2023. The minimum is found to
working precision.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from benchmarks.registry import Method, has_classes
from benchmarks.rivals import ClassificationRival, minimise_logistic

CURVATURE_SHARE = 0.15  # of epsilon, for what the ridge has to hide, and at most this:
MOST_CURVATURE = 3.0


def hockey_stick(epsilon, sigma, L):
    """Delta of the Gaussian mechanism of sensitivity L; ``epsilon`` may be negative."""
    ratio = L / sigma
    lost = np.exp(epsilon + log_ndtr(-ratio / 2 - epsilon / ratio))
    return ndtr(ratio / 2 - epsilon / ratio) - lost


def delta_of(epsilon, sigma, ridge, L, beta):
    """Delta of objective perturbation with noise sigma, gradients to L, curvature to beta."""
    curvature = abs(np.log1p(-beta / ridge))
    left, shift = epsilon - curvature, L**2 / (2 * sigma**2)
    if left > shift:
        return 2 * hockey_stick(left, sigma, L)
    rest = left - shift
    return -np.expm1(rest) + 2 * np.exp(rest) * hockey_stick(shift, sigma, L)


def calibrated(epsilon, delta, L, beta, share=CURVATURE_SHARE):
    """Noise and ridge that cost (epsilon, delta), the ridge's share of epsilon given."""
    ridge = beta / -np.expm1(-min(share * epsilon, MOST_CURVATURE))
    low, high = 1e-3 * L / (epsilon + 1), 1e3 * L / min(epsilon, 1)
    excess = brentq(
        lambda log: np.log(max(delta_of(epsilon, np.exp(log), ridge, L, beta), 1e-300) / delta),
        np.log(low),
        np.log(high),
        xtol=1e-12,
    )
    return np.exp(excess) * (1 + 1e-9), ridge


class ObjectivePerturbation(ClassificationRival):
    def weights(self, Z, y, epsilon, delta):
        sigma, ridge = calibrated(epsilon, delta, self.row_bound, self.row_bound**2 / 4)
        tilt = sigma * self.rng.standard_normal(Z.shape[1])
        return minimise_logistic(Z, y, ridge, tilt, 1e-9 * len(Z))


METHODS = [Method("objective perturbation", "rival", ObjectivePerturbation, has_classes)]
