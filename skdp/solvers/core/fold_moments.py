"""Compute ridge fits for many penalties, and their scores, from noisy moments of folds.

`skdp.DPRidgeCV` runs it; it is no solver that can be chosen by name.
"""

import math
from collections.abc import Collection, Sequence

import numpy as np

from skdp._numbers import Array, Indices, is_integer, is_real, require
from skdp.oracle import Fold, GaussianNoise, GramSum, NoisyStatistic, unpack_gram
from skdp.oracle.public import TARGET_RANGE
from skdp.solvers import base, checks, defaults
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution, Solver


@base.hyperparameters
class FoldMoments(Solver, registered=False):
    """Second moments of disjoint folds, from which fits and scores for many penalties follow.

    The Gram matrix of columns and targets is released for each fold. A row is in one fold, so that
    all of them cost no more than one (parallel composition), and the rest is free: the fit for each
    set of columns and each penalty from the sum of the other folds, its squared error on the fold
    that was left out, the choice with the least, and the fit on all folds. It costs accuracy:
    the sum of k folds has sqrt(k) times the noise of one release about all rows.

    Parameters
    ----------
    alphas : sequence of float or None, default=None
        Penalties to choose among, in scikit-learn's scale. None takes that of the problem.
    n_folds : int, default=3
        At least 2.
    column_sets : sequence of sequences of int or None, default=None
        Sets of columns to choose among, by number. None is the set of all columns.
    row_norm : float or "auto", default="auto"
        Records longer than this, targets included, are shrunk to it.

    Notes
    -----
    On top of each penalty comes the ridge ``std * sqrt(2 p)``, with std the noise on an entry: with
    less, noise alone decides about directions that the rows hardly have.
    """

    name = "fold_moments"
    needs = frozenset({"quadratic_loss", "smooth_penalty", "unconstrained"})
    max_columns = defaults.GRAM_COLUMNS

    alphas: Sequence[float] | None = None
    n_folds: int = 3
    column_sets: Sequence[Collection[int]] | None = None
    row_norm: Resolved[float] = AUTO

    def automatic(self, public: Public, problem: Problem) -> Settings:
        room = 1.5 * math.sqrt(public.n_outputs)  # for the targets of a record, in their unit
        return {"row_norm": math.hypot(defaults.gram_row_norm(public, 1.0), room)}

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.positive(row_norm=self.row_norm)
        fine = is_integer(self.n_folds) and self.n_folds >= 2
        require("n_folds", self.n_folds, "be an integer of at least 2", fine)
        if self.alphas is not None:
            check_alphas(self.alphas)
        if self.column_sets is not None:
            check_column_sets(self.column_sets, public.n_features)

    def solve(self, oracle: Oracle) -> Solution:
        public, outputs = oracle.public, oracle.public.n_outputs
        unit = defaults.target_unit(public)
        bound = TARGET_RANGE * unit if public.is_noisy else math.inf
        # 1. A release for each fold.
        size, moments, std = public.n_parameters, [], 0.0
        n_folds = min(self.n_folds, public.n_rows)
        for fold in range(n_folds):
            release = NoisyStatistic(
                GramSum(self.row_norm, unit, bound), GaussianNoise(), Fold(0, n_folds, fold)
            )
            moments.append(unpack_gram(oracle.request(release), size + outputs))
            std = oracle.std(release)
        # 2. Fits for all sets and penalties, and their errors on the folds that were left out.
        total = np.sum(moments, axis=0)
        candidates = [
            (penalty, kept)
            for kept in self._sets_of_parameters(public)
            for penalty in self._penalties(oracle.problem, public)
        ]
        noise = std * math.sqrt(n_folds)
        errors = np.zeros(len(candidates))
        for left_out in moments:
            for index, candidate in enumerate(candidates):
                coef = _minimum(total - left_out, *candidate, noise, size)
                errors[index] += _squared_error(left_out, coef)
        # 3. The best one on all folds.
        path = np.array(
            [unit * _minimum(total, *candidate, noise, size) for candidate in candidates]
        )
        best = int(np.argmin(errors))
        results = {"best": best, "errors": unit**2 * errors / public.n_rows, "path": path}
        return Solution(path[best], 1, results=results)

    def _sets_of_parameters(self, public: Public) -> list[Indices]:
        """Return the numbers of the parameters that are fitted, for each set of columns."""
        if self.column_sets is None:
            return [np.arange(public.n_parameters)]
        intercept = range(public.n_features, public.n_parameters)
        return [np.array([*sorted(columns), *intercept]) for columns in self.column_sets]

    def _penalties(self, problem: Problem, public: Public) -> list[Array]:
        """Return the Hessians of the penalties."""
        if self.alphas is None:
            return [defaults.penalty_hessian(problem, public)]
        free = np.ones(public.n_parameters)
        if public.has_intercept:
            free[-1] = 0.0
        return [np.diag(float(alpha) * free) for alpha in self.alphas]


def check_alphas(alphas: Sequence[float]) -> None:
    """Raise ValueError unless these are penalties, at least one of them."""
    try:
        fine = len(alphas) > 0 and all(is_real(a) and 0 <= a < math.inf for a in alphas)
    except TypeError:
        fine = False
    require("alphas", alphas, "be a sequence of finite numbers, at least 0", fine)


def check_column_sets(column_sets: Sequence[Collection[int]], n_columns: int) -> None:
    """Raise ValueError unless these are sets of numbers of columns, at least one of them."""
    try:
        fine = len(column_sets) > 0 and all(
            len(one) > 0
            and all(is_integer(i) and 0 <= i < n_columns for i in one)
            and len(set(one)) == len(one)
            for one in column_sets
        )
    except TypeError:
        fine = False
    allowed = (
        f"be a sequence of sets of columns, by numbers from 0 to {n_columns - 1} (or, of a data "
        "frame, by names), each of them once, as in [[0, 1], [0]]"
    )
    require("column_sets", column_sets, allowed, fine)


def _minimum(moments: Array, penalty: Array, kept: Indices, noise: float, size: int) -> Array:
    """Least squares from noisy moments of columns and targets, shape (size, n_outputs).

    Parameters that are not kept are 0.
    """
    ridge = noise * math.sqrt(2 * len(kept))
    some = np.ix_(kept, kept)
    values, vectors = np.linalg.eigh(moments[some] + penalty[some])
    floor = max(ridge, 1e-13 * abs(float(values[-1])), 1e-300)
    lifted = np.maximum(values + ridge, floor)
    coef = np.zeros((size, moments.shape[1] - size))
    coef[kept] = vectors @ ((vectors.T @ moments[kept, size:]) / lifted[:, None])
    return coef


def _squared_error(moments: Array, coef: Array) -> float:
    """Sum of squared residuals over a fold, from its noisy moments: unbiased, maybe negative."""
    size = len(coef)
    explained = 2 * np.vdot(coef, moments[:size, size:])
    predicted = np.vdot(coef, moments[:size, :size] @ coef)
    return float(np.trace(moments[size:, size:]) - explained + predicted)
