"""skdp as it comes: nothing is set but the budget, the labels and the seed of the noise.

On demand without its calibration, too, to see what that does.
"""

from functools import partial

import skdp
from benchmarks.registry import Method


def estimator(split, epsilon, delta, seed, **parameters):
    """An estimator of skdp for this kind of target."""
    parameters |= {
        "epsilon": epsilon,
        "delta": delta,
        "noise_source": "seeded",
        "random_state": seed,
    }
    if split.is_classification:
        return skdp.DPLogisticRegression(classes=split.classes, **parameters)
    return skdp.DPLinearRegression(**parameters)


METHODS = [
    Method("skdp", "skdp", estimator),
    Method(
        "skdp uncalibrated",
        "solver",
        partial(estimator, calibration="none"),
        lambda split: split.is_classification,
        on_demand=True,
    ),
]
