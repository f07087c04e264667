"""Private test, halfway through a solver's steps, for enlarging clip ranges.

Long tails are clipped, since in one column the target depends on the tail, and in another the tail
is mere outliers; their histograms look alike. After half of the steps they can be distinguished: if
predictions for clipped rows improve by the part that was clipped, ranges are enlarged, and the
remaining steps use rows that are clipped less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp._numbers import Array
from skdp.oracle import Columns, Oracle, TailSum

# All figures are choices of ours; docs/defaults.rst says on which data, and what others would do.
SHARE = 0.04  # of the solver's mu squared
EXPANSION_FACTOR = 6.0  # of estimated ranges, and of the bound on rows
# Least slope of the target on the clipped part, relative to that on the rest. It is far from 1 even
# where the target is linear: coefficients are too large while rows are clipped.
MIN_SLOPE = 0.05
Z_DETECT = 2.0  # noise standard deviations
# Bound on a record's derivatives, in squared scales of the target: few records of a long tail must
# not outweigh the others, and noise is proportional to it.
RECORD_CLIP = 0.5


@dataclass(frozen=True)
class Widening:
    """Enlarge ranges where that significantly improves predictions.

    One release, :class:`skdp.oracle.TailSum`, at the mean of the points in the second quarter of
    the run. The choice follows from its answer and public numbers alone. Later releases hold for
    any ranges: each bounds what a record adds by itself.

    Parameters
    ----------
    targets : bool
        Whether the ranges of targets are enlarged, too: not if they were declared.
    """

    targets: bool = True

    def __call__(self, oracle: Oracle, point: Array, whole: float) -> None:
        """Ask, and change the ranges of the records if the answer says so."""
        before, bound = oracle.scaling, oracle.public.row_bound
        assert bound is not None  # rows are bounded wherever there is noise
        low = high = np.zeros(oracle.public.n_features)
        if before is not None and before.columns is not None:
            columns = before.columns
            low = (columns.low - columns.centre) / columns.size
            high = (columns.high - columns.centre) / columns.size
            targets = before.targets
            if self.targets and targets is not None:
                targets = _wider(targets)
            wide = replace(before, columns=_wider(columns), targets=targets)
            oracle.change_ranges(wide, EXPANSION_FACTOR * bound)
        asked = TailSum(point, low, high, bound, RECORD_CLIP)
        (first, second), noise = oracle.with_share(asked, SHARE * whole)
        gain = -first - MIN_SLOPE * second
        if before is not None and gain <= Z_DETECT * noise * math.hypot(1.0, MIN_SLOPE):
            oracle.change_ranges(before, bound)

    def assumptions(self) -> tuple[str, ...]:
        """Return what the privacy statement says of it."""
        return (
            "A private test halfway through the fit, the release 'tails', decided whether the "
            f"estimated ranges and the bound on rows are {EXPANSION_FACTOR:g} times as wide from "
            "then on: scaling_ and row_bound_ have what predict uses.",
        )


def _wider(columns: Columns) -> Columns:
    largest = np.finfo(float).max
    with np.errstate(over="ignore"):
        low = columns.centre - EXPANSION_FACTOR * (columns.centre - columns.low)
        high = columns.centre + EXPANSION_FACTOR * (columns.high - columns.centre)
    low, high = np.clip(low, -largest, largest), np.clip(high, -largest, largest)
    return replace(columns, low=low, high=high)
