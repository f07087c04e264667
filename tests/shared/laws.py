"""Whether draws follow their law.

Draws of the system source differ in each run, so every statistical test raises a false alarm with
probability ALPHA at most; there are fewer than 100 of them, so that one run in a million may fail
by chance.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

ALPHA = 1e-8
LAW = {"gaussian": stats.norm, "laplace": stats.laplace}


def goodness_of_fit(counts, probabilities) -> float:
    """p-value of the chi-square test; cells expected below 50 are merged into one."""
    counts, expected = np.asarray(counts, float), np.asarray(probabilities, float)
    expected = expected * counts.sum()
    rare = expected < 50
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        if expected[-1] < 50:  # too rare still: to the largest cell
            largest = np.argmax(expected[:-1])
            counts[largest] += counts[-1]
            expected[largest] += expected[-1]
            counts, expected = counts[:-1], expected[:-1]
    assert len(counts) > 1
    return stats.chisquare(counts, expected * (counts.sum() / expected.sum())).pvalue


def p_value_of_law(draws: np.ndarray, kind: str, scale: float) -> float:
    """Test draws against round(scale * X): the exact pmf, or, where it is that fine, the cdf."""
    if scale > 1000:  # rounding moves the cdf by 2**-29, far less than the test can see
        return stats.kstest(draws / scale, LAW[kind].cdf).pvalue
    widest = math.ceil(30 * scale)
    # P(|round X| = j), from survival functions: no cancellation.
    edges = 2 * LAW[kind].sf((np.arange(widest + 2) - 0.5) / scale)
    pmf = edges[:-1] - edges[1:]
    pmf[0] = 1 - edges[1]
    assert pmf.sum() == pytest.approx(1, abs=1e-9)
    inside = np.clip(draws, -widest, widest).astype(np.int64)  # P(outside) < 1e-12
    counts = np.bincount(inside + widest, minlength=2 * widest + 1)
    return goodness_of_fit(counts, np.concatenate((pmf[:0:-1] / 2, pmf[:1], pmf[1:] / 2)))
