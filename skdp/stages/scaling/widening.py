"""Private test, halfway through a solver's steps, for enlarging clip ranges.

Long tails are clipped, since in one column the target depends on the tail, and in another the tail
is mere outliers; their histograms look alike. After half of the steps they can be distinguished: if
predictions for clipped rows improve by the part that was clipped, ranges are enlarged, and the
remaining steps use rows that are clipped less.

Conversely, the effect of a column may end before its range does. If predictions for rows in the
outer part of their ranges improve by clipping them there, ranges are reduced to the inner part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from skdp._numbers import Array
from skdp.objective import Problem
from skdp.oracle import Columns, Oracle, Public, Solution, TailSum
from skdp.stages.base import OptionalStage, StageParameters, first_missing, missing_gaussian
from skdp.stages.scaling.estimates import Z_ONE
from skdp.stages.scaling.stage import ScalingStage

# All figures are choices of ours; docs/research/defaults.rst has the evidence for each.
SHARE = 0.04  # of mu squared for each test, relative to the solver's own releases
EXPANSION_FACTOR = 6.0  # of estimated ranges, and of the bound on rows
# Least slope of the target on the clipped part, relative to that on the rest. It is far from 1 even
# where the target is linear: coefficients are too large while rows are clipped.
MIN_SLOPE = 0.05
# Bound on a record's derivatives, in squared scales of the target: few records of a long tail must
# not outweigh the others, and noise is proportional to it.
RECORD_CLIP = 0.5
# The inner part of ranges, as a factor on them, and the slope of the target on the rest, relative
# to that on the inner part, below which ranges are reduced. If clipping leaves as much variance as
# it takes, one below 1/2 is better clipped; estimates are larger, see MIN_SLOPE.
INNER_FACTOR, MOST_IDLE_SLOPE = 0.7, 1 / 3
AMPLE = 3000.0  # signal mu n from which on tails of some per cent of the rows show in that


@dataclass(frozen=True)
class Widening(OptionalStage):
    """Enlarge or reduce ranges where that significantly improves predictions.

    One or three releases, :class:`skdp.oracle.TailSum`, at the mean of the points in the second
    quarter of the run. The choice follows from their answers and public numbers alone. Later
    releases hold for any ranges: each bounds what a record adds by itself.

    Parameters
    ----------
    share : float
        Of mu squared, relative to the solver's own releases.
    targets : bool
        Whether the ranges of targets are enlarged, too: not if they were declared.
    is_ample : bool, default=False
        Whether ranges may also be reduced, and the bound on rows alone be enlarged, by two more
        releases with that share each.
    """

    share: float
    targets: bool = True
    is_ample: bool = False
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
        is_ample = public.gradient_mu * public.n_rows >= AMPLE
        return cls(SHARE, scaling is not None and scaling.budget.targets.n_columns > 0, is_ample)

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
            for _ in range(1 + 2 * self.is_ample):
                request = beyond(Columns(nothing, nothing, nothing, nothing + 1))
                oracle.with_share(request, self.share)
            return solution
        inner, wide = (_scaled(before.columns, one) for one in (INNER_FACTOR, EXPANSION_FACTOR))
        reduced, enlarged = replace(before, columns=inner), replace(before, columns=wide)
        if self.targets and before.targets is not None:
            enlarged = replace(enlarged, targets=_scaled(before.targets, EXPANSION_FACTOR))
        longer = EXPANSION_FACTOR * bound
        tests = [(enlarged, longer, before.columns)]
        if self.is_ample:
            # Rows may be cut for being long alone, while the columns' ranges are as they should be.
            tests += [(before, longer, before.columns), (before, bound, inner)]
        answers = []
        for ranges, row_bound, columns in tests:
            with oracle.with_ranges(ranges, row_bound):
                answers.append(oracle.with_share(beyond(columns), self.share))
        is_narrow = _excess(*answers[0], MIN_SLOPE) > Z_ONE
        is_cut = self.is_ample and _excess(*answers[1], MIN_SLOPE) > Z_ONE
        is_idle = self.is_ample and _excess(*answers[2], MOST_IDLE_SLOPE) < -Z_ONE
        if is_narrow:
            oracle.change_ranges(enlarged, longer)
        elif is_idle or is_cut:
            oracle.change_ranges(reduced if is_idle else before, longer if is_cut else bound)
        return solution

    def assumptions(self) -> tuple[str, ...]:
        return (
            "Halfway through the fit one or three tests, by the release 'tails', decided whether "
            "to make the estimated ranges and the bound on rows, or this alone, "
            f"{EXPANSION_FACTOR:g} times as wide, or the ranges {INNER_FACTOR:g} times: predict "
            "uses those in scaling_ and row_bound_.",
        )


def _scaling_stage(parameters: StageParameters) -> ScalingStage | None:
    return next((one for one in parameters.chosen if isinstance(one, ScalingStage)), None)


def _excess(derivatives: Array, noise: float, slope: float) -> float:
    """Return how far the slope beyond ranges exceeds another, in its noise."""
    first, second = derivatives
    return float((-first - slope * second) / (noise * math.hypot(1.0, slope)))


def _scaled(columns: Columns, factor: float) -> Columns:
    """Return columns with ranges times this factor."""
    largest = np.finfo(float).max
    with np.errstate(over="ignore"):
        low = columns.centre - factor * (columns.centre - columns.low)
        high = columns.centre + factor * (columns.high - columns.centre)
    low, high = np.clip(low, -largest, largest), np.clip(high, -largest, largest)
    return replace(columns, low=low, high=high)
