"""How curved the mean loss is, at most: the largest eigenvalue of the rows' Gram matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from skdp.oracle.gram import eigenvalue_rounding
from skdp.oracle.releases.base import Array, Terms, audited
from skdp.oracle.releases.mechanisms import Contribution
from skdp.oracle.releases.sums import Sum

if TYPE_CHECKING:
    from skdp.oracle.rows import Rows

MOST_COLUMNS = 4000


@audited
@dataclass(frozen=True)
class LargestEigenvalue(Sum):
    """Largest eigenvalue of ``sum_i z_i z_i'``, z being rows with their constant; one number.

    No sum, but one record moves it like one. Write G for the matrix without the record, R for the
    enforced bound on ``|z|``. By Weyl's inequality

        lambda(G) <= lambda(G + z z') <= lambda(G) + |z|**2 <= lambda(G) + R**2,

    so the answer lies in an interval of length ``R**2`` that the other records fix. Zero-out is
    within it: the null row is there (with the constant, whose square is counted in R**2; the
    constant of a null record does not vanish, and the interval is that of all z). Replace-one is
    as well: ``lambda(G + z z')`` and ``lambda(G + v v')`` lie in the same interval. Hence the
    sensitivity is ``R**2`` under both, in L1 as in L2 norm, and the spread is 1. Rounding
    adds what :func:`skdp.oracle.gram.eigenvalue_rounding` bounds. Weights and targets play no part.

    Times ``curvature / n`` it bounds the smoothness of the mean loss without weights.

    Parameters
    ----------
    order : {1, 2}, default=2
        Of the noise that hides it.
    """

    order: int = 2
    kind: ClassVar[str] = "largest_eigenvalue"
    gradients: ClassVar[int] = 0

    def contribution(self, terms: Terms, n_rows: int) -> Contribution:
        public = terms.public
        if public.row_norm is None:
            raise ValueError(
                "LargestEigenvalue: needs an enforced bound on the norm of rows; set data_norm. "
                "Nothing was released."
            )
        if public.n_parameters > MOST_COLUMNS:
            raise ValueError(
                f"LargestEigenvalue: {public.n_parameters} columns are too many for a Gram matrix; "
                f"at most {MOST_COLUMNS}. Nothing was released."
            )
        bound = public.row_norm**2 * (1 + eigenvalue_rounding(n_rows, public.n_parameters))
        return Contribution(bound, 1.0, size=1, total=n_rows * bound, order=self.order)

    def shape(self, terms: Terms) -> tuple[int, ...]:
        return (1,)

    def total(self, rows: Rows, terms: Terms) -> Array:
        return np.array([rows.largest_gram_eigenvalue()])
