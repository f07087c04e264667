"""Least squares from sufficient statistics, with a ridge that adapts to their noise."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from skdp.objective import Problem
from skdp.oracle import (
    GramSum,
    Oracle,
    Public,
    ShrunkGradientSum,
    SmallestEigenvalue,
    Solution,
    unpack_gram,
)
from skdp.solvers.base import Solver
from skdp.solvers.checks import check_positive, is_auto
from skdp.solvers.gram_defaults import (
    TARGET_UNITS,
    UNBOUNDED,
    check_columns,
    gram_row_norm,
    penalty_hessian,
    target_unit,
)

FAILURE = 0.05  # the ridge covers the noise of the Gram matrix but for this probability
QUANTILE = 6.0


class AdaptiveSufficientStatistics(Solver):
    """AdaSSP: noisy X'X, X'y and smallest eigenvalue, and a ridge no larger than they ask for.

    Algorithm 2 of Wang (2018), with a third of the squared Gaussian-DP parameter for each release
    in place of a third of epsilon, and exact accounting: less noise for the same budget. A
    baseline; "boosted_ssp" is the better choice.

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
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPRidge(epsilon=1.0, solver="adassp", scaling="none")
    >>> model = model.fit(scale(X), scale(y))
    >>> [release.kind for release in model.privacy_.releases]
    ['gram', 'smallest_eigenvalue', 'gradient']
    """

    name: ClassVar[str] = "adassp"
    needs: ClassVar[frozenset[str]] = frozenset(
        {"quadratic_loss", "smooth_penalty", "unconstrained"}
    )

    def __init__(self, *, row_norm: Any = "auto", target_bound: Any = "auto") -> None:
        self.row_norm = row_norm
        self.target_bound = target_bound

    def automatic(self, public: Public, problem: Problem) -> dict[str, Any]:
        noisy = public.is_noisy
        largest = TARGET_UNITS * target_unit(public) * math.sqrt(public.n_outputs)
        values = {
            "row_norm": gram_row_norm(public, 1.0),
            "target_bound": largest if noisy else UNBOUNDED,
        }
        return {name: value for name, value in values.items() if is_auto(getattr(self, name))}

    def resolve(self, public: Public, problem: Problem) -> AdaptiveSufficientStatistics:
        resolved = super().resolve(public, problem)
        check_columns(self.name, public)
        for name in ("row_norm", "target_bound"):
            check_positive(name, getattr(resolved, name))
        return resolved

    def solve(self, oracle: Oracle) -> Solution:
        public = oracle.public
        size = public.n_parameters
        # 1. Three releases, of equal cost.
        answer, std = oracle.with_share(GramSum(self.row_norm), 1 / 3)
        least, least_std = oracle.with_share(SmallestEigenvalue(self.row_norm), 1 / 3)
        start = ShrunkGradientSum(
            oracle.start(), self.row_norm, self.target_bound, whole_records=True
        )
        minus_moments, _ = oracle.with_share(start, 1 / 3)
        # 2. A lower bound on the smallest eigenvalue, and the ridge that makes up for it.
        quantile = math.sqrt(math.log(QUANTILE / public.tail_probability))
        known = max(0.0, float(least[0]) - quantile * least_std)
        noise = std * math.sqrt(size * math.log(2 * size**2 / FAILURE))
        ridge = max(0.0, noise - known)
        # 3. Least squares.
        gram = unpack_gram(answer, size) + penalty_hessian(oracle.problem, public)
        values, vectors = np.linalg.eigh(gram)
        floor = max(ridge, std, 1e-13 * abs(float(values[-1])), 1e-300)
        lifted = np.maximum(values + ridge, floor)
        coef = vectors @ ((vectors.T @ -minus_moments) / lifted[:, None])
        return Solution(coef, 1)
