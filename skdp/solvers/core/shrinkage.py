"""Estimate how much of noisy sums is signal: spectra, empirical Bayes of steps."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._numbers import Array

# The priors among which the marginal likelihood chooses: variances tau**2 (a_j / a_max)**-power,
# for each of these powers and 40 geometrically spaced values of tau.
PRIOR_POWERS = (0.0, 0.5, 1.0)
LARGEST_CONDITION = 1e8  # eigenvalues of noisy matrices are at least their largest, over this


@dataclass(frozen=True)
class Spectrum:
    """Estimated eigenvalues and eigenvectors of a Gram matrix that was released with noise.

    Attributes
    ----------
    values : array of shape (p,)
        Positive. Eigenvalues above the noise are kept. The rest of the trace, which is known far
        better than any single small eigenvalue, is shared equally among the others.
    vectors : array of shape (p, p)
        Eigenvectors, in columns.
    noise_norm : float
        Largest eigenvalue of the noise, about ``std * sqrt(2 p)``.
    """

    values: Array
    vectors: Array
    noise_norm: float


def variation(gram: Array, std: float, has_constant: bool) -> tuple[Array, Array]:
    """Return the slope of each column on the constant, and how far the rest exceeds noise.

    The rest is its square sum, in standard deviations of the noise, at least 0, infinite of the
    constant.

    Parameters
    ----------
    gram : array of shape (p, p), symmetric
    std : float
        Standard deviation of the noise on the diagonal.
    has_constant : bool
        Whether the last column is constant.
    """
    # A matrix made up for a rehearsal may have a negative entry for the constant.
    least = max(std, 1e-9 * float(np.abs(gram).max()), 1e-300)
    slope = has_constant * gram[-1] / max(float(gram[-1, -1]), least)
    noise = max(std, 1e-300) * (1 + np.square(slope))
    spread = np.maximum(np.diag(gram) - slope * gram[-1], 0.0) / noise
    if has_constant:
        spread[-1] = math.inf
    return slope, spread


def spectrum(gram: Array, std: float, known: Array | None = None) -> Spectrum:
    """Decompose a Gram matrix with noise, std on the diagonal, std/sqrt(2) off it.

    Parameters
    ----------
    gram : array of shape (p, p), symmetric
    std : float
        0 for no noise.
    known : array of shape (p, p), positive semidefinite, optional
        A matrix without noise to add, such as the Hessian of a penalty.
    """
    size = len(gram)
    values, vectors = np.linalg.eigh(gram if known is None else gram + known)
    noise_norm = std * math.sqrt(2.0 * size)
    # Squares of whitened rows stay finite, also if all rows are 0.
    largest = max(float(values[-1]), noise_norm, 1e-200)
    significant = values > max(noise_norm, 1e-13 * size * largest)
    rest = float(values[~significant].sum()) / max(int((~significant).sum()), 1)
    least = max(0.05 * noise_norm, 1e-13 * size * largest)
    most = max(noise_norm, least)
    values = np.where(significant, values, min(max(rest, least), most))
    return Spectrum(values, vectors, noise_norm)


def inverse_of(matrix: Array) -> Array:
    """Return the inverse of a noisy symmetric matrix, eigenvalues next to 0 made larger."""
    values, vectors = np.linalg.eigh(matrix)
    least = max(float(np.abs(values).max()), 1e-300) / LARGEST_CONDITION
    return np.asarray((vectors / np.where(np.abs(values) > least, values, least)) @ vectors.T)


def bayes_step(eigen: Spectrum, gradient: Array, std: float, gram_std: float) -> Array:
    """Return the posterior mean of ``A^-1 E[gradient]`` under the most likely prior.

    In the eigenbasis an entry of the gradient has the variance ``a_j**2 pi_j + nu**2``, with prior
    variances ``pi_j = tau**2 (a_j / a_max)**-p`` and ``nu**2 = std**2 + gram_std**2 / 2 sum(pi)``,
    where the second term is due to the noise of the Gram matrix. (tau, p) is chosen by marginal
    likelihood, for each column by itself. All of this is post-processing.

    Parameters
    ----------
    eigen : Spectrum
        Spectrum of A.
    gradient : array of shape (p, K)
    std : float
        Standard deviation of the noise on the gradient. 0 gives the plain Newton step.
    gram_std : float
        Standard deviation of the noise on the diagonal of A.

    Returns
    -------
    array of shape (p, K)
    """
    rotated = eigen.vectors.T @ gradient
    values = eigen.values
    if std == 0:
        return np.asarray(eigen.vectors @ (rotated / values[:, None]))
    steps = np.empty_like(rotated)
    for column in range(rotated.shape[1]):
        steps[:, column] = _shrunk(values, rotated[:, column], std, gram_std)
    return np.asarray(eigen.vectors @ steps)


def _shrunk(values: Array, rotated: Array, std: float, gram_std: float) -> Array:
    relative = values / values.max()
    # Sizes of the prior from nothing but noise to nothing but signal in the strongest direction.
    largest = max(float(np.abs(rotated).max()), std) / float(values.min())
    sizes = np.geomspace(1e-4 * std / float(values.max()), 4 * largest, 40)
    best, chosen = -math.inf, np.zeros_like(rotated)
    for power in PRIOR_POWERS:
        shape = relative**-power
        prior = np.square(sizes)[:, None] * shape
        noise = std**2 + 0.5 * gram_std**2 * prior.sum(axis=1, keepdims=True)
        variance = np.square(values) * prior + noise
        likelihood = -0.5 * (np.log(variance) + np.square(rotated) / variance).sum(axis=1)
        index = int(np.argmax(likelihood))
        if likelihood[index] > best:
            best = float(likelihood[index])
            chosen = values * prior[index] / variance[index] * rotated
    return chosen
