"""Make one pass of clipped, noisy steps over shuffled rows (DP-SSGD)."""

import math

from skdp._numbers import is_integer, is_real, shown
from skdp.accounting import Gaussian, Shuffled
from skdp.oracle import GaussianNoise, ShuffledPass, compiled
from skdp.solvers import checks
from skdp.solvers.base import Auto, Oracle, Problem, Public, Resolved, Settings, Solution
from skdp.solvers.defaults import descent_defaults
from skdp.solvers.papers.varshney_2022.one_pass import (
    Guess,
    OnePassSolver,
    full_budget_noise,
    intercept_rate,
)
from skdp.steps import StepSize, constant_size

# The constant c in the number of blocks, c kappa ln n, which the theorem leaves open; chosen on the
# first data of `benchmarks.papers.next_to_gd`.
BLOCKS = 1.2
# Fraction of the iterates that are averaged.
AVERAGES = {"last": 0.0, "tail": 0.5}


class ShuffledSGD(OnePassSolver):
    """One pass over shuffled rows, each used once: all steps together cost as much as one.

    The rows are put in a secret random order and cut into ``max_iter`` blocks; step t follows the
    noisy mean gradient of block t, with each record's gradient clipped to ``clip_norm``. The pass
    is one release. It costs as much as one of its steps, because a record lies in one block
    (parallel composition). With ``batch_size=1`` each step uses a single record, and the secret
    order amplifies privacy (Feldman, McMillan, Talwar 2021): the smaller of both costs is charged,
    and ``privacy_.accountant`` names it, "shuffle" for the second.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of blocks. "auto" follows ``batch_size``, or else is ``1.2 kappa ln(n)``, with the
        signal-to-noise ratio of the budget in place of n if that is less.
    batch_size : int, float or None, default=None
        Rows in a block, as a number or a fraction. 1 is the paper's algorithm; more rows are
        faster and more accurate, unless amplification compensates for it, at large n and small
        epsilon. None derives it from ``max_iter``.
    learning_rate : float or "auto", default="auto"
        Step size; "auto" is ``b / (R**2 + (b - 1) curvature)``, or less if the noise is large.
    clip_norm : float or "auto", default="auto"
        L2 bound of one record's gradient.
    {curvature}
    {condition_number}
    averaging : {"last", "tail"}, default="tail"
        Which iterate is returned; "tail" is the mean of the last half.
    polish_iter : int, default=0
        Number of gradient steps over all rows that follow.
    {polish_share}

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

    clip_norm: Resolved[float]
    name = "shuffled_sgd"
    purpose = "For rows that can be read only once; prefer 'adaptive_shuffled_sgd' for regression."
    averages = tuple(AVERAGES)

    def __init__(
        self,
        *,
        max_iter: int | Auto = "auto",
        batch_size: int | float | None = None,
        learning_rate: StepSize = "auto",
        clip_norm: float | Auto = "auto",
        curvature: float | Auto = "auto",
        condition_number: float | Auto = "auto",
        averaging: str = "tail",
        polish_iter: int = 0,
        polish_share: float = 0.2,
    ) -> None:
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.curvature = curvature
        self.condition_number = condition_number
        self.averaging = averaging
        self.polish_iter = polish_iter
        self.polish_share = polish_share

    def automatic(self, public: Public, problem: Problem) -> Settings:
        guess = Guess.of(self, public, problem)
        n_blocks = self._blocks(public, guess)
        values = {
            "max_iter": n_blocks,
            # The clip of gradient descent, which grows with the cube root of signal to noise. Here
            # the noise of n_blocks answers does not average out to that of one answer.
            "clip_norm": descent_defaults(public, problem)["clip_norm"] * n_blocks ** (-1 / 6),
            "curvature": guess.curvature,
            "condition_number": guess.condition_number,
        }
        if checks.is_auto(self.learning_rate):  # otherwise a shuffled pass need not be calibrated
            values["learning_rate"] = self._size(public, problem, guess, n_blocks)
        return values

    @staticmethod
    def _size(public: Public, problem: Problem, guess: Guess, n_blocks: int) -> float:
        """Return the step size for the noise of a step, amplified if that is less."""
        alpha = full_budget_noise(public)
        one_by_one = n_blocks == public.n_rows and not public.streamed
        if alpha > 0 and not public.is_pure and one_by_one:
            alpha = public.noise_for(Shuffled(n_blocks, Gaussian(1.0)))
        return guess.step_size(public, problem, public.n_rows / n_blocks, alpha)

    def _blocks(self, public: Public, guess: Guess) -> int:
        """Return the number of blocks."""
        n_blocks = guess.n_blocks(public, BLOCKS)
        if self.batch_size is not None:
            n_blocks = max(1, public.n_rows // rows_per_block(self.batch_size, public.n_rows))
        if checks.is_auto(self.max_iter):
            return n_blocks
        checks.count(max_iter=self.max_iter)
        if self.batch_size is not None and self.max_iter != n_blocks:
            raise ValueError(
                "solver 'shuffled_sgd' takes max_iter or batch_size, as one follows from the "
                f"other; got batch_size={shown(self.batch_size)}, which makes for {n_blocks} "
                f"blocks, and max_iter={shown(self.max_iter)}. Nothing was released."
            )
        return int(self.max_iter)

    def check_values(self, public: Public, problem: Problem) -> None:
        super().check_values(public, problem)
        constant_size(self.learning_rate)
        checks.positive(clip_norm=self.clip_norm)
        checks.positive(curvature=self.curvature, condition_number=self.condition_number)

    def has_long_passes(self, public: Public) -> bool:
        # Steps on single records; larger blocks are sums like any other.
        single = self.max_iter == public.n_rows and public.n_outputs == 1 and not public.grouped
        return single and compiled.is_long(public.n_rows, 1, public.n_parameters)

    def solve(self, oracle: Oracle) -> Solution:
        noise, averaged = GaussianNoise(self._pass_noise()), AVERAGES[self.averaging]
        rate = intercept_rate(oracle.public, oracle.problem, self.curvature)
        size = constant_size(self.learning_rate)
        run = ShuffledPass(self.max_iter, size, self.clip_norm, noise, averaged, rate)
        return self._polished(oracle, oracle.ask(run), self.clip_norm)


def rows_per_block(batch_size: float, n_rows: int) -> int:
    """Turn a batch size into a number of rows."""
    if is_integer(batch_size) and batch_size >= 1:
        return min(int(batch_size), n_rows)
    if is_real(batch_size) and 0 < batch_size <= 1:
        return max(1, math.floor(float(batch_size) * n_rows))
    raise ValueError(
        "batch_size must be None, an integer, at least 1, or a fraction of the rows in (0, 1]; got "
        f"{shown(batch_size)}."
    )
