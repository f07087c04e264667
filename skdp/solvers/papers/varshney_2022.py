"""Varshney, Thakurta, Jain (COLT 2022): linear regression in one pass over shuffled rows.

For sub-Gaussian rows the paper proves that one pass of noisy steps reaches an excess of the order
of the lower bound, up to the condition number and logarithms (Thm 3.2), and, where the clipping
norm follows the residuals, one that vanishes with the noise of the targets (Thm 3.7).

"shuffled_sgd" is DP-SSGD, with a fixed clipping norm. "adaptive_shuffled_sgd" is DP-AMBSSGD, which
finds the clipping norm of each block by noisy counts on other rows of the block. By default the
number of blocks is about ``kappa ln n``, with a condition number that is guessed for standardised
columns, and the mean of the last half of the iterates is returned. The paper's single records,
amplified by shuffling, are ``batch_size=1``.

Worth using: where rows can be read only once. ``solver="auto"`` chooses "adaptive_shuffled_sgd" for
rows that arrive in blocks. For rows in memory "gd" is better.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self, cast

import numpy as np

from skdp._numbers import Array, is_real, require, shown
from skdp._oracle import Cut, GaussianNoise, ResidualCount, ShuffledPass
from skdp.accounting import Gaussian, Shuffled
from skdp.solvers import base, checks, descent
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution, Solver
from skdp.solvers.defaults import UNCLIPPED, descent_defaults, expected_row_norm, target_unit
from skdp.steps import AVERAGES, IterateAverage, constant_size

# Expected curvature along the steepest direction of standardised, somewhat correlated columns, in
# units of the curvature of the loss. A guess. See docs/how_to/large_data.rst.
STEEPEST = 2.5
# Fewest blocks that are taken by default.
MIN_BLOCKS = 8
# Signal-to-noise ratio from which on more steps gain more than their noise loses, if curvature is
# often below the typical one. So do longer clips, if residuals are skewed.
AMPLE_RATIO = 500.0


@base.hyperparameters
class OnePassSolver(Solver):
    """Base of the solvers that read each row once."""

    one_pass = True
    averages: ClassVar[tuple[str, ...]]

    max_iter: Resolved[int] = AUTO
    learning_rate: base.StepSize = "auto"
    curvature: Resolved[float] = AUTO
    condition_number: Resolved[float] = AUTO
    averaging: str = "tail"

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.choice("averaging", self.averaging, self.averages)
        constant_size(self.learning_rate)
        if self.max_iter > public.n_rows:
            raise ValueError(
                f"max_iter must be at most the number of rows, {public.n_rows}, as every block "
                f"needs one, got {shown(self.max_iter)}."
            )


def intercept_rate(public: Public, problem: Problem, curvature: float) -> float:
    """Return the step of the intercept, next to that of the columns, of the given curvature.

    The curvature along the intercept is that of the loss times the square of its feature, which may
    be larger than that along any direction of the columns. Steps that are as much shorter there
    make a problem with the condition number of the columns. The requests stay the same.
    """
    if not public.has_intercept:
        return 1.0
    return min(1.0, curvature / (problem.loss.typical_curvature * public.intercept_size**2))


def step_rates(public: Public, problem: Problem, curvature: float) -> Array:
    """Return factors on the steps of all parameters: 1, and `intercept_rate`, a column."""
    rates = np.ones((public.n_parameters, 1))
    if public.has_intercept:
        rates[-1] = intercept_rate(public, problem, curvature)
    return rates


def full_budget_noise(public: Public) -> float:
    """Return the noise multiplier of one gradient with the whole budget, 0 without noise."""
    return 1 / public.gradient_mu if public.is_noisy else 0.0


@dataclass(frozen=True)
class Guess:
    """Public guesses, which determine the sizes and the number of steps.

    Attributes
    ----------
    public : Public
    problem : Problem
    curvature : float
        Curvature of the mean loss along its steepest direction.
    kappa : float
        Its ratio to the curvature along the flattest direction.
    """

    public: Public
    problem: Problem
    curvature: float
    kappa: float

    @classmethod
    def of(cls, solver: OnePassSolver, public: Public, problem: Problem) -> Self:
        """Check a solver's guesses, and put values for standardised columns in place of "auto".

        They are those of the columns: :func:`intercept_rate` shortens the steps of the intercept.
        """
        scale = 1.0
        if public.data_norm is not None:
            scale = min(1.0, public.data_norm**2 / public.n_features)
        curvature, kappa = solver.curvature, solver.condition_number
        if checks.is_auto(curvature):
            steepest = min(STEEPEST, public.n_features) * scale
            curvature = problem.loss.typical_curvature * steepest + problem.strong_convexity
        checks.positive(curvature=curvature)
        if checks.is_auto(kappa):
            # Curvature that varies is expected to be half of the typical one in the mean over rows.
            varies = not problem.loss.quadratic and public.signal_to_noise >= AMPLE_RATIO
            flattest = problem.loss.typical_curvature / (1 + varies) * scale
            flattest += problem.strong_convexity
            kappa = max(1.0, curvature / flattest)
        checks.positive(condition_number=kappa)
        return cls(public, problem, float(curvature), float(kappa))

    @property
    def row(self) -> float:
        """Curvature of the loss of one record, whose row has the expected norm."""
        return self.problem.loss.typical_curvature * expected_row_norm(self.public) ** 2

    @property
    def noise(self) -> float:
        """Rows of a block, squared, at which noise of multiplier 1 limits a step to size 1."""
        return self.row * self.kappa * math.prod(self.public.shape)

    def n_blocks(self, unit: float, noise_falls: bool = False) -> int:
        """Return ``unit * kappa * ln n``, at most the number of rows, theory leaves ``unit`` open.

        Unless ``noise_falls`` with the fit, the signal-to-noise ratio replaces a larger n.
        """
        public, forgotten = self.public, float(self.public.n_rows)
        if public.is_noisy and not noise_falls:
            forgotten = min(forgotten, public.signal_to_noise)
        wanted = max(MIN_BLOCKS, math.ceil(unit * self.kappa * math.log(max(forgotten, 2.0))))
        return min(wanted, public.n_rows)

    def rows_for_full_steps(self, alpha: float) -> float:
        """Return the rows of a block from which on stability limits a step, and not its noise.

        That is where both limits of :meth:`step_size` agree: a root of a quadratic equation.
        """
        middle, noise = self.row - self.curvature, self.noise * alpha**2
        return (math.sqrt(middle**2 + 4 * self.curvature * noise) - middle) / (2 * self.curvature)

    def step_size(self, batch: float, alpha: float) -> float:
        """Return the size of a step on ``batch`` rows, with noise multiplier ``alpha``."""
        batch = max(1.0, batch)
        longest = batch / (self.row + (batch - 1) * self.curvature)
        return longest if alpha == 0 else min(longest, batch**2 / (self.noise * alpha**2))


# The constant c in the number of blocks, c kappa ln n, which the theorem leaves open. Chosen on the
# first data of `benchmarks.papers.next_to_gd`.
BLOCKS = 1.2
# Fraction of the iterates that are averaged.
AVERAGED_SHARES = {"last": 0.0, "tail": 0.5}


@base.hyperparameters
class ShuffledSGD(OnePassSolver):
    """One pass over shuffled rows, each used once, so that all steps cost as much as one step.

    The rows are put in a secret random order and cut into ``max_iter`` blocks. Step t follows the
    noisy mean gradient of block t, with each record's gradient clipped to ``clip_norm``. The pass
    costs as much as one of its steps, because a record lies in one block (parallel composition).
    With ``batch_size=1`` each step uses a single record, and the secret order amplifies privacy
    (Feldman, McMillan, Talwar 2021): the smaller of both costs is charged, and
    ``privacy_.accountant`` names it, "shuffle" for the second. That pass is one release. Streams,
    groups, offsets and several targets have no amplification.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of blocks. "auto" follows ``batch_size``, or else is ``1.2 kappa ln(n)``, with the
        signal-to-noise ratio of the budget in place of n if that is less.
    batch_size : int, float or None, default=None
        Rows in a block, as a number or a fraction. 1 is the paper's algorithm. More rows are faster
        and more accurate, unless amplification compensates for it, at large n and small epsilon.
        None derives it from ``max_iter``.
    learning_rate : float or "auto", default="auto"
        Step size. "auto" is ``b / (R**2 + (b - 1) curvature)``, or less if the noise is large.
    clip_norm : float or "auto", default="auto"
        L2 bound of one record's gradient.
    {curvature}
    {condition_number}
    averaging : {"last", "tail"}, default="tail"
        Which iterate is returned. "tail" is the mean of the last half.

    References
    ----------
    P. Varshney, A. Thakurta, P. Jain: (Nearly) Optimal Private Linear Regression via Adaptive
    Clipping. COLT 2022.
    V. Feldman, A. McMillan, K. Talwar: Hiding Among the Clones. FOCS 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLinearRegression
    >>> from skdp.solvers import ShuffledSGD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20000, 5))
    >>> y = X @ np.array([1.0, 0.5, 0.0, 0.0, -1.0]) + 0.1 * rng.standard_normal(20000)
    >>> model = DPLinearRegression(solver="shuffled_sgd").fit(X, y)
    >>> model.score(X, y) > 0.9  # generated rows: an exact score is fine
    True
    >>> solver = ShuffledSGD(batch_size=1)
    >>> DPLinearRegression(solver=solver, scaling="none").plan(20000, 5).accountant
    'shuffle'
    """

    name = "shuffled_sgd"
    paper = "Varshney, Thakurta, Jain (2022)"
    algorithms = (("DP-SSGD", {}),)
    purpose = "For rows that are read once. Median excess at epsilon 1: 3.5 times that of 'gd'."
    averages = tuple(AVERAGED_SHARES)

    batch_size: int | float | None = None
    clip_norm: Resolved[float] = AUTO

    def automatic(self, public: Public, problem: Problem) -> Settings:
        guess = Guess.of(self, public, problem)
        n_blocks = self._blocks(public, guess)
        values = {
            "max_iter": n_blocks,
            # The clip of gradient descent, which grows with the cube root of signal to noise. Here
            # the noise of n_blocks answers does not average out to that of one answer.
            "clip_norm": descent_defaults(public, problem)["clip_norm"] * n_blocks ** (-1 / 6),
            "curvature": guess.curvature,
            "condition_number": guess.kappa,
        }
        if checks.is_auto(self.learning_rate):  # otherwise a shuffled pass need not be calibrated
            values["learning_rate"] = self._size(public, guess, n_blocks)
        return values

    @staticmethod
    def _size(public: Public, guess: Guess, n_blocks: int) -> float:
        """Return the step size for the noise of a step, amplified if that is less."""
        alpha = full_budget_noise(public)
        one_by_one = n_blocks == public.n_rows and ShuffledPass.serves(public)
        if alpha > 0 and not public.is_pure and one_by_one:
            alpha = public.noise_for(Shuffled(n_blocks, Gaussian(1.0)))
        return guess.step_size(public.n_rows / n_blocks, alpha)

    def _blocks(self, public: Public, guess: Guess) -> int:
        """Return the number of blocks."""
        n_blocks = guess.n_blocks(BLOCKS)
        if self.batch_size is not None:
            n_blocks = public.n_rows // descent.batch_rows(self.batch_size, public.n_rows)
        if checks.is_auto(self.max_iter):
            return n_blocks
        checks.count(max_iter=self.max_iter)
        if self.batch_size is not None and self.max_iter != n_blocks:
            raise ValueError(
                "solver 'shuffled_sgd': max_iter and batch_size follow from each other, got "
                f"max_iter={shown(self.max_iter)} and batch_size={shown(self.batch_size)}."
            )
        return int(self.max_iter)

    def check_values(self, public: Public, problem: Problem) -> None:
        super().check_values(public, problem)
        checks.positive(clip_norm=self.clip_norm)

    def solve(self, oracle: Oracle) -> Solution:
        public, problem, n_steps = oracle.public, oracle.problem, self.max_iter
        size, averaged = constant_size(self.learning_rate), AVERAGED_SHARES[self.averaging]
        if n_steps == public.n_rows and ShuffledPass.serves(public):
            rate = intercept_rate(public, problem, self.curvature)
            run = ShuffledPass(size, self.clip_norm, GaussianNoise(1.0), averaged, rate)
            return Solution(oracle.request(run), n_steps)
        average = IterateAverage("tail", n_steps, oracle.rng, averaged)
        rates = step_rates(public, problem, self.curvature)
        path = descent.Proximal(problem, oracle.start(), average, rates=rates)
        cuts = (public.n_rows * t // n_steps for t in range(n_steps + 1))
        batches = Cut.blocks(cuts, once=True)
        steps = descent.schedule([size] * n_steps, self.clip_norm, [1.0] * n_steps, batches)
        return Solution(descent.descend(oracle, path, steps), n_steps)


# Least and largest share of a block's rows that are counted. The paper counts s = b / 10 rows.
MIN_COUNTED_SHARE, MAX_COUNTED_SHARE = 0.1 / 1.1, 0.5
# Candidates for a threshold over the largest one: four per factor of 2, over 20 factors.
CANDIDATES = 2.0 ** (np.arange(-80, 1) / 4)
N_COUNTS = math.ceil(math.log2(len(CANDIDATES)))  # does not depend on their answers
# The largest candidate, in the targets' unit, where the loss does not bound residuals.
LARGEST_RESIDUAL = 16.0


@base.hyperparameters
class AdaptiveShuffledSGD(OnePassSolver):
    """One pass over disjoint blocks. Some rows of a block find the clipping norm for the others.

    The rows are shuffled and cut into ``max_iter`` blocks. In each block, noisy counts over s rows
    find the ``quantile`` gamma of their absolute residuals. The other b rows give the mean
    gradient, with each record's gradient clipped to ``clip_factor * gamma`` times the expected norm
    of a row, and noise in proportion to that. As the fit improves the norm falls, and the noise
    with it. The two parts have different rows and no row is used twice, so every search and every
    gradient may spend as if there were no others: the pass costs the larger of one search and one
    gradient, not their sum.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of blocks, T. "auto" is ``kappa ln(n)``, or fewer if counts were too noisy. Where the
        loss bounds residuals n is at most the signal-to-noise ratio of the budget.
    learning_rate : float or "auto", default="auto"
        Step size. "auto" is ``b / (R**2 + (b - 1) curvature)``.
    stat_share : float or "auto", default="auto"
        Share of a block's rows that are counted, in (0, 1). "auto" is 1/11, the paper's
        ``s = b / 10``, or more if counts were too noisy, up to 1/2.
    quantile : float or "auto", default="auto"
        Share of the s rows with residuals up to gamma, in (0, 1]. The paper uses 1. "auto" is the
        median, which requires the fewest rows to stand out from the noise, or 0.9 where the loss
        bounds residuals: those of a rare class are large, and no outliers.
    clip_factor : float or "auto", default="auto"
        Clip in units of gamma times the expected norm of a row. "auto" is 2, or more with a log
        link and a large budget, or 1 where the loss bounds residuals. The paper uses ``ln(n)**a``,
        with a = 1/2 for Gaussian tails, which makes clipping improbable and adds more noise.
    {curvature}
    {condition_number}
    averaging : {"last", "tail", "random"}, default="tail"
        Which iterate is returned. "tail" is the mean of the last half.

    Notes
    -----
    Corrections to the printed algorithm: index sets are half-open (as printed, one record of every
    block is used for the threshold and for the gradient). A binary search takes the place of counts
    at all doublings, and needs fewer of them. All of its counts are charged. Of the two parts of a
    block the maximum is charged.

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

    name = "adaptive_shuffled_sgd"
    paper = "Varshney, Thakurta, Jain (2022)"
    algorithms = (("DP-AMBSSGD", {}),)
    purpose = "For rows that are read once. Median excess at epsilon 1: 4.3 times that of 'gd'."
    averages = AVERAGES

    stat_share: Resolved[float] = AUTO
    quantile: Resolved[float] = AUTO
    clip_factor: Resolved[float] = AUTO

    # ------------------------------------------------------------------ public facts

    def automatic(self, public: Public, problem: Problem) -> Settings:
        guess = Guess.of(self, public, problem)
        residual_bound = problem.loss.residual_bound
        clip_factor = self.clip_factor
        if checks.is_auto(clip_factor):
            clip_factor = 2.0 if residual_bound is None else 1.0
            if problem.loss.link == "log":  # whose residuals are skewed
                clip_factor *= max(1.0, public.signal_to_noise / AMPLE_RATIO) ** (1 / 3)
            if not public.is_noisy:
                clip_factor = UNCLIPPED
        checks.positive(clip_factor=clip_factor)
        alpha = clip_factor * full_budget_noise(public)
        enough = guess.rows_for_full_steps(alpha)
        n_blocks, share = self._blocks(public, guess, enough, noise_falls=residual_bound is None)
        batch = public.n_rows / n_blocks * (1 - share)
        return {
            "clip_factor": clip_factor,
            "max_iter": n_blocks,
            "stat_share": share,
            "learning_rate": guess.step_size(batch, alpha),
            # 0.9 was chosen on the first data of `benchmarks.papers.next_to_gd`.
            "quantile": 0.5 if residual_bound is None else 0.9,
            "curvature": guess.curvature,
            "condition_number": guess.kappa,
        }

    def _blocks(
        self, public: Public, guess: Guess, rows: float, noise_falls: bool
    ) -> tuple[int, float]:
        """Return the number of blocks, and the share of their rows that are counted.

        Enough rows are counted for the count to stand out from its noise, but at most half. Fewer
        and larger blocks are better than steps that are kept short by noise: so many short ones
        would not get far. ``rows`` is how many it takes.
        """
        noise = full_budget_noise(public) * descent.count_ratio(public)
        # At least 10 rows, and 6 times the noise of a count.
        counted = 6.0 * noise * math.sqrt(N_COUNTS)
        counted = max(counted, 10)
        n_blocks = self.max_iter
        if checks.is_auto(n_blocks):
            most = int(public.n_rows * MAX_COUNTED_SHARE / counted)
            full = max(MIN_BLOCKS, int(public.n_rows / (rows + counted)))
            n_blocks = max(1, min(guess.n_blocks(1.0, noise_falls), most, full))
        checks.count(max_iter=n_blocks)
        share = self.stat_share
        if checks.is_auto(share):
            share = max(MIN_COUNTED_SHARE, counted * n_blocks / public.n_rows)
            share = min(MAX_COUNTED_SHARE, share)
        checks.share(stat_share=share)
        return n_blocks, share

    def check_values(self, public: Public, problem: Problem) -> None:
        super().check_values(public, problem)
        is_valid = is_real(self.quantile) and 0 < self.quantile <= 1
        require("quantile", self.quantile, "be a number in (0, 1]", is_valid)

    # ------------------------------------------------------------------ the pass

    def _cuts(self, n_rows: int) -> tuple[int, ...]:
        """Return where the shuffled rows are cut into blocks, and each block into two parts."""
        cuts = [0]
        for t in range(self.max_iter):
            start, stop = n_rows * t // self.max_iter, n_rows * (t + 1) // self.max_iter
            counted = math.ceil(self.stat_share * (stop - start))
            cuts += [start + min(counted, max(0, stop - start - 1)), stop]
        return tuple(cuts)

    def solve(self, oracle: Oracle) -> Solution:
        public, problem = oracle.public, oracle.problem
        n_steps, cuts = self.max_iter, self._cuts(public.n_rows)
        average = IterateAverage(self.averaging, n_steps, oracle.rng)
        rates = step_rates(public, problem, self.curvature)
        path = QuantileClip(descent.Proximal(problem, oracle.start(), average, rates=rates), self)
        # Gradients are on the second part of each block. The first gives their clipping norm.
        batches = Cut.blocks(cuts)[1::2]
        sizes = [constant_size(self.learning_rate)] * n_steps
        run = descent.schedule(sizes, math.nan, [1.0] * n_steps, batches)
        return Solution(descent.descend(oracle, path, run), n_steps)


class QuantileClip(descent.Wrapper):
    """A path whose clipping norm follows a quantile of residuals on other rows of the block."""

    def __init__(self, path: descent.Path, solver: AdaptiveShuffledSGD) -> None:
        super().__init__(path)
        self._solver = solver

    def query(self, oracle: Oracle, step: descent.Step) -> Array:
        solver, public, point = self._solver, oracle.public, self.at(step)
        block = cast("Cut", step.batch)
        rows = Cut(block.cuts, block.index - 1)
        noise = step.noise * math.sqrt(N_COUNTS)

        def count(limit: float) -> float:
            return descent.noisy_count(oracle, ResidualCount(point, limit), noise, rows)

        start, stop = rows.cuts[rows.index], rows.cuts[rows.index + 1]
        enough = solver.quantile * (stop - start) * public.weighted_share
        largest = oracle.problem.loss.residual_bound or LARGEST_RESIDUAL * target_unit(public)
        gamma = least_threshold(largest * CANDIDATES, enough, count)
        clip_norm = solver.clip_factor * expected_row_norm(public) * gamma
        return super().query(oracle, step._replace(clip_norm=clip_norm))


def least_threshold(candidates: Array, enough: float, count: Callable[[float], float]) -> float:
    """Return about the least candidate with a noisy count of ``enough``, or else the largest.

    Parameters
    ----------
    candidates : array
        Rising thresholds.
    enough : float
    count : callable
        Returns for a threshold the noisy count of the values up to it.
    """
    # The least index with enough lies in [low, high]. The last candidate needs no count.
    low, high = 0, len(candidates) - 1
    for _ in range(N_COUNTS):
        middle = min((low + high) // 2, len(candidates) - 1)
        if count(float(candidates[middle])) >= enough:
            high = max(low, middle)
        else:
            low = min(middle + 1, high)
    return float(candidates[high])
