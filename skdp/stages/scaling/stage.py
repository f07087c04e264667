"""The scaling stage: ranges, centres and scales of columns from a few noisy histograms."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from skdp._numbers import Array, Mask
from skdp.oracle import (
    BinCounts,
    Columns,
    MagnitudeCounts,
    Oracle,
    Public,
    Scaling,
    Solution,
    Stage,
)
from skdp.oracle.public import TARGET_RANGE
from skdp.stages.scaling import estimates
from skdp.stages.scaling.estimates import Estimate, Ranges
from skdp.stages.scaling.refinements import (
    LOG2_WEIGHT,
    detect_standardised,
    extrapolate_tails,
    fine_bins,
    keep_standardised,
    refine_narrow_columns,
)
from skdp.stages.scaling.shares import ScalingBudget

# Bins, by the largest noise on a count, as a share of the rows, for which they are used.
BINS_BY_NOISE = ((0.03, 32), (0.08, 16), (math.inf, 8))
EXACT_BINS = 1024


@dataclass(frozen=True, eq=False)
class HistogramState:
    """Mean of the counts of each column in its present range.

    Attributes
    ----------
    ranges : Ranges
    counts : array of shape (n_columns, n_bins)
    std : array of shape (n_columns,)
        Noise on the counts.
    times : array of shape (n_columns,)
        Number of histograms.
    """

    ranges: Ranges
    counts: Array
    std: Array
    times: Array

    @classmethod
    def none(cls, ranges: Ranges) -> HistogramState:
        """Return the state before any histogram."""
        nothing = np.zeros(len(ranges.low))
        return cls(ranges, nothing[:, None], nothing, nothing)

    def updated(self, counts: Array, std: Array) -> HistogramState:
        """Return the state after one more histogram, as noisy as those before."""
        times = self.times + 1
        mean = self.counts + (counts - self.counts) / times[:, None]
        return HistogramState(self.ranges, mean, std / np.sqrt(times), times)

    def within(self, ranges: Ranges) -> HistogramState:
        """Return the state with other ranges, without the counts of columns whose range differs."""
        same = (ranges.low == self.ranges.low) & (ranges.high == self.ranges.high)
        return HistogramState(ranges, self.counts * same[:, None], self.std, self.times * same)

    def estimate(self, magnitudes: tuple[Array, Array], n_rows: int, pooled: bool) -> Estimate:
        """Return the estimate from these counts and the magnitudes with their noise."""
        bins = self.counts, self.std
        return estimates.estimate(magnitudes, bins, n_rows, self.ranges, pooled)


@dataclass(frozen=True, eq=False)
class ScalingStage(Stage):
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
    """

    shares: ScalingBudget
    centred: tuple[bool, bool] = (True, True)
    known: Scaling = field(default_factory=Scaling)
    standardises: bool = True
    note: str = ""

    # mypy: other stages have a field of this name. Here it follows from other fields.
    @property
    def share(self) -> float:  # type: ignore[override]
        return self.shares.share

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        scaling = self.find(oracle)
        if self.standardises:
            oracle.standardise(scaling, self.public_after(oracle.public).share)
        return replace(solution, scaling=scaling)

    def public_after(self, public: Public) -> Public:
        columns = self.shares.features or self.known.columns is not None
        after = public.standardised(columns, self.shares.targets or self.known.targets is not None)
        return replace(after, share=1 - self.shares.share if public.is_noisy else 1.0)

    def assumptions(self) -> tuple[str, ...]:
        texts = []
        features = self.shares.features and not self.shares.free_features
        if features or self.shares.targets:
            what = " and ".join(["columns"] * features + ["targets"] * self.shares.targets)
            texts.append(
                f"Ranges, centres and sizes of {what} were found privately, as part of this fit: "
                "the histograms among its releases. Values outside their range are clipped."
            )
        if self.shares.free_features:
            texts.append(
                "Ranges, centres and sizes of columns were read from the features, which are "
                "public. Values outside their range are clipped."
            )
        if self.known.columns is not None:
            texts.append(self.note)
        return tuple(texts)

    def find(self, oracle: Oracle) -> Scaling:
        """Ask the histograms and return the scaling that follows from them."""
        if not self.shares.has_requests:
            return self.known
        if oracle.is_rehearsal:
            return self._rehearsed(oracle)
        exact, n_rows = not oracle.is_noisy, oracle.public.n_rows
        # 1. Sign and magnitude of all columns; then bins, of columns of each kind.
        magnitudes, noise = self._magnitudes(oracle)
        scaling = self.known
        for part, is_features, rounds in self._parts(oracle.public):
            counts, std = magnitudes[part], noise[part]
            ranges = estimates.coarse_ranges(counts, std, n_rows, exact, pooled=is_features)
            centred = self.centred[not is_features]
            half_width = np.zeros(len(counts))
            if is_features and centred and not exact:
                half_width = detect_standardised(counts, std, n_rows)
            seen = counts, std
            unknown = half_width == 0
            state = self._bin_rounds(oracle, part, ranges, seen, is_features, rounds, unknown)
            if exact:
                columns = estimates.exact_columns(state.counts, state.ranges, centred)
            elif half_width.all():
                columns = Columns(
                    -half_width, half_width, 0 * half_width, half_width
                )  # `keep_standardised` says the rest
            else:
                found = state.estimate(seen, n_rows, is_features)
                columns = found.columns(state.std / n_rows, is_features, centred)
            if not (exact or is_features):
                binned = state.counts, state.std, state.ranges
                columns = extrapolate_tails(columns, *binned, counts, std, ranges, n_rows)
            columns = (
                _kept_if_near_standard(columns) if exact else keep_standardised(columns, half_width)
            )
            if is_features:
                scaling = replace(scaling, columns=columns)
            else:
                scaling = replace(scaling, targets=columns if exact else _within_range(columns))
        return scaling

    def _magnitudes(self, oracle: Oracle) -> tuple[Array, Array]:
        """Ask for columns and targets by sign and magnitude, jointly if both cost something."""
        shares = self.shares
        n_features, n_columns = shares.n_features, len(shares.log_weights)
        if not (shares.free_features and shares.targets):
            return self._histogram(oracle, None, slice(0, n_columns))
        features = self._histogram(oracle, None, slice(0, n_features))
        targets = self._histogram(oracle, None, slice(n_features, n_columns))
        return np.vstack([features[0], targets[0]]), np.concatenate([features[1], targets[1]])

    def _bin_rounds(
        self,
        oracle: Oracle,
        part: slice,
        ranges: Ranges,
        magnitudes: tuple[Array, Array],
        is_features: bool,
        rounds: int,
        unknown: Mask,
    ) -> HistogramState:
        """Ask for bins between the ends; then again, in smaller ranges where there are any.

        Noisy ranges of targets are made smaller only where they are narrow and far from 0: a
        smaller one hides a tail. Ranges of columns that are known to be standardised stay.
        """
        exact, n_rows = not oracle.is_noisy, oracle.public.n_rows
        state = HistogramState.none(ranges)
        narrow = np.zeros(len(ranges.low), dtype=bool)
        for number in range(2, rounds + 1):
            if number < rounds and narrow.any():
                state, narrow = self._refined(oracle, part, state, narrow)
                continue
            state = state.updated(*self._histogram(oracle, state.ranges, part))
            if number == rounds:
                break
            before, n_bins = state.ranges, state.counts.shape[1]
            if exact:
                found = estimates.support_with_margin(state.counts, before)
                smaller = estimates.shrink_ranges(before, found, n_bins, again=number > 2)
            elif unknown.any():
                smaller = before
                if is_features:
                    found = state.estimate(magnitudes, n_rows, is_features).ranges
                    smaller = estimates.shrink_ranges(before, found, n_bins, again=number > 2)
                found, narrow = refine_narrow_columns(state.counts, state.std, n_rows, before)
                narrow &= found.far_from_0 & unknown
                smaller = smaller.where(narrow, found)
            else:
                continue
            state = state.within(smaller)
        return state

    def _refined(
        self, oracle: Oracle, part: slice, state: HistogramState, narrow: Mask
    ) -> tuple[HistogramState, Mask]:
        """Look closer at narrow columns alone: many bins, and most of the round's budget.

        Returned are the ranges as they are now, and which columns may be narrower still.
        """
        weights = np.array(self.shares.log_weights[part]) + LOG2_WEIGHT * narrow
        # What the others' weights leave of the noise.
        noise = self._noise(part) * math.sqrt(np.mean(4.0 ** (LOG2_WEIGHT * (narrow - 1.0))))
        counts, std = self._histogram(oracle, state.ranges, part, tuple(weights), fine_bins(noise))
        found, still = refine_narrow_columns(counts, std, oracle.public.n_rows, state.ranges)
        return state.within(state.ranges.where(narrow, found)), narrow & still

    def _rehearsed(self, oracle: Oracle) -> Scaling:
        """Ask the same about no rows, and spare the work on what stand-ins would mean."""
        self._magnitudes(oracle)
        scaling = self.known
        for part, is_features, rounds in self._parts(oracle.public):
            unit = np.ones(part.stop - part.start)
            for _ in range(2, rounds + 1):
                self._histogram(oracle, Ranges(-unit, unit), part)
            columns = Columns(-unit, unit, 0 * unit, unit)
            scaling = replace(scaling, **{"columns" if is_features else "targets": columns})
        return scaling

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

    def _histogram(
        self,
        oracle: Oracle,
        ranges: Ranges | None,
        which: slice,
        other_weights: tuple[int, ...] | None = None,
        n_bins: int | None = None,
    ) -> tuple[Array, Array]:
        """Ask for columns by magnitude, or between the ends of ranges: counts, and their noise.

        ``other_weights`` are other weights of the columns for the same share of the budget.
        """
        weights, n_features = self.shares.log_weights[which], self.shares.n_features
        share = self.shares.part(weights) if self.shares.share > 0 else 0.0
        weights = weights if other_weights is None else other_weights
        features = self.shares.features and which.start < n_features
        targets = self.shares.targets and which.stop > n_features
        asked: MagnitudeCounts | BinCounts = MagnitudeCounts(features, targets, weights)
        if ranges is not None:
            if n_bins is None:
                n_bins = next(bins for most, bins in BINS_BY_NOISE if self._noise(which) <= most)
                n_bins = n_bins if oracle.is_noisy else EXACT_BINS
            width = (ranges.high - ranges.low) / n_bins
            asked = BinCounts(features, targets, ranges.low, width, n_bins, weights)
        answer, std = oracle.with_share(asked, share)
        factors = np.ldexp(1.0, np.array(weights))
        return answer / factors[:, None], std / factors


def _within_range(columns: Columns) -> Columns:
    """Targets within the range that the public facts promise."""
    half_width = TARGET_RANGE * columns.size
    low, high = columns.centre - half_width, columns.centre + half_width
    return replace(columns, low=np.maximum(columns.low, low), high=np.minimum(columns.high, high))


def _kept_if_near_standard(columns: Columns) -> Columns:
    """Columns of about unit size around zero are left alone where there is no noise.

    So a penalty acts on their very coefficients, and a fit agrees with scikit-learn's.
    """
    usual = (columns.size > 0.25) & (columns.size < 4) & (np.abs(columns.centre) < 2)
    centre, size = np.where(usual, 0.0, columns.centre), np.where(usual, 1.0, columns.size)
    return _unclipped(replace(columns, centre=centre, size=size))


def _unclipped(columns: Columns) -> Columns:
    """Without noise there is nothing to be hidden: values are not clipped."""
    most = np.full(columns.n_columns, np.finfo(float).max)
    return replace(columns, low=-most, high=most)
