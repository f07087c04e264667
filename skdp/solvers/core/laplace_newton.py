"""Solve least squares with one column by Newton steps with Laplace noise: pure privacy."""

import math

import numpy as np

from skdp._numbers import Array
from skdp._oracle import GradientSum, GramSum, unpack_gram
from skdp.solvers import base, checks, defaults
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution, Solver
from skdp.solvers.core.shrinkage import spectrum
from skdp.solvers.defaults import UNBOUNDED, target_unit

STEPS = 2
# Largest cell of a standardised column: that of a uniform one.
LARGEST_CELL = math.sqrt(3)
# Largest residual of the first step, in units of the targets. Later steps have half of it.
FIRST_CAP = 3.0
PRIOR = 1.0  # variance of coefficients of standardised columns, in squared units of the targets


@base.hyperparameters
class LaplaceNewton(Solver):
    """Newton steps with Laplace noise, for delta = 0 and one column.

    1. The Gram matrix A of the rows is released once.
    2. Each step releases the sum of gradients at the current coefficients. With A and a normal
       prior, the coefficients move to their posterior mean, and the rest of their variance is
       the prior of the next step. Residuals are capped more closely after the first step.

    The releases have equal epsilons, which add up. With more columns the noise of the matrix makes
    the steps uncertain where columns are correlated, and solver "gd" is better.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps, at least 1. "auto" is 2.

    References
    ----------
    D. Alabi, A. McMillan, J. Sarathy, A. Smith, S. Vadhan: Differentially Private Simple Linear
    Regression. PoPETs 2022. (Moments with Laplace noise, of one column, the steps are ours.)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidge, PublicRange
    >>> X, y = load_diabetes(return_X_y=True)
    >>> scaling = PublicRange(-0.2, 0.2, target=(0, 400))
    >>> model = DPRidge(alpha=0.1, delta=0, epsilon=4.0, scaling=scaling).fit(X[:, [2]], y)
    >>> [(release.kind, release.count) for release in model.privacy_.releases]
    [('gram', 1), ('gradient', 2)]
    """

    name = "laplace_newton"
    purpose = "For delta=0 and one column."
    needs = frozenset({"quadratic_loss", "smooth_penalty", "unconstrained"})
    mechanisms = ("laplace",)
    max_columns = defaults.GRAM_COLUMNS

    max_iter: Resolved[int] = AUTO

    def automatic(self, public: Public, problem: Problem) -> Settings:
        return {"max_iter": STEPS}

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.count(max_iter=self.max_iter)

    def solve(self, oracle: Oracle) -> Solution:
        public, problem, n_steps = oracle.public, oracle.problem, self.max_iter
        constant = public.intercept_size if public.has_intercept else 0.0
        row_norm, longest = UNBOUNDED, UNBOUNDED  # in L2 and L1 norm
        if public.is_noisy:
            row_norm = math.hypot(LARGEST_CELL * math.sqrt(public.n_features), constant)
            longest = LARGEST_CELL * public.n_features + constant
        share = 1 / (n_steps + 1)  # of epsilon, for each release
        answer, gram_std = oracle.with_share(GramSum(row_norm, order=1), share, mechanism="laplace")
        known = defaults.penalty_hessian(problem, public)
        eigen = spectrum(unpack_gram(answer, public.n_parameters), gram_std, known)
        gram = (eigen.vectors * eigen.values) @ eigen.vectors.T
        point, precision, evidence = oracle.start(), self._prior(public), gram @ gram
        for step in range(n_steps):
            cap = target_unit(public) * FIRST_CAP / min(step + 1, 2)
            request = GradientSum(point, cap * longest, 1)
            gradient, std = oracle.with_share(request, share, mechanism="laplace")
            gradient = gradient + public.total_weight * problem.penalty_gradient(point)
            # The gradient is known to be ``gram @ (point - minimum)``, up to its noise.
            point = point - np.linalg.solve(evidence + std**2 * precision, gram @ gradient)
            if std > 0:
                precision = precision + evidence / std**2
        return Solution(point, n_steps)

    @staticmethod
    def _prior(public: Public) -> Array:
        """Return the precision of coefficients before the first step, as a matrix."""
        sizes = np.ones(public.n_parameters)
        if public.has_intercept:
            sizes[-1] = public.intercept_size
        return np.diag(np.square(sizes)) / (PRIOR * target_unit(public) ** 2)
