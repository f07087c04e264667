"""GaussMix and Iterative Hessian Mixing (IHM): least squares on random sums of the rows.

O. Lev, V. Srinivasan, M. Shenfeld, K. Ligett, A. Sekhari, A. C. Wilson: The Gaussian mixing
mechanism: Renyi differential privacy via Gaussian sketches. NeurIPS 2025; and Near-optimal private
linear regression via iterative Hessian mixing. arXiv 2601.07545, 2026. Numbers of sums, rounds and
shares of the budget are those of the authors' code.

Each of k sums of rows a of norm at most 1, with standard normal weights and noise of variance v, is
normal with covariance A'A + vI. Zeroing a row takes aa' away. If the least eigenvalue of A'A + vI
is at least gamma, the Renyi divergence of order q < gamma is at most

    k / (2(q - 1)) (q log(1 - 1/gamma) - log(1 - q/gamma)).

So v is gamma less a lower bound of the least eigenvalue of A'A. This bound is a release of
sensitivity 1 with deviation gamma/sqrt(k), and fails with probability delta.
"""

import math
from functools import cache

import numpy as np
from scipy.optimize import brentq

from benchmarks.registry import Method, has_numbers
from benchmarks.rivals import TARGET_BOUND, RegressionRival
from skdp.accounting import gaussian_epsilon, gaussian_mu

ROUNDS = 3


@cache
def least_gamma(n_sums, n_sketches, epsilon, delta):
    """Least gamma of sketches that cost epsilon with their release of an eigenvalue.

    ``delta`` is spent three times: by that release, by its bound, and by the sketches.
    """

    def excess(log):
        gaps = math.exp(log) * np.geomspace(1e-6, 0.999, 2000)
        gamma, orders = 1 + math.exp(log), 1 + gaps
        rate = orders * math.log1p(-1 / gamma) - np.log1p(-orders / gamma)
        renyi = n_sketches * n_sums * rate / (2 * gaps)
        converted = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / gaps
        released = gaussian_epsilon(math.sqrt(n_sums) / gamma, delta)
        return np.min(renyi + converted) + released - epsilon

    return 1 + math.exp(brentq(excess, -10, 30))


class GaussMix(RegressionRival):
    """One sketch of rows and targets, and its least squares."""

    def weights(self, Z, y):
        A = np.column_stack([Z / self.row_bound, y / TARGET_BOUND]) / math.sqrt(2)
        n_sums = int(2.5 * max(Z.shape[1], math.log(20 / self.delta)))
        gamma = least_gamma(n_sums, 1, self.epsilon, self.delta / 3)
        sums = self.sketched(A, n_sums, self.deviation(A, n_sums, gamma, self.delta / 3))
        w = np.linalg.lstsq(sums[:, :-1], sums[:, -1], rcond=None)[0]
        return w * TARGET_BOUND / self.row_bound

    def deviation(self, A, n_sums, gamma, delta):
        """Standard deviation of the noise of sums, from the private bound of the eigenvalue."""
        shift = self.rng.standard_normal() - math.sqrt(2 * math.log(1 / delta))
        bound = np.linalg.eigvalsh(A.T @ A)[0] + gamma / math.sqrt(n_sums) * shift
        return math.sqrt(max(gamma - max(bound, 0.0), 0.0))

    def sketched(self, A, n_sums, deviation):
        mixed = self.rng.standard_normal((n_sums, len(A))) @ A
        return mixed + deviation * self.rng.standard_normal(mixed.shape)


class HessianMixing(GaussMix):
    """Newton steps: a noisy gradient of clipped residuals, and the Hessian of a fresh sketch."""

    def weights(self, Z, y):
        A, targets, delta = Z / self.row_bound, y / TARGET_BOUND, self.delta / 4
        n_sums = int(6 * max(Z.shape[1], math.log(40 * ROUNDS / self.delta)))
        gamma = least_gamma(n_sums, ROUNDS, self.epsilon / 2, delta)
        deviation = self.deviation(A, n_sums, gamma, delta)
        sigma = math.sqrt(ROUNDS) / gaussian_mu(self.epsilon / 2, delta)
        w = np.zeros(A.shape[1])
        for _ in range(ROUNDS):
            sums = self.sketched(A, n_sums, deviation)
            gradient = A.T @ np.clip(targets - A @ w, -1.0, 1.0)
            gradient += sigma * self.rng.standard_normal(len(w))
            w = w + np.linalg.solve(sums.T @ sums / n_sums, gradient)
        return w * TARGET_BOUND / self.row_bound


METHODS = [
    Method("GaussMix", "rival", GaussMix, has_numbers),
    Method("IHM", "rival", HessianMixing, has_numbers),
]
