"""Output perturbation: noise on the minimum of a strongly convex objective.

K. Chaudhuri, C. Monteleoni, A. Sarwate: Differentially private empirical risk minimization. JMLR
2011, algorithm 1. Their noise is pure; here it is Gaussian, which is less noise. A row moves the
minimum of sum of losses + ridge/2 |w|**2 by at most its longest gradient over the ridge.
"""

import numpy as np

from benchmarks.registry import Method, has_classes
from benchmarks.rivals import ClassificationRival, minimise_logistic
from skdp.accounting import gaussian_mu

RIDGE = 0.01  # for each row


class OutputPerturbation(ClassificationRival):
    def weights(self, Z, y, epsilon, delta):
        ridge = RIDGE * len(Z)
        minimum = minimise_logistic(Z, y, ridge, np.zeros(Z.shape[1]), 1e-9 * len(Z))
        sigma = self.row_bound / ridge / gaussian_mu(epsilon, delta)
        return minimum + sigma * self.rng.standard_normal(Z.shape[1])


METHODS = [Method("output perturbation", "rival", OutputPerturbation, has_classes, True)]
