"""The first stage of a fit: ranges, centres and sizes of columns from a few noisy histograms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from skdp._numbers import Array
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
from skdp.stages.scaling.estimates import Ranges, coarse_ranges, columns_from, zoomed
from skdp.stages.scaling.shares import Shares
from skdp.stages.scaling.standard import left_alone, standard_columns

FINENESS = ((0.03, 32), (0.08, 16), (math.inf, 8))  # noise on a count, and bins it allows
EXACT_BINS = 1024


@dataclass(frozen=True, eq=False)
class HistogramState:
    """Mean of the counts that each column has got in its present range.

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
        """Nothing yet."""
        nothing = np.zeros(len(ranges.low))
        return cls(ranges, nothing[:, None], nothing, nothing)

    def of(self, part: slice) -> tuple[Array, Array]:
        """Return the counts of some columns, and the noise on them."""
        return self.counts[part], self.std[part]

    def with_answer(self, part: slice, counts: Array, std: Array) -> HistogramState:
        """Take in one more histogram of some columns, as noisy as those before."""
        times = self.times.copy()
        times[part] += 1
        mean = np.broadcast_to(self.counts, (len(times), counts.shape[1])).copy()
        mean[part] += (counts - mean[part]) / times[part, None]
        noise = self.std.copy()
        noise[part] = std / np.sqrt(times[part])
        return HistogramState(self.ranges, mean, noise, times)

    def within(self, ranges: Ranges) -> HistogramState:
        """Forget the counts of columns whose range is another now."""
        same = (ranges.low == self.ranges.low) & (ranges.high == self.ranges.high)
        return HistogramState(ranges, self.counts * same[:, None], self.std, self.times * same)


@dataclass(frozen=True, eq=False)
class ScalingStage(Stage):
    """Finds the scaling of the columns and targets that are asked for.

    Parameters
    ----------
    shares : Shares
        What is asked for, and its budget.
    centred : tuple of bool
        Whether to centre columns, and targets: not sparse ones, and none without an intercept.
    known : Scaling
        What is public already.
    standardises : bool
        Whether later stages get standardised records.
    """

    shares: Shares
    centred: tuple[bool, bool] = (True, True)
    known: Scaling = field(default_factory=Scaling)
    standardises: bool = True

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
        said = []
        if self.shares.features or self.shares.targets:
            what = " and ".join(
                ["columns"] * self.shares.features + ["targets"] * self.shares.targets
            )
            said.append(
                f"Ranges, centres and sizes of {what} were found privately, as part of this fit: "
                "the histograms among its releases. Values outside their range are clipped."
            )
        if self.known.columns is not None:
            said.append(
                "bounds were chosen without looking at the rows; values outside were clipped."
            )
        return tuple(said)

    def find(self, oracle: Oracle) -> Scaling:
        """Ask the histograms and return the scaling that follows from them."""
        if self.shares.share == 0:
            return self.known
        if oracle.is_rehearsal:
            return self._rehearsed(oracle)
        exact, n_rows = not oracle.is_noisy, oracle.public.n_rows
        parts = self._parts(oracle.public)
        everything = slice(0, len(self.shares.log_weights))
        # 1. Sign and magnitude.
        counts, std = self._asked(oracle, None, everything)
        ranges = _joined(
            [
                coarse_ranges(counts[part], std[part], n_rows, exact, in_common=is_features)
                for part, is_features, _ in parts
            ]
        )
        standard = np.zeros(len(counts), dtype=bool)
        for part, is_features, _ in parts:
            if is_features and self.centred[0] and not exact:
                standard[part] = standard_columns(counts[part], std[part], n_rows)
        # 2. Bins between the ends; then again, in smaller ranges where there are any.
        state = HistogramState.none(ranges)
        for number, asked in self._later_rounds(parts):
            state = state.with_answer(asked, *self._asked(oracle, state.ranges, asked))
            closer = [
                zoomed(
                    *state.of(part), n_rows, exact, state.ranges.of(part), is_features, number > 2
                )
                if number < rounds
                else state.ranges.of(part)
                for part, is_features, rounds in parts
            ]
            state = state.within(_joined(closer))
        # 3. What the last ones say.
        scaling = self.known
        for part, is_features, _ in parts:
            columns = columns_from(
                *state.of(part),
                n_rows,
                exact,
                state.ranges.of(part),
                is_features,
                self.centred[not is_features],
            )
            if exact:
                columns = _as_they_are(columns)
            columns = left_alone(columns, standard[part])
            if is_features:
                scaling = replace(scaling, columns=columns)
            else:
                scaling = replace(scaling, targets=columns if exact else _within_range(columns))
        return scaling

    def _rehearsed(self, oracle: Oracle) -> Scaling:
        """Ask the same about no rows, and spare the work on what stand-ins would mean."""
        size = len(self.shares.log_weights)
        self._asked(oracle, None, slice(0, size))
        parts, scaling = self._parts(oracle.public), self.known
        for _, asked in self._later_rounds(parts):
            self._asked(oracle, Ranges(-np.ones(size), np.ones(size)), asked)
        for part, is_features, _ in parts:
            unit = np.ones(part.stop - part.start)
            columns = Columns(-unit, unit, 0 * unit, unit)
            scaling = replace(scaling, **{"columns" if is_features else "targets": columns})
        return scaling

    @staticmethod
    def _later_rounds(parts: list[tuple[slice, bool, int]]) -> Iterator[tuple[int, slice]]:
        """Yield the number of each round after the first, and which columns it asks for."""
        for number in range(2, max(rounds for _, _, rounds in parts) + 1):
            going = [part for part, _, rounds in parts if number <= rounds]
            yield number, slice(going[0].start, going[-1].stop)

    def _parts(self, public: Public) -> list[tuple[slice, bool, int]]:
        """Columns of each kind, whether they are features, and how many histograms they get."""
        of_features, of_targets = self.shares.rounds
        n_features = public.n_features * self.shares.features
        parts = [(slice(0, n_features), True, of_features)] if self.shares.features else []
        both = slice(n_features, n_features + public.n_outputs)
        return parts + ([(both, False, of_targets)] if self.shares.targets else [])

    def _asked(self, oracle: Oracle, ranges: Ranges | None, which: slice) -> tuple[Array, Array]:
        """Ask for columns by magnitude, or between the ends of ranges: counts, and their noise."""
        weights, n_features = self.shares.log_weights[which], self.shares.n_features
        features = self.shares.features and which.start < n_features
        targets = self.shares.targets and which.stop > n_features
        asked: MagnitudeCounts | BinCounts = MagnitudeCounts(features, targets, weights)
        if ranges is not None:
            n_bins = next(bins for most, bins in FINENESS if self.shares.noise <= most)
            n_bins = n_bins if oracle.is_noisy else EXACT_BINS
            own = ranges.of(which)
            width = (own.high - own.low) / n_bins
            asked = BinCounts(features, targets, own.low, width, n_bins, weights)
        answer, std = oracle.with_share(asked, self.shares.part(weights))
        factors = np.ldexp(1.0, np.array(weights))
        return answer / factors[:, None], std / factors


def _joined(found: list[Ranges]) -> Ranges:
    return Ranges(
        np.concatenate([item.low for item in found]),
        np.concatenate([item.high for item in found]),
    )


def _within_range(columns: Columns) -> Columns:
    """Targets within the range that the public facts promise."""
    reach = TARGET_RANGE * columns.size
    low, high = columns.centre - reach, columns.centre + reach
    return replace(columns, low=np.maximum(columns.low, low), high=np.minimum(columns.high, high))


def _as_they_are(columns: Columns) -> Columns:
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
