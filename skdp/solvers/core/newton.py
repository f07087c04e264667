"""Run Newton's method with two kinds of noise: on the gradient, and on the direction."""

import math

import numpy as np

from skdp.oracle import NewtonDirection, ShrunkGradientSum
from skdp.solvers import base, checks, defaults
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution, Solver


@base.hyperparameters
class Newton(Solver):
    """Newton's method with double noise, after Ganesh et al. (2023).

    Each step releases the noisy gradient, and then the direction ``(H + damping I)^-1 gradient``
    with separate noise. The Hessian H, with its p**2 / 2 entries, is not released. The more
    damping, the less the direction depends on a single record. This is their rule "add" for
    eigenvalues; their rule "clip" bounds eigenvalues from below instead, where the influence of a
    record on the direction has no such closed bound.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps, at least 1.
    damping : float or "auto", default="auto"
        Positive; added to the eigenvalues of the Hessian of the *summed* loss. "auto" is so large
        that the noise of a direction does not raise the next gradient. Without noise it is the
        least: steps start with far more.
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
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(classes=[0, 1], epsilon=3.0, solver="newton", max_iter=2)
    >>> model = model.fit(X, y)
    >>> [release.kind for release in model.privacy_.releases][-5:-1]
    ['gradient', 'newton_direction', 'gradient', 'newton_direction']
    """

    name = "newton"
    purpose = "Newton (Ganesh et al. 2023), for research."
    needs = frozenset({"smooth_loss", "separable_loss", "smooth_penalty", "unconstrained"})
    max_columns = defaults.GRAM_COLUMNS

    max_iter: Resolved[int] = AUTO
    damping: Resolved[float] = AUTO
    row_norm: Resolved[float] = AUTO
    residual_bound: Resolved[float] = AUTO
    direction_share: float = 0.3

    def automatic(self, public: Public, problem: Problem) -> Settings:
        noisy, bound = public.is_noisy, problem.loss.residual_bound
        n_steps, row_norm = self.max_iter, self.row_norm
        if checks.is_auto(n_steps):
            n_steps = 8 if noisy else 60
        if checks.is_auto(row_norm):
            row_norm = defaults.gram_row_norm(public, 0.9)
        checks.count(max_iter=n_steps)
        checks.share(direction_share=self.direction_share)
        checks.positive(row_norm=row_norm)
        if not noisy:
            bound = defaults.UNBOUNDED
        elif bound is None:
            unit = defaults.target_unit(public) * math.sqrt(public.n_outputs)
            bound = 1.5 * unit * defaults.growth(public, 1 / 3)
        return {
            "max_iter": n_steps,
            "row_norm": row_norm,
            "residual_bound": bound,
            "damping": self._damping(public, problem, n_steps, row_norm),
        }

    def _damping(self, public: Public, problem: Problem, n_steps: int, row_norm: float) -> float:
        """Return a damping with which a direction's noise raises the next gradient by half at most.

        The length of that noise is about ``|g| B sqrt(p) sigma / damping**2``, with B the bound on
        a row's contribution to the Hessian and sigma the noise multiplier. It raises the gradient
        by the largest eigenvalue of the Hessian, here that of correlated columns of unit size.
        """
        if not public.is_noisy:
            return 1e-9 * public.n_rows * problem.loss.curvature
        root = math.sqrt(public.n_parameters * public.n_outputs)
        mu = public.signal_to_noise * public.n_parameters * math.sqrt(public.n_outputs)
        mu *= math.sqrt(self.direction_share / n_steps) / public.n_rows
        curvature = problem.loss.typical_curvature
        noise = curvature * row_norm**2 * root / mu
        widest = max(public.n_parameters / 4.0, public.intercept_size**2)
        largest = public.n_rows * curvature * widest
        # Where a cap takes most of the Hessian, damping stands in for it.
        capped = public.n_rows * curvature * (curvature < problem.loss.curvature)
        return max(4.0 * noise, math.sqrt(2.0 * largest * noise), capped)

    def check_values(self, public: Public, problem: Problem) -> None:
        if problem.loss.residual_bound is not None and public.n_outputs > 1:
            raise ValueError(f"solver 'newton' takes one output; got {public.n_outputs}.")
        checks.positive(damping=self.damping, residual_bound=self.residual_bound)

    def solve(self, oracle: Oracle) -> Solution:
        problem, n_steps, public = oracle.problem, self.max_iter, oracle.public
        largest, damping, slopes = problem.loss.curvature, self.damping, []
        # Few records have a larger one, and the noise of a direction grows with it.
        curvature = problem.loss.typical_curvature if public.is_noisy else largest
        if not public.is_noisy:  # where records lie far from a kink, the Hessian is next to 0
            damping = max(damping, public.n_rows * curvature)
        varies = curvature < largest or not public.is_noisy
        point = last = oracle.start()
        direction = last_gradient = np.zeros_like(point)
        for _ in range(n_steps):
            sums = ShrunkGradientSum(point, self.row_norm, self.residual_bound, whole_records=True)
            gradient, _ = oracle.with_share(sums, (1 - self.direction_share) / n_steps)
            gradient = gradient + public.total_weight * problem.penalty_gradient(point)
            # Where a step went too far, the line between both gradients says how far.
            before, after = np.sum(direction * last_gradient), np.sum(direction * gradient)
            went_too_far = varies and after < -before / 2 < 0
            if went_too_far:
                part = before / (before - after)
                point = last - part * direction
                gradient = last_gradient + part * (gradient - last_gradient)
            if not public.is_noisy:
                slopes.append(float(np.linalg.norm(gradient)))
                damping = damping * 64 if went_too_far else max(damping / 8, self.damping)
            last, last_gradient = point, gradient
            step = NewtonDirection(point, gradient, damping, self.row_norm, curvature)
            direction, _ = oracle.with_share(step, self.direction_share / n_steps)
            point = point - direction
        return Solution(point, n_steps, slopes=tuple(slopes))
