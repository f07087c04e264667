"""Private test, halfway through a solver's steps, for enlarging clip ranges.

Long tails are clipped, since in one column the target depends on the tail, and in another the tail
is mere outliers; their histograms look alike. After half of the steps they can be distinguished: if
predictions for clipped rows improve by the part that was clipped, ranges are enlarged, and the
remaining steps use rows that are clipped less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from skdp.objective import Problem
from skdp.oracle import Columns, Oracle, Public, Solution, TailSum
from skdp.stages.base import OptionalStage, StageParameters, first_missing, missing_gaussian
from skdp.stages.scaling.estimates import Z_ONE
from skdp.stages.scaling.stage import ScalingStage

# All figures are choices of ours.
SHARE = 0.04  # of mu squared for the test, relative to the solver's own releases
EXPANSION_FACTOR = 6.0  # of estimated ranges, and of the bound on rows
# Least slope of the target on the clipped part, relative to that on the rest. It is far from 1 even
# where the target is linear: coefficients are too large while rows are clipped.
MIN_SLOPE = 0.05
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
            "ranges from histograms that are not final": scaling is None
            or not scaling.budget.features.n_columns
            or scaling.is_final,
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
        return cls(SHARE, scaling is not None and scaling.budget.targets.n_columns > 0)

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        before, bound = oracle.scaling, oracle.public.row_bound
        assert bound is not None  # rows are bounded wherever there is noise

        def beyond(columns: Columns) -> TailSum:
            """Return the request for the slope beyond ranges, in units of the scales."""
            low, high = (
                (one - columns.centre) / columns.scale for one in (columns.low, columns.high)
            )
            return TailSum(solution.coef, low, high, bound, RECORD_CLIP)

        if before is None or before.columns is None:  # a rehearsal, in units of its own
            nothing = np.zeros(oracle.public.n_features)
            request = beyond(Columns(nothing, nothing, nothing, nothing + 1))
            oracle.with_share(request, self.share)
            return solution
        enlarged = replace(before, columns=_scaled(before.columns, EXPANSION_FACTOR))
        if self.targets and before.targets is not None:
            enlarged = replace(enlarged, targets=_scaled(before.targets, EXPANSION_FACTOR))
        longer = EXPANSION_FACTOR * bound
        with oracle.with_ranges(enlarged, longer):
            (first, second), noise = oracle.with_share(beyond(before.columns), self.share)
        if -first - MIN_SLOPE * second > Z_ONE * noise * math.hypot(1.0, MIN_SLOPE):
            oracle.change_ranges(enlarged, longer)
        return solution

    def assumptions(self) -> tuple[str, ...]:
        return (
            "Halfway through the fit a test, by the release 'tails', decided whether to make the "
            f"estimated ranges and the bound on rows {EXPANSION_FACTOR:g} times as wide: predict "
            "uses those in scaling_ and row_bound_.",
        )


def _scaling_stage(parameters: StageParameters) -> ScalingStage | None:
    return next((one for one in parameters.chosen if isinstance(one, ScalingStage)), None)


def _scaled(columns: Columns, factor: float) -> Columns:
    """Return columns with ranges times this factor."""
    largest = np.finfo(float).max
    with np.errstate(over="ignore"):
        low = columns.centre - factor * (columns.centre - columns.low)
        high = columns.centre + factor * (columns.high - columns.centre)
    low, high = np.clip(low, -largest, largest), np.clip(high, -largest, largest)
    return replace(columns, low=low, high=high)
