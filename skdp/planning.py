"""Predict the accuracy that a budget costs, from fits of other data, before any budget is spent."""

import math
from dataclasses import dataclass

QUANTILES = 0.1, 0.5, 0.9  # over fits to different data, of the share that is lost
# Shares of the explainable part. Less than the first counts as nothing, more than the second as
# the second: a model is then worse than a constant by as much as one without privacy is better.
LEAST_LOSS, MOST_LOSS = 1e-3, 2.0
# Share that half of the fits lose, or more, where there is a warning before a fit. From 1 on they
# would be worse than a constant. The others, of which some gain much, are left to what a fit finds.
HOPELESS_LOSS = 1.4

# By kind and quantile (at, slope): the share lost is (signal / at) ** -slope, where the signal is
# mu n / p. Skewed regressions are those of targets with a skewness above 2, such as counts. Fitted
# to utility.csv, held_out.csv and, for log links, counts.csv in benchmarks/results by
# `python -m benchmarks expected`, which rewrites these lines.
CURVES = {
    "regression": {0.1: (0.204, 1.13), 0.5: (1.35, 1.22), 0.9: (2.07, 1.01)},
    "skewed regression": {0.1: (0.832, 1.85), 0.5: (2.91, 0.838), 0.9: (13.4, 0.672)},
    "log link": {0.1: (1.45, 1.55), 0.5: (2.17, 0.835), 0.9: (12.7, 0.401)},
    "two classes": {0.1: (0.398, 1.21), 0.5: (1.11, 0.964), 0.9: (2.47, 0.576)},
    "more classes": {0.1: (0.378, 0.812), 0.5: (0.58, 0.661), 0.9: (6.58, 0.708)},
}


@dataclass(frozen=True)
class ExpectedLoss:
    """Share lost of the gain of the same model without privacy over a constant prediction.

    Attributes
    ----------
    low, median, high : float
        Of R2, with a log link of D2, or, for classifiers, of log loss: four in five fits to other
        data lie between low and high. Shares above 1 are those of models that are worse than a
        constant.
    """

    low: float
    median: float
    high: float


def share_lost(curve: tuple[float, float], signal: float) -> float:
    """Return the share lost at a signal by a curve, 0 where it is below ``LEAST_LOSS``."""
    at, slope = curve
    share = math.exp(min(slope * (math.log(at) - math.log(signal)), math.log(MOST_LOSS)))
    return share if share > LEAST_LOSS else 0.0


def expected_loss(kind: str, signal: float) -> ExpectedLoss:
    """Return the share lost by default fits at a signal, by the fits of the benchmarks.

    Parameters
    ----------
    kind : {"regression", "skewed regression", "log link", "two classes", "more classes"}
    signal : float
        ``mu n / p``: the Gaussian-DP parameter of the budget, times rows, over parameters of an
        output. Positive.

    Returns
    -------
    ExpectedLoss
    """
    shares = (share_lost(CURVES[kind][quantile], signal) for quantile in QUANTILES)
    return ExpectedLoss(*sorted(shares))  # curves may cross where a model is worse than a constant


def signal_for(kind: str, share: float) -> float:
    """Return the signal at which half of the fits lose no more than this positive share."""
    at, slope = CURVES[kind][0.5]
    return float(at * share ** (-1 / slope))


def hopeless(kind: str, signal: float) -> bool:
    """Return whether half of the fits of a kind lose more than `HOPELESS_LOSS` at a signal."""
    return signal < signal_for(kind, HOPELESS_LOSS)
