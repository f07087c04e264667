"""Columns of small values, both signs: noise must not make them pass for standardised ones."""

from __future__ import annotations

import numpy as np
import pytest

from skdp._oracle import Columns
from skdp._oracle.releases.histograms import N_NEAR, MagnitudeCounts
from skdp._stages.scaling.distributions import Histogram
from skdp._stages.scaling.refinements import keep_standardised

N_ROWS = 100_000


def share_taken_for_standard(size, noise, rng, n_columns=10, draws=400):
    """How often noise of this share of the rows, on all columns together, has them recognised."""
    values = size * rng.standard_normal(N_ROWS)
    counts = np.tile(
        np.bincount(MagnitudeCounts(False, True).bins(values, 0), minlength=N_NEAR), (n_columns, 1)
    )
    std = np.full(n_columns, noise * np.sqrt(n_columns) * N_ROWS)
    unit, taken = np.ones(n_columns), 0
    columns = Columns(-9 * unit, 9 * unit, 0 * unit, 2 * unit)
    for _ in range(draws):
        noisy = counts + std[:, None] * rng.standard_normal(counts.shape)
        kept = keep_standardised(columns, Histogram(noisy / N_ROWS, std / N_ROWS), True)
        taken += (kept.scale == 1).any()
    return taken / draws


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.055])
@pytest.mark.parametrize("size", [0.003, 0.048])
def test_small_values_are_hardly_ever_taken_for_standardised_ones(size, noise, rng):
    assert share_taken_for_standard(size, noise, rng) <= 0.01


@pytest.mark.parametrize("noise", [0.001, 0.03])
def test_standardised_ones_are(noise, rng):
    assert share_taken_for_standard(1.0, noise, rng) >= 0.95
