"""Statistics for one Newton step from a private fit and for its covariance.

In whitened coordinates, those of a public matrix T, row z is ``u = T'z``. A record is taken with
the weight ``f = min(1, row_norm / |u|)``, its residual r with the weight ``h = min(1, reach f)``
and a cap: ``c(h r)``, c cutting to plus or minus ``residual_bound``. Both weights depend on the row
alone. The estimating equation is ``sum f u c(h r) = 0``, and `ShrunkGradientSum` with
``whole_records`` and the same reach is that sum; here are its derivative, the second moments of its
terms, and what else the step needs. No term grows with the reach, but the derivative does: rows
that were shortened say more about it.

With noise r is the residual of `Loss.with_bounded_weights`: it is multiplied by ``min(1, W / w)``,
with w the working weight at the point and W its bound. This is a function of the row and of public
numbers, so the equation keeps its solution where the model holds, and its derivative has weights
of at most W by itself. No sensitivity rests on it: whatever r is, ``h r`` is capped, and w is cut.

Of several classes r is a vector, in the coordinates of `Loss.contrasts`, and its cap is one of its
length; a record's term is the product of every entry of r with the row, the same entry's products
side by side.

Where a record is a group of rows its term is the mean of those of its rows, and so are its parts in
all sums here but one: second moments are those of the groups' terms, each of them one vector, which
makes the covariance that follows from them hold for any correlation within groups.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skdp._numbers import Array
from skdp.objective import Logistic, Loss, Multinomial
from skdp.oracle.kernels import second_moments as moments
from skdp.oracle.releases import base
from skdp.oracle.releases.base import PublicContext
from skdp.oracle.releases.moments import ROOT_TWO, Coordinates, gram_rounding, is_logistic_of_labels
from skdp.oracle.sources.base import RepeatableSource, require_kind
from skdp.oracle.sources.block_sizes import UNIT_ROUNDOFF
from skdp.oracle.sources.groups import GroupBlock, GroupedSource
from skdp.oracle.sources.records import Records, quotient

# Weights of the gradient next to the Hessian in one vector; `LogisticStep` has the proof. The least
# that will do are 0.300283, and the root of 1/2 for several classes.
GRADIENT_WEIGHT, MULTINOMIAL_GRADIENT_WEIGHT = 0.3004, 0.70711
Norms = tuple[float, float]  # of rows, and up to how many times as much residuals are whole
MOST_WEIGHTS = 2**20  # entries of the weights of rows that are summed at a time: 8 MB


def gradient_weight(loss: Loss) -> float:
    """Return the weight of the gradient in `LogisticStep`.

    Parameters
    ----------
    loss : Logistic or Multinomial

    Returns
    -------
    float
    """
    return GRADIENT_WEIGHT if type(loss) is Logistic else MULTINOMIAL_GRADIENT_WEIGHT


# ---------------------------------------------------------------- block functions


def _whitened(block: Records, loss: Loss, transform: Array, row_norm: float) -> tuple[Array, Array]:
    """Vectors ``f u`` of a block, none longer than ``row_norm``, and the weights f.

    A row's weight acts by its root, on f. Rows whose products leave float64's range get f = 0. If
    the loss bounds residuals, so that they are not capped, ``f**2 |u|`` is at most ``row_norm``,
    too, which says more where weights exceed 1.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        vectors = block.margins(transform)
        inverse = quotient(1.0, np.sqrt(np.einsum("ij,ij->i", vectors, vectors)))
        roots = None if block.weights is None else np.sqrt(block.weights)
        factors = moments.factors_within(row_norm, inverse, roots)
        if loss.residual_bound is not None:
            factors = np.minimum(factors, np.sqrt(np.maximum(1.0, row_norm * inverse)))
        vectors *= factors[:, None]
    vectors[factors == 0] = 0.0
    return vectors, factors


def _blocks(
    records: Records, loss: Loss, point: Array, transform: Array, norms: Norms
) -> Iterator[tuple[Records, Array, Array, Array]]:
    """Yield blocks with their vectors ``f u``, weights f, and residuals ``h r`` at the point."""
    for block in records.float64_blocks():
        yield block, *whitened(block, loss, point, transform, norms)


def whitened(
    block: Records, loss: Loss, point: Array, transform: Array, norms: Norms
) -> tuple[Array, Array, Array]:
    """Return vectors ``f u`` of a block, weights f, and residuals ``h r`` at the point."""
    vectors, factors = _whitened(block, loss, transform, norms[0])
    own = moments.residual_factors(block, factors, norms[1])
    return vectors, factors, _weighted_residuals(block, loss, block.margins(point), own)


def _weighted_residuals(block: Records, loss: Loss, margins: Array, factors: Array) -> Array:
    """Return weighted residuals, a column for each contrast; 0 where one is not a number."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        plain = loss.residual(margins, block.targets)
        # No product of matrices: with groups, no record's bits may depend on the others.
        columns = [factors * np.einsum("ij,j->i", plain, one) for one in loss.contrasts.T]
    residuals = np.stack(columns, axis=1)
    residuals[np.isnan(residuals)] = 0.0
    if residuals.shape[1] > 1:  # no multiple of an infinite vector has a given length
        residuals[~np.isfinite(residuals).all(axis=1)] = 0.0
    return residuals


def _lengths(residuals: Array) -> Array:
    if residuals.shape[1] == 1:
        return np.abs(residuals[:, 0])
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", residuals, residuals)))


def _capped(residuals: Array, cap: float) -> Array:
    """Residuals cut to the length ``cap``."""
    if residuals.shape[1] == 1:
        return np.clip(residuals, -cap, cap)
    return residuals * np.minimum(1.0, quotient(cap, _lengths(residuals)))[:, None]


def capped_hessian(
    records: Records, loss: Loss, point: Array, transform: Array, norms: Norms, cap: float
) -> Array:
    """Sum of ``w f h u u'`` over the records whose residual is not capped."""
    total = np.zeros((records.n_parameters,) * 2)
    for block, vectors, factors, residuals in _blocks(records, loss, point, transform, norms):
        weights = _working_weights(block, loss, block.margins(point))
        longer = moments.residual_factors(block, factors, norms[1]) / np.maximum(factors, 1e-300)
        vectors *= np.sqrt(weights * longer[:, None])
        kept = _by_group(block, vectors)[_lengths(residuals) <= cap]
        total += kept.T @ kept
    return total


def _working_weights(block: Records, loss: Loss, margins: Array) -> Array:
    # A margin that is not a number comes of a row that is too long: its vector is null.
    weights = loss.working_weight(np.nan_to_num(margins), block.targets)
    # Whatever a loss of one's own returns, its declared bound is kept.
    return np.clip(np.nan_to_num(weights), 0.0, loss.weight_bound)


def own_hessian(
    records: Records, limits: Array, loss: Loss, point: Array, reach: float, cap: float
) -> Array:
    """Sum of ``w f h z z'`` over the records whose residual is not capped; ``limits`` are the f."""
    squares = np.empty(records.n_rows)
    for rows, block in records.numbered_blocks():
        factors, margins = limits[rows], block.margins(point)
        own = moments.residual_factors(block, factors, reach)
        kept = _lengths(_weighted_residuals(block, loss, margins, own)) <= cap
        squares[rows] = _working_weights(block, loss, margins)[:, 0] * factors * own * kept
    return moments.weighted_gram(records, np.sqrt(squares))


def _by_group(block: Records, vectors: Array) -> Array:
    """Multiply vectors by the roots of the multipliers, so that their squares get these."""
    roots = 1.0 if block.multipliers is None else np.sqrt(block.multipliers)[:, None]
    return np.multiply(vectors, roots, out=vectors)


def score_squares(
    records: Records, loss: Loss, point: Array, transform: Array, norms: Norms, cap: float
) -> Array:
    """Sum of ``v v'`` over the terms v of the records, ``c(h r)`` times ``f u``."""
    total = np.zeros((records.n_parameters * loss.contrasts.shape[1],) * 2)
    for _, vectors, _, residuals in _blocks(records, loss, point, transform, norms):
        terms = _capped(residuals, cap)[:, :, None] * vectors[:, None, :]
        terms = terms.reshape(len(vectors), len(total))
        total += terms.T @ terms
    return total


def score_factors(
    records: Records, loss: Loss, point: Array, transform: Array, norms: Norms, cap: float
) -> Array:
    """Factors ``c(h r) f`` of rows in their group's term, times their multipliers."""
    scores = [np.empty((0, loss.contrasts.shape[1]))]
    for block, _, factors, residuals in _blocks(records, loss, point, transform, norms):
        scores.append(block.scaled_by_group(factors[:, None] * _capped(residuals, cap)))
    return np.concatenate(scores)


def mean_score_squares(block: GroupBlock, factors: Array, transform: Array, most: float) -> Array:
    """Sum over groups of ``v v'``, v the group's term; what rounding adds to ``most`` is cut."""
    records, n_features, terms = block.records, block.records.n_features, []
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for plain in np.ascontiguousarray(factors.T):
            within = plain if records.shrink is None else plain * records.shrink
            term = np.asarray(block.sums(within) @ transform[:n_features])
            if records.constant:
                term += records.constant * np.outer(block.sums_of(plain), transform[n_features])
            terms.append(term)
        vectors = np.concatenate(terms, axis=1)
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        vectors *= np.minimum(1.0, quotient(most, lengths))[:, None]
    vectors[~np.isfinite(lengths)] = 0.0
    return np.asarray(vectors.T @ vectors)


def logistic_step(
    records: Records, loss: Loss, point: Array, transform: Array, row_norm: float
) -> Array:
    """Sum of ``w f**2 u u'``, packed, and of ``f**2 u r`` times weight and row norm."""
    size, n_contrasts = records.n_parameters, loss.contrasts.shape[1]
    hessian = np.zeros((n_contrasts, size, n_contrasts, size))
    gradient = np.zeros((n_contrasts, size))
    for block in records.float64_blocks():
        margins = block.margins(point)
        vectors, factors = _whitened(block, loss, transform, row_norm)
        residuals = _weighted_residuals(block, loss, margins, factors)
        gradient += block.scaled_by_group(residuals).T @ vectors
        # A margin that is not a number comes of a row that is too long: its vector is null.
        margins, vectors = np.nan_to_num(margins), _by_group(block, vectors)
        step = max(MOST_WEIGHTS // n_contrasts**2, 1)
        for start in range(0, len(vectors), step):
            rows = slice(start, start + step)
            weights = loss.working_weight(margins[rows], block.targets[rows])
            weights = weights.reshape(-1, n_contrasts, n_contrasts)
            for j, k in zip(*np.triu_indices(n_contrasts), strict=True):
                hessian[j, :, k] += (weights[:, j, k, None] * vectors[rows]).T @ vectors[rows]
    packed = moments.pack(hessian.reshape((n_contrasts * size,) * 2))
    return np.concatenate([packed, gradient_weight(loss) * row_norm * gradient.ravel()])


# ---------------------------------------------------------------- the statistics


@dataclass(frozen=True, eq=False)
class OfWhitenedRows(base.Statistic):
    """A statistic of the vectors ``f u`` and of the residuals at ``point``.

    Parameters
    ----------
    point : array of the shape of the parameter
        In the rows' own coordinates; finite.
    coordinates : Coordinates
        Those of T, in which the answer is.
    row_norm : float
        From 1e-100 to 1e100, in the coordinates of T.
    residual_bound : float
        From 1e-100 to 1e100, in the targets' unit.
    reach : float, default=1.0
        From 1e-100 to 1e100.
    """

    point: base.Point = field(repr=False)
    coordinates: Coordinates = field(repr=False)
    row_norm: base.Bound
    residual_bound: base.Bound
    reach: base.Bound = 1.0
    takes_groups: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.coordinates) is not Coordinates:
            raise TypeError(
                f"{type(self).__name__}: coordinates must be Coordinates; got {self.coordinates!r}."
            )

    def _gram_slack(self, context: PublicContext, n_rows: int) -> float:
        """Relative rounding of a sum of outer products of vectors that are computed row by row.

        The norms are those of the vectors as they were computed, so that rounding in ``T'z`` does
        not matter. See :func:`skdp.oracle.releases.moments.gram_rounding`.
        """
        return gram_rounding(context, n_rows, 2 * self._size(context) + 16)

    def _size(self, context: PublicContext) -> int:
        """Return the number of entries of a record's term."""
        return int(context.public.n_parameters * context.problem.loss.contrasts.shape[1])

    def _arguments(self, context: PublicContext) -> tuple[Loss, Array, Array, Norms, float]:
        base.require_shape(self, context, "point")
        transform, n_parameters = self.coordinates.matrix, context.public.n_parameters
        n_outputs = len(context.problem.loss.contrasts)
        if len(transform) != n_parameters or context.public.n_outputs != n_outputs:
            raise ValueError(
                f"{type(self).__name__}: needs {n_outputs} outputs, and coordinates of "
                f"{n_parameters} entries; got {context.public.n_outputs} and {len(transform)}. "
                "Nothing was released for it."
            )
        norms = self.row_norm, self.reach
        return context.problem.loss, self.point, transform, norms, self.residual_bound


class _Matrix(OfWhitenedRows):
    """The upper triangle of a matrix, entries off the diagonal times sqrt(2), as in `GramSum`."""

    def _bounded_by(
        self, bound: float, context: PublicContext, n_rows: int, spread: float = ROOT_TWO
    ) -> base.Contribution:
        slack, size = self._gram_slack(context, n_rows) * ROOT_TWO / spread, self._size(context)
        return base.Contribution.of_sum(bound, n_rows, slack, spread, size=size * (size + 1) // 2)


@base.audited
@dataclass(frozen=True, eq=False)
class CappedHessian(_Matrix):
    """Sum of ``w f h u u'`` over the records with ``|h r| <= residual_bound``.

    w is the loss's `Loss.working_weight`, at most its ``weight_bound`` W. This is the derivative of
    ``sum f u c(h r)`` in the coordinates of T, or its mean where the model holds: for squared error
    w is 1.

    Sensitivity: h is at most f times the reach, so a record adds ``w v v'`` with
    ``|v|**2 = f h |u|**2 <= reach |f u|**2``, or nothing: a matrix of Frobenius norm at most
    ``W reach row_norm**2``. A null record, of weight 0, adds 0. Two such matrices are
    positive semidefinite, so their inner product is at least 0 and they are at most sqrt(2) times
    that apart: the spread is sqrt(2), as for `GramSum`. Whether the record adds anything, w, f and
    h depend on the record and on public numbers alone.

    Where targets alone are private, it is public for the logistic loss and a ``residual_bound`` of
    at least its own: w is ``p (1 - p)``, p the probability at the margin, f and h follow from the
    row, and no residual is capped, as ``|h r| <= |r|``. No target plays a part in it.

    Of unweighted dense records the sum S of ``w f h z z'`` is taken, and ``T' S T`` is the answer,
    unless rounding could then raise it by a relative 1e-3. That sum is off by
    ``k u sum w f h |z|**2`` at most (see :func:`skdp.oracle.releases.moments.gram_rounding`), where
    ``|z| <= |u| / s``, s being the least singular value of T; T and T' make it at most ``|T|_2**2``
    times as large. So rounding is charged for ``(|T|_2 / s)**2`` times. The two products with T add
    ``2 p u |T|_F**2 |S|_F`` (Higham 2002, eq. 3.13), where ``|T|_F**2 <= p |T|_2**2`` and ``|S|_F``
    is at most the sum of ``w f h |z|**2``. The norms ``|u|`` are those of `ShrunkGradientSum`;
    their error counts twice, as they are squared.
    """

    kind: ClassVar[str] = "hessian"

    def is_public(self, context: PublicContext) -> bool:
        problem, loss = context.problem, context.problem.loss
        caps_none = self.residual_bound >= (loss.residual_bound or np.inf)
        return caps_none and loss.separable and is_logistic_of_labels(context.public, problem)

    def contribution(self, context: PublicContext, n_rows: int) -> base.Contribution:
        loss = context.problem.loss
        bound = loss.weight_bound
        if bound is None or not loss.separable:
            raise ValueError(
                f"CappedHessian: {context.problem.loss.name} has no working weight. Nothing was "
                "released for it."
            )
        return self._bounded_by(bound * self.reach * self.row_norm**2, context, n_rows)

    def _gram_slack(self, context: PublicContext, n_rows: int) -> float:
        is_moved = self._is_moved(context)
        return (self._moved_slack if is_moved else super()._gram_slack)(context, n_rows)

    def _moved_slack(self, context: PublicContext, n_rows: int) -> float:
        """Return the rounding of the sum in the rows' own coordinates."""
        of_products = 4.04 * UNIT_ROUNDOFF * self._size(context) ** 2 * n_rows
        of_sum = super()._gram_slack(context, n_rows) + of_products
        of_norms = 2 * self.coordinates.rounding(context, n_rows)
        return of_sum * self.coordinates.spread**2 + of_norms

    def _is_moved(self, context: PublicContext) -> bool:
        """Return whether the sum is taken in the rows' own coordinates: public facts decide."""
        public = context.public
        is_plain = not (public.grouped or public.sparse or public.weighted)
        return is_plain and self._moved_slack(context, public.n_rows) <= 1e-3  # of the noise

    def total(self, rows: RepeatableSource, context: PublicContext) -> Array:
        loss, point, transform, norms, cap = self._arguments(context)
        if not self._is_moved(context):
            return moments.pack(rows.total(capped_hessian, loss, point, transform, norms, cap))
        limits = rows.per_row(moments.shrinking_factors, transform, self.row_norm, False, None)
        total = rows.total(own_hessian, loss, point, self.reach, cap, rows=(limits,))
        return moments.pack(transform.T @ total @ transform)


@base.audited
@dataclass(frozen=True, eq=False)
class ScoreSquares(_Matrix):
    """Sum of ``c(h r)**2 f**2 u u'``: second moments of the terms of the estimating equation.

    Sensitivity: a record adds ``v v'`` with ``v = c(h r) f u``, of length at most
    ``residual_bound * row_norm``, also where r is a vector and v holds all products, as
    ``|c f u| = |c| |f u|`` then; and a null record adds 0. So zero-out moves the matrix by at most
    ``(residual_bound * row_norm)**2`` in Frobenius norm, replace-one, between two positive
    semidefinite matrices, by sqrt(2) times that. Where targets alone differ, f and u are the
    same: of one margin the matrices are two multiples of ``f**2 u u'``, none of them negative, so
    they are no farther apart than the longer one is long.

    A group of rows adds ``v v'`` with v the mean of those of its rows, which is no longer than they
    may be, and cut to that length once it is computed: bound and spread are the same. It is no mean
    of what rows add, so it is computed group by group (White 1980, sec. 2, for independent records;
    Liang and Zeger 1986, Thm 2, for groups whose rows are correlated).
    """

    kind: ClassVar[str] = "score_squares"

    def contribution(self, context: PublicContext, n_rows: int) -> base.Contribution:
        is_multiple = context.public.features_are_public and context.public.n_outputs == 1
        bound, spread = (self.residual_bound * self.row_norm) ** 2, 1.0 if is_multiple else ROOT_TWO
        return self._bounded_by(bound, context, n_rows, spread)

    def total(self, rows: RepeatableSource, context: PublicContext) -> Array:
        arguments = self._arguments(context)
        if not context.public.grouped:
            return moments.pack(rows.total(score_squares, *arguments))
        groups, most = require_kind(rows, GroupedSource), self.residual_bound * self.row_norm
        factors = groups.per_row(score_factors, *arguments)
        about = self.coordinates.matrix, most
        return moments.pack(groups.total_over_groups(mean_score_squares, *about, rows=(factors,)))


@base.audited
@dataclass(frozen=True, eq=False)
class LogisticStep(OfWhitenedRows):
    """Hessian and gradient of a logistic loss in one vector: the Hessian rides along for nothing.

    A record adds ``q (1 - q) f**2 u u'``, packed as in `GramSum`, and ``c R f**2 r u``: q is the
    probability of a class, R is ``row_norm`` and c is `gradient_weight`. Residuals are bounded by
    the loss, so ``residual_bound`` and ``reach`` have no part in it. Of several classes with
    probabilities p it adds the products of all entries of ``A = diag(p) - p p'`` with those of
    ``f**2 u u'``, and of ``r = p - e``, e being the unit vector of its class, with ``c R f**2 u``,
    in coordinates of `Loss.contrasts`, which change neither norm: rows and columns of A, and r, add
    up to 0.

    Sensitivity: let q be the probability of the record's own class, so that ``|r| = 1 - q``; the
    product ``q (1 - q)`` is the same for either class. As ``f |u| <= R`` and ``f**2 |u| <= R``,
    the squared norm of what a record adds is at most
    ``R**4 (1 - q)**2 q**2 + c**2 R**4 (1 - q)**2``. This is at most ``c**2 R**4`` for every q if
    ``c**2 >= q (1 - q)**2 / (2 - q)``, whose maximum over [0, 1] is ``(5 sqrt(5) - 11) / 2 =
    0.090170``, at ``q = (3 - sqrt(5)) / 2``: so c of at least 0.300283 will do. Zero-out moves the
    vector by at most ``c R**2``, which is attained as q goes to 0, a null record adding 0;
    replace-one by twice that (triangle inequality), attained by two opposite gradients. Where
    labels alone differ, so do residuals alone, by 1 at most: the vectors are ``c R**2`` apart.

    Of several classes let s be the sum of the squares of p, and q again the probability of the own
    class: ``|r|**2 = 1 - 2 q + s``. No eigenvalue of A is above 1/2 (Böhning 1992) and none is
    below 0, so ``|A|_F**2 <= tr(A) / 2 = (1 - s) / 2``. The squared norm of what a record adds is
    at most ``R**4 (|A|_F**2 + c**2 |r|**2) <= R**4 ((1 - s) / 2 + c**2 (1 + s))``, which is at most
    ``2 c**2 R**4`` if ``c**2 >= 1/2``, as s is at most 1. So zero-out moves the vector by at most
    ``sqrt(2) c R**2``, attained where p is all on one wrong class; replace-one by twice that. Two
    labels make residuals that are sqrt(2) apart.
    """

    kind: ClassVar[str] = "gradient_and_hessian"

    def contribution(self, context: PublicContext, n_rows: int) -> base.Contribution:
        slack = self._gram_slack(context, n_rows) + context.rounding(n_rows, 1)
        loss, size = self._checked_loss(context), self._size(context)
        assert loss.residual_bound is not None
        bound = gradient_weight(loss) * loss.residual_bound * self.row_norm**2
        entries, slack = size * (size + 1) // 2 + size, slack / gradient_weight(loss)
        spread = 1.0 if is_logistic_of_labels(context.public, context.problem) else 2.0
        return base.Contribution.of_sum(bound, n_rows, slack * 2 / spread, spread, size=entries)

    def total(self, rows: RepeatableSource, context: PublicContext) -> Array:
        self._checked_loss(context)
        *about, _, _ = self._arguments(context)
        return np.asarray(rows.total(logistic_step, *about, self.row_norm))

    def _checked_loss(self, context: PublicContext) -> Loss:
        if type(context.problem.loss) not in (Logistic, Multinomial):
            raise ValueError(
                "LogisticStep: the bound holds for the logistic losses alone. Nothing was released "
                "for it."
            )
        return context.problem.loss
