"""Make one pass over shuffled rows, with clipping norms that follow residuals (DP-AMBSSGD)."""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from skdp._numbers import Array, is_real, require
from skdp.oracle import Cut, ResidualCount, SquaredNormSum
from skdp.solvers import checks
from skdp.solvers.base import Auto, Oracle, Problem, Public, Resolved, Settings, Solution
from skdp.solvers.clip_tracker import count_ratio, noisy_count
from skdp.solvers.defaults import UNCLIPPED, expected_row_norm, target_unit
from skdp.solvers.papers.varshney_2022.one_pass import (
    MIN_BLOCKS,
    Guess,
    OnePassSolver,
    full_budget_noise,
    step_rates,
)
from skdp.steps import AVERAGES, IterateAverage, StepSize, constant_size

# Least and largest share of a block's rows that are counted. The paper counts s = b / 10 rows.
MIN_COUNTED_SHARE, MAX_COUNTED_SHARE = 0.1 / 1.1, 0.5
# Rows counted in a block: at least this many, and this many times the noise of a count.
MIN_COUNTED, COUNT_TO_NOISE = 10, 6.0
# Share of all rows that estimate the norm of rows, with row_norm="private".
NORM_ROWS = 0.05
# Norm of rows that is assumed to be the largest there, in units of the norm of unit columns.
LARGEST_NORM = 2.0
# Clipping norm in units of row_norm * gamma, where residuals have no bound.
CLIP_FACTOR = 2.0
# Largest candidate for a threshold, in units of the expected size of a target.
LARGEST_THRESHOLD = 16.0
# Least ``resolution``.
FINEST = 2.0**-100
# Default ``quantile`` where the loss bounds residuals, chosen on the first data of
# `benchmarks.papers.next_to_gd`. Elsewhere it is the median.
BOUNDED_QUANTILE = 0.9
SEARCHES = ("binary", "doubling")
# Candidates per factor of 2 in a binary search.
CANDIDATES_PER_DOUBLING = 4


class AdaptiveShuffledSGD(OnePassSolver):
    """One pass over disjoint blocks; some rows of a block find the clipping norm for the others.

    The rows are shuffled and cut into ``max_iter`` blocks. In each block, noisy counts over s rows
    find the ``quantile`` gamma of their absolute residuals; the other b rows give the mean
    gradient, with each record's gradient clipped to ``clip_factor * row_norm * gamma`` and noise
    in proportion to that norm. As the fit improves the norm falls, and the noise with it. The two
    parts have different rows and no row is used twice, so every search and every gradient may
    spend as if there were no others: the pass costs the larger of one search and one gradient,
    not their sum.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of blocks, T. "auto" is ``kappa ln(n)``, or fewer if counts were too noisy. Where the
        loss bounds residuals n is at most the signal-to-noise ratio of the budget.
    learning_rate : float or "auto", default="auto"
        Step size; "auto" is ``b / (row_norm**2 + (b - 1) curvature)``.
    stat_share : float or "auto", default="auto"
        Share of a block's rows that are counted, in (0, 1). "auto" is 1/11, the paper's
        ``s = b / 10``, or more if counts were too noisy, up to 1/2.
    search : {"binary", "doubling"}, default="binary"
        Method that finds gamma: a noisy binary search over many candidates, or, as printed in the
        paper, by counts at all doublings of the least candidate. Each count has the same noise,
        and their number does not depend on their answers.
    resolution : float, default=2**-20
        Least candidate, as a share of the largest, in [2**-100, 1/2].
    quantile : float or "auto", default="auto"
        Share of the s rows with residuals up to gamma, in (0, 1]. The paper takes 1. "auto" is the
        median, which requires the fewest rows to stand out from the noise, or 0.9 where the loss
        bounds residuals: those of a rare class are large, and no outliers.
    clip_factor : float or "auto", default="auto"
        Clip in units of ``row_norm * gamma``. "auto" is 2, or 1 where the loss bounds residuals.
        The paper takes ``ln(n)**a``, with a = 1/2 for Gaussian tails, which makes clipping
        improbable and adds more noise.
    domain_bound : float or "auto", default="auto"
        Largest candidate, in the unit of the target.
    row_norm : float, "private" or "auto", default="auto"
        Root of the mean squared norm of rows, with the constant feature. "auto" expects columns of
        unit size. "private" estimates it on 5 per cent of the rows, which are used for nothing
        else, so that it costs nothing in addition to the pass.
    {curvature}
    {condition_number}
    averaging : {"last", "tail", "random"}, default="tail"
        Which iterate is returned; "tail" is the mean of the last half.
    polish_iter : int, default=0
        Number of gradient steps over all rows that follow, with the median clip of the last half.
    {polish_share}

    Notes
    -----
    Corrections to the printed algorithm: index sets are half-open (as printed, one record of every
    block is used for the threshold and for the gradient); all counts of a search are charged,
    one more than the proof composes; of the two parts of a block the maximum is charged.

    References
    ----------
    P. Varshney, A. Thakurta, P. Jain: (Nearly) Optimal Private Linear Regression via Adaptive
    Clipping. COLT 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20000, 5))
    >>> y = X @ np.array([1.0, 0.5, 0.0, 0.0, -1.0]) + 0.1 * rng.standard_normal(20000)
    >>> model = DPLinearRegression(solver="adaptive_shuffled_sgd").fit(X, y)
    >>> model.score(X, y) > 0.98  # generated rows: an exact score is fine
    True
    """

    stat_share: Resolved[float]
    quantile: Resolved[float]
    clip_factor: Resolved[float]
    domain_bound: Resolved[float]
    row_norm: Resolved[float]
    name = "adaptive_shuffled_sgd"
    purpose = "For rows that can be read only once: one pass, with a clip that follows residuals."
    averages = AVERAGES

    def __init__(
        self,
        *,
        max_iter: int | Auto = "auto",
        learning_rate: StepSize = "auto",
        stat_share: float | Auto = "auto",
        search: str = "binary",
        resolution: float = 2.0**-20,
        quantile: float | Auto = "auto",
        clip_factor: float | Auto = "auto",
        domain_bound: float | Auto = "auto",
        row_norm: float | Literal["auto", "private"] = "auto",
        curvature: float | Auto = "auto",
        condition_number: float | Auto = "auto",
        averaging: str = "tail",
        polish_iter: int = 0,
        polish_share: float = 0.2,
    ) -> None:
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.stat_share = stat_share
        self.search = search
        self.resolution = resolution
        self.quantile = quantile
        self.clip_factor = clip_factor
        self.domain_bound = domain_bound
        self.row_norm = row_norm
        self.curvature = curvature
        self.condition_number = condition_number
        self.averaging = averaging
        self.polish_iter = polish_iter
        self.polish_share = polish_share

    # ------------------------------------------------------------------ public facts

    def automatic(self, public: Public, problem: Problem) -> Settings:
        self._check_search()
        guess = Guess.of(self, public, problem)
        residual_bound = problem.loss.residual_bound
        clip_factor = self.clip_factor
        if checks.is_auto(clip_factor):
            clip_factor = CLIP_FACTOR if residual_bound is None else 1.0
            if not public.is_noisy:
                clip_factor = UNCLIPPED
        checks.positive(clip_factor=clip_factor)
        alpha = clip_factor * full_budget_noise(public)
        enough = guess.rows_for_full_steps(public, problem, alpha)
        n_blocks, share = self._blocks(public, guess, enough, noise_falls=residual_bound is None)
        batch = public.n_rows / n_blocks * (1 - share)
        return {
            "clip_factor": clip_factor,
            "max_iter": n_blocks,
            "stat_share": share,
            "learning_rate": guess.step_size(public, problem, batch, alpha),
            "quantile": 0.5 if residual_bound is None else BOUNDED_QUANTILE,
            "domain_bound": residual_bound or LARGEST_THRESHOLD * target_unit(public),
            "row_norm": guess.row_norm,
            "curvature": guess.curvature,
            "condition_number": guess.condition_number,
        }

    def _blocks(
        self, public: Public, guess: Guess, rows: float, noise_falls: bool
    ) -> tuple[int, float]:
        """Return the number of blocks, and the share of their rows that are counted.

        Enough rows are counted for the count to stand out from its noise, but at most half. Fewer
        and larger blocks are better than steps that are kept short by noise: so many short ones
        would not get far. ``rows`` is how many it takes.
        """
        noise = full_budget_noise(public) * count_ratio(public)
        counted = COUNT_TO_NOISE * noise * math.sqrt(number_of_counts(self.search, self.resolution))
        counted = max(counted, MIN_COUNTED)
        n_blocks = self.max_iter
        if checks.is_auto(n_blocks):
            most = int(public.n_rows * MAX_COUNTED_SHARE / counted)
            full = max(MIN_BLOCKS, int(public.n_rows / (rows + counted)))
            n_blocks = max(1, min(guess.n_blocks(public, 1.0, noise_falls), most, full))
        checks.count(max_iter=n_blocks)
        share = self.stat_share
        if checks.is_auto(share):
            share = max(MIN_COUNTED_SHARE, counted * n_blocks / public.n_rows)
            share = min(MAX_COUNTED_SHARE, share)
        checks.share(stat_share=share)
        return n_blocks, share

    def _check_search(self) -> None:
        checks.choice("search", self.search, SEARCHES)
        holds = is_real(self.resolution) and FINEST <= self.resolution <= 0.5
        require("resolution", self.resolution, "be a number in [2**-100, 1/2]", holds)

    def check_values(self, public: Public, problem: Problem) -> None:
        super().check_values(public, problem)
        constant_size(self.learning_rate)
        checks.positive(domain_bound=self.domain_bound)
        if not checks.is_word(self.row_norm, "private"):
            checks.positive(row_norm=self.row_norm)
        holds = is_real(self.quantile) and 0 < self.quantile <= 1
        require("quantile", self.quantile, "be a number in (0, 1]", holds)

    # ------------------------------------------------------------------ the pass

    def _cuts(self, n_rows: int) -> tuple[int, ...]:
        """Return where the shuffled rows are cut into blocks, and each block into two parts.

        The first piece, which is empty where the norm of rows is public, estimates that norm.
        """
        first = int(NORM_ROWS * n_rows) if checks.is_word(self.row_norm, "private") else 0
        cuts = [0, first]
        for t in range(self.max_iter):
            start = first + (n_rows - first) * t // self.max_iter
            stop = first + (n_rows - first) * (t + 1) // self.max_iter
            counted = math.ceil(self.stat_share * (stop - start))
            cuts += [start + min(counted, max(0, stop - start - 1)), stop]
        return tuple(cuts)

    def solve(self, oracle: Oracle) -> Solution:
        public, problem = oracle.public, oracle.problem
        cuts = self._cuts(public.n_rows)
        noise = self._pass_noise()
        row_norm = self._row_norm(oracle, cuts, noise)
        average = IterateAverage(self.averaging, self.max_iter, oracle.rng)
        size = constant_size(self.learning_rate)
        steps = size * step_rates(public, problem, self.curvature)
        point, clips = oracle.start(), []
        for t in range(self.max_iter):
            # 1. The threshold, from the first rows of the block.
            gamma = self._threshold(oracle, point, Cut(0, cuts, 2 * t + 1), noise)
            clip_norm = self.clip_factor * row_norm * gamma
            clips.append(clip_norm)
            # 2. The gradient, from the others.
            gradient = oracle.gradient(point, clip_norm, noise, Cut(0, cuts, 2 * t + 2))
            point = problem.prox(point - steps * gradient, size)
            average.add(point)
        # 3. The polish, with the median clip of the last blocks.
        clip_norm = float(np.median(clips[self.max_iter // 2 :]))
        return self._polished(oracle, average.result(), clip_norm)

    def _row_norm(self, oracle: Oracle, cuts: tuple[int, ...], noise: float) -> float:
        """Return the root mean square norm of rows; "private" estimates it on rows of its own."""
        if not checks.is_word(self.row_norm, "private"):
            return float(self.row_norm)
        limit = oracle.public.row_norm or LARGEST_NORM * expected_row_norm(oracle.public)
        rows = Cut(0, cuts, 0)
        total = noisy_count(oracle, SquaredNormSum(limit), noise, rows)
        share = total / rows.divisor(oracle.public)
        return limit * math.sqrt(min(max(share, 1e-4), 1.0))

    def _threshold(self, oracle: Oracle, point: Array, rows: Cut, noise: float) -> float:
        """Return about the ``quantile`` of the absolute residuals of these rows."""
        noise *= math.sqrt(number_of_counts(self.search, self.resolution))

        def count(limit: float) -> float:
            return noisy_count(oracle, ResidualCount(point, limit), noise, rows)

        start, stop = rows.cuts[rows.index], rows.cuts[rows.index + 1]
        candidates = thresholds(self.search, self.domain_bound, self.resolution)
        return least_threshold(self.search, candidates, self.quantile * (stop - start), count)


# ---------------------------------------------------------------------- searches by noisy counts


def thresholds(search: str, bound: float, resolution: float) -> Array:
    """Return rising candidates from about ``resolution * bound`` up to ``bound``.

    "doubling": ``delta 2**i`` for i from 0 to ``ceil(log2(1 / resolution))``, as in Algorithm 3
    (DP-STAT) of Varshney, Thakurta, Jain (2022). "binary" has four candidates per factor of 2.
    """
    fine = CANDIDATES_PER_DOUBLING if search == "binary" else 1
    doublings = math.ceil(math.log2(1 / resolution))
    return bound * 2.0 ** (np.arange(-fine * doublings, 1) / fine)


def number_of_counts(search: str, resolution: float) -> int:
    """Return the number of counts in a search, which does not depend on their answers."""
    n_thresholds = len(thresholds(search, 1.0, resolution))
    if search == "doubling":
        return n_thresholds
    return math.ceil(math.log2(n_thresholds))


def least_threshold(
    search: str, candidates: Array, enough: float, count: Callable[[float], float]
) -> float:
    """Return about the least candidate with a noisy count of ``enough``, or else the largest.

    Parameters
    ----------
    search : {"binary", "doubling"}
    candidates : array
        Rising thresholds.
    enough : float
    count : callable
        Takes a threshold and returns the noisy count of the values up to it.
    """
    if search == "doubling":
        # All are counted, or the number of releases would depend on their answers.
        counts = [count(float(candidate)) for candidate in candidates]
        reached = [index for index, number in enumerate(counts) if number >= enough]
        return float(candidates[reached[0] if reached else -1])
    # The least index with enough lies in [low, high]; the last candidate needs no count.
    low, high = 0, len(candidates) - 1
    for _ in range(math.ceil(math.log2(len(candidates)))):
        middle = min((low + high) // 2, len(candidates) - 1)
        if count(float(candidates[middle])) >= enough:
            high = max(low, middle)
        else:
            low = min(middle + 1, high)
    return float(candidates[high])
