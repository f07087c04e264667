"""Solve linear equations with endogenous columns from noisy moments, by two-stage least squares.

`skdp.DP2SLS` runs it; it is no solver that can be chosen by name.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from skdp._numbers import Array, Indices
from skdp.oracle import GramSum, unpack_gram
from skdp.oracle.public import TARGET_RANGE
from skdp.solvers import base, checks, defaults
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution, Solver
from skdp.steps.shrinkage import inverse_of

# Size of an endogenous column next to that of instruments, as it lengthens rows: rows are shortened
# by a weight, which must depend on instruments alone for the equation to stay true. It has a small
# share in it, as the noise on the column's moments grows with the inverse of it.
ENDOGENOUS_SIZE = 1 / 3
# First-stage F from which on coefficients are determined: the bias is at most a tenth of the worst
# one, with confidence 0.95 (Montiel Olea, Pflueger 2013). From the usual 10 on, intervals of two
# endogenous columns near that limit covered .90 (250 simulated sets, epsilon 3).
LEAST_STRENGTH = 23.1


@dataclass(frozen=True, eq=False)
class Instruments:
    """Parts of the columns in an equation whose regressors may depend on its errors.

    The constant, if there is one, is the last parameter, a regressor and an instrument.

    Attributes
    ----------
    regressors, instruments : array of int
        Parameters by number. Exogenous regressors are instruments, too.
    """

    regressors: Indices
    instruments: Indices

    @classmethod
    def of(cls, endogenous: Sequence[int], excluded: Sequence[int], public: Public) -> Self:
        """Return the parts by the numbers of endogenous columns and of excluded instruments."""
        numbers = np.arange(public.n_parameters)
        return cls(np.setdiff1d(numbers, excluded), np.setdiff1d(numbers, endogenous))

    @property
    def endogenous(self) -> Indices:
        """Return the regressors that are no instruments."""
        return np.setdiff1d(self.regressors, self.instruments)

    def solution_map(self, moments: Array) -> Array:
        """Return the matrix that takes moments of all columns with targets to the solution.

        With A the moments of instruments with regressors and W those of instruments it is
        ``(A' W^-1 A)^-1 A' W^-1``, and 0 for columns that are no regressors.

        Parameters
        ----------
        moments : array of shape (n_parameters, n_parameters), symmetric
        """
        first_stage = self._first_stage(moments)
        crossed = moments[np.ix_(self.instruments, self.regressors)]
        whole = np.zeros_like(moments)
        places = np.ix_(self.regressors, self.instruments)
        whole[places] = inverse_of(crossed.T @ first_stage) @ first_stage.T
        return whole

    def first_stage_f(self, moments: Array, inverse: Array, std: float, n_rows: int) -> float:
        """Return the least first-stage F statistic of endogenous columns, noise included.

        For each of them it is about the part of its fitted values that no other fitted regressor
        explains: the mean square of that, over what errors of the first stage and noise alone give
        to it, for each instrument in excess (Sanderson, Windmeijer 2016). It is inf if there are
        none, and 0 where noise leaves nothing to compare.

        Parameters
        ----------
        moments : array of shape (n_parameters, n_parameters), symmetric
            Means over rows.
        inverse : array of shape (n_parameters, n_parameters)
            Inverse of the coordinates in which the moments were released.
        std : float
            Standard deviation of the noise there, on the diagonal.
        n_rows : int
        """
        first_stage = self._first_stage(moments)
        crossed = moments[np.ix_(self.instruments, self.regressors)]
        solved = inverse_of(crossed.T @ first_stage)
        metric = inverse_of(moments[np.ix_(self.instruments, self.instruments)])
        lengths = inverse[:, self.instruments].T @ inverse[:, self.instruments]
        scale = 0.5 * std**2 * float(np.sum(metric * lengths)) / len(self.instruments)
        n_excess = len(self.instruments) - len(self.regressors) + 1
        least = math.inf
        for place in np.flatnonzero(np.isin(self.regressors, self.endogenous)):
            # Errors of the first stage of this column, without what others explain of it.
            along = solved[:, place] / solved[place, place]
            errors = np.zeros(len(moments))
            errors[self.regressors] = along
            errors[self.instruments] -= first_stage @ along
            sampling = max(float(errors @ moments @ errors), 0.0) / n_rows
            noise = sampling + scale * float(np.sum((inverse @ errors) ** 2))
            least = min(least, 1 / (solved[place, place] * n_excess * max(noise, 1e-300)))
        return max(float(least), 0.0)

    def _first_stage(self, moments: Array) -> Array:
        """Coefficients of regressors on instruments."""
        crossed = moments[np.ix_(self.instruments, self.regressors)]
        return inverse_of(moments[np.ix_(self.instruments, self.instruments)]) @ crossed


@base.hyperparameters
class TwoStageLeastSquares(Solver, registered=False):
    """Two-stage least squares from one noisy matrix of moments of columns and targets.

    It is where the step of an inference starts, which the instruments are handed on to.

    Parameters
    ----------
    endogenous, instruments : sequence of int, default=()
        Columns that may depend on the errors, and columns that are no regressors, by number.
    row_norm : float or "auto", default="auto"
        Records longer than this, targets included, are shrunk to it.

    References
    ----------
    J. Angrist, J.-S. Pischke: Mostly Harmless Econometrics. 2009. (4.1 and 4.6.)
    """

    name = "two_stage"
    needs = frozenset({"quadratic_loss", "smooth_penalty", "unconstrained"})
    max_columns = defaults.GRAM_COLUMNS
    takes_start = False

    endogenous: Sequence[int] = ()
    instruments: Sequence[int] = ()
    row_norm: Resolved[float] = AUTO

    def automatic(self, public: Public, problem: Problem) -> Settings:
        room = 1.5  # for the target of a record, in its unit
        return {"row_norm": math.hypot(defaults.gram_row_norm(public, 1.0), room)}

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.positive(row_norm=self.row_norm)

    def solve(self, oracle: Oracle) -> Solution:
        public, size = oracle.public, oracle.public.n_parameters
        unit = defaults.target_unit(public)
        bound = TARGET_RANGE * unit if public.is_noisy else math.inf
        answer, std = oracle.with_share(GramSum(self.row_norm, unit, bound), 1.0)
        moments = unpack_gram(answer, size + 1)
        parts = Instruments.of(self.endogenous, self.instruments, public)
        # A ridge of the size of the noise: far coefficients are a bad place to start from.
        lifted = moments[:size, :size] + std * math.sqrt(2.0 * size) * np.eye(size)
        coef = unit * parts.solution_map(lifted) @ moments[:size, size:]
        return Solution(coef, 1, results={"instruments": parts})
