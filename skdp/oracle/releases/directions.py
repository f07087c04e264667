"""Answers from second moments that are not shown themselves: a direction, an eigenvalue."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from skdp.oracle import moments
from skdp.oracle.kernels import UNIT_ROUNDOFF
from skdp.oracle.releases.base import Array, Terms, audited
from skdp.oracle.releases.fields import require_shape, store_bounds, store_points, store_positive
from skdp.oracle.releases.mechanisms import Contribution
from skdp.oracle.releases.sums import Sum

if TYPE_CHECKING:
    from skdp.oracle.rows import Rows


def _solver_rounding(size: int) -> float:
    """Relative backward error of LAPACK's symmetric eigensolver, with room to spare.

    Its users' guide (3rd ed., sec. 4.7) bounds it by ``p(n) u`` with a "modestly growing" p, "such
    as p(n) = n"; taken here is ``64 n**1.5``.
    """
    return float(64.0 * size**1.5 * UNIT_ROUNDOFF)


@audited
@dataclass(frozen=True, eq=False)
class NewtonDirection(Sum):
    """``(H + damping I)^-1 vector``, H the Hessian of the summed losses at ``point``.

    H is the sum of ``v v'``, v the row with its constant, times the root of its weight, shrunk to
    L2 norm ``row_norm``, times the root of the loss's second derivative, at most ``curvature``;
    plus the Hessian of the problem's penalty, a constant.

    Sensitivity: let ``B = row_norm**2 curvature``, at least ``|v|**2``, g the vector, and H' be H
    without the record ``v v'``. By Sherman and Morrison, with ``M = (H' + damping)^-1``, whose
    eigenvalues are at most 1 / damping,

        ``(H + damping)^-1 g - M g = - M v v' M g / (1 + v' M v)``,

    and ``|M v|**2 <= t / damping`` with ``t = v' M v <= B / damping``, so that the norm is at most
    ``(|g| / damping) t / (1 + t) <= |g| B / (damping (damping + B))``: the bound under zero-out. A
    null record, of weight 0, adds nothing to H. Replace-one is two such changes: the spread is 2.
    The vector is public: an earlier answer. (Ganesh et al. 2023, "Faster differentially private
    convex optimization via second-order methods", Lemma 3.3, for the rule "add", here with
    constants.) With K columns the bound holds for each, ``|g|`` being the Frobenius norm of all;
    a loss that is not quadratic takes one output.

    Rounding: H is off by :func:`skdp.oracle.moments.gram_rounding` times B, and its
    eigendecomposition by a relative ``e`` in norm; either moves the answer by the error times
    ``|g| / damping**2``.

    Parameters
    ----------
    point : array of shape (n_parameters, n_outputs)
    vector : array of shape (n_parameters, n_outputs)
    damping : float
        Positive: added to all eigenvalues of H, which is a sum over n rows.
    row_norm : float
        Positive.
    """

    point: Array = field(repr=False)
    vector: Array = field(repr=False)
    damping: float
    row_norm: float
    kind: ClassVar[str] = "newton_direction"

    def __post_init__(self) -> None:
        store_points(self, "point", "vector")
        store_positive(self, "damping")
        store_bounds(self, "row_norm")

    def contribution(self, terms: Terms, n_rows: int) -> Contribution:
        public, loss = terms.public, terms.problem.loss
        if not (loss.quadratic or (loss.separable and public.n_outputs == 1)):
            raise ValueError(
                f"NewtonDirection: the Hessian of {loss.name!r} with {public.n_outputs} outputs is "
                "not that of one matrix of rows. Nothing was released."
            )
        size = public.n_parameters
        most = self.row_norm**2 * loss.curvature
        length = float(np.linalg.norm(self.vector)) * (1 + 1e-9) + 1e-300
        exact = length * most / (self.damping * (self.damping + most))
        slack = moments.gram_rounding(n_rows, public.n_features, 1, public.sparse)
        slack += (
            2
            * _solver_rounding(size)
            * (n_rows + (self.damping + terms.problem.strong_convexity * n_rows) / most)
        )
        if math.isinf(public.epsilon):
            exact = min(exact, 1.0)  # no noise is measured against it
            slack = 0.0
        bound = exact + 1.01 * slack * most * length / self.damping**2
        return Contribution(
            bound, spread=2.0, size=math.prod(public.shape), total=2 * length / self.damping
        )

    def shape(self, terms: Terms) -> tuple[int, ...]:
        return terms.public.shape

    def total(self, rows: Rows, terms: Terms) -> Array:
        require_shape(self, terms, "point", "vector")
        loss = terms.problem.loss
        hessian = rows.hessian_sum(loss, self.point, rows.record_factors(self.row_norm))
        public = terms.public
        penalty = np.full(public.n_parameters, terms.problem.strong_convexity * public.n_rows)
        if public.has_intercept:  # which is not penalised
            penalty[-1] = 0.0
        values, vectors = np.linalg.eigh(hessian + np.diag(penalty))
        lifted = np.maximum(values, 0.0) + self.damping
        return np.asarray(vectors @ ((vectors.T @ self.vector) / lifted[:, None]))


@audited
@dataclass(frozen=True)
class SmallestEigenvalue(Sum):
    """The smallest eigenvalue of the Gram matrix of the rows, each shrunk to ``row_norm``.

    Sensitivity: adding ``v v'`` to a symmetric matrix raises no eigenvalue by more than
    ``|v|**2 <= row_norm**2``, and lowers none (Weyl); a null record adds nothing. Replacing one
    record moves it up by at most that or down by at most that: the spread is 1. Rounding: that
    of the matrix, and the eigensolver's, relative to ``n row_norm**2``.

    Parameters
    ----------
    row_norm : float
        Positive.
    """

    row_norm: float
    kind: ClassVar[str] = "smallest_eigenvalue"

    def __post_init__(self) -> None:
        store_bounds(self, "row_norm")

    def contribution(self, terms: Terms, n_rows: int) -> Contribution:
        public = terms.public
        size = public.n_parameters
        slack = moments.gram_rounding(n_rows, public.n_features, 1, public.sparse)
        slack += 2 * _solver_rounding(size) * n_rows
        bound = self.row_norm**2 * (1 + slack)
        return Contribution(bound, spread=1.0, size=1, total=(n_rows + 1) * bound)

    def shape(self, terms: Terms) -> tuple[int, ...]:
        return (1,)

    def total(self, rows: Rows, terms: Terms) -> Array:
        smallest = np.linalg.eigvalsh(rows.gram_sum(self.row_norm))[0]
        return np.array([float(smallest)])
