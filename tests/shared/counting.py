"""Counts of near magnitudes without noise."""

from skdp._oracle.releases.histograms import N_MAGNITUDES, N_NEAR, MagnitudeCounts, bin_sum


def near_counts(records):
    """Counts of the values of columns in the bins of near magnitudes."""
    table = records.n_features, N_MAGNITUDES
    return bin_sum(records, MagnitudeCounts(True, False), table)[:, :N_NEAR]
