"""What the histograms so far say of each column, in the range that it has now."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdp.scaling.estimates import Ranges

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Seen:
    """Mean of the counts that each column has got in its present range.

    Attributes
    ----------
    ranges : Ranges
    counts : array of shape (n_columns, n_bins)
    std : array of shape (n_columns,)
        Noise on the counts.
    times : array of shape (n_columns,)
        Number of histograms.
    """

    ranges: Ranges
    counts: Array
    std: Array
    times: Array

    @classmethod
    def none(cls, ranges: Ranges) -> Seen:
        """Nothing yet."""
        nothing = np.zeros(len(ranges.low))
        return cls(ranges, nothing[:, None], nothing, nothing)

    def of(self, part: slice) -> tuple[Array, Array]:
        """Return the counts of some columns, and the noise on them."""
        return self.counts[part], self.std[part]

    def with_answer(self, part: slice, counts: Array, std: Array) -> Seen:
        """Take in one more histogram of some columns, as noisy as those before."""
        times = self.times.copy()
        times[part] += 1
        mean = np.broadcast_to(self.counts, (len(times), counts.shape[1])).copy()
        mean[part] += (counts - mean[part]) / times[part, None]
        noise = self.std.copy()
        noise[part] = std / np.sqrt(times[part])
        return Seen(self.ranges, mean, noise, times)

    def within(self, ranges: Ranges) -> Seen:
        """Forget the counts of columns whose range is another now."""
        same = (ranges.low == self.ranges.low) & (ranges.high == self.ranges.high)
        return Seen(ranges, self.counts * same[:, None], self.std, self.times * same)
