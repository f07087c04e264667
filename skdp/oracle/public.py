"""Everything that anyone may know about a data set without paying for it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from skdp.accounting import Adjacency

# Chosen among 1 to 4: from here on a few tens of rows with extreme class weights, as in
# scikit-learn's own check, mostly give a sensible intercept at epsilon 1; larger sizes cost small
# data sets accuracy.
INTERCEPT_SIZE = 2.5

# Rows longer than this many times the norm that columns of unit size give are scaled down: clipped
# gradients learn little from them, and predictions should not follow them far.
LONG_ROW = 2.0

# Standardised targets lie within this many of their sizes.
TARGET_RANGE = 4.0


@dataclass(frozen=True)
class Public:
    """Public facts about a fit; every default, bound and step size is a function of these.

    Attributes
    ----------
    n_rows : int
        Number of records, public under both adjacencies.
    n_features : int
        Number of columns, without the intercept.
    n_outputs : int
        Number of columns of the parameter: targets, or classes of a multinomial model.
    adjacency : Adjacency
        The neighbouring relation.
    epsilon, delta : float
        The budget of the fit.
    has_intercept : bool
        Whether every row carries one more feature of constant size, :attr:`intercept_size`.
    data_norm : float or None
        Declared bound on a row's L2 norm, without the intercept; None if nothing is assumed.
    row_bound : float or None
        Bound on a row's L2 norm, without the intercept, that the oracle enforces by scaling longer
        rows down; None where rows are taken as they are.
    target_bound : float or None
        Declared bound on the absolute value of a target; None if nothing is assumed.
    sparse : bool
        Whether the rows come as a sparse matrix. The *type* is public, the pattern is not.
    weighted : bool
        Whether rows carry weights. *That* they do is public, the weights are not.
    share : float
        Share of the budget, in mu squared, that a stage before the solver has left to it.
    streamed : bool
        Whether rows arrive in an order of their own and can be read once only. They are not
        shuffled then, so nothing is amplified by shuffling.
    """

    n_rows: int
    n_features: int
    n_outputs: int
    adjacency: Adjacency
    epsilon: float
    delta: float
    has_intercept: bool = True
    data_norm: float | None = None
    row_bound: float | None = None
    target_bound: float | None = None
    sparse: bool = False
    weighted: bool = False
    share: float = 1.0
    streamed: bool = False

    @property
    def n_parameters(self) -> int:
        """Rows of the parameter matrix: features, and the intercept if there is one."""
        return self.n_features + self.has_intercept

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the parameter matrix; the intercept is its last row."""
        return self.n_parameters, self.n_outputs

    @property
    def intercept_size(self) -> float:
        """Size of the constant feature: a few columns' worth.

        A larger constant makes the intercept, on which uncentred targets and rare classes depend,
        stand out from the noise sooner, and leaves less of the clipping norm to the columns.
        """
        if self.data_norm is None:
            return INTERCEPT_SIZE
        return INTERCEPT_SIZE * min(1.0, self.data_norm / math.sqrt(self.n_parameters))

    @property
    def row_norm(self) -> float | None:
        """Bound on the L2 norm of a row with its constant feature, or None."""
        if self.row_bound is None:
            return None
        return math.hypot(self.row_bound, self.intercept_size * self.has_intercept)

    @property
    def long_row(self) -> float | None:
        """Row bound where none is declared: a few times what columns of unit size give."""
        if math.isinf(self.epsilon):
            return None
        return LONG_ROW * math.sqrt(self.n_parameters)

    def standardised(self, columns: bool, targets: bool) -> Public:
        """Return the facts about rows once they are standardised: the same whatever they held.

        Parameters
        ----------
        columns, targets : bool
            Whether the columns, and the targets, are standardised.
        """
        public = self
        if columns:
            public = replace(public, data_norm=None, row_bound=public.long_row)
        if targets:
            is_noisy = not math.isinf(self.epsilon)
            public = replace(public, target_bound=TARGET_RANGE if is_noisy else None)
        return public
