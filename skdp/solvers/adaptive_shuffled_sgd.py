"""One pass over shuffled rows with a clip that adapts to the residual (DP-AMBSSGD)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from skdp._numbers import Array, is_real, shown
from skdp.objective import Problem
from skdp.oracle import (
    Cut,
    GaussianNoise,
    NoisyStatistic,
    Oracle,
    Public,
    ResidualCount,
    Solution,
    SquaredNormSum,
)
from skdp.solvers.checks import check_choice, check_count, check_positive, is_auto
from skdp.solvers.defaults import UNCLIPPED
from skdp.solvers.one_pass import (
    Guess,
    OnePass,
    count_ratio,
    expected_row_norm,
    make_guess,
    noise_of_one,
    number_of_steps,
    positive,
    residual_unit,
    step_size,
)
from skdp.solvers.private_search import (
    SEARCHES,
    least_threshold,
    number_of_counts,
    thresholds,
)
from skdp.steps import AVERAGES, IterateAverage

FEWEST_STAT = 0.1 / 1.1  # of a block's rows: s = b / 10
MOST_STAT = 0.5
FEWEST_COUNTED = 10
LOUD = 6.0  # a count should be this many times its noise
NORM_ROWS = 0.05  # of all rows, for a private estimate of their norm
CLIP_FACTOR = 2.0
STEPS = 1.0  # for each unit of kappa ln n
FINEST = 2.0**-100  # resolution
FARTHEST = 16.0  # largest threshold, in units of a residual at the start


class AdaptiveShuffledSGD(OnePass):
    """One pass over disjoint blocks, each clipped by a threshold found on its other rows.

    The rows are shuffled and cut in ``max_iter`` blocks. Of each block, s rows find the residual
    ``gamma`` that ``quantile`` of them do not exceed, by noisy counts; the other b rows give the
    mean gradient, every record's part clipped to ``clip_factor * row_norm * gamma``, with noise in
    proportion to that clip. As the fit gets better the clip falls, and the noise with it. Both
    parts use rows of their own and no row is used twice, so every count of a search and every
    gradient may spend as if there were no other blocks: the pass costs the larger of one search
    and one gradient, not their sum.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of blocks, T. "auto" is ``kappa ln(n)``, fewer if counts would drown in noise.
    learning_rate : float or "auto", default="auto"
        Step size; "auto" is ``b / (row_norm**2 + (b - 1) curvature)``.
    stat_share : float or "auto", default="auto"
        Share of a block's rows that find the threshold, in (0, 1). "auto" is 1/11, the paper's
        ``s = b / 10``, or more if counts would drown in noise, up to 1/2.
    search : {"binary", "doubling"}, default="binary"
        How the threshold is found: by a noisy binary search over fine candidates, or, as printed
        in the paper, by counts at all doublings of the least candidate. Each count has the same
        noise, and as many are asked whatever their answers are.
    resolution : float, default=2**-20
        Least candidate, as a share of the largest, in [2**-100, 1/2].
    quantile : float, default=0.5
        Share of the s rows that the threshold should hold, in (0, 1]. The paper's is 1; the
        median is told from noise with the fewest rows.
    clip_factor : float or "auto", default="auto"
        Clip in units of ``row_norm * gamma``. "auto" is 2, or 1 where the loss bounds residuals.
        The paper's is ``ln(n)**a``, with a = 1/2 for Gaussian tails: it makes clipping improbable,
        at the price of more noise.
    domain_bound : float or "auto", default="auto"
        Largest candidate, in the unit of the target.
    row_norm : float, "private" or "auto", default="auto"
        Root of the mean squared norm of rows, with the constant feature. "auto" expects columns of
        unit size. "private" estimates it on 5 per cent of the rows, which are then used for nothing
        else, so that it costs nothing beside the pass.
    curvature : float or "auto", default="auto"
        Largest eigenvalue of the mean loss's second derivative: a public guess.
    kappa : float or "auto", default="auto"
        Its condition number: a public guess.
    averaging : {"last", "tail", "random"}, default="tail"
        Which iterate is returned; "tail" is the mean of the last half.
    polish_iter : int, default=0
        Gradient steps over all rows from there, with the median clip of the last half.
    polish_share : float, default=0.2
        Share of the squared budget that they get, in (0, 1).

    Notes
    -----
    Corrections to the printed algorithm: index sets are half-open (as printed, one record of every
    block is used for the threshold and for the gradient); all counts of a search are charged,
    one more than the proof composes; the two parts of a block are charged their maximum.

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
    >>> model.score(X, y) > 0.98
    True
    """

    name: ClassVar[str] = "adaptive_shuffled_sgd"
    averages: ClassVar[tuple[str, ...]] = AVERAGES

    def __init__(
        self,
        *,
        max_iter: Any = "auto",
        learning_rate: Any = "auto",
        stat_share: Any = "auto",
        search: str = "binary",
        resolution: float = 2.0**-20,
        quantile: float = 0.5,
        clip_factor: Any = "auto",
        domain_bound: Any = "auto",
        row_norm: Any = "auto",
        curvature: Any = "auto",
        kappa: Any = "auto",
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
        self.kappa = kappa
        self.averaging = averaging
        self.polish_iter = polish_iter
        self.polish_share = polish_share

    # ------------------------------------------------------------------ public facts

    def automatic(self, public: Public, problem: Problem) -> dict[str, Any]:
        self._check_search()
        guess = make_guess(public, problem, self.curvature, self.kappa, self.row_norm)
        n_steps, share = self._blocks(public, guess)
        batch = public.n_rows / n_steps * (1 - share)
        factor = CLIP_FACTOR if problem.loss.residual_bound is None else 1.0
        if not public.is_noisy:
            factor = UNCLIPPED
        if not is_auto(self.clip_factor):
            factor = positive("clip_factor", self.clip_factor)
        loud = factor * noise_of_one(public)
        values = {
            "clip_factor": factor,
            "max_iter": n_steps,
            "stat_share": share,
            "learning_rate": step_size(public, problem, guess, batch, loud),
            "domain_bound": FARTHEST * residual_unit(public, problem),
            "row_norm": guess.row_norm,
            "curvature": guess.curvature,
            "kappa": guess.kappa,
        }
        if problem.loss.residual_bound is not None:
            values["domain_bound"] = problem.loss.residual_bound
        return {name: value for name, value in values.items() if is_auto(getattr(self, name))}

    def _blocks(self, public: Public, guess: Guess) -> tuple[int, float]:
        """Return the number of blocks, and the share of their rows that find the threshold.

        So many rows count that the count stands out from its noise, if that leaves half of them.
        """
        noise = noise_of_one(public) * count_ratio(public)
        loud = LOUD * noise * math.sqrt(number_of_counts(self.search, self.resolution))
        loud = max(loud, FEWEST_COUNTED)
        if is_auto(self.max_iter):
            n_steps = number_of_steps(public, guess, STEPS)
            n_steps = max(1, min(n_steps, int(public.n_rows * MOST_STAT / loud)))
        else:
            check_count("max_iter", self.max_iter)
            n_steps = self.max_iter
        if not is_auto(self.stat_share):
            return n_steps, _share("stat_share", self.stat_share)
        return n_steps, min(MOST_STAT, max(FEWEST_STAT, loud * n_steps / public.n_rows))

    def _check_search(self) -> None:
        check_choice("search", self.search, SEARCHES)
        if not (is_real(self.resolution) and FINEST <= self.resolution <= 0.5):
            raise ValueError(
                f"resolution must be a number in [2**-100, 1/2]; got {shown(self.resolution)}."
            )

    def _check(self) -> None:
        for name in ("learning_rate", "clip_factor", "domain_bound", "curvature", "kappa"):
            check_positive(name, getattr(self, name))
        if self.row_norm != "private":
            check_positive("row_norm", self.row_norm)
        _share("stat_share", self.stat_share)
        _share("quantile", self.quantile, whole=True)

    # ------------------------------------------------------------------ the pass

    def _cuts(self, n_rows: int) -> tuple[int, ...]:
        """Places at which the shuffled rows are cut: in blocks, and each of them in two.

        A first piece is for the norm of rows; it is empty where that is public.
        """
        first = int(NORM_ROWS * n_rows) if self.row_norm == "private" else 0
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
        point, clips = oracle.start(), []
        for t in range(self.max_iter):
            # 1. The threshold, on the first rows of the block.
            gamma = self._threshold(oracle, point, Cut(0, cuts, 2 * t + 1), noise)
            clip_norm = self.clip_factor * row_norm * gamma
            clips.append(clip_norm)
            # 2. The gradient, on the others.
            gradient = oracle.gradient(point, clip_norm, noise, Cut(0, cuts, 2 * t + 2))
            point = problem.prox(point - self.learning_rate * gradient, self.learning_rate)
            average.add(point)
        # 3. The polish, with the clip that the last blocks came to.
        clip_norm = float(np.median(clips[self.max_iter // 2 :]))
        return self._polished(oracle, average.result(), clip_norm)

    def _row_norm(self, oracle: Oracle, cuts: tuple[int, ...], noise: float) -> float:
        """Root of the mean squared norm of rows; a private one on rows of its own."""
        if self.row_norm != "private":
            return float(self.row_norm)
        # Rows are mostly no longer than twice what unit columns give.
        limit = oracle.public.row_norm or 2.0 * expected_row_norm(oracle.public)
        rows = Cut(0, cuts, 0)
        hidden = GaussianNoise(noise * count_ratio(oracle.public))
        found = float(oracle.ask(NoisyStatistic(SquaredNormSum(limit), hidden, rows))[0])
        share = found / rows.divisor(oracle.public)
        return limit * math.sqrt(min(max(share, 1e-4), 1.0))

    def _threshold(self, oracle: Oracle, point: Array, rows: Cut, noise: float) -> float:
        """Return a residual that about ``quantile`` of the rows do not exceed."""
        n_counts = number_of_counts(self.search, self.resolution)
        hidden = GaussianNoise(noise * count_ratio(oracle.public) * math.sqrt(n_counts))

        def count(limit: float) -> float:
            return float(oracle.ask(NoisyStatistic(ResidualCount(point, limit), hidden, rows))[0])

        start, stop = rows.cuts[rows.index], rows.cuts[rows.index + 1]
        candidates = thresholds(self.search, self.domain_bound, self.resolution)
        return least_threshold(self.search, candidates, self.quantile * (stop - start), count)


def _share(name: str, value: object, whole: bool = False) -> float:
    """Return a share above 0 and below 1, or 1 itself if ``whole``; or raise ValueError."""
    if not (is_real(value) and (0 < float(value) < 1 or (whole and float(value) == 1))):
        most = "at most" if whole else "below"
        raise ValueError(f"{name} must be a share above 0, {most} 1; got {shown(value)}.")
    return float(value)
