"""Sums of squares ``v v'`` of the records' vectors, with one proof, and gradients of shrunk rows.

*Sensitivity.* Every sum shortens a record's vector v to a length whose square is at most `largest`,
and a null record, of weight 0, adds 0. So zero-out moves the matrix by at most ``|v v'|_F = |v|**2
<= largest`` in Frobenius norm, which is the L2 norm of the upper triangle with entries off the
diagonal times sqrt(2), as the answer has them. Under replace-one ``|u u' - v v'|_F**2 = |u|**4 +
|v|**4 - 2 (u'v)**2`` is at most twice the square of that: the spread is sqrt(2).

In L1 norm the p diagonal entries of ``v v'`` add up to ``|v|**2``, and those off the diagonal,
times sqrt(2), to ``(|v|_1**2 - |v|**2) / sqrt(2)``. As ``|v|_1**2 <= p |v|**2`` (Cauchy and
Schwarz), a record adds at most ``largest * (1 + (p - 1) / sqrt(2))``, and two records are at most
twice that apart (Dwork, McSherry, Nissim, Smith 2006, Prop. 1, for the noise).

*Groups.* The part A of a group is a mean of such products: ``|A|_F`` is at most `largest`, and
``<A, B>`` is at least 0 for positive semidefinite A and B, so that the spread is the same. In L1
norm A is at most as long as the longest part of a row.

*Floating point.* A record is longer than its bound R by a relative ``(n_features + n_more + 17) u``
at most, its outer product by twice that. A sum of k terms in floating point is off by ``k u sum
|terms|`` in each entry (Higham 2002, eq. 3.4), and ``|v| |v|'`` has the Frobenius norm ``|v|**2``,
at most ``R**2``, so the whole matrix by ``k u n R**2``, two neighbouring ones by twice as much. The
columns of X determine how many rows are summed at once.

*The step.* The other sums are for one Newton step from a private fit, and for its covariance. In
whitened coordinates, those of a public matrix T, row z is ``u = T'z``. A record has the weight ``f
= min(1, row_norm / |u|)``, its residual r with the same weight and a cap: ``c(f r)``, c cutting to
plus or minus ``residual_bound``. The weight depends only on the row. The estimating equation is
``sum f u c(f r) = 0``, and `ShrunkGradientSum` with ``whole_records`` is that sum. Here are its
derivative and the second moments of its terms.

With noise r is the residual of `Loss.with_bounded_weights`: it is multiplied by ``min(1, W / w)``,
with w the working weight at the point and W its bound. This is a function of the row and of public
numbers, so the equation keeps its solution where the model holds, and its derivative has weights
of at most W. No sensitivity rests on it: whatever r is, ``f r`` is capped, and w is cut.

Of several classes r is a vector, in the coordinates of `Loss.contrasts`, and its cap is one of its
length. A record's term is the product of every entry of r with the row, the same entry's products
side by side.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from skdp._numbers import Array
from skdp._oracle.kernels import second_moments as kernel
from skdp._oracle.public import Public
from skdp._oracle.releases import base
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.releases.gradients import RowSum
from skdp._oracle.sources.base import RepeatableSource
from skdp._oracle.sources.records import GroupBlock, Records, quotient
from skdp._oracle.sources.row_blocks import UNIT_ROUNDOFF, growth_of_rounding
from skdp.objective import (
    Logistic,
    Loss,
    Multinomial,
    OffsetLogistic,
    OffsetMultinomial,
    Problem,
)

ROOT_TWO = math.sqrt(2.0) * (1 + 1e-15)  # not below the true value
# Losses whose weights and residuals follow from the same probabilities, whatever moves these.
LOGISTIC = (Logistic, Multinomial, OffsetLogistic, OffsetMultinomial)
# Weights of the gradient next to the Hessian in one vector. `LogisticStep` has the proof. The least
# that will do are 0.300283, and the root of 1/2 for several classes.
GRADIENT_WEIGHT, MULTINOMIAL_GRADIENT_WEIGHT = 0.3004, 0.70711
MOST_ROUNDING = 2.0**-8  # of sums in the rows' own coordinates, relative
MOST_WEIGHTS = 2**20  # entries of the weights of rows that are summed at a time: 8 MB


class SquareSum(base.Statistic):
    """The upper triangle of a sum of squares, entries off the diagonal times sqrt(2).

    :func:`unpack_gram` turns it into the matrix.
    """

    takes_groups: ClassVar[bool] = True
    order: int = 2

    @abstractmethod
    def largest(self, context: PublicContext) -> float:
        """Return the square of the length to which the sum shortens a record's vector."""

    @abstractmethod
    def term_size(self, context: PublicContext) -> int:
        """Return the number of entries of a record's vector."""

    @abstractmethod
    def matrix(self, rows: RepeatableSource, context: PublicContext) -> Array:
        """Return the sum of squares."""

    def rounding(self, context: PublicContext, n_rows: int) -> float:
        """Return the relative rounding of the sum, which is proved at the top of this page."""
        return 2 * context.rounding(n_rows, 2 * self.term_size(context) + 16)

    def contribution(self, context: PublicContext, n_rows: int) -> base.Contribution:
        slack, size = self.rounding(context, n_rows), self.term_size(context)
        largest, n_entries, spread = self.largest(context), size * (size + 1) // 2, ROOT_TWO
        if self.order == 1:
            largest, spread = largest * (1 + (size - 1) * ROOT_TWO / 2), 2.0
        return base.Contribution.of_sum(largest, n_rows, slack, spread, n_entries, order=self.order)

    def total(self, rows: RepeatableSource, context: PublicContext) -> Array:
        return kernel.pack(self.matrix(rows, context))


# The symmetric matrix that an answer to a `SquareSum` stands for. Its noise has the release's
# standard deviation on the diagonal, and that over sqrt(2) off it.
unpack_gram = kernel.unpack


@base.audited
@dataclass(frozen=True, eq=False)
class GramSum(SquareSum):
    """Sum of ``v v'`` over the records' vectors v, each shrunk to L2 norm ``row_norm``.

    v is the row with its constant, times the root of its weight.

    Parameters
    ----------
    row_norm : float
        From 1e-100 to 1e100. In the rows' own unit.
    order : {1, 2}, default=2
        Of the norm in which the sum is bounded: 2 for Gaussian noise, 1 for Laplace noise.
    """

    row_norm: base.Bound
    order: base.Integer = field(default=2, kw_only=True)
    kind: ClassVar[str] = "gram"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order not in (1, 2):
            raise ValueError(f"GramSum: order must be 1 or 2; got {self.order!r}.")

    @property
    def reads_targets(self) -> bool:
        return False

    def largest(self, context: PublicContext) -> float:
        return self.row_norm**2

    def term_size(self, context: PublicContext) -> int:
        return context.public.n_parameters

    def matrix(self, rows: RepeatableSource, context: PublicContext) -> Array:
        return np.asarray(rows.total(kernel.bounded_gram, self.row_norm))


# ---------------------------------------------------------------- other coordinates


@base.audited
@dataclass(frozen=True, eq=False)
class Coordinates(base.Checked):
    """Other coordinates of rows, ``T'z``, and how much rounding errors may grow in them.

    Parameters
    ----------
    matrix : array of shape (n_parameters, n_parameters)
        T: public, finite, not singular. A copy is kept.

    Attributes
    ----------
    condition, stretch, largest : float
        See :func:`skdp._oracle.kernels.second_moments.condition_numbers`.
    forms : tuple of array
        An upper triangle R with ``|R z| = |T'z|``, with which products take less time, and R'R.
    """

    matrix: base.Point = field(repr=False)
    condition: float = field(init=False)
    stretch: float = field(init=False)
    largest: float = field(init=False)
    forms: tuple[Array, Array] = field(init=False, repr=False)

    def rounding(self, context: PublicContext, n_rows: int) -> float:
        """Return the relative rounding of a sum of gradients in the rows' own coordinates.

        Norms there are off by ``(p + 4) u |T|_F |z|``, and ``|T'z| >= s |z|`` with s the least
        singular value of T: a relative ``(p + 4) u k``, k = |T|_F / s. The sum's own error and that
        of the last product, both of them bounds in terms of ``sum |z_i c_i|``, grow by the same
        factor. The norms of all n rows count: where there are groups, a row less moves the others
        to places where a product of matrices may round them in another way. Without groups, two
        norms would do. Those of sparse rows are split
        (:func:`skdp._oracle.sources.row_blocks.growth_of_rounding`). A triangular factor of T' is
        that of a matrix at most ``c p**2 u |T|_F`` away, c being a small integer (Higham 2002,
        theorem 19.4, leaves it open, 10 is assumed). It is the same for all rows, so that two norms
        are off by it.
        """
        public, size = context.public, context.public.n_parameters
        n_norms = max(n_rows + 1, 2 * growth_of_rounding(public.base_ratio) if public.sparse else 2)
        of_norms = n_norms * (size + 4) + 2 * 10.0 * size**2
        plain = context.rounding(n_rows, 1 + public.has_intercept)
        return (plain + 4.0 * of_norms * UNIT_ROUNDOFF) * self.condition

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.matrix.ndim != 2 or len(set(self.matrix.shape)) != 1:
            raise ValueError(f"Coordinates: T must be square, got shape {self.matrix.shape}.")
        names = "condition", "stretch", "largest", "forms"
        forms = np.linalg.qr(self.matrix.T, mode="r"), self.matrix @ self.matrix.T
        values = *kernel.condition_numbers(self.matrix), forms
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)
        if not self.condition < math.inf:
            raise ValueError(
                "Coordinates: T is singular, up to rounding. Nothing was released for it."
            )


def is_logistic_of_labels(public: Public, problem: Problem) -> bool:
    """Return whether neighbours have the same rows, and a logistic loss with other labels.

    Parameters
    ----------
    public : Public
    problem : Problem

    Returns
    -------
    bool
    """
    return type(problem.loss) in LOGISTIC and public.features_are_public


@dataclass(frozen=True, eq=False)
class OfWhitenedRows(base.Statistic):
    """A statistic of the vectors ``f u`` and of the residuals at ``point``.

    Parameters
    ----------
    point : array of the shape of the parameter
        In the rows' own coordinates, finite.
    coordinates : Coordinates
        Those of T, in which the answer is.
    row_norm : float
        From 1e-100 to 1e100, in the coordinates of T.
    residual_bound : float
        From 1e-100 to 1e100, in the targets' unit.
    """

    point: base.Point = field(repr=False)
    coordinates: Coordinates = field(repr=False)
    row_norm: base.Bound
    residual_bound: base.Bound
    takes_groups: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.coordinates) is not Coordinates:
            raise TypeError(
                f"{type(self).__name__}: coordinates must be Coordinates, got {self.coordinates!r}."
            )

    def term_size(self, context: PublicContext) -> int:
        """Return the number of entries of a record's term."""
        return int(context.public.n_parameters * context.problem.loss.contrasts.shape[1])

    def require_coordinates(self, context: PublicContext, n_outputs: int | None = None) -> None:
        """Raise ValueError unless point and coordinates are those of the problem's parameter."""
        base.require_shape(self, context, "point")
        n_outputs, n_parameters = (
            n_outputs or len(context.problem.loss.contrasts),
            context.public.n_parameters,
        )
        if len(self.coordinates.matrix) != n_parameters or context.public.n_outputs != n_outputs:
            raise ValueError(
                f"{type(self).__name__}: needs {n_outputs} outputs, and coordinates of "
                f"{n_parameters} entries, got {context.public.n_outputs} and "
                f"{len(self.coordinates.matrix)}. Nothing was released for it."
            )

    def whitened(self, block: Records, loss: Loss) -> tuple[Array, Array]:
        """Return vectors ``f u`` of a block, none longer than ``row_norm``, and the weights f.

        A row's weight acts by its root. Rows whose products leave float64's range get f = 0. If the
        loss bounds residuals, so that they are not capped, ``f**2 |u|`` is at most ``row_norm`` as
        well, which says more where weights exceed 1.
        """
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            vectors = block.margins(self.coordinates.matrix)
            inverse = quotient(1.0, np.sqrt(np.einsum("ij,ij->i", vectors, vectors)))
            kind = True, loss.residual_bound is not None
            factors = kernel.shrink_factors(block, inverse, self.row_norm, *kind)
            vectors *= factors[:, None]
        vectors[factors == 0] = 0.0
        return vectors, factors

    def factors(self, rows: RepeatableSource, context: PublicContext, *kind: bool) -> Any:
        """Return the weights f of all rows, of a kind of `shrink_factors`, as a vector for sums."""
        # Without weights all kinds are the same: one vector serves all sums.
        kind = tuple(one or not context.public.has_weights for one in kind)
        coordinates = self.coordinates
        arguments = *coordinates.forms, coordinates.largest, self.row_norm, *kind
        return rows.per_row(kernel.shrink_factors_in, *arguments)

    def residuals(self, block: Records, loss: Loss, factors: Array) -> Array:
        """Return residuals times factors, a column for each contrast. 0 where one is no number."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            plain = loss.residual(block.margins(self.point), block.targets)
            # No product of matrices: with groups, no record's bits may depend on the others.
            columns = [factors * np.einsum("ij,j->i", plain, one) for one in loss.contrasts.T]
        residuals = np.stack(columns, axis=1)
        residuals[np.isnan(residuals)] = 0.0
        if residuals.shape[1] > 1:  # no multiple of an infinite vector has a given length
            residuals[~np.isfinite(residuals).all(axis=1)] = 0.0
        return residuals


def capped(residuals: Array, cap: float) -> Array:
    """Return residuals cut to the length ``cap``."""
    if residuals.shape[1] == 1:
        return np.clip(residuals, -cap, cap)
    lengths = np.sqrt(np.einsum("ij,ij->i", residuals, residuals))
    return residuals * np.minimum(1.0, quotient(cap, lengths))[:, None]


class _StepSquares(OfWhitenedRows, SquareSum):
    """A sum of squares of ``roots f u``. The sum cuts the vector of roots to a length."""

    @abstractmethod
    def roots(self, block: Records, loss: Loss, factors: Array) -> Array:
        """Return the roots of a block, shape (n_rows, n_contrasts), from the weights f."""

    def longest_root(self, context: PublicContext) -> float:
        """Return the length to which the sum cuts the roots of a record."""
        return self.residual_bound

    def largest(self, context: PublicContext) -> float:
        return (self.longest_root(context) * self.row_norm) ** 2

    def rounding(self, context: PublicContext, n_rows: int) -> float:
        if self.is_of_rows(context):
            return self.moved_rounding(context, n_rows)
        return super().rounding(context, n_rows)

    def moved_rounding(self, context: PublicContext, n_rows: int) -> float:
        """Return the relative rounding of a sum in the rows' own coordinates, moved by T.

        With s and S the least and the largest singular value of T, ``|z| <= |u| / s``. So the sum
        of the rows' squares, which is off by a share of the sum of the ``|z|**2``, is off by as
        large a share of that of the ``|u|**2 / s**2``, and ``S**2`` times that after it is moved.
        The products with T add ``2 p u |T|_F**2`` times the sum of the ``|z|**2``. The norms of
        rows, which are squared, are those of `Coordinates.rounding`.
        """
        coordinates, size = self.coordinates, context.public.n_parameters
        of_products = 4.04 * UNIT_ROUNDOFF * size * coordinates.condition**2 * n_rows
        of_sum = super().rounding(context, n_rows) * coordinates.stretch**2
        return of_sum + of_products + 2 * coordinates.rounding(context, n_rows)

    def is_of_rows(self, context: PublicContext) -> bool:
        """Return whether the sum is taken in the rows' own coordinates, which takes less time."""
        is_one = context.problem.loss.contrasts.shape[1] == 1
        return is_one and self.moved_rounding(context, context.public.n_rows) <= MOST_ROUNDING

    def matrix(self, rows: RepeatableSource, context: PublicContext) -> Array:
        self.require_coordinates(context)
        arguments = self, context.problem.loss, self.longest_root(context)
        if not self.is_of_rows(context):
            return np.asarray(rows.total(step_squares, *arguments))
        transform = self.coordinates.matrix
        is_capped = context.problem.loss.residual_bound is not None
        factors = self.factors(rows, context, True, is_capped)
        total = rows.total(squares_of_rows, *arguments, rows=(factors,))
        return np.asarray(transform.T @ total @ transform)


def squares_of_rows(
    records: Records, factors: Array, statistic: _StepSquares, loss: Loss, longest: float
) -> Array:
    """Sum of `step_squares` for one contrast, in the rows' own coordinates."""
    factors = factors.copy()  # those given serve other sums
    for rows, block in records.numbered_pieces():
        roots = np.nan_to_num(statistic.roots(block, loss, factors[rows]))
        factors[rows] *= capped(roots, longest)[:, 0]
    return kernel.weighted_gram(records, factors)


def step_squares(records: Records, statistic: _StepSquares, loss: Loss, longest: float) -> Array:
    """Sum of squares of the products of roots, cut to a length, with vectors ``f u``."""
    total = np.zeros((records.n_parameters * loss.contrasts.shape[1],) * 2)
    for block in records.float64_blocks():
        vectors, factors = statistic.whitened(block, loss)
        roots = capped(np.nan_to_num(statistic.roots(block, loss, factors)), longest)
        if block.multipliers is not None:
            roots = roots * np.sqrt(block.multipliers)[:, None]
        terms = (roots[:, :, None] * vectors[:, None, :]).reshape(len(vectors), len(total))
        total += terms.T @ terms
    return total


@base.audited
@dataclass(frozen=True, eq=False)
class CappedHessian(_StepSquares):
    """Sum of ``w f**2 u u'`` over the records with ``|f r| <= residual_bound``.

    w is the loss's `Loss.working_weight`, at most its ``weight_bound`` W. This is the derivative of
    ``sum f u c(f r)`` in the coordinates of T, or its mean where the model holds: for squared error
    w is 1. Whether the record adds anything, w and f depend only on the record and on public
    numbers.

    Where only targets are private, it is public for the logistic loss and a ``residual_bound`` of
    at least its own: w is ``p (1 - p)``, p the probability at the margin, f follows from the
    row, and no residual is capped, as ``|f r| <= |r|``. No target plays a part in it.
    """

    kind: ClassVar[str] = "hessian"

    def is_public(self, context: PublicContext) -> bool:
        problem, loss = context.problem, context.problem.loss
        caps_none = self.residual_bound >= (loss.residual_bound or np.inf)
        return caps_none and loss.separable and is_logistic_of_labels(context.public, problem)

    def longest_root(self, context: PublicContext) -> float:
        bound = context.problem.loss.weight_bound
        if bound is None or not context.problem.loss.separable:
            raise ValueError(
                f"CappedHessian: {context.problem.loss.name} has no working weight. Nothing was "
                "released for it."
            )
        return math.sqrt(bound)

    def roots(self, block: Records, loss: Loss, factors: Array) -> Array:
        # A margin that is not a number comes of a row that is too long: its vector is null.
        margins = np.nan_to_num(block.margins(self.point))
        # Whatever a loss of one's own returns, its declared bound is kept.
        weights = loss.working_weight(margins, block.targets)
        weights = np.clip(np.nan_to_num(weights), 0.0, loss.weight_bound)
        kept = np.abs(self.residuals(block, loss, factors)) <= self.residual_bound
        return np.asarray(kept * np.sqrt(weights))


@base.audited
@dataclass(frozen=True, eq=False)
class ScoreSquares(_StepSquares):
    """Sum of ``c(f r)**2 f**2 u u'``: second moments of the terms of the estimating equation.

    A group of rows adds ``v v'`` with v the mean of the terms of its rows, which is no longer than
    they may be, and cut to that length once it is computed: bound and spread are the same. It is no
    mean of squares, so it is computed group by group, which makes the covariance that follows hold
    for any correlation within groups (White 1980, sec. 2, for independent records, Liang and Zeger
    1986, Thm 2, for groups whose rows are correlated).
    """

    kind: ClassVar[str] = "score_squares"

    def roots(self, block: Records, loss: Loss, factors: Array) -> Array:
        return self.residuals(block, loss, factors)

    def matrix(self, rows: RepeatableSource, context: PublicContext) -> Array:
        if not context.public.grouped:
            return super().matrix(rows, context)
        self.require_coordinates(context)
        factors = rows.per_row(score_factors, self, context.problem.loss)
        about = self.coordinates.matrix, self.residual_bound * self.row_norm
        return np.asarray(rows.total_over_groups(mean_score_squares, *about, rows=(factors,)))


def score_factors(records: Records, statistic: ScoreSquares, loss: Loss) -> Array:
    """Factors ``c(f r) f`` of rows in their group's term, times their multipliers."""
    scores = [np.empty((0, loss.contrasts.shape[1]))]
    for block in records.float64_blocks():
        _, factors = statistic.whitened(block, loss)
        residuals = capped(statistic.residuals(block, loss, factors), statistic.residual_bound)
        scores.append(block.scaled_by_group(factors[:, None] * residuals))
    return np.concatenate(scores)


def mean_score_squares(block: GroupBlock, factors: Array, transform: Array, most: float) -> Array:
    """Sum over groups of ``v v'``, v the group's term. Rounding above ``most`` is clipped."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        terms = [block.sums(own) @ transform for own in np.ascontiguousarray(factors.T)]
        vectors = np.concatenate(terms, axis=1)
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        vectors *= np.minimum(1.0, quotient(most, lengths))[:, None]
    vectors[~np.isfinite(lengths)] = 0.0
    return np.asarray(vectors.T @ vectors)


def gradient_weight(loss: Loss) -> float:
    """Return the weight of the gradient in `LogisticStep`.

    Parameters
    ----------
    loss : Logistic or Multinomial

    Returns
    -------
    float
    """
    return GRADIENT_WEIGHT if isinstance(loss, Logistic) else MULTINOMIAL_GRADIENT_WEIGHT


@base.audited
@dataclass(frozen=True, eq=False)
class LogisticStep(OfWhitenedRows):
    """Hessian and gradient of a logistic loss in one vector: the Hessian adds nothing to the bound.

    A record adds ``q (1 - q) f**2 u u'``, packed as in `GramSum`, and ``c R f**2 r u``: q is the
    probability of a class, R is ``row_norm`` and c is `gradient_weight`. Residuals are bounded by
    the loss, so ``residual_bound`` has no part in it. Of several classes with
    probabilities p it adds the products of all entries of ``A = diag(p) - p p'`` with those of
    ``f**2 u u'``, and of ``r = p - e``, e being the unit vector of its class, with ``c R f**2 u``,
    in coordinates of `Loss.contrasts`, which change neither norm: rows and columns of A, and r, add
    up to 0.

    Sensitivity: let q be the probability of the record's own class, so that ``|r| = 1 - q``. The
    product ``q (1 - q)`` is the same for either class. As ``f |u| <= R`` and ``f**2 |u| <= R``, the
    squared norm of a record's contribution is at most ``R**4 (1 - q)**2 q**2 + c**2 R**4 (1 -
    q)**2``. This is at most ``c**2 R**4`` for every q if ``c**2 >= q (1 - q)**2 / (2 - q)``, whose
    maximum over [0, 1] is ``(5 sqrt(5) - 11) / 2 = 0.090170``, at ``q = (3 - sqrt(5)) / 2``: so c
    of at least 0.300283 will do. Zero-out moves the vector by at most ``c R**2``, which is attained
    as q goes to 0, a null record adding 0. Replace-one by twice that (triangle inequality),
    attained by two opposite gradients. Where only labels differ, only residuals do, by 1 at most:
    the vectors are ``c R**2`` apart.

    Of several classes let s be the sum of the squares of p, and q again the probability of the own
    class: ``|r|**2 = 1 - 2 q + s``. No eigenvalue of A is above 1/2 (Böhning 1992) and none is
    below 0, so ``|A|_F**2 <= tr(A) / 2 = (1 - s) / 2``. The squared norm of a record's contribution
    is at most ``R**4 (|A|_F**2 + c**2 |r|**2) <= R**4 ((1 - s) / 2 + c**2 (1 + s))``, which is at
    most ``2 c**2 R**4`` if ``c**2 >= 1/2``, as s is at most 1. So zero-out moves the vector by at
    most ``sqrt(2) c R**2``, attained where p is all on one wrong class, replace-one by twice that.
    Two labels make residuals that are sqrt(2) apart.
    """

    kind: ClassVar[str] = "gradient_and_hessian"

    def contribution(self, context: PublicContext, n_rows: int) -> base.Contribution:
        loss, size = context.problem.loss, self.term_size(context)
        if type(loss) not in LOGISTIC:
            raise ValueError(
                "LogisticStep: the bound holds only for logistic losses. Nothing was released for "
                "it."
            )
        slack = 2 * context.rounding(n_rows, 2 * size + 16) + context.rounding(n_rows, 1)
        bound = gradient_weight(loss) * (loss.residual_bound or math.inf) * self.row_norm**2
        entries, slack = size * (size + 1) // 2 + size, slack / gradient_weight(loss)
        spread = 1.0 if is_logistic_of_labels(context.public, context.problem) else 2.0
        return base.Contribution.of_sum(bound, n_rows, slack * 2 / spread, spread, size=entries)

    def total(self, rows: RepeatableSource, context: PublicContext) -> Array:
        self.require_coordinates(context)
        return np.asarray(rows.total(logistic_step, self, context.problem.loss))


def logistic_step(records: Records, statistic: LogisticStep, loss: Loss) -> Array:
    """Sum of ``w f**2 u u'``, packed, and of ``f**2 u r`` times weight and row norm."""
    size, n_contrasts = records.n_parameters, loss.contrasts.shape[1]
    hessian = np.zeros((n_contrasts, size, n_contrasts, size))
    gradient = np.zeros((n_contrasts, size))
    for block in records.float64_blocks():
        vectors, factors = statistic.whitened(block, loss)
        residuals = statistic.residuals(block, loss, factors)
        gradient += block.scaled_by_group(residuals).T @ vectors
        # A margin that is not a number comes of a row that is too long: its vector is null.
        margins = np.nan_to_num(block.margins(statistic.point))
        if block.multipliers is not None:
            vectors *= np.sqrt(block.multipliers)[:, None]
        step = max(MOST_WEIGHTS // n_contrasts**2, 1)
        for start in range(0, len(vectors), step):
            rows = slice(start, start + step)
            weights = loss.working_weight(margins[rows], block.targets[rows])
            weights = weights.reshape(-1, n_contrasts, n_contrasts)
            for j, k in zip(*np.triu_indices(n_contrasts), strict=True):
                hessian[j, :, k] += (weights[:, j, k, None] * vectors[rows]).T @ vectors[rows]
    packed = kernel.pack(hessian.reshape((n_contrasts * size,) * 2))
    return np.concatenate([packed, gradient_weight(loss) * statistic.row_norm * gradient.ravel()])


# ---------------------------------------------------------------- gradients of shrunk rows


def capped_residuals_of(context: PublicContext, cap: float) -> tuple[float, float]:
    """Return the largest length of a record's capped residual, and the spread of two of them.

    If only labels differ, both residuals of a logistic loss are ``p - e`` with the same p, as the
    margins are the same, and e the unit vector of a class, or p - 1 and p: they are at most
    ``residual_bound`` B long, and at most B apart, 1 or sqrt(2). The factor of the row, at most 1,
    and the cap, a projection onto a ball, bring them no farther apart (a projection onto a convex
    set is nonexpansive). So they are ``min(2 cap, B)`` apart. In all other cases the triangle
    inequality says ``2 cap``.
    """
    bound = context.problem.loss.residual_bound
    if bound is None or not is_logistic_of_labels(context.public, context.problem):
        return cap, 2.0
    longest = min(cap, bound)
    return longest, min(2.0, bound / longest)


@base.audited
@dataclass(frozen=True, eq=False)
class ShrunkGradientSum(RowSum, OfWhitenedRows):
    """Sum of the records' gradients at ``point``, the rows shrunk and the residuals capped.

    In ``coordinates`` of a public matrix T, row z is ``u = T'z``. A record adds
    ``f u r``, with ``f = min(1, row_norm / |u|)`` and r its weighted residual, of L2 norm at most
    ``residual_bound``. Unlike clipping the gradient, shrinking the row is a weight that does not
    depend on the target: where the model holds, it does not move the minimum.

    With ``whole_records`` the residual is multiplied by f before it is capped, weights acting by
    their root on either factor: squared error shrinks the record with its target, as `GramSum`
    does.

    Sensitivity: that of `RowSum`, as ``|f u| |r| <= row_norm * residual_bound``, over the matrix
    ``f u r'``. Two records are less than twice that apart if only labels differ, as
    :func:`capped_residuals_of` proves: ``f u`` is the same. T is fixed here, finite, and public, as
    whatever a solver names. It affects the bound on rounding errors, which is
    `Coordinates.rounding`.

    Parameters
    ----------
    point, coordinates, row_norm, residual_bound
        As `OfWhitenedRows`.
    whole_records : bool, default=False
    """

    whole_records: base.Flag = False
    kind: ClassVar[str] = "gradient"

    def largest(self, context: PublicContext) -> tuple[float, float]:
        longest, spread = capped_residuals_of(context, self.residual_bound)
        return self.row_norm * longest, spread

    def more_rounding(self, context: PublicContext, n_rows: int) -> float:
        return self.coordinates.rounding(context, n_rows)

    def total(self, rows: RepeatableSource, context: PublicContext) -> Array:
        self.require_coordinates(context, context.public.n_outputs)
        transform = self.coordinates.matrix
        factors = self.factors(rows, context, self.whole_records, False)
        arguments = context.problem.loss, self.point, self.residual_bound, self.whole_records
        total = rows.total(kernel.shrunk_gradients, *arguments, rows=(factors,))
        return np.asarray(transform.T @ total)
