"""Shapes that columns may have, as bin probabilities: what noisy counts are compared with."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from skdp.oracle.histograms import SIDE, STEPS

Array = NDArray[np.float64]

ZEROS = (0.3, 0.6, 0.9, 0.97, 0.995)  # shares of zeros in columns that hold many
OFFSETS = (1.0, 2.0, 4.0, 8.0, 23.0)  # centres in units of the size; beyond, one bin holds all
SPREADS = (1.5, 3.0)  # of lognormal columns, in powers of 2


@dataclass(frozen=True, eq=False)
class Templates:
    """Bin probabilities of shapes, and how likely each is before anything is asked.

    Attributes
    ----------
    shapes : array of shape (n_templates, n_bins)
        Rows add up to 1.
    log_prior : array of shape (n_templates,)
    """

    shapes: Array
    log_prior: Array


def magnitude_edges() -> Array:
    """Upper ends of the magnitudes: of zero, then of each bin; the last one is open."""
    return np.append(4.0 ** (np.arange(SIDE) - STEPS), np.inf)


def _bell(centre: float, size: float) -> Array:
    """Probabilities of the magnitude bins under a normal law."""
    edges = magnitude_edges()
    line = np.concatenate([-edges[::-1], edges])
    return np.asarray(np.maximum(np.diff(ndtr((line - centre) / size)), 0.0))


@functools.cache
def magnitude_templates() -> Templates:
    """Shapes of columns of any size, centred or not, skewed or not, with or without zeros."""
    shapes, prior = [], []

    def add(shape: Array, log_prior: float) -> None:
        shapes.append(shape / shape.sum())
        prior.append(log_prior)

    middle = SIDE
    for power in range(-36, 37):
        size = 2.0**power
        usual = -0.1 * abs(power)
        # 1. Bell-shaped columns. Many users standardise: unit size around 0 is likely.
        add(_bell(0.0, size), usual + 1 + 5 * (power == 0))
        for offset in OFFSETS:
            for sign in (-1.0, 1.0):
                add(_bell(sign * offset * size, size), usual - (sign < 0))
        # 2. Skewed ones, which have one sign.
        for spread in SPREADS:
            with np.errstate(divide="ignore"):
                inner = ndtr((np.log2(magnitude_edges()) - power) / spread)
            shape = np.zeros(2 * SIDE + 1)
            shape[middle] = inner[0]
            shape[middle + 1 :] = np.diff(inner)
            add(shape, usual)
            add(shape[::-1], usual - 1)
            add((shape + shape[::-1]) / 2, usual - 1)
    # 3. Zeros and one other magnitude, as indicators have.
    for place in range(SIDE):
        for zeros in ZEROS:
            for sign in (-1, 1):
                shape = np.zeros(2 * SIDE + 1)
                shape[middle], shape[middle + sign * (1 + place)] = zeros, 1 - zeros
                usual = -0.2 * abs(place - STEPS) - 1.0 * (sign < 0)
                add(shape, usual + 2 * (place == STEPS and sign > 0))
    return Templates(np.array(shapes), np.array(prior))


@functools.cache
def bin_templates(n_bins: int) -> Templates:
    """Shapes of columns inside their range: bells, blocks, and zeros with something else.

    Narrow shapes have many places, so each of them is less likely.
    """
    edges = np.arange(n_bins + 1, dtype=float)
    edges[0], edges[-1] = -np.inf, np.inf  # the outer bins are open
    shapes, prior = [], []
    broad = n_bins / 5
    for size in n_bins / np.array([4.0, 5.0, 7.0, 10.0, 14.0, 20.0, 28.0, 40.0, 64.0]):
        places = np.arange(0.0, n_bins + 1e-9, max(0.5, size / 3))
        for place in places:
            shapes.append(np.diff(ndtr((edges - place) / size)))
            prior.append(-np.log(len(places)) - 0.5 * max(0.0, np.log2(broad / size)))
    for width in (n_bins, 3 * n_bins // 4, n_bins // 2, n_bins // 3, n_bins // 4, n_bins // 6):
        starts = range(0, n_bins - width + 1, max(1, width // 8))
        for start in starts:
            shape = np.zeros(n_bins)
            shape[start : start + width] = 1 / width
            shapes.append(shape)
            prior.append(-np.log(len(starts)) - 0.5 * np.log2(n_bins / width))
    # Skewed: falling away from one end.
    for rate in (1 / 3, 1 / 6, 1 / 12):
        shape = np.exp(-np.arange(n_bins) / (rate * n_bins))
        for one in (shape, shape[::-1]):
            shapes.append(one / one.sum())
            prior.append(-1.0)
    for zeros in ZEROS:
        for place in range(1, n_bins):
            shape = np.zeros(n_bins)
            shape[0], shape[place] = zeros, 1 - zeros
            for one in (shape, shape[::-1]):
                shapes.append(one)
                prior.append(-np.log(n_bins) - 2.0)
    return Templates(np.array(shapes), np.array(prior))
