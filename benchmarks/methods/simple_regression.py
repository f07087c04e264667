"""DPTheilSen and NoisyStats: least squares and medians of slopes in one column, without delta.

D. Alabi, A. McMillan, J. Sarathy, A. Smith, S. Vadhan: Differentially private simple linear
regression. PoPETs 2022, algorithms 1 and 2. Column and target lie in [0, 1], where the line is
released at 1/4 and 3/4. The paper replaces a record. Zeroing moves it to the centre, (1/2, 1/2).

* NoisyStats: a replaced record moves the sums of squares and of products by at most 1 - 1/n, a
  zeroed one by 3/4 of that. It moves both means by 1/n, and by half as much.
* DPTheilSen: a record has one pair in each of k matchings, and its estimate moves at most k ranks.
  A zeroed record takes its pairs away, which changes (pairs above - pairs below) / 2 by k/2.
"""

import numpy as np

from benchmarks.registry import Method, Split
from benchmarks.rivals import Rival

PLACES = np.array([0.25, 0.75])
MATCHINGS, LOWEST, HIGHEST = 10, -0.5, 1.5  # of the paper


def has_one_column(split: Split) -> bool:
    """Whether it is a regression on one column, in its own units."""
    is_plain = not split.is_classification and split.condition == "raw"
    return is_plain and split.X_train.shape[1] == 1


class NoisyStats(Rival):
    """Noisy sums of squares and products, and a noisy mean."""

    zeroed = True  # whether neighbours zero a record, or replace it

    def fit(self, X, y):
        column, target = np.clip(X[:, 0], 0.0, 1.0), np.clip(y, 0.0, 1.0)
        self.ends = np.clip(self.line(column, target, len(y)), 0.0, 1.0)
        return self

    def predict(self, X):
        low, high = self.ends
        return low + (high - low) * (X[:, 0] - PLACES[0]) / (PLACES[1] - PLACES[0])

    def line(self, x, y, n):
        """Return the height of the line at both places."""
        products, means = (0.75, 0.5) if self.zeroed else (1.0, 1.0)
        noise = self.rng.laplace(size=3) * 3 / self.epsilon
        noise[:2] *= products * (1 - 1 / n)
        variance = np.sum((x - x.mean()) ** 2) + noise[1]
        if variance <= 0:  # the paper returns nothing
            return np.full(2, 0.5)
        slope = (np.sum((x - x.mean()) * (y - y.mean())) + noise[0]) / variance
        shift = noise[2] * means * (1 + abs(slope)) / n
        return y.mean() + slope * (PLACES - x.mean()) + shift


class TheilSen(NoisyStats):
    """Medians of the heights of lines through pairs of records, by the exponential mechanism."""

    def line(self, x, y, n):
        pairs = np.concatenate(
            [self.rng.permutation(n)[: n // 2 * 2].reshape(2, -1) for _ in range(MATCHINGS)], axis=1
        )
        pairs = pairs[:, x[pairs[0]] != x[pairs[1]]]
        first, second = pairs
        slopes = (y[second] - y[first]) / (x[second] - x[first])
        weight = self.epsilon / ((2 if self.zeroed else 4) * MATCHINGS)
        return np.array([
            self.median(y[first] + slopes * (place - x[first]), weight) for place in PLACES
        ])  # fmt: skip

    def median(self, heights, weight):
        """Point drawn with density exp(-weight |points above - points below| / 2)."""
        inner = np.sort(np.clip(heights, LOWEST, HIGHEST))
        edges = np.concatenate([[LOWEST], inner, [HIGHEST]])
        ranks = np.arange(len(inner) + 1) - len(inner) / 2
        with np.errstate(divide="ignore"):
            chances = np.log(np.diff(edges)) - weight * np.abs(ranks)
        chosen = np.argmax(chances + self.rng.gumbel(size=len(chances)))
        return self.rng.uniform(edges[chosen], edges[chosen + 1])


METHODS = [
    Method("DPTheilSen", "rival", TheilSen, has_one_column),
    Method("NoisyStats", "rival", NoisyStats, has_one_column),
]
