"""The least threshold that holds most of a block, found by noisy counts alone (DP-STAT)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from skdp._numbers import Array

Count = Callable[[float], float]

SEARCHES = ("binary", "doubling")
FINE = 4  # thresholds to a factor of 2, for the binary search


def thresholds(search: str, bound: float, resolution: float) -> Array:
    """Thresholds from about ``resolution * bound`` up to ``bound``, rising.

    "doubling": ``delta 2**i`` for i from 0 to ``ceil(log2(1 / resolution))``, as in Algorithm 3 of
    Varshney, Thakurta, Jain (2022). "binary" has four of them to a factor of 2.
    """
    fine = FINE if search == "binary" else 1
    octaves = math.ceil(math.log2(1 / resolution))
    return bound * 2.0 ** (np.arange(-fine * octaves, 1) / fine)


def number_of_counts(search: str, resolution: float) -> int:
    """How many counts a search asks, whatever their answers are."""
    n_thresholds = len(thresholds(search, 1.0, resolution))
    if search == "doubling":
        return n_thresholds
    return math.ceil(math.log2(n_thresholds))


def least_threshold(search: str, candidates: Array, enough: float, count: Count) -> float:
    """Return about the least candidate whose noisy count is ``enough``; the largest if none is.

    Parameters
    ----------
    search : {"binary", "doubling"}
    candidates : array
        Rising.
    enough : float
    count : callable
        From a threshold to a noisy count of what does not exceed it.
    """
    if search == "doubling":
        # All are asked: to stop early would make the number of releases depend on their answers.
        counts = [count(float(candidate)) for candidate in candidates]
        reached = [index for index, found in enumerate(counts) if found >= enough]
        return float(candidates[reached[0] if reached else -1])
    # The least index with enough lies in [low, high]; the last one is taken without asking.
    low, high = 0, len(candidates) - 1
    for _ in range(math.ceil(math.log2(len(candidates)))):
        middle = min((low + high) // 2, len(candidates) - 1)
        if count(float(candidates[middle])) >= enough:
            high = max(low, middle)
        else:
            low = min(middle + 1, high)
    return float(candidates[high])
