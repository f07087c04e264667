"""Boosted AdaSSP: one noisy X'X, and a noisy X'r for the residuals r of every round.

S. Tang, S. Aydore, M. Kearns, S. Rho, A. Roth, Y. Wang, Y.-X. Wang, Z. S. Wu: Improved
differentially private regression via gradient boosting. SaTML 2024. 100 rounds and residuals
clipped to 1 are the authors' setting. T + 2 releases share mu**2: sigma = sqrt(T + 2) / mu (the
published code has sigma = mu).
"""

import numpy as np

from benchmarks.methods.adassp import AdaSSP
from benchmarks.registry import Method, has_numbers

ROUNDS, RESIDUAL_BOUND = 100, 1.0


class BoostedAdaSSP(AdaSSP):
    n_releases = ROUNDS + 2

    def weights(self, Z, y):
        sigma = np.sqrt(self.n_releases) / self.mu
        gram = self.noisy_gram(Z, sigma)
        w = np.zeros(Z.shape[1])
        for _ in range(ROUNDS):
            product = self.noisy_product(Z, y - Z @ w, RESIDUAL_BOUND, sigma)
            w = w + np.linalg.lstsq(gram, product, rcond=None)[0]
        return w


METHODS = [Method("Boosted AdaSSP", "rival", BoostedAdaSSP, has_numbers)]
