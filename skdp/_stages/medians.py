"""Estimate the median of every column among the values that are not missing."""

from dataclasses import dataclass, replace

import numpy as np

from skdp._numbers import Array, Indices
from skdp._oracle import BinCounts, Columns, MagnitudeCounts, Oracle, Scaling, Solution, Stage
from skdp._oracle.releases.histograms import BEYOND, STEPS
from skdp._stages.scaling.distributions import magnitude_bounds
from skdp._stages.scaling.estimates import in_own_units

# What stands for a missing value has a bin of its own among magnitudes, and what is known does not.
MISSING = 4.0**BEYOND
LARGEST = 4.0 ** (BEYOND - 1)
ROUNDS, N_BINS = 3, 64
# Quantiles between which the next histogram looks: wide enough for noise to leave the median in.
INNER = 0.1
FINEST = 2.0**-30  # least range, relative to its distance from 0
FEWEST = 3.0  # values that a median is taken of, in units of the noise on their number


def without_missing(X: Array) -> Array:
    """Return columns ready for this stage: missing values stand out, and no other value is there.

    It maps single records by public numbers, so it changes no sensitivity.
    """
    return np.where(np.isnan(X), MISSING, np.clip(X, -LARGEST, LARGEST))


@dataclass(frozen=True, eq=False)
class MedianStage(Stage):
    """Find medians by three noisy histograms of all columns. See :func:`without_missing`.

    Sensitivity: it requests `MagnitudeCounts` and `BinCounts`, whose bounds hold for any value. A
    missing value is counted as any other, in a bin of its own. Results of the answers are
    post-processing (Dwork, Roth 2014, Prop. 2.1). The medians are the centres of the scaling that
    the solution gets.

    Parameters
    ----------
    otherwise : array of shape (n_columns,) or float, default=0.0
        Medians of columns of which hardly any value is known.
    """

    otherwise: Array | float = 0.0
    share = 1.0  # the whole budget

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        n_columns, n_rows = oracle.public.n_features, oracle.public.n_rows
        # 1. Which magnitudes hold the values, and how many of them there are.
        counts, std = oracle.with_share(MagnitudeCounts(True, False), 1 / ROUNDS)
        n_known = n_rows - counts[:, -1]
        counts, _, units = in_own_units(counts, n_known, std)
        low, high = (np.tile(one, (n_columns, 1)) for one in magnitude_bounds())
        # 2. Where among them the median lies. Then again, in finer bins.
        for _ in range(1, ROUNDS):
            start, stop = _inner_range(counts, n_known, low, high)
            width = (stop - start) / N_BINS
            # The last bin is for what is beyond, or missing.
            bins = BinCounts(True, False, units * start, units * width, N_BINS + 1)
            counts = oracle.with_share(bins, 1 / ROUNDS)[0][:, :-1]
            edges = start[:, None] + width[:, None] * np.arange(N_BINS + 1)
            low, high = edges[:, :-1], edges[:, 1:]
        place = _place(counts, n_known / 2)[:, None]
        medians = np.take_along_axis((low + high) / 2, place, axis=1)[:, 0]
        medians = np.where(n_known > FEWEST * std, units * medians, self.otherwise)
        columns = Columns(medians, medians, medians, np.ones(n_columns)).unclipped
        return replace(solution, scaling=Scaling(columns))

    def assumptions(self) -> tuple[str, ...]:
        return (
            "Medians of the columns of numbers were estimated privately: the histograms among the "
            "releases.",
        )


def _place(counts: Array, wanted: Array) -> Indices:
    """First bin of each column at which this many values have been passed."""
    passed = np.cumsum(counts, axis=1) >= wanted[:, None]
    passed[:, -1] = True
    return np.asarray(passed.argmax(axis=1), dtype=np.int64)


def _inner_range(counts: Array, n_known: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the edges of the bins between which most values of each column lie."""
    first = _place(counts, INNER * n_known)
    last = np.maximum(first, _place(counts, (1 - INNER) * n_known))
    start, stop = (
        np.take_along_axis(edges, place[:, None], axis=1)[:, 0]
        for edges, place in ((low, first), (high, last))
    )
    return start, np.maximum(stop, start + FINEST * np.maximum(4.0**-STEPS, np.abs(start)))
