"""Least squares from a noisy Gram matrix, and a few rounds of gradients of what is left."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from skdp._numbers import Array
from skdp.objective import Problem
from skdp.oracle import GradientSum, GramSum, Oracle, Public, ResidualSquares, Solution, unpack_gram
from skdp.solvers.base import Solver
from skdp.solvers.checks import check_count, check_positive, check_share, is_auto
from skdp.solvers.gram_defaults import (
    TARGET_UNITS,
    UNBOUNDED,
    check_columns,
    gram_row_norm,
    growth,
    penalty_hessian,
    target_unit,
)
from skdp.steps.shrinkage import bayes_step, spectrum

# Below this signal-to-noise ratio one release of everything is best.
SCARCE = 8.0
SQUARES_SHARE = 0.02
TARGET_RATIO = 0.5  # share of a target in a record's norm, next to its row


class BoostedSufficientStatistics(Solver):
    """Sufficient statistics with empirical-Bayes shrinkage, boosted by residual gradients.

    With a small budget: one release of the Gram matrix of rows and targets together, and the
    posterior mean of the coefficients given it. Otherwise the Gram matrix A of the rows, and then
    in each round the clipped gradient of what is left to explain, divided by A; from the second
    round on the clipping norm follows a private residual size.

    The shrinkage of a round (:func:`skdp.steps.shrinkage.bayes_step`) knows the noise of all
    releases and chooses its prior by the marginal likelihood of what was released, free of cost: a
    budget that shows nothing gives coefficients near zero.

    Parameters
    ----------
    rounds : int or "auto", default="auto"
        0 is the joint release; "auto" is that for small budgets, and otherwise 4.
    gram_share : float, default=0.3
        Share of the Gram matrix in the squared Gaussian-DP parameter; in (0, 1).
    row_norm : float or "auto", default="auto"
        Rows longer than this are shrunk to it before their Gram matrix is taken.
    clip_norm : float or "auto", default="auto"
        L2 bound of one record's gradient in the first round.

    References
    ----------
    Y. Wang: Revisiting Differentially Private Linear Regression. UAI 2018.
    S. Tang, S. Aydore, M. Kearns, S. Rho, A. Roth, Y. Wang, Y. Wang, Z. Wu: Improved Differentially
    Private Regression via Gradient Boosting. SaTML 2024. (Gradients of whole models; the noise
    here is calibrated exactly, and the shrinkage is ours.)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPRidge(epsilon=0.5, solver="boosted_ssp", scaling="none")
    >>> model = model.fit(scale(X), scale(y))
    >>> [release.kind for release in model.privacy_.releases]
    ['gram']
    """

    name: ClassVar[str] = "boosted_ssp"
    needs: ClassVar[frozenset[str]] = frozenset(
        {"quadratic_loss", "smooth_penalty", "unconstrained"}
    )

    def __init__(
        self,
        *,
        rounds: Any = "auto",
        gram_share: float = 0.3,
        row_norm: Any = "auto",
        clip_norm: Any = "auto",
    ) -> None:
        self.rounds = rounds
        self.gram_share = gram_share
        self.row_norm = row_norm
        self.clip_norm = clip_norm

    def automatic(self, public: Public, problem: Problem) -> dict[str, Any]:
        clip_norm = UNBOUNDED
        if public.is_noisy:
            unit = target_unit(public) * math.sqrt(public.n_outputs)
            clip_norm = 0.9 * gram_row_norm(public, 1.0, power=0.0) * unit * growth(public, 1 / 3)
        values = {
            "rounds": 4 if public.signal_to_noise > SCARCE else 0,
            "row_norm": gram_row_norm(public, 0.8),
            "clip_norm": clip_norm,
        }
        return {name: value for name, value in values.items() if is_auto(getattr(self, name))}

    def resolve(self, public: Public, problem: Problem) -> BoostedSufficientStatistics:
        resolved = super().resolve(public, problem)
        check_columns(self.name, public)
        if resolved.rounds != 0:
            check_count("rounds", resolved.rounds)
        check_share("gram_share", resolved.gram_share)
        for name in ("row_norm", "clip_norm"):
            check_positive(name, getattr(resolved, name))
        left = 1 - self.gram_share - SQUARES_SHARE * max(resolved.rounds - 1, 0)
        if left <= 0:
            raise ValueError(
                f"gram_share={self.gram_share!r} and {resolved.rounds} rounds leave nothing for "
                "the gradients."
            )
        return resolved

    def solve(self, oracle: Oracle) -> Solution:
        return self._at_once(oracle) if self.rounds == 0 else self._in_rounds(oracle)

    def _at_once(self, oracle: Oracle) -> Solution:
        public = oracle.public
        size = public.n_parameters
        # Next to rows as long as the bound; without noise there is none, nor a unit to match it.
        unit = target_unit(public)
        if oracle.is_noisy:
            unit /= TARGET_RATIO * self.row_norm
        bound = TARGET_UNITS * target_unit(public) if oracle.is_noisy else math.inf
        norm = self.row_norm * math.hypot(1.0, TARGET_RATIO)
        answer, std = oracle.with_share(GramSum(norm, unit, bound), 1.0)
        joint = unpack_gram(answer, size + public.n_outputs)
        found = spectrum(joint[:size, :size], std, penalty_hessian(oracle.problem, public))
        moments = joint[:size, size:] * unit
        return Solution(bayes_step(found, moments, std * unit / math.sqrt(2), std), 1)

    def _in_rounds(self, oracle: Oracle) -> Solution:
        public, problem = oracle.public, oracle.problem
        answer, std = oracle.with_share(GramSum(self.row_norm), self.gram_share)
        gram = unpack_gram(answer, public.n_parameters)
        found = spectrum(gram, std, penalty_hessian(problem, public))
        share = (1 - self.gram_share - SQUARES_SHARE * (self.rounds - 1)) / self.rounds
        point, clip_norm = oracle.start(), float(self.clip_norm)
        for step in range(self.rounds):
            if step > 0:
                clip_norm = min(clip_norm, self.clip_norm * self._residual_size(oracle, point))
            gradient, noise = oracle.with_share(GradientSum(point, clip_norm), share)
            push = -gradient - public.n_rows * problem.penalty_gradient(point)
            point = point + bayes_step(found, push, noise, std)
        return Solution(point, self.rounds)

    @staticmethod
    def _residual_size(oracle: Oracle, point: Array) -> float:
        """Root mean square of the residuals, in units of what targets are taken to have."""
        public = oracle.public
        unit = target_unit(public) * math.sqrt(public.n_outputs)
        bound = TARGET_UNITS * unit if oracle.is_noisy else UNBOUNDED
        squares, _ = oracle.with_share(ResidualSquares(point, bound), SQUARES_SHARE)
        if not oracle.is_noisy:
            return 1.0
        # Not below a tenth: a private figure near zero says little.
        return math.sqrt(max(float(squares[0]) / public.n_rows, 0.0)) / unit + 0.1
