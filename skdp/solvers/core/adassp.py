"""Solve least squares from noisy sufficient statistics, with a ridge that adapts to their noise."""

import math

import numpy as np

from skdp.oracle import GramSum, ShrunkGradientSum, SmallestEigenvalue, unpack_gram
from skdp.oracle.public import TARGET_RANGE
from skdp.solvers import base, checks, defaults
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution, Solver


@base.hyperparameters
class AdaptiveSufficientStatistics(Solver):
    """AdaSSP: noisy X'X, X'y and smallest eigenvalue, and the smallest ridge that they allow.

    This is Algorithm 2 of Wang (2018), with a third of the squared Gaussian-DP parameter for each
    release in place of a third of epsilon, and exact accounting: less noise for the same budget. It
    is a baseline; "boosted_ssp" is more accurate.

    Parameters
    ----------
    row_norm : float or "auto", default="auto"
        Rows longer than this are shrunk to it, their targets with them: the paper's ``|X|``.
    target_bound : float or "auto", default="auto"
        Larger targets, after shrinking, are cut to it: the paper's ``|Y|``.

    References
    ----------
    Y. Wang: Revisiting Differentially Private Linear Regression: Optimal and Adaptive Prediction &
    Estimation in Unbounded Domain. UAI 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPRidge(epsilon=1.0, solver="adassp")
    >>> model = model.fit(X, y)
    >>> [release.kind for release in model.privacy_.releases][-4:-1]
    ['gram', 'smallest_eigenvalue', 'gradient']
    """

    name = "adassp"
    purpose = "AdaSSP (Wang 2018), for research."
    needs = frozenset({"quadratic_loss", "smooth_penalty", "unconstrained"})
    max_columns = defaults.GRAM_COLUMNS

    row_norm: Resolved[float] = AUTO
    target_bound: Resolved[float] = AUTO

    def automatic(self, public: Public, problem: Problem) -> Settings:
        largest = TARGET_RANGE * defaults.target_unit(public) * math.sqrt(public.n_outputs)
        return {
            "row_norm": defaults.gram_row_norm(public, 1.0),
            "target_bound": largest if public.is_noisy else defaults.UNBOUNDED,
        }

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.positive(row_norm=self.row_norm, target_bound=self.target_bound)

    def solve(self, oracle: Oracle) -> Solution:
        public = oracle.public
        size = public.n_parameters
        # 1. Three releases, of equal cost.
        answer, std = oracle.with_share(GramSum(self.row_norm), 1 / 3)
        if public.is_noisy and std == 0:
            # Second moments were public: the ridge is for the noise on the gradient then.
            std = self.row_norm**2 / (public.gradient_mu * math.sqrt(1 / 3))
        least, least_std = oracle.with_share(SmallestEigenvalue(self.row_norm), 1 / 3)
        bounds = self.row_norm, self.target_bound
        start = oracle.start()
        request = ShrunkGradientSum(start, *bounds, whole_records=True)
        gradient, _ = oracle.with_share(request, 1 / 3)
        gradient = gradient + public.n_rows * oracle.problem.penalty_gradient(start)
        # 2. A lower bound on the smallest eigenvalue, by the paper's sqrt(log(6 / delta)), and the
        # ridge that compensates for it, unless the noise of the Gram matrix exceeds it: with a
        # probability of 0.05, the paper's rho.
        quantile = math.sqrt(math.log(6.0 / public.tail_probability))
        known = max(0.0, float(least[0]) - quantile * least_std)
        noise = std * math.sqrt(size * math.log(2 * size**2 / 0.05))
        ridge = max(0.0, noise - known)
        # 3. Least squares.
        gram = unpack_gram(answer, size) + defaults.penalty_hessian(oracle.problem, public)
        values, vectors = np.linalg.eigh(gram)
        floor = max(ridge, std, 1e-13 * abs(float(values[-1])), 1e-300)
        lifted = np.maximum(values + ridge, floor)
        coef = start + vectors @ ((vectors.T @ -gradient) / lifted[:, None])
        return Solution(coef, 1)
