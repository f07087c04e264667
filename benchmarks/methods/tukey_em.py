"""TukeyEM: least squares on disjoint parts, and a point deep among the parts' models.

K. Amin, M. Joseph, M. Ribero, S. Vassilvitskii: Easy differentially private linear regression.
ICLR 2023, algorithm 4. It needs no bounds, so raw rows stay as they are; standardised ones are
scaled down as for all rivals, which keeps predictions for outlying rows in check. Where its test
of stability fails it returns the zero model, as the paper does. (The published code draws the noise
of that test with scale epsilon / 2 where 2 / epsilon is meant.)
"""

import math

import numpy as np

from benchmarks.registry import Method, has_numbers
from benchmarks.rivals import Rival


def number_of_parts(n, d, epsilon):
    """As many as the test of stability needs, about, or as many as there are rows for.

    The paper chooses by trial on other data; the formula follows what passed on the data here.
    """
    return max(min(n // d, math.ceil((500 + 40 * d) / epsilon**0.7)), 4)


def log_volumes(ordered):
    """Log volume of the points of depth at least i + 1, for i = 0, 1, ..."""
    half = ordered.shape[1] // 2
    return np.log(ordered[:, ::-1][:, :half] - ordered[:, :half]).sum(axis=0)


def distance_to_unsafety(volumes, epsilon, delta, t):
    """Lower bound on how many parts must change before sampling at depth t is unsafe."""
    threshold = np.log(delta / 8) - epsilon
    best = -1
    for k in range(t - 1):
        inner = volumes[t + k + 1 :]
        if not len(inner):
            break
        ratios = volumes[t - k - 2] - inner - epsilon / 2 * np.arange(1, len(inner) + 1)
        if ratios.min() > threshold:
            break
        best = k
    return best


def gumbel_choice(log_weights, rng):
    """Index drawn with probability proportional to exp(log_weights)."""
    return int(np.argmax(log_weights + rng.gumbel(size=len(log_weights))))


def log_difference(larger, smaller):
    """Log of exp(larger) - exp(smaller)."""
    with np.errstate(divide="ignore"):
        return larger + np.log(-np.expm1(np.minimum(smaller - larger, 0.0)))


def draw_at_depth(ordered, depth, rng):
    """Uniform point whose least depth over the coordinates is exactly ``depth``, from 1."""
    size = len(ordered)
    outer = np.log(ordered[:, -depth] - ordered[:, depth - 1])
    inner = np.log(ordered[:, -depth - 1] - ordered[:, depth])
    # 1. The first coordinate that is no deeper: those before are deeper, those after are free.
    before = np.concatenate([[0.0], np.cumsum(inner)[:-1]])
    after = np.concatenate([np.cumsum(outer[::-1])[::-1][1:], [0.0]])
    first = gumbel_choice(before + log_difference(outer, inner) + after, rng)
    # 2. One coordinate after the other.
    at_least = np.where(np.arange(size) < first, depth + 1, depth)
    low = ordered[np.arange(size), at_least - 1]
    high = ordered[np.arange(size), -at_least]
    point = rng.uniform(low, high)
    left = ordered[first, depth] - ordered[first, depth - 1]
    right = ordered[first, -depth] - ordered[first, -depth - 1]
    place = rng.uniform(0, left + right)
    point[first] = (
        ordered[first, depth - 1] + place if place < left else ordered[first, -depth] - place + left
    )
    return point


class TukeyEM(Rival):
    def fit(self, X, y):
        self.coef = self.deep_point(self.models(self.rows(X), y))
        return self

    def predict(self, X):
        return self.rows(X) @ self.coef

    def rows(self, X):
        if self.split.condition == "standardised":
            return super().rows(X)
        return np.column_stack([X, np.ones(len(X))])

    def models(self, Z, y):
        """One row of weights for each part."""
        n, d = Z.shape
        order = self.rng.permutation(n)
        parts = np.array_split(order, number_of_parts(n, d, self.epsilon))
        return np.array([np.linalg.lstsq(Z[part], y[part], rcond=None)[0] for part in parts])

    def deep_point(self, models):
        ordered = np.sort(models.T + 1e-10 * self.rng.random(models.T.shape), axis=1)
        volumes, half = log_volumes(ordered), self.epsilon / 2
        t = max(len(volumes) // 2, 1)
        distance = distance_to_unsafety(volumes, half, self.delta, t)
        if distance + self.rng.laplace(scale=1 / half) <= np.log(1 / (2 * self.delta)) / half:
            return np.zeros(len(ordered))
        exact = np.append(log_difference(volumes[t - 1 : -1], volumes[t:]), volumes[-1])
        chosen = gumbel_choice(exact + half * np.arange(t, t + len(exact)), self.rng)
        return draw_at_depth(ordered, min(t + chosen, len(volumes) - 1), self.rng)


METHODS = [Method("TukeyEM", "rival", TukeyEM, has_numbers)]
