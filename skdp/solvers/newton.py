"""Newton's method with two kinds of noise: on the gradient, and on the direction it becomes."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from skdp.objective import Problem
from skdp.oracle import NewtonDirection, Oracle, Public, ShrunkGradientSum, Solution
from skdp.solvers.base import Solver
from skdp.solvers.checks import check_count, check_positive, check_share, is_auto
from skdp.solvers.gram_defaults import (
    UNBOUNDED,
    check_columns,
    gram_row_norm,
    growth,
    target_unit,
)


class Newton(Solver):
    """Newton's method with double noise, after Ganesh et al. (2023).

    Each step releases the gradient, with noise, and then the direction
    ``(H + damping I)^-1 gradient``, with noise of its own: H itself, with its p**2 / 2 entries, is
    never shown, and as damping grows the direction depends less and less on a record. This is their
    rule "add" for eigenvalues; their rule "clip" bounds eigenvalues from below instead, where a
    record's influence on the direction has no such closed bound.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps, at least 1.
    damping : float or "auto", default="auto"
        Positive; added to the eigenvalues of the Hessian of the *summed* loss. "auto": as
        much as keeps the noise of a direction from raising the next gradient.
    row_norm : float or "auto", default="auto"
        Rows longer than this are shrunk to it.
    residual_bound : float or "auto", default="auto"
        Larger residuals are capped to it.
    direction_share : float, default=0.3
        Share of the directions in the squared Gaussian-DP parameter; in (0, 1).

    References
    ----------
    A. Ganesh, M. Haghifam, T. Steinke, A. Thakurta: Faster Differentially Private Convex
    Optimization via Second-Order Methods. NeurIPS 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(
    ...     epsilon=3.0, solver="newton", max_iter=2, scaling="none"
    ... )
    >>> model = model.fit(scale(X), y)
    >>> [release.kind for release in model.privacy_.releases]
    ['gradient', 'newton_direction', 'gradient', 'newton_direction']
    """

    name: ClassVar[str] = "newton"
    needs: ClassVar[frozenset[str]] = frozenset(
        {"smooth_loss", "separable_loss", "smooth_penalty", "unconstrained"}
    )

    def __init__(
        self,
        *,
        max_iter: Any = "auto",
        damping: Any = "auto",
        row_norm: Any = "auto",
        residual_bound: Any = "auto",
        direction_share: float = 0.3,
    ) -> None:
        self.max_iter = max_iter
        self.damping = damping
        self.row_norm = row_norm
        self.residual_bound = residual_bound
        self.direction_share = direction_share

    def automatic(self, public: Public, problem: Problem) -> dict[str, Any]:
        noisy, reach = public.is_noisy, problem.loss.residual_bound
        if is_auto(self.max_iter):
            n_steps = 8 if noisy else 60
        else:
            check_count("max_iter", self.max_iter)
            n_steps = self.max_iter
        check_share("direction_share", self.direction_share)
        row_norm = gram_row_norm(public, 0.9) if is_auto(self.row_norm) else self.row_norm
        check_positive("row_norm", row_norm)
        if reach is not None:
            residual_bound = reach
        elif noisy:
            unit = target_unit(public) * math.sqrt(public.n_outputs)
            residual_bound = 1.5 * unit * growth(public, 1 / 3)
        else:
            residual_bound = UNBOUNDED
        values = {
            "max_iter": n_steps,
            "row_norm": row_norm,
            "residual_bound": residual_bound,
            "damping": self._damping(public, problem, n_steps, row_norm),
        }
        return {name: value for name, value in values.items() if is_auto(getattr(self, name))}

    def _damping(self, public: Public, problem: Problem, n_steps: int, row_norm: float) -> float:
        """Damping with which a direction's noise raises the next gradient by half at most.

        That noise is about ``|g| B sqrt(p) sigma / damping**2`` long, with B the bound on a row's
        part in the Hessian and sigma the noise multiplier; the gradient follows it with the
        largest eigenvalue of the Hessian, taken for that of correlated columns of unit size.
        """
        if not public.is_noisy:
            return 1e-9 * public.n_rows * problem.loss.curvature
        root = math.sqrt(public.n_parameters * public.n_outputs)
        mu = public.signal_to_noise * public.n_parameters * math.sqrt(public.n_outputs)
        mu *= math.sqrt(self.direction_share / n_steps) / public.n_rows
        noise = problem.loss.curvature * row_norm**2 * root / mu
        widest = max(public.n_parameters / 4.0, public.intercept_size**2)
        largest = public.n_rows * problem.loss.curvature * widest
        return max(4.0 * noise, math.sqrt(2.0 * largest * noise))

    def resolve(self, public: Public, problem: Problem) -> Newton:
        resolved = super().resolve(public, problem)
        check_columns(self.name, public)
        if problem.loss.residual_bound is not None and public.n_outputs > 1:
            raise ValueError(f"solver 'newton' takes one output; got {public.n_outputs}.")
        for name in ("damping", "residual_bound"):
            check_positive(name, getattr(resolved, name))
        return resolved

    def solve(self, oracle: Oracle) -> Solution:
        problem, n_steps = oracle.problem, self.max_iter
        point = oracle.start()
        for _ in range(n_steps):
            what = ShrunkGradientSum(point, self.row_norm, self.residual_bound, whole_records=True)
            gradient, _ = oracle.with_share(what, (1 - self.direction_share) / n_steps)
            gradient = gradient + oracle.public.n_rows * problem.penalty_gradient(point)
            where = NewtonDirection(point, gradient, self.damping, self.row_norm)
            direction, _ = oracle.with_share(where, self.direction_share / n_steps)
            point = point - direction
        return Solution(point, n_steps)
