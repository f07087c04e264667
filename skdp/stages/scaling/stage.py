"""The scaling stage: ranges, centres and scales of columns from a few noisy histograms."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from skdp._numbers import Array, Mask
from skdp.objective import Loss, Problem
from skdp.oracle import (
    BinCounts,
    Columns,
    MagnitudeCounts,
    Oracle,
    Public,
    Scaling,
    Solution,
)
from skdp.oracle.public import TARGET_RANGE
from skdp.oracle.session import inside
from skdp.stages.base import OptionalStage, StageParameters, is_regression, missing_gaussian
from skdp.stages.column_bounds import DeclaredBounds, PublicSample, declared_columns
from skdp.stages.scaling import estimates
from skdp.stages.scaling.distributions import NoisyCounts
from skdp.stages.scaling.estimates import Ranges
from skdp.stages.scaling.refinements import (
    LOG2_WEIGHT,
    extrapolate_tails,
    keep_standardised,
    refine_narrow_columns,
)
from skdp.stages.scaling.shares import (
    ScalingBudget,
    budget_of_first,
    records_for_scaling,
    scaling_budget,
)

# Bins, by the largest noise on a count, as a share of the rows, for which they are used.
BINS_BY_NOISE = ((0.03, 32), (0.08, 16), (math.inf, 8))
# Without noise, and for narrow columns: a record lies in one bin of each, however many there are.
MANY_BINS = 1024


@dataclass(frozen=True, eq=False)
class HistogramState:
    """Mean of the counts of each column in its present range.

    Attributes
    ----------
    ranges : Ranges
    bins : NoisyCounts
    times : array of shape (n_columns,)
        Number of histograms.
    """

    ranges: Ranges
    bins: NoisyCounts
    times: Array

    @classmethod
    def none(cls, ranges: Ranges, n_rows: int) -> HistogramState:
        """Return the state before any histogram."""
        nothing = np.zeros(len(ranges.low))
        return cls(ranges, NoisyCounts(nothing[:, None], nothing, n_rows), nothing)

    def updated(self, bins: NoisyCounts) -> HistogramState:
        """Return the state after one more histogram, as noisy as those before."""
        times, before = self.times + 1, self.bins.counts
        mean = before + (bins.counts - before) / times[:, None]
        mean_of_all = NoisyCounts(mean, bins.std / np.sqrt(times), bins.n_rows)
        return HistogramState(self.ranges, mean_of_all, times)

    def within(self, ranges: Ranges) -> HistogramState:
        """Return the state with other ranges, without the counts of columns whose range differs."""
        same = (ranges.low == self.ranges.low) & (ranges.high == self.ranges.high)
        kept = replace(self.bins, counts=self.bins.counts * same[:, None])
        return HistogramState(ranges, kept, self.times * same)

    def shrunk(self, magnitudes: NoisyCounts, again: bool) -> Ranges:
        """Return the ranges of features, smaller where there is a much narrower estimate.

        Ranges that stayed have been estimated before.
        """
        new = np.flatnonzero(self.times == 1)
        if not len(new):
            return self.ranges
        ranges = self.ranges.of(new)
        estimate = estimates.estimate(magnitudes.of(new), self.bins.of(new), ranges, pooled=True)
        # Rounding makes ranges alike, but those of columns far from 0 much wider.
        one_sided = (estimate.ranges.low > 0) | (estimate.ranges.high < 0)
        one_sided &= ~estimate.isolated.any(axis=1)
        estimated = estimate.ranges.rounded().where(one_sided, estimate.ranges)
        smaller = estimates.shrink_ranges(ranges, estimated, self.bins.counts.shape[1], again)
        low, high = self.ranges.low.copy(), self.ranges.high.copy()
        low[new], high[new] = smaller.low, smaller.high
        return Ranges(low, high)


@dataclass(frozen=True, eq=False)
class ScalingStage(OptionalStage):
    """Estimate the scaling of columns and targets, or apply a declared one.

    Parameters
    ----------
    shares : ScalingBudget
        Which columns get histograms, and their budget.
    centred : tuple of bool
        Whether to centre columns, and targets: none without an intercept.
    known : Scaling
        The part of the scaling that is public.
    standardises : bool
        Whether later stages get standardised records.
    note : str
        Sentence of the statement about columns that are public.
    first : int
        Of a stream: the number of first records that histograms are of, and no other release. 0
        for all records.
    """

    shares: ScalingBudget
    centred: tuple[bool, bool] = (True, True)
    known: Scaling = field(default_factory=Scaling)
    standardises: bool = True
    note: str = ""
    first: int = 0

    title: ClassVar[str] = "scaling"
    place: ClassVar[str] = "before"

    @classmethod
    def demanded(cls, public: Public, problem: Problem, parameters: StageParameters) -> str | None:
        return "scaling='private'" if parameters.scaling == "private" else None

    @classmethod
    def applies(cls, public: Public, problem: Problem, parameters: StageParameters) -> str | None:
        if parameters.scaling == "none":
            return "scaling other than 'none'"
        if parameters.bounds is None:
            missing = missing_gaussian(public, parameters)
            if missing is not None:
                return f"{missing}. Set scaling=PublicRange(low, high), or scaling='none'"
            if parameters.scaling == "auto" and "unconstrained" not in problem.provides:
                return "no constraint"
        budget, known, _ = _requests(public, problem, parameters)
        if budget.has_requests or known.columns or known.targets:
            return None
        return "less noise on counts of columns: more rows, or a larger epsilon"

    @classmethod
    def of(cls, public: Public, problem: Problem, parameters: StageParameters) -> Self:
        budget, known, first = _requests(public, problem, parameters)
        centred = (public.has_intercept, public.has_intercept)
        return cls(budget, centred, known, note=note_on_bounds(parameters.bounds), first=first)

    # mypy: other stages have a field of this name. Here it follows from other fields.
    @property
    def share(self) -> float:  # type: ignore[override]
        return self.shares.share

    @property
    def has_own_records(self) -> bool:  # type: ignore[override]  # as above
        return self.first > 0

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        left = inside(self, oracle.public).share
        with oracle.first_records(self.first) if self.first else nullcontext():
            scaling = self._estimated(oracle)
        if self.standardises:
            oracle.standardise(scaling, left)
        return replace(solution, scaling=scaling)

    def _estimated(self, oracle: Oracle) -> Scaling:
        """Return the scaling that follows from histograms of the records."""
        n_rows, exact = oracle.public.n_rows, not oracle.is_noisy
        scaling, seen = self.known, []
        # 1. Sign and magnitude of all columns; then bins, of columns of each kind.
        for which in self._jointly():
            request, share = self._request(which)
            seen.append(_unweighted(request, *oracle.with_share(request, share), n_rows))
        for part, is_features, rounds in self._parts(oracle.public):
            if oracle.is_rehearsal:
                columns = self._rehearsed(oracle, part, rounds)
            else:
                counts, std = (
                    np.concatenate(one)[part]
                    for one in zip(*((one.counts, one.std) for one in seen), strict=True)
                )
                magnitudes = NoisyCounts(counts, std, n_rows)
                columns = self._columns(oracle, part, magnitudes, is_features, rounds)
            if is_features:
                scaling = replace(scaling, columns=columns)
            else:
                noise = 0.0 if exact else self._noise(part)
                targets = _in_units_of(oracle.problem.loss, columns, self.centred[1], noise)
                scaling = replace(scaling, targets=targets)
        return scaling

    def public_after(self, public: Public) -> Public:
        if self.first:
            public = public.divided(self.first)[1]
        columns = self.shares.features or self.known.columns is not None
        return public.standardised(columns, self.shares.targets or self.known.targets is not None)

    def assumptions(self) -> tuple[str, ...]:
        texts = []
        features = self.shares.features and not self.shares.free_features
        if features or self.shares.targets:
            what = " and ".join(["columns"] * features + ["targets"] * self.shares.targets)
            texts.append(
                f"Ranges, centres and sizes of {what} were estimated privately, as part of this "
                "fit: the histograms among its releases. Values outside their range are clipped."
            )
        if self.first:
            texts.append(
                f"The histograms are of the first {self.first} records, and no other release is: "
                "a record is among these or among the others, and pays for the one of both parts."
            )
        if self.shares.free_features:
            texts.append(
                "Ranges, centres and sizes of columns were read from the features, which are "
                "public. Values outside their range are clipped."
            )
        if self.known.columns is not None:
            texts.append(self.note)
        return tuple(texts)

    def _columns(
        self, oracle: Oracle, part: slice, magnitudes: NoisyCounts, is_features: bool, rounds: int
    ) -> Columns:
        """Request bins; return the columns that follow from these and their magnitudes."""
        exact, centred = not oracle.is_noisy, self.centred[not is_features]
        first = estimates.coarse_ranges(magnitudes, exact, pooled=is_features)
        state = self._bin_rounds(oracle, part, first, magnitudes, is_features, rounds)
        ranges, bins = state.ranges, state.bins
        if exact:
            columns = estimates.exact_columns(bins.counts, ranges, centred)
            return _kept_if_near_standard(columns) if is_features else columns
        estimate = estimates.estimate(magnitudes, bins, ranges, is_features)
        columns = estimate.columns(bins.noise, is_features, centred)
        if is_features:
            # For a regression a test halfway decides about long tails.
            is_final = oracle.problem.loss.targets == "label"
            if centred:
                columns = keep_standardised(columns, magnitudes, is_final)
            if not is_final:
                return columns
            # Values beyond the bound on rows would shrink whole rows, and not their column alone.
            reach = (oracle.public.long_row or math.inf) * columns.scale
            limits = columns.centre - reach, columns.centre + reach
            low, high = np.clip([columns.low, columns.high], *limits)
            return replace(columns, low=low, high=high)
        shapes = estimate.shapes
        return _within_range(extrapolate_tails(columns, shapes, bins, ranges, magnitudes, first))

    def _jointly(self) -> list[slice]:
        """Columns of each histogram of magnitudes: all jointly, unless one kind costs nothing."""
        n_features, n_columns = self.shares.n_features, len(self.shares.log_weights)
        if self.shares.free_features and self.shares.targets:
            return [slice(0, n_features), slice(n_features, n_columns)]
        return [slice(0, n_columns)] * self.shares.has_requests

    def _bin_rounds(
        self,
        oracle: Oracle,
        part: slice,
        ranges: Ranges,
        magnitudes: NoisyCounts,
        is_features: bool,
        rounds: int,
    ) -> HistogramState:
        """Request bins of ranges; then again, in smaller ranges where there are any.

        Noisy ranges of targets shrink only where they are narrow and far from 0: a smaller one
        hides a tail.
        """
        exact = not oracle.is_noisy
        state = HistogramState.none(ranges, oracle.public.n_rows)
        narrow = np.zeros(len(ranges.low), dtype=bool)
        for number in range(2, rounds + 1):
            if number < rounds and narrow.any():
                state, narrow = self._refined(oracle, part, state, narrow)
                continue
            request, share = self._request(part, state.ranges, MANY_BINS if exact else None)
            answer = oracle.with_share(request, share)
            state = state.updated(_unweighted(request, *answer, oracle.public.n_rows))
            if number == rounds:
                break
            if exact:
                estimated = estimates.support_with_margin(state.bins.counts, state.ranges)
                smaller = estimates.shrink_ranges(state.ranges, estimated, MANY_BINS, number > 2)
            else:
                smaller = state.shrunk(magnitudes, number > 2) if is_features else state.ranges
                estimated, narrow = refine_narrow_columns(state.bins, state.ranges)
                shorter = estimated.high - estimated.low < smaller.high - smaller.low
                smaller = smaller.where(narrow | (shorter & (number == 2)), estimated)
            state = state.within(smaller)
        return state

    def _refined(
        self, oracle: Oracle, part: slice, state: HistogramState, narrow: Mask
    ) -> tuple[HistogramState, Mask]:
        """Return the state after a round for narrow columns, and which may be narrower still.

        They get many bins, and most of the round's budget.
        """
        weights = tuple(np.array(self.shares.log_weights[part]) + LOG2_WEIGHT * narrow)
        request, share = self._request(part, state.ranges, MANY_BINS, weights)
        answer = oracle.with_share(request, share)
        bins = _unweighted(request, *answer, oracle.public.n_rows)
        estimated, still = refine_narrow_columns(bins, state.ranges)
        return state.within(state.ranges.where(narrow, estimated)), narrow & still

    def _rehearsed(self, oracle: Oracle, part: slice, rounds: int) -> Columns:
        """Make the same requests, without the work on placeholders; return columns of unit size."""
        unit = np.ones(part.stop - part.start)
        for _ in range(2, rounds + 1):
            n_bins = None if oracle.is_noisy else MANY_BINS
            request, share = self._request(part, Ranges(-unit, unit), n_bins)
            oracle.with_share(request, share)
        return Columns(-unit, unit, 0 * unit, unit)

    def _parts(self, public: Public) -> list[tuple[slice, bool, int]]:
        """Columns of each kind, whether they are features, and how many histograms they get."""
        of_features, of_targets = self.shares.rounds
        n_features = public.n_features * self.shares.features
        parts = [(slice(0, n_features), True, of_features)] if self.shares.features else []
        both = slice(n_features, n_features + public.n_outputs)
        return parts + ([(both, False, of_targets)] if self.shares.targets else [])

    def _noise(self, which: slice) -> float:
        """Return the noise on a count of these columns, of one weight, as a share of the rows."""
        if self.shares.free_features and which.stop <= self.shares.n_features:
            return 0.0
        weights = self.shares.log_weights
        return math.ldexp(self.shares.noise, min(weights) - weights[which.start])

    def _request(
        self,
        which: slice,
        ranges: Ranges | None = None,
        n_bins: int | None = None,
        other_weights: tuple[int, ...] | None = None,
    ) -> tuple[MagnitudeCounts | BinCounts, float]:
        """Return a histogram of columns, by magnitude or in bins of ranges, and its share.

        ``n_bins`` follows from the noise by default. ``other_weights`` are other weights of the
        columns for the same share of the budget.
        """
        weights, n_features = self.shares.log_weights[which], self.shares.n_features
        share = self.shares.part(weights) if self.shares.share > 0 else 0.0
        weights = weights if other_weights is None else other_weights
        features = self.shares.features and which.start < n_features
        targets = self.shares.targets and which.stop > n_features
        if ranges is None:
            return MagnitudeCounts(features, targets, weights), share
        if n_bins is None:
            n_bins = next(bins for most, bins in BINS_BY_NOISE if self._noise(which) <= most)
        width = (ranges.high - ranges.low) / n_bins
        return BinCounts(features, targets, ranges.low, width, n_bins, weights), share


def _unweighted(
    request: MagnitudeCounts | BinCounts, answer: Array, std: float, n_rows: int
) -> NoisyCounts:
    """Return counts from an answer, whose columns are weighted."""
    factors = np.ldexp(1.0, np.array(request.log_weights))
    return NoisyCounts(answer / factors[:, None], std / factors, n_rows)


def _requests(
    public: Public, problem: Problem, parameters: StageParameters
) -> tuple[ScalingBudget, Scaling, int]:
    """Return the histograms of a fit's scaling, by their budget, and what is declared of it.

    The last is the number of the first records of a stream that they are of, else 0.
    """
    centred, bounds = public.has_intercept, parameters.bounds
    columns, targets = declared_columns(bounds, public.n_features, centred, public.sparse), None
    standardises_targets = is_regression(problem)
    if problem.loss.targets == "real" and public.target_bound is not None:
        bound = np.full(public.n_outputs, float(public.target_bound))
        targets = Columns(-bound, bound, np.zeros(public.n_outputs), bound / TARGET_RANGE)
    wanted = {
        "features": columns is None,
        "targets": standardises_targets
        and targets is None
        and missing_gaussian(public, parameters) is None,
    }
    first = 0
    if public.streamed and any(wanted.values()):
        first = records_for_scaling(public, **wanted)
        held = replace(public, n_rows=0) if first == 0 else public.divided(first)[0]
        budget = budget_of_first(held, **wanted)
    else:
        budget = scaling_budget(public, **wanted, insist=parameters.scaling == "private")
    return budget, Scaling(columns, targets, problem.loss.link), first


def note_on_bounds(bounds: DeclaredBounds | None) -> str:
    """Return the sentence of the statement about columns that are public."""
    if isinstance(bounds, PublicSample):
        return (
            f"Ranges, centres, sizes and second moments of columns come from {bounds.n_rows} rows "
            "that were declared public; values outside these ranges were clipped."
        )
    return "Ranges of columns were chosen without looking at the rows; values outside were clipped."


def _in_units_of(loss: Loss, targets: Columns, centred: bool, noise: float) -> Columns:
    """Targets in the units and the range of the loss."""
    units = loss.target_units(targets.centre if centred else None, targets.scale, noise)
    if units is None:
        return targets
    targets = replace(targets, centre=units.centre, scale=units.scale)
    return targets if noise == 0 else replace(targets, low=units.low, high=units.high)


def _within_range(columns: Columns) -> Columns:
    """Targets within the range that the public facts promise."""
    half_width = TARGET_RANGE * columns.scale
    low, high = columns.centre - half_width, columns.centre + half_width
    return replace(columns, low=np.maximum(columns.low, low), high=np.minimum(columns.high, high))


def _kept_if_near_standard(columns: Columns) -> Columns:
    """Columns of about unit size around zero are left alone where there is no noise.

    So a penalty acts on their very coefficients, and a fit agrees with scikit-learn's.
    """
    usual = (columns.scale > 0.25) & (columns.scale < 4) & (np.abs(columns.centre) < 2)
    centre, size = np.where(usual, 0.0, columns.centre), np.where(usual, 1.0, columns.scale)
    return replace(columns, centre=centre, scale=size)
