"""The largest eigenvalue of second moments, which are not shown themselves.

It is no sum over records, but one record moves it by a bounded amount.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skdp._numbers import Array
from skdp.oracle.kernels import second_moments
from skdp.oracle.releases import base
from skdp.oracle.sources import block_sizes
from skdp.oracle.sources.base import RepeatableSource
from skdp.oracle.sources.sparse_rows import growth_of_rounding

MAX_GRAM_COLUMNS = 4000  # a Gram matrix of more takes over 128 MB and minutes for its eigenvalues


def eigenvalue_rounding(
    n_rows: int, n_parameters: int, grouped: bool = False, is_sparse: bool = False
) -> float:
    """Amount by which rounding can move the eigenvalue, relative to a bound on ``|z|**2``.

    A record's ``|z|**2`` exceeds its bound by a relative ``(n_parameters + 8) u`` at most (its
    norm, the quotient, the product). The computed matrix is ``G + E`` with ``|E_jk| <= k u sum
    |z_j z_k|`` to first order, k being `summation_depth`
    (Higham 2002, eq. 3.13), so in spectral norm E is at most ``k u sum |z|**2 <= k u n R**2``.
    Compiled sums of sparse rows, whose parts are up to ``growth_of_rounding()`` times as long as
    the row, add 32 u times the square of that (`skdp.oracle.kernels.second_moments`). The
    eigenvalue is that of a matrix ``100 n_parameters**2 u n R**2`` away, at most: the reduction to
    tridiagonal form is ``n_parameters`` reflections, each off by a small multiple of
    ``n_parameters u`` times the Frobenius norm (Higham 2002, Lemma 19.3), and the iteration that
    follows does no worse. Two neighbouring data sets are off by twice as much.
    """
    # With or without the constant among the parameters.
    columns = max(n_parameters - 1, 1), n_parameters
    sums = max(block_sizes.summation_depth(n_rows, one, is_sparse, grouped) for one in columns)
    compiled = 32.0 * growth_of_rounding() ** 2 if is_sparse else 0.0
    terms = sums + compiled + 100 * n_parameters**2
    return 1.01 * block_sizes.UNIT_ROUNDOFF * (n_parameters + 8 + 2.0 * terms * n_rows)


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
