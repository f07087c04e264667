"""Answers from second moments that are not shown themselves: eigenvalues, a Newton direction.

None of them is a sum over records, but one record moves them by a bounded amount.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skdp._numbers import Array
from skdp.objective import Logistic, SquaredError
from skdp.oracle.kernels import second_moments
from skdp.oracle.releases import base
from skdp.oracle.releases.moments import gram_rounding
from skdp.oracle.sources import block_sizes
from skdp.oracle.sources.base import RepeatableSource
from skdp.oracle.sources.sparse_rows import growth_of_rounding

MAX_GRAM_COLUMNS = 4000  # a Gram matrix of more takes over 128 MB and minutes for its eigenvalues
WITHOUT_TARGETS = (Logistic, SquaredError)  # losses whose second derivative reads no target


def eigenvalue_rounding(
    n_rows: int, n_parameters: int, grouped: bool = False, is_sparse: bool = False
) -> float:
    """Amount by which rounding can move the eigenvalue, relative to a bound on ``|z|**2``.

    A record's ``|z|**2`` exceeds its bound by a relative ``(n_parameters + 8) u`` at most (its
    norm, the quotient, the product). The computed matrix is ``G + E`` with ``|E_jk| <= k u sum
    |z_j z_k|`` to first order, k being the rows of a block plus the number of blocks and parts
    (Higham 2002, eq. 3.13), so in spectral norm E is at most ``k u sum |z|**2 <= k u n R**2``.
    Compiled sums of sparse rows, whose parts are up to ``growth_of_rounding()`` times as long as
    the row, add 32 u times the square of that (`skdp.oracle.kernels.second_moments`). The
    eigenvalue is that of a matrix ``100 n_parameters**2 u n R**2`` away, at most: the reduction to
    tridiagonal form is ``n_parameters`` reflections, each off by a small multiple of
    ``n_parameters u`` times the Frobenius norm (Higham 2002, Lemma 19.3), and the iteration that
    follows does no worse. Two neighbouring data sets are off by twice as much.
    """
    # With or without the constant among the parameters, and parts that end in shorter blocks.
    columns = max(n_parameters - 1, 1), n_parameters
    most = max(16, block_sizes.BLOCK_BYTES // (8 * columns[0]))
    fewest = max(
        16, block_sizes.COPIED_BYTES // (8 * columns[1])
    )  # rows that are copied on the way
    blocks = n_rows // fewest + 2 * block_sizes.MAX_PARTS + 2
    sums = block_sizes.PAIRED_SUMS + most if grouped else min(most, n_rows) + blocks
    compiled = 32.0 * growth_of_rounding() ** 2 if is_sparse else 0.0
    terms = sums + compiled + 100 * n_parameters**2
    return 1.01 * block_sizes.UNIT_ROUNDOFF * (n_parameters + 8 + 2.0 * terms * n_rows)


def _solver_rounding(size: int) -> float:
    """Relative backward error of LAPACK's symmetric eigensolver, with room to spare.

    Its users' guide (3rd ed., sec. 4.7) bounds it by ``p(n) u`` with a "modestly growing" p, "such
    as p(n) = n"; taken here is ``64 n**1.5``.
    """
    return float(64.0 * size**1.5 * block_sizes.UNIT_ROUNDOFF)


@base.audited
@dataclass(frozen=True)
class LargestEigenvalue(base.Statistic):
    """Largest eigenvalue of ``sum_i z_i z_i'``, z being rows with their constant; one number.

    Write G for the matrix without the record, R for the enforced bound on ``|z|``. By Weyl's
    inequality

        ``lambda(G) <= lambda(G + z z') <= lambda(G) + |z|**2 <= lambda(G) + R**2``,

    so the answer lies in an interval of length ``R**2`` that the other records fix. Zero-out is
    within it: the null row is there (with the constant, whose square is counted in R**2; the
    constant of a null record does not vanish, and the interval is that of all z). Replace-one is
    as well: ``lambda(G + z z')`` and ``lambda(G + v v')`` lie in the same interval. Hence the
    sensitivity is ``R**2`` under both, in L1 as in L2 norm, and the spread is 1. A group adds a
    mean of such products, positive semi-definite, with no eigenvalue above ``R**2``: the same
    inequalities hold. Rounding
    adds what :func:`eigenvalue_rounding` bounds. Weights and targets play no part.

    Times ``curvature / n`` it bounds the smoothness of the mean loss without weights.

    Parameters
    ----------
    order : {1, 2}, default=2
        Of the norm of its noise: 2 for Gaussian, 1 for Laplace noise.
    """

    order: float = 2
    kind: ClassVar[str] = "largest_eigenvalue"
    reads_targets: ClassVar[bool] = False
    takes_groups: ClassVar[bool] = True
    gradients: ClassVar[int] = 0

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        public = context.public
        if public.row_norm is None:
            raise ValueError(
                "LargestEigenvalue: needs an enforced bound on the norm of rows; set "
                "scaling=RowNorm(norm). Nothing was released."
            )
        if public.n_parameters > MAX_GRAM_COLUMNS:
            raise ValueError(
                f"LargestEigenvalue: {public.n_parameters} columns are too many for a Gram matrix; "
                f"at most {MAX_GRAM_COLUMNS}. Nothing was released."
            )
        given = n_rows, public.n_parameters, public.grouped, public.sparse
        slack = eigenvalue_rounding(*given)
        bound = public.row_norm**2
        return base.Contribution.of_sum(bound, n_rows, slack, 1.0, size=1, order=self.order)

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        return np.linalg.eigvalsh(rows.total(second_moments.plain_gram))[-1:]


@base.audited
@dataclass(frozen=True, eq=False)
class NewtonDirection(base.ParameterStatistic):
    """``(H + damping I)^-1 vector``, H the Hessian of the summed losses at ``point``.

    H is the sum of ``v v'``, v the row with its constant, times the root of its weight, shrunk to
    L2 norm ``row_norm``, times the root of the loss's second derivative, at most ``curvature``,
    where a larger one is capped; plus the Hessian of the problem's penalty, a constant.

    Sensitivity: let ``B = row_norm**2 curvature``, with the loss's curvature if that is less, at
    least ``|v|**2``, g the vector, and H' be H without the record ``v v'``. By Sherman and
    Morrison, with ``M = (H' + damping)^-1``, whose eigenvalues are at most 1 / damping,

        ``(H + damping)^-1 g - M g = - M v v' M g / (1 + v' M v)``,

    and ``|M v|**2 <= t / damping`` with ``t = v' M v <= B / damping``, so that the norm is at most
    ``(|g| / damping) t / (1 + t) <= |g| B / (damping (damping + B))``: the bound under zero-out. A
    null record, of weight 0, adds nothing to H. Replace-one is two such changes: the spread is 2.
    The vector is public: an earlier answer. A group of rows adds a mean of such products, P, with
    ``0 <= P <= B``, which need not have rank one. The change ``M - (M^-1 + P)^-1`` lies between 0
    and ``M - (M^-1 + B)^-1``, since inverses of positive definite matrices are in reverse order,
    and that has the eigenvalues ``m - 1 / (1/m + B)``, at most ``B / (damping (damping + B))`` for
    ``m <= 1 / damping``: the same bound. (Ganesh et al. 2023, "Faster differentially private
    convex optimization via second-order methods", Lemma 3.3, for the rule "add", here with
    constants.) With K columns the bound holds for each, ``|g|`` being the Frobenius norm of all;
    a loss that is not quadratic takes one output.

    Rounding: H is off by :func:`skdp.oracle.releases.moments.gram_rounding` times B, and its
    eigendecomposition by a relative ``e`` in norm; either moves the answer by the error times
    ``|g| / damping**2``.

    Where targets alone are private, the answer is public for the losses of `WITHOUT_TARGETS`: their
    second derivatives, 1 and ``p (1 - p)``, depend on the margin alone.

    Parameters
    ----------
    point : array of shape (n_parameters, n_outputs)
    vector : array of shape (n_parameters, n_outputs)
    damping : float
        Positive: added to all eigenvalues of H, which is a sum over n rows.
    row_norm : float
        Positive.
    curvature : float
        Positive: cap on second derivatives of the loss, besides the largest that it declares.
    """

    point: base.Point = field(repr=False)
    vector: base.Point = field(repr=False)
    damping: base.Positive
    row_norm: base.Bound
    curvature: base.Bound
    kind: ClassVar[str] = "newton_direction"

    def is_public(self, context: base.PublicContext) -> bool:
        is_known = type(context.problem.loss) in WITHOUT_TARGETS
        return is_known and context.public.features_are_public

    def _cap(self, context: base.PublicContext) -> float:
        """Return the largest second derivative that counts, whatever the loss returns."""
        return min(self.curvature, context.problem.loss.curvature)

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        public, loss = context.public, context.problem.loss
        if not (loss.quadratic or (loss.separable and public.n_outputs == 1)):
            raise ValueError(
                f"NewtonDirection: the Hessian of {loss.name!r} with {public.n_outputs} outputs is "
                "not that of one matrix of rows. Nothing was released."
            )
        size = public.n_parameters
        most = self.row_norm**2 * self._cap(context)
        length = float(np.linalg.norm(self.vector)) * (1 + 1e-9) + 1e-200
        exact = length * most / (self.damping * (self.damping + most))
        slack = gram_rounding(context, n_rows, 1)
        slack += (
            2
            * _solver_rounding(size)
            * (n_rows + (self.damping + context.problem.strong_convexity * n_rows) / most)
        )
        if math.isinf(public.epsilon):
            exact = 1.0  # no noise is measured against it, and gradients may be 0
            slack = 0.0
        bound = exact + 1.01 * slack * most * length / self.damping**2
        return base.Contribution(
            bound, spread=2.0, size=math.prod(public.shape), total=2 * length / self.damping
        )

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        base.require_shape(self, context, "point", "vector")
        loss = context.problem.loss
        bounds = self.row_norm, self._cap(context)
        hessian = rows.total(second_moments.bounded_hessian, loss, self.point, *bounds)
        public = context.public
        penalty = np.full(
            public.n_parameters, context.problem.strong_convexity * public.total_weight
        )
        if public.has_intercept:  # which is not penalised
            penalty[-1] = 0.0
        values, vectors = np.linalg.eigh(hessian + np.diag(penalty))
        lifted = np.maximum(values, 0.0) + self.damping
        return np.asarray(vectors @ ((vectors.T @ self.vector) / lifted[:, None]))
