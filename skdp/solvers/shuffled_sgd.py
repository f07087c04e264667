"""One pass of clipped, noisy steps over shuffled rows (DP-SSGD)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from skdp._numbers import is_integer, is_real, shown
from skdp.accounting import Gaussian, Shuffled
from skdp.objective import Problem
from skdp.oracle import GaussianNoise, Oracle, Public, ShuffledPass, Solution
from skdp.solvers.checks import check_count, check_positive, is_auto
from skdp.solvers.defaults import descent_defaults
from skdp.solvers.one_pass import (
    Guess,
    OnePass,
    make_guess,
    noise_of_one,
    number_of_steps,
    step_size,
)

STEPS = 0.5  # for each unit of kappa ln n
AVERAGES = {"last": 0.0, "tail": 0.5}


class ShuffledSGD(OnePass):
    """One pass over shuffled rows, each used once: the price of one release for all steps.

    The rows are put in a secret random order and cut in ``max_iter`` blocks; step t goes along the
    noisy mean gradient of block t, every record's part clipped to ``clip_norm``. The pass is one
    release. It costs what one of its steps costs, as a record lies in one block (parallel
    composition). With ``batch_size=1`` every step is about a single record, and the secret order
    amplifies privacy (Feldman, McMillan, Talwar 2021): the smaller of both prices is charged, and
    ``privacy_.accountant`` says which, "shuffle" for the second.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of blocks. "auto" follows ``batch_size``, or else is ``kappa ln(n) / 2``.
    batch_size : int, float or None, default=None
        Rows of a block, as a number or a fraction. 1 is the paper's algorithm; more rows are
        more accurate and quicker, unless amplification makes up for it, at large n and small
        epsilon. None leaves it to ``max_iter``.
    learning_rate : float or "auto", default="auto"
        Step size; "auto" is the least of ``b / (R**2 + (b - 1) curvature)`` and what noise allows.
    clip_norm : float or "auto", default="auto"
        L2 bound of one record's gradient.
    curvature : float or "auto", default="auto"
        Largest eigenvalue of the mean loss's second derivative: a public guess.
    kappa : float or "auto", default="auto"
        Its condition number: a public guess.
    averaging : {"last", "tail"}, default="tail"
        Which iterate is returned; "tail" is the mean of the last half.
    polish_iter : int, default=0
        Gradient steps over all rows from there.
    polish_share : float, default=0.2
        Share of the squared budget that they get, in (0, 1).

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
    >>> model.score(X, y) > 0.9
    True
    >>> solver = ShuffledSGD(batch_size=1)
    >>> DPLinearRegression(solver=solver, scaling="none").plan(20000, 5).accountant
    'shuffle'
    """

    name: ClassVar[str] = "shuffled_sgd"
    averages: ClassVar[tuple[str, ...]] = tuple(AVERAGES)

    def __init__(
        self,
        *,
        max_iter: Any = "auto",
        batch_size: int | float | None = None,
        learning_rate: Any = "auto",
        clip_norm: Any = "auto",
        curvature: Any = "auto",
        kappa: Any = "auto",
        averaging: str = "tail",
        polish_iter: int = 0,
        polish_share: float = 0.2,
    ) -> None:
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.curvature = curvature
        self.kappa = kappa
        self.averaging = averaging
        self.polish_iter = polish_iter
        self.polish_share = polish_share

    def automatic(self, public: Public, problem: Problem) -> dict[str, Any]:
        guess = make_guess(public, problem, self.curvature, self.kappa, "auto")
        n_steps = self._blocks(public, guess)
        # To price a shuffled pass takes a while: not where the step size is given.
        given = not is_auto(self.learning_rate)
        values = {
            "max_iter": n_steps,
            "learning_rate": given or self._size(public, problem, guess, n_steps),
            # That of gradient descent, which grows with the cube root of signal to noise. Here the
            # noise of n_steps answers does not shrink to that of one.
            "clip_norm": descent_defaults(public, problem)["clip_norm"] * n_steps ** (-1 / 6),
            "curvature": guess.curvature,
            "kappa": guess.kappa,
        }
        return {name: value for name, value in values.items() if is_auto(getattr(self, name))}

    @staticmethod
    def _size(public: Public, problem: Problem, guess: Guess, n_steps: int) -> float:
        """Return the step size that the noise of a step bears, amplified where that is cheaper."""
        alpha = noise_of_one(public)
        one_by_one = n_steps == public.n_rows and not public.streamed
        if alpha > 0 and not public.is_pure and one_by_one:
            alpha = public.noise_for(Shuffled(n_steps, Gaussian(1.0)))
        return step_size(public, problem, guess, public.n_rows / n_steps, alpha)

    def _blocks(self, public: Public, guess: Guess) -> int:
        """Return the number of blocks."""
        if not is_auto(self.max_iter):
            check_count("max_iter", self.max_iter)
            if self.batch_size is not None:
                raise ValueError(
                    "solver 'shuffled_sgd' takes max_iter or batch_size, as one follows from the "
                    f"other; got max_iter={shown(self.max_iter)} and "
                    f"batch_size={shown(self.batch_size)}."
                )
            return int(self.max_iter)
        if self.batch_size is None:
            return number_of_steps(public, guess, STEPS)
        return max(1, public.n_rows // block_rows(self.batch_size, public.n_rows))

    def _check(self) -> None:
        for name in ("learning_rate", "clip_norm", "curvature", "kappa"):
            check_positive(name, getattr(self, name))

    def solve(self, oracle: Oracle) -> Solution:
        run = ShuffledPass(
            self.max_iter,
            self.learning_rate,
            self.clip_norm,
            GaussianNoise(self._pass_noise()),
            AVERAGES[self.averaging],
        )
        return self._polished(oracle, oracle.ask(run), self.clip_norm)


def block_rows(batch_size: Any, n_rows: int) -> int:
    """Turn a batch size into a number of rows."""
    if is_integer(batch_size) and batch_size >= 1:
        return min(int(batch_size), n_rows)
    if is_real(batch_size) and 0 < batch_size <= 1:
        return max(1, math.floor(float(batch_size) * n_rows))
    raise ValueError(
        "batch_size must be None, an integer, at least 1, or a fraction of the rows in (0, 1]; got "
        f"{shown(batch_size)}."
    )
