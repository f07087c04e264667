"""A noisy Gram matrix first, then a dozen gradient steps in coordinates where it is round."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from skdp.objective import Problem
from skdp.oracle import (
    Coordinates,
    GramSum,
    Oracle,
    Public,
    ShrunkGradientSum,
    Solution,
    unpack_gram,
)
from skdp.solvers.base import Solver
from skdp.solvers.checks import check_count, check_interval, check_positive, check_share, is_auto
from skdp.solvers.gram_defaults import (
    UNBOUNDED,
    check_columns,
    gram_row_norm,
    growth,
    penalty_hessian,
    target_unit,
)
from skdp.steps.shrinkage import spectrum

STEPS, STEPS_WITHOUT_NOISE = 12, 300
# Steps of one over the curvature stay stable, with momentum 1/2, up to three times that curvature.
STABLE = 2.9


class Whitened(Solver):
    """Gradient descent in coordinates that a private Gram matrix makes round: few steps suffice.

    1. The Gram matrix A of the rows is released. With its noisy eigenvalues w, lifted by the size
       ``lam`` that noise alone gives to eigenvalues, ``T = V (w + lam)**(-1/2)``.
    2. In the coordinates ``T'x`` rows are about equally long in every direction, so that noise
       harms no direction more than others, and steps of one over the curvature are right for
       all. Directions that drown in the noise take short steps, and stay near zero.
    3. Each step asks for the sum of the gradients there, rows shrunk to about their expected
       length and residuals capped. The mean of the last third of the iterates is returned.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps, at least 1; 12, more for large budgets.
    momentum : float or "auto", default="auto"
        In [0, 1). 1/2 for losses with a bounded residual, 0 otherwise.
    gram_share : float, default=0.25
        Share of the Gram matrix in the squared Gaussian-DP parameter; in (0, 1).
    row_norm : float or "auto", default="auto"
        Rows longer than this are shrunk to it before their Gram matrix is taken.
    row_factor : float or "auto", default="auto"
        Rows longer than this many times their expected length are shrunk to that before their
        gradient is taken, both lengths in the new coordinates.
    residual_bound : float or "auto", default="auto"
        Larger residuals are capped to it, in units of the target.

    Notes
    -----
    A Gram matrix has p**2 / 2 entries, so it takes a budget: the noise of its eigenvalues should be
    well below n / p times the squared norm of rows. Where it is not, "gd" is the better choice, and
    ``solver="auto"`` takes it.

    Weights act on gradients before the residual is capped, and by their root on rows of the
    Gram matrix.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(
    ...     epsilon=3.0, solver="whitened", scaling="none"
    ... )
    >>> model = model.fit(scale(X), y)
    >>> [(release.kind, release.count) for release in model.privacy_.releases]
    [('gram', 1), ('gradient', 12)]
    """

    name: ClassVar[str] = "whitened"
    needs: ClassVar[frozenset[str]] = frozenset({"smooth_loss", "smooth_penalty", "unconstrained"})

    def __init__(
        self,
        *,
        max_iter: Any = "auto",
        momentum: Any = "auto",
        gram_share: float = 0.25,
        row_norm: Any = "auto",
        row_factor: Any = "auto",
        residual_bound: Any = "auto",
    ) -> None:
        self.max_iter = max_iter
        self.momentum = momentum
        self.gram_share = gram_share
        self.row_norm = row_norm
        self.row_factor = row_factor
        self.residual_bound = residual_bound

    def automatic(self, public: Public, problem: Problem) -> dict[str, Any]:
        noisy = public.is_noisy
        reach = problem.loss.residual_bound
        if reach is None:
            unit = target_unit(public) * math.sqrt(public.n_outputs)
            residual_bound = 1.2 * unit * growth(public, 1 / 3)
        else:
            residual_bound = reach * min(1.0, 0.75 * growth(public, 0.25, start=150.0))
        steps = min(STEPS * growth(public, 1 / 3, start=500.0), 5 * STEPS)
        values = {
            "max_iter": math.ceil(steps) if noisy else STEPS_WITHOUT_NOISE,
            "momentum": 0.0 if reach is None else 0.5,
            "row_norm": gram_row_norm(public, 0.9),
            "row_factor": 0.6 * growth(public, 1 / 3) if noisy else UNBOUNDED,
            "residual_bound": residual_bound if noisy else UNBOUNDED,
        }
        return {name: value for name, value in values.items() if is_auto(getattr(self, name))}

    def resolve(self, public: Public, problem: Problem) -> Whitened:
        resolved = super().resolve(public, problem)
        check_columns(self.name, public)
        check_count("max_iter", resolved.max_iter)
        check_interval("momentum", resolved.momentum, low=0.0, below=1.0)
        check_share("gram_share", resolved.gram_share)
        for name in ("row_norm", "row_factor", "residual_bound"):
            check_positive(name, getattr(resolved, name))
        return resolved

    def solve(self, oracle: Oracle) -> Solution:
        public, problem = oracle.public, oracle.problem
        n_rows, n_steps = public.n_rows, self.max_iter
        curvature = _typical_curvature(public, problem)
        # 1. The Gram matrix, and coordinates in which it is round.
        answer, std = oracle.with_share(GramSum(self.row_norm), self.gram_share)
        known = penalty_hessian(problem, public) / curvature
        found = spectrum(unpack_gram(answer, public.n_parameters), std, known)
        lifted = found.values + found.edge
        transform = found.vectors / np.sqrt(lifted)
        coordinates = Coordinates(transform)
        # 2. Rows are shrunk to about their root mean square length there.
        expected = math.sqrt(float((found.values / lifted).sum()) / n_rows)
        row_norm = min(self.row_factor * expected, UNBOUNDED)
        # 3. Steps of one over the curvature.
        share = (1 - self.gram_share) / n_steps
        point = velocity = oracle.start()
        kept: list[Any] = []
        for step in range(n_steps):
            coef = transform @ point
            what = ShrunkGradientSum(coef, row_norm, self._cap(step, problem), coordinates)
            gradient, _ = oracle.with_share(what, share)
            gradient = gradient + transform.T @ (n_rows * problem.penalty_gradient(coef))
            velocity = self.momentum * velocity - gradient / curvature
            point = point + velocity
            if step >= n_steps - math.ceil(n_steps / 3):
                kept.append(point)
        # Without noise the last one is the best.
        result = np.mean(kept, axis=0) if oracle.is_noisy else point
        return Solution(transform @ result, n_steps)

    def _cap(self, step: int, problem: Problem) -> float:
        """At the start, where all margins are zero, no residual of a classifier is large."""
        reach = problem.loss.residual_bound
        if step > 0 or reach is None:
            return float(self.residual_bound)
        return min(float(self.residual_bound), _first_residual(problem) * (1 + 1e-6))


def _typical_curvature(public: Public, problem: Problem) -> float:
    """Curvature of the loss at the start, as far as steps of one over it stay stable."""
    largest = problem.loss.curvature
    if problem.loss.separable:
        return largest
    n_outputs = public.n_outputs
    return max(2 * (n_outputs - 1) / n_outputs**2, largest / STABLE)


def _first_residual(problem: Problem) -> float:
    """Norm of a classifier's residual at margins of zero."""
    n_outputs = problem.loss.n_outputs or 1
    return 0.5 if n_outputs == 1 else math.sqrt(1 - 1 / n_outputs)
