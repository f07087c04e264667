"""Public facts about a data set, which cost no privacy budget."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np

from skdp import accounting
from skdp._numbers import LARGEST_BOUND, Array
from skdp._oracle.sources.base import IN_MEMORY, REPEATABLE

# Chosen among 1 to 4: from here on a few tens of rows with extreme class weights, as in
# scikit-learn's own check, mostly give a sensible intercept at epsilon 1. Larger sizes cost small
# data sets accuracy.
INTERCEPT_SIZE = 2.5

# Rows longer than this many times the norm that columns of unit size give are scaled down: clipped
# gradients learn little from them, and predictions should not follow them far.
LONG_ROW = 2.0

# Standardised targets lie within this many of their sizes, unless ranges become wider halfway.
TARGET_RANGE = 4.0

# Correlation that the gradients of a group's rows are expected to have with each other.
WITHIN_GROUP = 0.1

# Budgets beyond these are taken for these where a default follows from mu: the difference would not
# be seen.
LARGEST_PLANNED_EPSILON, LEAST_DELTA = 1e4, 1e-12


@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments of standardised rows that are public.

    Attributes
    ----------
    matrix : array of shape (n_features + 1, n_features + 1)
        Mean of ``z z'`` over rows z with a last entry 1.
    n_rows : int
        Rows that they are a mean over.
    """

    matrix: Array
    n_rows: int


@dataclass(frozen=True)
class Public:
    """Public facts about a fit. Every default, bound and step size is a function of these.

    Attributes
    ----------
    n_rows : int
        Number of records, public under both adjacencies: of rows or, where a group of rows is the
        unit of privacy, of groups. The number of rows is private then.
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
        Declared bound on a row's L2 norm, without the intercept. None if nothing is assumed.
    row_bound : float or None
        Bound on a row's L2 norm, without the intercept, that the oracle enforces by scaling longer
        rows down. None for raw rows.
    target_bound : float or None
        Declared bound on the absolute value of a target. None if nothing is assumed.
    sparse : bool
        Whether the rows come as a sparse matrix. The *type* is public, the pattern is not.
    base_ratio : float
        Bound on the length of the row that sparse rows are added to, over their constant feature.
    weighted : bool
        Whether rows carry weights of their own. *That* they do is public, the weights are not.
    max_weight : float or None
        Declared largest weight of a row, to which larger ones are clipped. None if nothing is
        assumed.
    label_weights : tuple of float
        Public factors, at most 1, on the weights of records by label, empty for none.
    has_offset : bool
        Whether the margins of rows have offsets, which targets contain.
    mean_weight, weighted_share : float
        Mean weight of the records that the oracle answers for, and the share of records whose
        weight is positive, as far as they were released, and otherwise 1.
    share : float
        Share of the budget, in mu squared, that a stage before the solver has left to it.
    unit : {"row", "group"}
        The unit of a record: a row, or all rows with one label.
    rows_per_group : float or None
        Guess of how many rows a group has, made without looking at them. None for none.
    moments : Moments or None
        Second moments of standardised rows, where a public sample tells them.
    provides : frozenset of str
        Capabilities of the source, in the words of `skdp._oracle.sources.base`.
    labels_alone : bool
        Whether only targets are protected and all else is public: adjacency "label".
    start : tuple of tuple of float or None
        The parameter where solvers start, row by row, in the units of the records that the oracle
        answers for. None is zero.
    within : tuple of (Partition, int) or None
        The division of a stream, and the number of its block, that these records are. None for all
        records. See :meth:`divided`.

    Raises
    ------
    ValueError
        If ``row_bound`` is beyond 1e50. The limit on a residual times the factor that scales a long
        row down could be subnormal, so that a record might add more than its clipping norm.
    """

    n_rows: int
    n_features: int
    n_outputs: int
    adjacency: accounting.Adjacency
    epsilon: float
    delta: float
    has_intercept: bool = True
    data_norm: float | None = None
    row_bound: float | None = None
    target_bound: float | None = None
    sparse: bool = False
    base_ratio: float = 0.0
    weighted: bool = False
    max_weight: float | None = None
    label_weights: tuple[float, ...] = ()
    has_offset: bool = False
    mean_weight: float = 1.0
    weighted_share: float = 1.0
    share: float = 1.0
    moments: Moments | None = None
    unit: str = "row"
    rows_per_group: float | None = None
    provides: frozenset[str] = IN_MEMORY
    labels_alone: bool = False
    start: tuple[tuple[float, ...], ...] | None = None
    within: tuple[accounting.Partition, int] | None = None

    def __post_init__(self) -> None:
        if self.row_bound is not None and not self.row_bound <= LARGEST_BOUND:
            raise ValueError(
                f"Public: row_bound must be at most {LARGEST_BOUND:g}, got {self.row_bound!r}. "
                "Nothing was released."
            )

    @functools.cached_property
    def grouped(self) -> bool:
        """Whether a record is a group of rows."""
        return self.unit == "group"

    @functools.cached_property
    def clips_means(self) -> bool:
        """Whether a group's mean gradient is clipped, and not the gradients of its rows."""
        return self.grouped and self.rows_per_group is not None and self.rows_per_group > 1

    @functools.cached_property
    def mean_length(self) -> float:
        """Expected length of a group's mean gradient, next to that of a row's.

        That of k rows whose gradients have the correlation r with each other is
        ``sqrt(r + (1 - r) / k)``. r is a guess.
        """
        if not self.clips_means:
            return 1.0
        assert self.rows_per_group is not None
        return math.sqrt(WITHIN_GROUP + (1 - WITHIN_GROUP) / self.rows_per_group)

    @functools.cached_property
    def has_weights(self) -> bool:
        """Whether rows have weights: of their own, by their labels, or both."""
        return self.weighted or bool(self.label_weights)

    @functools.cached_property
    def total_weight(self) -> float:
        """Sum of the weights of records, by which sums over them are divided."""
        return self.n_rows * self.mean_weight

    @functools.cached_property
    def features_are_public(self) -> bool:
        """Whether nothing but the targets is private, so that the rest costs no budget.

        Not with weights, which may follow from targets by class, nor with groups, whose numbers of
        rows are private, nor with rows that are read once.
        """
        once = self.streamed or self.within is not None
        return self.labels_alone and not (self.has_weights or self.grouped or once)

    @functools.cached_property
    def adjacency_name(self) -> str:
        """Name of the neighbouring relation in estimators and statements."""
        return accounting.LABEL if self.labels_alone else str(self.adjacency)

    @functools.cached_property
    def is_noisy(self) -> bool:
        """Whether answers carry noise: always, unless epsilon is infinite."""
        return not math.isinf(self.epsilon)

    @functools.cached_property
    def is_pure(self) -> bool:
        """Whether privacy is pure (delta = 0), which requires Laplace noise."""
        return self.delta == 0

    @property
    def has_laplace_noise(self) -> bool:
        """Whether all noise must be Laplace noise, as there is some and privacy is pure."""
        return self.is_noisy and self.is_pure

    @functools.cached_property
    def streamed(self) -> bool:
        """Whether rows can be read once only, as they arrive.

        They are not shuffled then, so nothing is amplified by shuffling.
        """
        return REPEATABLE not in self.provides

    @functools.cached_property
    def mu(self) -> float:
        """Gaussian-DP parameter of the budget, for defaults. A large one if there is no noise."""
        return accounting.gaussian_mu(
            min(self.epsilon, LARGEST_PLANNED_EPSILON), max(self.delta, LEAST_DELTA)
        )

    @functools.cached_property
    def sensitivity_factor(self) -> float:
        """L2 sensitivity of a sum of vectors, in units of the bound on a record's part."""
        return accounting.Gaussian(1.0).sensitivity(self.adjacency)

    @functools.cached_property
    def gradient_mu(self) -> float:
        """Inverse noise multiplier of one gradient sum on the whole remaining budget.

        Stages before the solver may have used a share of it.
        """
        return self.mu * math.sqrt(self.share) / self.sensitivity_factor

    @functools.cached_property
    def signal_to_noise(self) -> float:
        """Signal-to-noise ratio of a fit: ``mu n / (p sqrt(K))``.

        p is the number of parameters for each of the K outputs. One private step of least squares
        loses about ``(1 - R2)`` over the square of it.
        """
        return self.gradient_mu * self.n_rows / (self.n_parameters * math.sqrt(self.n_outputs))

    @functools.cached_property
    def laplace_budget(self) -> float:
        """Limit on the sum of the epsilons of Laplace releases that are left, inf without noise."""
        return self.epsilon * self.share if self.is_pure else self.epsilon

    def noise_for(self, event: accounting.Event) -> float:
        """Return the factor on the noise of an event that makes it spend the whole budget.

        Returns
        -------
        float
            From the calibration, which ends on the private side.
        """
        return accounting.calibrate(event, self.epsilon, self.delta, self.adjacency).scale

    @functools.cached_property
    def n_parameters(self) -> int:
        """Rows of the parameter matrix: features, and the intercept if there is one."""
        return self.n_features + self.has_intercept

    @functools.cached_property
    def shape(self) -> tuple[int, int]:
        """Shape of the parameter matrix. The intercept is its last row."""
        return self.n_parameters, self.n_outputs

    @functools.cached_property
    def starting_point(self) -> Array:
        """Parameter of :attr:`shape` where solvers start, a new array."""
        return np.zeros(self.shape) if self.start is None else np.array(self.start, dtype=float)

    def starting_at(self, coef: Array, intercept: Array) -> Public:
        """Return these facts with another start.

        Parameters
        ----------
        coef : array of shape (n_features, n_outputs)
        intercept : array of shape (n_outputs,)
            In units of the targets. Left out where there is no intercept.

        Returns
        -------
        Public
        """
        # Numbers beyond the range would become inf. A solver then fails by itself.
        largest = float(np.finfo(float).max)
        rows = [coef, intercept[None] / self.intercept_size] if self.has_intercept else [coef]
        point = np.nan_to_num(np.vstack(rows), nan=0.0, posinf=largest, neginf=-largest)
        return replace(self, start=tuple(map(tuple, point.tolist())))

    @functools.cached_property
    def intercept_size(self) -> float:
        """Size of the constant feature: a few columns' worth.

        A larger constant makes the intercept, on which uncentred targets and rare classes depend,
        stand out from the noise sooner, and leaves less of the clipping norm to the columns.
        """
        if self.data_norm is None:
            return INTERCEPT_SIZE
        return INTERCEPT_SIZE * min(1.0, self.data_norm / math.sqrt(self.n_parameters))

    @functools.cached_property
    def row_norm(self) -> float | None:
        """Bound on the L2 norm of a row with its constant feature, or None."""
        if self.row_bound is None:
            return None
        return math.hypot(self.row_bound, self.intercept_size * self.has_intercept)

    @functools.cached_property
    def long_row(self) -> float | None:
        """Row bound if none is declared: a few times the norm of a row of unit columns."""
        if not self.is_noisy:
            return None
        return LONG_ROW * math.sqrt(self.n_parameters)

    def divided(self, first: int) -> tuple[Public, Public]:
        """Return the facts about the first records of a stream, which are held, and the others.

        The two are blocks of one division by the order of arrival: a record lies in one of them,
        whatever it holds, so their costs do not add up (:meth:`event_on`). The facts about the
        others give the same two again.

        Parameters
        ----------
        first : int
            Number of first records, from 1 to ``n_rows - 1``. It follows from public facts.

        Returns
        -------
        first, others : Public

        Raises
        ------
        ValueError
            If these are no stream of so many records, or another part of one.
        """
        if self.within is not None and first == self.n_first:
            held = replace(self, n_rows=first, provides=IN_MEMORY, within=(self.within[0], 0))
            return held, self
        if not (self.streamed and self.within is None and 1 <= first < self.n_rows):
            raise ValueError(f"a stream of {self.n_rows} cannot be divided after {first} records.")
        division = accounting.Partition(0, 2, cuts=(0, first, self.n_rows))
        held = replace(self, n_rows=first, provides=IN_MEMORY, within=(division, 0))
        return held, replace(self, n_rows=self.n_rows - first, within=(division, 1))

    @functools.cached_property
    def n_first(self) -> int:
        """Number of first records of a stream that these are the others of, 0 for none."""
        if self.within is None or self.within[1] == 0 or self.within[0].cuts is None:
            return 0
        return self.within[0].cuts[1]

    def event_on(self, event: accounting.Event) -> accounting.Event:
        """Return the cost of an event on these records, which may be a block of a stream.

        Returns
        -------
        Event
        """
        return event if self.within is None else accounting.OnBlock(*self.within, event)

    def standardised(self, columns: bool, targets: bool) -> Public:
        """Return the facts about rows once they are standardised: the same whatever they held.

        Parameters
        ----------
        columns, targets : bool
            Whether the columns, and the targets, are standardised.

        Returns
        -------
        Public
        """
        public = self
        if columns:
            public = replace(public, data_norm=None, row_bound=public.long_row)
        if targets:
            public = replace(public, target_bound=TARGET_RANGE if self.is_noisy else None)
        return public
