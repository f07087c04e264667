"""Private test, halfway through a solver's steps, for enlarging clip ranges.

Long tails are clipped, since in one column the target depends on the tail, and in another the tail
is mere outliers; their histograms look alike. After half of the steps they can be distinguished: if
predictions for clipped rows improve by the part that was clipped, ranges are enlarged, and the
remaining steps use rows that are clipped less.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from skdp.objective import Problem
from skdp.oracle import Columns, Oracle, Public, Solution, TailSum
from skdp.stages.base import OptionalStage, StageParameters, first_missing, missing_gaussian
from skdp.stages.scaling.stage import ScalingStage

# All figures are choices of ours; docs/research/defaults.rst has the evidence for each.
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
class Widening(OptionalStage):
    """Enlarge ranges where that significantly improves predictions.

    One release, :class:`skdp.oracle.TailSum`, at the mean of the points in the second quarter of
    the run. The choice follows from its answer and public numbers alone. Later releases hold for
    any ranges: each bounds what a record adds by itself.

    Parameters
    ----------
    share : float
        Of mu squared, relative to the solver's own releases.
    targets : bool
        Whether the ranges of targets are enlarged, too: not if they were declared.
    """

    share: float
    targets: bool = True
    title: ClassVar[str] = "widening of ranges"
    place: ClassVar[str] = "checkpoint"

    @classmethod
    def applies(cls, public: Public, problem: Problem, parameters: StageParameters) -> str | None:
        scaling = _scaling_stage(parameters)
        needs = {
            "rows that can be read more than once": public.streamed,
            "a solver with a checkpoint": not parameters.has_checkpoint,
            "ranges from histograms": scaling is None or not scaling.shares.features,
            "no inference, which uses the ranges that it knows": parameters.inference_share
            is not None,
            "noise: a finite epsilon": not public.is_noisy,
            # For other losses, and for several outputs at once, it gained less than it cost.
            "squared error": "quadratic_loss" not in problem.provides,
            "one target": public.n_outputs != 1,
        }
        return first_missing(needs) or missing_gaussian(public, parameters)

    @classmethod
    def of(cls, public: Public, problem: Problem, parameters: StageParameters) -> Self:
        scaling = _scaling_stage(parameters)
        return cls(SHARE, targets=scaling is not None and scaling.shares.targets)

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        before, bound, wide = oracle.scaling, oracle.public.row_bound, None
        assert bound is not None  # rows are bounded wherever there is noise
        low = high = np.zeros(oracle.public.n_features)
        if before is not None and before.columns is not None:
            columns = before.columns
            low = (columns.low - columns.centre) / columns.scale
            high = (columns.high - columns.centre) / columns.scale
            targets = before.targets
            if self.targets and targets is not None:
                targets = _wider(targets)
            wide = replace(before, columns=_wider(columns), targets=targets)
        request = TailSum(solution.coef, low, high, bound, RECORD_CLIP)
        with nullcontext() if wide is None else oracle.with_ranges(wide, EXPANSION_FACTOR * bound):
            (first, second), noise = oracle.with_share(request, self.share)
        gain = -first - MIN_SLOPE * second
        if wide is not None and gain > Z_DETECT * noise * math.hypot(1.0, MIN_SLOPE):
            oracle.change_ranges(wide, EXPANSION_FACTOR * bound)
        return solution

    def assumptions(self) -> tuple[str, ...]:
        return (
            "A private test halfway through the fit, the release 'tails', decided whether the "
            f"estimated ranges and the bound on rows are {EXPANSION_FACTOR:g} times as wide from "
            "then on: scaling_ and row_bound_ have what predict uses.",
        )


def _scaling_stage(parameters: StageParameters) -> ScalingStage | None:
    return next((one for one in parameters.chosen if isinstance(one, ScalingStage)), None)


def _wider(columns: Columns) -> Columns:
    """Return columns with wider ranges, except at ends with isolated values."""
    largest = np.finfo(float).max
    isolated = columns.isolated or (False, False)
    below, above = (np.where(end, 1.0, EXPANSION_FACTOR) for end in isolated)
    with np.errstate(over="ignore"):
        low = columns.centre - below * (columns.centre - columns.low)
        high = columns.centre + above * (columns.high - columns.centre)
    low, high = np.clip(low, -largest, largest), np.clip(high, -largest, largest)
    return replace(columns, low=low, high=high)
