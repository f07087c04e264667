"""What a fit of raw columns must reach: how far it may stay behind a reference on the same rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Aim:
    """One aim, on average over runs.

    Attributes
    ----------
    case : str
    task : {"regression", "classification"}
    epsilon : float
    metric : {"score", "log_loss"}
    reference : {"free", "non-private", "constant"}
        "free" is the same fit of columns and targets that were standardised beforehand.
    short : float
        Most that may be lost to it; negative for what must be gained.
    """

    case: str
    task: str
    epsilon: float
    metric: str
    reference: str
    short: float


def aims(case, task, metric, reference, shorts):
    """One aim for each epsilon."""
    return [Aim(case, task, at, metric, reference, short) for at, short in shorts.items()]


R, C = "regression", "classification"
AT_LEAST = {0.1: 0.0, 0.3: 0.0, 1.0: 0.0}
AIMS = [
    *aims("alike_off_centre", R, "score", "free", {1.0: 0.02}),
    *aims("ten_classes", C, "score", "free", {0.3: 0.026}),
    *aims("ten_classes", C, "log_loss", "free", {0.3: 0.06}),
    *aims("timestamp_day", R, "score", "free", {0.3: 0.03, 1.0: 0.01}),
    *aims("offset_1e6_one", R, "score", "free", {0.3: 0.03, 1.0: 0.01}),
    *aims("offset_1e6", R, "score", "free", {1.0: 0.007}),
    *aims("target_1e6", R, "score", "constant", AT_LEAST),
    *aims("target_1e6", R, "score", "free", {0.3: 0.07, 1.0: 0.07}),
    *aims("target_2000", R, "score", "constant", AT_LEAST),
    *aims("target_2000", R, "score", "free", {0.3: 0.07, 1.0: 0.07}),
    *aims("target_lognormal2", R, "score", "free", {1.0: 0.002}),
    *aims("target_poisson", R, "score", "constant", {0.3: 0.0, 1.0: 0.0}),
    *aims("wide_counts", R, "score", "non-private", {0.1: 0.23, 0.3: 0.15, 1.0: 0.09}),
    *aims("pareto3", R, "score", "free", {1.0: 0.03}),
    *aims("zeros_99", R, "score", "free", {1.0: 0.03}),
    *aims("indicators_standardised", C, "log_loss", "free", {1.0: -0.001}),
    *aims("indicators_raw", C, "log_loss", "free", {0.1: 0.01}),
    *aims("correlated", R, "score", "free", {1.0: 0.001}),
    *aims("polynomial", R, "score", "non-private", {1.0: 0.18}),
    *aims("rare_class", C, "log_loss", "constant", {0.3: 0.001}),
    *aims("three_classes", C, "score", "free", {1.0: 0.006}),
    *aims("rows_200", R, "score", "free", {1.0: 0.12}),
    *aims("separable", C, "score", "free", {1.0: 0.001}),
    *aims("separable", C, "log_loss", "free", {1.0: 0.003}),
]
