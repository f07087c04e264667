"""A stage that finds the median of every column among the values that are not missing."""

from dataclasses import dataclass, replace

import numpy as np

from skdp._numbers import Array, Indices
from skdp.oracle import BinCounts, Columns, MagnitudeCounts, Oracle, Scaling, Solution, Stage
from skdp.oracle.kernels.histograms import SIDE, STEPS

# What stands for a missing value lies in the outermost magnitude, and what is known does not.
MISSING = 4.0**STEPS
LARGEST = 4.0 ** (STEPS - 2)
N_BINS = 64
# Quantiles between which the second histogram looks: wide enough for noise to leave the median in.
INNER = 0.1
FEWEST = 3.0  # values that a median is taken of, in units of the noise on their number


def without_missing(X: Array) -> Array:
    """Return columns ready for this stage: missing values stand out, and no other value is there.

    It maps each record alone by public numbers, so it changes no sensitivity.
    """
    return np.where(np.isnan(X), MISSING, np.clip(X, -LARGEST, LARGEST))


@dataclass(frozen=True, eq=False)
class MedianStage(Stage):
    """Finds medians by two noisy histograms of all columns; see :func:`without_missing`.

    Sensitivity: it asks `MagnitudeCounts` and `BinCounts`, whose bounds hold for any value; a
    missing value is counted as any other, in a bin of its own. What follows from the two answers
    is post-processing (Dwork, Roth 2014, Prop. 2.1). The medians are the centres of the scaling
    that the solution gets.

    Parameters
    ----------
    share : float, default=1.0
        Of the budget, in mu squared.
    otherwise : array of shape (n_columns,) or None, default=None
        Medians of columns of which hardly any value is known; None for 0.
    """

    share: float | None = 1.0
    otherwise: Array | None = None

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        assert self.share is not None
        n_columns, n_rows = oracle.public.n_features, oracle.public.n_rows
        weights = (0,) * n_columns
        otherwise = 0.0 if self.otherwise is None else self.otherwise
        # 1. Which magnitudes hold the values, and how many of them there are.
        asked = MagnitudeCounts(True, False, weights)
        counts, std = oracle.with_share(asked, self.share / 2)
        n_known = n_rows - counts[:, -1]
        low, high = _ends_of_magnitudes()
        first = _place(counts[:, :-1], INNER * n_known)
        last = np.maximum(first, _place(counts[:, :-1], (1 - INNER) * n_known))
        start = low[first]
        width = (high[last] - start) / N_BINS
        # 2. Where among them the median lies. The last bin is for what is beyond, or missing.
        bins = BinCounts(True, False, start, width, N_BINS + 1, weights)
        counts, _ = oracle.with_share(bins, self.share / 2)
        place = _place(counts[:, :-1], n_known / 2)
        medians = start + (place + 0.5) * width
        medians = np.where(n_known > FEWEST * std, medians, otherwise)
        ones = np.ones(n_columns)
        found = Columns(-LARGEST * ones, LARGEST * ones, medians, ones)
        return replace(solution, scaling=Scaling(found))

    def assumptions(self) -> tuple[str, ...]:
        return (
            "Medians of the columns of numbers were found privately: the histograms among the "
            "releases.",
        )


def _place(counts: Array, wanted: Array) -> Indices:
    """First bin of each column at which this many values have been passed."""
    passed = np.cumsum(counts, axis=1) >= wanted[:, None]
    passed[:, -1] = True
    return np.asarray(passed.argmax(axis=1), dtype=np.int64)


def _ends_of_magnitudes() -> tuple[Array, Array]:
    """Return the ends of the bins of `MagnitudeCounts`, but for the outermost."""
    ends = 4.0 ** (np.arange(SIDE + 1) - STEPS)
    tiny = ends[:1]
    low = np.concatenate([-ends[:0:-1], -tiny, ends[:-1]])
    high = np.concatenate([-ends[-2::-1], tiny, ends[1:]])
    return low[:-1], high[:-1]
