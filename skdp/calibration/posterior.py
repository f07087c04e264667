"""A slope and a shift of predictions from noisy derivatives. Post-processing only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Of mean losses, and in units of the noise: noise may leave less, or none.
LEAST_CURVATURE, LEAST_SEEN = 0.02, 2.0
LEAST_SLOPE, MOST_SLOPE = 0.05, 2.0


@dataclass(frozen=True, eq=False)
class Belief:
    """Normal law of (slope, shift), by its precision and by precision times mean.

    Attributes
    ----------
    precision : array of shape (k, k)
    information : array of shape (k,)
    """

    precision: Array
    information: Array

    @classmethod
    def prior(cls, mean: Array, std: Array) -> Belief:
        """Return independent normal laws."""
        precision = np.diag(np.asarray(std, dtype=float) ** -2)
        return cls(precision, precision @ mean)

    @property
    def best(self) -> Array:
        """Its mean, the slope within limits; the shift is what goes with that slope."""
        covariance = np.linalg.inv(self.precision)
        mean = covariance @ self.information
        slope = np.clip(mean[0], LEAST_SLOPE, MOST_SLOPE)
        mean += covariance[:, 0] / covariance[0, 0] * (slope - mean[0])
        mean[0] = slope
        return np.asarray(mean, dtype=np.float64)

    def after(self, at: Array, gradient: Array, hessian: Array, std: float) -> Belief:
        """Return the belief after a noisy gradient of the mean loss has been seen.

        Near its minimum the mean loss is about quadratic: ``gradient = H (at - minimum) + noise``.
        So the minimum has the precision ``H**2 / std**2``, around where Newton's step leads. H
        is noisy, too, and its eigenvalues are lifted to a least one, smaller where noise is.

        Parameters
        ----------
        at : array of shape (k,)
            Where the derivatives were taken.
        gradient : array of shape (k,)
        hessian : array of shape (k, k)
            Symmetric.
        std : float
            Noise on each entry of the gradient and of the Hessian, positive.
        """
        values, vectors = np.linalg.eigh(hessian)
        least = min(LEAST_CURVATURE, LEAST_SEEN * std)
        lifted = (vectors * np.maximum(values, least)) @ vectors.T
        told = lifted / std
        return Belief(
            self.precision + told @ told, self.information + told @ (lifted @ at - gradient) / std
        )
