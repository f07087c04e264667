"""AdaSSP: private X'X and X'y, and a ridge as large as their noise asks for.

Y.-X. Wang: Revisiting differentially private linear regression: optimal and adaptive prediction
& estimation in unbounded domain. UAI 2018, algorithm 2. There each of three releases takes a third
of epsilon and of delta; here each takes a third of mu**2, which is less noise.
"""

import numpy as np

from benchmarks.registry import Method, has_numbers
from benchmarks.rivals import TARGET_BOUND, RegressionRival, symmetric_noise

FAILURE = 0.05  # probability with which the ridge may be too small


class AdaSSP(RegressionRival):
    """Three Gaussian releases: the smallest eigenvalue of X'X, X'X, X'y."""

    n_releases = 3

    def noisy_gram(self, Z, sigma):
        """X'X with noise, plus the ridge."""
        size, unit = Z.shape[1], self.row_bound**2 * sigma
        gram = Z.T @ Z
        smallest = max(np.linalg.eigvalsh(gram)[0], 0.0) + unit * self.rng.standard_normal()
        smallest = max(smallest - unit * np.sqrt(np.log(6 / self.delta)), 0.0)
        ridge = max(0.0, np.sqrt(size * np.log(2 * size**2 / FAILURE)) * unit - smallest)
        return gram + unit * symmetric_noise(size, self.rng) + ridge * np.eye(size)

    def noisy_product(self, Z, residuals, bound, sigma):
        """X'r with noise; no residual exceeds the bound."""
        noise = self.rng.standard_normal(Z.shape[1])
        return Z.T @ np.clip(residuals, -bound, bound) + bound * self.row_bound * sigma * noise

    def weights(self, Z, y):
        sigma = np.sqrt(self.n_releases) / self.mu
        gram = self.noisy_gram(Z, sigma)
        return np.linalg.lstsq(gram, self.noisy_product(Z, y, TARGET_BOUND, sigma), rcond=None)[0]


METHODS = [Method("AdaSSP", "rival", AdaSSP, has_numbers)]
