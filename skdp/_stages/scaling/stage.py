"""The scaling stage: requests of histograms, one after the other, and the columns that follow.

Features and targets each get a histogram of magnitudes, and then others in bins of the range that
follows from all before. Ranges get shorter where bins show that columns lie in a part of them.
Where they stay the counts are averaged. Without noise counts are exact, and so are the columns. A
rehearsal makes the same requests, as their number depends on public facts only.

A private test halfway through a solver's steps can enlarge the ranges. Long tails are clipped,
since in one column the target depends on the tail, and in another the tail is mere outliers, their
histograms look alike. After half of the steps they can be distinguished: if predictions for clipped
rows improve by the part that was clipped, ranges are enlarged, and the remaining steps use rows
that are clipped less.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from skdp._numbers import Array, Mask
from skdp._oracle import (
    BinCounts,
    Columns,
    MagnitudeCounts,
    Oracle,
    Public,
    Scaling,
    Solution,
    TailSum,
    Weights,
    WeightSums,
)
from skdp._oracle.public import TARGET_RANGE
from skdp._oracle.session import inside
from skdp._stages.base import GAUSSIAN, OptionalStage, StageParameters, first_missing, is_regression
from skdp._stages.column_bounds import DeclaredBounds, PublicSample, declared_columns
from skdp._stages.scaling import estimates, refinements, shares
from skdp._stages.scaling.distributions import Bins, Histogram, Ranges
from skdp.objective import Loss, Problem

# Bins, by the largest noise on a count, as a share of the rows, for which they are used.
BINS_BY_NOISE = ((0.04, 32), (0.11, 16), (math.inf, 8))
# Without noise, and for narrow columns: a record lies in one bin of each, however many there are.
MANY_BINS = 1024
Z_COUNT = 3.0  # noise on a number of records, in standard deviations


@dataclass(frozen=True, eq=False)
class Counting:
    """The histograms that a fit requests of its features, or of its targets.

    Ranges are in units of the columns, powers of 4.
    """

    oracle: Oracle
    histograms: shares.Histograms
    is_features: bool
    units: Array | float = 1.0

    @property
    def is_laplace(self) -> bool:
        """Whether counts have Laplace noise."""
        return self.histograms.order == 1

    @property
    def exact(self) -> bool:
        """Whether counts have no noise, as epsilon is infinite."""
        return not self.oracle.is_noisy

    @property
    def rounds(self) -> range:
        """Numbers of the histograms in bins. The first one is of magnitudes."""
        return range(2, self.histograms.rounds + 1)

    def by_magnitude(self) -> tuple[Histogram, Self]:
        """Request counts by sign and magnitude. Return them, and the counting in units of these."""
        request, n_rows = MagnitudeCounts(self.is_features, not self.is_features), self._n_counted
        answer = self._answer(request)
        counts, std, units = estimates.in_own_units(answer[0], n_rows, answer[1], self.is_laplace)
        seen = Histogram(counts / n_rows, std / n_rows, is_laplace=self.is_laplace)
        return seen, replace(self, units=units)

    def in_bins(self, ranges: Ranges, n_bins: int | None = None) -> Bins:
        """Request counts in equal bins of ranges. Their number follows from the noise."""
        if n_bins is None:
            noise = self.histograms.noise
            usual = next(bins for most, bins in BINS_BY_NOISE if noise <= most)
            n_bins = MANY_BINS if self.exact else usual
        kind, n_rows = (self.is_features, not self.is_features), self._n_counted
        low, width = self.units * ranges.low, self.units * ranges.width / n_bins
        counts, std = self._answer(BinCounts(*kind, low, width, n_bins))
        stds = np.full(len(counts), std / n_rows)
        return Bins(counts / n_rows, stds, ranges, is_laplace=self.is_laplace)

    def _answer(self, request: MagnitudeCounts | BinCounts) -> tuple[Array, float]:
        share, order = self.histograms.share / self.histograms.rounds, self.histograms.order
        mechanism = "laplace" if self.is_laplace else "gaussian"
        return self.oracle.with_share(replace(request, order=order), share, mechanism=mechanism)

    @property
    def _n_counted(self) -> float:
        """Number of records that are counted: those of weight 0 are not."""
        return self.oracle.public.n_rows * self.oracle.public.weighted_share


@dataclass(frozen=True, eq=False)
class ScalingStage(OptionalStage):
    """Estimate the scaling of columns and targets, or apply a declared one.

    Parameters
    ----------
    features, targets : Histograms
        Of columns and of targets, with their budget. Without any by default.
    centred : bool
        Whether to centre columns and targets: not without an intercept.
    known : Scaling
        The part of the scaling that is public.
    standardises : bool
        Whether later stages get standardised records.
    note : str
        Sentence of the statement about columns that are public.
    first : int
        Of a stream: the number of first records that histograms are of, and no other release. 0
        for all records.
    is_final : bool
        Whether no later stage may widen ranges: those of regressions are short enough for the test
        halfway, :class:`~skdp._stages.scaling.stage.Widening`.
    share_of_count : float
        Share of mu squared of the number of records whose weight is positive, if no earlier stage
        has released it.
    """

    features: shares.Histograms = field(default_factory=shares.Histograms)
    targets: shares.Histograms = field(default_factory=shares.Histograms)
    centred: bool = True
    known: Scaling = field(default_factory=Scaling)
    standardises: bool = True
    note: str = ""
    first: int = 0
    is_final: bool = False
    share_of_count: float = 0.0

    title: ClassVar[str] = "scaling"
    place: ClassVar[str] = "before"

    @classmethod
    def demanded(cls, public: Public, problem: Problem, parameters: StageParameters) -> str | None:
        return "scaling='private'" if parameters.scaling == "private" else None

    @classmethod
    def applies(cls, public: Public, problem: Problem, parameters: StageParameters) -> str | None:
        if parameters.scaling == "none":
            return "scaling other than 'none'"
        is_automatic = parameters.bounds is None and parameters.scaling == "auto"
        if is_automatic and "unconstrained" not in problem.provides:
            return "no constraint"
        stage = cls.of(public, problem, parameters)
        known, n_counted = stage.known, stage.features.n_columns + stage.targets.n_columns
        if n_counted or known.columns or known.targets:
            return None
        return "less noise on counts of columns: more rows, or a larger epsilon"

    @classmethod
    def of(cls, public: Public, problem: Problem, parameters: StageParameters) -> Self:
        centred, bounds = public.has_intercept, parameters.bounds
        columns, targets = declared_columns(bounds, public.n_features, centred, public.sparse), None
        if problem.loss.targets == "real" and parameters.targets is not None:
            low, high = (np.full(public.n_outputs, end) for end in parameters.targets)
            centre = (low + high) / 2 * centred
            targets = Columns(
                low, high, centre, np.maximum(high - centre, centre - low) / TARGET_RANGE
            )
        # Gradients of quantile losses are short, and too slow from the middle of a wide range.
        is_limit = problem.loss.degree == 1
        counts_targets = is_regression(problem) and (targets is None or is_limit)
        wanted = columns is None, counts_targets
        histograms, first = (shares.Histograms(), shares.Histograms()), 0
        if public.streamed and any(wanted):
            # The first records may have been asked about weights.
            first = public.n_first or shares.records_for_scaling(public, *wanted)
            left = 1.0 - shares.SHARE_OF_WEIGHTS * (public.n_first > 0)
            if first:
                histograms = shares.budget_of_first(public.divided(first)[0], *wanted, left)
        else:
            insist = parameters.scaling == "private"
            thrifty = parameters.inference_share is not None
            histograms = shares.scaling_budget(public, *wanted, insist=insist, thrifty=thrifty)
        if histograms[1].n_columns:
            targets = None
        return cls(
            *histograms,
            centred,
            Scaling(columns, targets, problem.loss.link),
            note=note_on_bounds(bounds),
            first=first,
            is_final=not is_regression(problem),
        )

    # mypy: other stages have a field of this name. Here it follows from other fields.
    @property
    def share(self) -> float:  # type: ignore[override]
        return self.features.share + self.targets.share + self.share_of_count

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        left, scaling = inside(self, oracle.public).share, self.known
        features, targets = self.features, self.targets
        with oracle.first_records(self.first) if self.first else nullcontext():
            if self.share_of_count:
                n_rows, request = oracle.public.n_rows, WeightSums(1.0, np.zeros(0))
                (_, number), std = oracle.with_share(request, self.share_of_count)
                oracle.weigh(Weights(1.0), 1.0, number_weighted(number, std, n_rows) / n_rows)
            if features.n_columns:
                columns = self._columns(Counting(oracle, features, True))
                scaling = replace(scaling, columns=columns)
            if targets.n_columns:
                columns = self._columns(Counting(oracle, targets, False))
                columns = _in_units_of(oracle.problem.loss, columns, self.centred, targets.noise)
                scaling = replace(scaling, targets=columns)
        if self.standardises:
            oracle.standardise(scaling, left)
        return replace(solution, scaling=scaling)

    def public_after(self, public: Public) -> Public:
        columns = self.known.columns is not None or self.features.n_columns > 0
        targets = self.known.targets is not None or self.targets.n_columns > 0
        return super().public_after(public).standardised(columns, targets)

    def assumptions(self) -> tuple[str, ...]:
        texts = []
        features = self.features
        counted = ["columns"] * (features.share > 0) + ["targets"] * (self.targets.share > 0)
        if counted:
            what = " and ".join(counted)
            texts.append(
                f"Ranges, centres and sizes of {what} were estimated privately, as part of this "
                "fit: the histograms among its releases. Values outside their range are clipped."
            )
        if self.first:
            texts.append(
                f"The histograms are of the first {self.first} records, and no other release is: "
                "a record is in only one of the two parts, and is charged only for that part."
            )
        if features.n_columns and not features.share:  # as their values are public
            texts.append(
                "Ranges, centres and sizes of columns were read from the features, which are "
                "public. Values outside their range are clipped."
            )
        if self.known.columns is not None:
            texts.append(self.note)
        return tuple(texts)

    def _columns(self, counting: Counting) -> Columns:
        """Request histograms. Return the columns that follow from these."""
        magnitudes, counting = counting.by_magnitude()
        if counting.oracle.is_rehearsal:  # the same requests, without the work on placeholders
            unit = np.ones(counting.histograms.n_columns)
            for _ in counting.rounds:
                counting.in_bins(Ranges(-unit, unit))
            return Columns(-unit, unit, 0 * unit, unit)
        return _in_units(self._columns_in_units(counting, magnitudes), counting.units)

    def _columns_in_units(self, counting: Counting, magnitudes: Histogram) -> Columns:
        is_features, exact, centred = counting.is_features, counting.exact, self.centred
        first = estimates.coarse_ranges(magnitudes, exact, pooled=is_features)
        every = _bin_rounds(counting, first, magnitudes)
        bins = every[-1]
        if exact:
            return estimates.exact_columns(bins, is_features, centred)
        columns = estimates.estimate(magnitudes, bins, is_features, centred)
        if not is_features:
            of_logarithms = counting.oracle.problem.loss.link == "log"
            return refinements.extrapolate_tails(columns, bins, magnitudes, first, of_logarithms)
        if centred:
            columns = refinements.keep_standardised(columns, magnitudes, self.is_final)
        return refinements.pin_points(columns, every, magnitudes, centred)


def _in_units(columns: Columns, units: Array | float) -> Columns:
    """Return columns whose numbers were in these units."""
    finite = np.finfo(np.float64)
    with np.errstate(over="ignore"):
        low, high, centre = (
            np.clip(units * one, finite.min, finite.max)
            for one in (columns.low, columns.high, columns.centre)
        )
        scale = np.clip(units * columns.scale, finite.tiny, finite.max)
    return replace(columns, low=low, high=high, centre=centre, scale=scale)


def number_weighted(number: float, std: float, n_rows: int) -> float:
    """Return the number of records of positive weight: all, unless noise cannot explain it."""
    return n_rows if number > n_rows - Z_COUNT * std else max(number, std, 1.0)


def _bin_rounds(counting: Counting, ranges: Ranges, magnitudes: Histogram) -> list[Bins]:
    """Request bins of ranges. Then again, in smaller ranges where there are any.

    Returns the bins of all rounds, the last with the mean of the counts of each column in its last
    range.
    """
    every: list[Bins] = []
    mean: Array | float = 0.0
    times, narrow = np.zeros(len(ranges.low)), np.zeros(len(ranges.low), dtype=bool)
    was_narrow = narrow
    for number in counting.rounds:
        is_last = number == counting.rounds[-1]
        if narrow.any() and not is_last:
            # Many bins for narrow columns, which may be narrower still, even if noise once hid it.
            every.append(counting.in_bins(ranges, MANY_BINS))
            was_narrow = was_narrow | narrow
            estimated, still = refinements.refine_narrow_columns(every[-1])
            smaller, narrow = ranges.where(was_narrow, estimated), was_narrow & still
        else:
            counts = counting.in_bins(ranges)
            times = times + 1
            mean = mean + (counts.shares - mean) / times[:, None]
            bins = replace(counts, shares=mean, noise=counts.noise / np.sqrt(times))
            every.append(bins if is_last else counts)
            if is_last:
                break
            smaller, narrow = _smaller_ranges(counting, bins, magnitudes, times == 1, number > 2)
        times *= (smaller.low == ranges.low) & (smaller.high == ranges.high)
        ranges = smaller
    return every


def _smaller_ranges(
    counting: Counting, bins: Bins, magnitudes: Histogram, is_new: Mask, again: bool
) -> tuple[Ranges, Mask]:
    """Return smaller ranges where there are any, and which columns may be narrower still.

    Noisy ranges of targets shrink only where they are narrow and far from 0: a smaller one hides a
    tail. Those of features that stayed have been estimated before.
    """
    if counting.exact:
        seen = estimates.support_with_margin(bins)
        return estimates.shrink_ranges(bins, seen, again), is_new & False
    smaller, new = bins.ranges, np.flatnonzero(is_new)
    if counting.is_features and len(new):
        columns = estimates.estimate(magnitudes.of(new), bins.of(new), is_features=True)
        estimated = Ranges(columns.low, columns.high)
        # Rounding makes ranges alike, but those of columns far from 0 much wider.
        one_sided = (estimated.low > 0) | (estimated.high < 0)
        estimated = estimated.rounded().where(one_sided, estimated)
        smaller = smaller.put(new, estimates.shrink_ranges(bins.of(new), estimated, again))
    windows, narrow = refinements.refine_narrow_columns(bins)
    # A new range starts the mean of counts anew, so later ones have to be half as long.
    shorter = (1 + again) * windows.width < smaller.width
    return smaller.where(narrow | shorter, windows), narrow


def note_on_bounds(bounds: DeclaredBounds | None) -> str:
    """Return the sentence of the statement about columns that are public."""
    if isinstance(bounds, PublicSample):
        return (
            f"Ranges, centres, sizes and second moments of columns come from {bounds.n_rows} rows "
            "that were declared public. Values outside these ranges were clipped."
        )
    return "Ranges of columns were chosen without looking at the rows. Values outside were clipped."


def _in_units_of(loss: Loss, targets: Columns, centred: bool, noise: float) -> Columns:
    """Targets in the units and the range of the loss."""
    units = loss.target_units(targets.centre if centred else None, targets.scale, noise)
    if units is None:
        return targets
    targets = replace(targets, centre=units.centre, scale=units.scale)
    return targets if noise == 0 else replace(targets, low=units.low, high=units.high)


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

    One release, :class:`skdp._oracle.TailSum`, at the mean of the points in the second quarter of
    the run. The choice follows only from its answer and public numbers. Later releases are valid
    for any ranges, because each bounds a record's contribution itself.

    Parameters
    ----------
    share : float
        Of mu squared, relative to the solver's own releases.
    targets : bool
        Whether the ranges of targets are also enlarged: not if they were declared.
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
            or not scaling.features.n_columns
            or scaling.is_final,
            "no inference, which uses the ranges that it knows": parameters.inference_share
            is not None,
            "noise: a finite epsilon": not public.is_noisy,
            # For other losses, and for several outputs at once, it gained less than it cost.
            "squared error": "quadratic_loss" not in problem.provides,
            "one target": public.n_outputs != 1,
            GAUSSIAN: public.has_laplace_noise,
        }
        return first_missing(needs)

    @classmethod
    def of(cls, public: Public, problem: Problem, parameters: StageParameters) -> Self:
        scaling = _scaling_stage(parameters)
        return cls(SHARE, scaling is not None and scaling.targets.n_columns > 0)

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
        if -first - MIN_SLOPE * second > estimates.Z_ONE * noise * math.hypot(1.0, MIN_SLOPE):
            oracle.change_ranges(enlarged, longer)
        return solution

    def assumptions(self) -> tuple[str, ...]:
        return (
            "Halfway through the fit, a noisy test (the release 'tails') decided whether to widen "
            f"the estimated ranges and the bound on rows by a factor of {EXPANSION_FACTOR:g}. The "
            "final values are in scaling_ and row_bound_.",
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
