"""The scale of weights, from noisy counts of their magnitudes.

The estimate must not depend on the unit of weights, and gradients are multiplied by weights before
they are clipped. So weights are divided by a scale near the largest of them, and larger ones are
clipped to it. The sum of the weights in this unit is released as well: the loss is divided by it,
so that the effect of a penalty does not depend on the unit either.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from skdp._numbers import Array
from skdp._oracle import (
    LaplaceNoise,
    NoisyStatistic,
    Oracle,
    Public,
    Solution,
    Statistic,
    WeightCounts,
    Weights,
    WeightSums,
)
from skdp._oracle.releases.histograms import weight_of
from skdp._oracle.session import inside
from skdp._stages.base import OptionalStage, StageParameters
from skdp._stages.scaling.shares import SHARE_OF_WEIGHTS, mu_per_count
from skdp._stages.scaling.stage import ScalingStage, number_weighted
from skdp.objective import Problem

# All figures are choices of ours. Bins of the first counts, over the range of float64, in octaves.
# The second counts divide each of this many of them, up to the highest one with weights.
LOWEST, OCTAVES, N_COARSE = -1076.0, 4.0, 526
UNIT_BIN, N_FINE, N_DIVIDED = 269, 16, 4  # number of the bin that starts at weight 1
# Noise in the bin of weight 1 that counts stand out from, in standard deviations. A bin far above
# all weights that is taken for theirs makes a fit of noise: one fit in 4,000 here, in 40 with 2.
Z_BIN = 3.5
# Noise in the next two bins, whose weights the second counts have to confirm, and in a run of those
# counts, which may be short: if heavy weights are equal, the noise of other bins would hide them.
Z_NEXT, RUNS = 2.5, (1, 2, 4, 8, 16)
# Shares of mu squared: of the first and second counts, for this noise on a count as a share of the
# records, within limits, and of the sum.
NOISE_GOAL, MIN_SHARE, MAX_SHARE = 2e-4, 0.005, 0.05
SHARE_OF_SUM = 0.005
OF_ALL = 0.4, 0.2  # shares of the budget if it is spent on weights alone: of a count, and the sum
FIRST_RECORDS = 0.05  # share of a stream that is counted if no columns are estimated from it
# Of Laplace noise: next to that of a step of the solver, and how much farther its tails reach.
LAPLACE_NOISE, LAPLACE_TAIL = 2.0, 1.5


@dataclass(frozen=True, eq=False)
class WeightStage(OptionalStage):
    """Divide weights by a scale near the largest of them, which larger ones are clipped to.

    Parameters
    ----------
    shares : tuple of float
        Shares of mu squared: of the two histograms, and of the sum, 0 for Laplace noise.
    known : Weights or None
        The weights' units if these are public: those of labels without weights of records. If the
        weight of a label is 0, the number of the other records is released.
    max_weight : float or None
        Declared bound on the weights of records.
    is_laplace : bool
        Whether answers have Laplace noise, as delta is 0.
    first : int
        Of a stream: number of first records that are counted, and that no later stage reads. 0 for
        all records.
    """

    shares: tuple[float, float] = (0.0, 0.0)
    known: Weights | None = None
    max_weight: float | None = None
    is_laplace: bool = False
    first: int = 0

    title: ClassVar[str] = "scale of weights"
    place: ClassVar[str] = "before"

    @classmethod
    def concerns(cls, problem: Problem, parameters: StageParameters) -> bool:
        return parameters.has_weights

    @classmethod
    def applies(cls, public: Public, problem: Problem, parameters: StageParameters) -> str | None:
        return None

    @classmethod
    def of(cls, public: Public, problem: Problem, parameters: StageParameters) -> Self:
        labels = public.label_weights
        known = None if public.weighted else Weights(1.0, labels)
        if known is not None and all(labels):
            return cls(known=known)
        is_laplace = public.has_laplace_noise
        if is_laplace:
            shares = 0.0, 0.0
        elif public.streamed:
            shares = OF_ALL
        else:
            signal = mu_per_count(public) * public.n_rows
            needed = 1 / (NOISE_GOAL * signal) ** 2
            shares = min(max(needed, MIN_SHARE), MAX_SHARE), SHARE_OF_SUM
        first = 0
        if public.streamed:
            scaling = ScalingStage.of(public, problem, parameters)
            first = max(1, math.ceil(FIRST_RECORDS * public.n_rows))
            if ScalingStage.applies(public, problem, parameters) is None and scaling.first:
                first = scaling.first
                shares = SHARE_OF_WEIGHTS * shares[0], SHARE_OF_WEIGHTS * shares[1]
        return cls(shares, known, public.max_weight, is_laplace, first)

    # mypy: other stages have a field of this name. Here it follows from other fields.
    @property
    def share(self) -> float:  # type: ignore[override]
        n_counts = 2 * (self.max_weight is None and self.known is None)
        return n_counts * self.shares[0] + self.shares[1]

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        left = inside(self, oracle.public).share
        with oracle.first_records(self.first) if self.first else nullcontext():
            self._measure(oracle, left)
        return replace(solution, scaling=oracle.scaling)

    def _measure(self, oracle: Oracle, left: float) -> None:
        """Release the scale of the weights and their sum, and put weights in this unit.

        ``left`` is the share of the budget for later stages.
        """
        labels = oracle.public.label_weights
        if self.known is not None and all(labels):
            oracle.weigh(self.known, 1.0, 1.0, left)
            return
        n_rows = oracle.public.n_rows
        scale = self.known.scale if self.known is not None else self.max_weight
        scale = scale or self._scale(oracle)
        request = WeightSums(scale, np.array(labels), order=2 - self.is_laplace)
        (total, number), std = self._request(oracle, request, self.shares[1])
        number = number_weighted(number, std, n_rows)
        # Rows of labels with weight 0 are not counted in their number, but in the sum of weights.
        total = min(max(total, std, 1.0 / n_rows), number if all(labels) else n_rows)
        weights = Weights(scale, labels, is_clipped=oracle.is_noisy)
        oracle.weigh(weights, total / n_rows, number / n_rows, left)

    def assumptions(self) -> tuple[str, ...]:
        if self.known is not None:
            return ()
        if self.max_weight is not None:
            source = f"{self.max_weight:g}, which was declared without looking at them"
        else:
            source = "a scale that was estimated privately, as part of this fit"
        return (f"Weights were divided by {source}. Larger ones were clipped to it.",)

    def _request(self, oracle: Oracle, statistic: Statistic, share: float) -> tuple[Array, float]:
        """Return a noisy statistic, and the standard deviation of its noise."""
        if not self.is_laplace:
            return oracle.with_share(statistic, share or 1.0)
        release = NoisyStatistic(statistic, LaplaceNoise(LAPLACE_NOISE))
        return oracle.request(release), LAPLACE_TAIL * oracle.std(release)

    def _scale(self, oracle: Oracle) -> float:
        """Return a scale near the largest weight that noise does not hide."""
        order = 2 - self.is_laplace
        coarse = WeightCounts(LOWEST, OCTAVES, N_COARSE, order=order)
        counts, std = self._request(oracle, coarse, self.shares[0])
        # Weights are rather of about unit size: farther bins have to stand out from more noise.
        farther = np.abs(np.arange(N_COARSE) - UNIT_BIN)
        signal = counts - np.sqrt(2 * np.log1p(farther)) * std
        highest = N_COARSE - 1 - _first(signal[::-1], Z_BIN * std)
        highest += int(np.flatnonzero(counts[highest:][:3] > Z_NEXT * std).max(initial=0))
        low, width = LOWEST + OCTAVES * (highest + 1 - N_DIVIDED), OCTAVES / N_FINE
        n_bins = N_DIVIDED * N_FINE
        fine = WeightCounts(low, width, n_bins, order=order)
        counts, std = self._request(oracle, fine, self.shares[0])
        runs = [np.convolve(counts[::-1], np.ones(n) / math.sqrt(n))[:n_bins] for n in RUNS]
        return weight_of(low + width * (n_bins - _first(np.max(runs, axis=0), Z_BIN * std)))


def _first(signal: Array, least: float) -> int:
    """Return the place of the first signal above the least one, or of the largest if none is."""
    seen = np.flatnonzero(signal > least)
    return int(seen[0] if len(seen) else np.argmax(signal))
