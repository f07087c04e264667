"""From noisy histograms to range, centre and size of each column. Post-processing only.

The counts of a column are compared with shapes that columns may have. What the best of them leaves
is kept where it stands out from the noise. So where there is little noise the counts speak for
themselves, and where there is much a column is what columns usually are, in this data first of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from skdp.oracle import Columns
from skdp.oracle.histograms import SIDE, STEPS
from skdp.scaling.templates import Templates, bin_templates, magnitude_templates

Array = NDArray[np.float64]

MISFIT = 0.01  # of shapes, as a share of the rows: no column is exactly one of them
STANDS_OUT = 1.2  # above the largest of so many noises, in units of the noise on a count
TRIM = 0.004  # share of the records left out of a range at each end
ROUNDS, MOST_COLUMNS = 20, 256  # of fitting what columns have in common
THIN = 0.05  # least size in units of half the range
WIDE = 2.5  # least range in units of the size


@dataclass(frozen=True)
class Ranges:
    """Ends of the range of every column."""

    low: Array
    high: Array


def _log_likelihood(counts: Array, std: Array, n_rows: int, templates: Templates) -> Array:
    """Of each column (row) under each shape (column), up to a constant."""
    variance = std[:, None] ** 2 + (MISFIT * n_rows) ** 2
    shapes = templates.shapes
    fit = n_rows * (counts @ shapes.T) - n_rows**2 * np.einsum("ij,ij->i", shapes, shapes) / 2
    return np.asarray(fit / variance)


def _common_prior(log_likelihood: Array, log_prior: Array) -> Array:
    """Log prior with what the columns have in common: an empirical Bayes estimate of mixtures."""
    step = -(-len(log_likelihood) // MOST_COLUMNS)
    some = log_likelihood[::step]
    base = np.exp(log_prior - logsumexp(log_prior))
    prior = base
    for _ in range(ROUNDS):
        posterior = some + np.log(prior)
        posterior = np.exp(posterior - logsumexp(posterior, axis=1, keepdims=True))
        prior = (base + posterior.sum(axis=0)) / (1 + len(some))
    return np.asarray(np.log(prior))


def denoised(
    counts: Array, std: Array, n_rows: int, templates: Templates, in_common: bool = False
) -> Array:
    """Probabilities of the bins of each column: the likeliest shape, and what stands out from it.

    Parameters
    ----------
    counts : array of shape (n_columns, n_bins)
    std : array of shape (n_columns,)
        Noise on the counts of each column.
    n_rows : int
    templates : Templates
    in_common : bool, default=False
        Whether columns are likely to be like each other.
    """
    log_likelihood = _log_likelihood(counts, std, n_rows, templates)
    log_prior = templates.log_prior
    if in_common and len(counts) > 1:
        log_prior = _common_prior(log_likelihood, log_prior)
    shapes = templates.shapes[np.argmax(log_likelihood + log_prior, axis=1)]
    rest = counts / n_rows - shapes
    # As many counts as there are, noise alone hardly exceeds this anywhere.
    largest = np.sqrt(2 * np.log(counts.size)) + STANDS_OUT
    rest[np.abs(rest) <= largest * std[:, None] / n_rows] = 0.0
    found = np.maximum(shapes + rest, 0.0)
    return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300))


def _inner(probabilities: Array, trim: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last bin between the tails."""
    first = np.argmax(np.cumsum(probabilities, axis=1) > trim, axis=1)
    back = np.argmax(np.cumsum(probabilities[:, ::-1], axis=1) > trim, axis=1)
    return first, probabilities.shape[1] - 1 - back


def coarse_ranges(counts: Array, std: Array, n_rows: int, exact: bool, in_common: bool) -> Ranges:
    """Ranges from counts of magnitudes."""
    found = denoised(counts, std, n_rows, magnitude_templates(), in_common)
    first, last = _inner(found, 0.0 if exact else TRIM)
    ends = 4.0 ** (np.arange(SIDE + 1) - STEPS)
    # Zero has no width; negative bins run from large to small.
    low = np.concatenate([-ends[:0:-1], [0.0], ends[:-1]])
    high = np.concatenate([-ends[-2::-1], [0.0], ends[1:]])
    lowest, highest = low[first], high[last]
    flat = highest <= lowest
    return Ranges(np.where(flat, lowest - 1, lowest), np.where(flat, highest + 1, highest))


def zoomed(counts: Array, std: Array, n_rows: int, exact: bool, ranges: Ranges) -> Ranges:
    """Smaller ranges, where the bins that hold records are much fewer than there are."""
    n_bins = counts.shape[1]
    first, last = _inner(
        denoised(counts, std, n_rows, bin_templates(n_bins)), 0.0 if exact else TRIM
    )
    width = (ranges.high - ranges.low) / n_bins
    start, stop = np.maximum(first - 1, 0), np.minimum(last + 2, n_bins)
    smaller = stop - start <= 0.6 * n_bins
    low = np.where(smaller, ranges.low + start * width, ranges.low)
    high = np.where(smaller, ranges.low + stop * width, ranges.high)
    return Ranges(low, high)


def columns_from(
    counts: Array, std: Array, n_rows: int, exact: bool, ranges: Ranges, centred: NDArray[np.bool_]
) -> Columns:
    """Range, centre and size of every column, from the counts of its last histogram."""
    n_bins = counts.shape[1]
    found = denoised(counts, std, n_rows, bin_templates(n_bins))
    width = ((ranges.high - ranges.low) / n_bins)[:, None]
    values = ranges.low[:, None] + (np.arange(n_bins) + 0.5) * width
    mean = np.sum(found * values, axis=1)
    square = np.sum(found * (values - mean[:, None]) ** 2, axis=1)
    first, last = _inner(found, 0.0 if exact else TRIM)
    half = (ranges.high - ranges.low) / 2
    around = np.where(centred, 0.0, mean)
    size = np.sqrt(np.maximum(square + around**2, (THIN * half) ** 2))
    low = ranges.low + first * width[:, 0]
    high = ranges.low + (last + 1) * width[:, 0]
    low, high = np.minimum(low, mean - WIDE * size), np.maximum(high, mean + WIDE * size)
    # Columns that are not centred keep 0 in their range.
    low, high = (
        np.where(centred, low, np.minimum(low, 0)),
        np.where(centred, high, np.maximum(high, 0)),
    )
    return Columns(low, high, np.where(centred, mean, 0.0), size)
